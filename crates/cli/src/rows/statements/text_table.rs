//! Tables whose rows are kept as the text of a file, as earlier versions of `sapwood load` kept them.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use sapwood::AnyTable;
use sapwood::schema::{BATCH_ROWS, Batch, Data, Scan, Sink, SourceColumn, Strings, Type, Vector};
use sapwood::sql::{Request, Source, SourceResult};

use crate::rows::columns::Columns;
use crate::rows::rows_table;
use crate::rows::stored::StoredFields;

/// Such a table: its columns are text. A row of JSON lines is its line, in the column `row`.
pub(super) struct TextTable {
    table: AnyTable,
    columns: Vec<SourceColumn>,
    /// Whether rows are lines.
    is_lines: bool,
}

impl TextTable {
    /// The table; none if its rows are no text.
    pub(super) fn new(table: AnyTable, columns: &Columns) -> Option<TextTable> {
        let (names, is_lines) = match columns {
            Columns::Csv(names) => (names.clone(), false),
            Columns::Json => (vec!["row".to_owned()], true),
            Columns::Entries | Columns::Typed(_) => return None,
        };
        let column = |name| SourceColumn { name, kind: Type::Text, nullable: false };
        Some(TextTable { table, columns: names.into_iter().map(column).collect(), is_lines })
    }

    /// Appends a row to the columns that are wanted.
    fn push(&self, value: &[u8], wanted: &[usize], out: &mut [Strings]) -> Result<(), String> {
        if self.is_lines {
            out.iter_mut().for_each(|texts| texts.push(value));
            return Ok(());
        }
        let fields: Vec<&[u8]> = StoredFields(value).collect();
        if fields.len() != self.columns.len() {
            let name = self.table.name();
            return Err(format!("a row of `{name}` has other columns than its table"));
        }
        wanted.iter().zip(out).for_each(|(column, texts)| texts.push(fields[*column]));
        Ok(())
    }
}

impl Source for TextTable {
    fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    fn rows_estimate(&self) -> Option<u64> {
        Some(self.table.len_estimate() as u64)
    }

    fn explain(&self, request: &Request) -> String {
        let (name, engine) = (self.table.name(), self.table.engine());
        let (wanted, all) = (request.columns.len(), self.columns.len());
        format!("every row of {name} ({engine}), whose columns are text: {wanted} of {all} columns")
    }

    fn scan<'a>(&'a self, request: &Request) -> SourceResult<Box<dyn Scan + 'a>> {
        let columns = request.columns.clone();
        Ok(Box::new(TextScan { table: self, columns, is_taken: AtomicBool::new(false) }))
    }

    fn change(&self) -> SourceResult<&dyn sapwood::sql::Change> {
        let name = self.table.name();
        Err(format!(
            "`{name}` keeps its rows as text, as an earlier version loaded them: `create table NEW as select * from \
             {name}` makes a table that can be changed"
        ))
    }
}

/// All rows, which one thread reads.
struct TextScan<'a> {
    table: &'a TextTable,
    columns: Vec<usize>,
    is_taken: AtomicBool,
}

impl Scan for TextScan<'_> {
    fn work(&self, sink: &mut Sink<'_>) -> SourceResult<()> {
        // Relaxed: the rows are those of the table, whichever thread is the first.
        if self.is_taken.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let empty = || -> Vec<Strings> { self.columns.iter().map(|_| Strings::new()).collect() };
        let (mut texts, mut len, mut number) = (empty(), 0, 0);
        let mut show = |texts: &mut Vec<Strings>, len: usize| {
            let columns = std::mem::replace(texts, empty()).into_iter();
            let columns = columns.map(|texts| Vector::new(Data::Bytes(texts))).collect();
            number += 1;
            sink(number - 1, &Batch { len, columns, ids: None })
        };
        let end = rows_table::scan(&self.table.table, |value| {
            if let Err(what) = self.table.push(value, &self.columns, &mut texts) {
                return ControlFlow::Break(Err(what));
            }
            len += 1;
            if len < BATCH_ROWS {
                return ControlFlow::Continue(());
            }
            len = 0;
            match show(&mut texts, BATCH_ROWS) {
                ControlFlow::Break(()) => ControlFlow::Break(Ok(())),
                ControlFlow::Continue(()) => ControlFlow::Continue(()),
            }
        });
        match end.map_err(|error| error.to_string())? {
            ControlFlow::Break(outcome) => outcome,
            ControlFlow::Continue(()) => {
                if len > 0 {
                    let _ = show(&mut texts, len);
                }
                Ok(())
            }
        }
    }
}

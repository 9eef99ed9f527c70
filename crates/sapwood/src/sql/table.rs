//! A table as a source of rows.

use std::sync::Arc;

use sapwood_sql::{Change, Request, Source, SourceResult};

use super::ranges::{Keys, keys_of, keys_of_bytes};
use super::scan::TableScan;
use super::words::said;
use crate::schema::{RowFormat, Scan, SourceColumn, Type};
use crate::transaction::Within;
use crate::{AnyTable, Db, Engine};

/// A table of any kind but a roll-up.
pub(super) struct TableSource<'a> {
    pub(super) table: AnyTable,
    pub(super) form: Form,
    pub(super) puts: Puts<'a>,
    columns: Vec<SourceColumn>,
}

/// The way in which rows are put.
pub(super) enum Puts<'a> {
    /// Into a table of a database: those of a statement together, with what must be held meanwhile.
    Together(Db, &'a Within<'a>),
    /// Into a table that no name leads to: as they come.
    AsTheyCome,
}

/// What entries are.
pub(super) enum Form {
    /// Rows of a schema.
    Rows(Arc<RowFormat>),
    /// A key and a value, as bytes.
    Bytes,
}

impl<'a> TableSource<'a> {
    pub(super) fn new(table: AnyTable, has_schema: bool, puts: Puts<'a>) -> TableSource<'a> {
        let column = |name: &str, kind: Type, nullable: bool| SourceColumn {
            name: name.to_owned(),
            kind,
            nullable,
        };
        let formats = table.formats().filter(|_| has_schema);
        let (form, columns) = match formats {
            Some(formats) => {
                // A statement has the columns of its beginning.
                let format = Arc::new(formats.newest().clone());
                let columns = format.schema().columns().iter();
                let columns = columns.map(|it| column(&it.name, it.kind.clone(), it.nullable));
                let columns = columns.collect();
                (Form::Rows(format), columns)
            }
            None => {
                let columns =
                    vec![column("key", Type::Bytes, false), column("value", Type::Bytes, false)];
                (Form::Bytes, columns)
            }
        };
        TableSource { table, form, puts, columns }
    }

    /// The keys that a request can be answered by. A hash table has no ranges.
    fn keys(&self, request: &Request) -> Keys {
        let keys = match &self.form {
            Form::Rows(format) => keys_of(format, &request.keys),
            Form::Bytes => keys_of_bytes(&request.keys),
        };
        match (self.table.engine(), keys) {
            (Engine::Hash, Keys::Ranges(ranges)) if !ranges.is_empty() => Keys::Every,
            (_, keys) => keys,
        }
    }
}

impl Source for TableSource<'_> {
    fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    fn key_columns(&self) -> &[usize] {
        match &self.form {
            Form::Rows(format) => format.schema().key_columns(),
            Form::Bytes => &[0],
        }
    }

    fn is_numbered(&self) -> bool {
        match &self.form {
            Form::Rows(format) => format.schema().is_numbered(),
            Form::Bytes => false,
        }
    }

    fn rows_estimate(&self) -> Option<u64> {
        Some(self.table.len_estimate() as u64)
    }

    fn explain(&self, request: &Request) -> String {
        let (name, engine) = (self.table.name(), self.table.engine());
        let columns = format!("{} of {} columns", request.columns.len(), self.columns.len());
        match self.keys(request) {
            Keys::Every => {
                let rows = self.table.len_estimate();
                format!("every row of {name} ({engine}, about {rows} rows): {columns}")
            }
            Keys::Listed(keys) => {
                let keys = match keys.len() {
                    1 => "1 key".to_owned(),
                    count => format!("{count} keys"),
                };
                format!("get of {keys} of {name} ({engine}): {columns}")
            }
            Keys::Ranges(ranges) => {
                let ranges = match ranges.len() {
                    1 => "a range".to_owned(),
                    count => format!("{count} ranges"),
                };
                format!("{ranges} of the keys of {name} ({engine}): {columns}")
            }
        }
    }

    fn scan<'a>(&'a self, request: &Request) -> SourceResult<Box<dyn Scan + 'a>> {
        let keys = self.keys(request);
        TableScan::new(self, request, keys)
            .map(|scan| Box::new(scan) as Box<dyn Scan>)
            .map_err(said)
    }

    fn change(&self) -> SourceResult<&dyn Change> {
        Ok(self)
    }
}

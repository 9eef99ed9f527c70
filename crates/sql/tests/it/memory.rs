//! Tables in memory, for statements to be of.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex};

use sapwood_schema::{
    Batch, Data, RowFormat, Scan, Schema, Sink, SourceColumn, Strings, Type, Value, Vector,
};
use sapwood_sql::{
    Answer, Catalog, Change, ChangeError, Changed, Error, Insertion, Options, Outcome, Request,
    Room, Session, Source, SourceResult, TableName, TableSummary, parse, parse_with,
};

/// Rows that a table takes, so that a statement which meets its own rows ends.
const ROWS_MAX: usize = 1_000;

/// Tables by name.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) tables: Mutex<BTreeMap<String, std::sync::Arc<Table>>>,
    /// What was written to files.
    pub(crate) written: Mutex<Vec<(String, usize)>>,
}

pub(crate) struct Table {
    columns: Vec<SourceColumn>,
    format: RowFormat,
    rows: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Rows of a batch.
    batch: usize,
}

impl Memory {
    /// Makes a table of rows, which are written as SQL writes them.
    pub(crate) fn with(self, name: &str, schema: &str, rows: &str) -> Memory {
        self.with_batches(name, schema, 3);
        let rows = rows.trim();
        if !rows.is_empty() {
            self.run(&format!("insert into {name} values {rows}"));
        }
        self
    }

    pub(crate) fn with_batches(&self, name: &str, schema: &str, batch: usize) {
        let schema: Schema = schema.parse().unwrap_or_else(|error| panic!("{error}"));
        let columns = schema.columns().iter().map(|column| SourceColumn {
            name: column.name.clone(),
            kind: column.kind.clone(),
            nullable: column.nullable,
        });
        let table = Table {
            columns: columns.collect(),
            format: RowFormat::new(schema),
            rows: Mutex::default(),
            batch,
        };
        self.tables.lock().expect("unpoisoned").insert(name.to_owned(), table.into());
    }

    pub(crate) fn try_run(&self, sql: &str) -> Result<Outcome, Error> {
        let options = Options::default();
        let session = Session::new(self, options);
        let mut last = None;
        for statement in parse(sql)? {
            last = Some(session.execute(&statement)?);
        }
        Ok(last.expect("there is a statement"))
    }

    /// The rows of a statement with parameters, or its refusal.
    pub(crate) fn try_with(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<String>, Error> {
        let session = Session::new(self, Options::default());
        let mut last = Vec::new();
        for statement in parse_with(sql, values)? {
            if let Outcome::Rows(answer) = session.execute(&statement)? {
                last = texts(&answer);
            }
        }
        Ok(last)
    }

    #[track_caller]
    pub(crate) fn run(&self, sql: &str) -> Outcome {
        self.try_run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The rows that a statement answers, each as text.
    #[track_caller]
    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        match self.run(sql) {
            Outcome::Rows(answer) => texts(&answer),
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// The one value that a statement answers.
    #[track_caller]
    pub(crate) fn value(&self, sql: &str) -> String {
        let rows = self.rows(sql);
        assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
        rows[0].clone()
    }

    /// The words of a refusal.
    #[track_caller]
    pub(crate) fn refused(&self, sql: &str) -> Error {
        match self.try_run(sql) {
            Err(error) => error,
            Ok(Outcome::Rows(answer)) => panic!("{sql}: {:?}", texts(&answer)),
            Ok(other) => panic!("{sql}: {other:?}"),
        }
    }
}

fn texts(answer: &Answer) -> Vec<String> {
    let row = |row: usize| {
        let values = answer.row(row).expect("values");
        values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    (0..answer.len()).map(row).collect()
}

impl Memory {
    /// Gives a table the next version of its schema.
    fn evolve(
        &self,
        name: &TableName,
        next: impl FnOnce(&Schema) -> Result<Schema, sapwood_schema::Error>,
    ) -> SourceResult<()> {
        let mut tables = self.tables.lock().expect("unpoisoned");
        let table = tables.get(&name.to_string()).ok_or("no such table")?;
        let schema = next(table.format.schema()).map_err(|error| error.to_string())?;
        let rows = table.rows.lock().expect("unpoisoned").clone();
        let columns = schema.columns().iter().map(|column| SourceColumn {
            name: column.name.clone(),
            kind: column.kind.clone(),
            nullable: column.nullable,
        });
        let wider = Table {
            columns: columns.collect(),
            format: RowFormat::new(schema),
            rows: Mutex::new(rows),
            batch: table.batch,
        };
        tables.insert(name.to_string(), wider.into());
        Ok(())
    }
}

impl Catalog for Memory {
    fn open(&self, name: &TableName) -> SourceResult<Box<dyn Source + '_>> {
        // Tables have a second name, as those of a directory have.
        let known = name.to_string();
        let known = known.strip_prefix("memory.").unwrap_or(&known);
        let found = self.tables.lock().expect("unpoisoned").get(known).cloned();
        match found {
            Some(table) => Ok(Box::new(Opened(table))),
            None => Err(format!("no table is called `{name}`")),
        }
    }

    fn tables(&self) -> SourceResult<Vec<TableSummary>> {
        let tables = self.tables.lock().expect("unpoisoned");
        let summary = |(name, table): (&String, &std::sync::Arc<Table>)| TableSummary {
            name: name.clone(),
            kind: "memory".to_owned(),
            rows: Some(table.rows.lock().expect("unpoisoned").len() as u64),
            columns: table.format.schema().to_string(),
        };
        Ok(tables.iter().map(summary).collect())
    }

    fn create(&self, name: &TableName, schema: Schema, _: Option<&str>) -> SourceResult<()> {
        if self.open(name).is_ok() {
            return Err(format!("table `{name}` is there"));
        }
        self.with_batches(&name.to_string(), &schema.to_string(), 3);
        Ok(())
    }

    fn drop_table(&self, name: &TableName) -> SourceResult<()> {
        let dropped = self.tables.lock().expect("unpoisoned").remove(&name.to_string());
        dropped.map(drop).ok_or_else(|| format!("no table is called `{name}`"))
    }

    fn add_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()> {
        self.evolve(name, |schema| schema.with_column(column, kind))
    }

    fn widen_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()> {
        self.evolve(name, |schema| schema.with_wider(column, kind))
    }

    fn write(&self, answer: &Answer, file: &str) -> SourceResult<u64> {
        self.written.lock().expect("unpoisoned").push((file.to_owned(), answer.len()));
        Ok(answer.len() as u64)
    }
}

struct Opened(std::sync::Arc<Table>);

impl Source for Opened {
    fn columns(&self) -> &[SourceColumn] {
        &self.0.columns
    }

    fn key_columns(&self) -> &[usize] {
        self.0.format.schema().key_columns()
    }

    fn explain(&self, request: &Request) -> String {
        format!("keys {:?}", request.keys)
    }

    fn scan<'a>(&'a self, request: &Request) -> SourceResult<Box<dyn Scan + 'a>> {
        Ok(Box::new(MemoryScan {
            table: &self.0,
            request: request.clone(),
            next: Mutex::new((0, Bound::Unbounded)),
        }))
    }

    fn change(&self) -> SourceResult<&dyn Change> {
        Ok(self)
    }
}

impl Table {
    /// Whether a key is one that a request asks for: an engine would not look at others.
    fn is_wanted(&self, key: &[u8], request: &Request) -> bool {
        let schema = self.format.schema();
        let columns = schema.key_columns();
        let encoded = |column: usize, value: &Value<'_>| {
            // A key of this column alone sorts as its values do.
            let kind = &schema.columns()[column];
            let one = Schema::builder().nullable("k", kind.kind.clone()).key(["k"]).build();
            let mut key = Vec::new();
            let one = RowFormat::new(one.expect("a schema"));
            one.encode_key([value], &mut key).expect("of its type");
            key
        };
        let value = |column: usize| {
            let empty = self.format.get(column, key, &[1]).expect("a key");
            encoded(column, &empty)
        };
        for (&column, wanted) in columns.iter().zip(&request.keys.equal) {
            let value = value(column);
            if !wanted.iter().any(|wanted| encoded(column, wanted) == value) {
                return false;
            }
        }
        if let (Some(&column), Some((begin, end))) =
            (columns.get(request.keys.equal.len()), &request.keys.range)
        {
            let value = value(column);
            let is_null = value == encoded(column, &Value::Null);
            let above = match begin {
                Bound::Unbounded => true,
                Bound::Included(begin) => value >= encoded(column, begin),
                Bound::Excluded(begin) => value > encoded(column, begin),
            };
            let below = match end {
                Bound::Unbounded => true,
                Bound::Included(end) => value <= encoded(column, end),
                Bound::Excluded(end) => value < encoded(column, end),
            };
            return !is_null && above && below;
        }
        true
    }
}

/// A scan beside writers: it shows rows that are put behind the place where it is.
struct MemoryScan<'a> {
    table: &'a Table,
    request: Request,
    /// The number of the next batch, and where it begins.
    next: Mutex<(u64, Bound<Vec<u8>>)>,
}

impl MemoryScan<'_> {
    fn next_rows(&self) -> (u64, Vec<(Vec<u8>, Vec<u8>)>) {
        let mut next = self.next.lock().expect("unpoisoned");
        let rows = self.table.rows.lock().expect("unpoisoned");
        let wanted = rows
            .range((next.1.clone(), Bound::Unbounded))
            .filter(|(key, _)| self.table.is_wanted(key, &self.request));
        let rows: Vec<_> = wanted
            .take(self.table.batch)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let number = next.0;
        if let Some((last, _)) = rows.last() {
            *next = (number + 1, Bound::Excluded(last.clone()));
        }
        (number, rows)
    }
}

impl Scan for MemoryScan<'_> {
    fn work(&self, sink: &mut Sink<'_>) -> SourceResult<()> {
        let projection = self.table.format.project(&self.request.columns);
        loop {
            let (number, rows) = self.next_rows();
            if rows.is_empty() {
                return Ok(());
            }
            let kinds = self.request.columns.iter();
            let kinds = kinds.map(|&column| Vector::of_type(&self.table.columns[column].kind));
            let mut columns: Vec<Vector> = kinds.collect();
            for (key, value) in &rows {
                let show = &mut |at: usize, cell| columns[at].push_cell(&cell);
                projection.read(key, value, show).map_err(|error| error.to_string())?;
            }
            // Some batches have dictionaries, as those of sources that store them.
            if number % 2 == 1 {
                columns.iter_mut().for_each(give_dictionary);
            }
            let ids = self.request.with_ids;
            let ids = ids.then(|| rows.iter().map(|(key, _)| &key[..]).collect::<Strings>());
            if sink(number, &Batch { len: rows.len(), columns, ids }).is_break() {
                return Ok(());
            }
        }
    }
}

/// Texts of which few differ become numbers of a dictionary.
fn give_dictionary(vector: &mut Vector) {
    let Data::Bytes(texts) = &mut vector.data else { return };
    let different: Vec<&[u8]> = texts.iter().collect::<BTreeSet<_>>().into_iter().collect();
    if different.len() > Strings::DICTIONARY_MAX {
        return;
    }
    let code = |text| different.binary_search(&text).expect("it is there") as u8;
    let codes: Vec<u8> = texts.iter().map(code).collect();
    let dictionary = Arc::new(different.into_iter().collect());
    let mut coded = Strings::new();
    coded.extend_from_dictionary(&dictionary, &codes);
    *texts = coded;
}

impl Change for Opened {
    fn insert(&self) -> SourceResult<Box<dyn Insertion + '_>> {
        Ok(Box::new(NewRows { table: &self.0, rows: Mutex::default() }))
    }

    fn update(
        &self,
        ids: &[&[u8]],
        change: &mut dyn FnMut(&[Value<'_>]) -> Changed,
        _: &mut Room<'_>,
    ) -> Result<u64, ChangeError> {
        let mut rows = self.0.rows.lock().expect("unpoisoned");
        let mut new = rows.clone();
        let mut count = 0;
        for &id in ids {
            let Some(value) = rows.get(id) else { continue };
            let row = self.0.format.decode(id, value).expect("a row");
            let Some(changed) = change(&row).map_err(ChangeError::Statement)? else { continue };
            let (mut key, mut value) = (Vec::new(), Vec::new());
            let encoded =
                self.0.format.encode(&changed, self.0.format.number_of(id), &mut key, &mut value);
            encoded.map_err(|error| ChangeError::Source(error.to_string()))?;
            assert_eq!(key, id, "the key stays");
            new.insert(key, value);
            count += 1;
        }
        *rows = new;
        Ok(count)
    }

    fn remove(
        &self,
        ids: &[&[u8]],
        wanted: &mut dyn FnMut(&[Value<'_>]) -> Result<bool, Error>,
        _: &mut Room<'_>,
    ) -> Result<u64, ChangeError> {
        let mut rows = self.0.rows.lock().expect("unpoisoned");
        let mut new = rows.clone();
        for &id in ids {
            let Some(value) = rows.get(id) else { continue };
            let row = self.0.format.decode(id, value).expect("a row");
            if wanted(&row).map_err(ChangeError::Statement)? {
                new.remove(id);
            }
        }
        let count = rows.len() - new.len();
        *rows = new;
        Ok(count as u64)
    }
}

/// New rows, which the table does not show yet.
struct NewRows<'t> {
    table: &'t Table,
    rows: Mutex<Vec<Vec<Value<'static>>>>,
}

impl Insertion for NewRows<'_> {
    fn row(&self, row: &[Value<'_>]) -> SourceResult<()> {
        let mut rows = self.rows.lock().expect("unpoisoned");
        if rows.len() >= ROWS_MAX {
            return Err("the table is full".to_owned());
        }
        rows.push(row.iter().map(|value| value.clone().into_owned()).collect());
        Ok(())
    }

    fn finish(self: Box<Self>) -> SourceResult<u64> {
        let mut rows = self.table.rows.lock().expect("unpoisoned");
        let mut new = rows.clone();
        let added = self.rows.into_inner().expect("unpoisoned");
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for (at, row) in added.iter().enumerate() {
            let number = Some(new.len() as u64);
            let encoded = self.table.format.encode(row, number, &mut key, &mut value);
            encoded.map_err(|error| error.to_string())?;
            if new.contains_key(&key) {
                return Err(format!("the key of row {} is there", at + 1));
            }
            new.insert(key.clone(), value.clone());
        }
        *rows = new;
        Ok(added.len() as u64)
    }
}

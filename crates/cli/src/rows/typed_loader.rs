//! A file into a table of typed columns: every row is there, or named and counted.
//!
//! Types are those of all values: the file is read once for them, and again for its rows, which threads read and
//! another puts, in the order of the file. Where the table is there already, its columns have the types. Rows of a new
//! table of a directory that are named by their numbers go straight into its checkpoint.

use std::iter::Peekable;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use sapwood::key::KeyEncode;
use sapwood::schema::{RowFormat, Schema, Type};
use sapwood::sql::{Batch, Request, Source, SourceColumn};
use sapwood::{BulkLoad, Db, Engine, HashEngineError, OrderedEngineError, Table, Transaction};

use crate::args::key_spec::ColumnType;
use crate::args::rows::{CompactAt, Duplicates, EngineName, Input};
use crate::rows::counts::Counts;
use crate::rows::frames::{FileSource, FrameOptions, Malformed};
use crate::rows::kept::{Filling, Held};
use crate::rows::key_columns::KeyColumns;
use crate::rows::rows_table::{self, NewTable, Put, Rows};
use crate::rows::source;
use crate::terminal::exit::{Failure, Outcome, words};
use crate::terminal::format::{count, plural, quoted, shown, shown_list, time};
use crate::terminal::interrupt::Promise;
use crate::terminal::stderr;
use crate::terminal::ui::Ui;

/// Batches of rows of each thread that wait to be put.
const WAITING_MAX: usize = 4;

/// The number of the first row of a table.
const FIRST_NUMBER: u64 = 1;

/// The note that a load which failed has left a directory as it was.
pub(crate) fn nothing_kept(directory: &Path) -> String {
    format!("nothing of the file is kept in {}", directory.display())
}

/// The treatment of a file without `--key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyless {
    Refused,
    /// Every row is there, by its number.
    Numbered,
}

/// A file in a table of typed columns.
pub(crate) struct TypedLoaded {
    pub(crate) db: Db,
    /// None where `--strict` refuses the rows, and nothing of them is there.
    pub(crate) table: Option<Table>,
    pub(crate) schema: Schema,
    pub(crate) keys: KeyColumns,
    pub(crate) counts: Counts,
}

/// Where rows are kept, and how.
pub(crate) struct Keep<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) compact_at: Option<CompactAt>,
    /// From the moment on at which the directory may have changed.
    pub(crate) filling: Option<Filling>,
    /// From then on too: however it ends, the directory is tidied up.
    pub(crate) promise: Option<Promise>,
}

/// Loads a file into a table, in memory or in a directory, naming on standard error the rows it cannot take.
pub(crate) fn load(
    input: &Input,
    keyless: Keyless,
    keep: Option<&mut Keep<'_>>,
    ui: &Ui,
) -> Outcome<TypedLoaded> {
    let directory = keep.as_ref().map(|keep| keep.directory);
    load_into(input, keyless, keep, ui).map_err(|failure| match (failure, directory) {
        (Failure::Interrupted(done), Some(directory)) => {
            Failure::Interrupted(format!("{done}; {}", nothing_kept(directory)))
        }
        (failure, _) => failure,
    })
}

fn load_into(
    input: &Input,
    keyless: Keyless,
    mut keep: Option<&mut Keep<'_>>,
    ui: &Ui,
) -> Outcome<TypedLoaded> {
    let engine = check(input)?;
    if input.key.is_none() && keyless == Keyless::Refused {
        // A missing file needs no key: report that first.
        source::exists(&input.file)?;
        return Err(Failure::Usage(
            "--key is needed: it names the columns that make the key of a row".to_owned(),
        ));
    }
    let started = Instant::now();
    let options = options_of(input);
    let file = FileSource::open(&input.file, &options, ui)?;
    check_key(input, &file)?;
    let table = match &mut keep {
        Some(keep) => {
            keep.promise = Some(ui.interrupt.promise());
            let filling = keep.filling.insert(Filling::begin(keep.directory, &input.table)?);
            filling.table()?
        }
        None => None,
    };
    // Types of a table that is there are those of its columns.
    let there = match table {
        Some((table, Held::Nothing)) => {
            let kept = keep_empty(input, engine, table, keep.as_deref(), &file, ui)?;
            kept.map(|table| (table, Held::Nothing))
        }
        there => there,
    };
    let (file, schema, there) = match there {
        Some((table, held)) => {
            let schema = table.schema().expect("it was asked for");
            // Fields of JSON may come late, and larger numbers anywhere.
            let is_known = schema.columns().iter().all(|column| {
                has(&file, &column.name) && !matches!(column.kind, Type::Int(16 | 32))
            });
            let file = if is_known { file } else { file.reopen()? };
            fits(input, schema, &file)?;
            let db = keep.as_ref().and_then(|keep| keep.filling.as_ref()).expect("it is kept").db();
            let schema = widened(input, db, &table, &file, ui)?;
            let file = file.again(&options_of_table(&options, &schema, &file))?;
            (file, schema, Some((table, held)))
        }
        None => {
            let file = file.reopen()?;
            let schema = schema_of(input, &file)?;
            (file, schema, None)
        }
    };
    for notice in file.notices() {
        ui.notice(format_args!("{}: {notice}", input.file.display()));
    }
    let db = match &keep {
        Some(keep) => keep.filling.as_ref().expect("it was begun").db().clone(),
        None => Db::in_memory(),
    };
    let new = NewTable {
        kind: input.kind,
        memory_budget: input.memory_budget,
        compact_at: keep.as_ref().and_then(|keep| keep.compact_at),
        schema: Some(&schema),
        ..NewTable::of(engine)
    };
    let is_in_order = schema.is_numbered() && schema.key_columns().is_empty();
    let (target, held) = match there {
        Some((table, held)) => (Target::of(table, &db)?, held),
        None if keep.is_some() && is_in_order && new.is_bulk() => {
            (Target::Load(new.load(&db, &input.table)?), Held::Nothing)
        }
        None => (Target::of(new.make(&db, &input.table)?, &db)?, Held::Nothing),
    };
    let format = Arc::new(RowFormat::new(schema.clone()));
    let next_number = FIRST_NUMBER + target.len() as u64;
    let mut loader = Loader {
        input,
        keyless,
        target,
        engine: engine.engine(),
        keys: KeyColumns::of_schema(&format),
        format,
        held,
        directory: keep.as_ref().map(|keep| keep.directory),
        next_number,
        rows_read: 0,
        counts: Counts::default(),
        complaints: Vec::new(),
        key: Vec::new(),
        value: Vec::new(),
    };
    let read = loader.take_all(&file, ui);
    let mut counts = loader.finish(&file, read.is_ok());
    counts.elapsed = started.elapsed();
    let Loader { target, keys, .. } = loader;
    if ui.interrupt.asked() {
        let rows = plural(counts.rows as usize, "row");
        let done = format!("{rows} had been read in {}", time(counts.elapsed));
        return Err(Failure::Interrupted(done));
    }
    read?;
    // What a strict load refuses is not there at all.
    let is_wanted = counts.strictly(input).is_ok();
    let table = match target {
        Target::Table(Rows { table, transaction }) => {
            transaction.filter(|_| is_wanted).map(Transaction::commit).transpose()?;
            Some(table)
        }
        Target::Load(load) if is_wanted => {
            let table = load.finish()?;
            let filling = keep.and_then(|keep| keep.filling.as_mut()).expect("it is kept");
            filling.note_lasting();
            Some(table.into())
        }
        Target::Load(_) => None,
    };
    Ok(TypedLoaded { db: db.clone(), table, schema, keys, counts })
}

/// What rows go into.
enum Target<'a> {
    Table(Rows<'a>),
    Load(BulkLoad),
}

impl<'a> Target<'a> {
    fn of(table: Table, db: &'a Db) -> Outcome<Target<'a>> {
        let transaction = table.as_tree().map(|_| db.begin()).transpose()?;
        Ok(Target::Table(Rows { table, transaction }))
    }

    /// Rows that are there before.
    fn len(&self) -> usize {
        match self {
            Target::Table(rows) => rows.table.len_estimate(),
            Target::Load(_) => 0,
        }
    }
}

/// Refuses options that do not fit each other.
fn check(input: &Input) -> Outcome<EngineName> {
    if input.checkpoint.is_some() {
        return Err(Failure::Usage(
            "--checkpoint looks at a directory that was loaded before; a file has none".to_owned(),
        ));
    }
    let engine = input.engine.unwrap_or(EngineName::Ordered);
    if engine != EngineName::Tree && input.kind.is_some() {
        return Err(Failure::Usage("--kind is of --engine tree".to_owned()));
    }
    if engine == EngineName::Tree && input.memory_budget.is_some() {
        return Err(Failure::Usage(
            "tree tables have no memory budget: what lies in a directory need not fit into memory"
                .to_owned(),
        ));
    }
    if engine == EngineName::Hash && input.duplicates == Duplicates::All {
        return Err(Failure::Usage(
            "a hash table has one row a key: --duplicates all needs --engine ordered or --engine \
             tree"
                .to_owned(),
        ));
    }
    Ok(engine)
}

/// How the file is read: with the types that were said.
fn options_of(input: &Input) -> FrameOptions {
    let key = input.key.iter().flat_map(|key| &key.columns);
    let typed = key.clone().filter_map(|(name, kind)| {
        let kind = match kind.as_ref()? {
            ColumnType::Int => Type::Int(64),
            ColumnType::Float => Type::F64,
            ColumnType::Text => Type::Text,
        };
        Some((name.clone(), kind))
    });
    let said = input.text.said().iter().cloned();
    // A type beside the key is as good as one in --types.
    let types = said.chain(typed).collect();
    FrameOptions {
        types,
        na: input.text.na.clone(),
        key: key.map(|(name, _)| name.clone()).collect(),
        malformed: Malformed::Skip,
        notes_max: usize::try_from(input.show_errors).unwrap_or(usize::MAX),
        format: input.format,
        delimiter: input.text.delimiter,
        ..FrameOptions::default()
    }
}

/// As [`options_of`], with the types that the columns of a table have.
fn options_of_table(options: &FrameOptions, schema: &Schema, file: &FileSource) -> FrameOptions {
    let columns = schema.columns();
    let there = columns.iter().filter(|column| has(file, &column.name));
    FrameOptions {
        types: there.map(|it| (it.name.clone(), it.kind.clone())).collect(),
        key: schema.key_columns().iter().map(|at| columns[*at].name.clone()).collect(),
        ..options.clone()
    }
}

fn has(file: &FileSource, name: &str) -> bool {
    file.columns().iter().any(|column| column.name == name)
}

/// Refuses a key of columns that the file does not have.
fn check_key(input: &Input, file: &FileSource) -> Outcome {
    let columns = file.columns();
    for (name, _) in input.key.iter().flat_map(|key| &key.columns) {
        if has(file, name) {
            continue;
        }
        let typed = name.rsplit_once(':');
        if let Some((column, kind)) = typed.filter(|(name, _)| has(file, name)) {
            return Err(Failure::Failed(format!(
                "no column {}, and no type {} of a key: {column}:str, {column}:int and {column}:float are what \
                 there is; others are said by --types",
                quoted(name),
                quoted(kind),
                column = shown(column)
            )));
        }
        let there: Vec<String> =
            columns.iter().take(40).map(|column| quoted(&column.name)).collect();
        return Err(Failure::Failed(format!(
            "no column {}; the file has {}",
            quoted(name),
            there.join(", ")
        )));
    }
    Ok(())
}

/// A table without rows, if rows of the file can go into it; else it makes room for one that they can: a load that
/// was killed may have left it.
fn keep_empty(
    input: &Input,
    engine: EngineName,
    table: Table,
    keep: Option<&Keep<'_>>,
    file: &FileSource,
    ui: &Ui,
) -> Outcome<Option<Table>> {
    let fits = table.engine() == engine.engine()
        && table.schema().is_some_and(|schema| fits(input, schema, file).is_ok());
    if fits {
        return Ok(Some(table));
    }
    if table.schema().is_some() {
        let name = quoted(&input.table);
        ui.notice(format_args!("table {name} had other columns and no rows: it is made anew"));
    }
    drop(table);
    if let Some(filling) = keep.and_then(|keep| keep.filling.as_ref()) {
        filling.db().drop_table(&input.table)?;
    }
    Ok(None)
}

/// Refuses a file with other columns than a table, or another key.
fn fits(input: &Input, schema: &Schema, file: &FileSource) -> Outcome {
    let table = quoted(&input.table);
    let refused = |what: String| {
        Err(Failure::Failed(format!("table {table} {what}; load into another --table")))
    };
    let columns = schema.columns();
    for column in file.columns() {
        if schema.find(&column.name).is_none() {
            let name = quoted(&column.name);
            return refused(format!(
                "has no column {name} (`alter table ... add column` in `sapwood sql` adds one)"
            ));
        }
    }
    let mut needed = columns.iter().filter(|column| !column.nullable);
    if let Some(column) = needed.find(|column| !has(file, &column.name)) {
        return refused(format!("needs a column {}", quoted(&column.name)));
    }
    let own: Vec<&String> = schema.key_columns().iter().map(|at| &columns[*at].name).collect();
    if let Some(key) = &input.key
        && !key.columns.iter().map(|(name, _)| name).eq(own.iter().copied())
    {
        let own: Vec<String> = own.iter().map(|name| shown(name)).collect();
        return refused(format!("has the key {}", own.join(",")));
    }
    if schema.is_numbered() && !own.is_empty() && input.duplicates != Duplicates::All {
        return refused("keeps all rows of a key: --duplicates all".to_owned());
    }
    if !schema.is_numbered() && input.duplicates == Duplicates::All {
        return refused("has one row a key".to_owned());
    }
    Ok(())
}

/// The schema of a table, after columns of whole numbers have become wide enough for those of the file.
fn widened(input: &Input, db: &Db, table: &Table, file: &FileSource, ui: &Ui) -> Outcome<Schema> {
    let schema = || table.schema().expect("rows are typed").clone();
    let before = schema();
    let is_said = |name: &str| input.text.said().iter().any(|(column, _)| column == name);
    for (column, wider) in file.columns().iter().zip(file.stored_kinds()) {
        let Some(at) = before.find(&column.name) else { continue };
        let kind = &before.columns()[at].kind;
        if !matches!(kind, Type::Int(16 | 32))
            || !kind.widens_to(&wider)
            || before.key_columns().contains(&at)
            || is_said(&column.name)
        {
            continue;
        }
        db.widen_column(table.name(), &column.name, wider.clone())?;
        let name = quoted(&column.name);
        ui.notice(format_args!(
            "column {name} of the table was {kind}, and is {wider} from now on"
        ));
    }
    Ok(schema())
}

/// The schema of a new table: columns of the key always have values, and keep their type.
fn schema_of(input: &Input, file: &FileSource) -> Outcome<Schema> {
    let key: Vec<&String> =
        input.key.iter().flat_map(|key| &key.columns).map(|(name, _)| name).collect();
    let columns = file.columns().iter().zip(file.stored_kinds());
    let builder = columns.fold(Schema::builder(), |builder, (column, stored)| {
        let SourceColumn { name, kind, .. } = column.clone();
        match key.contains(&&name) {
            true => builder.column(name, kind),
            false => builder.nullable(name, stored),
        }
    });
    let builder = builder.key(key.iter().copied().cloned());
    let builder = match input.duplicates {
        Duplicates::All => builder.numbered(),
        Duplicates::First | Duplicates::Last => builder,
    };
    builder.build().map_err(|error| Failure::Failed(error.to_string()))
}

/// Writes rows of a file as keys and values.
struct Encoder {
    format: Arc<RowFormat>,
    /// The columns of the file that the table has.
    wanted: Vec<usize>,
    /// Their types.
    kinds: Vec<Type>,
    /// For each column of the table its place among those; none has no value for it.
    slots: Vec<Option<usize>>,
}

/// Rows as bytes.
#[derive(Default)]
struct Encoded {
    /// How many were read.
    count: u64,
    /// Whether they are told by their lines in the file; else by their numbers in the batch.
    has_lines: bool,
    /// Key and value of each, one behind the other.
    bytes: Vec<u8>,
    rows: Vec<EncodedRow>,
    /// The lines of rows that cannot be written so, and why.
    refused: Vec<(u64, String)>,
}

struct EncodedRow {
    line: u64,
    /// Where the key ends, and where the value does.
    key_end: usize,
    end: usize,
}

impl Encoder {
    fn new(format: Arc<RowFormat>, file: &FileSource) -> Encoder {
        let columns = format.schema().columns().iter();
        let places =
            columns.map(|column| file.columns().iter().position(|it| it.name == column.name));
        let (mut wanted, mut slots) = (Vec::new(), Vec::new());
        for place in places {
            slots.push(place.map(|_| wanted.len()));
            wanted.extend(place);
        }
        let kinds = wanted.iter().map(|place| file.columns()[*place].kind.clone()).collect();
        Encoder { format, wanted, kinds, slots }
    }

    /// Writes the rows of a batch. Keys of numbered rows end in a zero.
    fn encode(&self, batch: &Batch) -> Encoded {
        let has_lines = batch.ids.is_some();
        let mut encoded = Encoded { count: batch.len as u64, has_lines, ..Encoded::default() };
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for row in 0..batch.len {
            let line = match &batch.ids {
                Some(ids) => u64::from_le_bytes(ids.get(row).try_into().expect("a line")),
                None => row as u64 + 1,
            };
            let cell = |column: usize| match self.slots[column] {
                Some(slot) => batch.columns[slot].cell(row, &self.kinds[slot]),
                None => sapwood::schema::Cell::Null,
            };
            if let Err(error) = self.format.encode_cells(&cell, Some(0), &mut key, &mut value) {
                encoded.refused.push((line, error.to_string()));
                continue;
            }
            encoded.bytes.extend_from_slice(&key);
            let key_end = encoded.bytes.len();
            encoded.bytes.extend_from_slice(&value);
            encoded.rows.push(EncodedRow { line, key_end, end: encoded.bytes.len() });
        }
        encoded
    }
}

struct Loader<'a> {
    input: &'a Input,
    keyless: Keyless,
    target: Target<'a>,
    engine: Engine,
    format: Arc<RowFormat>,
    keys: KeyColumns,
    held: Held,
    directory: Option<&'a Path>,
    /// That of the next row. It passes those that are taken, so that each is met once.
    next_number: u64,
    /// Of the file.
    rows_read: u64,
    counts: Counts,
    /// Rows that are not as they should be: their lines, of which kind they are, and why.
    complaints: Vec<(u64, &'static str, String)>,
    // Kept from row to row for their memory.
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Loader<'_> {
    /// Puts all rows in their order, while other threads read those behind them, and write them as bytes.
    fn take_all(&mut self, file: &FileSource, ui: &Ui) -> Outcome {
        let encoder = Encoder::new(Arc::clone(&self.format), file);
        let request =
            Request { columns: encoder.wanted.clone(), with_ids: true, ..Request::default() };
        let scan = file.scan(&request).map_err(Failure::Failed)?;
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = threads.min(scan.threads_max()).max(1);
        thread::scope(|scope| {
            let (scan, encoder) = (&*scan, &encoder);
            let mut reading = Vec::new();
            let streams = (0..threads).map(|_| {
                let (send, batches) = mpsc::sync_channel::<(u64, Encoded)>(WAITING_MAX);
                reading.push(scope.spawn(move || {
                    scan.work(&mut |number, batch| {
                        match send.send((number, encoder.encode(batch))) {
                            Ok(()) => ControlFlow::Continue(()),
                            // Putting has failed.
                            Err(_) => ControlFlow::Break(()),
                        }
                    })
                }));
                batches.into_iter()
            });
            let streams: Vec<_> = streams.collect();
            let mut outcome = Ok(());
            for batch in InOrder::of(streams) {
                outcome = self.take(&batch);
                if outcome.is_err() || ui.interrupt.asked() {
                    break;
                }
            }
            let reads = reading.into_iter().map(|it| it.join().expect("reading does not panic"));
            // All are waited for.
            let reads: Vec<_> = reads.collect();
            let read = reads.into_iter().collect::<Result<(), _>>();
            outcome.and(read.map_err(Failure::Failed))
        })
    }

    fn take(&mut self, batch: &Encoded) -> Outcome {
        let before = if batch.has_lines { 0 } else { self.rows_read };
        self.rows_read += batch.count;
        let mut refused = batch.refused.iter().map(|(line, what)| (line + before, what)).peekable();
        let mut begin = 0;
        for &EncodedRow { line, key_end, end } in &batch.rows {
            let line = line + before;
            while let Some((before, what)) = refused.next_if(|(before, _)| *before < line) {
                self.refuse(before, what.clone());
            }
            self.key.clear();
            self.key.extend_from_slice(&batch.bytes[begin..key_end]);
            self.value.clear();
            self.value.extend_from_slice(&batch.bytes[key_end..end]);
            begin = end;
            self.put(line)?;
        }
        for (line, what) in refused {
            self.refuse(line, what.clone());
        }
        Ok(())
    }

    /// Puts the row that was encoded.
    fn put(&mut self, line: u64) -> Outcome {
        let duplicates = self.input.duplicates;
        let next = &mut self.next_number;
        let put = match &mut self.target {
            Target::Table(rows) if self.format.schema().is_numbered() => {
                let put = rows_table::put_numbered(rows, &mut self.key, &self.value, next);
                *next += 1;
                put
            }
            Target::Table(rows) => rows_table::put(rows, &self.key, &self.value, duplicates),
            Target::Load(load) => {
                self.key.clear();
                next.encode_to(&mut self.key);
                *next += 1;
                load.push(&self.key, &self.value).map(|()| Put::New)
            }
        };
        match put {
            Ok(Put::New) => self.counts.rows += 1,
            Ok(Put::Again) => {
                self.counts.rows += 1;
                self.counts.duplicates += 1;
                self.repeated(line, duplicates);
            }
            Err(error) => match rows_table::too_long(&error, &self.key, &self.value) {
                Some(what) => self.refuse(line, what),
                None => return Err(self.stopped(line, &error)),
            },
        }
        Ok(())
    }

    fn repeated(&mut self, line: u64, duplicates: Duplicates) {
        let outcome = match duplicates {
            Duplicates::First => "this row is left out",
            Duplicates::Last => "this row takes the place of the earlier one",
            Duplicates::All => return,
        };
        if self.complaints.len() as u64 >= self.input.show_errors {
            return;
        }
        let values = shown_list(&self.keys.decode(&self.key).unwrap_or_default());
        let before = match self.held {
            Held::Nothing => "came before",
            Held::Rows => "is in the table or came before",
        };
        self.complaints.push((line, "repeated", format!("key {values} {before}; {outcome}")));
    }

    fn refuse(&mut self, line: u64, what: String) {
        self.counts.rows += 1;
        self.counts.malformed += 1;
        if (self.complaints.len() as u64) < self.input.show_errors {
            self.complaints.push((line, "malformed", what));
        }
    }

    fn stopped(&self, line: u64, error: &sapwood::Error) -> Failure {
        let options: &[&str] = match self.directory {
            None if self.engine == Engine::Hash => &["--memory-budget", "--dir"],
            _ => &["--memory-budget"],
        };
        let why = out_of_memory(error, options).unwrap_or_else(|| words(error));
        let left = match self.directory {
            Some(directory) => nothing_kept(directory),
            None => match self.counts.rows {
                1 => "1 row is".to_owned(),
                rows => format!("{} rows are", count(rows)),
            },
        };
        Failure::Failed(format!("line {line} cannot be loaded, {left}: {why}"))
    }

    /// Says which rows are not in the table, in the order of the file, and how many.
    fn finish(&mut self, file: &FileSource, is_whole: bool) -> Counts {
        let (left_out, first) = file.left_out();
        self.counts.rows += left_out;
        self.counts.malformed += left_out;
        let refused = first.into_iter().map(|(line, what)| (line, "malformed", what));
        self.complaints.extend(refused);
        self.complaints.sort_by_key(|(line, ..)| *line);
        let shown = usize::try_from(self.input.show_errors).unwrap_or(usize::MAX);
        for (line, kind, what) in self.complaints.iter().take(shown) {
            stderr::line(format_args!("line {line}: {kind}: {what}"));
        }
        if is_whole {
            let mut ways = vec!["more columns in --key"];
            if self.keyless == Keyless::Numbered {
                ways.push("no --key");
            }
            if self.engine != Engine::Hash {
                ways.push("--duplicates all");
            }
            self.counts.warn(self.input.duplicates, self.held, &ways);
        }
        self.counts.clone()
    }
}

/// The batches of several streams in the order of their numbers, which ascend in each.
struct InOrder<S: Iterator<Item = (u64, Encoded)>> {
    streams: Vec<Peekable<S>>,
}

impl<S: Iterator<Item = (u64, Encoded)>> InOrder<S> {
    fn of(streams: Vec<S>) -> Self {
        InOrder { streams: streams.into_iter().map(Iterator::peekable).collect() }
    }
}

impl<S: Iterator<Item = (u64, Encoded)>> Iterator for InOrder<S> {
    type Item = Encoded;

    fn next(&mut self) -> Option<Encoded> {
        let heads = self.streams.iter_mut().enumerate();
        let heads = heads.filter_map(|(at, stream)| Some((stream.peek()?.0, at)));
        let (_, least) = heads.min()?;
        self.streams[least].next().map(|(_, batch)| batch)
    }
}

/// The words of an error that more memory would help, with the options that give it.
fn out_of_memory(error: &sapwood::Error, options: &[&str]) -> Option<String> {
    let options = options.join(", ");
    match (error.ordered_engine(), error.hash_engine()) {
        (Some(cause @ OrderedEngineError::OutOfMemory { .. }), _) => {
            Some(format!("{cause} ({options})"))
        }
        (_, Some(cause @ HashEngineError::OutOfMemory { .. })) => {
            Some(format!("{cause} ({options})"))
        }
        _ => None,
    }
}

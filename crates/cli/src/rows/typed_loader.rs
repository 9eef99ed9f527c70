//! A file into a table of typed columns: every row is there, or named and counted.
//!
//! Types are those of all values: the file is read once for them, and again for its rows, which threads read and write
//! as bytes. Where the table is there already, its columns have the types.
//!
//! ```text
//! new ordered table of a directory, without a memory budget
//!   rows are named by numbers   threads ── batches, in the order of the file ──> checkpoint
//!   rows have keys              threads ── batches, each in the order of its keys ──> memory, merged ──> checkpoint
//! other tables                  threads ── batches, in the order of the file ──> puts
//! ```

mod complaints;
mod encoder;
mod runs;

use std::iter::Peekable;
use std::mem;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use sapwood::files::{FileSource, Malformed, ReadOptions, no_column};
use sapwood::key::KeyEncode;
use sapwood::schema::{RowFormat, Schema, SourceColumn, Type};
use sapwood::{AnyTable, BulkLoad, Db, Engine, HashEngineError, OrderedEngineError, Transaction};

use crate::args::key_spec::ColumnType;
use crate::args::rows::{CompactAt, Duplicates, EngineName, Input};
use crate::rows::counts::Counts;
use crate::rows::kept::{Filling, Held};
use crate::rows::key_columns::KeyColumns;
use crate::rows::rows_table::{self, NewTable, Put, Rows};
use crate::rows::source;
use crate::terminal::exit::{Failure, Outcome, words};
use crate::terminal::format::{count, plural, quoted, shown, shown_list, time};
use crate::terminal::interrupt::Promise;
use crate::terminal::ui::Ui;

use self::complaints::{Complaints, Kind};
use self::encoder::{Encoded, EncodedRow, Encoder, Order, Place};
use self::runs::{Merge, Merged, Row, Run, Runs};

/// Batches of rows of each thread that wait to be put.
const WAITING_MAX: usize = 4;

/// Rows that are merged before the user is asked whether to go on.
const STEP_ROWS: u64 = 4_096;

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
    pub(crate) table: Option<AnyTable>,
    pub(crate) schema: Schema,
    pub(crate) keys: KeyColumns,
    pub(crate) counts: Counts,
}

/// Says which columns of a file are to be loaded, by the names that it has, before all of it is
/// read: none for all.
pub(crate) type Asked<'a> = dyn Fn(&FileSource) -> Outcome<Option<Vec<String>>> + 'a;

/// All columns.
pub(crate) fn all(_: &FileSource) -> Outcome<Option<Vec<String>>> {
    Ok(None)
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
    asked: &Asked<'_>,
    ui: &Ui,
) -> Outcome<TypedLoaded> {
    let directory = keep.as_ref().map(|keep| keep.directory);
    load_into(input, keyless, keep, asked, ui).map_err(|failure| match (failure, directory) {
        (Failure::Interrupted(done), Some(directory)) => {
            Failure::Interrupted(format!("{done}; {}", nothing_kept(directory)))
        }
        (failure, _) => failure,
    })
}

/// Opens the file, infers its types, and lets threads write its rows as bytes, which go into the table.
fn load_into(
    input: &Input,
    keyless: Keyless,
    mut keep: Option<&mut Keep<'_>>,
    asked: &Asked<'_>,
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
    let file = source::open(&input.file, &options, ui)?;
    check_key(input, &file)?;
    let asked = asked(&file)?;
    let there = match &mut keep {
        Some(keep) => kept_table(input, engine, keep, &file, ui)?,
        None => None,
    };
    let table = there.as_ref().map(|(table, _)| table);
    let Inferred { file, schema, widenings } =
        infer(input, &options, file, table, asked.as_deref())?;
    for notice in file.notices() {
        ui.notice(format_args!("{}: {notice}", input.file.display()));
    }
    let db = match &keep {
        Some(keep) => keep.filling.as_ref().expect("it was begun").db().clone(),
        None => Db::in_memory(),
    };
    let (target, held) = target(input, engine, keep.as_deref(), &schema, there, &db)?;
    let directory = keep.as_ref().map(|keep| keep.directory);
    let mut loader = Loader::new(input, keyless, target, engine, &schema, held, directory);
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
    let table = match counts.strictly(input) {
        Ok(()) => Some(settle(target, widenings, &db, keep, ui)?),
        // What a strict load refuses is not there at all, but for rows of a table without transactions.
        Err(_) => target.into_table(),
    };
    Ok(TypedLoaded { db: db.clone(), table, schema, keys, counts })
}

/// The table of a directory that rows go into, if there is one whose columns they can have.
fn kept_table(
    input: &Input,
    engine: EngineName,
    keep: &mut Keep<'_>,
    file: &FileSource,
    ui: &Ui,
) -> Outcome<Option<(AnyTable, Held)>> {
    keep.promise = Some(ui.interrupt.promise());
    let filling = keep.filling.insert(Filling::begin(keep.directory, &input.table)?);
    match filling.table()? {
        Some((table, Held::Nothing)) => {
            let kept = keep_empty(input, engine, table, filling, file, ui)?;
            Ok(kept.map(|table| (table, Held::Nothing)))
        }
        there => Ok(there),
    }
}

/// A file as its rows are read, and the table that they make.
struct Inferred {
    file: FileSource,
    schema: Schema,
    /// Columns of a table that is there which become wider.
    widenings: Vec<Widening>,
}

/// Finds the types of the columns: those of a table that is there, or those of all rows.
fn infer(
    input: &Input,
    options: &ReadOptions,
    file: FileSource,
    there: Option<&AnyTable>,
    asked: Option<&[String]>,
) -> Outcome<Inferred> {
    let Some(table) = there else {
        let file = file.reopen_for(asked)?;
        let schema = schema_of(input, &file, asked)?;
        return Ok(Inferred { file, schema, widenings: Vec::new() });
    };
    let before = table.schema().expect("it was asked for");
    // Fields of JSON may come late, and larger numbers anywhere.
    let is_known = before
        .columns()
        .iter()
        .all(|column| has(&file, &column.name) && !matches!(column.kind, Type::Int(16 | 32)));
    let file = if is_known { file } else { file.reopen()? };
    fits(input, before, &file)?;
    let (schema, widenings) = widened(input, before, &file)?;
    let file = file.again(&options_of_table(options, &schema, &file))?;
    Ok(Inferred { file, schema, widenings })
}

/// The table that rows go into: one that is there, or a new one.
fn target<'a>(
    input: &Input,
    engine: EngineName,
    keep: Option<&Keep<'_>>,
    schema: &Schema,
    there: Option<(AnyTable, Held)>,
    db: &'a Db,
) -> Outcome<(Target<'a>, Held)> {
    let new = NewTable {
        kind: input.kind,
        memory_budget: input.memory_budget,
        compact_at: keep.and_then(|keep| keep.compact_at),
        schema: Some(schema),
        ..NewTable::of(engine)
    };
    Ok(match there {
        Some((table, held)) => (Target::of(table, db)?, held),
        None if keep.is_some() && new.is_bulk() => {
            (Target::Load(new.load(db, &input.table)?), Held::Nothing)
        }
        None => (Target::of(new.make(db, &input.table)?, db)?, Held::Nothing),
    })
}

/// Lets the rows last.
fn settle(
    target: Target<'_>,
    widenings: Vec<Widening>,
    db: &Db,
    keep: Option<&mut Keep<'_>>,
    ui: &Ui,
) -> Outcome<AnyTable> {
    match target {
        Target::Table(Rows { table, transaction }) => {
            // Not before: a load that fails leaves the table as it was.
            widen(db, &table, widenings, ui)?;
            transaction.map(Transaction::commit).transpose()?;
            Ok(table)
        }
        Target::Load(load) => {
            let table = load.finish()?;
            let filling = keep.and_then(|keep| keep.filling.as_mut()).expect("it is kept");
            filling.note_lasting();
            Ok(table.into())
        }
    }
}

/// What rows go into.
enum Target<'a> {
    Table(Rows<'a>),
    Load(BulkLoad),
}

impl<'a> Target<'a> {
    fn of(table: AnyTable, db: &'a Db) -> Outcome<Target<'a>> {
        let transaction = table.as_tree().map(|_| db.begin()).transpose()?;
        Ok(Target::Table(Rows { table, transaction }))
    }

    /// The table, if it is there before its rows last.
    fn into_table(self) -> Option<AnyTable> {
        match self {
            Target::Table(rows) => Some(rows.table),
            Target::Load(_) => None,
        }
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
fn options_of(input: &Input) -> ReadOptions {
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
    ReadOptions {
        types,
        na: input.text.na.clone(),
        key: key.map(|(name, _)| name.clone()).collect(),
        malformed: Malformed::Skip,
        notes_max: usize::try_from(input.show_errors).unwrap_or(usize::MAX),
        format: input.format.map(Into::into),
        delimiter: input.text.delimiter,
        ..ReadOptions::default()
    }
}

/// As [`options_of`], with the types that the columns of a table have.
fn options_of_table(options: &ReadOptions, schema: &Schema, file: &FileSource) -> ReadOptions {
    let columns = schema.columns();
    let there = columns.iter().filter(|column| has(file, &column.name));
    ReadOptions {
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
        let names = columns.iter().map(|column| &column.name);
        return Err(Failure::Failed(no_column(name, "the file", names)));
    }
    Ok(())
}

/// A table without rows, if rows of the file can go into it; else it makes room for one that they can: a load that
/// was killed may have left it.
fn keep_empty(
    input: &Input,
    engine: EngineName,
    table: AnyTable,
    filling: &Filling,
    file: &FileSource,
    ui: &Ui,
) -> Outcome<Option<AnyTable>> {
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
    filling.db().drop_table(&input.table)?;
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

/// A column whose type becomes wider, and both types.
struct Widening {
    column: String,
    kind: Type,
    wider: Type,
}

/// The schema of a table whose columns of whole numbers are wide enough for those of the file, and which are to become so.
fn widened(input: &Input, before: &Schema, file: &FileSource) -> Outcome<(Schema, Vec<Widening>)> {
    let is_said = |name: &str| input.text.said().iter().any(|(column, _)| column == name);
    let (mut schema, mut widenings) = (before.clone(), Vec::new());
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
        let next = schema.with_wider(&column.name, wider.clone());
        let table = quoted(&input.table);
        schema = next.map_err(|error| Failure::Failed(format!("table {table}: {error}")))?;
        widenings.push(Widening { column: column.name.clone(), kind: kind.clone(), wider });
    }
    Ok((schema, widenings))
}

/// Widens columns of a table.
fn widen(db: &Db, table: &AnyTable, widenings: Vec<Widening>, ui: &Ui) -> Outcome {
    for Widening { column, kind, wider } in widenings {
        db.widen_column(table.name(), &column, wider.clone())?;
        ui.notice(format_args!(
            "column {} of the table was {kind}, and is {wider} from now on",
            quoted(&column)
        ));
    }
    Ok(())
}

/// The schema of a new table: columns of the key always have values, and keep their type.
fn schema_of(input: &Input, file: &FileSource, asked: Option<&[String]>) -> Outcome<Schema> {
    let key: Vec<&String> =
        input.key.iter().flat_map(|key| &key.columns).map(|(name, _)| name).collect();
    let columns = file.columns().iter().zip(file.stored_kinds());
    let columns = columns.filter(|(column, _)| {
        key.contains(&&column.name) || asked.is_none_or(|asked| asked.contains(&column.name))
    });
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
    complaints: Complaints,
    /// Batches that wait until all are read.
    runs: Runs,
    /// The row of `key` and `value`, which is passed on unless a later one takes its place.
    waiting: Option<Place>,
    // Kept from row to row for their memory.
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> Loader<'a> {
    fn new(
        input: &'a Input,
        keyless: Keyless,
        target: Target<'a>,
        engine: EngineName,
        schema: &Schema,
        held: Held,
        directory: Option<&'a Path>,
    ) -> Loader<'a> {
        let format = Arc::new(RowFormat::new(schema.clone()));
        Loader {
            input,
            keyless,
            next_number: FIRST_NUMBER + target.len() as u64,
            target,
            engine: engine.engine(),
            keys: KeyColumns::of_schema(&format),
            format,
            held,
            directory,
            rows_read: 0,
            counts: Counts::default(),
            complaints: Complaints::of(input),
            runs: Runs::default(),
            waiting: None,
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Takes all rows, while other threads read those behind them, and write them as bytes.
    fn take_all(&mut self, file: &FileSource, ui: &Ui) -> Outcome {
        let order = match self.target {
            Target::Table(_) => Order::OfFile,
            Target::Load(_) => Order::OfKeys,
        };
        let encoder = Encoder::new(Arc::clone(&self.format), file, order);
        let scan = file.scan(&encoder.wanted, true)?;
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
                outcome = self.take(batch, ui);
                if outcome.is_err() || ui.interrupt.asked() {
                    break;
                }
            }
            let reads = reading.into_iter().map(|it| it.join().expect("reading does not panic"));
            // All are waited for.
            let reads: Vec<_> = reads.collect();
            let read = reads.into_iter().collect::<Result<(), _>>();
            outcome.and(read.map_err(Failure::Failed))
        })?;
        drop(scan);
        let runs = self.runs.take();
        if runs.is_empty() || ui.interrupt.asked() {
            return Ok(());
        }
        let bar =
            ui.progress("writing rows", runs.iter().map(|run| run.batch.rows.len() as u64).sum());
        let merged = self.merge(runs, None, &mut || {
            bar.inc(STEP_ROWS);
            !ui.interrupt.asked()
        });
        bar.finish_and_clear();
        merged
    }

    fn take(&mut self, mut batch: Encoded, ui: &Ui) -> Outcome {
        let (rows_before, first_number) = (self.rows_read, self.next_number);
        self.rows_read += batch.count;
        if let Target::Table(_) = self.target {
            return self.put_all(&batch, rows_before);
        }
        self.next_number += batch.numbers;
        for (place, what) in mem::take(&mut batch.refused) {
            self.refuse(batch.place(place, rows_before), what);
        }
        self.counts.rows += batch.rows.len() as u64;
        let run = Run { batch, rows_before, first_number };
        match self.is_in_order() {
            true => self.merge(vec![run], None, &mut || true),
            false => {
                self.runs.push(run.tight());
                match !self.format.schema().is_numbered() && self.runs.are_due() {
                    true => self.leave_out_repeated(ui),
                    false => Ok(()),
                }
            }
        }
    }

    /// Merges the runs that wait, so that rows are gone in whose place others are.
    fn leave_out_repeated(&mut self, ui: &Ui) -> Outcome {
        let (runs, mut merged) = (self.runs.take(), Merged::default());
        self.merge(runs, Some(&mut merged), &mut || !ui.interrupt.asked())?;
        self.runs.put_back(merged);
        Ok(())
    }

    /// Whether the keys of rows are their numbers, which ascend.
    fn is_in_order(&self) -> bool {
        let schema = self.format.schema();
        schema.is_numbered() && schema.key_columns().is_empty()
    }

    /// Loads the rows of runs in the order of their keys, or takes them into `merged`, as long as `goes_on` says so.
    fn merge(
        &mut self,
        runs: Vec<Run>,
        mut merged: Option<&mut Merged>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Outcome {
        let mut merge = Merge::of(runs, encoder::number_bytes(&self.format));
        let mut rows = 0;
        while let Some(row) = merge.first() {
            self.take_next(&row, merged.as_deref_mut())?;
            merge.pass();
            rows += 1;
            if rows % STEP_ROWS == 0 && !goes_on() {
                return Ok(());
            }
        }
        self.pass_on_waiting(merged)
    }

    /// Takes the next row in the order of keys; rows of a key come in the order of the file.
    fn take_next(&mut self, row: &Row<'_>, merged: Option<&mut Merged>) -> Outcome {
        let Row { place, key, number, value } = *row;
        let duplicates = self.input.duplicates;
        // Rows without a key are named by their numbers.
        let is_again = self.waiting.is_some()
            && !key.is_empty()
            && self.key[..self.key.len() - encoder::number_bytes(&self.format)] == *key;
        if is_again {
            self.counts.duplicates += 1;
            self.repeated(place, duplicates);
        }
        match duplicates {
            Duplicates::First if is_again => return Ok(()),
            Duplicates::Last if is_again => {}
            _ => self.pass_on_waiting(merged)?,
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        number.iter().for_each(|number| number.encode_to(&mut self.key));
        self.value.clear();
        self.value.extend_from_slice(value);
        self.waiting = Some(place);
        Ok(())
    }

    /// Loads the row that waits, if one does, or takes it into `merged`.
    fn pass_on_waiting(&mut self, merged: Option<&mut Merged>) -> Outcome {
        let Some(place) = self.waiting.take() else { return Ok(()) };
        if let Some(merged) = merged {
            merged.push(place, &self.key, &self.value);
            return Ok(());
        }
        let Target::Load(load) = &mut self.target else {
            unreachable!("rows that are put do not wait")
        };
        load.push(&self.key, &self.value).map_err(|error| self.stopped(place.line, &error))
    }

    /// Puts the rows of a batch.
    fn put_all(&mut self, batch: &Encoded, rows_before: u64) -> Outcome {
        let mut refused = batch.refused.iter().peekable();
        for (row, &EncodedRow { place, key_end, end }) in batch.rows.iter().enumerate() {
            while let Some((before, what)) = refused.next_if(|(before, _)| *before < place) {
                self.refuse(batch.place(*before, rows_before), what.clone());
            }
            self.key.clear();
            self.key.extend_from_slice(&batch.bytes[batch.begin(row)..key_end]);
            self.value.clear();
            self.value.extend_from_slice(&batch.bytes[key_end..end]);
            self.put(batch.place(place, rows_before))?;
        }
        for (place, what) in refused {
            self.refuse(batch.place(*place, rows_before), what.clone());
        }
        Ok(())
    }

    /// Puts the row that was encoded.
    fn put(&mut self, place: Place) -> Outcome {
        let Target::Table(rows) = &self.target else {
            unreachable!("rows that are loaded go by keys")
        };
        let duplicates = self.input.duplicates;
        let put = match self.format.schema().is_numbered() {
            true => {
                let next = &mut self.next_number;
                let put = rows_table::put_numbered(rows, &mut self.key, &self.value, next);
                *next += 1;
                put
            }
            false => rows_table::put(rows, &self.key, &self.value, duplicates),
        };
        match put {
            Ok(Put::New) => self.counts.rows += 1,
            Ok(Put::Again) => {
                self.counts.rows += 1;
                self.counts.duplicates += 1;
                self.repeated(place, duplicates);
            }
            Err(error) => match rows_table::too_long(&error, &self.key, &self.value) {
                Some(what) => self.refuse(place, what),
                None => return Err(self.stopped(place.line, &error)),
            },
        }
        Ok(())
    }

    /// Complains of a row whose key, which is `key`, an earlier one has.
    fn repeated(&mut self, place: Place, duplicates: Duplicates) {
        let outcome = match duplicates {
            Duplicates::First => "this row is left out",
            Duplicates::Last => "this row takes the place of the earlier one",
            Duplicates::All => return,
        };
        let before = match self.held {
            Held::Nothing => "came before",
            Held::Rows => "is in the table or came before",
        };
        let (keys, key) = (&self.keys, &self.key);
        self.complaints.note(place, Kind::Repeated, || {
            let values = shown_list(&keys.decode(key).unwrap_or_default());
            format!("key {values} {before}; {outcome}")
        });
    }

    fn refuse(&mut self, place: Place, what: String) {
        self.counts.rows += 1;
        self.counts.malformed += 1;
        self.complaints.note(place, Kind::Malformed, || what);
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
        for (line, what) in first {
            // Behind the rows of its line.
            self.complaints.note(Place { line, row: u64::MAX }, Kind::Malformed, || what);
        }
        self.complaints.say();
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

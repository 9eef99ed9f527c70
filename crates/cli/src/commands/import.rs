//! `sapwood import`: a file of rows into a table of a directory, as `sapwood export` writes it.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use sapwood::aggregate::Layout;
use sapwood::{Db, DbOptions, Error, Table};
use serde_json::json;

use crate::args::{EngineName, FileFormat, Import};
use crate::rows::exchange::cell::Cell;
use crate::rows::exchange::file_format;
use crate::rows::exchange::form::Form;
use crate::rows::exchange::reader::{RowFile, bad_row};
use crate::rows::kept::{self, Description};
use crate::rows::key_columns::KeyColumns;
use crate::rows::reader::Columns;
use crate::rows::rows_table;
use crate::terminal::exit::{COLUMNS_TABLE, Failure, Outcome, words};
use crate::terminal::format::{count, quoted, rate, time};
use crate::terminal::ui::{Answers, Ui};

/// Entries that are put at once, and about the bytes at which they are put before.
const BATCH_ENTRIES: usize = 4096;
const BATCH_BYTES: usize = 4 << 20;

pub(crate) fn run(args: &Import, ui: &Ui) -> Outcome {
    if args.table == COLUMNS_TABLE {
        return Err(Failure::Usage(format!(
            "table `{COLUMNS_TABLE}` describes the others; choose another name"
        )));
    }
    let started = Instant::now();
    let format = format_of(args)?;
    let file = RowFile::open(&args.file, format, ui)?;
    // The database is closed before the command ends, so that what is in lasts.
    let _promise = ui.interrupt.promise();
    let (db, known) = match kept::is_database(&args.directory) {
        true => {
            let db = open(&args.directory)?;
            let known = Known::of(&db, &args.table)?;
            (Some(db), known)
        }
        // No directory is made for a file that cannot be read.
        false => (None, Known::default()),
    };
    let plan = Plan::new(args, &file, &known)?;
    let db = match db {
        Some(db) => db,
        None => open(&args.directory)?,
    };
    let mut putter = Putter::new(plan.open_table(args, &db, &known)?, args, file.unit());
    let form = &plan.form;
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut read = file.read(form, ui, &mut |number, cells: &[Cell<'_>]| {
        form.join(cells, &mut key, &mut value).map_err(Failure::Usage)?;
        putter.put(number, &key, &value)
    });
    // What came before a row that is refused goes in all the same.
    if let Err(failure) = putter.put_batch() {
        read = read.and(Err(failure));
    }
    let Putter { table, entries, .. } = putter;
    drop(table);
    db.close()?;
    let entries_in = match entries {
        1 => "1 entry is".to_owned(),
        many => format!("{} entries are", count(many)),
    };
    let so_far = format!("{entries_in} put into table {}, and will last", quoted(&args.table));
    match read {
        Ok(()) if ui.interrupt.asked() => Err(Failure::Interrupted(so_far)),
        Ok(()) => tell(args, format, form, entries, started, ui),
        Err(Failure::Failed(why)) => Err(Failure::Failed(format!("{why}; {so_far}"))),
        Err(other) => Err(other),
    }
}

fn open(directory: &Path) -> Outcome<Db> {
    Ok(Db::open_with(directory, DbOptions::default().without_log())?)
}

fn format_of(args: &Import) -> Outcome<FileFormat> {
    match (args.file.as_path() == Path::new("-"), args.format) {
        (true, Some(format)) => Ok(format),
        (true, None) => Err(Failure::Usage(
            "standard input has no name to tell its format: add --format csv or --format jsonl"
                .to_owned(),
        )),
        (false, said) => Ok(file_format::of_name(&args.file, said)?.0),
    }
}

/// What is known of the table before the import.
#[derive(Default)]
struct Known {
    table: Option<Table>,
    description: Option<Description>,
    has_rows: bool,
}

impl Known {
    fn of(db: &Db, name: &str) -> Outcome<Self> {
        let table = match db.engine(name) {
            Some(_) => Some(db.table(name)?),
            None => None,
        };
        let has_rows = match &table {
            Some(table) => !table.is_empty()?,
            None => false,
        };
        let description = match table {
            Some(_) => Description::read(db, name)?,
            None => None,
        };
        Ok(Self { table, description, has_rows })
    }

    fn layout(&self) -> Option<&Layout> {
        self.table.as_ref().and_then(Table::fields)
    }
}

/// How the file goes into the table.
struct Plan {
    form: Form,
    engine: EngineName,
    description: Option<Description>,
    layout: Option<Layout>,
}

impl Plan {
    fn new(args: &Import, file: &RowFile, known: &Known) -> Outcome<Self> {
        let said_layout: Option<Layout> = match &args.layout {
            Some(text) => {
                Some(text.parse().map_err(|error| Failure::Usage(format!("--layout: {error}")))?)
            }
            None => None,
        };
        let origin = file.origin.as_ref();
        let engine = args.engine.or(origin.map(|origin| origin.engine));
        let mut plan = Plan {
            form: Form::entries(),
            engine: engine.unwrap_or(EngineName::Ordered),
            description: None,
            layout: said_layout,
        };
        match origin {
            _ if args.raw => {}
            Some(origin) if args.key.is_none() && args.layout.is_none() => {
                plan.form = origin.form().ok_or_else(|| {
                    Failure::Failed(format!(
                        "{}: what it says of its table does not fit itself; say --raw, --key or \
                         --layout",
                        args.file.display()
                    ))
                })?;
                plan.description = origin.description.clone();
                plan.layout = origin.layout.clone();
            }
            _ => plan.choose_form(args, file, known)?,
        }
        file.expect_columns(&plan.form)?;
        plan.expect_to_fit(args, known)?;
        Ok(plan)
    }

    /// The form of a file that does not say it.
    fn choose_form(&mut self, args: &Import, file: &RowFile, known: &Known) -> Outcome {
        if let Some(key) = &args.key {
            if let Some((name, _)) = key.columns.iter().find(|(_, kind)| kind.is_none()) {
                return Err(Failure::Usage(format!(
                    "--key: say the type of column {}: {name}:str, {name}:int or {name}:float",
                    quoted(name)
                )));
            }
            let columns = match file.has_lines() && !args.cells {
                true => Columns::Json,
                false => Columns::Csv(file.names().to_vec()),
            };
            let keys = KeyColumns::resolve(key, &columns, &[])?.settled();
            self.describe(Description { columns, keys });
            return Ok(());
        }
        if let Some(layout) = &self.layout {
            self.form = fields(layout)?;
            return Ok(());
        }
        match (&known.description, known.layout()) {
            (Some(description), _) if file.has_entries() => match &description.columns {
                Columns::Csv(names) if names.len() == 2 => {
                    let has = |name: &String| file.names().contains(name);
                    if names.iter().all(has) {
                        return Err(Failure::Usage(format!(
                            "{}: its columns are called as those of bytes are: say --raw if they are \
                             bytes, or --key {}",
                            args.file.display(),
                            description.keys.to_spec()
                        )));
                    }
                }
                _ => {}
            },
            (Some(description), _) => self.describe(description.clone()),
            (None, _) if file.has_entries() || file.is_empty() => {}
            (None, Some(layout)) => self.form = fields(layout)?,
            (None, None) => {
                let names: Vec<String> =
                    file.names().iter().take(40).map(|name| quoted(name)).collect();
                return Err(Failure::Usage(format!(
                    "{} has the columns {}: say with --key which of them make the key (or with \
                     --layout where they lie in keys and values); columns key and value alone are \
                     taken as bytes",
                    args.file.display(),
                    names.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn describe(&mut self, description: Description) {
        self.form = match &description.columns {
            Columns::Csv(names) => Form::cells(names, description.keys.clone()),
            Columns::Json | Columns::Entries => Form::lines(description.keys.clone()),
        };
        self.description = Some(description);
    }

    /// Refuses rows that a table with other ones could not be read with.
    fn expect_to_fit(&self, args: &Import, known: &Known) -> Outcome {
        let other = |what: &str| {
            Err(Failure::Failed(format!(
                "table {} of {} {what}; import into another table",
                quoted(&args.table),
                args.directory.display()
            )))
        };
        if known.table.is_some() && self.layout.is_some() && self.layout.as_ref() != known.layout()
        {
            return other("declares other fields than the file has, or none");
        }
        match (&self.description, &known.description) {
            (Some(own), Some(there)) if own != there && known.has_rows => {
                other(&format!("was loaded with other columns, by --key {}", there.keys))
            }
            (Some(_), None) if known.has_rows => other("was not made of a file with columns"),
            (None, Some(_)) if !matches!(self.form, Form::Entries { .. }) => {
                other("has columns of a file that was loaded")
            }
            _ => Ok(()),
        }
    }

    /// The table, made if it is not there, and described before it has rows.
    fn open_table(&self, args: &Import, db: &Db, known: &Known) -> Outcome<Table> {
        let table = match &known.table {
            Some(table) => {
                let is_other = args.engine.is_some_and(|said| said.engine() != table.engine());
                if is_other {
                    return Err(Failure::Failed(format!(
                        "table {} is there already and is {}; leave --engine away, or import into \
                         another table",
                        quoted(&args.table),
                        table.engine()
                    )));
                }
                table.clone()
            }
            None => rows_table::create_with(db, &args.table, self.engine, self.layout.as_ref())?,
        };
        match &self.description {
            Some(own) if known.description.as_ref() != Some(own) => own.keep(db, &args.table)?,
            _ => {}
        }
        Ok(table)
    }
}

fn fields(layout: &Layout) -> Outcome<Form> {
    Form::fields(layout).ok_or_else(|| {
        Failure::Usage(
            "the fields leave bytes of keys and values out, so that none can be made of them: \
             import columns key and value, as bytes"
                .to_owned(),
        )
    })
}

/// Puts entries, many at once.
struct Putter {
    table: Table,
    /// Of the file, and of what its places count.
    name: String,
    unit: &'static str,
    batch: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where each entry of the batch stood in the file.
    places: Vec<u64>,
    bytes: usize,
    /// Those that are in.
    entries: u64,
}

impl Putter {
    fn new(table: Table, args: &Import, unit: &'static str) -> Self {
        Self {
            table,
            name: args.file.display().to_string(),
            unit,
            batch: Vec::with_capacity(BATCH_ENTRIES),
            places: Vec::with_capacity(BATCH_ENTRIES),
            bytes: 0,
            entries: 0,
        }
    }

    fn put(&mut self, place: u64, key: &[u8], value: &[u8]) -> Outcome {
        self.batch.push((key.to_vec(), value.to_vec()));
        self.places.push(place);
        self.bytes += key.len() + value.len();
        match self.batch.len() == BATCH_ENTRIES || self.bytes >= BATCH_BYTES {
            true => self.put_batch(),
            false => Ok(()),
        }
    }

    fn put_batch(&mut self) -> Outcome {
        let put = self.table.put_many(&self.batch);
        let failed = match put {
            Ok(()) => {
                self.entries += self.batch.len() as u64;
                Ok(())
            }
            Err(error) => Err(self.stopped(&error)),
        };
        self.batch.clear();
        self.places.clear();
        self.bytes = 0;
        failed
    }

    /// Puts what a batch that failed has before the entry that is at fault, and says which that is.
    fn stopped(&mut self, error: &Error) -> Failure {
        // A tree takes all of a batch or nothing; other tables take again what they have.
        for ((key, value), place) in self.batch.iter().zip(&self.places) {
            let Err(error) = self.table.put(key, value) else {
                self.entries += 1;
                continue;
            };
            let why = rows_table::too_long(&error, key, value).unwrap_or_else(|| words(&error));
            return bad_row(&self.name, self.unit, *place, &why);
        }
        Failure::Failed(words(error))
    }
}

fn tell(
    args: &Import,
    format: FileFormat,
    form: &Form,
    entries: u64,
    started: Instant,
    ui: &Ui,
) -> Outcome {
    let elapsed = started.elapsed();
    match ui.answers {
        Answers::Json => ui.print_json(&json!({
            "file": args.file.display().to_string(),
            "format": format.name(),
            "form": form.name(),
            "dir": args.directory.display().to_string(),
            "table": args.table,
            "rows": entries,
            "seconds": elapsed.as_secs_f64(),
        })),
        Answers::Text => ui.print(|out| {
            writeln!(out, "rows         {}", count(entries))?;
            writeln!(out, "as           {}", form.name())?;
            writeln!(out, "kept in      {}, table {}", args.directory.display(), args.table)?;
            writeln!(out, "time         {}, {}", time(elapsed), rate(entries, "rows", elapsed))
        }),
    }
}

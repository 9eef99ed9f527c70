//! How a file goes into a table: by what the file says, what the user says, and what is known of the
//! table, in this order.

use sapwood::aggregate::Layout;
use sapwood::{AnyTable, Db};

use crate::args::exchange::Import;
use crate::args::rows::EngineName;
use crate::rows::columns::Columns;
use crate::rows::exchange::form::Form;
use crate::rows::exchange::reader::RowFile;
use crate::rows::kept::Description;
use crate::rows::key_columns::KeyColumns;
use crate::rows::rows_table::NewTable;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::quoted;

/// What is known of the table before the import.
#[derive(Default)]
pub(super) struct Known {
    table: Option<AnyTable>,
    description: Option<Description>,
    has_rows: bool,
}

impl Known {
    pub(super) fn of(db: &Db, name: &str) -> Outcome<Self> {
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
        self.table.as_ref().and_then(AnyTable::fields)
    }
}

/// How the file goes into the table.
pub(super) struct Plan {
    pub(super) form: Form,
    engine: EngineName,
    description: Option<Description>,
    layout: Option<Layout>,
}

impl Plan {
    pub(super) fn new(args: &Import, file: &RowFile, known: &Known) -> Outcome<Self> {
        if !args.raw && known.table.as_ref().is_some_and(|table| table.schema().is_some()) {
            return Err(Failure::Failed(format!(
                "table {} has typed columns: `sapwood load {} --dir {} --table {}` puts rows into it",
                quoted(&args.table),
                args.file.display(),
                args.directory.display(),
                args.table
            )));
        }
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
            let columns = match file.has_lines() && !args.cells {
                true => Columns::Json,
                false => Columns::Csv(file.names().to_vec()),
            };
            let keys = KeyColumns::resolve(key, &columns)?;
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
            Columns::Json | Columns::Entries | Columns::Typed(_) => {
                Form::lines(description.keys.clone())
            }
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
    pub(super) fn open_table(&self, args: &Import, db: &Db, known: &Known) -> Outcome<AnyTable> {
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
            None => NewTable { fields: self.layout.as_ref(), ..NewTable::of(self.engine) }
                .make(db, &args.table)?,
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

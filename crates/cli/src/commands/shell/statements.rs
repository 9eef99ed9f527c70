//! Statements of SQL over the tables of the database in this process, and over files.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sapwood::aggregate::Cancel;
use sapwood::schema::{Precision, Schema, Type};
use sapwood::sql::{Options, Outcome as Done, Statement, parse};
use sapwood::{Db, Engine};

use crate::args::Form;
use crate::args::sql::Mode;
use crate::commands::sql;
use crate::rows::statements::{Access, Home, Named};
use crate::terminal::exit::{COLUMNS_TABLE, Failure, Outcome};
use crate::terminal::format::escaped;
use crate::terminal::stderr;
use crate::terminal::ui::Ui;
use sapwood::files::ReadOptions;
use sapwood::sql::Files;

use super::Shell;
use super::file_columns::{FileColumns, named_in};
use super::own::explained;
use super::vocabulary::KEYWORDS;

/// What the names of tables begin with that hold the keys of Redis commands.
const KEYSPACES: &str = "redis.";

/// Where statements find tables.
#[derive(Debug, Clone)]
pub(crate) struct Statements {
    /// None with a server.
    db: Option<Db>,
    directory: Option<PathBuf>,
    /// Of files, for completion.
    file_columns: FileColumns,
    /// Files that statements wrote, which later ones may replace.
    written: Arc<Files<'static>>,
}

impl Statements {
    /// Over a database, and the directory that it has; or beside a server, over files alone.
    pub(crate) fn over(db: Option<Db>, directory: Option<PathBuf>) -> Statements {
        let (file_columns, written) = (FileColumns::default(), Arc::default());
        Statements { db, directory, file_columns, written }
    }

    /// Executes a text of statements, each of which is shown before the next one.
    pub(crate) fn execute(
        &self,
        text: &str,
        cancel: &Cancel,
        ui: &Ui,
        mut show: impl FnMut(&Done) -> Outcome,
    ) -> Outcome {
        let statements = parse(text).map_err(|error| Failure::Usage(error.to_string()))?;
        let access = match statements.iter().any(Statement::changes_tables) {
            true => Access::Change,
            false => Access::Read,
        };
        let home = match &self.db {
            Some(db) => Home::Open(db.clone(), self.directory.clone()),
            None => Home::Server,
        };
        // Anew each time: files change between statements.
        let ui = ui.stopped_by(cancel.clone());
        let named = Named::new(home, access, ReadOptions::default(), &ui).behind(&self.written);
        let is_cancelled = || cancel.is_cancelled();
        let outcome = statements.iter().try_for_each(|statement| {
            let mut options = Options::default();
            options.cancel = Some(&is_cancelled);
            named.execute(statement, options).and_then(|done| show(&done))
        });
        let closed = named.close();
        outcome.and(closed)
    }

    /// The database, whose tables a server would keep to itself.
    pub(crate) fn db(&self) -> Outcome<&Db> {
        self.db.as_ref().ok_or_else(|| {
            Failure::Usage(
                "the tables are a server's: `SW.LIST` names them, `SW.INFO TABLE` describes one"
                    .to_owned(),
            )
        })
    }

    /// The names of tables; none with a server.
    pub(crate) fn tables(&self) -> Vec<String> {
        let mut names = self.db.as_ref().map_or_else(Vec::new, Db::table_names);
        names.retain(|name| name != COLUMNS_TABLE && !name.starts_with(KEYSPACES));
        names
    }

    /// The columns of a table.
    pub(crate) fn columns(&self, table: &str) -> Vec<String> {
        let schema = self.db.as_ref().map(|db| db.schema(table));
        match schema {
            Some(Ok(Some(schema))) => {
                schema.columns().iter().map(|column| column.name.clone()).collect()
            }
            Some(Ok(None)) => vec!["key".to_owned(), "value".to_owned()],
            Some(Err(_)) | None => Vec::new(),
        }
    }

    /// The columns of a file; none if it cannot be read.
    pub(crate) fn columns_of_file(&self, file: &str) -> Vec<String> {
        self.file_columns.of(Path::new(file))
    }

    /// The statement that makes a table like one that is there.
    pub(crate) fn definition(&self, table: &str) -> Outcome<String> {
        let db = self.db()?;
        let schema = db.schema(table)?;
        let engine = match db.engine(table) {
            Some(Engine::Hash) => "hash",
            Some(Engine::Tree) => "tree",
            Some(Engine::Ordered) | None => "ordered",
            Some(_) => {
                return Ok(format!("-- {} is a roll-up: `SW.INFO` describes it", name(table)));
            }
        };
        Ok(match schema {
            Some(schema) => create(table, &schema, engine),
            None => {
                format!("-- {} has keys and values of bytes (engine = '{engine}')", name(table))
            }
        })
    }
}

fn create(table: &str, schema: &Schema, engine: &str) -> String {
    let key = schema.key_columns();
    let mut text = format!("create table {} (", name(table));
    for (at, column) in schema.columns().iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let needed = if column.nullable || key.contains(&at) { "" } else { " not null" };
        let _ = write!(text, "{comma}\n  {} {}{needed}", name(&column.name), kind(&column.kind));
    }
    if !key.is_empty() {
        let names: Vec<_> = key.iter().map(|&at| name(&schema.columns()[at].name)).collect();
        let _ = write!(text, ",\n  primary key ({})", names.join(", "));
    }
    text += "\n)";
    if engine != "ordered" {
        let _ = write!(text, " with (engine = '{engine}')");
    }
    text + ";"
}

/// A name as a statement has it: in quotes, unless it is plain.
pub(crate) fn name(name: &str) -> String {
    let is_plain = name.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_')
        && name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_')
        && !KEYWORDS.iter().any(|word| word.eq_ignore_ascii_case(name));
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A text as a statement has it.
pub(crate) fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The name that SQL has for a type.
fn kind(kind: &Type) -> String {
    let name = match kind {
        Type::Bool => "boolean",
        Type::Int(8) => "tinyint",
        Type::Int(16) => "smallint",
        Type::Int(32) => "integer",
        Type::Int(64) => "bigint",
        Type::Int(128) => "hugeint",
        Type::UInt(128) => "uhugeint",
        Type::UInt(8) => "utinyint",
        Type::UInt(16) => "usmallint",
        Type::UInt(32) => "uinteger",
        Type::UInt(64) => "ubigint",
        Type::F32 => "real",
        Type::F64 => "double",
        Type::Timestamp(Precision::Seconds) => "timestamp_s",
        Type::Timestamp(Precision::Millis) => "timestamp_ms",
        Type::Timestamp(Precision::Micros) => "timestamp",
        Type::Timestamp(Precision::Nanos) => "timestamp_ns",
        Type::Bytes => "blob",
        other => return other.to_string(),
    };
    name.to_owned()
}

impl Shell<'_> {
    /// Executes a statement. What is wrong with it is said, and further lines are read.
    pub(super) fn statement(&mut self, text: &str) -> Outcome {
        if !self.is_local && !reads_files(text) {
            return self.statement_of_server(text);
        }
        let cancel = self.begin();
        let is_cancelled = || cancel.is_cancelled();
        if self.has_plans && is_select(text) {
            // Without a plan the statement says why.
            let _ = self.statements.execute(&explained(text), &cancel, self.ui, |done| {
                if let Done::Rows(plan) = done {
                    for row in 0..plan.len() {
                        let line = plan.value(row, 0).map(|value| value.to_string());
                        stderr::line(escaped(&line.unwrap_or_default()));
                    }
                }
                Ok(())
            });
        }
        let mode = match self.form {
            Form::Table => Mode::Table,
            Form::Csv => Mode::Csv,
            Form::Json => Mode::Json,
            Form::Markdown => Mode::Markdown,
        };
        let begun = Instant::now();
        let mut taken = Duration::ZERO;
        let executed = self.statements.execute(text, &cancel, self.ui, |done| {
            taken = begun.elapsed();
            sql::show(done, mode, &is_cancelled, self.ui)
        });
        match executed {
            Ok(()) => self.show_time(taken),
            Err(Failure::Usage(what) | Failure::Failed(what)) if is_cancelled() => {
                self.fail_statement(Failure::Interrupted(what))
            }
            Err(failure) => self.fail_statement(failure),
        }
    }

    /// Lets the server execute a statement.
    fn statement_of_server(&mut self, text: &str) -> Outcome {
        let statements = match parse(text) {
            Ok(statements) => statements,
            // With its place, which the server does not draw.
            Err(error) => return self.fail_statement(Failure::Usage(error.to_string())),
        };
        let command = match statements.iter().any(Statement::changes_tables) {
            true => "SW.SQL",
            false => "SW.SQL_RO",
        };
        let before = self.refusals;
        self.call(&[command.into(), text.into()])?;
        if self.refusals > before { self.end_of_statements() } else { Ok(()) }
    }

    /// Says what is wrong, if further lines can be read. The rest of a script may rely on the statement, so that it is
    /// not executed.
    pub(super) fn fail_statement(&mut self, failure: Failure) -> Outcome {
        match failure {
            Failure::Usage(what) | Failure::Failed(what) => {
                self.refuse(&what)?;
                self.end_of_statements()
            }
            Failure::Interrupted(what) if self.is_person => {
                // Where it was stopped says nothing.
                stderr::line(escaped(what.lines().next().unwrap_or_default()));
                Ok(())
            }
            failure => Err(failure),
        }
    }

    /// Lets a person go on after a statement that failed, and no script.
    fn end_of_statements(&self) -> Outcome {
        if self.is_person { Ok(()) } else { Err(Failure::Said) }
    }
}

/// Whether a statement names files, which are those of this process.
fn reads_files(text: &str) -> bool {
    let begin = text.trim_start().get(..4);
    let is_copy = begin.is_some_and(|begin| begin.eq_ignore_ascii_case("copy"));
    is_copy || !named_in(text).is_empty()
}

fn is_select(text: &str) -> bool {
    let begin = text.trim_start().get(..6);
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case("select"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_make_the_same_table() {
        let columns = "a bigint, \"two words\" text not null, c decimal(10,2), d timestamp, e blob, f real, \
             g timestamp_ns, \"Key\" boolean, h utinyint";
        for (made, again) in [
            (format!("create table t ({columns}, primary key (a, \"two words\"))"), true),
            (format!("create table \"or-der\" ({columns}) with (engine = 'hash')"), false),
        ] {
            let db = Db::in_memory();
            db.sql(&made).expect("a table");
            let table = db.table_names().pop().expect("a table");
            let text = Statements::over(Some(db.clone()), None).definition(&table).expect("text");
            let copy = Db::in_memory();
            copy.sql(&text).expect(&text);
            assert_eq!(copy.schema(&table).expect("it"), db.schema(&table).expect("it"), "{text}");
            assert_eq!(copy.engine(&table), db.engine(&table));
            assert_eq!(text.contains("primary key (a, \"two words\")"), again, "{text}");
        }
    }
}

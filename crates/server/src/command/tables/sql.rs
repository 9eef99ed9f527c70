//! Statements of SQL.

use std::sync::Arc;

use sapwood::Db;
use sapwood::schema::{Schema, Type, Value};
use sapwood::sql::{
    Answer as Rows, Catalog, ErrorKind, Filling, Options, Outcome, Session, Source, SourceResult,
    Statement, TableName, TableSummary, Tables, parse,
};

use crate::acl::User;
use crate::catalog::{Description, KeyPlaces};
use crate::command::{Answer, Call};
use crate::jobs::Effect;
use crate::protocol::reply::Reply;
use crate::refusal::{NO_KEY, Refusal};
use crate::replicas::Replicas;
use crate::store::tables::is_own;

use super::work::{Telling, Terms, Work, start_on};
use super::{CANCELLED, cells};

/// What statements may name: the tables of the server that the user has rights on.
struct Named<'a> {
    tables: Tables<'a>,
    user: &'a User,
    /// The command, with the name of a table as its key: for the rights on that.
    command: Description,
}

pub(super) fn sql(call: &mut Call<'_>) -> Answer {
    let statements = read(call)?;
    start(call, statements, Effect::Changes)
}

pub(super) fn sql_ro(call: &mut Call<'_>) -> Answer {
    let statements = read(call)?;
    if statements.iter().any(Statement::changes_tables) {
        return Err(Refusal::text("ERR the statement changes tables: SW.SQL executes it"));
    }
    start(call, statements, Effect::Reads)
}

fn read(call: &Call<'_>) -> Result<Vec<Statement>, Refusal> {
    let text = std::str::from_utf8(call.args[1])
        .map_err(|_| Refusal::text("ERR a statement is UTF-8, and this is none"))?;
    let statements = parse(text).map_err(refused)?;
    match statements.is_empty() {
        true => Err(Refusal::text("ERR a statement is expected")),
        false => Ok(statements),
    }
}

/// The first line of an error; those behind it draw the place.
#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
fn refused(error: sapwood::sql::Error) -> Refusal {
    match error.kind() {
        ErrorKind::Cancelled => CANCELLED,
        _ if error.what().starts_with("NOPERM ") => Refusal::Text(error.what().to_owned().into()),
        _ => Refusal::err(error.what().lines().next().unwrap_or_default()),
    }
}

fn start(call: &mut Call<'_>, statements: Vec<Statement>, effect: Effect) -> Answer {
    let user = Arc::clone(call.client.login.user());
    let keys = KeyPlaces { first: 1, last: 1, step: 1 };
    let command = Description { keys, ..call.command.description };
    let threads = call.service.options.threads;
    let db = call.service.db.clone();
    let terms = Terms::new(effect, Telling::Nothing);
    start_on(call, ("", db), terms, move |work: &Work<'_, Db>, reply| {
        // Rows change while no transaction runs; a job inside of one has the databases for itself.
        let between = |change: &mut dyn FnMut()| {
            let _shared = work.databases.map(Replicas::shared);
            change();
        };
        let tables = Tables::of(work.table).changing_within(&between);
        let named = Named { tables, user: &user, command };
        let is_cancelled = || work.running.cancel.is_cancelled();
        let mut last = None;
        for statement in &statements {
            let mut options = Options::default();
            options.threads = threads;
            options.cancel = Some(&is_cancelled);
            last = Some(Session::new(&named, options).execute(statement).map_err(refused)?);
        }
        match last.expect("there is a statement") {
            Outcome::Rows(rows) => write(&rows, reply)?,
            Outcome::Changed { what, rows } => {
                reply.map(2);
                reply.bulk(b"done");
                reply.bulk(what.as_bytes());
                reply.bulk(b"rows");
                cells::count(reply, rows);
            }
            Outcome::Done(what) => reply.bulk(what.as_bytes()),
            other => return Err(Refusal::err(format!("no reply says {other:?}"))),
        }
        Ok(())
    })
}

/// The columns of an answer, their types, and its rows.
fn write(rows: &Rows, reply: &mut Reply<'_>) -> Answer {
    reply.map(3);
    reply.bulk(b"columns");
    reply.array(rows.columns().len());
    rows.columns().iter().for_each(|column| reply.bulk(column.name.as_bytes()));
    reply.bulk(b"types");
    reply.array(rows.columns().len());
    rows.columns().iter().for_each(|column| reply.bulk(column.kind.to_string().as_bytes()));
    reply.bulk(b"rows");
    reply.array(rows.len());
    for row in 0..rows.len() {
        reply.array(rows.columns().len());
        rows.row(row).map_err(refused)?.iter().for_each(|value| cell(reply, value));
    }
    Ok(())
}

/// A value: numbers and truth as the protocol has them, decimals and times as text.
fn cell(reply: &mut Reply<'_>, value: &Value<'_>) {
    match value {
        Value::Null => reply.null(),
        Value::Bool(value) => reply.boolean(*value),
        Value::Int(number) => cells::whole(reply, *number),
        Value::Huge(number) => reply.big_number(&number.to_string()),
        Value::Float(number) => reply.double(*number),
        Value::Text(text) => reply.bulk(text.as_bytes()),
        Value::Bytes(bytes) => reply.bulk(bytes),
        Value::Array(items) => {
            reply.array(items.len());
            items.iter().for_each(|item| cell(reply, item));
        }
        other => reply.bulk(other.to_string().as_bytes()),
    }
}

impl Named<'_> {
    /// Refuses files of the server's machine, tables of the server's own, and those on which the user has not the
    /// rights.
    fn expect_allowed(&self, name: &TableName) -> SourceResult<()> {
        if name.is_file {
            return Err(format!("a server reads no files: `{name}` is read by its client"));
        }
        let [table] = &name.parts[..] else { return Ok(()) };
        if is_own(table.as_bytes()) {
            return Err(
                "names that begin with 'redis.' are those of the server's own tables".into()
            );
        }
        let args = [self.command.name.as_bytes(), table.as_bytes()];
        match self.user.check(&self.command, &args) {
            Ok(()) => Ok(()),
            Err(_) => Err(NO_KEY.into()),
        }
    }
}

impl Catalog for Named<'_> {
    fn open(&self, name: &TableName) -> SourceResult<Box<dyn Source + '_>> {
        self.expect_allowed(name)?;
        self.tables.open(name)
    }

    fn tables(&self) -> SourceResult<Vec<TableSummary>> {
        let mut tables = self.tables.tables()?;
        tables.retain(|table| !is_own(table.name.as_bytes()));
        Ok(tables)
    }

    fn create(&self, name: &TableName, schema: Schema, engine: Option<&str>) -> SourceResult<()> {
        self.expect_allowed(name)?;
        self.tables.create(name, schema, engine)
    }

    fn create_filled(
        &self,
        name: &TableName,
        schema: Schema,
        engine: Option<&str>,
        fill: &mut Filling<'_>,
    ) -> SourceResult<()> {
        self.expect_allowed(name)?;
        // No transaction has a table that no name leads to.
        self.tables.create_filled(name, schema, engine, fill)
    }

    fn drop_table(&self, name: &TableName) -> SourceResult<()> {
        self.expect_allowed(name)?;
        Err(format!("SW.DROP {name} drops a table of a server"))
    }

    fn add_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()> {
        self.expect_allowed(name)?;
        self.tables.add_column(name, column, kind)
    }

    fn widen_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()> {
        self.expect_allowed(name)?;
        self.tables.widen_column(name, column, kind)
    }

    fn write(&self, _: &Rows, file: &str) -> SourceResult<u64> {
        Err(format!("a server writes no files: `{file}` is written by its client"))
    }
}

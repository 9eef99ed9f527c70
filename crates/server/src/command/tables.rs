//! `SW.*`: tables of Sapwood.
//!
//! | module | commands |
//! |---|---|
//! | `catalog` | `SW.CREATE`, `SW.DROP`, `SW.LIST`, `SW.INFO`, `SW.STATS`, `SW.CHECK` |
//! | `entries` | `SW.PUT`, `SW.GET`, `SW.ADD`, and all that names its keys |
//! | `update` | `SW.UPDATE` |
//! | `ranges` | `SW.RANGE`, `SW.REVRANGE`, `SW.SCAN` |
//! | `figures` | `SW.AGGREGATE`, `SW.EXPLAIN`, `SW.MERGE` |
//! | `rollups` | `SW.INGEST`, `SW.QUERY` |
//! | `spread` | `SW.DISAGGREGATE` |
//! | `sql` | `SW.SQL`, `SW.SQL_RO` |
//! | `work` | `SW.JOBS`, `SW.CANCEL`, and what jobs have in common |
//! | `question`, `words` | arguments: clauses of queries, and keywords |
//! | `cells` | values and rows as replies |
//!
//! The first key of a command is the name of its table, and rights are checked on it; statements of SQL name their tables
//! themselves, and rights are checked when they are opened. All
//! databases of `SELECT` see the same tables, and `FLUSHALL` leaves them.
//!
//! # Consistency
//!
//! A command on one key takes effect at one moment. A command on several keys is a series of them
//! for its like, and one step for `EXEC`. Commands that may take long run as jobs, away from the
//! threads that serve clients: a job sees each key as it was at some moment of its run, and so
//! perhaps a part of a transaction. With `MOMENT` it sees a hash table or a tree table as it was at
//! one moment, between transactions. Inside of `MULTI` a job runs as a part of its transaction, and is one step
//! for everyone.

mod catalog;
mod cells;
mod entries;
mod figures;
mod question;
mod ranges;
mod rollups;
mod spread;
mod sql;
mod update;
mod words;
mod work;

use sapwood::{AnyTable, Engine, RollupTable};

use crate::catalog::{Categories, Flags};
use crate::command::{Answer, Call, Command, Run};
use crate::databases::Access;
use crate::protocol::reply::Reply;
use crate::refusal::{OUT_OF_MEMORY, Refusal};
use crate::store::tables::{Handle, is_own};

const fn table(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("table", name, arity, run).categories(Categories::TABLE).keys(1, 1, 1)
}

const fn jobs(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("table", name, arity, run).categories(Categories::TABLE)
}

const CHANGES: &[&str] = &["nondeterministic_output"];
const IN_ANY_ORDER: &[&str] =
    &["nondeterministic_output_order", "request_policy:all_shards", "response_policy:special"];

/// The clauses that say which entries count and how they are reached.
macro_rules! selected {
    () => {
        "[WHERE condition] [KEYS numkeys key [key ...] | PREFIX prefix | RANGE min max] \
         [LAYOUT layout] [MISMATCHES <REFUSE | SKIP>] \
         [USING <PLANNER | LOOKUP | RANGE | WALK | LOG>] [THREADS threads] [MOMENT] [PROGRESS]"
    };
}

/// The clauses of a query.
macro_rules! query {
    () => {
        concat!(
            "[SELECT figures] [BY groups] [HAVING condition] [ORDER columns] [LIMIT rows] \
             [GROUPS max] [MISSING <PASS | REFUSE>] ",
            selected!()
        )
    };
}

pub(crate) const COMMANDS: &[Command] = &[
    table("sw.create", -4, catalog::create).grows().alone().about(
        "1.0.0",
        "table ENGINE <HASH | ORDERED | TREE | ROLLUP> [KIND <BTREE | CRIT-BIT | RED-BLACK>] \
         [LAYOUT layout] [RECORD <VARIABLE | FIXED8>] [BUDGET bytes] [ENTRIES expected] [PAGE bytes] [CHUNK entries] [VOLATILE] \
         [SCHEMA json]",
        "Creates a table.",
    ),
    table("sw.drop", 2, catalog::drop_table).writes().alone().about(
        "1.0.0",
        "table",
        "Drops a table and its entries.",
    ),
    jobs("sw.list", -1, catalog::list).reads().tips(IN_ANY_ORDER).about(
        "1.0.0",
        "[MATCH pattern] [ENGINE <HASH | ORDERED | TREE | ROLLUP>]",
        "Returns the names of tables.",
    ),
    table("sw.info", 2, catalog::info).reads().fast().tips(CHANGES).about(
        "1.0.0",
        "table",
        "Returns the engine, the layout and the options of a table.",
    ),
    table("sw.stats", 2, catalog::stats).reads().tips(CHANGES).about(
        "1.0.0",
        "table",
        "Returns what a table holds and costs.",
    ),
    table("sw.check", 2, catalog::check).reads().flags(Flags::ADMIN.union(Flags::SLOW_SCAN)).about(
        "1.0.0",
        "table",
        "Verifies the invariants of a table. Holds all other commands back meanwhile.",
    ),
    table("sw.put", -4, entries::put).grows().fast().about(
        "1.0.0",
        "table key value [NX | XX]",
        "Puts the value of a key.",
    ),
    table("sw.get", 3, entries::get).reads().fast().about(
        "1.0.0",
        "table key",
        "Returns the value of a key.",
    ),
    table("sw.mput", -4, entries::mput).grows().about(
        "1.0.0",
        "table key value [key value ...]",
        "Puts the values of one or more keys.",
    ),
    table("sw.mget", -3, entries::mget).reads().fast().about(
        "1.0.0",
        "table key [key ...]",
        "Returns the values of one or more keys.",
    ),
    table("sw.remove", -3, entries::remove).writes().fast().about(
        "1.0.0",
        "table key [key ...]",
        "Removes one or more keys, and returns how many were there.",
    ),
    table("sw.exists", -3, entries::exists).reads().fast().about(
        "1.0.0",
        "table key [key ...]",
        "Returns how many of the keys are there.",
    ),
    table("sw.add", 4, entries::add).grows().fast().about(
        "1.0.0",
        "table key increment",
        "Adds to the counter of a key, and returns the sum. Uses 0 as initial value if the key \
         doesn't exist.",
    ),
    table("sw.madd", -4, entries::madd).grows().about(
        "1.0.0",
        "table key increment [key increment ...]",
        "Adds to the counters of one or more keys.",
    ),
    table("sw.counter", -3, entries::counter).reads().fast().about(
        "1.0.0",
        "table key [key ...]",
        "Returns the counters of one or more keys.",
    ),
    table("sw.cas", 5, entries::cas).grows().fast().about(
        "1.0.0",
        "table key expected value",
        "Puts the value of a key if it has the expected one.",
    ),
    table("sw.update", -6, update::update).grows().fast().about(
        "1.0.0",
        "table key field <SET | ADD | MIN | MAX> number [field <SET | ADD | MIN | MAX> number ...]",
        "Changes fields of a value in place, all or none, and returns what they hold then.",
    ),
    table("sw.range", -4, ranges::range).reads().flags(Flags::SLOW_SCAN).about(
        "1.0.0",
        "table min max [LIMIT offset count] [NOVALUES]",
        "Returns the entries of a table with order between two keys.",
    ),
    table("sw.revrange", -4, ranges::revrange).reads().flags(Flags::SLOW_SCAN).about(
        "1.0.0",
        "table max min [LIMIT offset count] [NOVALUES]",
        "Returns the entries of a table with order between two keys, in reverse order.",
    ),
    table("sw.scan", -3, ranges::scan).reads().flags(Flags::SLOW_SCAN).tips(CHANGES).about(
        "1.0.0",
        "table cursor [MATCH pattern] [COUNT count] [NOVALUES]",
        "Iterates over the entries of a table.",
    ),
    table("sw.aggregate", -2, figures::aggregate).reads().flags(Flags::SLOW_SCAN).about(
        "1.0.0",
        concat!("table ", query!(), " [PARTIAL]"),
        "Returns figures of entries, or a state that SW.MERGE merges with others.",
    ),
    table("sw.explain", -2, figures::explain).reads().tips(CHANGES).about(
        "1.0.0",
        concat!("table ", query!()),
        "Returns how SW.AGGREGATE would answer.",
    ),
    table("sw.merge", -5, figures::merge).reads().about(
        "1.0.0",
        concat!("table STATES numstates state [state ...] ", query!(), " [PARTIAL]"),
        "Merges states that SW.AGGREGATE returned, of any tables, into one answer.",
    ),
    table("sw.disaggregate", -4, spread::disaggregate).writes().flags(Flags::SLOW_SCAN).about(
        "1.0.0",
        concat!(
            "table field total [SET | ADD] \
                 [EQUALLY | BY field | WEIGHTS numkeys key weight [key weight ...]] [REST state] ",
            selected!()
        ),
        "Spreads a total over a field of entries, in parts that add up to it exactly.",
    ),
    table("sw.ingest", -3, rollups::ingest).grows().about(
        "1.0.0",
        "table [FORMAT <JSON | CSV | MSGPACK | ARROW>] payload [payload ...]",
        "Folds rows of events into the facts of a roll-up, all or none of them at one moment, and \
         returns what became of them.",
    ),
    table("sw.query", -3, rollups::query).reads().flags(Flags::SLOW_SCAN).about(
        "1.0.0",
        "table query [FORMAT <ROWS | JSON | CSV | ARROW>] [THREADS threads]",
        "Returns the answer of a roll-up to a native query of Druid.",
    ),
    jobs("sw.sql", 2, sql::sql).grows().flags(Flags::SLOW_SCAN).tips(CHANGES).about(
        "1.0.0",
        "statements",
        "Executes statements of SQL over tables, and returns what the last of them did.",
    ),
    jobs("sw.sql_ro", 2, sql::sql_ro).reads().flags(Flags::SLOW_SCAN).tips(CHANGES).about(
        "1.0.0",
        "statements",
        "Executes statements of SQL that change nothing, and returns the answer of the last.",
    ),
    jobs("sw.jobs", 1, work::jobs).flags(Flags::ADMIN).tips(IN_ANY_ORDER).about(
        "1.0.0",
        "",
        "Returns the jobs that are running.",
    ),
    jobs("sw.cancel", -2, work::cancel).flags(Flags::ADMIN).about(
        "1.0.0",
        "<job | NAME name>",
        "Tells a job, or all of a name, to stop, and returns how many there are.",
    ),
];

const NO_TABLE: Refusal = Refusal::text("ERR no such table");
/// The refusal of a job that was told to stop.
const CANCELLED: Refusal = Refusal::text("ERR cancelled");
const OWN: Refusal =
    Refusal::text("ERR names that begin with 'redis.' are those of the server's own tables");

/// The command's table with keys, and the reply.
fn open<'c, 'a>(call: &'c mut Call<'a>) -> Result<(&'c AnyTable, &'c mut Reply<'a>), Refusal> {
    match open_any(call)? {
        (Handle::Keyed(table), reply) => Ok((table, reply)),
        (Handle::Rollup(table), _) => Err(without_keys(table.name())),
    }
}

/// The command's table, and the reply.
fn open_any<'c, 'a>(call: &'c mut Call<'a>) -> Result<(&'c Handle, &'c mut Reply<'a>), Refusal> {
    let name = call.args[1];
    make_known(call, name)?;
    let handle = call.access.databases().tables().get(name).ok_or(NO_TABLE)?;
    Ok((handle, &mut call.reply))
}

/// The command's roll-up, and the reply.
fn open_rollup<'c, 'a>(
    call: &'c mut Call<'a>,
) -> Result<(&'c RollupTable, &'c mut Reply<'a>), Refusal> {
    match open_any(call)? {
        (Handle::Rollup(table), reply) => Ok((table, reply)),
        (Handle::Keyed(table), _) => Err(Refusal::err(format!(
            "table '{}' is {}, and no roll-up: SW.PUT brings values, SW.AGGREGATE answers",
            table.name(),
            table.engine()
        ))),
    }
}

fn without_keys(name: &str) -> Refusal {
    Refusal::err(format!(
        "table '{name}' is a roll-up, which has no keys: SW.INGEST brings rows, SW.QUERY answers"
    ))
}

/// Keeps the handle of a table at hand. Tables that are there are opened at once, and noted with no
/// other command beside.
fn make_known(call: &mut Call<'_>, name: &[u8]) -> Answer {
    if call.access.databases().tables().get(name).is_some() {
        return Ok(());
    }
    if is_own(name) {
        return Err(OWN);
    }
    let name = std::str::from_utf8(name).map_err(|_| NO_TABLE)?;
    let db = &call.service.db;
    let handle = match db.engine(name) {
        Some(Engine::Rollup) => db.rollup_table(name).map(Handle::Rollup),
        _ => db.table(name).map(Handle::Keyed),
    };
    let handle = handle.map_err(refused)?;
    match &mut call.access {
        Access::Shared(_) => Err(Refusal::NeedsExclusive),
        Access::Exclusive(all) => {
            all.set_table(name, Some(&handle));
            Ok(())
        }
    }
}

/// The refusal of a table, in the words of the server.
fn refused(error: sapwood::Error) -> Refusal {
    use sapwood::{Error, HashEngineError, OrderedEngineError, TreeEngineError};
    match error {
        error if error.lacks_room() => error.into(),
        Error::TableMissing { .. } | Error::TableDropped { .. } => NO_TABLE,
        Error::TableExists { name, .. } => Refusal::err(format!("table '{name}' exists already")),
        Error::TableInUse { name, .. } => Refusal::err(format!(
            "table '{name}' is in use by a job; wait for its end, or cancel it with SW.CANCEL"
        )),
        Error::NoFields { table } => {
            Refusal::err(format!("table '{table}' has no layout: give one with LAYOUT"))
        }
        Error::HashEngine { cause: HashEngineError::OutOfMemory { .. }, .. }
        | Error::OrderedEngine { cause: OrderedEngineError::OutOfMemory { .. }, .. }
        | Error::TreeEngine { cause: TreeEngineError::OutOfMemory { .. }, .. } => OUT_OF_MEMORY,
        Error::TreeEngine { cause: TreeEngineError::TreeRemoved, .. } => NO_TABLE,
        Error::HashEngine { cause, .. } => Refusal::err(cause),
        Error::TreeEngine { cause, .. } => Refusal::err(cause),
        Error::OrderedEngine { cause, .. } => Refusal::err(cause),
        Error::HashBatch { done, cause, .. } => stopped(done, &cause),
        Error::OrderedBatch { done, cause, .. } => stopped(done, &cause),
        Error::Rollup { cause, .. } => unfit(cause),
        Error::OtherEngine { name, engine: Engine::Rollup } => without_keys(&name),
        Error::Cancelled { visited, .. } => {
            Refusal::err(format!("cancelled after {visited} visits"))
        }
        // What follows on other lines draws where in the text.
        error @ Error::Log { .. } => error.into(),
        error => Refusal::err(error.to_string().lines().next().unwrap_or_default()),
    }
}

/// The refusal of a schema, of rows, or of a query of a roll-up.
fn unfit(error: sapwood::rollup::Error) -> Refusal {
    use sapwood::{OrderedEngineError, rollup::Error};
    match error {
        Error::Facts(OrderedEngineError::OutOfMemory { .. }) => OUT_OF_MEMORY,
        error @ Error::Full { .. } => Refusal::Text(format!("OOM {error}").into()),
        Error::Cancelled => CANCELLED,
        error @ Error::Timeout => Refusal::Text(format!("TIMEOUT {error}").into()),
        error => Refusal::err(error.to_string().lines().next().unwrap_or_default()),
    }
}

/// The refusal of a batch that stopped.
fn stopped(done: usize, cause: &dyn std::fmt::Display) -> Refusal {
    Refusal::err(format!("the batch stopped after {done} entries, which are in: {cause}"))
}

/// The refusal of a query that does not fit together.
fn misfit(error: impl Into<sapwood::Error>) -> Refusal {
    refused(error.into())
}

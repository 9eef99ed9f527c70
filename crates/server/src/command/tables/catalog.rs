//! Commands on tables as a whole.

use sapwood::rollup::Schema;
use sapwood::{
    AnyTable, Engine, HashStats, HashTableOptions, OrderedStats, OrderedTableOptions, RecordLayout,
    RollupTableOptions, TableRef, TableStats, TreeKind, TreeStats, TreeTableOptions,
};

use crate::command::arguments::is;
use crate::command::{Answer, Call, backups};
use crate::databases::Access;
use crate::jobs::Effect;
use crate::protocol::glob;
use crate::protocol::reply::Reply;
use crate::refusal::{Refusal, SYNTAX};
use crate::store::tables::{Handle, is_own};

use super::words::{Words, one_of, word_of};
use super::work::{Telling, Work, start};
use super::{NO_TABLE, OWN, cells, misfit, open_any, refused, rollups, unfit};

pub(super) const ENGINES: &[(&str, Engine)] = &[
    ("hash", Engine::Hash),
    ("ordered", Engine::Ordered),
    ("tree", Engine::Tree),
    ("rollup", Engine::Rollup),
];
/// Those whose tables have keys.
const KEYED: &[Engine] = &[Engine::Hash, Engine::Ordered, Engine::Tree];
const TREES: &[(&str, TreeKind)] = &[
    ("btree", TreeKind::BTree),
    ("crit-bit", TreeKind::CritBit),
    ("red-black", TreeKind::RedBlack),
];
const RECORDS: &[(&str, RecordLayout)] =
    &[("variable", RecordLayout::Variable), ("fixed8", RecordLayout::Fixed8)];

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let name = call.args[1];
    let mut engine = None;
    let mut hash = HashTableOptions::default();
    let mut ordered = OrderedTableOptions::default();
    let mut tree = TreeTableOptions::default();
    let mut schema = None;
    // Options that not all engines have, and the engines that have them.
    let mut special: Vec<(&str, &[Engine])> = Vec::new();
    let mut words = Words::new(&call.args[2..]);
    while let Some(word) = words.keyword() {
        if is(word, "engine") {
            engine = Some(one_of(words.value()?, ENGINES)?);
        } else if is(word, "layout") {
            let layout: sapwood::aggregate::Layout = words.text()?.parse().map_err(misfit)?;
            hash = hash.fields(layout.clone());
            tree = tree.fields(layout.clone());
            ordered = ordered.fields(layout);
            special.push(("LAYOUT", KEYED));
        } else if is(word, "budget") {
            let bytes = words.number()?;
            hash = hash.memory_budget(bytes);
            ordered = ordered.memory_budget(bytes);
            special.push(("BUDGET", &[Engine::Hash, Engine::Ordered]));
        } else if is(word, "record") {
            let record = one_of(words.value()?, RECORDS)?;
            hash = hash.layout(record);
            tree = tree.layout(record);
            special.push(("RECORD", &[Engine::Hash, Engine::Tree]));
        } else if is(word, "kind") {
            tree = tree.kind(one_of(words.value()?, TREES)?);
            special.push(("KIND", &[Engine::Tree]));
        } else if is(word, "entries") {
            hash = hash.expected_entries(words.number()?);
            special.push(("ENTRIES", &[Engine::Hash]));
        } else if is(word, "page") {
            hash = hash.page_bytes(size(words.number()?));
            special.push(("PAGE", &[Engine::Hash]));
        } else if is(word, "chunk") {
            ordered = ordered.chunk_entries(size(words.number()?));
            special.push(("CHUNK", &[Engine::Ordered]));
        } else if is(word, "volatile") {
            ordered = ordered.volatile();
            special.push(("VOLATILE", &[Engine::Ordered]));
        } else if is(word, "schema") {
            schema = Some(Schema::from_json(words.text()?).map_err(unfit)?);
            special.push(("SCHEMA", &[Engine::Rollup]));
        } else {
            return words.unknown();
        }
    }
    if is_own(name) {
        return Err(OWN);
    }
    let engine = engine.ok_or(SYNTAX)?;
    if let Some((option, _)) = special.iter().find(|(_, engines)| !engines.contains(&engine)) {
        return Err(Refusal::err(format!("{option} is no option of {engine}")));
    }
    // A name of other bytes is refused as every name that no table can have.
    let name = String::from_utf8_lossy(name);
    let db = &call.service.db;
    let handle = match engine {
        Engine::Ordered => db.create_ordered_table(&name, ordered).map(keyed),
        Engine::Tree => db.create_tree_table(&name, tree).map(keyed),
        Engine::Rollup => {
            let schema = schema.ok_or(NO_SCHEMA)?;
            db.create_rollup_table(&name, RollupTableOptions::new(schema)).map(Handle::Rollup)
        }
        _ => db.create_hash_table(&name, hash).map(keyed),
    };
    let handle = handle.map_err(refused)?;
    if let Access::Exclusive(all) = &mut call.access {
        all.set_table(&name, Some(&handle));
    }
    call.reply.simple("OK");
    Ok(())
}

const NO_SCHEMA: Refusal =
    Refusal::text("ERR a roll-up needs a SCHEMA: a dataSchema of Druid, as JSON");

fn keyed(table: impl Into<AnyTable>) -> Handle {
    Handle::Keyed(table.into())
}

/// A number of bytes or entries; too many are refused by the table.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub(super) fn drop_table(call: &mut Call<'_>) -> Answer {
    let name = call.args[1];
    if is_own(name) {
        return Err(OWN);
    }
    let name = std::str::from_utf8(name).map_err(|_| NO_TABLE)?;
    if call.service.jobs.all().iter().any(|running| &*running.table == name) {
        return Err(refused(sapwood::Error::TableInUse { name: name.to_owned(), what: "drop" }));
    }
    if backups::is_running(&call.service.jobs) {
        return Err(backups::RUNNING);
    }
    if let Access::Exclusive(all) = &mut call.access {
        // With a handle in use it stays, and is known again when it is used next.
        all.set_table(name, None);
    }
    call.service.db.drop_table(name).map_err(refused)?;
    call.reply.simple("OK");
    Ok(())
}

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    let (mut pattern, mut engine) = (None, None);
    let mut words = Words::new(&call.args[1..]);
    while let Some(word) = words.keyword() {
        if is(word, "match") {
            pattern = Some(words.value()?);
        } else if is(word, "engine") {
            engine = Some(one_of(words.value()?, ENGINES)?);
        } else {
            return Err(SYNTAX);
        }
    }
    let db = &call.service.db;
    let is_listed = |name: &String| {
        !is_own(name.as_bytes())
            && pattern.is_none_or(|pattern| glob::matches(pattern, name.as_bytes()))
            && engine.is_none_or(|engine| db.engine(name) == Some(engine))
    };
    let names: Vec<String> = db.table_names().into_iter().filter(is_listed).collect();
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

pub(super) fn info(call: &mut Call<'_>) -> Answer {
    let is_kept = call.service.db.directory().is_some();
    let (table, reply) = match open_any(call)? {
        (Handle::Keyed(table), reply) => (table, reply),
        (Handle::Rollup(table), reply) => {
            rollups::info(table, reply);
            return Ok(());
        }
    };
    let record = match table.resolve() {
        TableRef::Hash(table) => table.layout(),
        TableRef::Tree(table) => table.layout(),
        _ => RecordLayout::Variable,
    };
    let kind = table.as_tree().map(|tree| word_of(tree.kind(), TREES));
    let is_kept = is_kept && table.as_ordered().is_none();
    reply.map(7);
    reply.bulk(b"name");
    reply.bulk(table.name().as_bytes());
    reply.bulk(b"engine");
    reply.bulk(word_of(table.engine(), ENGINES).as_bytes());
    reply.bulk(b"kind");
    cells::text(reply, kind);
    reply.bulk(b"record");
    reply.bulk(word_of(record, RECORDS).as_bytes());
    reply.bulk(b"layout");
    cells::text(reply, table.fields().map(ToString::to_string).as_deref());
    reply.bulk(b"entries");
    cells::count(reply, table.len_estimate() as u64);
    reply.bulk(b"kept");
    reply.boolean(is_kept);
    Ok(())
}

pub(super) fn stats(call: &mut Call<'_>) -> Answer {
    let (table, reply) = match open_any(call)? {
        (Handle::Keyed(table), reply) => (table, reply),
        (Handle::Rollup(table), reply) => {
            rollups::stats(table, reply);
            return Ok(());
        }
    };
    match table.stats() {
        TableStats::Ordered(stats) => of_ordered(reply, &stats),
        TableStats::Hash(stats) => of_hash(reply, &stats),
        TableStats::Tree(stats) => of_tree(reply, &stats),
        _ => reply.map(0),
    }
    Ok(())
}

pub(super) fn figures(reply: &mut Reply<'_>, figures: &[(&str, u64)]) {
    for (name, figure) in figures {
        reply.bulk(name.as_bytes());
        cells::count(reply, *figure);
    }
}

fn budget(reply: &mut Reply<'_>, bytes: Option<u64>) {
    reply.bulk(b"budget_bytes");
    match bytes {
        Some(bytes) => cells::count(reply, bytes),
        None => reply.null(),
    }
}

fn of_ordered(reply: &mut Reply<'_>, stats: &OrderedStats) {
    let of = [
        ("entries", stats.entries),
        ("key_bytes", stats.key_bytes),
        ("value_bytes", stats.value_bytes),
        ("index_bytes", stats.index_bytes),
        ("reserved_bytes", stats.reserved_bytes),
        ("free_bytes", stats.free_bytes),
        ("retired_bytes", stats.retired_bytes),
        ("overhead_bytes", stats.overhead_bytes),
        ("table_bytes", stats.table_bytes),
        ("chunks", stats.chunks),
        ("inner_nodes", stats.inner_nodes),
        ("height", stats.height.into()),
        ("rebalances", stats.rebalances),
        ("moved_bytes", stats.moved_bytes),
    ];
    reply.map(of.len() + 2);
    figures(reply, &of);
    budget(reply, stats.budget_bytes);
    reply.bulk(b"pages");
    reply.bulk(stats.pages.as_bytes());
}

fn of_hash(reply: &mut Reply<'_>, stats: &HashStats) {
    let of = [
        ("entries", stats.entries_estimate),
        ("buckets", stats.buckets),
        ("overflow_buckets", stats.overflow_buckets),
        ("slots", stats.slots),
        ("index_bytes", stats.index_bytes),
        ("log_bytes", stats.log_bytes),
        ("reserved_bytes", stats.reserved_bytes),
        ("garbage_bytes", stats.garbage_bytes),
        ("begin", stats.begin),
        ("head", stats.head),
        ("safe_read_only", stats.safe_read_only),
        ("tail", stats.tail),
        ("returning_bytes", stats.returning_bytes),
        ("read_back_bytes", stats.read_back_bytes),
        ("file_bytes", stats.file_bytes),
        ("held_bytes", stats.held_bytes),
        ("compactions", stats.compactions),
        ("compacted_bytes", stats.compacted_bytes),
        ("moved_bytes", stats.moved_bytes),
        ("cold_reads", stats.cold_reads),
        ("cached_reads", stats.cached_reads),
        ("read_cache_bytes", stats.read_cache_bytes),
        ("chains_asked", stats.chains_asked),
    ];
    reply.map(of.len() + 3);
    figures(reply, &of);
    budget(reply, stats.budget_bytes);
    reply.bulk(b"compaction_error");
    cells::text(reply, stats.compaction_error.as_ref().map(ToString::to_string).as_deref());
    reply.bulk(b"pages");
    reply.bulk(stats.pages.as_bytes());
}

/// The heap is that of all tree tables.
fn of_tree(reply: &mut Reply<'_>, stats: &TreeStats) {
    let of = [("entries", stats.entries), ("heap_bytes", stats.trees.heap_bytes)];
    reply.map(of.len());
    figures(reply, &of);
}

/// Verifies a table while nothing changes it: it has the databases for itself, and no job that
/// changes the table runs.
pub(super) fn check(call: &mut Call<'_>) -> Answer {
    let jobs = std::sync::Arc::clone(&call.service.jobs);
    start(call, Effect::Reads, Telling::Nothing, move |work: &Work<'_>, reply| {
        let _alone = work.databases.map(|databases| databases.exclusive());
        let changes_it = |running: &std::sync::Arc<crate::jobs::Running>| {
            running.effect == Effect::Changes && *running.table == *work.running.table
        };
        if jobs.all().iter().any(changes_it) {
            return Err(Refusal::text(
                "ERR a job changes the table; wait for its end, or cancel it with SW.CANCEL",
            ));
        }
        work.table.check().map_err(refused)?;
        reply.simple("OK");
        Ok(())
    })
}

//! Modules inside a crate use those below them.

use crate::rust::{Word, words};
use crate::workspace::{expect_none, files_ending, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A crate, its storeys from the ground up, and the steps up that are left.
///
/// A module may use those of lower storeys, and its neighbours in its own. A step up is listed with
/// the module that takes it first; a list only gets shorter.
struct House {
    name: &'static str,
    storeys: &'static [&'static [&'static str]],
    steps_up: &'static [(&'static str, &'static str)],
}

const HOUSES: &[House] = &[
    House {
        name: "mem",
        storeys: &[
            &["flush", "reentry", "ring", "slice", "sync", "vector", "view"],
            &["region"],
            &["buddy", "epoch", "reserve", "shared"],
            &["model", "stripe", "words"],
            &["drain"],
            &["arena"],
            &["reclaim"],
        ],
        steps_up: &[],
    },
    House {
        name: "disk",
        storeys: &[
            &[
                "blocks", "cached", "checksum", "clock", "name", "pending", "place", "pool",
                "version",
            ],
            &["begun", "reading", "ring"],
            &["file", "held", "log"],
            &["folders"],
            &["sim"],
        ],
        steps_up: &[],
    },
    House {
        name: "engine",
        storeys: &[
            &["address", "flow", "journal", "outcome", "range"],
            &["batch"],
            &["buffer"],
            &["held"],
        ],
        steps_up: &[],
    },
    House {
        name: "chunkmap",
        storeys: &[
            &["abbreviation", "error", "hazards", "layout", "striped"],
            &["held", "inner", "options", "shape"],
            &["record"],
            &["chunk"],
            &["build", "cursor"],
            &["keys", "nearest", "tree"],
            &["compact", "entering", "map", "value", "writing"],
            &["add", "check", "cluster", "rebalance", "removal", "scan", "stats"],
            &["run"],
            &["batch", "columns"],
            &["range", "split_points"],
            &["navigate"],
        ],
        steps_up: &[],
    },
    House {
        name: "hashlog",
        storeys: &[
            &["error", "lock", "striped"],
            &["journal", "record"],
            &["index"],
            &["files", "options", "stats"],
            &["log"],
            &["ops"],
            &["walks"],
            &["compaction"],
            &["checkpoint"],
            // A change is made, told, and both behind one door.
            &["edit", "map", "told", "untold"],
            &["fuzzing"],
        ],
        steps_up: &[],
    },
    House {
        name: "ptree",
        storeys: &[
            &["log", "object", "options"],
            &["error"],
            &["commit", "redo", "superblock", "version", "view"],
            &["heap", "state"],
            &["dirty", "lane"],
            &["pool"],
            &["checkpoint", "open"],
            &["transaction", "together"],
            &["objects", "tree"],
            &["check", "info", "layouts", "salvage"],
        ],
        steps_up: &[],
    },
    House { name: "occ", storeys: &[&["turn"], &["versions"], &["reads"]], steps_up: &[] },
    House {
        name: "wal",
        storeys: &[
            &["error", "frame"],
            &["appender", "manifest"],
            &["pace"],
            &["snapshot"],
            &["wal"],
            &["follow", "open", "view"],
            &["salvage"],
            &["fuzzing"],
        ],
        steps_up: &[],
    },
    House {
        name: "aggregate",
        storeys: &[
            &["error"],
            &["value"],
            &["columns"],
            &["state"],
            &["question"],
            &["plan"],
            &["fold"],
            &["answer"],
            &["accumulator", "evaluation"],
            &["disaggregate"],
        ],
        steps_up: &[],
    },
    House {
        name: "rollup",
        storeys: &[
            &["error", "report"],
            &["value"],
            &["time"],
            &["expression", "input", "json"],
            &["filter"],
            &["schema"],
            &["sketch"],
            &["live", "log"],
            &["segment"],
            &["store"],
            &["contents"],
            &["rollup", "salvage"],
            &["query", "writer"],
            &["facts"],
            &["export"],
            &["fuzzing"],
        ],
        steps_up: &[],
    },
    House {
        name: "schema",
        storeys: &[
            &["calendar", "decimal", "error", "key", "nearest"],
            &["types"],
            &["schema", "value"],
            &["infer", "row"],
            &["batch"],
        ],
        steps_up: &[],
    },
    House {
        name: "files",
        storeys: &[
            &["error", "guard", "packing", "watch", "words"],
            &["format", "message_pack", "names"],
            &["input", "options", "pattern", "write"],
            &["cuts", "habits", "members", "records"],
            &["blocks", "content", "looks"],
            &["field", "objects"],
            &["text"],
            &["columnar", "csv", "json"],
            &["source"],
        ],
        steps_up: &[],
    },
    House {
        name: "sql",
        storeys: &[
            &["error", "like"],
            &["kind", "order", "out", "parameters", "source"],
            &["group", "time"],
            &["functions", "node"],
            &["convert", "states"],
            &["evaluate"],
            &["bind", "parse"],
            &["plan"],
            &["execute"],
            &["answer"],
            &["session"],
        ],
        steps_up: &[],
    },
    House {
        name: "execute",
        storeys: &[
            &["error", "executor"],
            &["execution", "sink"],
            &["change", "plan", "pool"],
            &["objects"],
            &["hash", "held", "ordered", "tree"],
            &["disaggregate", "query"],
        ],
        steps_up: &[],
    },
    House {
        name: "sapwood",
        storeys: &[
            &["engine", "error", "range", "rollup", "schema", "value"],
            &["aggregate"],
            &["record", "row"],
            &["db_options", "hash_options", "ordered_options", "rollup_options", "tree_options"],
            &["stored_options"],
            &["formats", "key_versions"],
            &["directory"],
            &["db_log", "log_reader"],
            &["hash_table", "no_rollups", "ordered_table", "rollup_table", "tree_table"],
            &["table"],
            &["transaction"],
            &["rows"],
            &["db", "records"],
            &["backup", "bulk_load", "sql"],
            &["fuzzing"],
        ],
        steps_up: &[],
    },
    House {
        name: "bench",
        storeys: &[
            &["harness"],
            &["aggregate", "hash", "ordered", "rollup", "server", "sql", "trees"],
            &["durability"],
        ],
        steps_up: &[],
    },
    House {
        name: "server",
        storeys: &[
            &["catalog", "protocol", "replicas", "store", "watched"],
            &["acl", "clock", "refusal"],
            &["admin", "clients", "databases", "jobs"],
            &["service"],
            &["command"],
            &["session"],
            &["net"],
        ],
        steps_up: &[],
    },
    House {
        name: "cli",
        storeys: &[&["terminal"], &["args"], &["rows"], &["commands"], &["samples"]],
        steps_up: &[],
    },
    House { name: "instructions", storeys: &[&["work"], &["count"], &["budget"]], steps_up: &[] },
    House {
        name: "torture",
        storeys: &[
            &["leftovers", "stream", "message"],
            &["expected", "tables"],
            &["oracle", "worker"],
            &["runs"],
            &["report"],
            &["chains", "pools", "statements"],
            &["damage", "enospc", "faults"],
        ],
        steps_up: &[],
    },
];

#[test]
fn modules_use_those_below_them() {
    expect_none(HOUSES.iter().flat_map(complaints).collect());
}

fn complaints(house: &House) -> Vec<String> {
    let name = house.name;
    let storeys: BTreeMap<&str, usize> = house
        .storeys
        .iter()
        .enumerate()
        .flat_map(|(storey, modules)| modules.iter().map(move |module| (*module, storey)))
        .collect();
    let used = uses(name);
    let mut complaints = Vec::new();
    let modules: BTreeSet<&str> = used.keys().map(String::as_str).collect();
    let listed: BTreeSet<&str> = storeys.keys().copied().collect();
    for module in modules.symmetric_difference(&listed) {
        complaints.push(format!("crates/{name}: is `{module}` a module, and on which storey?"));
    }
    let mut up = BTreeSet::new();
    for (user, used) in &used {
        let Some(storey) = storeys.get(user.as_str()) else { continue };
        for module in used {
            if storeys.get(module.as_str()).is_some_and(|other| other > storey) {
                up.insert((user.as_str(), module.as_str()));
            }
        }
    }
    let left: BTreeSet<_> = house.steps_up.iter().copied().collect();
    for (user, module) in up.difference(&left) {
        complaints.push(format!("crates/{name}: `{user}` uses `{module}`, which is above it"));
    }
    for (user, module) in left.difference(&up) {
        complaints.push(format!(
            "crates/{name}: `{user}` no longer uses `{module}`: take it out of the steps up"
        ));
    }
    complaints
}

/// The modules of a crate, and the names after `crate::` in each.
fn uses(name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let sources = Path::new("crates").join(name).join("src");
    let mut uses = BTreeMap::<_, BTreeSet<String>>::new();
    for path in files_ending(".rs") {
        let Ok(below) = path.strip_prefix(&sources) else { continue };
        let stem = below.with_extension("");
        let parts: Vec<_> = stem.iter().map(|part| part.to_string_lossy()).collect();
        let is_root = parts.len() == 1 && ["lib", "main"].contains(&&*parts[0]);
        let is_test = parts.iter().any(|part| *part == "tests" || part.ends_with("_loom"));
        if is_root || is_test {
            continue;
        }
        let module = parts[0].clone().into_owned();
        let used = names_of_crate(&without_tests(words(&read(&path))));
        let of_others = used.into_iter().filter(|used| *used != module);
        uses.entry(module.clone()).or_default().extend(of_others);
    }
    uses
}

/// The words of a source without its items for tests.
fn without_tests(words: Vec<Word>) -> Vec<Word> {
    let mut kept = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        kept.push(word);
        if !says(&kept, &["#", "[", "cfg", "("]) {
            continue;
        }
        let condition = take_group(&mut words, 2);
        let texts: Vec<_> = condition.iter().map(|word| word.text.as_str()).collect();
        let is_negated = texts.contains(&"not");
        if !texts.contains(&"test") || is_negated && texts.first() == Some(&"not") {
            kept.extend(condition);
            continue;
        }
        // The item ends with a semicolon or a block.
        while let Some(word) = words.next() {
            match word.text.as_str() {
                ";" => break,
                "{" => {
                    take_group(&mut words, 1);
                    break;
                }
                _ => {}
            }
        }
    }
    kept
}

fn says(words: &[Word], last: &[&str]) -> bool {
    words.len() >= last.len()
        && words[words.len() - last.len()..]
            .iter()
            .map(|word| word.text.as_str())
            .eq(last.iter().copied())
}

/// The words up to the end of so many groups that are open.
fn take_group(words: &mut impl Iterator<Item = Word>, open: usize) -> Vec<Word> {
    let mut depth = open;
    let mut taken = Vec::new();
    while depth > 0
        && let Some(word) = words.next()
    {
        match word.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        taken.push(word);
    }
    taken
}

/// The first name of each path that begins with `crate`.
fn names_of_crate(words: &[Word]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for at in 0..words.len() {
        if !says(&words[..at], &["crate", ":", ":"]) {
            continue;
        }
        if words[at].text != "{" {
            names.insert(words[at].text.clone());
            continue;
        }
        let mut depth = 0;
        let mut is_first = false;
        for word in &words[at..] {
            match word.text.as_str() {
                "{" => {
                    depth += 1;
                    is_first = depth == 1;
                }
                "}" => depth -= 1,
                "," => is_first = depth == 1,
                name if is_first => {
                    names.insert(name.to_owned());
                    is_first = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    names
}

#[test]
fn paths_into_the_crate_are_noticed() {
    let source = "use crate::a::B; use crate::{c, d::{e, F}, G}; fn f() { crate::h::i() }
        #[cfg(all(test, not(loom)))] mod tests { use crate::j; }
        #[cfg(not(test))] fn g() { crate::k::l() }
        #[cfg(test)] use crate::m; use crate::n;";
    let names = names_of_crate(&without_tests(words(source)));
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(names, ["G", "a", "c", "d", "h", "k", "n"]);
}

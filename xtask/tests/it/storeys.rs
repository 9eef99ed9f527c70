//! Modules inside a crate use those below them.

use crate::workspace::{expect_none, files_ending, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xtask::rust::{Word, ends_with, production, words};

/// A crate or a folder of one, its storeys from the ground up, and the steps up that are left.
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
            &["error", "layout"],
            &["options"],
            &["node"],
            &["tree"],
            &["map"],
            &["read", "upkeep"],
            &["write"],
        ],
        steps_up: &[],
    },
    House {
        name: "chunkmap/node",
        storeys: &[
            &["abbreviation", "hazard_pointers", "reentrancy", "ticket"],
            &["record", "shape"],
            &["chunk", "enter"],
            &["build", "cursor", "inner"],
            &["nearest", "sorted_keys"],
        ],
        steps_up: &[],
    },
    House {
        name: "chunkmap/read",
        storeys: &[
            &["lock"],
            &["get", "scan"],
            &["columns", "range", "split_points"],
            &["navigate"],
            &["rank"],
        ],
        steps_up: &[],
    },
    House {
        name: "chunkmap/upkeep",
        storeys: &[&["check", "cluster", "rebalance", "stats"], &["compact"]],
        steps_up: &[],
    },
    House {
        name: "chunkmap/write",
        storeys: &[
            &["lock", "value"],
            &["entry", "sorted_run"],
            &["put", "update"],
            &["add", "batch", "removal"],
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
            // A change and what is logged of it, behind one door.
            &["edit", "logged", "map"],
            &["fuzzing"],
        ],
        steps_up: &[],
    },
    House {
        name: "ptree",
        storeys: &[
            &["log", "object", "options"],
            &["error", "sums"],
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
            &["engine", "error", "rollup", "schema", "value"],
            &["aggregate"],
            &["row"],
            &["db_options", "hash_options", "ordered_options", "rollup_options", "tree_options"],
            &["stored_options"],
            &["formats", "key_versions"],
            &["directory", "table"],
            &["db_log", "log_reader"],
            &["home"],
            &["hash_table", "no_rollups", "ordered_table", "rollup_table", "tree_table"],
            &["any_table"],
            &["transaction"],
            &["rows"],
            &["db"],
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

/// The modules of a crate or a folder, and the names after its path in each.
fn uses(name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let (name, folder) = name.split_once('/').unwrap_or((name, ""));
    let sources = Path::new("crates").join(name).join("src").join(folder);
    let folders = folder.split('/').filter(|folder| !folder.is_empty());
    let prefix: Vec<_> = std::iter::once("crate").chain(folders).collect();
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
        let used = names_behind(&prefix, &production(words(&read(&path))).words);
        let of_others = used.into_iter().filter(|used| *used != module);
        uses.entry(module.clone()).or_default().extend(of_others);
    }
    uses
}

/// The next name of each path that begins with a prefix.
fn names_behind(prefix: &[&str], words: &[Word]) -> BTreeSet<String> {
    let prefix: Vec<_> = prefix.iter().flat_map(|name| [*name, ":", ":"]).collect();
    let mut names = BTreeSet::new();
    for at in 0..words.len() {
        if !ends_with(&words[..at], &prefix) {
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
    let names = names_behind(&["crate"], &production(words(source)).words);
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(names, ["G", "a", "c", "d", "h", "k", "n"]);
    let of_folder = names_behind(&["crate", "d"], &words("use crate::d::{e, F}; use crate::g::d;"));
    assert!(of_folder.iter().eq(["F", "e"]));
}

//! libpmemobj's own trees, each in a process of its own: `bench-vs/pmdk` takes commands on its
//! standard input and times them itself, so that its turns interleave with ours.
//!
//! Commits outlive the process by flushes of cache lines, and power loss by msync: the library's
//! two modes, forced here, since it would choose by the kind of memory.

use std::io::{BufRead, Write};
use std::process::Command;
use std::time::Duration;

use parking_lot::Mutex;

use super::store::{
    CommitLevel, Limit, TreeEngine, TreeEntry, TreeKey, TreePhase, TreePlace, TreeStore, TreeValue,
    Writers,
};
use crate::harness::*;

pub(crate) const ENGINES: [TreeEngine; 3] = [
    TreeEngine { name: "pmdk-btree", open: |place| open(place, "btree"), recover: None },
    TreeEngine { name: "pmdk-crit-bit", open: |place| open(place, "ctree"), recover: None },
    TreeEngine { name: "pmdk-red-black", open: |place| open(place, "rbtree"), recover: None },
];

const PROGRAM: &str = "target/pmdk-trees";

const POOL_BYTES: usize = 64 << 20;
/// Room for each entry: 144 bytes at most in a node and a value, and the undo log of one
/// transaction around all inserts.
const ROOM_BYTES: usize = 1000;

/// A commit syncs the disk a dozen times.
const SYNCS: Limit = Limit { most: 100, why: "each commit calls msync many times" };
const REMOVES: Limit =
    Limit { most: 10_000, why: "in one transaction they take time in the square of their number" };

pub(crate) fn foreign() -> Foreign {
    Foreign::new("pmdk", "libpmemobj-dev, pkg-config, make and gcc", "--pmdk")
}

/// Builds the program and adds its engines; else answers why they are left out.
pub(crate) fn join(engines: &mut Vec<TreeEngine>, foreign: &Foreign, make: &str) -> Option<String> {
    let what = format!("{make} cannot build {}", foreign.folder.display());
    let built = foreign.run(make, &["--silent"], &what);
    engines.extend(built.iter().flat_map(|()| ENGINES));
    let names = ENGINES.map(|engine| engine.name).join(", ");
    built.err().map(|error| format!("{names}: {error}"))
}

fn open(place: &TreePlace, tree: &str) -> Result<Box<dyn TreeStore>> {
    let pool = place.dir.join("pool");
    let bytes = POOL_BYTES + place.keys * ROOM_BYTES;
    let mut command = Command::new(foreign().folder.join(PROGRAM));
    command.arg(tree).arg(pool).arg(bytes.to_string());
    let is_buffered = place.level == CommitLevel::Buffered;
    command.env("PMEM_IS_PMEM_FORCE", if is_buffered { "1" } else { "0" });
    // A crit-bit tree's removes stay linear.
    let removes = (tree != "ctree").then_some(REMOVES);
    Ok(Box::new(PmdkTree { driver: Mutex::new(Driver::start(command)?), removes }))
}

struct PmdkTree {
    driver: Mutex<Driver>,
    removes: Option<Limit>,
}

impl PmdkTree {
    fn ask(&self, verb: &str, entries: &[TreeEntry]) -> Result<Vec<TreeEntry>> {
        self.driver.lock().ask(verb, entries)
    }

    fn tell(&self, verb: &str, entries: &[TreeEntry], read: &mut dyn FnMut(&[u8])) -> Result {
        self.ask(verb, entries)?.iter().for_each(|(_, value)| read(value));
        Ok(())
    }
}

const NO_VALUE: TreeValue = [0; 8];

impl TreeStore for PmdkTree {
    fn remove(&mut self, key: &TreeKey) -> Result<Option<TreeValue>> {
        let removed = self.ask("remove-each", &[(*key, NO_VALUE)])?;
        Ok(removed.first().map(|&(_, value)| value))
    }

    fn insert_each(&mut self, entries: &[TreeEntry]) -> Result {
        self.ask("insert-each", entries).map(drop)
    }

    fn remove_each(&mut self, entries: &[TreeEntry], removed: &mut dyn FnMut(&[u8])) -> Result {
        self.tell("remove-each", entries, removed)
    }

    fn insert_all(&mut self, entries: &[TreeEntry]) -> Result {
        self.ask("insert-all", entries).map(drop)
    }

    fn remove_all(&mut self, entries: &[TreeEntry], removed: &mut dyn FnMut(&[u8])) -> Result {
        self.tell("remove-all", entries, removed)
    }

    fn get_all(&self, entries: &[TreeEntry], read: &mut dyn FnMut(&[u8])) -> Result {
        self.tell("get", entries, read)
    }

    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result {
        self.ask("iterate", &[])?.iter().for_each(|(key, value)| read(key, value));
        Ok(())
    }

    fn writers(&self) -> Option<&dyn Writers> {
        Some(self)
    }

    fn elapsed(&self) -> Option<Duration> {
        Some(self.driver.lock().elapsed)
    }

    fn limit(&self, phase: TreePhase) -> Option<Limit> {
        if phase == TreePhase::Sync { Some(SYNCS) } else { self.removes }
    }

    fn bytes(&self) -> Option<u64> {
        let answer = self.ask("bytes", &[]).ok()?;
        answer.first().map(|&(_, bytes)| u64::from_ne_bytes(bytes))
    }
}

impl Writers for PmdkTree {
    fn insert(&self, entry: &TreeEntry) -> Result {
        self.ask("insert-each", std::slice::from_ref(entry)).map(drop)
    }
}

struct Driver {
    process: Process,
    elapsed: Duration,
}

impl Driver {
    fn start(mut command: Command) -> Result<Driver> {
        let program = command.get_program().to_string_lossy().into_owned();
        let process = Process::start("the tree's process", &mut command)
            .map_err(|error| format!("{program} cannot be started: {error}"))?;
        let mut driver = Driver { process, elapsed: Duration::ZERO };
        // It answers once when the pool is there.
        driver.answer("create")?;
        Ok(driver)
    }

    fn ask(&mut self, verb: &str, entries: &[TreeEntry]) -> Result<Vec<TreeEntry>> {
        let command = encode(verb, entries)?;
        match self.process.commands.write_all(&command) {
            Ok(()) => self.answer(verb),
            // Its last answer says why it ended.
            Err(error) => self.answer(verb).and(Err(error.into())),
        }
    }

    fn answer(&mut self, verb: &str) -> Result<Vec<TreeEntry>> {
        let (elapsed, entries) = read_answer(&mut self.process.answers, verb)?;
        self.elapsed = elapsed;
        Ok(entries)
    }
}

/// A line of the verb and the number of entries, then the entries. Keys are one larger there: the
/// B-tree takes a key of 0 for an empty place.
fn encode(verb: &str, entries: &[TreeEntry]) -> Result<Vec<u8>> {
    let mut command = format!("{verb} {}\n", entries.len()).into_bytes();
    for (key, value) in entries {
        let key = u64::from_be_bytes(*key).checked_add(1).ok_or("it cannot have the last key")?;
        command.extend(key.to_ne_bytes());
        command.extend(value);
    }
    Ok(command)
}

fn read_answer(answers: &mut impl BufRead, verb: &str) -> Result<(Duration, Vec<TreeEntry>)> {
    let mut line = String::new();
    if answers.read_line(&mut line)? == 0 {
        bail!("{verb}: the program ended without an answer");
    }
    let line = line.trim_end();
    if let Some(what) = line.strip_prefix("error ") {
        bail!("{verb}: {what}");
    }
    let (elapsed, count) = line
        .split_once(' ')
        .and_then(|(elapsed, count)| Some((elapsed.parse().ok()?, count.parse::<usize>().ok()?)))
        .ok_or_else(|| format!("{verb}: {line:?} is no answer: rebuild bench-vs/pmdk"))?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let [mut key, mut value] = [[0; 8]; 2];
        answers.read_exact(&mut key)?;
        answers.read_exact(&mut value)?;
        entries.push((u64::from_ne_bytes(key).wrapping_sub(1).to_be_bytes(), value));
    }
    Ok((Duration::from_nanos(elapsed), entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: TreeEntry = ([0, 0, 0, 0, 0, 0, 1, 0], *b"8 bytes!");

    fn fake(script: &str) -> Result<Driver> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Driver::start(command)
    }

    fn message<T>(result: Result<T>) -> String {
        result.err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn a_key_goes_out_one_larger_and_comes_back_as_it_was() {
        let mut command =
            encode("get", &[([0; 8], NO_VALUE), ENTRY]).expect("there is a key beyond");
        let entries = command.split_off(6);
        assert_eq!(command, b"get 2\n");
        assert_eq!(entries[..8], 1u64.to_ne_bytes());
        assert_eq!(entries[16..24], 257u64.to_ne_bytes());
        let answer = [&b"1500 2\n"[..], &entries].concat();
        let (elapsed, entries) = read_answer(&mut &answer[..], "get").expect("it is an answer");
        assert_eq!(elapsed, Duration::from_nanos(1500));
        assert_eq!(entries, [([0; 8], NO_VALUE), ENTRY]);
        assert_eq!(message(encode("get", &[([255; 8], NO_VALUE)])), "it cannot have the last key");
    }

    #[test]
    fn an_answer_that_is_none_is_an_error_that_names_its_command() {
        for (answer, expected) in [
            (&b""[..], "get: the program ended without an answer"),
            (b"error out of memory\n", "get: out of memory"),
            (b"12\n", "get: \"12\" is no answer: rebuild bench-vs/pmdk"),
            (b"soon 1\n", "get: \"soon 1\" is no answer: rebuild bench-vs/pmdk"),
            (b"1 1\n0123456789", "failed to fill whole buffer"),
        ] {
            assert_eq!(message(read_answer(&mut &*answer, "get")), expected);
        }
    }

    #[test]
    fn a_process_answers_until_it_ends() {
        // The key is 257, as a little-endian machine writes it.
        let script = r"echo 0 0
            read verb count; test $verb = iterate || exit 1
            printf '7 1\n\001\001\000\000\000\000\000\0008 bytes!'
            read verb count; echo error the pool is full";
        let driver = Mutex::new(fake(script).expect("it starts"));
        let pmdk = PmdkTree { driver, removes: None };
        let mut entries = Vec::new();
        pmdk.iterate(&mut |key, value| entries.push((key.to_vec(), value.to_vec())))
            .expect("it answers");
        assert_eq!(entries, [(ENTRY.0.to_vec(), ENTRY.1.to_vec())]);
        assert_eq!(pmdk.elapsed(), Some(Duration::from_nanos(7)));
        let full = message(pmdk.get_all(&[], &mut |_| ()));
        assert_eq!(full, "get: the pool is full");
        assert!(!message(pmdk.get_all(&[], &mut |_| ())).is_empty(), "it has ended");
    }

    #[test]
    fn a_pool_that_is_not_created_says_why() {
        assert_eq!(message(fake("echo error no room; exit 1")), "create: no room");
        let absent = Driver::start(Command::new("pmdk-trees-that-is-not-there"));
        assert!(message(absent).starts_with("pmdk-trees-that-is-not-there cannot be started: "));
    }

    #[test]
    fn what_cannot_be_built_is_left_out_with_a_sentence() {
        let folder = tempfile::tempdir().expect("a folder");
        let foreign = Foreign { folder: folder.path().to_owned(), ..foreign() };
        let mut engines = Vec::new();
        let absent = join(&mut engines, &foreign, "not-there").expect("it is not there");
        let engines_named = "pmdk-btree, pmdk-crit-bit, pmdk-red-black: ";
        assert!(absent.starts_with(&format!("{engines_named}not-there cannot be")));
        assert!(absent.contains("install libpmemobj-dev"), "{absent}");
        // A program that ends with an error, as `make` does in a folder without a Makefile.
        let failed = join(&mut engines, &foreign, "false").expect("it fails");
        assert!(failed.contains("false cannot build "), "{failed}");
        assert!(engines.is_empty());
        assert_eq!(join(&mut engines, &foreign, "true"), None);
        assert_eq!(engines.len(), 3);
    }
}

//! Engines of a program's own in `sapwood-bench durability`.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use sapwood_bench::Result;
use sapwood_bench::durability::{DurableEngine, DurableStore, Level, run_with};

/// A map that counts its syncs, and loses what is put to it where it is told to.
#[derive(Default)]
struct Map {
    entries: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    loses: bool,
}

static SYNCS: AtomicU64 = AtomicU64::new(0);

impl DurableStore for Map {
    fn put(&self, key: &[u8], value: &[u8]) -> Result {
        let value = if self.loses { &value[1..] } else { value };
        self.entries.lock().expect("no panic").insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn load(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result {
        self.entries.lock().expect("no panic").extend(entries.iter().cloned());
        Ok(())
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result {
        if let Some(value) = self.entries.lock().expect("no panic").get(key) {
            read(value);
        }
        Ok(())
    }

    fn sync(&self) -> Result {
        SYNCS.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn settle(&self) -> Result {
        Ok(())
    }
}

fn with_maps(flags: &str) -> String {
    let engines = [
        DurableEngine {
            name: "map",
            open: |place| {
                Ok((place.level == Level::Async)
                    .then(|| Box::<Map>::default() as Box<dyn DurableStore>))
            },
        },
        DurableEngine {
            name: "sieve",
            open: |_| Ok(Some(Box::new(Map { loses: true, ..Map::default() }))),
        },
    ];
    let all = "--smoke --part levels --data small --writers 2 --engines map,sieve --runs 1";
    crate::run_with(&format!("{all} {flags}"), |args, out| run_with(args, &engines, out))
}

#[test]
fn an_engine_without_a_thread_is_synced_beside_its_writers() {
    let before = SYNCS.load(Ordering::SeqCst);
    let printed = with_maps("--levels async,sync --seconds 0.25");
    // A run is longer than the time between two syncs: there is one, however late the thread wakes.
    assert!(SYNCS.load(Ordering::SeqCst) > before, "{printed}");
    assert!(printed.contains("left out: map has no level sync"), "{printed}");
}

#[test]
fn a_peer_that_loses_values_has_no_figures() {
    let printed = with_maps("--levels async");
    assert!(printed.contains("put 8 B, async"), "{printed}");
    let lost = "sieve, put 8 B, async on 2 threads: a key has lost its value";
    assert!(printed.contains(lost), "{printed}");
    assert!(!printed.lines().any(|line| line.contains("sieve  ")), "{printed}");
}

//! A journal that remembers what it hears, and does it again.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use sapwood_engine::{Effect, Journal};

/// The entries of a table.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// An effect that outlives its change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// The entry has this value.
    Put(Vec<u8>),
    /// The value has these bytes from there on.
    Write(usize, Vec<u8>),
    /// There is no entry.
    Remove,
}

/// All changes of a table, in the order in which they were told.
#[derive(Debug, Default)]
pub struct Heard(Mutex<Vec<(Vec<u8>, Done)>>);

impl Heard {
    /// One that has heard nothing, and the same as a journal.
    pub fn journal() -> (Arc<Heard>, Arc<dyn Journal>) {
        let heard = Arc::<Heard>::default();
        (Arc::clone(&heard), heard)
    }

    /// What was heard so far.
    pub fn all(&self) -> MutexGuard<'_, Vec<(Vec<u8>, Done)>> {
        self.0.lock().expect("no panic")
    }

    /// Takes what was heard so far.
    pub fn take(&self) -> Vec<(Vec<u8>, Done)> {
        std::mem::take(&mut self.all())
    }
}

impl Journal for Heard {
    fn log(&self, key: &[u8], effect: Effect<'_>) {
        let done = match effect {
            Effect::Put(value) => Done::Put(value.to_vec()),
            Effect::Write { offset, bytes } => Done::Write(offset, bytes.to_vec()),
            Effect::Remove => Done::Remove,
        };
        self.all().push((key.to_vec(), done));
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Does changes again.
pub fn replay(entries: &mut Entries, heard: &[(Vec<u8>, Done)]) {
    for (key, done) in heard {
        match done {
            Done::Put(value) => {
                entries.insert(key.clone(), value.clone());
            }
            Done::Write(offset, bytes) => {
                let value = entries.get_mut(key).and_then(|value| value.get_mut(*offset..));
                if let Some(value) = value.and_then(|value| value.get_mut(..bytes.len())) {
                    value.copy_from_slice(bytes);
                }
            }
            Done::Remove => {
                entries.remove(key);
            }
        }
    }
}

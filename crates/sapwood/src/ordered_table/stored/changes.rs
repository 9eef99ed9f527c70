//! What the log has of the keys of a block, behind the snapshot that the block is of.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::{Arc, OnceLock};

use sapwood_engine::Effect;
use sapwood_wal::Block;

use crate::{Direction, Result};

/// The changes of the keys of a block; the last of each key, or what they come to.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    of_keys: BTreeMap<Box<[u8]>, Change>,
    /// Once it was asked for.
    difference: OnceLock<Totals>,
}

#[derive(Debug)]
enum Change {
    Put(Vec<u8>),
    Removed,
    /// Bytes of the value that the block has, in their order.
    Written(Vec<(usize, Box<[u8]>)>),
}

/// Entries that lie together.
pub(crate) enum Run<'r> {
    /// Those of the block, of which the log has no change.
    Unchanged(Range<usize>),
    /// An entry as the log has it.
    Changed(&'r [u8], &'r [u8]),
}

/// How many entries there are, and bytes; of a difference, which may be negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(super) entries: i64,
    pub(super) key_bytes: i64,
    pub(super) value_bytes: i64,
}

impl Totals {
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries += 1;
        self.key_bytes += key.len() as i64;
        self.value_bytes += value.len() as i64;
    }

    pub(super) fn plus(self, other: Totals) -> Totals {
        Totals {
            entries: self.entries + other.entries,
            key_bytes: self.key_bytes + other.key_bytes,
            value_bytes: self.value_bytes + other.value_bytes,
        }
    }

    pub(super) fn minus(self, other: Totals) -> Totals {
        Totals {
            entries: self.entries - other.entries,
            key_bytes: self.key_bytes - other.key_bytes,
            value_bytes: self.value_bytes - other.value_bytes,
        }
    }
}

impl Changes {
    /// Notes a change behind those before.
    pub(super) fn note(&mut self, key: &[u8], effect: Effect<'_>) {
        let known = self.of_keys.get_mut(key);
        let change = match (effect, known) {
            (Effect::Put(value), _) => Change::Put(value.to_vec()),
            (Effect::Remove, _) => Change::Removed,
            (Effect::Write { offset, bytes }, None) => {
                Change::Written(vec![(offset, bytes.into())])
            }
            (Effect::Write { offset, bytes }, Some(Change::Written(writes))) => {
                // The same bytes once more: those written before are of no use.
                writes.retain(|(at, before)| *at != offset || before.len() != bytes.len());
                return writes.push((offset, bytes.into()));
            }
            (Effect::Write { offset, bytes }, Some(Change::Put(value))) => {
                return write(value, offset, bytes);
            }
            (Effect::Write { .. }, Some(Change::Removed)) => return,
        };
        self.of_keys.insert(key.into(), change);
    }

    /// The value of a key that the log has changes of, where there is one; `Err` of a key that it has none of.
    pub(super) fn value(
        &self,
        key: &[u8],
        block: &Block,
    ) -> std::result::Result<sapwood_wal::Result<Option<Vec<u8>>>, ()> {
        let change = self.of_keys.get(key).ok_or(())?;
        let stored = || match block.search(key)? {
            (entry, true) => {
                let mut value = Vec::new();
                block.value(entry, &mut value)?;
                Ok(Some(value))
            }
            (_, false) => Ok(None),
        };
        Ok(match change {
            Change::Put(value) => Ok(Some(value.clone())),
            Change::Removed => Ok(None),
            Change::Written(writes) => {
                stored().map(|value| value.map(|value| with_writes(value, writes)))
            }
        })
    }

    /// By how much the changes make the entries of the block more or less; the block is read the first time.
    pub(super) fn difference(
        &self,
        block: impl FnOnce() -> Result<Arc<Block>>,
        named: impl FnOnce(sapwood_wal::Result<Totals>) -> Result<Totals>,
    ) -> Result<Totals> {
        if let Some(difference) = self.difference.get() {
            return Ok(*difference);
        }
        let difference = named(self.count(&*block()?))?;
        Ok(*self.difference.get_or_init(|| difference))
    }

    fn count(&self, block: &Block) -> sapwood_wal::Result<Totals> {
        let mut difference = Totals::default();
        let mut value = Vec::new();
        for (key, change) in &self.of_keys {
            let (entry, is_there) = block.search(key)?;
            if let Change::Written(_) = change {
                continue;
            }
            if is_there {
                block.value(entry, &mut value)?;
                let mut before = Totals::default();
                before.add(key, &value);
                difference = difference.minus(before);
            }
            if let Change::Put(value) = change {
                difference.add(key, value);
            }
        }
        Ok(difference)
    }
}

/// Shows the entries of a block within bounds, with what the log has of its keys, in order.
pub(crate) fn runs<B>(
    block: &Block,
    changes: Option<&Changes>,
    (begin, end): (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
    mut show: impl FnMut(Run<'_>) -> sapwood_wal::Result<ControlFlow<B>>,
) -> sapwood_wal::Result<ControlFlow<B>> {
    let place = |key: &[u8], behind: bool| -> sapwood_wal::Result<usize> {
        let (entry, is_there) = block.search(key)?;
        Ok(entry + usize::from(is_there && behind))
    };
    let from = match begin {
        Bound::Included(key) => place(key, false)?,
        Bound::Excluded(key) => place(key, true)?,
        Bound::Unbounded => 0,
    };
    let to = match end {
        Bound::Included(key) => place(key, true)?,
        Bound::Excluded(key) => place(key, false)?,
        Bound::Unbounded => block.entries(),
    };
    let mut rest = from..to.max(from);
    let changed = changes.filter(|_| is_range(begin, end));
    let mut changed = changed.map(|changes| changes.of_keys.range::<[u8], _>((begin, end)));
    let mut value = Vec::new();
    loop {
        let next = changed.as_mut().and_then(|changed| match direction {
            Direction::Ascending => changed.next(),
            Direction::Descending => changed.next_back(),
        });
        let Some((key, change)) = next else { break };
        let (entry, is_there) = block.search(key)?;
        let behind = entry + usize::from(is_there);
        let before = match direction {
            Direction::Ascending => std::mem::replace(&mut rest.start, behind)..entry,
            Direction::Descending => behind..std::mem::replace(&mut rest.end, entry),
        };
        if !before.is_empty()
            && let ControlFlow::Break(end) = show(Run::Unchanged(before))?
        {
            return Ok(ControlFlow::Break(end));
        }
        let now = match change {
            Change::Put(value) => Some(&value[..]),
            Change::Written(writes) if is_there => {
                block.value(entry, &mut value)?;
                value = with_writes(std::mem::take(&mut value), writes);
                Some(&value[..])
            }
            Change::Removed | Change::Written(_) => None,
        };
        if let Some(now) = now
            && let ControlFlow::Break(end) = show(Run::Changed(key, now))?
        {
            return Ok(ControlFlow::Break(end));
        }
    }
    match rest.is_empty() {
        true => Ok(ControlFlow::Continue(())),
        false => show(Run::Unchanged(rest)),
    }
}

/// Whether bounds have keys between them, or may have.
fn is_range(begin: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    match (begin, end) {
        (Bound::Included(begin), Bound::Included(end)) => begin <= end,
        (
            Bound::Included(begin) | Bound::Excluded(begin),
            Bound::Included(end) | Bound::Excluded(end),
        ) => begin < end,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
    }
}

fn with_writes(mut value: Vec<u8>, writes: &[(usize, Box<[u8]>)]) -> Vec<u8> {
    for (offset, bytes) in writes {
        write(&mut value, *offset, bytes);
    }
    value
}

/// What does not fit is as it will be.
pub(crate) fn write(value: &mut [u8], offset: usize, bytes: &[u8]) {
    if let Some(there) = value.get_mut(offset..offset.saturating_add(bytes.len())) {
        there.copy_from_slice(bytes);
    }
}

//! Ours: the ordered engine as the facade uses it.

use std::ops::{Bound, ControlFlow};

use sapwood_chunkmap::{ChunkMap, Direction, Entry, ValueMut};

use crate::consume::consume;
use crate::ordered::in_process::Ordered;
use crate::ordered::load::Accounted;
use crate::ordered::workload::{End, ScanForm};
use crate::tally::Tally;

pub(crate) struct Sapwood(ChunkMap);

/// Why no call here can fail: keys and values are within bounds, nothing calls back, no budget.
const SOUND: &str = "keys and values are within bounds and the table has no budget";

impl Ordered for Sapwood {
    const NAME: &'static str = super::SAPWOOD;
    const POPS: bool = true;
    const BATCHES: bool = true;

    fn new() -> Self {
        Sapwood(ChunkMap::new())
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) {
        self.0.put(key, value).expect(SOUND);
    }

    #[inline]
    fn put_if_absent(&self, key: &[u8], value: &[u8]) {
        self.0.put_if_absent(key, value).expect(SOUND);
    }

    #[inline]
    fn put_if_absent_or_update(&self, key: &[u8], value: &[u8]) {
        self.0.put_if_absent_or_update(key, value, increment).expect(SOUND);
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Option<u64> {
        self.0.get_with(key, consume).expect(SOUND)
    }

    #[inline]
    fn get_copy(&self, key: &[u8]) -> Option<u64> {
        self.0.get(key).expect(SOUND).map(|value| consume(&value))
    }

    #[inline]
    fn get_many(&self, keys: &[&[u8]]) -> Tally {
        let mut tally = Tally::default();
        let add =
            |_, value: Option<&[u8]>| value.into_iter().for_each(|value| tally.add(consume(value)));
        self.0.get_many(keys, add).expect(SOUND);
        tally
    }

    fn remove(&self, key: &[u8]) -> bool {
        self.0.remove(key).expect(SOUND)
    }

    fn ascend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let bounds = (Bound::Included(from), Bound::Unbounded);
        match form {
            ScanForm::Iterator => iterate(self.0.range(bounds), limit),
            _ => stream(&self.0, bounds, Direction::Ascending, limit, form),
        }
    }

    fn descend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally {
        let bounds = (Bound::Unbounded, Bound::Included(from));
        match form {
            ScanForm::Iterator => iterate(self.0.range(bounds).rev(), limit),
            _ => stream(&self.0, bounds, Direction::Descending, limit, form),
        }
    }

    #[inline]
    fn first(&self) -> Tally {
        let mut tally = Tally::default();
        if let Some(first) = self.0.first().expect(SOUND) {
            tally.add(consume(first.key()).wrapping_add(consume(first.value())));
        }
        tally
    }

    #[inline]
    fn pop(&self, end: End) -> Option<u64> {
        let popped = match end {
            End::First => self.0.pop_first(),
            End::Last => self.0.pop_last(),
        };
        popped.expect(SOUND).map(|(_, value)| consume(&value))
    }

    fn maps_its_memory(&self) -> bool {
        true
    }

    fn accounted(&self) -> Option<Accounted> {
        let stats = self.0.stats();
        Some(Accounted {
            used_bytes: stats.reserved_bytes - stats.free_bytes,
            overhead_bytes: stats.overhead_bytes,
            free_bytes: stats.free_bytes,
            pages: stats.pages,
        })
    }

    fn moved_bytes(&self) -> Option<u64> {
        Some(self.0.stats().moved_bytes)
    }
}

fn increment(value: &mut ValueMut<'_>) {
    let head = value.first_chunk_mut::<8>().expect("values have at least 8 bytes");
    *head = u64::from_le_bytes(*head).wrapping_add(1).to_le_bytes();
}

type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

#[inline]
fn stream(
    map: &ChunkMap,
    bounds: Bounds<'_>,
    direction: Direction,
    limit: usize,
    form: ScanForm,
) -> Tally {
    let mut tally = Tally::default();
    let mut left = limit;
    let mut next = |sum| {
        tally.add(sum);
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    // Whether the scan broke off or ran out does not matter here.
    let _ = match form {
        ScanForm::Keys => map.scan_keys(bounds, direction, |key| next(consume(key))),
        _ => map
            .scan(bounds, direction, |key, value| next(consume(key).wrapping_add(consume(value)))),
    }
    .expect(SOUND);
    tally
}

#[inline]
fn iterate<'a>(
    entries: impl Iterator<Item = sapwood_chunkmap::Result<Entry<'a>>>,
    limit: usize,
) -> Tally {
    let mut tally = Tally::default();
    for entry in entries.take(limit) {
        let entry = entry.expect(SOUND);
        tally.add(consume(entry.key()).wrapping_add(consume(entry.value())));
    }
    tally
}

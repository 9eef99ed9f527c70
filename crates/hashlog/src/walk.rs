//! How is everything visited in bucket order?
//!
//! Slot by slot, following each chain: weakly consistent.

use std::ops::ControlFlow;
use std::sync::PoisonError;

use sapwood_mem::boundary::Pin;
use sapwood_mem::sync::Ordering;

use crate::address::Address;
use crate::bucket::Bucket;
use crate::cold::{self, Coming, Extent, Fetched};
use crate::core::Core;
use crate::error::Result;
use crate::layout::{bucket, slot};
use crate::record::Form;
use crate::scan::SENT;

impl Core {
    /// Visits the entries of some buckets. The index does not grow meanwhile.
    pub(crate) fn walk_buckets<F: Form, B>(
        &self,
        (part, parts): (usize, usize),
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let _life = self.life.share();
        let _still = self.index.growing.read().unwrap_or_else(PoisonError::into_inner);
        let share = Share { part, parts };
        let count = self.index.count();
        let (mut chains, mut words) = (Vec::new(), Vec::new());
        let mut coming = Coming::default();
        let most = cold::in_flight_max(self.options.memory_budget);
        let mut group = 0;
        while group < count {
            let limit = (group + GROUP).min(count);
            if !(group..limit).any(|number| share.may_own(number, self.index.bucket(number))) {
                group = limit;
                continue;
            }
            let pin = self.log.epochs.pin();
            // Two passes, so that the records' lines are on their way.
            for number in group..limit {
                self.index.prefetch_bucket((number + GROUP).min(count - 1));
                self.for_each_slot(number, |word| self.log.prefetch(&pin, slot::address(word)));
            }
            for number in group..limit {
                if !share.may_own(number, self.index.bucket(number)) {
                    continue;
                }
                let depth = self.index.bucket(number).link().depth();
                self.slots_at_once(number, &mut words);
                for word in &words {
                    let mut chain = Chain::new(*word, number, depth, share);
                    let flow = chain.visit::<F, B>(self, &pin, visit);
                    if flow.is_break() {
                        return Ok(flow);
                    }
                    if chain.wanted.is_some() {
                        chains.push(chain);
                    }
                }
            }
            drop(pin);
            group = limit;
            if chains.len() >= SENT {
                let flow = self.follow_chains::<F, B>(&mut chains, &mut coming, most, visit)?;
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        self.follow_chains::<F, B>(&mut chains, &mut coming, 0, visit)
    }

    /// The words of a bucket's slots as they were at one moment, so that a key that leaves one slot
    /// and comes back in another is in one of them: read until two readings are the same. No word
    /// ever comes back, since no address is given twice.
    fn slots_at_once(&self, number: u64, words: &mut Vec<u64>) {
        loop {
            words.clear();
            self.for_each_slot(number, |word| words.push(word & !slot::FROZEN));
            let (mut at, mut same) = (0, true);
            self.for_each_slot(number, |word| {
                same &= words.get(at) == Some(&(word & !slot::FROZEN));
                at += 1;
            });
            if same && at == words.len() {
                return;
            }
        }
    }

    /// Words of the slots in use of a chain of buckets.
    pub(crate) fn for_each_slot(&self, number: u64, mut each: impl FnMut(u64)) {
        for bucket in self.index.chain(self.index.bucket(number)) {
            for at in 0..bucket::SLOTS {
                let word = bucket.slot(at).load(Ordering::Acquire);
                if word & slot::ADDRESS_MASK != 0 && word & slot::TENTATIVE == 0 {
                    each(word);
                }
            }
        }
    }

    /// Follows chains whose next record must be read, until no more than `most` are left.
    fn follow_chains<F: Form, B>(
        &self,
        chains: &mut Vec<Chain>,
        coming: &mut Coming<Chain>,
        most: usize,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        loop {
            while coming.len() > most {
                let Some((mut chain, record)) = coming.receive::<F>(&self.log, Extent::Whole)
                else {
                    break;
                };
                chain.fetched.push(record?);
                let pin = self.log.epochs.pin();
                let flow = chain.visit::<F, B>(self, &pin, visit);
                if flow.is_break() {
                    return Ok(flow);
                }
                if chain.wanted.is_some() {
                    chains.push(chain);
                }
            }
            if chains.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            self.cold_reads.add(chains.len() as i64);
            let wanted = chains.drain(..).filter_map(|chain| {
                let wanted = chain.wanted?;
                Some((chain, wanted))
            });
            coming.send(&self.log, wanted.collect());
        }
    }
}

/// Buckets whose lines are fetched together.
const GROUP: u64 = 8;

/// Part of the keys, by bits of their hashes: the same keys however many buckets there are.
#[derive(Clone, Copy)]
struct Share {
    part: usize,
    parts: usize,
}

impl Share {
    const BITS: u32 = 16;

    fn owns(self, hash: u64) -> bool {
        // Reversed, so that few parts are contiguous runs of many low bits.
        let place = usize::from((hash as u16).reverse_bits());
        (place * self.parts) >> Self::BITS == self.part
    }

    /// Whether all keys of a bucket of this depth are in the same part.
    fn is_whole(self, depth: u32) -> bool {
        self.parts == 1 || depth >= Self::BITS
    }

    fn may_own(self, number: u64, bucket: &Bucket) -> bool {
        self.parts == 1 || !self.is_whole(bucket.link().depth()) || self.owns(number)
    }
}

/// A chain that is being followed, from its newest record at one moment.
struct Chain {
    word: u64,
    number: u64,
    depth: u32,
    share: Share,
    next: Address,
    /// Keys met so far, of chains of more than one record.
    seen: Vec<Vec<u8>>,
    fetched: Fetched,
    wanted: Option<Address>,
}

impl Chain {
    fn new(word: u64, number: u64, depth: u32, share: Share) -> Chain {
        let (next, seen, fetched) = (slot::address(word), Vec::new(), Fetched::default());
        Chain { word, number, depth, share, next, seen, fetched, wanted: None }
    }

    /// Whether the slot is the one that the key is looked for in: another may share its chain.
    fn owns(&self, hash: u64) -> bool {
        hash & ((1 << self.depth) - 1) == self.number
            && slot::agrees(self.word, slot::tag_of(hash, self.depth))
            && self.share.owns(hash)
    }

    fn visit<F: Form, B>(
        &mut self,
        core: &Core,
        pin: &Pin<'_>,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.wanted = None;
        let (head, read_only) = (core.log.head(), core.log.read_only());
        while self.next >= core.log.begin() {
            let address = self.next;
            if address >= head {
                let record = core.log.record(pin, address);
                self.next = record.previous();
                let alone = address == slot::address(self.word) && self.next < core.log.begin();
                let tombstone = record.is_tombstone();
                if alone && tombstone {
                    return ControlFlow::Continue(());
                }
                // Even alone it may be what is left of a chain that was dealt out to two buckets.
                if !self.owns(F::hash_of(record)) {
                    continue;
                }
                let still = address < read_only;
                let value = loop {
                    match F::value(record, || still) {
                        Some(value) => break value,
                        // A writer is copying a value in: a matter of nanoseconds.
                        None => std::hint::spin_loop(),
                    }
                };
                let flow = F::with_key(record, |key| {
                    self.meet(key, value.as_ref(), tombstone, alone, visit)
                });
                if let Some(answer) = flow {
                    return ControlFlow::Break(answer);
                }
            } else {
                let Some(position) = self.fetched.position(address) else {
                    self.wanted = Some(address);
                    return ControlFlow::Continue(());
                };
                let record = self.fetched.take(position);
                self.next = record.previous();
                let (key, value) = (record.key::<F>(), record.value::<F>());
                if F::key(key).is_ok_and(|key| self.owns(F::hash(key)))
                    && let Some(answer) = self.meet(key, value, record.is_tombstone(), false, visit)
                {
                    return ControlFlow::Break(answer);
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn meet<B>(
        &mut self,
        key: &[u8],
        value: &[u8],
        tombstone: bool,
        alone: bool,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Option<B> {
        if !alone {
            if self.seen.iter().any(|seen| seen == key) {
                return None;
            }
            self.seen.push(key.to_vec());
        }
        if tombstone { None } else { visit(key, value).break_value() }
    }
}

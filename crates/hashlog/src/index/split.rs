//! Growth of the index while operations go on.
//!
//! One bucket at a time, in order: bucket `count - N` is frozen, its slots are dealt out between
//! it and bucket `count` by the lowest bit of their tags, and it thaws one bit deeper. A
//! thread that meets the frozen bucket waits for the dealing of a handful of words; others never
//! notice.
//!
//! A tag loses the bit that its bucket's depth gains. When few are left they are learnt anew from
//! the records, if the whole chain is in memory: as many as its keys have in common. If not, the
//! slot goes on with fewer bits, and one without any is dealt into both buckets: each key still
//! looks into one of them. No split ever reads from a disk.

use sapwood_mem::epoch::Epochs;
use sapwood_mem::sync::{Backoff, Ordering};

use crate::index::bucket::{Bucket, Link};
use crate::index::{Index, LOAD, depth_of};
use crate::record::address::Address;
use crate::record::layout::{bucket, slot};

/// State of the growing thread, under the lock on growth.
#[derive(Default)]
pub(crate) struct Growing {
    /// Began when the number of buckets last ended a round (I-PARITY).
    round: u64,
    words: Vec<u64>,
}

/// Doublings that a pinned thread may see.
const ROUND_DOUBLINGS: u32 = 4;

fn ends_round(count: u64) -> bool {
    count.is_power_of_two() && count.ilog2().is_multiple_of(ROUND_DOUBLINGS)
}

/// Splits in a row, so that one insert does not pay for all.
const SPLITS_MAX: usize = 64;

impl Index {
    /// Splits buckets until the load is right again, if no other thread does. `hashes_of` collects
    /// the hashes of a chain's records; false if some are not in memory. Call it pinned.
    pub(crate) fn grow(
        &self,
        epochs: &Epochs,
        hashes_of: impl Fn(Address, &mut Vec<u64>) -> bool,
    ) -> std::io::Result<()> {
        let Ok(mut growing) = self.growing.try_write() else {
            self.note_whether_behind(0);
            return Ok(());
        };
        let mut emptied = Vec::new();
        let mut outcome = Ok(());
        for _ in 0..SPLITS_MAX {
            if !self.is_overloaded() {
                break;
            }
            let count = self.count();
            if ends_round(count) {
                // Every thread that saw a split of the round before this one must have left.
                if growing.round == 0 {
                    growing.round = epochs.bump();
                }
                if !epochs.is_safe(growing.round) {
                    break;
                }
            }
            outcome = self.split(count, epochs, &hashes_of, &mut growing.words, &mut emptied);
            if outcome.is_err() {
                break;
            }
            if ends_round(count + 1) {
                growing.round = 0;
            }
        }
        if !emptied.is_empty() {
            self.give_overflow(emptied, epochs.bump());
        }
        self.note_whether_behind(growing.round);
        outcome
    }

    /// Notes whether the index has twice the load that it is made for, and the epoch that growth
    /// waits for.
    fn note_whether_behind(&self, round: u64) {
        let behind = self.slots.sum() > 2 * LOAD * self.count();
        self.behind.store(if behind { round.max(1) } else { 0 }, Ordering::Relaxed);
    }

    /// Packs chains into as few buckets as they need, without slots that name nothing from `begin`
    /// up. Call it unpinned, and wait for the epoch it answers before the next: then no thread sees
    /// a chain packed twice.
    pub(crate) fn pack(&self, begin: Address, epochs: &Epochs) -> Option<u64> {
        let Ok(mut growing) = self.growing.try_write() else { return None };
        let words = &mut growing.words;
        let mut emptied = Vec::new();
        for number in 0..self.count() {
            let first = self.bucket(number);
            if first.link().overflow().is_none() {
                continue;
            }
            let _pin = epochs.pin();
            self.freeze(first, words);
            let before = words.len();
            words.retain(|word| slot::address(*word) >= begin);
            self.slots.add(words.len() as i64 - before as i64);
            let mut chain: Vec<u64> =
                self.chain(first).filter_map(|bucket| bucket.link().overflow()).collect();
            emptied.extend(chain.split_off(room(words.len())));
            self.fill(first, words, &chain);
            let link = first.link();
            let packed = Link::new(link.depth(), chain.first().copied(), are_short(words)).0
                | (link.0 ^ bucket::PACKED) & bucket::PACKED;
            // SeqCst: as when a split thaws.
            first.link_word().store(packed, Ordering::SeqCst);
        }
        let epoch = epochs.bump();
        self.give_overflow(emptied, epoch);
        Some(epoch)
    }

    /// Puts a record into the slot of a full bucket that has most tag bits in common with its
    /// hash, and from then on knows no more than these. `link` lets the record name the one that
    /// the slot named. False if that is not what is needed any more, or walks over
    /// all buckets are under way.
    pub(crate) fn share_slot(
        &self,
        hash: u64,
        address: Address,
        link: impl FnOnce(Address),
    ) -> bool {
        let Ok(mut growing) = self.growing.try_write() else { return false };
        let (first, before) = self.locate(hash);
        let depth = before.depth();
        let tag = slot::tag_of(hash, depth);
        self.freeze(first, &mut growing.words);
        let words = &growing.words;
        let slots = self.chain(first).count() * bucket::SLOTS;
        let needed = words.len() == slots && !words.iter().any(|word| slot::agrees(*word, tag));
        let nearest = words.iter().copied().max_by_key(|word| slot::common_bits(*word, tag));
        let shared = match nearest.filter(|_| needed) {
            Some(word) if slot::address(word) < address => {
                link(slot::address(word));
                let known = slot::common_bits(word, tag);
                let new = slot::word(depth, tag, known, address) | slot::FROZEN;
                let all = self
                    .chain(first)
                    .flat_map(|bucket| (0..bucket::SLOTS).map(|at| bucket.slot(at)));
                let frozen = word | slot::FROZEN;
                let place = all.into_iter().find(|slot| slot.load(Ordering::Relaxed) == frozen);
                // Release: pairs with the Acquire of every scan; the record is complete.
                place.expect("it was read there").store(new, Ordering::Release);
                if known < slot::SCAN_BITS {
                    // Release: pairs with the Acquire in `link`.
                    first.link_word().fetch_or(bucket::SHORT, Ordering::Release);
                }
                true
            }
            _ => false,
        };
        self.thaw(first);
        shared
    }

    fn split(
        &self,
        count: u64,
        epochs: &Epochs,
        hashes_of: &impl Fn(Address, &mut Vec<u64>) -> bool,
        words: &mut Vec<u64>,
        emptied: &mut Vec<u64>,
    ) -> std::io::Result<()> {
        self.ensure(count + 1)?;
        let number = count - (1 << count.ilog2());
        let source = self.bucket(number);
        let depth = source.link().depth();
        self.freeze(source, words);
        let mut kept = Vec::with_capacity(words.len());
        let mut moved = Vec::with_capacity(words.len());
        let before = words.len();
        for word in words.drain(..) {
            deal(word, (number, depth), hashes_of, [&mut kept, &mut moved]);
        }

        // What may fail comes first: the bucket thaws as it was.
        let links: Vec<u64> =
            self.chain(source).filter_map(|bucket| bucket.link().overflow()).collect();
        let wanted = room(moved.len()) + room(kept.len()).saturating_sub(links.len());
        let mut fresh = Vec::new();
        for _ in 0..wanted {
            match self.take_overflow(epochs) {
                Ok(number) => fresh.push(number),
                Err(cause) => {
                    self.give_overflow(fresh, 0);
                    self.thaw(source);
                    return Err(cause);
                }
            }
        }
        let mut have = links;
        let moved_chain = fresh.split_off(fresh.len() - room(moved.len()));
        have.extend(fresh);
        let kept_chain: Vec<u64> = have.drain(..room(kept.len())).collect();
        emptied.extend(have);

        let target = self.bucket(count);
        self.fill(target, &moved, &moved_chain);
        target.link_word().store(
            Link::new(depth + 1, moved_chain.first().copied(), are_short(&moved)).0,
            Ordering::Relaxed,
        );
        self.fill(source, &kept, &kept_chain);
        self.set_count(count + 1);
        self.slots.add((kept.len() + moved.len()) as i64 - before as i64);
        debug_assert_eq!(depth_of(count, count + 1), depth + 1);
        // Release: pairs with the Acquire in `link`: a thread that sees it thawed sees slots and
        // count.
        let thawed = Link::new(depth + 1, kept_chain.first().copied(), are_short(&kept));
        source.link_word().store(thawed.0, Ordering::SeqCst);
        Ok(())
    }

    /// Freezes a chain and collects its slots.
    fn freeze(&self, first: &Bucket, words: &mut Vec<u64>) {
        words.clear();
        let mut next = Some(first);
        while let Some(bucket) = next {
            // SeqCst: an inserter puts its tentative slot, then looks here; we freeze, then look
            // at its slot. One sees the other.
            let link = Link(bucket.link_word().fetch_or(bucket::FROZEN, Ordering::SeqCst));
            for at in 0..bucket::SLOTS {
                let slot = bucket.slot(at);
                let backoff = Backoff::new();
                loop {
                    let word = slot.load(Ordering::SeqCst);
                    if word & slot::TENTATIVE != 0 {
                        backoff.wait();
                        continue;
                    }
                    let frozen = word | slot::FROZEN;
                    if slot
                        // AcqRel: pairs with the publication that it freezes, and with scans.
                        .compare_exchange(word, frozen, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
                    {
                        words.extend((word != 0).then_some(word));
                        break;
                    }
                }
            }
            next = link.overflow().map(|number| self.overflow(number));
        }
    }

    /// Undoes a freeze.
    fn thaw(&self, first: &Bucket) {
        for bucket in self.chain(first) {
            for at in 0..bucket::SLOTS {
                // Release: pairs with the Acquire of scans.
                bucket.slot(at).fetch_and(!slot::FROZEN, Ordering::Release);
            }
            // Release: pairs with the Acquire in `link`.
            bucket.link_word().fetch_and(!bucket::FROZEN, Ordering::Release);
        }
    }

    /// Writes slots into a bucket and the overflow buckets of its chain, whose links it sets;
    /// the first bucket's own link is the caller's.
    fn fill(&self, first: &Bucket, words: &[u64], overflow: &[u64]) {
        let buckets = std::iter::once(first).chain(overflow.iter().map(|n| self.overflow(*n)));
        let mut words = words.iter();
        for (step, bucket) in buckets.enumerate() {
            for at in 0..bucket::SLOTS {
                // Release: pairs with the Acquire of scans, which come by a link set later.
                bucket.slot(at).store(words.next().copied().unwrap_or(0), Ordering::Release);
            }
            if step > 0 {
                let link = Link::new(0, overflow.get(step).copied(), false);
                // Release: pairs with the Acquire in `link`.
                bucket.link_word().store(link.0, Ordering::Release);
            }
        }
        debug_assert!(words.next().is_none(), "the chain has room for its slots");
    }
}

/// Deals a slot out to the bucket that keeps its number and the one that is new.
fn deal(
    word: u64,
    (source, depth): (u64, u32),
    hashes_of: &impl Fn(Address, &mut Vec<u64>) -> bool,
    [kept, moved]: [&mut Vec<u64>; 2],
) {
    let (address, known) = (slot::address(word), slot::known_bits(word));
    let (tag, shared) = (slot::tag(word), word & slot::SHARED);
    if known <= slot::SCAN_BITS {
        let (mut hashes, mut mine, mut theirs) = (Vec::new(), None, None);
        if hashes_of(address, &mut hashes) {
            // A chain that was dealt out before has keys of other slots too.
            let ours = |hash: &u64| {
                hash & ((1 << depth) - 1) == source
                    && slot::agrees(word, slot::tag_of(*hash, depth))
            };
            for hash in hashes.into_iter().filter(ours) {
                let target = if hash >> depth & 1 == 0 { &mut mine } else { &mut theirs };
                let tag = slot::tag_of(hash, depth + 1);
                // One slot in a bucket for a chain (I-ONE-CHAIN): what its keys have in common.
                *target = Some(match *target {
                    None => slot::word(depth + 1, tag, slot::TAG_BITS, address),
                    Some(word) => slot::word(depth + 1, tag, slot::common_bits(word, tag), address),
                });
            }
            // I-OWN-HEAD: the newest record is a key's of one of the two.
            let both = if mine.is_some() && theirs.is_some() { slot::SHARED } else { 0 };
            kept.extend(mine.map(|word| word | shared | both));
            moved.extend(theirs.map(|word| word | shared | both));
            return;
        }
        if known == 0 {
            kept.push(slot::word(depth + 1, 0, 0, address) | slot::SHARED);
            moved.push(slot::word(depth + 1, 0, 0, address) | slot::SHARED);
            return;
        }
    }
    let target = if tag & 1 == 0 { kept } else { moved };
    target.push(slot::word(depth + 1, tag >> 1, known - 1, address) | shared);
}

/// Overflow buckets that so many slots need.
fn room(slots: usize) -> usize {
    slots.div_ceil(bucket::SLOTS).max(1) - 1
}

/// Whether a slot of these makes its bucket one that is scanned slowly.
fn are_short(words: &[u64]) -> bool {
    words.iter().any(|word| slot::known_bits(*word) < slot::SCAN_BITS)
}

//! Walks in bucket order.
//!
//! Slot by slot, following each chain: weakly consistent. What bounds it are cache misses, so its
//! steps follow each other at a distance: ask for a bucket's line, then for that of the bucket
//! behind it; read both and queue the slots; ask for each slot's record, at first up to the second
//! cache, which takes more requests at once than the first; visit it.

use std::ops::ControlFlow;
use std::sync::PoisonError;

use sapwood_mem::epoch::Pin;
use sapwood_mem::sync::Ordering;

use crate::error::Result;
use crate::index::bucket::Words;
use crate::index::depth_of;
use crate::log;
use crate::log::cold::{self, Coming, Extent, Fetched};
use crate::ops::store::Store;
use crate::record::address::Address;
use crate::record::layout::{bucket, control, slot};
use crate::record::{Form, Record};
use crate::walks::by_log::SENT;
use crate::walks::places::Places;

impl Store {
    /// Visits the entries of some buckets. The index does not grow meanwhile.
    pub(crate) fn walk_buckets<F: Form, B>(
        &self,
        (part, parts): (usize, usize),
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let _begin_lock = self.share_begin()?;
        let _still = self.index.growing.read().unwrap_or_else(PoisonError::into_inner);
        let places = Places::of_part(part, parts);
        let mut has_read = false;
        let numbers = 0..self.index.count();
        match places.is_whole(numbers.end) {
            true => {
                let buckets = numbers.filter(|number| places.owns(*number));
                self.walk_over::<true, F, B>(places, buckets, &mut has_read, visit)
            }
            false => self.walk_over::<false, F, B>(places, numbers, &mut has_read, visit),
        }
    }

    /// Visits the entries of a run of places, in their order. The index does not grow meanwhile.
    pub(crate) fn walk_places<F: Form, B>(
        &self,
        places: Places,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let _begin_lock = self.share_begin()?;
        let _still = self.index.growing.read().unwrap_or_else(PoisonError::into_inner);
        let (count, mut has_read) = (self.index.count(), false);
        let buckets = places.buckets(count);
        match places.is_whole(count) {
            true => self.walk_over::<true, F, B>(places, buckets, &mut has_read, visit),
            false => self.walk_over::<false, F, B>(places, buckets, &mut has_read, visit),
        }
    }

    /// Visits the entries of buckets as far as their places are among `places`. `WHOLE`: whether all
    /// are.
    #[inline(always)]
    fn walk_over<const WHOLE: bool, F: Form, B>(
        &self,
        places: Places,
        mut buckets: impl Iterator<Item = u64>,
        has_read: &mut bool,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let count = self.index.count();
        // In the order of their numbers; `count` for none.
        let mut ahead: [u64; BUCKETS_AHEAD] =
            std::array::from_fn(|_| buckets.next().unwrap_or(count));
        let mut at = 0;
        let mut queue = Queue::new();
        let mut chains = Vec::new();
        let mut coming = Coming::default();
        let most = cold::in_flight_max(self.options.memory_budget);
        while ahead[at] < count {
            for _ in 0..GROUP {
                let later = buckets.next().unwrap_or(count);
                // Where there is none, any will do: no branch would foresee it.
                self.index.prefetch_bucket(later);
                let number = std::mem::replace(&mut ahead[at], later);
                at = (at + 1) % BUCKETS_AHEAD;
                // By now its line has come.
                let soon = ahead[(at + BUCKETS_AHEAD / 2) % BUCKETS_AHEAD].min(count - 1);
                let behind = self.index.bucket(soon).link().overflow();
                self.index.prefetch_overflow(behind.unwrap_or(0));
                if number < count {
                    self.name_slots(number, &mut queue);
                }
            }
            let ready = queue.len.saturating_sub(if ahead[at] < count { FAR } else { 0 });
            let pin = self.log.epochs.pin();
            let records = self.log.records(&pin);
            let begin = self.log.begin();
            for (named, soon, later) in queue.first(ready) {
                records.prefetch_far(slot::address(later));
                records.prefetch(slot::address(soon));
                let address = slot::address(named.word);
                // I-OWN-HEAD: the only record of a chain that is not shared is of this bucket.
                if WHOLE && named.word & slot::SHARED == 0 && address >= records.head {
                    let record = records.at(address);
                    let flags = record.flags();
                    if control::previous(flags) < begin {
                        if flags & control::TOMBSTONE == 0 {
                            let value =
                                read_value::<F>(record, || address < self.log.safe_read_only());
                            let flow = F::with_key(record, |key| visit(key, value.as_ref()));
                            if flow.is_break() {
                                return Ok(flow);
                            }
                        }
                        continue;
                    }
                }
                let chain = Chain::new(named, depth_of(named.number, count), places);
                let flow = self.visit_chain::<F, B>(chain, &pin, &mut chains, visit);
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            drop(pin);
            queue.drop_first(ready);
            if chains.len() >= SENT {
                let flow =
                    self.follow_chains::<F, B>(&mut chains, &mut coming, has_read, most, visit)?;
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        self.follow_chains::<F, B>(&mut chains, &mut coming, has_read, 0, visit)
    }

    /// Visits what is in memory of a chain, and keeps the chain if more of it is on the disk. Out of
    /// line: where records are in memory, few slots lead here.
    #[inline(never)]
    fn visit_chain<F: Form, B>(
        &self,
        mut chain: Chain,
        pin: &Pin<'_>,
        chains: &mut Vec<Chain>,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let flow = chain.visit::<F, B>(self, pin, visit);
        chains.extend((flow.is_continue() && chain.wanted.is_some()).then_some(chain));
        flow
    }

    /// Queues the words of a bucket's slots as they were at one moment, so that a key that leaves
    /// one slot and comes back in another is in one of them: read until two readings are the same.
    /// No word ever comes back, since no address is given twice.
    #[inline(always)]
    fn name_slots(&self, number: u64, queue: &mut Queue) {
        let (first, scan) = (self.index.bucket(number), self.index.scan);
        loop {
            let Some(slots) = first.slots_in_use(scan, queue.room(0)) else { continue };
            let Some(next) = slots.link.overflow() else {
                return queue.put(slots.len, number);
            };
            let behind = self.index.overflow(next);
            let Some(more) = behind.slots_in_use(scan, queue.room(slots.len)) else { continue };
            if more.link.overflow().is_some() {
                return self.name_chain(number, queue);
            }
            let mut again = [0; bucket::LINK + 1];
            if first.slots_in_use(scan, &mut again) == Some(slots)
                && queue.room(0).iter().zip(&again).take(slots.len).all(|(one, two)| one == two)
            {
                return queue.put(slots.len + more.len, number);
            }
        }
    }

    /// As `name_slots`, of a chain of buckets of any length.
    #[cold]
    #[inline(never)]
    fn name_chain(&self, number: u64, queue: &mut Queue) {
        let read = || {
            let chain = self.index.chain(self.index.bucket(number));
            let slots = chain.map(|bucket| {
                let mut words = [0; bucket::LINK + 1];
                let in_use = bucket.slots_in_use(self.index.scan, &mut words)?;
                Some((in_use, words))
            });
            slots.collect::<Option<Vec<_>>>()
        };
        loop {
            if let Some(slots) = read()
                && read().as_ref() == Some(&slots)
            {
                for (in_use, words) in slots {
                    *queue.room(0) = words;
                    queue.put(in_use.len, number);
                }
                return;
            }
        }
    }

    /// Words of the slots in use of a chain of buckets.
    pub(crate) fn for_each_slot(&self, number: u64, mut each: impl FnMut(u64)) {
        for bucket in self.index.chain(self.index.bucket(number)) {
            for at in 0..bucket::SLOTS {
                // Acquire: pairs with the Release of the thread that filled the slot.
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
        has_read: &mut bool,
        most: usize,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        // A caller that only looks whether there is anything ends before.
        if *has_read && !chains.is_empty() {
            self.read_back::<F>(log::Share::All);
            for mut chain in std::mem::take(chains) {
                let pin = self.log.epochs.pin();
                let flow = chain.visit::<F, B>(self, &pin, visit);
                if flow.is_break() {
                    return Ok(flow);
                }
                chains.extend(chain.wanted.is_some().then_some(chain));
            }
        }
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
            *has_read = true;
            self.cold_reads.add(chains.len() as i64);
            let wanted = chains.drain(..).filter_map(|chain| {
                let wanted = chain.wanted?;
                Some((chain, wanted))
            });
            coming.send(&self.log, wanted.collect());
        }
    }
}

/// Buckets whose chains are followed under one pin.
const GROUP: usize = 16;
/// The distance at which buckets are asked for ahead: they lie one behind the other, but those
/// behind them do not.
const BUCKETS_AHEAD: usize = 4 * GROUP;
/// Records that are on their way into the second cache: more of them are no faster ...
const FAR: usize = 128;
/// ... and into the first.
const NEAR: usize = 32;

/// A slot's word, and the bucket it was read in.
#[derive(Clone, Copy)]
struct QueuedSlot {
    word: u64,
    number: u64,
}

/// Slots that were read and whose records are on their way.
struct Queue {
    /// Of which `len` are queued. Room for a bucket more, and for FAR behind that.
    words: Vec<u64>,
    numbers: Vec<u64>,
    len: usize,
}

impl Queue {
    fn new() -> Queue {
        let room = GROUP * 2 * bucket::SLOTS + 2 * FAR;
        Queue { words: vec![0; room], numbers: vec![0; room], len: 0 }
    }

    /// Room for the words of a bucket, so many behind those that are queued.
    #[inline(always)]
    fn room(&mut self, behind: usize) -> &mut Words {
        let from = self.len + behind;
        if from + FAR + bucket::SLOTS >= self.words.len() {
            self.grow();
        }
        self.words[from..].first_chunk_mut().expect("there is room")
    }

    #[cold]
    fn grow(&mut self) {
        let room = self.words.len() * 2;
        self.words.resize(room, 0);
        self.numbers.resize(room, 0);
    }

    /// Queues so many words that lie in the room.
    #[inline(always)]
    fn put(&mut self, count: usize, number: u64) {
        let more = &mut self.numbers[self.len..];
        // Of most buckets all seven: how many cannot be foreseen.
        more.first_chunk_mut::<{ 2 * bucket::SLOTS }>().expect("there is room").fill(number);
        self.len += count;
    }

    /// The first so many, each with the word of one that comes soon and one that comes later, or
    /// any.
    #[inline(always)]
    fn first(&self, count: usize) -> impl Iterator<Item = (QueuedSlot, u64, u64)> {
        let coming = self.words[NEAR..].iter().zip(&self.words[FAR..]);
        let named = self.words[..count].iter().zip(&self.numbers);
        named.zip(coming).map(|((word, number), (soon, later))| {
            (QueuedSlot { word: *word, number: *number }, *soon, *later)
        })
    }

    fn drop_first(&mut self, count: usize) {
        self.words.copy_within(count..self.len, 0);
        self.numbers.copy_within(count..self.len, 0);
        self.len -= count;
    }
}

/// A chain that is being followed, from its newest record at one moment.
struct Chain {
    word: u64,
    number: u64,
    depth: u32,
    places: Places,
    next: Address,
    /// Keys met so far, of chains of more than one record.
    seen: Vec<Vec<u8>>,
    fetched: Fetched,
    wanted: Option<Address>,
}

impl Chain {
    fn new(QueuedSlot { word, number }: QueuedSlot, depth: u32, places: Places) -> Chain {
        let (next, seen, fetched) = (slot::address(word), Vec::new(), Fetched::default());
        Chain { word, number, depth, places, next, seen, fetched, wanted: None }
    }

    /// Whether the slot is the one that the key is looked for in: another may share its chain.
    fn owns(&self, hash: u64) -> bool {
        hash & ((1 << self.depth) - 1) == self.number
            && slot::agrees(self.word, slot::tag_of(hash, self.depth))
            && self.places.owns(hash)
    }

    fn visit<F: Form, B>(
        &mut self,
        store: &Store,
        pin: &Pin<'_>,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.wanted = None;
        let (head, safe_read_only) = (store.log.head(), store.log.safe_read_only());
        while self.next >= store.log.begin() {
            let address = self.next;
            if address >= head {
                let record = store.log.record(pin, address);
                self.next = record.previous();
                let alone = address == slot::address(self.word) && self.next < store.log.begin();
                let tombstone = record.is_tombstone();
                if alone && tombstone {
                    return ControlFlow::Continue(());
                }
                // Even alone it may be what is left of a chain that was dealt out to two buckets.
                if !self.owns(F::hash_of(record)) {
                    continue;
                }
                let still = address < safe_read_only;
                let value = read_value::<F>(record, || still);
                let flow = F::with_key(record, |key| {
                    if self.has_seen(key) {
                        return None;
                    }
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
                if !F::key(key).is_ok_and(|key| self.owns(F::hash(key))) {
                    continue;
                }
                if self.has_seen(key) {
                    continue;
                }
                if let Some(answer) = self.meet(key, value, record.is_tombstone(), false, visit) {
                    return ControlFlow::Break(answer);
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether a newer record of a key was met.
    fn has_seen(&self, key: &[u8]) -> bool {
        self.seen.iter().any(|seen| seen == key)
    }

    /// Meets the newest record of a key.
    fn meet<B>(
        &mut self,
        key: &[u8],
        value: &[u8],
        tombstone: bool,
        alone: bool,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Option<B> {
        if !alone {
            self.seen.push(key.to_vec());
        }
        if tombstone { None } else { visit(key, value).break_value() }
    }
}

#[inline(always)]
fn read_value<F: Form>(record: Record, still: impl Fn() -> bool) -> F::Value {
    loop {
        match F::value(record, &still) {
            Some(value) => return value,
            // A writer is copying a value in: a matter of nanoseconds.
            None => std::hint::spin_loop(),
        }
    }
}

//! Walks in log order, as of one moment or of the live log.
//!
//! Page by page: sequential, and exact. The moment is fixed by
//! [`Log::pin_below`](crate::log::Log::pin_below): records below the boundary stay as they are,
//! what is changed meanwhile is appended above. Of those below, the newest of each key is live at
//! that moment: one in memory that no flag calls superseded; of the others the chain tells, whose
//! first record of the key below the boundary it is or is not.
//!
//! A sweep fixes nothing. Its boundary is where the log ended when it began
//! ([`Log::begin_sweep`](crate::log::Log::begin_sweep)), after which all earlier appends below were
//! done. So a key that is there throughout has one newest record below: that is visited, with the
//! value that it then has, or had when it was replaced, which is marked as late and asked about.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use sapwood_disk::Blocks;
use sapwood_mem::epoch::Pin;

use crate::error::{Error, Result};
use crate::files::page::{for_each_stored, not_a_record};
use crate::index::{Probe, Walk};
use crate::log::Share;
use crate::log::begin_lock::Shared;
use crate::log::cold::{self, ColdRecord, Coming, Extent, Fetched};
use crate::ops::store::Store;
use crate::record::address::{Address, PageNumber, UNIT_BYTES};
use crate::record::layout::control;
use crate::record::{Form, Record, word_at};

/// A moment that is being looked at, or a sweep that is going on.
pub(crate) struct Moment<'a> {
    store: &'a Store,
    /// Records below are visited: as of the moment, or in passing.
    pub(crate) boundary: Address,
    /// How many entries there were, about.
    pub(crate) entries: u64,
    is_sweep: bool,
    /// Nothing is compacted meanwhile.
    _begin_lock: Shared<'a>,
}

impl Drop for Moment<'_> {
    fn drop(&mut self) {
        match self.is_sweep {
            true => self.store.log.end_sweep(),
            false => self.store.log.unpin_below(self.boundary),
        }
    }
}

/// Is told where a live record is, its key and its value.
pub(crate) trait Visit<B>: FnMut(Address, &[u8], &[u8]) -> ControlFlow<B> {}

impl<B, V: FnMut(Address, &[u8], &[u8]) -> ControlFlow<B>> Visit<B> for V {}

/// A record whose chain goes on at one that must be read first.
struct PendingChain {
    address: Address,
    key: Vec<u8>,
    value: Vec<u8>,
    fetched: Fetched,
    wanted: Address,
}

/// Records of a page that comes back that are looked at where they lie: a caller that looks whether
/// there is anything needs no more.
const FIRST_RECORDS: usize = 256;

/// Records are asked for together.
pub(crate) const SENT: usize = 64;

/// The verdict of a record's flags.
pub(crate) enum Verdict {
    Live,
    Dead,
    /// Only its chain knows.
    Ask,
}

pub(crate) fn verdict(flags: u64, marked: bool) -> Verdict {
    if flags & control::TOMBSTONE != 0 {
        Verdict::Dead
    } else if flags & control::SUPERSEDED == 0 {
        if marked { Verdict::Live } else { Verdict::Ask }
    } else if flags & control::LATE == 0 {
        Verdict::Dead
    } else {
        Verdict::Ask
    }
}

impl Store {
    /// Fixes this moment.
    pub(crate) fn moment(&self) -> Result<Moment<'_>> {
        if self.log.epochs.is_pinned() {
            return Err(Error::WouldBlock);
        }
        let begin_lock = self.begin_lock.share();
        let boundary = self.log.pin_below();
        let entries = self.entries.sum();
        let is_sweep = false;
        Ok(Moment { store: self, boundary, entries, is_sweep, _begin_lock: begin_lock })
    }

    /// Begins to look at what is there from now on.
    pub(crate) fn sweep(&self) -> Result<Moment<'_>> {
        if self.log.epochs.is_pinned() {
            return Err(Error::WouldBlock);
        }
        let begin_lock = self.begin_lock.share();
        let boundary = self.log.begin_sweep();
        let entries = self.entries.sum();
        let is_sweep = true;
        Ok(Moment { store: self, boundary, entries, is_sweep, _begin_lock: begin_lock })
    }

    /// Visits what was live at a moment, of some pages.
    pub(crate) fn scan<F: Form, B>(
        &self,
        moment: &Moment<'_>,
        part: (usize, usize),
        visit: &mut impl Visit<B>,
    ) -> Result<ControlFlow<B>> {
        let mut scan = LogScan::new(self, moment, part);
        for page in PageNumber::each(scan.pages.clone()) {
            let mut flow = scan.page::<F, B>(page, visit)?;
            if flow.is_continue() {
                flow = scan.resolve_some::<F, B>(visit)?;
            }
            if flow.is_break() {
                return Ok(flow);
            }
        }
        scan.resolve::<F, B>(0, visit)
    }

    /// Whether the record at `target` was the newest of its key below `boundary`, or which record
    /// must be read to know.
    pub(crate) fn was_live<F: Form>(
        &self,
        target: Address,
        boundary: Address,
        key: F::Key<'_>,
        fetched: &Fetched,
    ) -> std::result::Result<bool, Address> {
        let pin = self.log.epochs.pin();
        let head = self.log.head();
        let probe = self.index.find(F::hash(key), |newest| {
            let mut address = newest;
            while address > target {
                let same_key;
                let previous;
                if address >= head {
                    let record = self.log.record(&pin, address);
                    same_key = address < boundary && F::has_key(record, key);
                    previous = record.previous();
                } else if let Some(record) = fetched.get(address) {
                    same_key = address < boundary && F::key_eq(key, record.key::<F>());
                    previous = record.previous();
                } else {
                    return Walk::Cold(address);
                }
                if same_key {
                    return Walk::Hit(false);
                }
                address = previous;
            }
            if address == target { Walk::Hit(true) } else { Walk::End }
        });
        match probe {
            Probe::Hit(_, live) => Ok(live),
            Probe::Absent(_) => Ok(false),
            Probe::Cold(_, address) | Probe::Unclear(address) => Err(address),
        }
    }

    /// Goes on with a chain at a record that came from the disk, and answers as [`was_live`](Self::was_live). Nothing
    /// above the record is walked again: each change of a key since the moment may have made the chain longer by one.
    /// None where the target is not in this chain.
    fn was_live_behind<F: Form>(
        &self,
        record: &ColdRecord,
        target: Address,
        boundary: Address,
        key: F::Key<'_>,
    ) -> std::result::Result<Option<bool>, Address> {
        if record.address < boundary && F::key_eq(key, record.key::<F>()) {
            return Ok(Some(false));
        }
        match record.previous().cmp(&target) {
            Ordering::Greater => Err(record.previous()),
            Ordering::Equal => Ok(Some(true)),
            Ordering::Less => Ok(None),
        }
    }

    /// The next record of a page in memory, its address and flags.
    #[inline]
    pub(crate) fn next_record<F: Form>(
        &self,
        pin: &Pin<'_>,
        page: PageNumber,
        offset: &mut usize,
    ) -> Option<(Address, Record, u64)> {
        while *offset + F::PREFIX <= self.log.page_bytes {
            let address = self.at(page, *offset);
            let record = self.log.record(pin, address);
            let flags = record.flags();
            if flags & control::VALID != 0 {
                *offset += F::bytes_of(record);
                return Some((address, record, flags));
            }
            if F::STRIDE == 0 {
                return None;
            }
            *offset += F::STRIDE;
        }
        None
    }

    pub(crate) fn at(&self, page: PageNumber, offset: usize) -> Address {
        Address::from_units(
            (page.get() * self.log.page_bytes as u64 + offset as u64) / UNIT_BYTES as u64,
        )
    }
}

/// A scan under way.
pub(crate) struct LogScan<'a> {
    store: &'a Store,
    pub(crate) boundary: Address,
    pub(crate) pages: Range<PageNumber>,
    /// Holds a page that is not in memory.
    buffer: Option<Blocks>,
    doubts: Vec<PendingChain>,
    coming: Coming<PendingChain>,
    /// A page was read that comes back: the first, as long as it is not known whether the walk goes
    /// on.
    has_read_first: bool,
    /// Records that a chain was asked about.
    asked: u64,
}

impl Drop for LogScan<'_> {
    fn drop(&mut self) {
        self.store.chains_asked.add(self.asked as i64);
    }
}

impl<'a> LogScan<'a> {
    /// Of a part of the pages below a boundary.
    pub(crate) fn new(
        store: &'a Store,
        moment: &Moment<'_>,
        (part, parts): (usize, usize),
    ) -> Self {
        let (log, boundary) = (&store.log, moment.boundary);
        let (first, last) = (log.page_of(log.begin()), log.page_of(boundary));
        let limit = if boundary > log.page_start(last) { last.next() } else { last };
        let (from, to) = share(limit.since(first), part, parts);
        let pages = first.plus(from)..first.plus(to);
        let (doubts, coming) = (Vec::new(), Coming::default());
        LogScan {
            store,
            boundary,
            pages,
            buffer: None,
            doubts,
            coming,
            has_read_first: false,
            asked: 0,
        }
    }

    /// Before a page is walked, or goes on to be, unpinned.
    pub(crate) fn begin_page<F: Form>(&mut self, page: PageNumber) {
        let log = &self.store.log;
        let start = log.page_start(page);
        if start < log.head() && log.comes_back(start) {
            match self.has_read_first {
                false => self.has_read_first = true,
                true => self.store.read_back::<F>(Share::All),
            }
        }
    }

    fn page<F: Form, B>(
        &mut self,
        page: PageNumber,
        visit: &mut impl Visit<B>,
    ) -> Result<ControlFlow<B>> {
        let store = self.store;
        let mut offset = 0;
        let pin = loop {
            self.begin_page::<F>(page);
            let pin = store.log.epochs.pin();
            if store.log.page_start(page) >= store.log.head() {
                break pin;
            }
            drop(pin);
            let flow = self.stored_page::<F, B>(page, &mut offset, visit)?;
            if flow.is_break() || offset == store.log.page_bytes {
                return Ok(flow);
            }
        };
        let (records, marked) = (store.log.records(&pin), store.log.is_marked(page));
        // As long as the pin lives, what lies below stays as it is.
        let safe_read_only = store.log.safe_read_only();
        while let Some((address, record, flags)) = store.next_record::<F>(&pin, page, &mut offset) {
            if address >= self.boundary {
                break;
            }
            records.prefetch_ahead(address);
            let is_still = address < safe_read_only;
            let flow = match verdict(flags, marked) {
                Verdict::Dead => continue,
                Verdict::Live => {
                    show::<F, _>(record, is_still, |key, value| visit(address, key, value))
                }
                Verdict::Ask => show::<F, _>(record, is_still, |key, value| {
                    self.ask::<F, B>(address, key, value, visit)
                })?,
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Visits what is live of a page on the disk, from an offset on, which moves: to the end, or over
    /// some records of a page that comes back.
    pub(crate) fn stored_page<F: Form, B>(
        &mut self,
        page: PageNumber,
        offset: &mut usize,
        visit: &mut impl Visit<B>,
    ) -> Result<ControlFlow<B>> {
        let log = &self.store.log;
        let parts = log.parts.as_ref().expect("pages below head are on the disk");
        let mut blocks = self.buffer.take().unwrap_or_else(|| Blocks::new(log.page_bytes));
        parts.read_page(page, &mut blocks)?;
        let stored = &blocks.bytes()[..log.page_bytes];
        let comes_back = log.comes_back(log.page_start(page));
        let mut left = if comes_back { FIRST_RECORDS } else { usize::MAX };
        let flow = for_each_stored::<F, Option<B>>(stored, *offset, |at, record| {
            let address = self.store.at(page, at);
            if address >= self.boundary {
                return Ok(ControlFlow::Continue(()));
            }
            if left == 0 {
                *offset = at;
                return Ok(ControlFlow::Break(None));
            }
            left -= 1;
            let (key, value) =
                F::split(record).ok_or_else(|| not_a_record(parts.place(), address))?;
            let flags = word_at(record, 0).expect("a record has a control word");
            let flow = match verdict(flags, false) {
                Verdict::Dead => ControlFlow::Continue(()),
                Verdict::Live => visit(address, key, value),
                Verdict::Ask => self.ask::<F, B>(address, key, value, visit)?,
            };
            Ok(flow.map_break(Some))
        })?;
        self.buffer = Some(blocks);
        Ok(match flow {
            ControlFlow::Break(Some(answer)) => ControlFlow::Break(answer),
            ControlFlow::Break(None) => ControlFlow::Continue(()),
            ControlFlow::Continue(()) => {
                *offset = log.page_bytes;
                ControlFlow::Continue(())
            }
        })
    }

    /// Visits a record if its chain says that it is live, at once or once it is read.
    pub(crate) fn ask<F: Form, B>(
        &mut self,
        address: Address,
        key: &[u8],
        value: &[u8],
        visit: &mut impl Visit<B>,
    ) -> Result<ControlFlow<B>> {
        self.asked += 1;
        let none = Fetched::default();
        match self.store.was_live::<F>(address, self.boundary, F::key(key)?, &none) {
            Ok(true) => Ok(visit(address, key, value)),
            Ok(false) => Ok(ControlFlow::Continue(())),
            Err(wanted) => {
                if self.doubts.len() == SENT && self.store.log.comes_back(wanted) {
                    // Not one by one. Chains that are asked from now on are in memory.
                    self.store.read_back::<F>(Share::All);
                }
                let (key, value) = (key.to_vec(), value.to_vec());
                self.doubts.push(PendingChain { address, key, value, fetched: none, wanted });
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Reads what doubts wait for, if they are enough to be read together.
    pub(crate) fn resolve_some<F: Form, B>(
        &mut self,
        visit: &mut impl Visit<B>,
    ) -> Result<ControlFlow<B>> {
        if self.doubts.len() < SENT {
            return Ok(ControlFlow::Continue(()));
        }
        self.resolve::<F, B>(cold::in_flight_max(self.store.options.memory_budget), visit)
    }

    /// Reads what doubts wait for, until no more than `most` are left.
    pub(crate) fn resolve<F: Form, B>(
        &mut self,
        most: usize,
        visit: &mut impl Visit<B>,
    ) -> Result<ControlFlow<B>> {
        let log = &self.store.log;
        loop {
            while self.coming.len() > most {
                let Some((mut doubt, record)) = self.coming.receive::<F>(log, Extent::Key) else {
                    break;
                };
                let record = record?;
                let key = F::key(&doubt.key)?;
                let (address, boundary) = (doubt.address, self.boundary);
                let behind = self.store.was_live_behind::<F>(&record, address, boundary, key);
                doubt.fetched.push(record);
                let was_live = match behind {
                    Ok(Some(was_live)) => Ok(was_live),
                    // Another chain of the bucket may have it.
                    Ok(None) => self.store.was_live::<F>(address, boundary, key, &doubt.fetched),
                    Err(wanted) => Err(wanted),
                };
                match was_live {
                    Ok(false) => {}
                    Err(wanted) => self.doubts.push(PendingChain { wanted, ..doubt }),
                    Ok(true) => {
                        let flow = visit(address, &doubt.key, &doubt.value);
                        if flow.is_break() {
                            return Ok(flow);
                        }
                    }
                }
            }
            if self.doubts.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            self.store.cold_reads.add(self.doubts.len() as i64);
            let wanted = self.doubts.drain(..).map(|doubt| {
                let wanted = doubt.wanted;
                (doubt, wanted)
            });
            self.coming.send(log, wanted.collect());
        }
    }
}

/// Reads a record that may be changed in place meanwhile, unless it is still.
#[inline]
fn show<F: Form, R>(record: Record, is_still: bool, read: impl FnOnce(&[u8], &[u8]) -> R) -> R {
    if is_still {
        return F::visit(record, read);
    }
    let value = loop {
        match F::value(record, || false) {
            Some(value) => break value,
            // A writer is copying a value in: a matter of nanoseconds.
            None => std::hint::spin_loop(),
        }
    };
    F::with_key(record, |key| read(key, value.as_ref()))
}

/// Part `part` of `parts` of `0..len`.
pub(crate) fn share(len: u64, part: usize, parts: usize) -> (u64, u64) {
    let at = |part: usize| (u128::from(len) * part as u128 / parts as u128) as u64;
    (at(part), at(part + 1))
}

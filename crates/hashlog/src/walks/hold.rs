//! A sweep whose records stay where it met them, to be changed there later.
//!
//! Of a log in memory nothing goes but by compaction, which a hold keeps away: so a record's page
//! stays, and the record with its key, however often it is superseded. A walk under it hands out
//! runs of records as they lie in a page, each with a bit that says whether it is live, and those
//! that asked for them need keep nothing but these bits. `ops::update_run` changes them.

use std::ops::ControlFlow;
use std::sync::OnceLock;

use sapwood_engine::{
    Addresses, Column, ColumnBatch, ColumnBuffer, Columns, HeldKeys, RecordAddress, RecordRun,
    Validity, broken_off, keep_break,
};

use crate::error::{BatchError, Result};
use crate::log::{LogEdit, Records};
use crate::ops::store::Store;
use crate::ops::update_run::ChangeRun;
use crate::record::Fixed;
use crate::record::address::{Address, PageNumber, UNIT_BYTES};
use crate::record::layout::{control, fixed};
use crate::walks::by_log::{LogScan, Moment, Verdict, verdict};
use crate::walks::columns::{hand_out, push_to};
use crate::walks::snapshot::check_part;

const LEN_MAX: usize = RecordRun::LEN_MAX;
/// Words of addresses from one record to the next.
pub(crate) const STEP: u64 = (fixed::BYTES / UNIT_BYTES) as u64;
/// Records between two looks whether all were live.
const GROUP: usize = 64;
/// A walk of the live log, as [`Sweep`](crate::Sweep), whose records stay where it met them until it
/// is dropped: see [`HashLog::hold`](crate::HashLog::hold). Threads share it.
///
/// # Consistency
/// Walks see what those of a sweep see. Changes are those of [`Edit`](crate::Edit): each entry is
/// changed in one step for every reader, and a record that is not the newest of its key by then goes
/// by its key. As long as it lives nothing is compacted, and from its first change on other threads copy
/// what they change in pages that are full. No thread drops one within a closure of the log.
pub struct Hold<'a> {
    /// Begun by the first change, and ended before the log may be compacted.
    edit: OnceLock<LogEdit<'a>>,
    pub(crate) moment: Moment<'a>,
    store: &'a Store,
}

impl<'a> Hold<'a> {
    pub(crate) fn new(store: &'a Store) -> Result<Hold<'a>> {
        Ok(Hold { edit: OnceLock::new(), moment: store.sweep()?, store })
    }

    /// About how many entries there were when it began; exactly, if no thread wrote meanwhile.
    pub fn entries(&self) -> u64 {
        self.moment.entries
    }

    /// Visits part `part` of `parts` disjoint parts of the entries in log order, by batches with
    /// keys, values and addresses, until `visit` breaks.
    ///
    /// Most batches are records as they lie in a page: their addresses are
    /// [`Addresses::Stepped`], and not all of them are valid. Entries that a writer replaced
    /// meanwhile come in others, with an address each, and all are valid.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) if `part` is not below `parts`.
    pub fn scan_part<B>(
        &self,
        part: usize,
        parts: usize,
        mut visit: impl FnMut(&ColumnBatch<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        check_part(part, parts)?;
        keep_break(|broken| {
            self.walk_part((part, parts), &mut |batch| broken_off(visit(batch), broken))
        })
    }

    fn walk_part(
        &self,
        part: (usize, usize),
        visit: &mut dyn FnMut(&ColumnBatch<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let store = self.store;
        let mut gathering = Gathering {
            store,
            scan: LogScan::new(store, &self.moment, part),
            keys: Box::new([[0; 8]; LEN_MAX]),
            values: Box::new([[0; 8]; LEN_MAX]),
            bits: [0; LEN_MAX / 64],
            apart: ColumnBuffer::boxed(),
            asked: Vec::new(),
        };
        gathering.all(&mut |batch: &ColumnBatch<'_>| visit(batch))
    }

    /// Changes the entries of a run that a batch of this hold had at addresses by steps, in order,
    /// but the first `done`; answers how many entries there were.
    ///
    /// # Errors
    /// As [`HashLog::update_many`](crate::HashLog::update_many); `done` of the error counts from the run's first entry.
    ///
    /// # Panics
    /// If the run is of another walk, or has no `done` entries.
    pub fn update_run(
        &self,
        run: &RecordRun,
        done: usize,
        change: &mut impl ChangeRun,
    ) -> std::result::Result<usize, BatchError> {
        let store = self.store;
        self.check(run);
        // A pinned thread cannot wait for others to leave, nor open a window.
        let edit = match store.log.epochs.is_pinned() {
            true => None,
            false => Some(self.edit.get_or_init(|| store.log.begin_edit())),
        };
        store.update_run(run, done, edit, change)
    }

    /// Appends up to `count` keys of live records from everywhere in the log, as far as possible by
    /// equal distances.
    pub fn sample_keys(&self, count: usize, keys: &mut Vec<[u8; 8]>) {
        let log = &self.store.log;
        let in_page = (log.page_bytes / fixed::BYTES) as u64;
        let (first, limit) = (log.page_of(log.begin()), log.page_of(self.moment.boundary));
        let places = limit.since(first) * in_page;
        if places == 0 || count == 0 {
            return;
        }
        let pin = log.epochs.pin();
        let records = log.records(&pin);
        for at in 0..count as u64 {
            // One of each of as many equal parts, mixed, so that no regular order fools it.
            let part = places.div_ceil(count as u64);
            let mixed = (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % part;
            let place = (u128::from(at) * u128::from(places) / count as u128) as u64 + mixed;
            let page = first.plus(place / in_page);
            if page >= limit {
                break;
            }
            let offset = (place % in_page) as usize * fixed::BYTES;
            let record = records.at(log.page_start(page).plus(offset));
            if record.is_unclaimed() {
                keys.push(record.fixed_words().0);
            }
        }
    }

    /// Refuses a run of which a record lies where no walk of this hold met one.
    fn check(&self, run: &RecordRun) {
        let last = run.bits.iter().rposition(|bits| *bits != 0);
        let Some(word) = last else { return };
        let last = word as u64 * 64 + u64::from(63 - run.bits[word].leading_zeros());
        let log = &self.store.log;
        let [first, last] = [0, last].map(|slot| Address::from(run.address_of_slot(slot)));
        let page = log.page_of(first);
        let offset = (first.bytes() - log.page_start(page).bytes()) as usize;
        let is_met = run.step == STEP
            && offset.is_multiple_of(fixed::BYTES)
            && last.plus(fixed::BYTES) <= log.page_start(page.next());
        // The first one alone shows a last one that has wrapped.
        let boundary = self.moment.boundary;
        let is_held = first >= log.begin() && first < boundary && last < boundary;
        assert!(is_met && is_held, "the run is of another walk");
    }
}

impl HeldKeys for Hold<'_> {
    fn read_run(&self, run: &RecordRun, keys: &mut Vec<[u8; 8]>) {
        self.check(run);
        let log = &self.store.log;
        let pin = log.epochs.pin();
        let records = log.records(&pin);
        for (word, &bits) in (0..).step_by(64).zip(&run.bits) {
            if bits == 0 {
                continue;
            }
            let row = records.row(run.address_of_slot(word).into());
            row.prefetch_ahead(GROUP);
            let key = |slot: u32| row.at(slot as usize).fixed_words().0;
            if bits == u64::MAX {
                keys.extend((0..64).map(key));
                continue;
            }
            let mut rest = bits;
            keys.extend((0..bits.count_ones()).map(|_| {
                let slot = rest.trailing_zeros();
                rest &= rest - 1;
                key(slot)
            }));
        }
    }

    fn read_each(&self, addresses: &[RecordAddress], keys: &mut Vec<[u8; 8]>) {
        const AHEAD: usize = 16;
        let log = &self.store.log;
        let pin = log.epochs.pin();
        let records = log.records(&pin);
        for (at, &address) in addresses.iter().enumerate() {
            let mut bits = [0; LEN_MAX / 64];
            bits[0] = 1;
            self.check(&RecordRun { first: address, step: STEP, bits });
            if let Some(&later) = addresses.get(at + AHEAD) {
                records.prefetch(later.into());
            }
            keys.push(records.at(address.into()).fixed_words().0);
        }
    }
}

/// Records of a piece of a page.
struct Gathering<'a> {
    store: &'a Store,
    scan: LogScan<'a>,
    keys: Box<[[u8; 8]; LEN_MAX]>,
    values: Box<[[u8; 8]; LEN_MAX]>,
    /// Which of them are live.
    bits: [u64; LEN_MAX / 64],
    /// Entries of which only the chain knew whether they are live.
    apart: Box<ColumnBuffer>,
    asked: Vec<(Address, [u8; 8], [u8; 8])>,
}

impl Gathering<'_> {
    fn all<B>(
        &mut self,
        visit: &mut impl FnMut(&ColumnBatch<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        const COLUMNS: Columns = Columns::Addresses;
        let page_bytes = self.store.log.page_bytes;
        for page in PageNumber::each(self.scan.pages.clone()) {
            let mut offset = 0;
            while offset < page_bytes {
                let first = self.store.at(page, offset);
                let len = self.gather(page, &mut offset);
                let mut flow = match len {
                    0 => ControlFlow::Continue(()),
                    _ => visit(&self.batch(first, len)),
                };
                let Gathering { scan, apart, asked, .. } = self;
                for (address, key, value) in asked.drain(..) {
                    if flow.is_continue() {
                        let mut push = push_to(apart, COLUMNS, visit);
                        flow = scan.ask::<Fixed, B>(address, &key, &value, &mut push)?;
                    }
                }
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        let mut push = push_to(&mut self.apart, COLUMNS, visit);
        let flow = self.scan.resolve::<Fixed, B>(0, &mut push)?;
        drop(push);
        if flow.is_continue() && self.apart.len > 0 {
            return Ok(hand_out(&mut self.apart, COLUMNS, visit));
        }
        Ok(flow)
    }

    fn batch(&self, first: Address, len: usize) -> ColumnBatch<'_> {
        let (keys, values) = (&self.keys[..len], &self.values[..len]);
        let (words, rest) = (len / 64, len % 64);
        let all = self.bits[..words].iter().all(|bits| *bits == u64::MAX)
            && (rest == 0 || self.bits[words] == (1 << rest) - 1);
        let validity = if all { Validity::All } else { Validity::Bits(&self.bits) };
        let addresses = Addresses::Stepped { first: first.into(), step: STEP };
        ColumnBatch::new(len, Column::of_words(keys), Column::of_words(values), validity)
            .and_then(|batch| batch.with_addresses(addresses))
            .expect("all columns have its length")
    }

    /// Copies records of a page from an offset on, which moves; answers how many, live or not.
    fn gather(&mut self, page: PageNumber, offset: &mut usize) -> usize {
        let log = &self.store.log;
        let pin = log.epochs.pin();
        let records = log.records(&pin);
        let first = self.store.at(page, *offset);
        assert!(first >= records.head, "a hold keeps pages in memory");
        let marked = log.is_marked(page);
        let end = self.store.at(page, log.page_bytes).min(self.scan.boundary);
        let left = (end.bytes().saturating_sub(first.bytes()) / fixed::BYTES as u64) as usize;
        let len = left.min(LEN_MAX);
        let keys = self.keys[..len].chunks_mut(GROUP);
        let values = self.values[..len].chunks_mut(GROUP);
        for (group, (keys, values)) in keys.zip(values).enumerate() {
            let first = first.plus(group * GROUP * fixed::BYTES);
            let row = records.row(first);
            let (mut all, mut any) = (u64::MAX, 0);
            row.prefetch_ahead(keys.len());
            for (at, (key, value)) in keys.iter_mut().zip(values).enumerate() {
                let record = row.at(at);
                let flags = record.flags();
                (*key, *value) = record.fixed_words();
                all &= flags;
                any |= flags;
            }
            let is_live = marked
                && all & control::VALID != 0
                && any & (control::SUPERSEDED | control::TOMBSTONE) == 0;
            self.bits[group] = match (is_live, keys.len()) {
                (true, len) => u64::MAX >> (64 - len),
                (false, len) => look_at_each(&records, first, len, marked, &mut self.asked),
            };
        }
        *offset += len * fixed::BYTES;
        let is_over = |len: usize| {
            let last = records.at(first.plus((len - 1) * fixed::BYTES));
            marked && last.flags() & control::VALID == 0
        };
        // Room behind the last record of a page is zero.
        if left == len || is_over(len) {
            *offset = log.page_bytes;
        }
        len
    }
}

/// Which of up to 64 records are live. Those that must be asked for come to `asked`.
#[cold]
fn look_at_each(
    records: &Records<'_>,
    first: Address,
    len: usize,
    marked: bool,
    asked: &mut Vec<(Address, [u8; 8], [u8; 8])>,
) -> u64 {
    let mut bits = 0;
    for at in 0..len {
        let address = first.plus(at * fixed::BYTES);
        let record = records.at(address);
        let flags = record.flags();
        if flags & control::VALID == 0 {
            continue;
        }
        match verdict(flags, marked) {
            Verdict::Live => bits |= 1 << at,
            Verdict::Dead => {}
            Verdict::Ask => {
                let (key, value) = record.fixed_words();
                asked.push((address, key, value));
            }
        }
    }
    bits
}

impl std::fmt::Debug for Hold<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hold").finish_non_exhaustive()
    }
}

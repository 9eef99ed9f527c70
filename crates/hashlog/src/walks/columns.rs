//! Walks that hand out values by columns, a thousand at a time.
//!
//! As runs: columns of up to [`RUN_LEN`] live records of fixed length, gathered out of the log
//! without a branch that depends on the data. Each record is copied to where the next live one
//! goes, and the place moves on if it was one. What a run holds is what a scan of the log visits;
//! where only a chain knows whether a record is live, it is asked as there.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::ops::store::Store;
use crate::record::Fixed;
use crate::record::address::{Address, Place};
use crate::record::layout::{control, fixed};
use crate::walks::by_log::{Scan, Verdict, Visit, verdict};
use crate::walks::snapshot::{Snapshot, check_part};

const RUN_LEN: usize = Run::LEN_MAX;
const _: () = assert!(RUN_LEN <= u16::MAX as usize);

/// The columns that [`Snapshot::runs`] copies of each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// The value alone.
    Values,
    /// Key and value.
    Entries,
    /// Key, value and [`Place`].
    Places,
}

/// Up to 1,024 entries of a walk, by columns.
pub struct Run {
    len: usize,
    columns: Columns,
    keys: [[u8; 8]; RUN_LEN],
    values: [[u8; 8]; RUN_LEN],
    places: [Place; RUN_LEN],
}

impl Run {
    /// Most entries of a run: its columns stay in the first cache.
    pub const LEN_MAX: usize = 1024;

    fn new(columns: Columns) -> Box<Run> {
        let (keys, values) = ([[0; 8]; RUN_LEN], [[0; 8]; RUN_LEN]);
        Box::new(Run { len: 0, columns, keys, values, places: [Place::default(); RUN_LEN] })
    }

    /// The number of entries; at least one where a visitor gets it.
    #[expect(clippy::len_without_is_empty, reason = "no visitor gets an empty one")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Their values.
    pub fn values(&self) -> &[[u8; 8]] {
        &self.values[..self.len]
    }

    /// Their keys; empty if they were not asked for.
    pub fn keys(&self) -> &[[u8; 8]] {
        let asked = self.columns != Columns::Values;
        &self.keys[..if asked { self.len } else { 0 }]
    }

    /// Their places; empty if they were not asked for.
    pub fn places(&self) -> &[Place] {
        let asked = self.columns == Columns::Places;
        &self.places[..if asked { self.len } else { 0 }]
    }

    fn push(&mut self, address: Address, key: &[u8], value: &[u8]) {
        let whole = |bytes: &[u8]| bytes.try_into().expect("fixed records have 8 bytes of each");
        (self.keys[self.len], self.values[self.len]) = (whole(key), whole(value));
        self.places[self.len] = Place(address);
        self.len += 1;
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("len", &self.len).finish_non_exhaustive()
    }
}

/// A walk of a [`Snapshot`] or a [`Sweep`](crate::Sweep) by runs, which threads share: see
/// [`Snapshot::runs`].
///
/// # Consistency
///
/// That of the snapshot or the sweep: the entries that its scan visits, each in exactly one run.
/// Visitors may call the log.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'s> {
    pub(crate) snapshot: &'s Snapshot<'s>,
    pub(crate) columns: Columns,
}

impl Runs<'_> {
    /// Visits the entries in log order, by runs, until `visit` breaks.
    ///
    /// # Errors
    /// As [`Snapshot::scan`].
    pub fn scan<B>(&self, visit: impl FnMut(&Run) -> ControlFlow<B>) -> Result<ControlFlow<B>> {
        self.scan_part(0, 1, visit)
    }

    /// Part `part` of `parts` disjoint parts of [`Runs::scan`], for as many threads: the same
    /// entries as of [`Snapshot::scan_part`].
    ///
    /// # Errors
    /// As [`Snapshot::scan_part`].
    pub fn scan_part<B>(
        &self,
        part: usize,
        parts: usize,
        mut visit: impl FnMut(&Run) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        check_part(part, parts)?;
        let (store, moment) = self.snapshot.moment();
        let gathering = Gathering {
            store,
            scan: Scan::new(store, moment, (part, parts)),
            run: Run::new(self.columns),
            doubts: Box::new([0; RUN_LEN]),
            asked: Vec::new(),
        };
        match self.columns {
            Columns::Values => gathering.all::<false, false, B>(&mut visit),
            Columns::Entries => gathering.all::<true, false, B>(&mut visit),
            Columns::Places => gathering.all::<true, true, B>(&mut visit),
        }
    }
}

/// A run that is filled.
struct Gathering<'a> {
    store: &'a Store,
    scan: Scan<'a>,
    run: Box<Run>,
    /// Where records lie, from the first that is gathered, that may have to be asked for.
    doubts: Box<[u16; RUN_LEN]>,
    /// Records of which only the chain knows whether they are live. They take room of the run, so
    /// that there is some for each that is.
    asked: Vec<(Address, [u8; 8], [u8; 8])>,
}

impl Gathering<'_> {
    fn all<const KEYS: bool, const PLACES: bool, B>(
        mut self,
        visit: &mut impl FnMut(&Run) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let page_bytes = self.store.log.page_bytes;
        for page in self.scan.pages.clone() {
            self.scan.begin_page::<Fixed>(page);
            let mut offset = 0;
            while offset < page_bytes {
                let is_there = self.gather::<KEYS, PLACES>(page, &mut offset);
                let Gathering { scan, run, asked, .. } = &mut self;
                let mut push = push_to(run, visit);
                let mut flow = ControlFlow::Continue(());
                for (address, key, value) in asked.drain(..) {
                    flow = scan.ask::<Fixed, B>(address, &key, &value, &mut push)?;
                    if flow.is_break() {
                        break;
                    }
                }
                if flow.is_continue() && !is_there {
                    scan.leave_unmarked();
                    flow = scan.stored_page::<Fixed, B>(page, offset, &mut push)?;
                    offset = page_bytes;
                }
                if flow.is_continue() {
                    flow = scan.resolve_some::<Fixed, B>(&mut push)?;
                }
                drop(push);
                if flow.is_continue() && self.run.len == RUN_LEN {
                    flow = hand_out(&mut self.run, visit);
                }
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            self.scan.end_page(page);
        }
        let flow = self.scan.resolve::<Fixed, B>(0, &mut push_to(&mut self.run, visit))?;
        if flow.is_continue() {
            self.scan.mark_first::<Fixed>()?;
        }
        if flow.is_continue() && self.run.len > 0 {
            return Ok(hand_out(&mut self.run, visit));
        }
        Ok(flow)
    }

    /// Copies live records of a page in memory, from an offset on, until the run is full or the
    /// page at its end; false if the page is not in memory.
    fn gather<const KEYS: bool, const PLACES: bool>(
        &mut self,
        page: u64,
        offset: &mut usize,
    ) -> bool {
        const FLAGS: u64 = control::VALID | control::SUPERSEDED | control::TOMBSTONE;
        let log = &self.store.log;
        let pin = log.epochs.pin();
        if log.page_start(page) < log.head() {
            return false;
        }
        let there = log.records(&pin);
        let marked = log.is_marked(page);
        let first = self.store.at(page, *offset);
        let end = self.store.at(page, log.page_bytes).min(self.scan.boundary);
        let left = (end.bytes().saturating_sub(first.bytes()) / fixed::BYTES as u64) as usize;
        let records = left.min(RUN_LEN - self.run.len);
        let run = &mut *self.run;
        let (mut len, mut flags) = (run.len, 0);
        // A record that is superseded from now on is marked late, so that it may be looked at again.
        let (doubts, mut doubt_count) = (&mut *self.doubts, 0);
        // Of a page without marks only the chains know; no flags are all ones.
        let live = if marked { control::VALID } else { u64::MAX };
        let doubtful = if marked { control::LATE } else { control::VALID };
        for at in 0..records {
            let address = first.plus(at * fixed::BYTES);
            there.prefetch_ahead(address);
            let record = there.at(address);
            flags = record.flags();
            let (key, value) = record.fixed_words();
            // Below the length of the run, as `records` is.
            let next = len % RUN_LEN;
            run.values[next] = value;
            if KEYS {
                run.keys[next] = key;
            }
            if PLACES {
                run.places[next] = Place(address);
            }
            len += usize::from(flags & FLAGS == live);
            if flags & doubtful != 0 {
                doubts[doubt_count % RUN_LEN] = at as u16;
                doubt_count += 1;
            }
        }
        for at in &doubts[..doubt_count] {
            let address = first.plus(usize::from(*at) * fixed::BYTES);
            let record = there.at(address);
            let flags = record.flags();
            if flags & control::VALID != 0 && matches!(verdict(flags, marked), Verdict::Ask) {
                let (key, value) = record.fixed_words();
                self.asked.push((address, key, value));
            }
        }
        run.len = len;
        *offset += records * fixed::BYTES;
        // Room behind the last record of a page is zero.
        if left == records || marked && flags & control::VALID == 0 {
            *offset = log.page_bytes;
        }
        true
    }
}

/// Puts what a scan visits into a run, and hands it out when it is full.
fn push_to<B>(run: &mut Run, visit: &mut impl FnMut(&Run) -> ControlFlow<B>) -> impl Visit<B> {
    move |address, key, value| {
        run.push(address, key, value);
        if run.len < RUN_LEN { ControlFlow::Continue(()) } else { hand_out(run, visit) }
    }
}

fn hand_out<B>(run: &mut Run, visit: &mut impl FnMut(&Run) -> ControlFlow<B>) -> ControlFlow<B> {
    let flow = visit(run);
    run.len = 0;
    flow
}

//! Walks that hand out values by columns, a thousand at a time.
//!
//! As batches: columns of up to [`LEN_MAX`] live records of fixed length, gathered out of the log
//! without a branch that depends on the data. Each record is copied to where the next live one
//! goes, and the place moves on if it was one. A batch holds what a scan of the log visits;
//! where only a chain knows whether a record is live, it is asked as there.

use std::ops::ControlFlow;

use sapwood_engine::{ColumnBatch, ColumnBuffer, Columns, RecordAddress, broken_off, keep_break};

use crate::error::Result;
use crate::ops::store::Store;
use crate::record::Fixed;
use crate::record::address::{Address, PageNumber};
use crate::record::layout::{control, fixed};
use crate::walks::by_log::{LogScan, Verdict, Visit, verdict};
use crate::walks::snapshot::{Snapshot, check_part};

const LEN_MAX: usize = ColumnBuffer::LEN_MAX;
const _: () = assert!(LEN_MAX <= u16::MAX as usize);

/// A walk of a [`Snapshot`] or a [`Sweep`](crate::Sweep) by batches of columns, which threads
/// share: see [`Snapshot::by_columns`].
///
/// # Consistency
///
/// That of the snapshot or the sweep: the entries that its scan visits, each in exactly one batch.
/// Visitors may call the log.
#[derive(Debug, Clone, Copy)]
pub struct ColumnScan<'s> {
    pub(crate) snapshot: &'s Snapshot<'s>,
    pub(crate) columns: Columns,
}

impl ColumnScan<'_> {
    /// Visits the entries in log order, by batches, until `visit` breaks.
    ///
    /// # Errors
    /// As [`Snapshot::scan`].
    pub fn scan<B>(
        &self,
        visit: impl FnMut(&ColumnBatch<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.scan_part(0, 1, visit)
    }

    /// Part `part` of `parts` disjoint parts of [`ColumnScan::scan`], for as many threads: the same
    /// entries as of [`Snapshot::scan_part`].
    ///
    /// # Errors
    /// As [`Snapshot::scan_part`].
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
        let mut visit = |batch: &ColumnBatch<'_>| visit(batch);
        let (store, moment) = self.snapshot.moment();
        let gathering = Gathering {
            store,
            scan: LogScan::new(store, moment, part),
            batch: ColumnBuffer::boxed(),
            columns: self.columns,
            doubts: Box::new([0; LEN_MAX]),
            asked: Vec::new(),
        };
        match self.columns {
            Columns::Values => gathering.all::<false, false, ()>(&mut visit),
            Columns::Entries => gathering.all::<true, false, ()>(&mut visit),
            Columns::Addresses => gathering.all::<true, true, ()>(&mut visit),
        }
    }
}

/// A batch that is filled.
struct Gathering<'a> {
    store: &'a Store,
    scan: LogScan<'a>,
    batch: Box<ColumnBuffer>,
    columns: Columns,
    /// Where records lie, from the first that is gathered, that may have to be asked for.
    doubts: Box<[u16; LEN_MAX]>,
    /// Records of which only the chain knows whether they are live. They take room of the batch, so
    /// that there is some for each that is.
    asked: Vec<(Address, [u8; 8], [u8; 8])>,
}

impl Gathering<'_> {
    fn all<const KEYS: bool, const ADDRESSES: bool, B>(
        mut self,
        visit: &mut impl FnMut(&ColumnBatch<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let page_bytes = self.store.log.page_bytes;
        for page in PageNumber::each(self.scan.pages.clone()) {
            self.scan.begin_page::<Fixed>(page);
            let mut offset = 0;
            while offset < page_bytes {
                let is_there = self.gather::<KEYS, ADDRESSES>(page, &mut offset);
                let Gathering { scan, batch, columns, asked, .. } = &mut self;
                let mut push = push_to(batch, *columns, visit);
                let mut flow = ControlFlow::Continue(());
                for (address, key, value) in asked.drain(..) {
                    flow = scan.ask::<Fixed, B>(address, &key, &value, &mut push)?;
                    if flow.is_break() {
                        break;
                    }
                }
                if flow.is_continue() && !is_there {
                    flow = scan.stored_page::<Fixed, B>(page, &mut offset, &mut push)?;
                    if offset < page_bytes {
                        scan.begin_page::<Fixed>(page);
                    }
                }
                if flow.is_continue() {
                    flow = scan.resolve_some::<Fixed, B>(&mut push)?;
                }
                drop(push);
                if flow.is_continue() && self.batch.is_full() {
                    flow = hand_out(&mut self.batch, self.columns, visit);
                }
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        let flow =
            self.scan.resolve::<Fixed, B>(0, &mut push_to(&mut self.batch, self.columns, visit))?;
        if flow.is_continue() && self.batch.len > 0 {
            return Ok(hand_out(&mut self.batch, self.columns, visit));
        }
        Ok(flow)
    }

    /// Copies live records of a page in memory, from an offset on, until the batch is full or the
    /// page at its end; false if the page is not in memory.
    fn gather<const KEYS: bool, const ADDRESSES: bool>(
        &mut self,
        page: PageNumber,
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
        let records = left.min(LEN_MAX - self.batch.len);
        let batch = &mut *self.batch;
        let (mut len, mut flags) = (batch.len, 0);
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
            // Below the length of the batch, as `records` is.
            let next = len % LEN_MAX;
            batch.values[next] = value;
            if KEYS {
                batch.keys[next] = key;
            }
            if ADDRESSES {
                batch.addresses[next] = RecordAddress::from(address);
            }
            len += usize::from(flags & FLAGS == live);
            if flags & doubtful != 0 {
                doubts[doubt_count % LEN_MAX] = at as u16;
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
        batch.len = len;
        *offset += records * fixed::BYTES;
        // Room behind the last record of a page is zero.
        if left == records || marked && flags & control::VALID == 0 {
            *offset = log.page_bytes;
        }
        true
    }
}

/// Puts the entries that a scan visits into a batch, and hands it out when it is full.
pub(crate) fn push_to<B>(
    batch: &mut ColumnBuffer,
    columns: Columns,
    visit: &mut impl FnMut(&ColumnBatch<'_>) -> ControlFlow<B>,
) -> impl Visit<B> {
    move |address, key, value| {
        let whole = |bytes: &[u8]| bytes.try_into().expect("fixed records have 8 bytes of each");
        batch.push(whole(key), whole(value), address.into());
        if batch.is_full() { hand_out(batch, columns, visit) } else { ControlFlow::Continue(()) }
    }
}

pub(crate) fn hand_out<B>(
    batch: &mut ColumnBuffer,
    columns: Columns,
    visit: &mut impl FnMut(&ColumnBatch<'_>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let flow = visit(&batch.batch(columns));
    batch.len = 0;
    flow
}

//! Reads of records that lie on the disk.

use std::collections::VecDeque;

use sapwood_disk::BLOCK_BYTES;

use crate::error::Result;
use crate::files::page::not_a_record;
use crate::files::parts::{PartRead, Parts};
use crate::log::Log;
use crate::record::address::{Address, UNIT_BYTES};
use crate::record::layout::control;
use crate::record::{Form, word_at};

/// A record that was read from the disk.
pub(crate) struct ColdRecord {
    pub(crate) address: Address,
    pub(crate) source: Source,
    /// All of it, or up to the end of its key.
    bytes: Vec<u8>,
}

/// Where a record was found that is not in the log's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Disk,
    ReadCache,
}

/// The part of a record that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// Enough to follow a chain, which needs no values; they may be long.
    Key,
}

impl ColdRecord {
    /// A record that was read whole before, and kept.
    pub(crate) fn kept(address: Address, bytes: Vec<u8>) -> ColdRecord {
        ColdRecord { address, source: Source::ReadCache, bytes }
    }

    /// All bytes that were read of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn control(&self) -> u64 {
        word_at(&self.bytes, 0).expect("checked when it was read")
    }

    pub(crate) fn previous(&self) -> Address {
        control::previous(self.control())
    }

    pub(crate) fn is_tombstone(&self) -> bool {
        self.control() & control::TOMBSTONE != 0
    }

    pub(crate) fn key<F: Form>(&self) -> &[u8] {
        let end = F::stored_key_end(&self.bytes).expect("checked when it was read");
        &self.bytes[F::KEY..end]
    }

    /// Of a record that was read whole.
    pub(crate) fn value<F: Form>(&self) -> &[u8] {
        F::split(&self.bytes).expect("checked when it was read").1
    }
}

/// The records that one operation has read so far: a handful at most, one for each key of its
/// chain.
#[derive(Default)]
pub(crate) struct Fetched(Vec<ColdRecord>);

impl Fetched {
    #[inline]
    pub(crate) fn get(&self, address: Address) -> Option<&ColdRecord> {
        self.0.iter().find(|record| record.address == address)
    }

    pub(crate) fn position(&self, address: Address) -> Option<usize> {
        self.0.iter().position(|record| record.address == address)
    }

    pub(crate) fn take(&mut self, position: usize) -> ColdRecord {
        self.0.swap_remove(position)
    }

    pub(crate) fn push(&mut self, record: ColdRecord) {
        self.0.push(record);
    }
}

/// A first read brings at least so many bytes, where the page has them.
const FIRST_BYTES: usize = 256;

/// Bytes of a page from an address on that are stored; those behind are zero.
fn stored(log: &Log, parts: &Parts, address: Address) -> Result<usize> {
    let offset = address.bytes() as usize % log.page_bytes;
    let used = parts.used(log.page_of(address))?;
    used.checked_sub(offset + UNIT_BYTES)
        .map(|left| left + UNIT_BYTES)
        .ok_or_else(|| not_a_record(parts.place(), address))
}

/// Bytes to read at first.
fn wanted(log: &Log, parts: &Parts, address: Address) -> Result<usize> {
    // What comes with the block anyway.
    let block_left = BLOCK_BYTES - address.bytes() as usize % BLOCK_BYTES;
    Ok(FIRST_BYTES.max(block_left).min(stored(log, parts, address)?))
}

/// Completes a record of which the first bytes were read.
fn complete<F: Form>(
    log: &Log,
    parts: &Parts,
    address: Address,
    mut bytes: Vec<u8>,
    extent: Extent,
) -> Result<ColdRecord> {
    let corrupt = || not_a_record(parts.place(), address);
    let valid = word_at(&bytes, 0).is_some_and(|word| word & control::VALID != 0);
    bytes.resize(bytes.len().max(F::PREFIX), 0);
    let whole = F::stored_bytes(&bytes).filter(|_| valid).ok_or_else(corrupt)?;
    let left = log.page_bytes - address.bytes() as usize % log.page_bytes;
    if whole > left {
        return Err(corrupt());
    }
    let needed = match extent {
        Extent::Whole => whole,
        Extent::Key => F::stored_key_end(&bytes).filter(|end| *end <= whole).ok_or_else(corrupt)?,
    };
    let there = needed.min(stored(log, parts, address)?);
    if there > bytes.len() {
        bytes.resize(there, 0);
        parts.read(address.bytes(), &mut bytes)?;
    }
    bytes.resize(needed, 0);
    if extent == Extent::Whole {
        F::split(&bytes).ok_or_else(corrupt)?;
    }
    Ok(ColdRecord { address, source: Source::Disk, bytes })
}

/// A record that was read without a hold on `begin`. `None`: it could not be, since its page was given
/// up after the index had named it, and the key's newest record is elsewhere.
pub(crate) fn unless_given_up(
    log: &Log,
    address: Address,
    read: Result<ColdRecord>,
) -> Option<Result<ColdRecord>> {
    // `begin` moves before the pages' files go.
    (read.is_ok() || address >= log.begin()).then_some(read)
}

/// Reads one record.
pub(crate) fn fetch<F: Form>(log: &Log, address: Address) -> Result<ColdRecord> {
    let parts = log.parts.as_ref().expect("only a log with parts has cold records");
    let mut bytes = vec![0; wanted(log, parts, address)?];
    parts.read(address.bytes(), &mut bytes)?;
    complete::<F>(log, parts, address, bytes, Extent::Whole)
}

/// Reads many records without their values, all in flight at once.
pub(crate) fn fetch_keys<F: Form>(
    log: &Log,
    addresses: &[Address],
) -> impl Iterator<Item = Result<ColdRecord>> {
    begin(log, addresses).into_iter().map(move |fetch| fetch.wait::<F>(log, Extent::Key))
}

/// A record that is on its way.
struct Fetch {
    address: Address,
    read: PartRead,
}

impl Fetch {
    /// Waits for it.
    fn wait<F: Form>(self, log: &Log, extent: Extent) -> Result<ColdRecord> {
        let parts = log.parts.as_ref().expect("only a log with parts has cold records");
        // A block has many records. A length that is wrong is told below.
        let record = |bytes: &[u8]| match bytes.len() < F::PREFIX {
            true => bytes.len(),
            false => F::stored_bytes(bytes).unwrap_or(bytes.len()),
        };
        complete::<F>(log, parts, self.address, self.read.wait(record)?, extent)
    }
}

/// Records on their way, and for each what it is wanted for; oldest first.
pub(crate) struct Coming<T> {
    all: VecDeque<(T, Fetch)>,
    /// So many of them are there, or nearly all.
    there: usize,
}

/// Half of the reads in flight are waited for together, by the last of them, and so many at least:
/// a thread that waits for each sleeps and wakes for each, and may wait for a processor each time.
const WAITED_MIN: usize = IN_FLIGHT_MIN / 2;
/// Reads in flight at least, and at most ...
const IN_FLIGHT_MIN: usize = 64;
/// ... many more than a disk does at once, so that it has enough to do while the thread that asks
/// has to wait for a processor ...
const IN_FLIGHT_MAX: usize = 1024;
/// ... and with buffers of a block each that take this share of the memory budget.
const IN_FLIGHT_SHARE: u64 = 64;

/// Reads that a log of this budget has in flight for one call.
pub(crate) fn in_flight_max(budget: Option<u64>) -> usize {
    let buffers = budget.map_or(u64::MAX, |bytes| bytes / IN_FLIGHT_SHARE / BLOCK_BYTES as u64);
    buffers.clamp(IN_FLIGHT_MIN as u64, IN_FLIGHT_MAX as u64) as usize
}

/// Buffers that are kept from one call to the next: those of two threads that read in batches of 64, if
/// they are few beside the budget. Making and clearing one takes longer than checking what it has.
pub(crate) fn buffers_kept(budget: Option<u64>) -> usize {
    const KEPT_MAX: usize = 2 * IN_FLIGHT_MIN;
    const KEPT_SHARE: u64 = 64;
    let few = budget.map_or(u64::MAX, |bytes| bytes / KEPT_SHARE / BLOCK_BYTES as u64);
    few.min(KEPT_MAX as u64) as usize
}

impl<T> Default for Coming<T> {
    fn default() -> Self {
        Coming { all: VecDeque::new(), there: 0 }
    }
}

impl<T> Coming<T> {
    /// Begins to read one for each of these.
    pub(crate) fn send(&mut self, log: &Log, wanted: Vec<(T, Address)>) {
        let addresses: Vec<Address> = wanted.iter().map(|(_, address)| *address).collect();
        let reasons = wanted.into_iter().map(|(reason, _)| reason);
        self.all.extend(reasons.zip(begin(log, &addresses)));
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// What the oldest is wanted for, and its address.
    pub(crate) fn first(&self) -> Option<(&T, Address)> {
        self.all.front().map(|(reason, fetch)| (reason, fetch.address))
    }

    /// Forgets the oldest.
    pub(crate) fn skip(&mut self) {
        self.all.pop_front();
        self.there = self.there.saturating_sub(1);
    }

    /// Waits for the oldest.
    pub(crate) fn receive<F: Form>(
        &mut self,
        log: &Log,
        extent: Extent,
    ) -> Option<(T, Result<ColdRecord>)> {
        if self.there == 0 {
            self.there = (self.all.len() / 2).max(WAITED_MIN).min(self.all.len());
            PartRead::wait_for_many(self.all.range(..self.there).map(|(_, fetch)| &fetch.read));
        }
        let (reason, fetch) = self.all.pop_front()?;
        self.there -= 1;
        Some((reason, fetch.wait::<F>(log, extent)))
    }
}

/// Begins to read many records, all in flight at once.
fn begin(log: &Log, addresses: &[Address]) -> Vec<Fetch> {
    let parts = log.parts.as_ref().expect("only a log with parts has cold records");
    let wanted =
        addresses.iter().map(|address| Ok((address.bytes(), wanted(log, parts, *address)?)));
    let reads = parts.begin_reads(wanted);
    addresses.iter().zip(reads).map(|(address, read)| Fetch { address: *address, read }).collect()
}

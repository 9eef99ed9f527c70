//! What did the disk say about a record?

use sapwood_disk::BLOCK_BYTES;

use crate::address::{Address, UNIT_BYTES};
use crate::error::Result;
use crate::layout::control;
use crate::log::Log;
use crate::parts::{PartRead, Parts};
use crate::record::{Form, word_at};
use crate::walk::not_a_record;

/// A record that was read from the disk.
pub(crate) struct ColdRecord {
    pub(crate) address: Address,
    /// All of it, or up to the end of its key.
    bytes: Vec<u8>,
}

/// How much of a record is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// Who only follows a chain needs no values, which may be long.
    Key,
}

impl ColdRecord {
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

/// What one operation has read so far: a handful at most, one for each key of its chain.
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

/// How much to read at first.
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
    Ok(ColdRecord { address, bytes })
}

/// Reads one record.
pub(crate) fn fetch<F: Form>(log: &Log, address: Address) -> Result<ColdRecord> {
    let parts = log.parts.as_ref().expect("only a log with parts has cold records");
    let mut bytes = vec![0; wanted(log, parts, address)?];
    parts.read(address.bytes(), &mut bytes)?;
    complete::<F>(log, parts, address, bytes, Extent::Whole)
}

/// Reads many records, all in flight at once.
pub(crate) fn fetch_many<F: Form>(
    log: &Log,
    addresses: impl Iterator<Item = Address>,
) -> impl Iterator<Item = Result<ColdRecord>> {
    fetch_all::<F>(log, addresses, Extent::Whole)
}

/// As [`fetch_many`], without values.
pub(crate) fn fetch_keys<F: Form>(
    log: &Log,
    addresses: impl Iterator<Item = Address>,
) -> impl Iterator<Item = Result<ColdRecord>> {
    fetch_all::<F>(log, addresses, Extent::Key)
}

fn fetch_all<F: Form>(
    log: &Log,
    addresses: impl Iterator<Item = Address>,
    extent: Extent,
) -> impl Iterator<Item = Result<ColdRecord>> {
    let parts = log.parts.as_ref().expect("only a log with parts has cold records");
    let mut reads: Vec<PartRead> = addresses
        .map(|address| {
            let (len, result) = match wanted(log, parts, address) {
                Ok(len) => (len, Ok(())),
                // The read itself says what is wrong.
                Err(error) => (F::PREFIX, Err(error)),
            };
            PartRead { address: address.bytes(), len, bytes: Vec::new(), result }
        })
        .collect();
    parts.read_many(&mut reads);
    reads.into_iter().map(move |read| {
        read.result?;
        complete::<F>(log, parts, Address::from_bytes(read.address), read.bytes, extent)
    })
}

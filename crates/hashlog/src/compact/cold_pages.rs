//! Which records of pages on the disk are live? Read ahead, while nobody has to wait for it.
//!
//! Who is superseded stays so: such records are dropped unseen later. Who is live may be superseded
//! before it is moved, which moving notices.

use std::ops::{ControlFlow, Range};

use sapwood_disk::Blocks;

use super::{Compacted, Tombstone};
use crate::address::Address;
use crate::cold::{self, Fetched};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::layout::control;
use crate::point::InPlace;
use crate::record::{Form, word_at};
use crate::survey::DOUBTS_MAX;
use crate::walk::{for_each_stored, not_a_record};

/// A page on the disk and what is left of it.
pub(super) struct ColdPage {
    pub(super) page: u64,
    blocks: Blocks,
    dropped: u64,
    /// The other records, in the order of their addresses.
    rest: Vec<Rest>,
}

struct Rest {
    offset: usize,
    is: Is,
}

enum Is {
    Live,
    Tombstone,
    Superseded,
    /// Its chain goes on at a record that must be read to know.
    Doubtful(Fetched, Address),
}

impl ColdPage {
    /// Key and value at an offset at which [`Core::read_cold`] met a record.
    fn record<F: Form>(&self, offset: usize) -> (&[u8], &[u8]) {
        F::split(&self.blocks.bytes()[offset..]).expect("checked when it was read")
    }
}

impl Core {
    /// Reads those of some pages that are on the disk, up to the first that is not.
    pub(super) fn read_ahead<F: InPlace>(&self, pages: Range<u64>) -> Result<Vec<ColdPage>> {
        let mut cold = Vec::new();
        for page in pages {
            if self.log.page_start(page) >= self.log.head() || self.life.is_ended() {
                break;
            }
            cold.push(self.read_cold::<F>(page, 0)?);
        }
        self.settle_cold_doubts::<F>(&mut cold)?;
        Ok(cold)
    }

    /// Reads a page from an offset on, and asks the index about its records.
    pub(super) fn read_cold<F: InPlace>(&self, page: u64, from: usize) -> Result<ColdPage> {
        let parts = self.log.parts.as_ref().expect("pages below head are on the disk");
        let mut blocks = Blocks::new(self.log.page_bytes);
        parts.read_page(page, &mut blocks)?;
        let (mut dropped, mut rest) = (0, Vec::new());
        let stored = &blocks.bytes()[..self.log.page_bytes];
        let _all = for_each_stored::<F, ()>(stored, from, |offset, record| {
            let address = self.at(page, offset);
            let (key, _) = F::split(record).ok_or_else(|| not_a_record(parts.place(), address))?;
            let flags = word_at(record, 0).expect("a record has a control word");
            let is = if flags & control::TOMBSTONE != 0 {
                Is::Tombstone
            } else if flags & (control::SUPERSEDED | control::LATE) == control::SUPERSEDED {
                Is::Superseded
            } else {
                self.ask::<F>(address, key, Fetched::default())?
            };
            match is {
                Is::Superseded => dropped += 1,
                is => rest.push(Rest { offset, is }),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(ColdPage { page, blocks, dropped, rest })
    }

    fn ask<F: Form>(&self, address: Address, key: &[u8], fetched: Fetched) -> Result<Is> {
        let live = self.was_live::<F>(address, self.log.tail(), F::key(key)?, &fetched);
        Ok(match live {
            Ok(true) => Is::Live,
            Ok(false) => Is::Superseded,
            Err(wanted) => Is::Doubtful(fetched, wanted),
        })
    }

    /// Reads what doubts wait for, many at a time, until none is left; or the log is dropped, when
    /// it does not matter any more.
    pub(super) fn settle_cold_doubts<F: InPlace>(&self, cold: &mut [ColdPage]) -> Result<()> {
        for page in cold {
            let number = page.page;
            let mut doubts: Vec<usize> = (0..page.rest.len())
                .filter(|at| matches!(page.rest[*at].is, Is::Doubtful(..)))
                .collect();
            while !doubts.is_empty() && !self.life.is_ended() {
                let later = doubts.split_off(doubts.len().min(DOUBTS_MAX));
                let wanted: Vec<Address> = doubts
                    .iter()
                    .filter_map(|at| match page.rest[*at].is {
                        Is::Doubtful(_, wanted) => Some(wanted),
                        _ => None,
                    })
                    .collect();
                self.cold_reads.add(wanted.len() as i64);
                let records = cold::fetch_keys::<F>(&self.log, wanted.into_iter());
                let mut again = later;
                for (at, record) in std::mem::take(&mut doubts).into_iter().zip(records) {
                    let offset = page.rest[at].offset;
                    let is = std::mem::replace(&mut page.rest[at].is, Is::Superseded);
                    let Is::Doubtful(mut fetched, _) = is else { continue };
                    fetched.push(record?);
                    let key = page.record::<F>(offset).0;
                    let is = self.ask::<F>(self.at(number, offset), key, fetched)?;
                    if matches!(is, Is::Doubtful(..)) {
                        again.push(at);
                    }
                    page.rest[at].is = is;
                }
                doubts = again;
            }
        }
        Ok(())
    }

    /// Moves what is live of a page.
    pub(super) fn compact_cold<F: InPlace>(
        &self,
        cold: &ColdPage,
        tombstones: &mut Vec<Tombstone>,
        done: &mut Compacted,
    ) -> Result<()> {
        done.records_dropped += cold.dropped;
        for rest in &cold.rest {
            let (key, value) = cold.record::<F>(rest.offset);
            let address = self.at(cold.page, rest.offset);
            let key = F::key(key)?;
            match rest.is {
                Is::Live => self.move_record::<F>(address, key, value, done)?,
                Is::Superseded => done.records_dropped += 1,
                Is::Tombstone => {
                    done.records_dropped += 1;
                    tombstones.push((address, F::hash(key)));
                }
                // The log is being dropped: doubts are settled no more.
                Is::Doubtful(..) => return Err(Error::WouldBlock),
            }
        }
        Ok(())
    }
}

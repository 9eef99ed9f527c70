//! Live records of pages on the disk, found ahead of compaction while no thread waits for it.
//!
//! A superseded record stays superseded: it is dropped later without another look. A live one may
//! be superseded before it is moved, which moving notices.

use std::ops::{ControlFlow, Range};

use sapwood_disk::Blocks;

use super::Tombstone;
use crate::compaction::garbage::DOUBTS_MAX;
use crate::error::{Error, Result};
use crate::files::page::{for_each_stored, not_a_record};
use crate::log::cold::{self, Fetched};
use crate::ops::store::Store;
use crate::record::address::{Address, PageNumber};
use crate::record::in_place::InPlace;
use crate::record::layout::control;
use crate::record::{Form, word_at};
use crate::stats::Compacted;

/// A page on the disk and what is left of it.
pub(super) struct ColdPage {
    pub(super) page: PageNumber,
    blocks: Blocks,
    dropped: u64,
    /// The other records, in the order of their addresses.
    rest: Vec<Rest>,
}

struct Rest {
    offset: u32,
    is: Is,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    Live,
    Tombstone,
    Superseded,
}

/// A record of which only its chain knows whether it is live.
struct UndecidedOffset {
    /// Which of the rest it is.
    at: usize,
    fetched: Fetched,
    wanted: Address,
}

impl ColdPage {
    /// Key and value at an offset at which a record was met.
    fn record<F: Form>(&self, offset: u32) -> (&[u8], &[u8]) {
        F::split(&self.blocks.bytes()[offset as usize..]).expect("checked when it was read")
    }
}

impl Store {
    /// Reads those of some pages that are on the disk, up to the first that is not.
    pub(super) fn read_ahead<F: InPlace>(&self, pages: Range<PageNumber>) -> Result<Vec<ColdPage>> {
        PageNumber::each(pages)
            .take_while(|page| self.log.page_start(*page) < self.log.head())
            .map(|page| self.read_cold::<F>(page, 0))
            .collect()
    }

    /// Reads a page from an offset on, and asks the index about its records.
    pub(super) fn read_cold<F: InPlace>(&self, page: PageNumber, from: usize) -> Result<ColdPage> {
        let parts = self.log.parts.as_ref().expect("pages below head are on the disk");
        let mut blocks = Blocks::new(self.log.page_bytes);
        parts.read_page(page, &mut blocks)?;
        let mut cold = ColdPage { page, blocks: Blocks::default(), dropped: 0, rest: Vec::new() };
        let mut doubts = Vec::new();
        let stored = &blocks.bytes()[..self.log.page_bytes];
        let _all = for_each_stored::<F, ()>(stored, from, |offset, record| {
            let address = self.at(page, offset);
            let (key, _) = F::split(record).ok_or_else(|| not_a_record(parts.place(), address))?;
            let flags = word_at(record, 0).expect("a record has a control word");
            let buried = flags & (control::SUPERSEDED | control::LATE) == control::SUPERSEDED;
            let is = if flags & control::TOMBSTONE != 0 {
                Is::Tombstone
            } else if buried {
                Is::Superseded
            } else {
                let fetched = Fetched::default();
                match self.was_live::<F>(address, self.log.tail(), F::key(key)?, &fetched) {
                    Ok(live) => Is::of(live),
                    Err(wanted) => {
                        doubts.push(UndecidedOffset { at: cold.rest.len(), fetched, wanted });
                        // Until it is known better.
                        Is::Live
                    }
                }
            };
            match is {
                Is::Superseded => cold.dropped += 1,
                is => cold.rest.push(Rest { offset: offset as u32, is }),
            }
            if doubts.len() >= DOUBTS_MAX {
                self.settle_cold_doubts::<F>(page, stored, &mut cold.rest, &mut doubts)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        while !doubts.is_empty() {
            self.settle_cold_doubts::<F>(page, stored, &mut cold.rest, &mut doubts)?;
        }
        cold.blocks = blocks;
        Ok(cold)
    }

    /// Reads what doubts wait for, all at once. Few of them must be asked again.
    fn settle_cold_doubts<F: InPlace>(
        &self,
        page: PageNumber,
        stored: &[u8],
        rest: &mut [Rest],
        doubts: &mut Vec<UndecidedOffset>,
    ) -> Result<()> {
        if self.begin_lock.is_ended() {
            // The log is being dropped, and no caller gets the answer.
            return Err(Error::WouldBlock);
        }
        self.cold_reads.add(doubts.len() as i64);
        let wanted: Vec<Address> = doubts.iter().map(|doubt| doubt.wanted).collect();
        let records = cold::fetch_keys::<F>(&self.log, &wanted);
        for (mut doubt, record) in std::mem::take(doubts).into_iter().zip(records) {
            doubt.fetched.push(record?);
            let Rest { offset, is } = &mut rest[doubt.at];
            let offset = *offset as usize;
            let (key, _) = F::split(&stored[offset..]).expect("checked when it was met");
            let (address, tail) = (self.at(page, offset), self.log.tail());
            match self.was_live::<F>(address, tail, F::key(key)?, &doubt.fetched) {
                Ok(live) => *is = Is::of(live),
                Err(wanted) => doubts.push(UndecidedOffset { wanted, ..doubt }),
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
            let address = self.at(cold.page, rest.offset as usize);
            let key = F::key(key)?;
            match rest.is {
                Is::Live => self.move_record::<F>(address, key, value, done)?,
                Is::Superseded => done.records_dropped += 1,
                Is::Tombstone => {
                    done.records_dropped += 1;
                    tombstones.push((address, F::hash(key)));
                }
            }
        }
        Ok(())
    }
}

impl Is {
    fn of(live: bool) -> Is {
        if live { Is::Live } else { Is::Superseded }
    }
}

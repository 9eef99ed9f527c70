//! An estimate of the garbage in a log, from a sample of its pages.
//!
//! Superseded records on the disk are not counted: a put does not read the record that it replaces,
//! marks in memory come too late for what is written, and after opening nothing is known. So pages
//! at equal distances are looked at, of each page records at equal distances, and the chains of
//! those records say which of them are live, as in a walk. The sample is a thousand records or all
//! there are, so its error is a few percent at most, whatever was done to the log.
//!
//! Room at the end of a page is garbage, too, if a record of that page would fit into it: so it
//! is where snapshots and checkpoints closed pages, but not where records are long.

use crate::error::{Error, Result};
use crate::files::page::not_a_record;
use crate::log::cold::{self, Fetched};
use crate::ops::store::Store;
use crate::record::address::{Address, PageNumber};
use crate::record::layout::control;
use crate::record::{Form, word_at};
use crate::walks::by_log::{Verdict, verdict};

/// Pages that are looked at, where there are as many.
const PAGES_MAX: u64 = 64;
/// Records that are looked at, in all.
const RECORDS_MAX: u64 = 1024;
/// Bytes that are read of a page: any key fits into them.
const PREFIX_BYTES: usize = 64 << 10;
/// Records in doubt that are read together: as many as a disk has in flight.
pub(crate) const DOUBTS_MAX: usize = 64;

/// Bytes of a page, as a sample of its records tells them.
#[derive(Default)]
struct Tally {
    used: u64,
    live: u64,
    dead: u64,
    longest: u64,
}

/// A record of which only its chain knows whether it is live.
struct UndecidedRecord {
    page: usize,
    bytes: u64,
    address: Address,
    key: Vec<u8>,
    fetched: Fetched,
    wanted: Address,
}

/// A record of the sample, as it was met.
struct Met<'a> {
    address: Address,
    flags: u64,
    bytes: u64,
    key: &'a [u8],
    /// Whether its flags tell if it is superseded.
    marked: bool,
}

#[derive(Default)]
struct Sample {
    pages: Vec<Tally>,
    doubts: Vec<UndecidedRecord>,
}

impl Store {
    /// Estimates the bytes of the log that are garbage.
    pub(crate) fn estimate_garbage<F: Form>(&self) -> Result<u64> {
        if self.log.epochs.is_pinned() {
            return Err(Error::WouldBlock);
        }
        if self.log.parts.is_some() {
            self.sample_garbage::<F>()?;
        }
        Ok(self.garbage_bytes())
    }

    /// Estimates the share of the log that is garbage, and remembers it.
    pub(crate) fn sample_garbage<F: Form>(&self) -> Result<f64> {
        let _begin_lock = self.begin_lock.share();
        // Before the look: what becomes garbage meanwhile may count twice, and never not at all.
        let counted = self.garbage.net();
        let first = self.log.page_of(self.log.begin());
        // Not the page that is being filled.
        let count = self.log.page_of(self.log.tail()).since(first);
        let sampled = count.min(PAGES_MAX);
        let mut sample = Sample::default();
        for at in 0..sampled {
            // The middles of equal pieces.
            let page = first.plus((2 * at + 1) * count / (2 * sampled));
            sample.pages.push(Tally::default());
            self.sample_page::<F>(page, RECORDS_MAX / sampled, &mut sample)?;
            if sample.doubts.len() >= DOUBTS_MAX {
                self.settle_doubts::<F>(&mut sample)?;
            }
        }
        self.settle_doubts::<F>(&mut sample)?;
        let page_bytes = self.log.page_bytes as u64;
        let garbage: f64 = sample.pages.iter().map(|page| page.garbage(page_bytes)).sum();
        let share = garbage / (page_bytes * sampled.max(1)) as f64;
        self.compactor.set_garbage_share(share, counted);
        Ok(share)
    }

    fn sample_page<F: Form>(
        &self,
        page: PageNumber,
        wanted: u64,
        sample: &mut Sample,
    ) -> Result<()> {
        {
            let pin = self.log.epochs.pin();
            let start = self.log.page_start(page);
            if start >= self.log.head() {
                let marked = self.log.is_marked(page);
                let (mut offset, mut pick) = (0, Pick::new(page, wanted));
                while let Some((address, record, flags)) =
                    self.next_record::<F>(&pin, page, &mut offset)
                {
                    let bytes = F::bytes_of(record) as u64;
                    if pick.takes(bytes, self.log.page_bytes) {
                        F::with_key(record, |key| {
                            self.meet::<F>(Met { address, flags, bytes, key, marked }, sample)
                        })?;
                    }
                }
                sample.newest().used = offset as u64;
                return Ok(());
            }
        }
        let parts = self.log.parts.as_ref().expect("pages below head are on the disk");
        let used = parts.used(page)?;
        sample.newest().used = used as u64;
        let mut prefix = vec![0; used.min(PREFIX_BYTES)];
        if !prefix.is_empty() {
            parts.read(self.log.page_start(page).bytes(), &mut prefix)?;
        }
        // Bytes behind the used ones are zero, and may belong to the last record.
        if used < PREFIX_BYTES {
            prefix.resize(self.log.page_bytes.min(PREFIX_BYTES), 0);
        }
        let (mut offset, mut pick) = (0, Pick::new(page, wanted));
        while let Some(flags) = word_at(&prefix, offset) {
            if flags & control::VALID == 0 {
                if F::STRIDE == 0 {
                    break;
                }
                offset += F::STRIDE;
                continue;
            }
            let (address, rest) = (self.at(page, offset), &prefix[offset..]);
            let lengths = (F::stored_bytes(rest), F::stored_key_end(rest));
            let (Some(bytes), Some(key_end)) = lengths else {
                // Cut off by the end of the prefix, or damaged.
                if rest.len() >= F::PREFIX {
                    return Err(not_a_record(parts.place(), address));
                }
                break;
            };
            let Some(key) = rest.get(F::KEY..key_end) else { break };
            let bytes_64 = bytes as u64;
            if pick.takes(bytes_64, prefix.len()) {
                let met = Met { address, flags, bytes: bytes_64, key, marked: false };
                self.meet::<F>(met, sample)?;
            }
            offset += bytes;
        }
        Ok(())
    }

    fn meet<F: Form>(&self, met: Met<'_>, sample: &mut Sample) -> Result<()> {
        let fetched = Fetched::default();
        let answer = match verdict(met.flags, met.marked) {
            Verdict::Live => Ok(true),
            Verdict::Dead => Ok(false),
            Verdict::Ask => {
                self.was_live::<F>(met.address, self.log.tail(), F::key(met.key)?, &fetched)
            }
        };
        match answer {
            Ok(live) => sample.newest().count(met.bytes, live),
            Err(wanted) => sample.doubts.push(UndecidedRecord {
                page: sample.pages.len() - 1,
                bytes: met.bytes,
                address: met.address,
                key: met.key.to_vec(),
                fetched,
                wanted,
            }),
        }
        Ok(())
    }

    /// Reads what doubts wait for until none is left.
    fn settle_doubts<F: Form>(&self, sample: &mut Sample) -> Result<()> {
        while !sample.doubts.is_empty() {
            let rest = sample.doubts.split_off(sample.doubts.len().min(DOUBTS_MAX));
            let together = std::mem::replace(&mut sample.doubts, rest);
            let wanted: Vec<Address> = together.iter().map(|doubt| doubt.wanted).collect();
            let records = cold::fetch_keys::<F>(&self.log, &wanted);
            for (mut doubt, record) in together.into_iter().zip(records) {
                doubt.fetched.push(record?);
                let key = F::key(&doubt.key)?;
                let tail = self.log.tail();
                match self.was_live::<F>(doubt.address, tail, key, &doubt.fetched) {
                    Ok(live) => sample.pages[doubt.page].count(doubt.bytes, live),
                    Err(wanted) => sample.doubts.push(UndecidedRecord { wanted, ..doubt }),
                }
            }
        }
        Ok(())
    }
}

impl Sample {
    fn newest(&mut self) -> &mut Tally {
        self.pages.last_mut().expect("a page is being looked at")
    }
}

impl Tally {
    fn count(&mut self, bytes: u64, live: bool) {
        self.longest = self.longest.max(bytes);
        *if live { &mut self.live } else { &mut self.dead } += bytes;
    }

    fn garbage(&self, page_bytes: u64) -> f64 {
        let unused = page_bytes.saturating_sub(self.used.max(self.live + self.dead));
        let needless = unused.saturating_sub(self.longest);
        let dead = match self.live + self.dead {
            0 => 1.0,
            seen => self.dead as f64 / seen as f64,
        };
        dead * (page_bytes - unused) as f64 + needless as f64
    }
}

/// Takes records at equal distances, of a page the first of them somewhere else than of the next.
struct Pick {
    wanted: u64,
    /// Records until the next that is taken; known with the first one's length.
    left: Option<u64>,
    page: PageNumber,
    distance: u64,
}

impl Pick {
    fn new(page: PageNumber, wanted: u64) -> Pick {
        Pick { wanted, left: None, page, distance: 1 }
    }

    fn takes(&mut self, bytes: u64, room: usize) -> bool {
        let left = *self.left.get_or_insert_with(|| {
            self.distance = (room as u64 / bytes / self.wanted).max(1);
            self.page.get() % self.distance
        });
        self.left = Some(left.checked_sub(1).unwrap_or(self.distance - 1));
        left == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_at_equal_distances() {
        let taken = |page, wanted| {
            let mut pick = Pick::new(PageNumber::new(page), wanted);
            (0..100).filter(|_| pick.takes(24, 2400)).collect::<Vec<u32>>()
        };
        assert_eq!(taken(0, 4), [0, 25, 50, 75]);
        assert_eq!(taken(33, 4), [8, 33, 58, 83]);
        assert_eq!(taken(7, 1000).len(), 100);
    }

    #[test]
    fn room_at_the_end_is_garbage_where_a_record_would_fit() {
        let page = |used, live, dead, longest| Tally { used, live, dead, longest };
        assert_eq!(page(4096, 2048, 2048, 64).garbage(4096), 2048.0);
        // Of one page in two the second half stays empty: its records are that long.
        assert_eq!(page(2100, 2100, 0, 2100).garbage(4096), 0.0);
        // Closed by a checkpoint after one record, or with nothing at all in it.
        assert_eq!(page(64, 64, 0, 64).garbage(4096), (4096 - 128) as f64);
        assert_eq!(page(0, 0, 0, 0).garbage(4096), 4096.0);
    }
}

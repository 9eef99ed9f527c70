//! The way back of pages into memory that were there before the log was opened.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use sapwood_disk::Blocks;
use sapwood_mem::epoch::Pin;

use crate::error::Result;
use crate::files::page::for_each_stored;
use crate::files::parts::PageRead;
use crate::index::{Probe, Walk};
use crate::log::Share;
use crate::log::back::{Named, Returning};
use crate::ops::store::Store;
use crate::record::address::{Address, PageNumber, UNIT_BYTES};
use crate::record::layout::control;
use crate::record::{Form, Record, word_at};

/// Named records whose buckets are asked for together.
const TOGETHER: usize = 32;

/// A source of the bytes of pages.
pub(crate) trait Stored {
    /// All of these pages are going to be read, from the last down.
    fn begin(&mut self, _pages: Range<PageNumber>) {}

    /// Reads a page.
    fn read<F: Form>(&mut self, store: &Store, page: PageNumber) -> Result<Noted>;

    /// What was read last.
    fn bytes(&self) -> &[u8];
}

/// What the records of a page say.
pub(crate) struct Noted {
    /// Bytes of the page that are used; the rest is zero.
    used: usize,
    /// Bits of control words, at these offsets, that mean nothing any more.
    stale: Vec<(usize, u64)>,
    /// The records that they name.
    previous: Vec<Address>,
}

impl Noted {
    /// Looks at the used bytes of a page that begins at an address.
    pub(crate) fn of<F: Form>(start: Address, stored: &[u8]) -> Result<Noted> {
        let mut noted = Noted { used: stored.len(), stale: Vec::new(), previous: Vec::new() };
        let _all = for_each_stored::<F, ()>(stored, 0, |offset, record| {
            let word = word_at(record, 0).expect("a record has a control word");
            // Superseded after the cut, as far as this history goes: not at all.
            let late = match word & control::LATE {
                0 => 0,
                _ => control::LATE | control::SUPERSEDED,
            };
            // Of locks it means nothing.
            let bits = word & (late | control::LOCKS);
            if bits != 0 {
                noted.stale.push((offset, bits));
            }
            let previous = control::previous(word);
            // One that was never published names a record nowhere.
            if previous != Address::NONE && previous < start.plus(offset) {
                noted.previous.push(previous);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(noted)
    }
}

/// Bytes of pages that the disk reads meanwhile.
const AHEAD_BYTES: usize = 8 << 20;
/// Pages that it reads at most: more are no faster.
const AHEAD_MAX: usize = 4;

/// Pages of the parts of a log. Where all of some come back, threads of the disk read the next ones
/// meanwhile, and look at their records.
#[derive(Default)]
struct OfParts {
    blocks: Blocks,
    coming: VecDeque<(PageNumber, PageRead<Noted>)>,
    /// Those that are not yet asked for.
    left: Range<PageNumber>,
}

impl Stored for OfParts {
    fn begin(&mut self, pages: Range<PageNumber>) {
        self.left = pages;
    }

    fn read<F: Form>(&mut self, store: &Store, page: PageNumber) -> Result<Noted> {
        let parts = store.log.parts.as_ref().expect("only stored pages come back");
        let ahead = (AHEAD_BYTES / store.log.page_bytes).clamp(1, AHEAD_MAX);
        let begin = |page: PageNumber, into: Blocks| {
            let start = store.log.page_start(page);
            parts.begin_page(page, into, move |stored| Noted::of::<F>(start, stored))
        };
        while self.coming.len() < ahead && self.left.start < self.left.end {
            self.left.end = self.left.end.before(1);
            let into = std::mem::take(&mut self.blocks);
            self.coming.push_back((self.left.end, begin(self.left.end, into)));
        }
        let read = match self.coming.pop_front() {
            Some((next, read)) if next == page => read,
            _ => begin(page, std::mem::take(&mut self.blocks)),
        };
        let (noted, blocks) = read.wait();
        self.blocks = blocks;
        noted
    }

    fn bytes(&self) -> &[u8] {
        self.blocks.bytes()
    }
}

impl Store {
    /// Reads pages back into memory that were there before the log was opened, unless the caller is
    /// pinned. What cannot be read stays on the disk: a caller that asks for it gets the error.
    pub(crate) fn read_back<F: Form>(&self, share: Share) {
        self.read_back_from::<F>(share, &mut OfParts::default());
    }

    /// The same, from any source.
    pub(crate) fn read_back_from<F: Form>(&self, share: Share, from: &mut impl Stored) {
        let log = &self.log;
        let Some((mut named, mut most)) = log.begin_reading(share) else { return };
        let before = log.head();
        if share == Share::All {
            from.begin(log.pages_to_come());
        }
        // One that a panic ended has left pages that not all appended records were marked in.
        let appended = match log.marked() > before {
            true => Appended::Perhaps,
            false => Appended::Known,
        };
        self.note_appended::<F>(&mut named, appended);
        while most > 0
            && let Some(next) = log.next_to_come()
        {
            match self.bring::<F>(&next, &mut named, from) {
                Ok(true) => self.mark_named::<F>(next.page, &mut named),
                Ok(false) | Err(_) => log.end_return(&mut named),
            }
            most -= 1;
        }
        if log.head() < before {
            // I-MARKED: all that had read an older `head` leave.
            log.wait_for_epoch(log.epochs.bump());
            self.note_appended::<F>(&mut named, Appended::Perhaps);
            log.note_marked();
        }
    }

    /// Brings the next page back; answers whether there was room for it.
    fn bring<F: Form>(
        &self,
        next: &Returning,
        named: &mut Named,
        from: &mut impl Stored,
    ) -> Result<bool> {
        let noted = from.read::<F>(self, next.page)?;
        for previous in noted.previous {
            self.note_previous(previous, named);
        }
        let stored = &from.bytes()[..noted.used];
        self.log.put_back(next, stored, &noted.stale, self.bytes_beside())
    }

    /// Notes that a record is named, if its page is to come back.
    #[inline]
    fn note_previous(&self, previous: Address, named: &mut Named) {
        let page = self.log.page_of(previous);
        let unit = previous.units() - self.log.page_start(page).units();
        named.note(page, unit as usize, self.log.page_bytes / UNIT_BYTES);
    }

    /// Notes which ones the records name that were appended since the log was opened, and since this was
    /// called last.
    fn note_appended<F: Form>(&self, named: &mut Named, appended: Appended) {
        let log = &self.log;
        let (from, limit) = (named.noted, log.tail());
        if from == limit {
            return;
        }
        // Appends below are done.
        log.wait_for_epoch(log.epochs.bump());
        // A page that begins at the limit may not be there yet.
        let last = log.page_of(limit);
        let behind = if limit > log.page_start(last) { last.next() } else { last };
        for page in PageNumber::each(log.page_of(from)..behind) {
            let pin = log.epochs.pin();
            let head = log.head();
            if log.page_start(page) < head {
                // The pages that came back left before it.
                continue;
            }
            let mut offset = 0;
            while let Some((address, record, flags)) =
                self.next_record::<F>(&pin, page, &mut offset)
            {
                if address >= limit {
                    break;
                }
                if address < from {
                    continue;
                }
                let previous = control::previous(flags);
                if previous < head {
                    self.note_previous(previous, named);
                } else if matches!(appended, Appended::Perhaps) {
                    self.mark_replaced::<F>(&pin, record, address);
                }
            }
        }
        named.noted = limit;
    }

    /// Marks the record that one in memory has superseded, if that is in memory.
    fn mark_replaced<F: Form>(&self, pin: &Pin<'_>, newer: Record, address: Address) {
        let (head, mut at) = (self.log.head(), newer.previous());
        let _found = F::with_key(newer, |key| {
            let key = F::key(key)?;
            while (head..address).contains(&at) {
                let record = self.log.record(pin, at);
                if F::has_key(record, key) {
                    self.log.mark(record, address);
                    break;
                }
                at = record.previous();
            }
            Result::Ok(())
        });
    }

    /// Marks what is superseded of a page that has come back.
    fn mark_named<F: Form>(&self, page: PageNumber, named: &mut Named) {
        let log = &self.log;
        let mut units = named.take(page).peekable();
        while units.peek().is_some() {
            let pin = log.epochs.pin();
            if log.page_start(page) < log.head() {
                return;
            }
            let mut records = [None; TOGETHER];
            let mut len = 0;
            for unit in units.by_ref() {
                let address = self.at(page, unit * UNIT_BYTES);
                let record = log.record(&pin, address);
                let flags = record.flags();
                if flags & control::VALID != 0
                    && flags & (control::SUPERSEDED | control::TOMBSTONE) == 0
                {
                    self.index.prefetch(F::hash_of(record));
                    records[len] = Some((address, record));
                    len += 1;
                    if len == TOGETHER {
                        break;
                    }
                }
            }
            self.chains_asked.add(len as i64);
            for (address, record) in records.into_iter().flatten() {
                let newer = F::with_key(record, |key| {
                    Result::Ok(self.newer_than::<F>(&pin, address, F::key(key)?))
                });
                match newer {
                    Ok(Known::Newest) | Err(_) => {}
                    Ok(Known::Replaced(newer)) => log.mark(record, newer),
                }
            }
        }
    }

    /// The newest record of the key of one in memory.
    fn newer_than<F: Form>(&self, pin: &Pin<'_>, target: Address, key: F::Key<'_>) -> Known {
        let probe = self.index.find(F::hash(key), |newest| {
            let mut address = newest;
            while address > target {
                let record = self.log.record(pin, address);
                // The newest is enough: of a key with many versions each would else visit all above it.
                if F::has_key(record, key) {
                    return Walk::Hit(Some(address));
                }
                address = record.previous();
            }
            if address == target { Walk::Hit(None) } else { Walk::End }
        });
        match probe {
            Probe::Hit(_, None) => Known::Newest,
            Probe::Hit(_, Some(newer)) => Known::Replaced(newer),
            // In no chain.
            Probe::Absent(_) => Known::Replaced(Address::NONE),
            Probe::Cold(..) | Probe::Unclear(_) => unreachable!("no walk ends at a cold record"),
        }
    }
}

/// What records that were appended did to those that have come back.
#[derive(Clone, Copy)]
enum Appended {
    /// They have marked what they superseded.
    Known,
    /// Some have not found it in memory.
    Perhaps,
}

/// What the index knows of a record.
enum Known {
    Newest,
    /// By the record at this address.
    Replaced(Address),
}

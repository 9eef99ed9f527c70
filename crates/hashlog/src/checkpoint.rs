//! Checkpoints: a consistent cut of the log, written while threads go on, and its recovery.
//!
//! A checkpoint fixes a moment as a scan does, writes the log up to the boundary, syncs it, and
//! then writes a manifest that says so. A full one also writes an image of the index as of the
//! moment: a slot that names a record above the boundary is followed down its chain. Recovery reads
//! the newest image that the manifest names and replays the log behind it: each record says which
//! record its slot named before, so the chains come out as they were.
//!
//! What a file refers to is synced before the file is: parts before the image, both before the
//! manifest, which takes its name by a rename. Files that no kept manifest needs go last.
//!
//! A number is used once. Where the rename of a manifest was tried and failed, or the sync that
//! makes it last, the manifest may be there, now or after a crash: what it names stays until a
//! later checkpoint is complete.
//!
//! | module | holds |
//! |---|---|
//! | `found` | the checkpoints of a directory, before any is opened |

mod found;

use std::mem::offset_of;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use sapwood_disk::Blocks;
use sapwood_mem::reserve::machine_bytes;

use crate::error::{Error, Result, no_memory};
use crate::files::Directory;
use crate::files::image::{self, ImageReader, ImageWriter};
use crate::files::kept::{Checkpoints, State, info, oldest_begin};
use crate::files::manifest::{self, Manifest, NotWritten};
use crate::files::page::{for_each_stored, not_a_record};
use crate::files::parts::Parts;
use crate::files::stored::{self, Damage, FileKind, ImageHeader, ManifestBytes};
use crate::index::Index;
use crate::lock::lock;
use crate::log::cold;
use crate::log::{Log, Share};
use crate::ops::store::Store;
use crate::options::{ColdReads, Cut, Options};
use crate::record::address::{Address, UNIT_BYTES};
use crate::record::layout::{bucket, control, slot};
use crate::record::{Form, word_at};
use crate::stats::CheckpointInfo;
use found::Found;
pub(crate) use found::list;

/// The checkpoint of a directory to open, and the purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The newest, or an empty log where there is none.
    Newest,
    /// This one, to go on from: what is newer is removed.
    Back(u64),
    /// This one, to look at: nothing is changed on the disk, now or later.
    View(u64),
}

impl Store {
    pub(crate) fn checkpoint<F: Form>(&self, cut: Cut) -> Result<CheckpointInfo> {
        let checkpoints = self.expect_checkpoints()?;
        if checkpoints.disk.is_read_only() {
            return Err(Error::ReadOnly);
        }
        if self.log.epochs.is_pinned() {
            return Err(Error::WouldBlock);
        }
        let mut state = lock(&checkpoints.state);
        let disk = &*checkpoints.disk;
        // What attempts have left that were cut off takes space that this one may need. Where it
        // cannot go now it can afterwards, or the disk says then why not.
        self.drop_surplus(&mut state);
        let _later = found::tidy(disk, state.named());
        let parts = self.log.parts.as_ref().expect("a log with a directory has parts");
        let moment = self.moment()?;
        let before = self.log.flushed();
        self.log.flush_below(moment.boundary)?;
        parts.sync()?;
        let number = state.next;
        state.next += 1;
        let full = cut == Cut::Full || state.kept.is_empty();
        let mut written_bytes = self.log.flushed().bytes().saturating_sub(before.bytes());
        let (image, image_end) = if full {
            let table_id = state.identity.table_id;
            let written = self.write_image::<F>(disk, number, moment.boundary, table_id);
            written_bytes += written.inspect_err(|_| remove_unnamed(disk, number))?;
            (number, moment.boundary.bytes())
        } else {
            let last = state.kept.last().expect("an incremental checkpoint follows another");
            (last.image, last.image_end)
        };
        let manifest = Manifest {
            number,
            table_id: state.identity.table_id,
            layout: self.options.layout,
            page_bytes: self.log.page_bytes as u64,
            begin: self.log.begin().bytes(),
            end: moment.boundary.bytes(),
            image,
            image_end,
            entries: self.entries.sum(),
            full,
            written_bytes,
        };
        match manifest::write(disk, &manifest) {
            Ok(()) => {}
            Err(NotWritten::Absent(error)) => {
                remove_unnamed(disk, number);
                return Err(error);
            }
            Err(NotWritten::Doubtful(error)) => {
                state.doubtful.push(manifest);
                checkpoints.oldest_begin.store(oldest_begin(state.named()), Ordering::SeqCst);
                return Err(error);
            }
        }
        drop(moment);
        let answer = info(&manifest);
        state.kept.push(manifest);
        state.doubtful.clear();
        self.prune(checkpoints, &mut state)?;
        drop(state);
        self.request_compaction_at_checkpoint();
        Ok(answer)
    }

    pub(crate) fn expect_checkpoints(&self) -> Result<&Checkpoints> {
        match (&self.checkpoints, &self.log.parts) {
            (Some(checkpoints), _) => Ok(checkpoints),
            (None, Some(_)) => Err(Error::View),
            (None, None) => Err(Error::NoDirectory),
        }
    }

    /// Notes the newest checkpoint, and removes what none that is kept needs.
    fn prune(&self, checkpoints: &Checkpoints, state: &mut State) -> Result<()> {
        let disk = &*checkpoints.disk;
        let newest = state.kept.last().expect("one was just taken").number;
        state.identity.write(disk, newest)?;
        self.drop_surplus(state);
        found::tidy(disk, state.kept.iter())?;
        if let Some(parts) = &self.log.parts {
            parts.remove_foreign()?;
        }
        self.drop_parts(checkpoints, state)
    }

    fn drop_surplus(&self, state: &mut State) {
        let surplus = state.kept.len().saturating_sub(self.options.checkpoints_kept);
        state.kept.drain(..surplus);
    }

    /// Removes the parts of the log below every `begin` that counts.
    fn drop_parts(&self, checkpoints: &Checkpoints, state: &State) -> Result<()> {
        let Some(parts) = &self.log.parts else { return Ok(()) };
        let needed = oldest_begin(state.named());
        checkpoints.oldest_begin.store(needed, Ordering::SeqCst);
        let oldest = needed.min(self.log.begin().bytes());
        parts.remove_below(self.log.page_of(Address::from_bytes(oldest)))?;
        Ok(())
    }

    /// After a compaction.
    pub(crate) fn drop_unneeded_parts(&self) -> Result<()> {
        match &self.checkpoints {
            None => Ok(()),
            Some(checkpoints) => self.drop_parts(checkpoints, &lock(&checkpoints.state)),
        }
    }

    /// Before the log is dropped: removes what was written of it since the newest checkpoint. What
    /// cannot go now goes when the log is opened.
    pub(crate) fn give_up_unsaved(&self) {
        let (Some(checkpoints), Some(parts)) = (&self.checkpoints, &self.log.parts) else { return };
        if checkpoints.disk.is_read_only() {
            return;
        }
        self.log.land();
        let state = lock(&checkpoints.state);
        let end = state.named().map(|manifest| manifest.end).max().unwrap_or(0);
        let page = self.log.page_of(Address::from_bytes(end));
        // What lay there when it was opened, and is not known to be needless, stays.
        if !state.identity.is_unwritten() || parts.has_from(page) {
            let _when_opened = parts.remove_from(page);
        }
    }

    fn write_image<F: Form>(
        &self,
        disk: &dyn sapwood_disk::Disk,
        number: u64,
        boundary: Address,
        table_id: u64,
    ) -> Result<u64> {
        let _still = self.index.growing.read().unwrap_or_else(PoisonError::into_inner);
        let count = self.index.count();
        let params = [count, boundary.units(), table_id, 0, 0, 0, 0, 0];
        let mut image = ImageWriter::create(disk, number, params)?;
        let mut words = Vec::new();
        for number in 0..count {
            {
                let _pin = self.log.epochs.pin();
                self.for_each_slot(number, |word| words.push(word & !slot::FROZEN));
            }
            for word in words.drain(..) {
                let address = self.below::<F>(slot::address(word), boundary)?;
                if address >= self.log.begin() {
                    image.push(number)?;
                    let same = address == slot::address(word);
                    let older = || slot::with_address(word, address) | slot::SHARED;
                    image.push(if same { word } else { older() })?;
                }
            }
        }
        image.finish()
    }

    /// The newest record of a chain below a boundary.
    fn below<F: Form>(&self, newest: Address, boundary: Address) -> Result<Address> {
        let mut address = newest;
        while address >= boundary {
            let pin = self.log.epochs.pin();
            if address >= self.log.head() {
                address = self.log.record(&pin, address).previous();
            } else {
                drop(pin);
                address = cold::fetch::<F>(&self.log, address)?.previous();
            }
        }
        Ok(address)
    }

    /// Opens what a directory holds.
    pub(crate) fn open<F: Form>(
        disk: Directory,
        mut options: Options,
        opening: Opening,
    ) -> Result<Store> {
        if disk.is_read_only() {
            // Nothing moves, neither to the tail nor out of the oldest pages.
            options.cold_reads = ColdReads::Stay;
        }
        if disk.is_read_only() || matches!(opening, Opening::View(_)) {
            options.compaction = None;
        }
        let found = Found::look(&*disk)?;
        let number = match opening {
            Opening::Newest => match found.newest() {
                Some(newest) => newest,
                None => {
                    // Before anything is written.
                    options.validate_new()?;
                    let identity = found.begin(&*disk, options.table_id)?;
                    let mut parts =
                        Parts::create(disk.clone(), options.page_bytes, identity.table_id)?;
                    if disk.is_read_only() {
                        parts = parts.for_reading();
                    }
                    let next = found.next_number()?;
                    let checkpoints = Checkpoints::new(disk, Vec::new(), next, identity);
                    return Store::create(options, Some((checkpoints, parts)));
                }
            },
            Opening::Back(number) | Opening::View(number) => {
                expect_listed(&disk, &found, number)?;
                number
            }
        };
        match Store::open_number::<F>(&disk, &options, &found, number, opening) {
            Err(cause @ Error::Corrupt { .. }) if opening == Opening::Newest => {
                // Not only one that looks as if it were whole.
                let opens = found.whole().rev().map(|older| older.number).find(|older| {
                    let view = Opening::View(*older);
                    *older < number
                        && Store::open_number::<F>(&disk, &options, &found, *older, view).is_ok()
                });
                Err(match opens {
                    Some(opens) => Error::CheckpointDamaged { number, cause: cause.into(), opens },
                    None => cause,
                })
            }
            opened => opened,
        }
    }

    /// Nothing is changed on the disk before the log is there.
    fn open_number<F: Form>(
        disk: &Directory,
        options: &Options,
        found: &Found,
        number: u64,
        opening: Opening,
    ) -> Result<Store> {
        let manifest = manifest::read(&**disk, number)?;
        let identity = found.identity_of(&manifest)?;
        let checkpoints = match opening {
            Opening::View(_) => None,
            Opening::Newest | Opening::Back(_) => {
                let older = found.whole().filter(|older| older.number <= number);
                let kept = older.cloned().collect();
                Some(Checkpoints::new(disk.clone(), kept, found.next_number()?, identity))
            }
        };
        let store = Store::recover::<F>(disk, options.clone(), &manifest, checkpoints)?;
        store.settle_files(found, opening)?;
        Ok(store)
    }

    /// Removes what lies behind the checkpoint that was opened: another history, where an older one
    /// was asked for, or one that no checkpoint vouches for.
    fn settle_files(&self, found: &Found, opening: Opening) -> Result<()> {
        let Some(checkpoints) = &self.checkpoints else { return Ok(()) };
        if checkpoints.disk.is_read_only() {
            return Ok(());
        }
        let mut state = lock(&checkpoints.state);
        let disk = &*checkpoints.disk;
        let newest = state.kept.last().expect("one was opened").clone();
        if let Opening::Back(number) = opening {
            // First, so that a crash on the way leaves none that is missed.
            if state.identity.newest != number {
                state.identity.write(disk, number)?;
            }
            for (newer, _) in found.manifests.iter().filter(|(newer, _)| *newer > number) {
                manifest::remove(disk, *newer)?;
            }
            stored::sync_names(disk)?;
        } else if !found.is_newest_known() {
            return Ok(());
        }
        let parts = self.log.parts.as_ref().expect("a log with a directory has parts");
        parts.remove_from(self.log.page_of(Address::from_bytes(newest.end)))?;
        let mut older = found.manifests.iter().filter(|(older, _)| *older <= newest.number);
        // What a damaged one names is not known.
        if older.all(|(_, read)| read.is_ok()) {
            found::tidy(disk, state.named())?;
        }
        Ok(())
    }

    fn recover<F: Form>(
        disk: &Directory,
        options: Options,
        newest: &Manifest,
        checkpoints: Option<Checkpoints>,
    ) -> Result<Store> {
        let mismatch = |what: &str, stored: String, given: String| {
            let place = disk.place();
            Error::Options(format!("{place} was made with {what} {stored}, not {given}"))
        };
        if newest.layout != options.layout {
            let (stored, given) = (format!("{:?}", newest.layout), format!("{:?}", options.layout));
            return Err(mismatch("layout", stored, given));
        }
        if newest.page_bytes != options.page_bytes as u64 {
            let (stored, given) = (newest.page_bytes.to_string(), options.page_bytes.to_string());
            return Err(mismatch("page_bytes", stored, given));
        }
        check_numbers(newest)?;
        let (begin, end) = (Address::from_bytes(newest.begin), Address::from_bytes(newest.end));
        let page = |address: Address| address.bytes() / newest.page_bytes;
        let (page_bytes, id) = (options.page_bytes, newest.table_id);
        let mut parts = Parts::open(disk.clone(), page_bytes, id, page(begin), page(end))?;
        if checkpoints.is_none() || disk.is_read_only() {
            parts = parts.for_reading();
        }
        let index = read_image(disk, newest, begin, &options)?;
        let log = Log::new(&options, Some(parts), page(end))?;
        log.place(begin, end, end);
        let store = Store::assemble(options, index, log, checkpoints);
        store.entries.set(newest.entries);
        store.replay::<F>(begin.max(Address::from_bytes(newest.image_end)), begin, end)?;
        store.log.bring_back(store.bytes_beside());
        Ok(store)
    }

    /// Puts the records of `from..end` into the index.
    fn replay<F: Form>(&self, from: Address, begin: Address, end: Address) -> Result<()> {
        let parts = self.log.parts.as_ref().expect("recovery has parts");
        let mut blocks = Blocks::new(self.log.page_bytes);
        for page in self.log.page_of(from)..self.log.page_of(end) {
            parts.read_page(page, &mut blocks)?;
            let stored = &blocks.bytes()[..self.log.page_bytes];
            let _all = for_each_stored::<F, ()>(stored, 0, |offset, record| {
                let word = word_at(record, 0).expect("a record has a control word");
                let address = self.at(page, offset);
                let (key, _) =
                    F::split(record).ok_or_else(|| not_a_record(parts.place(), address))?;
                let previous = control::previous(word);
                let buried = control::TOMBSTONE | control::SUPERSEDED;
                // A record that was never published; or one that was removed where it lay, with
                // nothing behind it: its slot may have been emptied, and needs not be.
                let needless = word & control::NOWHERE == control::NOWHERE
                    || word & buried == buried && previous < begin;
                if !needless {
                    let hash = F::hash(F::key(key)?);
                    self.index
                        .restore(hash, address, previous, begin, &self.log.epochs)
                        .map_err(no_memory(self.index.bytes()))?;
                }
                Ok(std::ops::ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    }

    /// Reads pages back into memory that were there before the log was opened, unless the caller is
    /// pinned. What cannot be read stays on the disk: a caller that asks for it gets the error.
    pub(crate) fn read_back<F: Form>(&self, share: Share) {
        let mut blocks = Blocks::default();
        self.log.read_back(share, |next| {
            let put_back =
                self.read_stored::<F>(next.page, &mut blocks).and_then(|(used, stale)| {
                    let stored = &blocks.bytes()[..used];
                    self.log.put_back(next, stored, &stale, self.bytes_beside())
                });
            put_back == Ok(true)
        });
    }

    /// Reads a page; answers how many of its bytes are used, and what of its records' control words
    /// says nothing in memory.
    fn read_stored<F: Form>(
        &self,
        page: u64,
        into: &mut Blocks,
    ) -> Result<(usize, Vec<(usize, u64)>)> {
        let parts = self.log.parts.as_ref().expect("only stored pages come back");
        let used = parts.read_page(page, into)?;
        let mut stale = Vec::new();
        let _all =
            for_each_stored::<F, ()>(&into.bytes()[..self.log.page_bytes], 0, |offset, record| {
                let word = word_at(record, 0).expect("a record has a control word");
                // Superseded after the cut, as far as this history goes: not at all.
                let late = match word & control::LATE {
                    0 => 0,
                    _ => control::LATE | control::SUPERSEDED,
                };
                stale.push((offset, late | control::LOCKS));
                Ok(std::ops::ControlFlow::Continue(()))
            })?;
        Ok((used, stale))
    }
}

/// Whether the log can lie where a manifest says, and hold as much: a checkpoint ends at a page
/// border, and so does what a compaction gives up; an entry has an address of its own.
fn check_numbers(manifest: &Manifest) -> Result<()> {
    let corrupt = |offset: usize, what: String| {
        let file = FileKind::Manifest.file_name(manifest.number);
        Err(Damage::new(offset, what).in_file(&file, 0))
    };
    if manifest.entries > slot::ADDRESS_MASK {
        let what = format!("{} entries, and no log has room for them", manifest.entries);
        return corrupt(offset_of!(ManifestBytes, entries), what);
    }
    let limit = (slot::ADDRESS_MASK + 1) * UNIT_BYTES as u64 - manifest.page_bytes;
    for (address, offset) in [
        (manifest.begin, offset_of!(ManifestBytes, begin)),
        (manifest.end, offset_of!(ManifestBytes, end)),
        (manifest.image_end, offset_of!(ManifestBytes, image_end)),
    ] {
        let borders = manifest.page_bytes..limit;
        if !borders.contains(&address) || address % manifest.page_bytes != 0 {
            return corrupt(offset, format!("no page of a log begins at {address}"));
        }
    }
    Ok(())
}

fn read_image(
    disk: &Directory,
    newest: &Manifest,
    begin: Address,
    options: &Options,
) -> Result<Index> {
    let mut image = ImageReader::open(&**disk, newest.image)?;
    check_image(&image, newest)?;
    let count = image.params()[0];
    let corrupt = |what: &str| Error::Corrupt {
        file: FileKind::Image.file_name(newest.image),
        offset: 0,
        what: what.to_owned(),
    };
    if !(2..=1 << 40).contains(&count) {
        return Err(corrupt("impossible number of buckets"));
    }
    // Before any of it is there: so many are zeroed at once.
    let (wanted, budget) =
        (count * bucket::BYTES as u64, options.memory_budget.unwrap_or(u64::MAX));
    if wanted > budget.min(machine_bytes().unwrap_or(u64::MAX)) {
        return Err(Error::OutOfMemory { used: 0, budget, wanted });
    }
    let index = Index::new(count, options.pages, options.memory_budget).map_err(no_memory(0))?;
    let epochs = sapwood_mem::epoch::Epochs::new();
    let mut number = None;
    while let Some(words) = image.next_words()? {
        for word in words {
            match number.take() {
                None if *word < count => number = Some(*word),
                None => return Err(corrupt("a bucket beyond the last")),
                // Given up by a compaction since.
                Some(_) if slot::address(*word) < begin => {}
                Some(bucket) => {
                    if word & (slot::TENTATIVE | slot::FROZEN) != 0 || !slot::is_whole(*word) {
                        return Err(corrupt("not the word of a slot"));
                    }
                    if slot::address(*word).bytes() >= newest.image_end {
                        return Err(corrupt("a slot that names a later record"));
                    }
                    index.place(bucket, *word, &epochs).map_err(no_memory(index.bytes()))?;
                }
            }
        }
    }
    Ok(index)
}

/// Whether an image is what a manifest names: of the same table, and of as much of its log.
fn check_image(image: &ImageReader, manifest: &Manifest) -> Result<()> {
    let [_, end, table_id, ..] = image.params();
    let param = |number: usize| offset_of!(ImageHeader, params) + number * size_of::<u64>();
    let damage = if table_id != manifest.table_id {
        stored::of_another_table(param(2), "index image")
    } else if Address::from_units(end).bytes() != manifest.image_end {
        let what = "the image covers another length of the log than its manifest says";
        Damage::new(param(1), what)
    } else {
        return Ok(());
    };
    Err(damage.in_file(&FileKind::Image.file_name(manifest.image), 0))
}

fn expect_listed(disk: &Directory, found: &Found, number: u64) -> Result<()> {
    if found.manifests.iter().any(|(listed, _)| *listed == number) {
        return Ok(());
    }
    let known: Vec<String> = found.whole().map(|known| known.number.to_string()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let place = disk.place();
    Err(Error::Options(format!("{place} has no checkpoint {number}; it has: {known}")))
}

/// Removes what a checkpoint wrote that failed before it had a manifest. What cannot go now goes
/// with the next one, and the error to tell of is the first.
fn remove_unnamed(disk: &dyn sapwood_disk::Disk, number: u64) {
    let _later = FileKind::UnfinishedManifest.remove(disk, number);
    let _later = image::remove(disk, number);
}

#[cfg(all(test, not(loom)))]
mod tests;

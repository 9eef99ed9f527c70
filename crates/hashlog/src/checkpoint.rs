//! How does a log survive its process? A cut through all threads, written down while they go on.
//!
//! A checkpoint fixes a moment as a scan does, writes the log up to the boundary, syncs it, and
//! then writes a manifest that says so. A full one also writes an image of the index as of the
//! moment: a slot that names a record above the boundary is followed down its chain. Recovery reads
//! the newest image that the manifest names and replays the log behind it: each record says which
//! record its slot named before, so the chains come out as they were.
//!
//! What a file refers to is synced before the file is: parts before the image, both before the
//! manifest, which takes its name by a rename. Files that no kept manifest needs go last.

use std::collections::BTreeSet;
use std::mem::offset_of;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use sapwood_disk::Blocks;
use sapwood_mem::reserve::machine_bytes;
use sapwood_mem::sync::held::Mutex;

use crate::address::{Address, UNIT_BYTES};
use crate::cold;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::image::{self, ImageReader, ImageWriter};
use crate::index::{Index, lock};
use crate::layout::{bucket, control, slot};
use crate::log::{Directory, Log, Share, no_memory};
use crate::manifest::{self, Manifest};
use crate::options::{ColdReads, Options};
use crate::parts::Parts;
use crate::record::{Form, word_at};
use crate::scan::for_each_stored;
use crate::stats::CheckpointInfo;
use crate::stored::{self, Damage, FileKind, ManifestBytes};

/// What a checkpoint writes beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The log since the last checkpoint: small; recovery replays it over the last full one.
    Incremental,
    /// The log since the last checkpoint and an image of the index: recovery is fast.
    Full,
}

/// The checkpoints of a log.
pub(crate) struct Checkpoints {
    pub(crate) disk: Directory,
    /// Those that are kept, oldest first.
    kept: Mutex<Vec<Manifest>>,
    /// First byte of the log that the oldest needs: `u64::MAX` without any.
    oldest_begin: AtomicU64,
}

impl Checkpoints {
    pub(crate) fn new(disk: Directory, kept: Vec<Manifest>) -> Checkpoints {
        let oldest_begin = AtomicU64::new(oldest_begin(&kept));
        Checkpoints { disk, kept: Mutex::new(kept), oldest_begin }
    }

    /// First byte of the log that a checkpoint needs. Waits for no checkpoint to be done.
    pub(crate) fn oldest_begin(&self) -> Option<u64> {
        let begin = self.oldest_begin.load(Ordering::SeqCst);
        (begin != u64::MAX).then_some(begin)
    }

    pub(crate) fn infos(&self) -> Vec<CheckpointInfo> {
        lock(&self.kept).iter().map(info).collect()
    }
}

fn oldest_begin(kept: &[Manifest]) -> u64 {
    kept.iter().map(|manifest| manifest.begin).min().unwrap_or(u64::MAX)
}

fn info(manifest: &Manifest) -> CheckpointInfo {
    CheckpointInfo {
        number: manifest.number,
        full: manifest.full,
        begin: manifest.begin,
        end: manifest.end,
        written_bytes: manifest.written_bytes,
    }
}

impl Core {
    pub(crate) fn checkpoint<F: Form>(&self, cut: Cut) -> Result<CheckpointInfo> {
        let checkpoints = self.checkpoints.as_ref().ok_or(Error::NoDirectory)?;
        if checkpoints.disk.is_read_only() {
            return Err(Error::ReadOnly);
        }
        if self.log.epochs.is_pinned() {
            return Err(Error::WouldBlock);
        }
        let mut kept = lock(&checkpoints.kept);
        let parts = self.log.parts.as_ref().expect("a log with a directory has parts");
        let moment = self.moment()?;
        let before = self.log.flushed();
        self.log.flush_below(moment.boundary)?;
        parts.sync()?;
        let number = kept.last().map_or(1, |last| last.number + 1);
        let full = cut == Cut::Full || kept.is_empty();
        let mut written_bytes = self.log.flushed().bytes().saturating_sub(before.bytes());
        let (image, image_end) = if full {
            written_bytes += self.write_image::<F>(&checkpoints.disk, number, moment.boundary)?;
            (number, moment.boundary.bytes())
        } else {
            let last = kept.last().expect("an incremental checkpoint follows another");
            (last.image, last.image_end)
        };
        let manifest = Manifest {
            number,
            table_id: 0,
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
        manifest::write(&*checkpoints.disk, &manifest)?;
        drop(moment);
        let answer = info(&manifest);
        kept.push(manifest);
        self.prune(checkpoints, &mut kept)?;
        drop(kept);
        self.nudge_at_checkpoint();
        Ok(answer)
    }

    /// Removes what no checkpoint that is kept needs.
    fn prune(&self, checkpoints: &Checkpoints, kept: &mut Vec<Manifest>) -> Result<()> {
        let disk = &checkpoints.disk;
        let mut images: BTreeSet<u64> = kept.iter().map(|manifest| manifest.image).collect();
        while kept.len() > self.options.checkpoints_kept {
            let old = kept.remove(0);
            manifest::remove(&**disk, old.number)?;
        }
        // Before what they name goes.
        stored::sync_names(&**disk)?;
        images.retain(|image| kept.iter().all(|manifest| manifest.image != *image));
        for image in images {
            image::remove(&**disk, image)?;
        }
        self.drop_parts(checkpoints, kept)
    }

    /// Removes the parts of the log below every `begin` that counts.
    fn drop_parts(&self, checkpoints: &Checkpoints, kept: &[Manifest]) -> Result<()> {
        let Some(parts) = &self.log.parts else { return Ok(()) };
        let needed = oldest_begin(kept);
        checkpoints.oldest_begin.store(needed, Ordering::SeqCst);
        let oldest = needed.min(self.log.begin().bytes());
        parts.remove_below(self.log.page_of(Address::from_bytes(oldest)))?;
        Ok(())
    }

    /// After a compaction.
    pub(crate) fn drop_unneeded_parts(&self) -> Result<()> {
        match &self.checkpoints {
            None => Ok(()),
            Some(checkpoints) => self.drop_parts(checkpoints, &lock(&checkpoints.kept)),
        }
    }

    fn write_image<F: Form>(
        &self,
        disk: &Directory,
        number: u64,
        boundary: Address,
    ) -> Result<u64> {
        let _still = self.index.growing.read().unwrap_or_else(PoisonError::into_inner);
        let count = self.index.count();
        let params = [count, boundary.units(), 0, 0, 0, 0, 0, 0];
        let mut image = ImageWriter::create(&**disk, number, params)?;
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

    /// Opens what a directory holds: the checkpoint of this number, or the newest.
    pub(crate) fn open<F: Form>(
        disk: Directory,
        mut options: Options,
        number: Option<u64>,
    ) -> Result<Core> {
        if disk.is_read_only() {
            // Nothing moves, neither to the tail nor out of the oldest pages.
            options.cold_reads = ColdReads::Stay;
            options.compaction = None;
        }
        let mut kept = Vec::new();
        let mut newer = Vec::new();
        for (_, listed) in manifest::list(&*disk)? {
            match (listed, number) {
                (Ok(manifest), Some(wanted)) if manifest.number > wanted => newer.push(manifest),
                (Ok(manifest), _) => kept.push(manifest),
                // Older than the one that is opened, or unreadable beside the wanted one.
                (Err(_), Some(_)) => {}
                (Err(_), None) if !kept.is_empty() => {}
                (Err(damaged), None) => return Err(damaged),
            }
        }
        kept.sort_by_key(|manifest| manifest.number);
        match (kept.last(), number) {
            (last, Some(wanted)) if last.is_none_or(|last| last.number != wanted) => {
                let known: Vec<String> =
                    kept.iter().chain(&newer).map(|known| known.number.to_string()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let place = disk.place();
                Err(Error::Options(format!("{place} has no checkpoint {wanted}; it has: {known}")))
            }
            (None, _) => {
                if !disk.is_read_only() {
                    remove_leftovers(&disk)?;
                }
                let parts = Parts::create(disk.clone(), options.page_bytes)?;
                Core::create(options, Some((disk, parts)))
            }
            (Some(newest), _) => {
                let newest = newest.clone();
                if !disk.is_read_only() {
                    // What is newer goes first, so that a crash on the way leaves no two histories.
                    for manifest in newer {
                        manifest::remove(&*disk, manifest.number)?;
                    }
                    stored::sync_names(&*disk)?;
                }
                Core::recover::<F>(disk, options, newest, kept)
            }
        }
    }

    fn recover<F: Form>(
        disk: Directory,
        options: Options,
        newest: Manifest,
        kept: Vec<Manifest>,
    ) -> Result<Core> {
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
        check_numbers(&newest)?;
        let (begin, end) = (Address::from_bytes(newest.begin), Address::from_bytes(newest.end));
        let page = |address: Address| address.bytes() / newest.page_bytes;
        let parts = Parts::open(disk.clone(), options.page_bytes, page(begin), page(end))?;
        if !disk.is_read_only() {
            // Spilled after the cut: another history.
            parts.remove_from(page(end))?;
        }
        let index = read_image(&disk, &newest, begin, &options)?;
        let log = Log::new(&options, Some(parts), page(end))?;
        log.place(begin, end, end);
        let core = Core::assemble(options, index, log, Some(Checkpoints::new(disk, kept)));
        core.entries.set(newest.entries);
        core.replay::<F>(begin.max(Address::from_bytes(newest.image_end)), begin, end)?;
        core.log.bring_back(core.bytes_beside());
        Ok(core)
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
                let (key, _) = F::split(record)
                    .ok_or_else(|| crate::scan::not_a_record(parts.place(), address))?;
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
                        .map_err(no_memory)?;
                }
                Ok(std::ops::ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    }

    /// Reads pages back into memory that were there before the log was opened, unless the caller is
    /// pinned. What cannot be read stays on the disk: who asks for it gets the error.
    pub(crate) fn read_back<F: Form>(&self, share: Share) {
        let mut blocks = Blocks::default();
        self.log.read_back(share, |next| {
            let put_back = self.read_stored::<F>(next.page, &mut blocks).and_then(|stale| {
                let stored = &blocks.bytes()[..self.log.page_bytes];
                self.log.put_back(next, stored, &stale, self.bytes_beside())
            });
            put_back == Ok(true)
        });
    }

    /// Reads a page; answers what of its records' control words says nothing in memory.
    fn read_stored<F: Form>(&self, page: u64, into: &mut Blocks) -> Result<Vec<(usize, u64)>> {
        let parts = self.log.parts.as_ref().expect("only stored pages come back");
        parts.read_page(page, into)?;
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
        Ok(stale)
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
    if wanted > budget.min(machine_bytes() as u64) {
        return Err(Error::OutOfMemory { used: 0, budget, wanted });
    }
    let index = Index::new(count, options.pages, options.memory_budget).map_err(no_memory)?;
    let epochs = sapwood_mem::boundary::Epochs::new();
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
                    index.place(bucket, *word, &epochs).map_err(no_memory)?;
                }
            }
        }
    }
    Ok(index)
}

/// Files of a process that ended before its first checkpoint.
fn remove_leftovers(disk: &Directory) -> Result<()> {
    let place = disk.place();
    let names = disk.list().map_err(|cause| Error::io(format!("cannot list {place}"), &cause))?;
    for name in names.iter().filter(|name| {
        name.starts_with("log-") || name.starts_with("index-") || name.starts_with("checkpoint-")
    }) {
        disk.remove(name)
            .map_err(|cause| Error::io(format!("cannot remove {name} in {place}"), &cause))?;
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests;

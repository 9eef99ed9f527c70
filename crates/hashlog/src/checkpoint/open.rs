//! The opening of a checkpoint: the image of the index is read, the log behind it replayed.

use std::mem::offset_of;

use sapwood_disk::Blocks;
use sapwood_mem::reserve::machine_bytes;

use crate::checkpoint::found;
use crate::checkpoint::found::FilesFound;
use crate::error::{Error, Result, no_memory};
use crate::files::checkpoint_number::CheckpointNumber;
use crate::files::image::ImageReader;
use crate::files::kept::Checkpoints;
use crate::files::manifest::Manifest;
use crate::files::page::{for_each_stored, not_a_record};
use crate::files::parts::Parts;
use crate::files::stored::{Damage, FileKind, ImageHeader, ManifestBytes};
use crate::files::{Directory, manifest, stored};
use crate::index::Index;
use crate::lock::lock;
use crate::log::Log;
use crate::ops::store::Store;
use crate::options::{ColdReads, Options};
use crate::record::address::{Address, PageNumber, UNIT_BYTES};
use crate::record::layout::{bucket, control, slot};
use crate::record::{Form, word_at};

/// The checkpoint of a directory to open, and the purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The newest, or an empty log where there is none.
    Newest,
    /// This one, to go on from: what is newer is removed.
    Back(CheckpointNumber),
    /// This one, to look at: nothing is changed on the disk, now or later.
    View(CheckpointNumber),
}

impl Store {
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
        let found = FilesFound::look(&*disk)?;
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
                    Some(opens) => {
                        let (number, opens) = (number.get(), opens.get());
                        Error::CheckpointDamaged { number, cause: cause.into(), opens }
                    }
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
        found: &FilesFound,
        number: CheckpointNumber,
        opening: Opening,
    ) -> Result<Store> {
        // As it was found: one that could be read only now would not be among those that are kept.
        let listed = found.manifests.iter().find(|(listed, _)| *listed == number);
        let manifest = match listed {
            Some((_, read)) => read.clone()?,
            None => manifest::read(&**disk, number)?,
        };
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
    fn settle_files(&self, found: &FilesFound, opening: Opening) -> Result<()> {
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
        let page = self.log.page_of(Address::from_bytes(newest.end));
        if disk.is_being_read() {
            // A reader may have opened the course that goes on behind it, also where a crash ended the going back.
            parts.leave_to_readers(page)?;
        }
        parts.remove_from(page)?;
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
        let page = |address: Address| PageNumber::new(address.bytes() / newest.page_bytes);
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
        let mut blocks = Blocks::default();
        for page in PageNumber::each(self.log.page_of(from)..self.log.page_of(end)) {
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
}

/// Whether the log can lie where a manifest says, and hold as much: a checkpoint ends at a page
/// border, and so does what a compaction gives up; an entry has an address of its own.
pub(super) fn check_numbers(manifest: &Manifest) -> Result<()> {
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
pub(super) fn check_image(image: &ImageReader, manifest: &Manifest) -> Result<()> {
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

fn expect_listed(disk: &Directory, found: &FilesFound, number: CheckpointNumber) -> Result<()> {
    if found.manifests.iter().any(|(listed, _)| *listed == number) {
        return Ok(());
    }
    let known: Vec<String> = found.whole().map(|known| known.number.to_string()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let place = disk.place();
    Err(Error::Options(format!("{place} has no checkpoint {number}; it has: {known}")))
}

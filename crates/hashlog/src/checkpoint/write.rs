//! The writing of a checkpoint, and the removal of files that none needs.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::checkpoint::found;
use crate::error::{Error, Result};
use crate::files::checkpoint_number::CheckpointNumber;
use crate::files::image::ImageWriter;
use crate::files::kept::{CheckpointList, Checkpoints, info, oldest_begin};
use crate::files::manifest::{Manifest, NotWritten};
use crate::files::stored::FileKind;
use crate::files::{image, manifest};
use crate::lock::lock;
use crate::log::cold;
use crate::ops::by_layout;
use crate::ops::store::Store;
use crate::options::Cut;
use crate::record::Form;
use crate::record::address::Address;
use crate::record::layout::slot;
use crate::stats::CheckpointInfo;
use crate::walks::by_log::Moment;
use crate::walks::snapshot::Snapshot;

impl Snapshot<'_> {
    /// Writes a checkpoint of this moment, as [`HashLog::checkpoint`](crate::HashLog::checkpoint)
    /// does of one of its own. Several logs have checkpoints of one moment so: their owner holds
    /// writers back while snapshots are taken, and lets them go on while checkpoints are written.
    ///
    /// # Errors
    /// As [`HashLog::checkpoint`](crate::HashLog::checkpoint); [`Error::Argument`] if there is a
    /// checkpoint of a later moment.
    pub fn checkpoint(self, cut: Cut) -> Result<CheckpointInfo> {
        by_layout!(self, F => self.store.checkpoint_of::<F>(Some(self.moment), cut))
    }
}

impl Store {
    pub(crate) fn checkpoint<F: Form>(&self, cut: Cut) -> Result<CheckpointInfo> {
        self.checkpoint_of::<F>(None, cut)
    }

    /// Writes a checkpoint of a moment, or of one that comes when no other is being written.
    pub(crate) fn checkpoint_of<F: Form>(
        &self,
        moment: Option<Moment<'_>>,
        cut: Cut,
    ) -> Result<CheckpointInfo> {
        if self.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let checkpoints = self.expect_checkpoints()?;
        if self.log.epochs.is_pinned() {
            return Err(Error::WouldBlock);
        }
        let _files = lock(&checkpoints.files);
        let mut state = lock(&checkpoints.state);
        let disk = &*checkpoints.disk;
        // What attempts have left that were cut off takes space that this one may need. Where it
        // cannot go now it can afterwards, or the disk says then why not.
        self.drop_surplus(&mut state);
        let _later = found::tidy(disk, state.named());
        let parts = self.log.parts.as_ref().expect("a log with a directory has parts");
        let moment = match moment {
            Some(moment) => moment,
            None => self.moment()?,
        };
        if state.named().any(|manifest| manifest.end > moment.boundary.bytes()) {
            let why = "a checkpoint of a later moment is there; take one of this moment anew";
            return Err(Error::Argument(why.to_owned()));
        }
        let before = self.log.flushed();
        self.log.flush_below(moment.boundary)?;
        parts.sync()?;
        if let Some(journal) = self.journal.get() {
            // INVARIANT: I-LOGGED: the journal has all changes before the moment.
            journal.sync()?;
        }
        let number = state.next;
        state.next = number.next();
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
            entries: moment.entries,
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
    fn prune(&self, checkpoints: &Checkpoints, state: &mut CheckpointList) -> Result<()> {
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

    fn drop_surplus(&self, state: &mut CheckpointList) {
        let surplus = state.kept.len().saturating_sub(self.options.checkpoints_kept);
        state.kept.drain(..surplus);
    }

    /// Removes the parts of the log below every `begin` that counts.
    fn drop_parts(&self, checkpoints: &Checkpoints, state: &CheckpointList) -> Result<()> {
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
            Some(checkpoints) => {
                let _files = lock(&checkpoints.files);
                self.drop_parts(checkpoints, &lock(&checkpoints.state))
            }
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
        number: CheckpointNumber,
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
}

/// Removes what a checkpoint wrote that failed before it had a manifest. What cannot go now goes
/// with the next one, and the error to tell of is the first.
fn remove_unnamed(disk: &dyn sapwood_disk::Disk, number: CheckpointNumber) {
    let _later = FileKind::UnfinishedManifest.remove(disk, number);
    let _later = image::remove(disk, number);
}

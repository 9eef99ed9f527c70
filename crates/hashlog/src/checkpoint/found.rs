//! The checkpoints of a directory, before any is opened.

use std::sync::Arc;

use sapwood_disk::{BLOCK_BYTES, Blocks, Disk};

use crate::error::{Error, Result};
use crate::files::checkpoint_number::CheckpointNumber;
use crate::files::identity::{self, Identity, Known};
use crate::files::image::ImageReader;
use crate::files::kept::info;
use crate::files::manifest::{self, Manifest};
use crate::files::parts::Parts;
use crate::files::stored::{self, FileKind, Kind, PartHeader};
use crate::record::address::PageNumber;
use crate::stats::{CheckpointInfo, StoredCheckpoint};

use super::open::{check_image, check_numbers};

/// The files of a log, but those of other programs.
pub(crate) struct FilesFound {
    /// Numbers, ascending, and what is wrong with those that are damaged.
    pub(super) manifests: Vec<(CheckpointNumber, Result<Manifest>)>,
    unfinished: Vec<CheckpointNumber>,
    images: Vec<CheckpointNumber>,
    /// First pages.
    parts: Vec<PageNumber>,
    pub(super) identity: Known,
}

impl FilesFound {
    /// Looks and changes nothing.
    ///
    /// # Errors
    /// `Io` when the disk fails, `Newer`: an older checkpoint is not what should be opened then.
    pub(super) fn look(disk: &dyn Disk) -> Result<FilesFound> {
        let names = stored::names(disk)?;
        let manifests = FileKind::Manifest.among(&names).into_iter();
        let manifests: Vec<_> =
            manifests.map(|number| (number, manifest::read(disk, number))).collect();
        let newer = manifests.iter().find_map(|(_, read)| match read {
            Err(newer @ Error::Newer { .. }) => Some(newer),
            _ => None,
        });
        if let Some(newer) = newer {
            return Err(newer.clone());
        }
        Ok(FilesFound {
            manifests,
            unfinished: FileKind::UnfinishedManifest.among(&names),
            images: FileKind::Image.among(&names),
            parts: FileKind::Part.among(&names),
            identity: Identity::read(disk)?,
        })
    }

    /// Manifests that can be read, the oldest first.
    pub(super) fn whole(&self) -> impl DoubleEndedIterator<Item = &Manifest> {
        self.manifests.iter().filter_map(|(_, read)| read.as_ref().ok())
    }

    /// The newest checkpoint there is, or should be; `None` without any.
    pub(super) fn newest(&self) -> Option<CheckpointNumber> {
        let listed = self.manifests.last().map(|(number, _)| *number);
        let told = match &self.identity {
            Known::Whole(identity) if identity.newest > CheckpointNumber::NONE => {
                Some(identity.newest)
            }
            _ => None,
        };
        listed.max(told)
    }

    /// The identity of the table that this manifest is of.
    pub(super) fn identity_of(&self, manifest: &Manifest) -> Result<Identity> {
        match &self.identity {
            Known::Whole(identity) if identity.table_id == manifest.table_id => Ok(*identity),
            Known::Whole(_) => {
                let file = FileKind::Manifest.file_name(manifest.number);
                let offset = std::mem::offset_of!(stored::ManifestBytes, table_id);
                Err(stored::of_another_table(offset, "manifest").in_file(&file, 0))
            }
            // Made by a version that wrote none; or damaged, and the manifest knows the same.
            Known::Absent | Known::Damaged(_) => Ok(Identity::unwritten(manifest.table_id)),
        }
    }

    /// Whether what lies behind the newest manifest is of no complete checkpoint: without an
    /// identity it may be that the manifest of one is missing.
    pub(super) fn is_newest_known(&self) -> bool {
        matches!(self.identity, Known::Whole(_))
    }

    /// A number that no file has had.
    ///
    /// # Errors
    /// `Corrupt` where a file has the last number there is.
    pub(super) fn next_number(&self) -> Result<CheckpointNumber> {
        let kinds = [
            (FileKind::Manifest, self.manifests.last().map(|(number, _)| *number)),
            (FileKind::UnfinishedManifest, self.unfinished.last().copied()),
            (FileKind::Image, self.images.last().copied()),
        ];
        let mut highest = self.newest().unwrap_or(CheckpointNumber::NONE);
        for (kind, last) in kinds {
            if last == Some(CheckpointNumber::LAST) {
                let what = "no checkpoint has this number: remove the file".to_owned();
                return Err(Error::Corrupt {
                    file: kind.file_name(CheckpointNumber::LAST),
                    offset: 0,
                    what,
                });
            }
            highest = highest.max(last.unwrap_or(CheckpointNumber::NONE));
        }
        Ok(highest.next())
    }

    /// Of a directory without any manifest: the table that is to begin there, with what a process
    /// left that ended before its first checkpoint removed, unless the disk is only read.
    ///
    /// # Errors
    /// `Corrupt` where there were checkpoints: then nothing is removed.
    pub(super) fn begin(&self, disk: &dyn Disk, table_id: u64) -> Result<Identity> {
        let has_log = !self.parts.is_empty() || !self.images.is_empty();
        let mut identity = match &self.identity {
            Known::Whole(identity) => *identity,
            Known::Damaged(error) if has_log => return Err(error.clone()),
            Known::Absent if has_log => {
                self.expect_no_checkpoint_before(disk)?;
                Identity::unwritten(table_id)
            }
            // Nothing, or nothing but an identity that was being written.
            Known::Absent | Known::Damaged(_) => Identity::unwritten(table_id),
        };
        if disk.is_read_only() {
            return Ok(identity);
        }
        for (kind, numbers) in
            [(FileKind::UnfinishedManifest, &self.unfinished), (FileKind::Image, &self.images)]
        {
            numbers.iter().try_for_each(|number| kind.remove(disk, *number))?;
        }
        self.parts.iter().try_for_each(|first_page| FileKind::Part.remove(disk, *first_page))?;
        if identity.is_unwritten() {
            identity.write(disk, CheckpointNumber::NONE)?;
        }
        Ok(identity)
    }

    /// Version 2 made no identity: a log from its first page on, without an index image, is what
    /// its tables were before their first checkpoint.
    fn expect_no_checkpoint_before(&self, disk: &dyn Disk) -> Result<()> {
        let is_from_the_first =
            self.images.is_empty() && self.parts.first() == Some(&PageNumber::ZERO);
        if is_from_the_first && !is_of_this_version(disk)? {
            return Ok(());
        }
        let place = disk.place();
        let what = format!(
            "{place} has the log of a table, and no manifest of a checkpoint nor {}: nothing was removed",
            identity::NAME
        );
        let file = FileKind::Manifest
            .file_name(self.images.last().copied().unwrap_or(CheckpointNumber::FIRST));
        Err(Error::Corrupt { file, offset: 0, what })
    }
}

/// Whether the first part of a log was made with an identity beside it.
fn is_of_this_version(disk: &dyn Disk) -> Result<bool> {
    let file = FileKind::Part.open(disk, PageNumber::ZERO)?;
    let name = FileKind::Part.file_name(PageNumber::ZERO);
    if stored::file_bytes(&*file, &name)? < BLOCK_BYTES as u64 {
        return Ok(false);
    }
    let block = stored::read_block(&*file, &name, 0)?;
    let header = stored::check_alone::<PartHeader>(Kind::PartHeader, block.bytes());
    Ok(header.is_ok_and(|header| header.envelope.version > stored::VERSION_MIN))
}

/// The checkpoints of a directory, the oldest first, and what is wrong with each: with its
/// manifest, its index image, which is read whole, and where the pages of its log lie.
pub(crate) fn list(disk: &Arc<dyn Disk>) -> Result<Vec<StoredCheckpoint>> {
    let found = FilesFound::look(&**disk)?;
    let mut all: Vec<StoredCheckpoint> = found
        .manifests
        .iter()
        .map(|(number, read)| {
            let state = read.clone().and_then(|manifest| inspect(disk, &found, &manifest));
            StoredCheckpoint { number: number.get(), state }
        })
        .collect();
    if let Some(number) =
        found.newest().filter(|newest| all.last().is_none_or(|last| last.number < newest.get()))
    {
        let state = manifest::read(&**disk, number).map(|manifest| info(&manifest));
        all.push(StoredCheckpoint { number: number.get(), state });
    }
    Ok(all)
}

fn inspect(
    disk: &Arc<dyn Disk>,
    found: &FilesFound,
    manifest: &Manifest,
) -> Result<CheckpointInfo> {
    found.identity_of(manifest)?;
    check_numbers(manifest)?;
    let mut image = ImageReader::open(&**disk, manifest.image)?;
    check_image(&image, manifest)?;
    while image.next_words()?.is_some() {}
    let page = |address: u64| PageNumber::new(address / manifest.page_bytes);
    let _all_there = Parts::open(
        Arc::clone(disk),
        manifest.page_bytes as usize,
        manifest.table_id,
        page(manifest.begin),
        page(manifest.end),
    )?;
    Ok(info(manifest))
}

/// What is wrong with the files of a log that is not open: of each checkpoint, and of each page of the newest.
pub(crate) fn check(disk: &Arc<dyn Disk>) -> Result<Vec<Error>> {
    let mut problems: Vec<Error> =
        list(disk)?.into_iter().filter_map(|stored| stored.state.err()).collect();
    let found = FilesFound::look(&**disk)?;
    let Some((_, Ok(manifest))) = found.manifests.last() else { return Ok(problems) };
    let page = |address: u64| PageNumber::new(address / manifest.page_bytes);
    let (mut next, limit) = (page(manifest.begin), page(manifest.end));
    let page_bytes = manifest.page_bytes as usize;
    // Where not all pages are there, that was told above.
    let parts = Parts::open(Arc::clone(disk), page_bytes, manifest.table_id, next, limit);
    let Ok(parts) = parts else { return Ok(problems) };
    let mut bytes = Blocks::default();
    while next < limit {
        problems.extend(parts.read_page(next, &mut bytes).err());
        next = next.next();
    }
    Ok(problems)
}

/// Removes what was not finished, and manifests but those that are named; then images that none of these names.
pub(super) fn tidy<'a>(
    disk: &dyn Disk,
    named: impl Iterator<Item = &'a Manifest> + Clone,
) -> Result<()> {
    let is_named =
        |number: &CheckpointNumber| named.clone().any(|manifest| manifest.number == *number);
    let is_image =
        |number: &CheckpointNumber| named.clone().any(|manifest| manifest.image == *number);
    let names = stored::names(disk)?;
    for number in FileKind::UnfinishedManifest.among::<CheckpointNumber>(&names) {
        FileKind::UnfinishedManifest.remove(disk, number)?;
    }
    for first_page in FileKind::UnfinishedPart.among::<PageNumber>(&names) {
        FileKind::UnfinishedPart.remove(disk, first_page)?;
    }
    for number in FileKind::Manifest.among(&names).iter().filter(|number| !is_named(number)) {
        FileKind::Manifest.remove(disk, *number)?;
    }
    let images = FileKind::Image.among(&names);
    let mut unnamed = images.iter().filter(|number| !is_image(number)).peekable();
    if unnamed.peek().is_some() {
        // A manifest goes, lastingly, before what it names.
        stored::sync_names(disk)?;
    }
    unnamed.try_for_each(|number| FileKind::Image.remove(disk, *number))
}

//! The identity of a table: which one lies in a directory, and its newest complete checkpoint.
//!
//! A file of two blocks, of which the newer valid one counts. It is there before any other file of
//! the table, and told of each checkpoint once that is complete: so where no manifest is there, it
//! says whether there ever was one, and where the newest is missing, that it is. Each block is
//! written by itself and synced before the other is written again: a crash leaves one of them.

use std::mem::offset_of;

use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, File};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::files::checkpoint_number::CheckpointNumber;
use crate::files::stored::{self, Damage, Envelope, IdentityBytes, Kind};

/// The file.
pub(crate) const NAME: &str = "table.identity";

/// The identity of a table, and the block to write next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The table's number: 0 where it was made without a number.
    pub(crate) table_id: u64,
    /// Number of the newest checkpoint that is known to be complete, 0 without any.
    pub(crate) newest: CheckpointNumber,
    /// The highest that was written, whole or not.
    generation: u64,
    /// The block that lasts; `None` without a file.
    lasting: Option<IdentityBlock>,
}

/// One of the two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdentityBlock {
    First,
    Second,
}

impl IdentityBlock {
    fn offset(self) -> u64 {
        match self {
            IdentityBlock::First => 0,
            IdentityBlock::Second => BLOCK_BYTES as u64,
        }
    }

    fn other(self) -> IdentityBlock {
        match self {
            IdentityBlock::First => IdentityBlock::Second,
            IdentityBlock::Second => IdentityBlock::First,
        }
    }
}

/// A folder's answer about its table.
#[derive(Debug)]
pub(crate) enum Known {
    /// No file: nothing was made here, or by a version that wrote none.
    Absent,
    /// The damage.
    Damaged(Error),
    Whole(Identity),
}

impl Identity {
    /// Of a table whose identity is not on the disk yet.
    pub(crate) fn unwritten(table_id: u64) -> Identity {
        Identity { table_id, newest: CheckpointNumber::NONE, generation: 0, lasting: None }
    }

    /// Whether no file of it is there.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.lasting.is_none()
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// `Io` when the disk fails, `Newer`.
    pub(crate) fn read(disk: &dyn Disk) -> Result<Known> {
        let file = match disk.open(NAME) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Known::Absent),
            Err(cause) => {
                return Err(Error::io(format!("open {NAME} in {}", disk.place()), &cause));
            }
            Ok(file) => file,
        };
        let first = read_block(&*file, IdentityBlock::First)?;
        let second = read_block(&*file, IdentityBlock::Second)?;
        for damage in [&first, &second].into_iter().filter_map(|read| read.as_ref().err()) {
            damage.expect_known(NAME)?;
        }
        Ok(match (first, second) {
            (Ok(first), Ok(second)) if second.generation > first.generation => Known::Whole(second),
            (Ok(one), _) | (Err(_), Ok(one)) => Known::Whole(one),
            (Err(damage), Err(_)) => Known::Damaged(damage.in_file(NAME, 0)),
        })
    }

    /// Says, lastingly, which checkpoint is the newest.
    ///
    /// # Errors
    /// `Io`: what was said before, or this, is there.
    pub(crate) fn write(&mut self, disk: &dyn Disk, newest: CheckpointNumber) -> Result<()> {
        let place = self.lasting.map_or(IdentityBlock::First, IdentityBlock::other);
        self.generation += 1;
        let (file, is_new) = match self.lasting {
            Some(_) => (open(disk)?, false),
            None => (create(disk)?, true),
        };
        let mut block = Blocks::new(BLOCK_BYTES);
        let identity = IdentityBytes {
            envelope: Envelope::unsealed(),
            table_id: self.table_id.into(),
            generation: self.generation.into(),
            newest: newest.get().into(),
        };
        stored::seal(Kind::Identity, &identity, block.bytes_mut());
        if is_new {
            // Both blocks: the other one is zero, and none.
            block.resize(2 * BLOCK_BYTES);
            block.bytes_mut()[BLOCK_BYTES..].fill(0);
        }
        file.write_at(place.offset(), &block)
            .map_err(|cause| Error::io(format!("write {NAME}"), &cause))?;
        file.sync().map_err(|cause| Error::io(format!("sync {NAME}"), &cause))?;
        if is_new {
            stored::sync_names(disk)?;
        }
        (self.newest, self.lasting) = (newest, Some(place));
        Ok(())
    }
}

fn open(disk: &dyn Disk) -> Result<Arc<dyn File>> {
    disk.open(NAME).map_err(|cause| Error::io(format!("open {NAME} in {}", disk.place()), &cause))
}

/// In place of one that was damaged, or left behind.
fn create(disk: &dyn Disk) -> Result<Arc<dyn File>> {
    let made = match disk.create(NAME) {
        Err(cause) if cause.kind() == std::io::ErrorKind::AlreadyExists => {
            disk.remove(NAME).and_then(|()| disk.create(NAME))
        }
        made => made,
    };
    made.map_err(|cause| Error::io(format!("create {NAME} in {}", disk.place()), &cause))
}

fn read_block(
    file: &dyn File,
    place: IdentityBlock,
) -> Result<std::result::Result<Identity, Damage>> {
    match stored::read_block(file, NAME, place.offset()) {
        Ok(block) => Ok(decode(block.bytes(), place)),
        Err(Error::Corrupt { what, .. }) => Ok(Err(Damage::new(0, what))),
        Err(failed) => Err(failed),
    }
}

fn decode(bytes: &[u8], place: IdentityBlock) -> std::result::Result<Identity, Damage> {
    let raw: IdentityBytes = stored::check_alone(Kind::Identity, bytes)?;
    if raw.generation == 0 {
        return Err(Damage::new(offset_of!(IdentityBytes, generation), "a generation of zero"));
    }
    Ok(Identity {
        table_id: raw.table_id.get(),
        newest: raw.newest.get().into(),
        generation: raw.generation.get(),
        lasting: Some(place),
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::files::stored::tests::assert_golden;
    use sapwood_disk::SimDisk;

    fn whole(disk: &dyn Disk) -> Identity {
        match Identity::read(disk).expect("a disk without faults") {
            Known::Whole(identity) => identity,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_said_last_is_read() {
        let disk = SimDisk::new();
        assert!(matches!(Identity::read(&disk), Ok(Known::Absent)));
        let mut identity = Identity::unwritten(77);
        for newest in [0, 1, 5, 3, u64::MAX] {
            identity.write(&disk, CheckpointNumber::from(newest)).expect("a disk without faults");
            assert_eq!((identity.newest.get(), identity.table_id), (newest, 77));
            assert_eq!(whole(&disk), identity);
        }
        // Another process goes on.
        let mut identity = whole(&disk);
        identity.write(&disk, CheckpointNumber::from(9)).expect("a disk without faults");
        assert_eq!(whole(&disk), identity);
    }

    #[test]
    fn a_crash_leaves_what_was_said_before_or_now() {
        for stop in 0..=2 {
            let disk = SimDisk::new();
            let mut identity = Identity::unwritten(7);
            for newest in 0..4 {
                identity
                    .write(&disk, CheckpointNumber::from(newest))
                    .expect("a disk without faults");
            }
            disk.stop_after(stop);
            let done = identity.write(&disk, CheckpointNumber::from(4)).is_ok();
            assert_eq!(done, stop == 2, "two operations");
            for image in disk.crash_images(1_000) {
                let newest = whole(&image).newest;
                assert!(
                    newest == CheckpointNumber::from(4)
                        || !done && newest == CheckpointNumber::from(3),
                    "{newest}"
                );
            }
        }
    }

    /// What was to be said and failed does not cost what lasts.
    #[test]
    fn a_write_that_failed_is_made_in_the_same_place() {
        use sapwood_disk::{Faults, SyncFault};
        let disk = SimDisk::new();
        let mut identity = Identity::unwritten(7);
        identity.write(&disk, CheckpointNumber::from(1)).expect("a disk without faults");
        let failing = SyncFault::Doubtful(std::io::ErrorKind::Other);
        disk.set_faults(Faults::new().syncs(.., failing));
        for newest in 2..5 {
            identity.write(&disk, CheckpointNumber::from(newest)).expect_err("the sync fails");
            assert!(
                disk.crash_images(1_000)
                    .all(|image| whole(&image).newest <= CheckpointNumber::from(newest))
            );
        }
        disk.set_faults(Faults::new());
        identity.write(&disk, CheckpointNumber::from(5)).expect("a disk without faults");
        assert!(
            disk.crash_images(1_000).all(|image| whole(&image).newest == CheckpointNumber::from(5))
        );
    }

    #[test]
    fn a_flipped_byte_leaves_the_other_block() {
        let disk = SimDisk::new();
        let mut identity = Identity::unwritten(7);
        identity.write(&disk, CheckpointNumber::from(1)).expect("a disk without faults");
        identity.write(&disk, CheckpointNumber::from(2)).expect("a disk without faults");
        for at in 0..2 * BLOCK_BYTES as u64 {
            disk.damage(NAME, at, 1 << (at % 8)).expect("in the file");
            assert_eq!(
                whole(&disk).newest,
                CheckpointNumber::from(if at < BLOCK_BYTES as u64 { 2 } else { 1 })
            );
            disk.damage(NAME, at, 1 << (at % 8)).expect("in the file");
        }
        disk.truncate(NAME, 100).expect("it is there");
        assert!(matches!(Identity::read(&disk), Ok(Known::Damaged(Error::Corrupt { .. }))));
    }

    #[test]
    fn the_golden_identity_opens() {
        let disk = SimDisk::new();
        let mut identity = Identity::unwritten(0x1122_3344_5566_7788);
        identity.write(&disk, CheckpointNumber::from(0)).expect("a disk without faults");
        identity.write(&disk, CheckpointNumber::from(3)).expect("a disk without faults");
        assert_golden("version-3.identity", &disk.contents(NAME).expect("there"));
        let golden = include_bytes!("../../tests/golden/version-3.identity");
        disk.plant(NAME, golden).expect("planted");
        assert_eq!(whole(&disk), identity);
    }
}

//! Manifests, which name complete checkpoints.
//!
//! A checkpoint is complete once its manifest has its name: the log below `end` and the index image
//! that it builds on have been made to last before. A manifest is written under another name, made
//! to last, and renamed, so that a crash leaves all of it or nothing.

use std::mem::offset_of;

use sapwood_disk::{BLOCK_BYTES, Blocks, Disk};

use crate::error::{Error, Result};
use crate::files::checkpoint_number::CheckpointNumber;
use crate::files::stored::{self, Damage, Envelope, FileKind, Kind, ManifestBytes};
use crate::options::Layout;

/// The contents of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Number of the checkpoint, from 1; higher is newer.
    pub(crate) number: CheckpointNumber,
    /// The number of its table.
    pub(crate) table_id: u64,
    /// Lengths of keys and values.
    pub(crate) layout: Layout,
    /// Bytes of a page of the log.
    pub(crate) page_bytes: u64,
    /// First log address, in bytes.
    pub(crate) begin: u64,
    /// Log address behind the last record, in bytes.
    pub(crate) end: u64,
    /// Number of the checkpoint with the index image that this one builds on.
    pub(crate) image: CheckpointNumber,
    /// Log address that the image covers: the index of records from here on is found by reading
    /// the log.
    pub(crate) image_end: u64,
    /// Entries of the table.
    pub(crate) entries: u64,
    /// Whether the image is its own.
    pub(crate) full: bool,
    /// Bytes that the checkpoint wrote.
    pub(crate) written_bytes: u64,
}

/// Stored: do not renumber.
const LAYOUTS: [(u32, Layout); 2] = [(1, Layout::Variable), (2, Layout::Fixed8)];
/// Stored: do not renumber.
const EXTENTS: [(u32, bool); 2] = [(1, true), (2, false)];

fn to_code<T: PartialEq>(codes: &[(u32, T)], value: &T) -> u32 {
    codes.iter().find(|(_, known)| known == value).expect("every value has a code").0
}

fn from_code<T: Copy>(codes: &[(u32, T)], code: u32) -> Option<T> {
    codes.iter().find(|(known, _)| *known == code).map(|(_, value)| *value)
}

impl Manifest {
    /// The manifest as its file holds it.
    pub(crate) fn encode(&self) -> Blocks {
        let mut block = Blocks::new(BLOCK_BYTES);
        let structure = ManifestBytes {
            envelope: Envelope::unsealed(),
            number: self.number.get().into(),
            table_id: self.table_id.into(),
            layout: to_code(&LAYOUTS, &self.layout).into(),
            extent: to_code(&EXTENTS, &self.full).into(),
            page_bytes: self.page_bytes.into(),
            begin: self.begin.into(),
            end: self.end.into(),
            image: self.image.get().into(),
            image_end: self.image_end.into(),
            entries: self.entries.into(),
            written_bytes: self.written_bytes.into(),
        };
        stored::seal(Kind::Manifest, &structure, block.bytes_mut());
        block
    }

    /// The manifest in these bytes, if they are a manifest and say nothing that contradicts itself.
    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<Manifest, Damage> {
        if bytes.len() != BLOCK_BYTES {
            let why = format!("a manifest has {BLOCK_BYTES} bytes, not {}", bytes.len());
            return Err(Damage::new(bytes.len().min(BLOCK_BYTES), why));
        }
        let raw: ManifestBytes = stored::check_alone(Kind::Manifest, bytes)?;
        let unknown = |offset, what: &str, code| {
            Damage::new(offset, format!("{code} is no {what} that this program knows"))
        };
        let layout = from_code(&LAYOUTS, raw.layout.get())
            .ok_or_else(|| unknown(offset_of!(ManifestBytes, layout), "layout", raw.layout))?;
        let full = from_code(&EXTENTS, raw.extent.get())
            .ok_or_else(|| unknown(offset_of!(ManifestBytes, extent), "extent", raw.extent))?;
        let manifest = Manifest {
            number: raw.number.get().into(),
            table_id: raw.table_id.get(),
            layout,
            page_bytes: raw.page_bytes.get(),
            begin: raw.begin.get(),
            end: raw.end.get(),
            image: raw.image.get().into(),
            image_end: raw.image_end.get(),
            entries: raw.entries.get(),
            full,
            written_bytes: raw.written_bytes.get(),
        };
        match manifest.contradiction() {
            Some(damage) => Err(damage),
            None => Ok(manifest),
        }
    }

    fn contradiction(&self) -> Option<Damage> {
        let page_bytes_fit =
            self.page_bytes.is_power_of_two() && (64..=32 << 20).contains(&self.page_bytes);
        let checks = [
            (
                self.number > CheckpointNumber::NONE,
                offset_of!(ManifestBytes, number),
                "checkpoints count from 1",
            ),
            (
                page_bytes_fit,
                offset_of!(ManifestBytes, page_bytes),
                "a page has a power of two of bytes, 64 B to 32 MiB",
            ),
            (
                self.begin <= self.end,
                offset_of!(ManifestBytes, end),
                "the log ends before it begins",
            ),
            (
                (CheckpointNumber::FIRST..=self.number).contains(&self.image),
                offset_of!(ManifestBytes, image),
                "the index image is of no earlier checkpoint",
            ),
            (
                self.full == (self.image == self.number),
                offset_of!(ManifestBytes, extent),
                "the index image is its own and another's",
            ),
            (
                self.image_end <= self.end,
                offset_of!(ManifestBytes, image_end),
                "the index image covers more than the log",
            ),
        ];
        let broken = checks.into_iter().find(|(holds, ..)| !holds);
        broken.map(|(_, offset, what)| Damage::new(offset, what))
    }
}

/// The reason why a checkpoint is not complete.
#[derive(Debug)]
pub(crate) enum NotWritten {
    /// The manifest is not there.
    Absent(Error),
    /// The manifest may be there or not, now and after a crash: what it names must stay until a
    /// later checkpoint is complete, and its number is used up.
    Doubtful(Error),
}

/// Makes a checkpoint complete, lastingly. Everything that it names must last already.
///
/// # Errors
/// `Io` when the disk fails, `Options` when the manifest contradicts itself.
pub(crate) fn write(disk: &dyn Disk, manifest: &Manifest) -> std::result::Result<(), NotWritten> {
    write_unnamed(disk, manifest).map_err(NotWritten::Absent)?;
    let unfinished = FileKind::UnfinishedManifest.file_name(manifest.number);
    let finished = FileKind::Manifest.file_name(manifest.number);
    disk.rename(&unfinished, &finished)
        .map_err(|cause| Error::io(format!("rename {unfinished} to {finished}"), &cause))
        .and_then(|()| stored::sync_names(disk))
        .map_err(NotWritten::Doubtful)
}

fn write_unnamed(disk: &dyn Disk, manifest: &Manifest) -> Result<()> {
    if let Some(damage) = manifest.contradiction() {
        return Err(Error::Options(format!("checkpoint {}: {}", manifest.number, damage.what)));
    }
    let unfinished = FileKind::UnfinishedManifest.file_name(manifest.number);
    let file = FileKind::UnfinishedManifest.create(disk, manifest.number)?;
    file.write_at(0, &manifest.encode())
        .map_err(|cause| Error::io(format!("write {unfinished}"), &cause))?;
    file.sync().map_err(|cause| Error::io(format!("sync {unfinished}"), &cause))
}

/// Reads the manifest of a checkpoint.
///
/// # Errors
/// `Corrupt` when it is missing or damaged, `Io` when the disk fails.
pub(crate) fn read(disk: &dyn Disk, number: CheckpointNumber) -> Result<Manifest> {
    let name = FileKind::Manifest.file_name(number);
    let file = FileKind::Manifest.open(disk, number)?;
    let bytes = stored::file_bytes(&*file, &name)?;
    if bytes != BLOCK_BYTES as u64 {
        let what = format!("the file has {bytes} bytes, and a manifest has {BLOCK_BYTES}");
        return Err(Error::Corrupt { file: name, offset: bytes.min(BLOCK_BYTES as u64), what });
    }
    let block = stored::read_block(&*file, &name, 0)?;
    let manifest = Manifest::decode(block.bytes()).map_err(|damage| damage.in_file(&name, 0))?;
    if manifest.number != number {
        let what = format!("the manifest of checkpoint {} under this name", manifest.number);
        return Err(Damage::new(offset_of!(ManifestBytes, number), what).in_file(&name, 0));
    }
    Ok(manifest)
}

/// All complete checkpoints, newest first: their numbers, and their manifests or what is wrong with
/// them.
#[cfg(test)]
pub(crate) fn list(disk: &dyn Disk) -> Result<Vec<(CheckpointNumber, Result<Manifest>)>> {
    let numbers: Vec<CheckpointNumber> = FileKind::Manifest.list(disk)?;
    Ok(numbers.into_iter().rev().map(|number| (number, read(disk, number))).collect())
}

/// Removes a manifest, so that its checkpoint is none any more, and what a crash left of one that
/// was being written. Lasting after [`stored::sync_names`], which must come before anything that
/// it names is removed.
pub(crate) fn remove(disk: &dyn Disk, number: CheckpointNumber) -> Result<()> {
    FileKind::UnfinishedManifest.remove(disk, number)?;
    FileKind::Manifest.remove(disk, number)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::files::stored::tests::{assert_golden, rounds};
    use proptest::prelude::*;
    use sapwood_disk::{FileDisk, SimDisk};

    /// A manifest as [`list`] tells of it.
    fn listed_as(manifest: Manifest) -> (CheckpointNumber, Result<Manifest>) {
        (manifest.number, Ok(manifest))
    }

    pub(crate) fn sample(number: u64) -> Manifest {
        let number = CheckpointNumber::from(number);
        Manifest {
            number,
            table_id: 0x1122_3344_5566_7788,
            layout: Layout::Fixed8,
            page_bytes: 4096,
            begin: 64,
            end: 10_000,
            image: number,
            image_end: 9_000,
            entries: 77,
            full: true,
            written_bytes: 12_345,
        }
    }

    #[test]
    fn manifests_come_back_newest_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let disks: [&dyn Disk; 2] =
            [&SimDisk::new(), &FileDisk::open(folder.path()).expect("a disk")];
        for disk in disks {
            assert!(list(disk).expect("none yet").is_empty());
            let older = Manifest { layout: Layout::Variable, ..sample(9) };
            let newer = Manifest { full: false, image: CheckpointNumber::from(9), ..sample(0x10) };
            for manifest in [&newer, &older] {
                write(disk, manifest).expect("written");
            }
            let listed = list(disk).expect("listed");
            assert_eq!(listed, [listed_as(newer.clone()), listed_as(older.clone())]);
            remove(disk, CheckpointNumber::from(0x10)).expect("removed");
            assert_eq!(list(disk).expect("listed"), [listed_as(older)]);
            let names = disk.list().expect("names");
            assert_eq!(names, ["checkpoint-0000000000000009.manifest"], "nothing unfinished");
        }
    }

    #[test]
    fn every_flipped_byte_and_every_other_length_is_refused() {
        let good = sample(3).encode().bytes().to_vec();
        assert_eq!(Manifest::decode(&good), Ok(sample(3)));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            let damage = Manifest::decode(&bad).expect_err("a flipped bit");
            assert!(damage.offset < 16, "the envelope tells: {damage:?}");
        }
        for len in 0..good.len() {
            assert!(Manifest::decode(&good[..len]).is_err(), "{len} bytes");
        }
        assert!(Manifest::decode(&[good, vec![0]].concat()).is_err());
    }

    #[test]
    fn contradictions_are_neither_written_nor_read() {
        let disk = SimDisk::new();
        let good = sample(3);
        for bad in [
            Manifest {
                number: CheckpointNumber::from(0),
                image: CheckpointNumber::from(0),
                ..good.clone()
            },
            Manifest { page_bytes: 0, ..good.clone() },
            Manifest { page_bytes: 65, ..good.clone() },
            Manifest { page_bytes: 32, ..good.clone() },
            Manifest { page_bytes: 64 << 20, ..good.clone() },
            Manifest { begin: 10_001, ..good.clone() },
            Manifest { image: CheckpointNumber::from(4), ..good.clone() },
            Manifest { image: CheckpointNumber::from(0), full: false, ..good.clone() },
            Manifest { image: CheckpointNumber::from(2), ..good.clone() },
            Manifest { full: false, ..good.clone() },
            Manifest { image_end: 10_001, ..good.clone() },
        ] {
            let refused = write(&disk, &bad);
            assert!(matches!(refused, Err(NotWritten::Absent(Error::Options(_)))), "{bad:?}");
            let damage = Manifest::decode(bad.encode().bytes()).expect_err("refused");
            assert!(damage.offset >= 16, "a field tells: {damage:?}");
        }
        assert!(disk.list().expect("names").is_empty());
    }

    /// Found by fuzzing: the rest of the block was not looked at.
    #[test]
    fn a_block_that_goes_on_is_refused() {
        let mut block = sample(3).encode();
        for at in [size_of::<ManifestBytes>(), BLOCK_BYTES - 1] {
            block.bytes_mut()[at] = 1;
            let raw: ManifestBytes =
                zerocopy::FromBytes::read_from_prefix(block.bytes()).expect("long enough").0;
            stored::seal(Kind::Manifest, &raw, block.bytes_mut());
            let damage = Manifest::decode(block.bytes()).expect_err("more than was written");
            assert_eq!(damage.offset, at as u64);
            block.bytes_mut()[at] = 0;
        }
    }

    #[test]
    fn codes_that_are_never_written_are_refused() {
        for (field, len) in
            [(offset_of!(ManifestBytes, layout), 4), (offset_of!(ManifestBytes, extent), 4)]
        {
            for code in [0u32, 3, u32::MAX] {
                let mut block = sample(3).encode();
                block.bytes_mut()[field..field + len].copy_from_slice(&code.to_le_bytes());
                let raw: ManifestBytes =
                    zerocopy::FromBytes::read_from_prefix(block.bytes()).expect("long enough").0;
                stored::seal(Kind::Manifest, &raw, block.bytes_mut());
                let damage = Manifest::decode(block.bytes()).expect_err("refused");
                assert_eq!(damage.offset, field as u64);
            }
        }
    }

    #[test]
    fn a_manifest_under_a_wrong_name_is_corrupt() {
        let disk = SimDisk::new();
        write(&disk, &sample(3)).expect("written");
        let bytes = disk.contents("checkpoint-0000000000000003.manifest").expect("there");
        disk.plant("checkpoint-0000000000000004.manifest", &bytes).expect("planted");
        disk.plant("checkpoint-0000000000000005.manifest", b"short").expect("planted");
        let listed = list(&disk).expect("listed");
        assert_eq!(listed.len(), 3);
        assert_eq!((listed[0].0.get(), listed[1].0.get()), (5, 4));
        assert!(matches!(listed[0].1, Err(Error::Corrupt { offset: 5, .. })), "{listed:?}");
        assert!(matches!(listed[1].1, Err(Error::Corrupt { offset: 16, .. })), "{listed:?}");
        assert_eq!(listed[2], listed_as(sample(3)));
    }

    /// At every operation of writing the second manifest, power goes: the first is there, and the
    /// second whole or not at all.
    #[test]
    fn a_crash_leaves_a_manifest_whole_or_not_at_all() {
        let mut seen = [0, 0];
        for stop in 0..=5 {
            let disk = SimDisk::new();
            write(&disk, &sample(1)).expect("written");
            disk.stop_after(stop);
            let finished = write(&disk, &sample(2)).is_ok();
            assert_eq!(finished, stop == 5, "five operations");
            let images = disk.crash_images(1000);
            assert!(images.exhaustive());
            for image in images {
                let listed = list(&image).expect("listed");
                let (first, newer) = listed.split_last().expect("the first lasts");
                assert_eq!(*first, listed_as(sample(1)));
                match newer {
                    [] => assert!(!finished),
                    newer => assert_eq!(newer, [listed_as(sample(2))]),
                }
                seen[newer.len()] += 1;
                write(&image, &sample(2)).expect("what was left behind is no obstacle");
            }
        }
        assert!(seen[0] > 0 && seen[1] > 0);
    }

    #[test]
    fn the_golden_manifest_opens() {
        assert_golden("version-3.manifest", sample(3).encode().bytes());
        let version_2 = include_bytes!("../../tests/golden/checkpoint-0000000000000003.manifest");
        assert_eq!(Manifest::decode(version_2), Ok(sample(3)));
    }

    /// Version 1 hashed 8-byte keys otherwise: what it wrote cannot be found any more.
    #[test]
    fn an_older_version_is_refused_by_its_number() {
        let older = include_bytes!("../../tests/golden/version-1.manifest");
        let refused = Manifest::decode(older).expect_err("another version").what;
        assert!(
            refused.contains("has format version 1, and this program reads 2 to 3"),
            "{refused}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(rounds(256)))]

        #[test]
        fn any_bytes_are_refused_or_mean_something(
            bytes in prop::collection::vec(any::<u8>(), 0..5000),
            at in 16usize..160,
            with in prop::collection::vec(any::<u8>(), 1..40),
        ) {
            prop_assert!(Manifest::decode(&bytes).is_err());
            // With a right checksum: what is accepted is what would be written.
            let mut block = sample(3).encode();
            block.bytes_mut()[at..at + with.len()].copy_from_slice(&with);
            let raw: ManifestBytes =
                zerocopy::FromBytes::read_from_prefix(block.bytes()).expect("long enough").0;
            stored::seal(Kind::Manifest, &raw, block.bytes_mut());
            if let Ok(manifest) = Manifest::decode(block.bytes()) {
                prop_assert_eq!(Manifest::decode(manifest.encode().bytes()), Ok(manifest));
            }
        }
    }
}

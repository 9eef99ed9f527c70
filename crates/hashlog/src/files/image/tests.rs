use super::*;
use crate::files::stored::tests::{assert_golden, rounds};
use proptest::prelude::*;
use sapwood_disk::{Faults, FileDisk, SimDisk, SyncFault, WriteFault};
use std::io::ErrorKind;
use zerocopy::FromBytes;

const PARAMS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, u64::MAX];

fn word(at: u64) -> u64 {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 5
}

fn write(disk: &dyn Disk, number: u64, count: u64) -> Result<u64> {
    let mut writer = ImageWriter::create(disk, CheckpointNumber::from(number), PARAMS)?;
    for at in 0..count {
        writer.push(word(at))?;
    }
    writer.finish()
}

/// All words, or the first complaint.
fn read(disk: &dyn Disk, number: u64) -> Result<Vec<u64>> {
    let mut reader = ImageReader::open(disk, CheckpointNumber::from(number))?;
    assert_eq!(reader.params(), PARAMS);
    let mut all = Vec::new();
    while let Some(words) = reader.next_words()? {
        assert!(!words.is_empty());
        all.extend_from_slice(words);
    }
    assert_eq!(reader.next_words(), Ok(None), "the end stays the end");
    Ok(all)
}

/// As [`read`], for files of any bytes.
fn read_planted(bytes: &[u8]) -> Result<Vec<u64>> {
    let disk = SimDisk::new();
    disk.plant("index-0000000000000007.image", bytes).expect("planted");
    read(&disk, 7)
}

fn written(count: u64) -> Vec<u8> {
    let disk = SimDisk::new();
    write(&disk, 7, count).expect("written");
    disk.contents("index-0000000000000007.image").expect("there")
}

#[test]
fn words_come_back_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let disks: [&dyn Disk; 2] = [&SimDisk::new(), &FileDisk::open(folder.path()).expect("a disk")];
    let full = WORDS_MAX as u64;
    for disk in disks {
        for (number, count) in (1..).zip([0, 1, 508, 509, full - 1, full, full + 1, 2 * full + 9]) {
            let bytes = write(disk, number, count).expect("written");
            let file = disk.open(&FileKind::Image.file_name(number)).expect("there");
            assert_eq!(file.bytes().expect("a length"), bytes);
            let words = read(disk, number).expect("read");
            assert!(words.iter().copied().eq((0..count).map(word)), "{count} words");
        }
        assert_eq!(
            FileKind::Image.list::<u64>(disk).expect("numbers"),
            (1..=8).collect::<Vec<_>>()
        );
        remove(disk, CheckpointNumber::from(1)).expect("removed");
        assert!(matches!(read(disk, 1), Err(Error::Corrupt { .. })));
    }
}

#[test]
fn an_image_that_was_left_behind_is_replaced() {
    let disk = SimDisk::new();
    write(&disk, 7, 10).expect("written");
    let mut abandoned =
        ImageWriter::create(&disk, CheckpointNumber::from(7), PARAMS).expect("in its place");
    abandoned.push(1).expect("buffered");
    drop(abandoned);
    assert!(matches!(read(&disk, 7), Err(Error::Corrupt { .. })), "unfinished");
    write(&disk, 7, 3).expect("written");
    assert_eq!(read(&disk, 7).expect("read").len(), 3);
}

#[test]
fn a_cut_image_is_noticed_at_every_length() {
    let bytes = written(600);
    // Every length near the borders of blocks, and some between.
    for len in (0..bytes.len()).filter(|len| len % 97 == 0 || (len + 3) % 4096 < 6) {
        let refused = read_planted(&bytes[..len]).expect_err("cut off");
        assert!(matches!(refused, Error::Corrupt { .. }), "{len}: {refused}");
    }
    for extra in [1, 4096, 8192] {
        let longer = [bytes.clone(), vec![0; extra]].concat();
        assert!(matches!(read_planted(&longer), Err(Error::Corrupt { .. })), "{extra} more");
    }
}

#[test]
fn a_chunk_less_or_twice_is_noticed() {
    let bytes = written(WORDS_MAX as u64 * 2);
    let (header, rest) = bytes.split_at(BLOCK_BYTES);
    let (first, rest) = rest.split_at(CHUNK_BYTES);
    let (second, end) = rest.split_at(CHUNK_BYTES);
    assert!(read_planted(&[header, first, second, end].concat()).is_ok());
    for wrong in [
        [header, first, end].concat(),
        [header, second, end].concat(),
        [header, second, first, end].concat(),
        [header, first, first, end].concat(),
        [header, first, second, second, end].concat(),
        [header, first, second, end, end].concat(),
        [header, first, second].concat(),
        [header, end].concat(),
        [first, second, end].concat(),
    ] {
        assert!(matches!(read_planted(&wrong), Err(Error::Corrupt { .. })));
    }
}

/// Found by fuzzing: such images were read, though none is written so.
#[test]
fn a_sealed_image_that_is_never_written_is_refused() {
    let reseal = |bytes: &mut [u8], kind, at: usize, len: usize| {
        let block = &mut bytes[at..at + len];
        match kind {
            Kind::ImageHeader => {
                let (header, _) = ImageHeader::read_from_prefix(block).expect("long enough");
                stored::seal(kind, &header, block);
            }
            Kind::ImageChunk => {
                let (header, _) = ImageChunk::read_from_prefix(block).expect("long enough");
                stored::seal(kind, &header, block);
            }
            _ => {
                let (end, _) = ImageEnd::read_from_prefix(block).expect("long enough");
                stored::seal(kind, &end, block);
            }
        }
    };
    // Behind the header, behind the words of the chunk, behind the end.
    for (kind, block, at) in [
        (Kind::ImageHeader, 0, size_of::<ImageHeader>()),
        (Kind::ImageChunk, 1, size_of::<ImageChunk>() + 20 * 8),
        (Kind::ImageEnd, 2, size_of::<ImageEnd>()),
    ] {
        let mut bytes = written(20);
        let begin = block * BLOCK_BYTES;
        bytes[begin + at] = 1;
        reseal(&mut bytes, kind, begin, BLOCK_BYTES);
        let refused = read_planted(&bytes).expect_err("bytes that should be zero");
        let wanted = (begin + at) as u64;
        assert!(matches!(refused, Error::Corrupt { offset, .. } if offset == wanted), "{refused}");
    }
    // A chunk that is not full, and another behind it.
    let one = written(20);
    let (first, end) = (&one[..2 * BLOCK_BYTES], &one[2 * BLOCK_BYTES..]);
    let chunk = &one[BLOCK_BYTES..2 * BLOCK_BYTES];
    let mut bytes = [first, chunk, end].concat();
    bytes[2 * BLOCK_BYTES + std::mem::offset_of!(ImageChunk, sequence)] = 1;
    reseal(&mut bytes, Kind::ImageChunk, 2 * BLOCK_BYTES, BLOCK_BYTES);
    bytes[3 * BLOCK_BYTES + std::mem::offset_of!(ImageEnd, sequence)] = 2;
    bytes[3 * BLOCK_BYTES + std::mem::offset_of!(ImageEnd, count)] = 40;
    reseal(&mut bytes, Kind::ImageEnd, 3 * BLOCK_BYTES, BLOCK_BYTES);
    let refused = read_planted(&bytes).expect_err("every chunk but the last is full");
    assert!(refused.to_string().contains("short"), "{refused}");
}

#[test]
fn a_flipped_byte_anywhere_is_noticed() {
    let disk = SimDisk::new();
    write(&disk, 7, 600).expect("written");
    let name = FileKind::Image.file_name(7_u64);
    let bytes = disk.contents(&name).expect("there").len() as u64;
    for at in 0..bytes {
        disk.damage(&name, at, 1 << (at % 8)).expect("in the file");
        let refused = read(&disk, 7).expect_err("damaged");
        assert!(matches!(refused, Error::Corrupt { .. }), "{at}: {refused}");
        disk.damage(&name, at, 1 << (at % 8)).expect("in the file");
    }
    assert_eq!(read(&disk, 7).expect("as it was").len(), 600);
}

#[test]
fn failures_of_the_disk_are_passed_on() {
    for faults in [
        Faults::new().writes(0..1, WriteFault::Error(ErrorKind::Other)),
        Faults::new().writes(1..2, WriteFault::Torn(ErrorKind::Other)),
        Faults::new().writes(2..3, WriteFault::Error(ErrorKind::Other)),
        Faults::new().syncs(0..1, SyncFault::Doubtful(ErrorKind::Other)),
        Faults::new().syncs(1..2, SyncFault::Doubtful(ErrorKind::Other)),
    ] {
        let disk = SimDisk::new();
        disk.set_faults(faults);
        let failed = write(&disk, 7, 10).expect_err("as planned");
        assert!(matches!(failed, Error::Io { kind: ErrorKind::Other, .. }), "{failed}");
    }
    let disk = SimDisk::new();
    disk.set_faults(Faults::new().space(8192));
    let failed = write(&disk, 7, 10).expect_err("three blocks are needed");
    assert!(matches!(failed, Error::Io { kind: ErrorKind::StorageFull, .. }), "{failed}");
}

#[test]
fn a_finished_image_survives_a_crash_and_an_unfinished_one_is_refused() {
    let operations = {
        let disk = SimDisk::new();
        write(&disk, 7, 600).expect("written");
        disk.operations()
    };
    for stop in 0..=operations {
        let disk = SimDisk::new();
        disk.stop_after(stop);
        let finished = write(&disk, 7, 600).is_ok();
        assert_eq!(finished, stop == operations);
        for image in disk.crash_images(300) {
            match read(&image, 7) {
                Ok(words) => assert_eq!(words.len(), 600, "all or nothing"),
                Err(refused) => {
                    assert!(!finished, "{refused}");
                    assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
                }
            }
        }
    }
}

#[test]
fn the_golden_image_opens() {
    assert_golden("version-3.image", &written(20));
    let golden = include_bytes!("../../../tests/golden/index-0000000000000007.image");
    let words = read_planted(golden).expect("what version 2 wrote stays readable");
    assert!(words.iter().copied().eq((0..20).map(word)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(256)))]

    #[test]
    fn any_bytes_are_refused_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..13_000),
        keep in 0usize..13_000,
    ) {
        prop_assert!(read_planted(&bytes).is_err());
        // A good image that goes wrong somewhere.
        let mut half = written(600);
        for (at, byte) in bytes.iter().enumerate().skip(keep) {
            if let Some(place) = half.get_mut(at) {
                *place = *byte;
            }
        }
        if let Ok(words) = read_planted(&half) {
            prop_assert!(words.iter().copied().eq((0..600).map(word)));
        }
    }

    /// With right checksums around them, counts are still not believed.
    #[test]
    fn sealed_lies_are_refused(count in any::<u64>(), sequence in 0u64..3, small in any::<bool>()) {
        let count = if small { count % 1200 } else { count };
        let mut bytes = written(600);
        let structure = ImageChunk {
            envelope: Envelope::unsealed(),
            sequence: sequence.into(),
            count: count.into(),
        };
        stored::seal(Kind::ImageChunk, &structure, &mut bytes[4096..12_288]);
        match read_planted(&bytes) {
            Ok(_) => prop_assert!(sequence == 0 && count == 600),
            Err(refused) => prop_assert!(matches!(refused, Error::Corrupt { .. }), "{refused}"),
        }
    }
}

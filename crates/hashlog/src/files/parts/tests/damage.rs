//! Files that are not what was written.

use super::*;
use crate::files::stored::tests::assert_golden;

/// A part with a full page, one in use by half that was written twice, and an empty one.
fn sample() -> (SimDisk, PartShape) {
    let disk = SimDisk::new();
    let shape = shape(64, 3);
    let parts = Parts::with(Arc::new(disk.clone()), shape);
    write(&parts, 0, 64).expect("written");
    write(&parts, 1, 10).expect("written");
    write(&parts, 2, 0).expect("written");
    parts.sync().expect("synced");
    write(&parts, 1, 32).expect("written");
    parts.sync().expect("synced");
    (disk, shape)
}

const NAME: &str = "log-0000000000000000.part";

/// Reads everything: what is used of each page, with right bytes, or the first complaint.
fn read_all(disk: &SimDisk, shape: PartShape, limit: u64) -> Result<Vec<usize>> {
    let parts = open(Arc::new(disk.clone()), shape, 0..limit)?;
    (0..limit)
        .map(|page| {
            let mut into = Blocks::default();
            let used = parts.read_page(PageNumber::from(page), &mut into)?;
            let front = &into.bytes()[..used];
            assert!(front.iter().enumerate().all(|(at, found)| *found == byte(page, at)));
            Ok(used)
        })
        .collect()
}

#[test]
fn a_flipped_byte_is_refused_or_harmless() {
    let (disk, shape) = sample();
    assert_eq!(read_all(&disk, shape, 3), Ok(vec![64, 32, 0]));
    let bytes = disk.contents(NAME).expect("there").len() as u64;
    let (mut refused, mut fell_back, mut harmless) = (0, 0, 0);
    for at in 0..bytes {
        disk.damage(NAME, at, 1 << (at % 8)).expect("in the file");
        match read_all(&disk, shape, 3) {
            Err(Error::Corrupt { file, offset, .. }) => {
                assert_eq!(file, NAME);
                assert!(offset <= at, "at or before the damage");
                refused += 1;
            }
            Err(other) => panic!("byte {at}: {other}"),
            // The newer trailer, or what only it vouches for: the page is as it was before.
            Ok(uses) if uses == [64, 10, 0] => fell_back += 1,
            Ok(uses) => {
                assert_eq!(uses, [64, 32, 0]);
                harmless += 1;
            }
        }
        disk.damage(NAME, at, 1 << (at % 8)).expect("in the file");
    }
    // The header, 64 and 10 used bytes, and the only trailers of two pages.
    assert_eq!(refused, 4096 + 64 + 10 + 2 * 4096);
    assert_eq!(fell_back, 22 + 4096);
    // Unused bytes of areas, the older trailer, and no second ones.
    assert_eq!(harmless, (4096 - 64) + (4096 - 32) + 4096 + 3 * 4096);
}

#[test]
fn a_file_that_ends_early_is_refused() {
    let (disk, shape) = sample();
    let whole = disk.contents(NAME).expect("there");
    for len in (0..whole.len()).filter(|len| len % 61 == 0 || (len + 3) % 4096 < 6) {
        disk.plant(NAME, &whole[..len]).expect("planted");
        let refused = read_all(&disk, shape, 3).expect_err("pages are missing");
        assert!(matches!(refused, Error::Corrupt { .. }), "{len}: {refused}");
    }
    // Only what is asked for has to be there.
    disk.plant(NAME, &whole[..4096 + 3 * 4096]).expect("planted");
    assert_eq!(read_all(&disk, shape, 1), Ok(vec![64]));
    disk.plant(NAME, &[whole, vec![7; 5000]].concat()).expect("planted");
    assert_eq!(read_all(&disk, shape, 3), Ok(vec![64, 32, 0]));
}

#[test]
fn a_file_that_is_missing_or_of_another_log_is_refused() {
    let (disk, shape) = sample();
    let expect = |shape: PartShape, first: u64, limit: u64, part: &str| {
        let opened = open(Arc::new(disk.clone()), shape, first..limit);
        let refused = opened.expect_err("refused");
        assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
        assert!(refused.to_string().contains(part), "{refused}");
    };
    expect(shape, 2, 4, "log-0000000000000003.part is corrupt at offset 0: the file is missing");
    expect(super::shape(128, 3), 0, 1, "the header says 64 bytes in a page, and 128");
    expect(super::shape(64, 4), 0, 1, "the header says 3 pages in a part, and 4");
    let bytes = disk.contents(NAME).expect("there");
    disk.plant("log-0000000000000003.part", &bytes).expect("planted");
    expect(shape, 3, 4, "the header says 0 for its first page, and 3");
}

#[test]
fn a_page_in_the_place_of_another_is_refused() {
    let (disk, shape) = sample();
    let mut bytes = disk.contents(NAME).expect("there");
    let slot = shape.slot_bytes() as usize;
    bytes.copy_within(4096..4096 + slot, 4096 + slot);
    disk.plant(NAME, &bytes).expect("planted");
    let refused = read_all(&disk, shape, 3).expect_err("refused");
    assert!(refused.to_string().contains("the trailer is of page 0, not 1"), "{refused}");
}

#[test]
fn sealed_lies_in_trailers_are_refused() {
    let (disk, shape) = sample();
    let whole = disk.contents(NAME).expect("there");
    let trailer_at = 4096 + 4096;
    let lie = |used: u64, generation: u64, reserved: u64| {
        let mut bytes = whole.clone();
        let trailer = PageTrailer {
            envelope: stored::Envelope::unsealed(),
            page: 0.into(),
            generation: generation.into(),
            used: used.into(),
            reserved: reserved.into(),
        };
        let place = &mut bytes[trailer_at..trailer_at + 4096];
        stored::seal(stored::Kind::PageTrailer, &trailer, place);
        disk.plant(NAME, &bytes).expect("planted");
        read_all(&disk, shape, 3)
    };
    assert_eq!(lie(64, 1, 0), Ok(vec![64, 32, 0]), "no lie");
    for (used, generation, reserved) in
        [(65, 1, 0), (u64::MAX, 1, 0), (1 << 32, 1, 0), (64, 0, 0), (64, 1, 1)]
    {
        let refused = lie(used, generation, reserved).expect_err("a lie");
        assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
    }
    // Fewer bytes than were written, with the checksum of all of them.
    assert!(lie(63, 1, 0).is_err());
}

/// As fuzzing found it in images.
#[test]
fn sealed_bytes_that_are_never_written_are_refused() {
    let (disk, shape) = sample();
    let whole = disk.contents(NAME).expect("there");
    let plant = |begin: usize, at: usize, kind| {
        let mut bytes = whole.clone();
        let block = &mut bytes[begin..begin + 4096];
        block[at] = 1;
        let structure: [u8; 40] = block[..40].try_into().expect("40 bytes");
        stored::seal(kind, &structure, block);
        disk.plant(NAME, &bytes).expect("planted");
        read_all(&disk, shape, 3).expect_err("bytes that should be zero")
    };
    // Behind the header; behind the checksum of the only block of a page.
    for (begin, at, kind) in [
        (0, size_of::<stored::PartHeader>(), stored::Kind::PartHeader),
        (2 * 4096, size_of::<PageTrailer>() + 4, stored::Kind::PageTrailer),
    ] {
        let refused = plant(begin, at, kind);
        assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
        assert!(refused.to_string().contains("zero"), "{refused}");
    }
}

#[test]
fn the_golden_part_opens() {
    assert_golden("version-3.part", &sample().0.contents(NAME).expect("there"));
    let disk = SimDisk::new();
    let golden = include_bytes!("../../../../tests/golden/log-0000000000000000.part");
    disk.plant(NAME, golden).expect("planted");
    assert_eq!(read_all(&disk, shape(64, 3), 3), Ok(vec![64, 32, 0]));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(rounds(256)))]

    #[test]
    fn any_bytes_are_refused_without_panic(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..9000),
        at in 0usize..41_000,
    ) {
        let (disk, shape) = sample();
        let mut whole = disk.contents(NAME).expect("there");
        disk.plant(NAME, &bytes).expect("planted");
        proptest::prop_assert!(read_all(&disk, shape, 3).is_err());
        // A good part that goes wrong somewhere: what is read is right (`read_all` compares).
        for (place, byte) in whole.iter_mut().skip(at).zip(&bytes) {
            *place = *byte;
        }
        disk.plant(NAME, &whole).expect("planted");
        if let Err(refused) = read_all(&disk, shape, 3) {
            proptest::prop_assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
        }
    }
}

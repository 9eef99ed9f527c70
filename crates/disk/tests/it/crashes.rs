//! The images that a crash leaves.

use crate::{blocks, fills};
use sapwood_disk::{BLOCK_BYTES, Disk, Presence, SECTOR_BYTES, SimDisk};
use std::collections::BTreeSet;

const B: u64 = BLOCK_BYTES as u64;

/// A disk with a lasting file `a` of these blocks.
fn disk_with(fills: &[u8]) -> SimDisk {
    let disk = SimDisk::new();
    let file = disk.create("a").expect("made");
    file.write_at(0, &blocks(fills)).expect("written");
    file.sync().expect("synced");
    disk.sync().expect("synced");
    disk
}

fn sectors(disk: &SimDisk, name: &str) -> Vec<u8> {
    disk.contents(name).expect("there").chunks(SECTOR_BYTES).map(|sector| sector[0]).collect()
}

#[test]
fn what_is_synced_survives() {
    let disk = disk_with(&[1, 2]);
    for seed in 0..20 {
        assert_eq!(fills(&*disk.crash(seed).open("a").expect("there")), [1, 2]);
    }
    let images: Vec<_> = disk.crash_images(100).collect();
    assert_eq!(images.len(), 1);
}

#[test]
fn a_seed_names_one_image() {
    let disk = disk_with(&[1, 1, 1, 1]);
    let file = disk.open("a").expect("there");
    for at in 0..4 {
        file.write_at(at * B, &blocks(&[2, 2])).expect("written");
    }
    let image = |seed| sectors(&disk.crash(seed), "a");
    assert!((0..20).all(|seed| image(seed) == image(seed)));
    assert!((1..20).any(|seed| image(seed) != image(0)));
}

#[test]
fn unsynced_writes_are_kept_lost_or_torn_at_sector_borders() {
    let disk = disk_with(&[1]);
    disk.open("a").expect("there").write_at(0, &blocks(&[2])).expect("written");
    let images: BTreeSet<_> = (0..200).map(|seed| sectors(&disk.crash(seed), "a")).collect();
    assert!(images.contains(&vec![1; 8]), "lost");
    assert!(images.contains(&vec![2; 8]), "kept");
    let torn = images.iter().filter(|image| image.contains(&1) && image.contains(&2)).count();
    assert!(torn > 20, "{torn} torn images");
    assert!(images.iter().flatten().all(|fill| [1, 2].contains(fill)));
}

#[test]
fn a_cut_is_kept_or_lost_until_it_is_synced() {
    let disk = disk_with(&[1, 2, 3]);
    let file = disk.open("a").expect("there");
    file.cut(B).expect("cut");
    let left = |disk: &SimDisk| fills(&*disk.open("a").expect("there"));
    let images: BTreeSet<_> = disk.crash_images(100).map(|image| left(&image)).collect();
    assert_eq!(images, BTreeSet::from([vec![1], vec![1, 2, 3]]));
    // Longer again: what was cut off may show up, but not where something was written since.
    file.write_at(2 * B, &blocks(&[4])).expect("written");
    file.sync().expect("synced");
    let images: BTreeSet<_> = (0..50).map(|seed| left(&disk.crash(seed))).collect();
    assert_eq!(images, BTreeSet::from([vec![1, 0, 4]]));
}

#[test]
fn unsynced_writes_reach_the_media_in_any_order() {
    let disk = disk_with(&[0]);
    let file = disk.open("a").expect("there");
    file.write_at(0, &blocks(&[1])).expect("written");
    file.write_at(0, &blocks(&[2])).expect("written");
    let images: BTreeSet<_> = (0..200).map(|seed| sectors(&disk.crash(seed), "a")).collect();
    assert!([0, 1, 2].iter().all(|fill| images.contains(&vec![*fill; 8])));
}

#[test]
fn lost_growth_leaves_the_old_length_or_zeros() {
    let disk = disk_with(&[1]);
    disk.open("a").expect("there").write_at(B, &blocks(&[2])).expect("written");
    let images: BTreeSet<_> = (0..200).map(|seed| sectors(&disk.crash(seed), "a")).collect();
    let whole = |tail: &[u8]| [&[1; 8], tail].concat();
    assert!(images.contains(&whole(&[])), "as long as before");
    assert!(images.contains(&whole(&[0; 8])), "longer, with zeros");
    assert!(images.contains(&whole(&[2; 8])), "kept");
    assert!(images.iter().any(|image| image.len() < 16 && image.contains(&2)), "torn and shorter");
}

#[test]
fn names_last_only_after_a_sync_of_names() {
    let disk = disk_with(&[1]);
    let file = disk.create("new").expect("made");
    file.write_at(0, &blocks(&[2])).expect("written");
    file.sync().expect("bytes synced, the name is not");
    disk.rename("a", "b").expect("renamed");
    let images: BTreeSet<_> =
        disk.crash_images(100).map(|image| image.list().expect("names")).collect();
    let expected = [vec!["a"], vec!["a", "new"], vec!["b"], vec!["b", "new"]];
    assert_eq!(
        images,
        expected.map(|names| names.iter().map(|name| name.to_string()).collect()).into()
    );
    let seeded: BTreeSet<_> = (0..50).map(|seed| disk.crash(seed).list().expect("names")).collect();
    assert_eq!(images, seeded);
    disk.sync().expect("synced");
    for image in disk.crash_images(100) {
        assert_eq!(image.list().expect("names"), ["b", "new"]);
        assert_eq!(sectors(&image, "new"), [2; 8]);
    }
}

#[test]
fn renaming_over_a_name_leaves_the_old_file_or_the_new() {
    let disk = disk_with(&[1]);
    let file = disk.create("tmp").expect("made");
    file.write_at(0, &blocks(&[2])).expect("written");
    file.sync().expect("synced");
    disk.rename("tmp", "a").expect("renamed");
    let images: BTreeSet<_> = disk.crash_images(100).map(|image| sectors(&image, "a")).collect();
    assert_eq!(images, [vec![1; 8], vec![2; 8]].into());
}

#[test]
fn a_removed_file_may_come_back_whole() {
    let disk = disk_with(&[1]);
    disk.remove("a").expect("removed");
    let images: Vec<_> = disk.crash_images(10).collect();
    assert_eq!(images.len(), 2);
    let kept = images.iter().find(|image| image.list().expect("names") == ["a"]);
    assert_eq!(sectors(kept.expect("the name is back"), "a"), [1; 8]);
}

#[test]
fn small_cases_are_enumerated_and_large_ones_sampled() {
    let disk = disk_with(&[1]);
    let file = disk.open("a").expect("there");
    file.write_at(0, &blocks(&[2])).expect("written");
    file.write_at(B, &blocks(&[3])).expect("written");
    let all = disk.crash_images(25);
    assert!(all.exhaustive());
    let images: BTreeSet<_> = all.map(|image| sectors(&image, "a")).collect();
    // The first write: lost (or longer, which is the same here), kept, two halves. The second:
    // lost, longer, kept, first half (shorter), second half.
    assert_eq!(images.len(), 4 * 5);
    let some = disk.crash_images(7);
    assert!(!some.exhaustive());
    let images: Vec<_> = some.map(|image| sectors(&image, "a")).collect();
    assert_eq!(images.len(), 7);
    assert_eq!(images[0], [1; 8]);
    assert_eq!(images[1], [[2; 8], [3; 8]].concat());
}

#[test]
fn an_image_is_a_disk_of_its_own() {
    let disk = disk_with(&[1]);
    let file = disk.open("a").expect("there");
    file.write_at(0, &blocks(&[2])).expect("written");
    disk.stop_after(0);
    let image = disk.crash_images(10).nth(1).expect("the second way keeps it");
    let copy = image.open("a").expect("there");
    assert_eq!(fills(&*copy), [2]);
    copy.write_at(0, &blocks(&[3])).expect("there is power");
    assert_eq!(sectors(&disk, "a"), [2; 8]);
    // Nothing but the new write is unsynced on it.
    assert_eq!(image.crash_images(10).count(), 5);
}

#[test]
fn damage_is_there_before_and_after_a_crash() {
    let disk = disk_with(&[1]);
    disk.open("a").expect("there").write_at(B, &blocks(&[2])).expect("written");
    disk.damage("a", 3, 0x80).expect("damaged");
    disk.damage("a", B + 3, 0x80).expect("damaged");
    assert!(disk.damage("a", 2 * B, 1).is_err());
    assert!(disk.damage("absent", 0, 1).is_err());
    assert_eq!(disk.contents("a").expect("there")[3], 0x81);
    let kept = disk.crash_images(10).nth(1).expect("the second way keeps it");
    let bytes = kept.contents("a").expect("there");
    assert_eq!((bytes[3], bytes[B as usize + 3]), (0x81, 0x82));
    disk.truncate("a", 100).expect("cut");
    assert_eq!(disk.crash(1).contents("a").expect("there").len(), 100);
    disk.plant("b", b"any length").expect("planted");
    assert_eq!(disk.crash(1).contents("b").expect("there"), b"any length");
}

#[test]
fn persistent_memory_keeps_lines_that_were_written_back_and_any_words_of_others() {
    let disk = SimDisk::with_dax();
    let file = disk.cached("a", Presence::New).expect("made");
    file.reserve(1024).expect("room");
    file.sync().expect("synced");
    Disk::sync(&disk).expect("synced");
    let mut mapped = file.map(1024).expect("mapped");
    assert!(mapped.is_dax());
    mapped.write(0, &[1; 256]);
    // Two lines of four.
    mapped.persist(100, 40).expect("power");
    mapped.write(512, &[2; 64]);
    let mut seen = BTreeSet::new();
    for seed in 0..400 {
        let bytes = disk.crash(seed).contents("a").expect("there");
        assert_eq!(bytes[64..192], [1; 128], "seed {seed}");
        assert!(bytes[256..512].iter().chain(&bytes[576..]).all(|byte| *byte == 0));
        for (at, byte) in [(0, 1), (192, 1), (512, 2)] {
            for word in bytes[at..at + 64].chunks(8) {
                assert!(word == [0; 8] || word == [byte; 8], "words are whole");
            }
            let kept = bytes[at..at + 64].iter().filter(|kept| **kept == byte).count();
            seen.insert((at, kept / 8));
        }
    }
    for at in [0, 192, 512] {
        for kept in [0, 3, 4, 8] {
            assert!(seen.contains(&(at, kept)), "{kept} words of the line at {at} in no image");
        }
    }
    // A sync of the file makes all of it last.
    file.sync().expect("synced");
    assert_eq!(disk.crash(1).contents("a").expect("there")[512..576], [2; 64]);
    disk.stop_after(0);
    mapped.persist(0, 64).expect_err("no power");
}

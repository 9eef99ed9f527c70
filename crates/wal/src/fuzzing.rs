//! Are there bytes that a decoder takes badly? What the fuzz targets in `fuzz` call, and a test.
//!
//! Each takes any bytes and panics where a promise is broken: bytes are refused as corrupt, or mean
//! something that is read again once it was written. Bytes get the checksum that they need.

use std::sync::Arc;

use sapwood_disk::log::{Log, LogOptions, LogStart};
use sapwood_disk::{BLOCK_BYTES, Disk, SimDisk};
use sapwood_engine::Effect;

use crate::frame;
use crate::manifest::{self, Manifest};
use crate::open::Recovery;
use crate::snapshot::{self, Cut, Identity, Layout, Snapshot};
use crate::wal::{LOG_PREFIX, Wal, WalOptions};
use crate::{Error, Result, TableId};

/// The number of the log, in seeds as well.
const LOG: u64 = 7;

/// Bytes of a part in front of its first record are below this.
const HEADERS_MAX: usize = 4096;

/// Bytes that are damaged, or of a later format.
fn expect_refused(error: &Error) {
    assert!(matches!(error, Error::CorruptFile { .. } | Error::Newer { .. }), "{error}");
}

/// What one record of the log says.
pub fn record(mut input: &[u8]) {
    while let Some(Ok(frame)) = frame::next(&mut input) {
        let mut written = Vec::new();
        frame.encode(&mut written);
        let mut rest = &written[..];
        assert_eq!(frame::next(&mut rest), Some(Ok(frame)));
        assert!(rest.is_empty());
    }
}

/// A manifest.
pub fn manifest(input: &[u8]) {
    let _refused = Manifest::decode(input);
    if let Ok(manifest) = Manifest::decode(&manifest::sealed(input)) {
        assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    }
}

/// Cuts keys and values in two, but those of odd length.
#[derive(Debug)]
struct Halves;

impl Cut for Halves {
    fn cut(&self, key: &[u8], value: &[u8], lens: &mut Vec<u32>) -> Option<Layout> {
        let is_even = key.len().is_multiple_of(2) && value.len().is_multiple_of(2);
        let halves = [key.len(), key.len(), value.len(), value.len()].map(|len| len as u32 / 2);
        lens.extend_from_slice(&halves);
        is_even.then_some(Layout { number: 1, key_pieces: 2 })
    }
}

/// A block of the snapshot of a table: its head, which begins with the length of that, and what lies behind it.
pub fn block(input: &[u8]) {
    let identity = Identity { log: LOG, checkpoint: 1, table: 2 };
    let Some((&len, rest)) = input.split_first() else { return };
    let (head, body) = rest.split_at(rest.len().min(usize::from(len)));
    let mut ahead = head;
    let entries = frame::number(&mut ahead).and_then(|_kind| frame::number(&mut ahead));
    let disk = SimDisk::new();
    let made = snapshot::write_block(&disk, &identity, (head, body), entries.unwrap_or(1));
    made.expect("a disk without faults");
    let mut told = Vec::new();
    let read = snapshot::read(&disk, &identity, &mut |key: &[u8], value: &[u8]| {
        told.push((key.to_vec(), value.to_vec()));
        Ok::<(), Error>(())
    });
    match read {
        Err(error) => expect_refused(&error),
        Ok(count) => assert_eq!(count, told.len() as u64),
    }
    let opened = snapshot::open(&disk, &identity);
    let opened = opened.map(|snapshot| snapshot.expect("it is of this version"));
    match opened.and_then(|snapshot| found(&snapshot)) {
        Err(error) => expect_refused(&error),
        Ok(found) => assert_eq!(found, told),
    }
}

fn write<'e>(
    disk: &SimDisk,
    identity: &Identity,
    writing: snapshot::Writing<'_>,
    mut entries: impl Iterator<Item = (&'e [u8], &'e [u8])>,
) {
    let written = snapshot::write(disk, identity, writing, |entry| {
        entries.try_for_each(|(key, value)| entry(key, value))
    });
    written.expect("a disk without faults");
}

/// All entries that a snapshot has in place.
fn found(snapshot: &Snapshot) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut found = Vec::new();
    for number in 0..snapshot.blocks() {
        let block = snapshot.block(number)?;
        for entry in 0..block.entries() {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            block.key(entry, &mut key)?;
            block.value(entry, &mut value)?;
            found.push((key, value));
        }
    }
    Ok(found)
}

/// The snapshot of a table as the first version wrote it: the bytes behind those that say which one it is.
pub fn snapshot(input: &[u8]) {
    let identity = Identity { log: LOG, checkpoint: 1, table: 2 };
    let name = identity.file_name();
    let read = |disk: &SimDisk| -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut entries = Vec::new();
        snapshot::read(disk, &identity, &mut |key: &[u8], value: &[u8]| {
            entries.push((key.to_vec(), value.to_vec()));
            Ok::<(), Error>(())
        })?;
        Ok(entries)
    };
    let disk = SimDisk::new();
    let mut blocks = input.to_vec();
    blocks.resize(input.len().next_multiple_of(BLOCK_BYTES), 0);
    disk.plant(&name, &blocks).expect("a valid name");
    if let Err(error) = read(&disk) {
        expect_refused(&error);
    }
    let disk = SimDisk::new();
    snapshot::write_stream(&disk, &identity, input).expect("a disk without faults");
    match read(&disk) {
        Err(error) => expect_refused(&error),
        Ok(entries) => {
            for cut in [None, Some(&Halves as &dyn Cut)] {
                let disk = SimDisk::new();
                let writing = snapshot::Writing { cut, pace: None };
                let all = entries.iter().map(|(key, value)| (&key[..], &value[..]));
                write(&disk, &identity, writing, all);
                assert_eq!(read(&disk).as_ref(), Ok(&entries));
                let opened = snapshot::open(&disk, &identity).expect("no faults");
                let opened = opened.expect("it is of this version");
                assert_eq!(found(&opened).as_ref(), Ok(&entries));
            }
        }
    }
}

/// Everything that opening tells, as text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told(Vec<String>);

impl Recovery<Error> for Told {
    fn create(&mut self, table: TableId, name: &str, of: &[u8], own: Option<u64>) -> Result<()> {
        self.0.push(format!("create {table} {name} {of:?} {own:?}"));
        Ok(())
    }

    fn entry(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.push(format!("entry {table} {key:?} {value:?}"));
        Ok(())
    }

    fn change(&mut self, table: TableId, key: &[u8], effect: Effect<'_>) -> Result<()> {
        self.0.push(format!("change {table} {key:?} {effect:?}"));
        Ok(())
    }
}

/// A log: the first byte says whether the rest are records, each with its length in a byte before it, or
/// bytes that lie in the file from a place on that the next two bytes say.
pub fn log(input: &[u8]) {
    let Some((how, rest)) = input.split_first() else { return };
    let disk = SimDisk::new();
    let options = LogOptions { prefix: LOG_PREFIX.to_owned(), ..LogOptions::default() };
    let made = Log::create(Arc::new(disk.clone()), LOG, options, 0).expect("no faults");
    let (lsn, part) = made.position();
    let start = LogStart { lsn, part, durable: lsn };
    let (log, checkpoint, tables) = (LOG, 0, Vec::new());
    Manifest { log, checkpoint, start, next_table: 1, tables }.write(&disk).expect("no faults");
    let mut rest = rest;
    if how.is_multiple_of(2) {
        while let Some((len, behind)) = rest.split_first() {
            let (record, behind) = behind.split_at(behind.len().min(usize::from(*len)));
            made.append(record).expect("no faults");
            rest = behind;
        }
        drop(made);
    } else {
        drop(made);
        let names = disk.list().expect("no faults");
        let name = names.iter().find(|name| name.starts_with(LOG_PREFIX)).expect("a part");
        let mut bytes = disk.contents(name).expect("listed");
        if let Some((at, lies)) = rest.split_first_chunk() {
            let at = usize::from(u16::from_le_bytes(*at)) % HEADERS_MAX;
            bytes[at..at + lies.len()].copy_from_slice(lies);
        }
        disk.plant(name, &bytes).expect("a valid name");
    }
    let (mut viewed, mut opened) = (Told::default(), Told::default());
    let view = Wal::view(&disk, &mut viewed);
    let open = Wal::open(Arc::new(disk.clone()), WalOptions::default(), &mut opened);
    match (view, open) {
        (Ok(_), Ok(wal)) => {
            assert_eq!(viewed, opened);
            drop(wal);
            let mut again = Told::default();
            Wal::view(&disk, &mut again).expect("it was opened");
            assert_eq!(again, opened, "opening changes nothing");
        }
        (Err(view), Err(open)) => {
            expect_refused(&view);
            expect_refused(&open);
        }
        (view, open) => panic!("{view:?}, and {open:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use sapwood_testkit::case;

    /// Bytes that mean something.
    fn seeds() -> Vec<Vec<u8>> {
        let change = |key, effect| frame::Frame::Change { table: 1, key, effect };
        let mut record = Vec::new();
        for frame in [
            frame::Frame::Create { table: 1, name: "t", description: b"of it" },
            change(b"key", Effect::Put(b"value")),
            change(b"key", Effect::Write { offset: 2, bytes: b"x" }),
            frame::Frame::Saved { table: 1, before: 3 },
            change(b"key", Effect::Remove),
            frame::Frame::Drop { table: 1 },
        ] {
            frame.encode(&mut record);
        }
        let records = [&[0, record.len() as u8][..], &record, &[3], &record[..3]].concat();
        let raw = [&[1, 64, 0][..], &record].concat();
        let table = manifest::Table {
            id: 1,
            name: "t".to_owned(),
            description: b"of it".to_vec(),
            own: Some(4),
        };
        let start = LogStart { lsn: 300, part: 2, durable: 300 };
        let manifest =
            Manifest { log: LOG, checkpoint: 3, start, next_table: 2, tables: vec![table] };
        let manifest = manifest.encode()[manifest::HEAD_BYTES..].to_vec();
        let snapshot = b"\x04\x05keyvalue\x02\x00k\x00\x02".to_vec();
        // Pieces of one width and of several, and dictionaries of either.
        let halves = written_block(&[("ka", "v1"), ("kb", "v2v3"), ("kc", "")]);
        let dictionaries = written_block(&[
            ("kkaa", "v1"),
            ("kkbb", "v2v3"),
            ("kkcc", "v2v3"),
            ("kkdd", "v1"),
            ("kkee", "v2v3"),
            ("kkff", ""),
            ("kkgg", "v1"),
            ("kkhh", "v2v3"),
            ("kkii", ""),
            ("kkjj", "v1"),
            ("kkkk", "v2v3"),
            ("kkll", "v1"),
        ]);
        vec![record, records, raw, manifest, snapshot, halves, dictionaries]
    }

    /// The length of the head, the head and what is behind it, of a block with these entries.
    fn written_block(entries: &[(&str, &str)]) -> Vec<u8> {
        let (disk, identity) = (SimDisk::new(), Identity { log: LOG, checkpoint: 1, table: 2 });
        let writing = snapshot::Writing { cut: Some(&Halves), pace: None };
        let entries = entries.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes()));
        write(&disk, &identity, writing, entries);
        let file = disk.view(&identity.file_name()).expect("it is there");
        let (head, bytes) = (usize::from(file.bytes()[36]), usize::from(file.bytes()[40]));
        [&[head as u8], &file.bytes()[48..48 + head + bytes]].concat()
    }

    /// `SEEDS=n` tries n times as many.
    #[test]
    fn random_and_changed_bytes_are_read_or_refused() {
        case!().seeds(120, |seed| {
            let mut rng = Rng::with_seed(seed);
            for mut bytes in seeds() {
                for _ in 0..rng.usize(..4) {
                    let at = rng.usize(..bytes.len());
                    match rng.u8(..4) {
                        0 => bytes.truncate(at.max(1)),
                        1 => bytes.insert(at, rng.u8(..)),
                        2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.usize(..5)],
                        _ => bytes[at] ^= 1 << rng.u8(..8),
                    }
                }
                [record, manifest, snapshot, block, log].iter().for_each(|decode| decode(&bytes));
            }
            let random: Vec<u8> = (0..rng.usize(..200)).map(|_| rng.u8(..)).collect();
            [record, manifest, snapshot, block, log].iter().for_each(|decode| decode(&random));
        });
    }

    /// Seeds of the fuzz targets are what this version writes. `BLESS=1` writes those that are missing.
    #[test]
    fn seeds_are_what_is_written() {
        let [record, records, raw, manifest, snapshot, halves, dictionaries] =
            <[_; 7]>::try_from(seeds()).expect("7");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
        for (seed, bytes) in [
            ("wal_record/frames", record),
            ("wal_log/records", records),
            ("wal_log/raw", raw),
            ("wal_manifest/table", manifest),
            ("wal_snapshot/entries", snapshot),
            ("wal_block/halves", halves),
            ("wal_block/dictionaries", dictionaries),
        ] {
            let path = format!("{folder}/{seed}");
            if std::env::var_os("BLESS").is_some() && !std::path::Path::new(&path).exists() {
                std::fs::write(&path, &bytes).expect("the seed can be written");
            }
            assert_eq!(std::fs::read(&path).expect("the seed is there"), bytes, "{seed}");
        }
    }
}

//! Reads of records whose page is given up between the search that named them and the read.

use std::sync::Arc;

use sapwood_disk::{Disk as _, SimDisk};
use sapwood_mem::sync::Backoff;

use crate::log::cold::Fetched;
use crate::ops::search::Probed;
use crate::options::{Cut, Options};
use crate::record::address::Address;
use crate::record::in_place::Stop;
use crate::record::{Form as _, Variable};
use crate::{HashLog, Layout};

const VALUE_BYTES: usize = 32 << 10;
/// They fill more than one part.
const KEYS: u64 = 2_500;
const FIRST_PART: &str = "log-0000000000000000.part";

fn filled(disk: &SimDisk) -> HashLog {
    let options = Options {
        layout: Layout::Variable,
        page_bytes: 64 << 10,
        memory_budget: Some(1 << 20),
        checkpoints_kept: 1,
        compaction: None,
        ..Options::default()
    };
    let log = HashLog::open(Arc::new(disk.clone()), options).expect("an empty folder");
    for index in 0..KEYS {
        log.put(&index.to_le_bytes(), &vec![index as u8; VALUE_BYTES]).expect("room on the disk");
    }
    log
}

/// The address at which key 0 must be read.
fn cold_address(log: &HashLog) -> Address {
    let key = Variable::key(&[0; 8]).expect("a short key");
    let pin = log.store.log.epochs.pin();
    match log.store.find::<Variable>(&pin, Variable::hash(key), key, &Fetched::default()) {
        Ok(Probed::Unknown(_, address)) => address,
        _ => panic!("the oldest record is in memory"),
    }
}

/// Found by reading: the answer was an error, that the page had been removed.
#[test]
fn a_record_whose_file_was_removed_is_searched_for_anew() {
    let disk = SimDisk::new();
    let log = filled(&disk);
    let (store, address) = (&log.store, cold_address(&log));
    let is_there = || disk.list().expect("no faults").iter().any(|name| name == FIRST_PART);
    log.checkpoint(Cut::Full).expect("no faults");
    assert!(is_there());
    log.compact(1.0).expect("no faults");
    log.checkpoint(Cut::Full).expect("no faults");
    assert!(!is_there() && address < store.log.begin());

    // The read that was to come after the search.
    let mut fetched = Fetched::default();
    let waited =
        store.wait_for::<Variable>(Stop::Cold(address), false, &mut fetched, &Backoff::new());
    assert!(waited.is_ok() && fetched.get(address).is_none());
    assert!(store.read_for_batch::<Variable>(address).is_none());
    assert_eq!(log.get(&[0; 8]), Ok(Some(vec![0; VALUE_BYTES])));
    log.check().expect("a sound log");
}

/// An error of the disk is no reason to search anew.
#[test]
fn a_record_that_cannot_be_read_is_an_error() {
    let disk = SimDisk::new();
    let log = filled(&disk);
    let (store, address) = (&log.store, cold_address(&log));
    let page = store.log.page_of(address).get();
    let offset = 4096 + page * (72 << 10) + address.bytes() % (64 << 10);
    disk.damage(FIRST_PART, offset, 8).expect("the file is there");
    let mut fetched = Fetched::default();
    let waited =
        store.wait_for::<Variable>(Stop::Cold(address), false, &mut fetched, &Backoff::new());
    assert!(waited.is_err() && log.get(&[0; 8]).is_err());
    assert!(store.read_for_batch::<Variable>(address).is_some_and(|read| read.is_err()));
}

//! Closures that decide about entries of a hash table, in memory and in a directory.

use sapwood::{Compute, Computed, Db, HashTable, HashTableOptions};

fn table() -> HashTable {
    Db::in_memory().create_hash_table("t", HashTableOptions::default()).expect("a fine name")
}

#[test]
fn compute_answers_each_outcome() {
    let table = table();
    let decide = |decision: Compute| table.compute(b"k", |_| decision.clone()).unwrap();
    assert_eq!(decide(Compute::Keep), Computed::Absent);
    assert_eq!(decide(Compute::Remove), Computed::Absent);
    assert_eq!(decide(Compute::Replace(vec![1])), Computed::Inserted);
    assert_eq!(decide(Compute::Replace(vec![1, 2])), Computed::Replaced);
    assert_eq!(decide(Compute::Keep), Computed::Kept);
    assert_eq!(table.get(b"k").unwrap(), Some(vec![1, 2]));
    assert_eq!(decide(Compute::Remove), Computed::Removed);
    assert_eq!(table.get(b"k").unwrap(), None);
}

#[test]
fn an_error_changes_nothing() {
    let table = table();
    table.put(b"k", b"v").unwrap();
    let told = table.compute(b"", |_| Compute::Remove).unwrap_err().to_string();
    assert!(told.contains("key"), "{told}");
    let long = vec![0; 64 << 20];
    assert!(table.compute(b"k", |_| Compute::Replace(long.clone())).is_err());
    assert_eq!(table.get(b"k").unwrap(), Some(b"v".to_vec()));
}

#[test]
fn retain_and_iter_agree_with_a_filter() {
    let table = table();
    for number in 0..5_000_u32 {
        table.put(number.to_be_bytes(), (number % 7).to_le_bytes()).unwrap();
    }
    let is_kept = |value: &[u8]| value[0] != 3;
    let right = (0..5_000_u32).filter(|number| number % 7 != 3).count();
    assert_eq!(table.retain(|_, value| is_kept(value)).unwrap(), 5_000 - right as u64);
    let mut keys: Vec<Vec<u8>> = table.iter().map(|entry| entry.unwrap().into_pair().0).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), right);
    assert!(table.iter().all(|entry| is_kept(entry.unwrap().value())));
}

#[test]
fn remove_with_shows_what_it_removed() {
    let table = table();
    table.put(b"k", b"value").unwrap();
    let seen = table.remove_with(b"k", |value| (value.to_vec(), table.get(b"k").unwrap()));
    assert_eq!(seen.unwrap(), Some((b"value".to_vec(), None)));
    assert_eq!(table.remove_with(b"k", <[u8]>::to_vec).unwrap(), None);
}

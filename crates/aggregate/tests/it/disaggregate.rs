//! Parts are those of a naive program, and an object gets its own, once.

mod changes;
mod naive;
mod parts;
mod rests;
mod words;

use std::collections::BTreeMap;

use sapwood_aggregate::{Disaggregation, QueryError, ShareBatch, Shares};
use sapwood_engine::RecordAddress;

fn parts_of(shares: &Shares<'_>) -> BTreeMap<Vec<u8>, i128> {
    (0..shares.batch_count()).for_each(|at| check_columns(shares.batch(at)));
    let mut parts = BTreeMap::new();
    for share in (0..shares.batch_count()).flat_map(|at| shares.batch(at).shares()) {
        assert_eq!(parts.insert(share.key.to_vec(), share.part), None);
    }
    parts
}

/// Columns of a batch are what its shares have.
fn check_columns(batch: ShareBatch<'_>) {
    let parts: Vec<i128> = batch.shares().map(|share| share.part).collect();
    assert_eq!(batch.len(), parts.len());
    let narrow: Option<Vec<i64>> = parts.iter().map(|&part| part.try_into().ok()).collect();
    let mut words = vec![7];
    match batch.word_parts(&mut words) {
        Some(sum) => assert_eq!((Some(words), sum), (narrow, parts.iter().sum())),
        // What stands beside the parts may be wide.
        None => assert!(words.is_empty()),
    }
    let addresses: Option<Vec<_>> = batch.shares().map(|share| share.address).collect();
    let mut listed = vec![RecordAddress::from_word(7)];
    match batch.addresses(&mut listed) {
        true => assert_eq!(Some(listed), addresses),
        false => assert!(listed.is_empty() && addresses.is_none()),
    }
    if let Some(keys) = batch.word_keys() {
        assert!(keys.iter().map(|key| &key[..]).eq(batch.shares().map(|share| share.key)));
    }
}

fn described(layout: &str, total: i128) -> Disaggregation {
    Disaggregation::new(layout.parse().expect("a layout"), "n", total)
}

/// Collects these values, with keys in their order, and computes the parts.
fn shares(asked: &Disaggregation, values: &[&[u8]]) -> Result<Shares<'static>, QueryError> {
    let by = asked.compile()?;
    let mut collector = by.collector();
    for (at, value) in values.iter().enumerate() {
        collector.push(format!("{at:02}").as_bytes(), value);
    }
    by.shares([collector.into_collected()])
}

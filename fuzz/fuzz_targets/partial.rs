//! A partial state of a query, sealed with the right checksum and fingerprint: refused, or the very
//! bytes that would be written again, which merge and answer or say why not.
#![no_main]

use std::sync::LazyLock;

use sapwood_aggregate::{Aggregate, Compiled, Group, Mismatches, Query, QueryError};

static QUERIES: LazyLock<[Compiled; 2]> = LazyLock::new(|| {
    let figures = "count, sum(n), sum(x), min(t), max(x), variance(x), first(t by n), last(n), \
        distinct(n, 4), quantile(x, 0.5), top(t, 2, 4)";
    ["", "t, bucket(n, 10)"].map(|groups| {
        let groups = if groups.is_empty() { Ok(Vec::new()) } else { Group::list(groups) };
        Query::new("n:i64le, x:f64le@8, t:text4@16".parse().expect("a layout"))
            .group_by(groups.expect("groups"))
            .aggregates(Aggregate::list(figures).expect("figures"))
            .mismatches(Mismatches::Skip)
            .compile()
            .expect("a query")
    })
});

/// Behind magic, version, checksum and fingerprint.
const BEGIN: usize = 24;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, body)) = bytes.split_first() else { return };
    let query = &QUERIES[usize::from(kind % 2)];
    let mut sealed = query.empty().encode();
    sealed.truncate(BEGIN);
    sealed.extend_from_slice(body);
    let checksum = crc32fast::hash(&sealed[16..]);
    sealed[12..16].copy_from_slice(&checksum.to_le_bytes());
    match query.decode(&sealed) {
        Ok(partial) => {
            assert_eq!(partial.encode(), sealed);
            let merged = query.merge(partial.clone(), partial.clone());
            for result in [query.finish(partial), merged.and_then(|merged| query.finish(merged))] {
                assert!(matches!(result, Ok(_) | Err(QueryError::Overflow { .. })), "{result:?}");
            }
        }
        Err(QueryError::Corrupt { offset, .. }) => assert!(offset <= sealed.len()),
        Err(other) => assert!(matches!(other, QueryError::TooManyGroups { .. }), "{other:?}"),
    }
    // As it came, nothing is sealed.
    assert!(query.decode(bytes).is_err());
});

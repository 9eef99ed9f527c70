//! The rest of a disaggregation, sealed with the right checksum and fingerprint: refused, or the very
//! bytes that would be written again, which can be gone on with, and whose parts add up.
#![no_main]

use std::sync::LazyLock;

use sapwood_aggregate::{Disaggregation, Disaggregator, Outcome, QueryError};

static DISAGGREGATORS: LazyLock<[Disaggregator; 3]> = LazyLock::new(|| {
    [7, -1_000_000, i128::MIN].map(|total| {
        Disaggregation::new("n:f64le".parse().expect("a layout"), "n", total)
            .adding()
            .compile()
            .expect("it can be changed")
    })
});

/// Behind magic, version, checksum and fingerprint.
const BEGIN: usize = 24;

/// The bytes of a rest with nothing in it but its fingerprint.
fn header(by: &Disaggregator) -> Vec<u8> {
    let mut collector = by.collector();
    // A part of any size fits nowhere but into floats that hold it.
    for key in 0..64_u8 {
        collector.push(&[key], &0_f64.to_le_bytes());
    }
    let shares = by.shares([collector.into_collected()]).expect("powers of two and small numbers");
    let mut bytes = shares.pending(&shares.progress()).expect("each once").encode();
    bytes.truncate(BEGIN);
    bytes
}

static HEADERS: LazyLock<[Vec<u8>; 3]> =
    LazyLock::new(|| [0, 1, 2].map(|at| header(&DISAGGREGATORS[at])));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, body)) = bytes.split_first() else { return };
    let kind = usize::from(kind % 3);
    let by = &DISAGGREGATORS[kind];
    let mut sealed = [&HEADERS[kind][..], body].concat();
    let checksum = crc32fast::hash(&sealed[16..]);
    sealed[12..16].copy_from_slice(&checksum.to_le_bytes());
    match by.decode(&sealed) {
        Ok(pending) => {
            assert_eq!(pending.encode(), sealed);
            let shares = by.resume(pending).expect("its own");
            let mut progress = shares.progress();
            for at in 0..shares.batch_count() {
                for share in shares.batch(at).shares() {
                    progress.record(at, &share, Outcome::Vanished);
                }
            }
            let report = shares.report(&progress);
            assert_eq!((report.pending, report.pending_sum), (0, 0));
        }
        Err(QueryError::Corrupt { offset, .. }) => assert!(offset <= sealed.len()),
        Err(other) => panic!("{other:?}"),
    }
    // As it came, nothing is sealed.
    assert!(by.decode(bytes).is_err());
});

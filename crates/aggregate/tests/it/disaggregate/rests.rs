//! What is left of a disaggregation, encoded.

use proptest::prelude::*;
use sapwood_aggregate::{Disaggregated, Disaggregator, Mismatches, Outcome, QueryError, Selection};

use super::{described, parts_of, shares};

#[test]
fn parts_of_another_disaggregation_are_refused() {
    let asked = || described("n:i64le, w:u8@8", 5);
    let by = asked().compile().expect("one");
    let saved = shares(&asked(), &[&[0; 9]]).expect("it fits");
    let saved = saved.pending(&saved.progress()).expect("once").encode();
    for other in [
        described("n:i64le, w:u8@8", 6),
        asked().adding(),
        asked().in_proportion_to("w"),
        asked().weights([(b"00", 1)]),
        asked().filter("w = 0".parse().expect("a condition")),
        described("n:i64be, w:u8@8", 5),
    ] {
        let other = other.compile().expect("another");
        let collected = by.collector().into_collected();
        assert_eq!(other.shares([collected]).map(drop), Err(QueryError::OtherDisaggregation));
        assert_eq!(other.decode(&saved).map(drop), Err(QueryError::OtherDisaggregation));
        let pending = by.decode(&saved).expect("its own");
        assert_eq!(other.resume(pending).map(drop), Err(QueryError::OtherDisaggregation));
    }
    let same = asked().select(Selection::prefix(b"0")).mismatches(Mismatches::Skip);
    assert!(same.compile().expect("the same").decode(&saved).is_ok());
}

/// A rest that has everything: recorded, vanished and refused shares, sums of floats, long keys.
fn some_rest() -> (Disaggregator, Vec<u8>) {
    let by = described("n:f32le, w:u16le@4", -1_000_003)
        .in_proportion_to("w")
        .adding()
        .mismatches(Mismatches::Skip)
        .compile()
        .expect("it can be changed");
    let mut collector = by.collector();
    for at in 0..20_u16 {
        let key = vec![at as u8; usize::from(at) % 4 * 5 + 1];
        let value = [&(f32::from(at) + 1.0).to_le_bytes()[..], &(at * 7).to_le_bytes()].concat();
        collector.push(&key, &value);
    }
    collector.push(b"short", &[0; 5]);
    let shares = by.shares([collector.into_collected()]).expect("it fits");
    let mut progress = shares.progress();
    for (at, share) in shares.batch(0).shares().enumerate().take(9) {
        let mut value = (at as f32 + if at == 4 { 0.1 } else { 0.0 }).to_le_bytes().to_vec();
        value.extend([0, 0]);
        let outcome =
            if at == 2 { Outcome::Vanished } else { by.change(&mut value, share.part).into() };
        progress.record(0, &share, outcome);
    }
    let pending = shares.pending(&progress).expect("each once");
    (by, pending.encode())
}

#[test]
fn damage_to_a_rest_is_refused_wherever_it_is() {
    let (by, bytes) = some_rest();
    let is_refused = |bytes: &[u8]| matches!(by.decode(bytes), Err(QueryError::Corrupt { .. }));
    assert!(by.decode(&bytes).is_ok());
    assert!((0..bytes.len()).all(|end| is_refused(&bytes[..end])));
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(is_refused(&flipped), "bit {bit} of {at}");
        }
    }
    assert!(is_refused(&[&bytes[..], &[0]].concat()));
}

#[test]
fn golden_rests_stay_readable() {
    let (by, written) = some_rest();
    let path = format!("{}/tests/golden/pending-1.bin", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("GOLDEN").is_ok_and(|what| what == "write") {
        std::fs::write(&path, &written).expect("the golden file can be written");
    }
    let golden = std::fs::read(&path).expect("the golden file is there");
    assert!(golden == written, "version 1 is written differently now");
    let shares = by.resume(by.decode(&golden).expect("version 1 stays readable")).expect("its own");
    let report: Disaggregated = shares.report(&shares.progress());
    assert_eq!((report.changed, report.vanished, report.refused, report.pending), (7, 1, 1, 11));
    assert_eq!(report.given + report.not_given + report.pending_sum, -1_000_003);
    assert_eq!(parts_of(&shares).values().sum::<i128>(), report.pending_sum);
}

proptest! {
    #![proptest_config(crate::cases(1500))]

    /// What is refused is refused without a panic, and what is not is in its one form, and can be
    /// gone on with.
    #[test]
    fn sealed_lies_about_a_rest_are_refused_or_harmless(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..4),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let (by, mut bytes) = some_rest();
        for (at, byte, is_flip) in changes {
            // Behind the fingerprint.
            let at = 24 + at.index(bytes.len() - 24);
            bytes[at] = if is_flip { bytes[at] ^ (1 << (byte % 8)) } else { byte };
        }
        if let Some(cut) = cut {
            bytes.truncate(24 + cut.index(bytes.len() - 24));
        }
        let checksum = crc32fast::hash(&bytes[16..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        match by.decode(&bytes) {
            Err(QueryError::Corrupt { offset, .. }) => prop_assert!(offset <= bytes.len()),
            Err(other) => prop_assert!(false, "{other:?}"),
            Ok(lie) => {
                prop_assert_eq!(lie.encode(), bytes);
                let shares = by.resume(lie).expect("its own");
                let mut progress = shares.progress();
                for share in (0..shares.batch_count()).flat_map(|at| shares.batch(at).shares()) {
                    progress.record(0, &share, Outcome::Vanished);
                }
                let report = shares.report(&progress);
                prop_assert_eq!((report.pending, report.pending_sum), (0, 0));
            }
        }
    }
}

//! Partial states as bytes: one form, nothing else is read, old versions are.

use proptest::prelude::*;
use sapwood_aggregate::{Aggregate, Compiled, Group, Mismatches, Partial, Query, QueryError};

use crate::flight::{self, Flight, flights};

const FIGURES: &str = "count, sum(delay), sum(weight), min(carrier), max(weight), \
    variance(weight), first(carrier by gate), last(hour), distinct(delay, 4), \
    distinct(carrier, 4), quantile(weight, 0.5), top(hour, 2, 4)";

const FIGURES_IN_ANY_ORDER: &str = "count, sum(delay), sum(weight), max(weight), variance(weight), \
    first(carrier by gate), last(hour), distinct(delay, 4), quantile(weight, 0.5), top(hour, 2)";

fn query(groups: &str) -> Compiled {
    query_of(FIGURES, groups)
}

fn query_of(figures: &str, groups: &str) -> Compiled {
    let groups = if groups.is_empty() { Ok(Vec::new()) } else { Group::list(groups) };
    Query::new(flight::LAYOUT.parse().expect("a layout"))
        .filter("hour < 20".parse().expect("a condition"))
        .group_by(groups.expect("groups"))
        .aggregates(Aggregate::list(figures).expect("figures"))
        .mismatches(Mismatches::Skip)
        .groups_max(100)
        .compile()
        .expect("a query")
}

fn partial(query: &Compiled, flights: &[Flight]) -> Partial {
    let mut fold = query.fold();
    for flight in flights {
        fold.push(&flight.key(), &flight.value()).expect("few groups");
    }
    fold.into_partial()
}

/// Twenty flights that are always the same, one of them cut off.
fn some_flights() -> Vec<Flight> {
    let flight = |at: u16| Flight {
        number: at,
        class: (at % 3) as u8,
        delay: i32::from(at) * 37 % 23 - 5,
        hour: (at * 7 % 24) as u8,
        weight: Some(i32::from(at) * 11 % 64 - 20),
        carrier: flight::CARRIERS[usize::from(at) % 3],
        gate: (!at.is_multiple_of(4)).then_some(at as i16 % 5),
        len: if at == 13 { 9 } else { flight::WHOLE },
    };
    (0..20).map(flight).collect()
}

#[test]
fn damage_is_refused_wherever_it_is() {
    for groups in ["", "carrier, gate"] {
        let query = query(groups);
        let bytes = partial(&query, &some_flights()).encode();
        assert!(query.decode(&bytes).is_ok());
        for end in 0..bytes.len() {
            let cut = query.decode(&bytes[..end]);
            assert!(matches!(cut, Err(QueryError::Corrupt { .. })), "cut at {end}: {cut:?}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let flipped = query.decode(&flipped);
                assert!(matches!(flipped, Err(QueryError::Corrupt { .. })), "{at}: {flipped:?}");
            }
        }
        let longer = query.decode(&[&bytes[..], &[0]].concat());
        assert!(matches!(longer, Err(QueryError::Corrupt { offset: 12, .. })), "{longer:?}");
    }
}

/// Puts the right checksum before forged bytes.
fn seal(bytes: &mut [u8]) {
    let checksum = crc32fast::hash(&bytes[16..]);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
}

proptest! {
    #![proptest_config(crate::cases(1500))]

    /// What is refused is refused without a panic, and what is not is in its one form: it merges
    /// and answers, or says why not.
    #[test]
    fn sealed_lies_are_refused_or_harmless(
        flights in flights(2),
        groups in prop::sample::select(vec!["", "carrier", "carrier, gate"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..4),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let query = query(groups);
        let honest = partial(&query, &flights);
        let mut bytes = honest.encode();
        for (at, byte, is_flip) in changes {
            // Behind the fingerprint.
            let at = 24 + at.index(bytes.len() - 24);
            bytes[at] = if is_flip { bytes[at] ^ (1 << (byte % 8)) } else { byte };
        }
        if let Some(cut) = cut {
            bytes.truncate(24 + cut.index(bytes.len() - 24));
        }
        seal(&mut bytes);
        match query.decode(&bytes) {
            Err(QueryError::Corrupt { offset, .. }) => prop_assert!(offset <= bytes.len()),
            Err(other) => prop_assert!(matches!(other, QueryError::TooManyGroups { .. }), "{other:?}"),
            Ok(lie) => {
                prop_assert_eq!(lie.encode(), bytes);
                let merged = query.merge(honest, lie.clone());
                let results = [query.finish(lie), merged.and_then(|merged| query.finish(merged))];
                for result in results {
                    let harmless = matches!(result, Ok(_) | Err(QueryError::Overflow { .. }));
                    prop_assert!(harmless, "{result:?}");
                }
            }
        }
    }

    /// To the byte. `top` counts more values here than there are.
    #[test]
    fn merging_is_associative_and_commutative(
        parts in [flights(2), flights(2), flights(2)],
        groups in prop::sample::select(vec!["", "carrier, gate", "hour"]),
        figures in prop::sample::select(vec![FIGURES_IN_ANY_ORDER, "count, sum(delay), min(hour)"]),
    ) {
        let query = query_of(figures, groups);
        let [a, b, c] = parts.map(|flights| partial(&query, &flights));
        let merge = |left: &Partial, right: &Partial| query.merge(left.clone(), right.clone()).expect("few groups");
        prop_assert_eq!(merge(&a, &b).encode(), merge(&b, &a).encode());
        prop_assert_eq!(merge(&merge(&a, &b), &c).encode(), merge(&a, &merge(&b, &c)).encode());
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), is_sealed in any::<bool>()) {
        let query = query("carrier");
        let mut bytes = bytes;
        if is_sealed && bytes.len() >= 24 {
            let honest = query.empty().encode();
            bytes[..24].copy_from_slice(&honest[..24]);
            seal(&mut bytes);
        }
        // Sixty zeros are the state of nothing.
        if bytes != query.empty().encode() {
            let refused = query.decode(&bytes).map(|partial| partial.tally().clone());
            let is_harmless = matches!(&refused, Ok(tally) if tally.selected > 0 || tally.absent > 0);
            prop_assert!(refused.is_err() || is_harmless, "{refused:?}");
        }
    }
}

#[test]
fn states_of_other_queries_are_told_apart() {
    let base = || {
        Query::new("a:i64le, b:u8@8".parse().expect("a layout"))
            .aggregates(Aggregate::list("sum(a)").expect("figures"))
    };
    let aggregates = |text: &str| base().aggregates(Aggregate::list(text).expect("figures"));
    let state = base().compile().expect("a query").empty();
    let layout = Query::new("a:i64be, b:u8@8".parse().expect("a layout"))
        .aggregates(Aggregate::list("sum(a)").expect("figures"));
    for other in [
        aggregates("sum(b)"),
        aggregates("min(a)"),
        aggregates("sum(a), count"),
        base().group_by(Group::list("b").expect("groups")),
        base().filter("a > 1".parse().expect("a condition")),
        base().missing(sapwood_aggregate::Missing::Refuse),
        layout,
    ] {
        let other = other.compile().expect("a query");
        assert_eq!(other.decode(&state.encode()).map(drop), Err(QueryError::Foreign));
        assert_eq!(other.finish(state.clone()).map(drop), Err(QueryError::Foreign));
        let merged = other.merge(other.empty(), state.clone());
        assert_eq!(merged.map(drop), Err(QueryError::Foreign));
    }
    // What matters at the end alone, or tells where objects are, does not tell states apart.
    for same in [
        aggregates("mean(a), sum(a) as total"),
        base().limit(3).having("sum(a) > 1".parse().expect("a condition")),
        base().select(sapwood_aggregate::Selection::prefix(b"x")),
    ] {
        let same = same.compile().expect("a query");
        assert!(same.decode(&state.encode()).is_ok());
    }
}

fn golden_path(name: &str) -> String {
    format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// `GOLDEN=write` writes the files: for a new version of the format, beside the older ones.
fn check_golden(name: &str, query: &Compiled) {
    let written = partial(query, &some_flights()).encode();
    if std::env::var("GOLDEN").is_ok_and(|what| what == "write") {
        std::fs::write(golden_path(name), &written).expect("the golden file can be written");
    }
    let golden = std::fs::read(golden_path(name)).expect("the golden file is there");
    assert!(golden == written, "{name}: version 2 is written differently now");
    check_readable(name, query);
}

/// What any version wrote is read, and merges with what is folded now.
fn check_readable(name: &str, query: &Compiled) {
    let golden = std::fs::read(golden_path(name)).expect("the golden file is there");
    let read = || query.decode(&golden).unwrap_or_else(|error| panic!("{name}: {error}"));
    let answer = query.finish(read()).expect("an answer");
    assert_eq!(answer.tally.matched, 16, "{name}");
    let fresh = query.finish(partial(query, &some_flights())).expect("an answer");
    for (old, new) in answer.rows.iter().zip(&fresh.rows) {
        for ((old, new), column) in old.iter().zip(new).zip(&answer.columns) {
            // Version 1 counted in bins what is counted singly now.
            if !column.name.starts_with("quantile") {
                assert_eq!(old, new, "{name}: {}", column.name);
            }
        }
    }
    let merged = query.merge(read(), partial(query, &some_flights())).expect("few groups");
    let again = query.decode(&merged.encode()).expect("what was merged is written as version 2");
    assert_eq!(query.finish(again).expect("an answer").tally.matched, 32, "{name}");
}

#[test]
fn golden_states_stay_readable() {
    check_golden("partial-2.bin", &query(""));
    check_golden("partial-2-groups.bin", &query("carrier, gate"));
    check_readable("partial-1.bin", &query(""));
    check_readable("partial-1-groups.bin", &query("carrier, gate"));
}

//! MessagePack and JSON of the same rows: one batch.

use fastrand::Rng;
use rmp::encode;
use sapwood_rollup::RowBatch;
use serde_json::{Map, Value as Json};

/// Any value of a row; a map is none inside of a list.
fn value(rng: &mut Rng, depth: usize, is_listed: bool) -> Json {
    match rng.u8(..if depth == 0 { 6 } else { 9 }) {
        0 => Json::Null,
        1 => rng.bool().into(),
        2 => (rng.i64(..) >> rng.u32(..64)).into(),
        3 => rng.u64(..).into(),
        // Of few digits: the JSON parser may read others a unit of the last place off.
        4 => (f64::from(rng.i32(-9_999..9_999)) / 8.0).into(),
        5 => "aö€🦀".repeat(rng.usize(..40)).into(),
        6 | 7 => (0..rng.usize(..20)).map(|_| value(rng, depth - 1, true)).collect(),
        _ if is_listed => Json::Null,
        _ => Json::Object(map(rng, depth - 1)),
    }
}

fn map(rng: &mut Rng, depth: usize) -> Map<String, Json> {
    let name = |rng: &mut Rng| format!("{}{}", rng.u8(..20), "n".repeat(rng.usize(..2) * 40));
    (0..rng.usize(..20)).map(|_| (name(rng), value(rng, depth, false))).collect()
}

fn pack(out: &mut Vec<u8>, json: &Json) {
    let is_written = match json {
        Json::Null => encode::write_nil(out).is_ok(),
        Json::Bool(value) => encode::write_bool(out, *value).is_ok(),
        Json::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(value), ..) => encode::write_uint(out, value).is_ok(),
            (_, Some(value), _) => encode::write_sint(out, value).is_ok(),
            (.., value) => encode::write_f64(out, value.expect("a number")).is_ok(),
        },
        Json::String(text) => encode::write_str(out, text).is_ok(),
        Json::Array(values) => {
            let begun = encode::write_array_len(out, values.len() as u32).is_ok();
            values.iter().for_each(|value| pack(out, value));
            begun
        }
        Json::Object(fields) => {
            let begun = encode::write_map_len(out, fields.len() as u32).is_ok();
            for (name, value) in fields {
                encode::write_str(out, name).expect("memory can be written");
                pack(out, value);
            }
            begun
        }
    };
    assert!(is_written, "memory can be written");
}

#[test]
fn rows_are_those_of_json_lines() {
    let mut rng = Rng::with_seed(15);
    for round in 0..300 {
        let rows: Vec<Json> =
            (0..rng.usize(..12)).map(|_| Json::Object(map(&mut rng, 3))).collect();
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let (expected, bad) = RowBatch::from_json_lines(lines.as_bytes());
        assert!(bad.is_empty(), "round {round}: {bad:?}");
        let (mut each, mut list) = (Vec::new(), Vec::new());
        rows.iter().for_each(|row| pack(&mut each, row));
        pack(&mut list, &Json::Array(rows));
        for bytes in [each, list] {
            let (batch, bad) = RowBatch::from_message_pack(&bytes);
            assert!(bad.is_empty(), "round {round}: {bad:?}");
            assert_eq!(batch, expected, "round {round}");
        }
    }
}

#[test]
fn damaged_rows_do_no_harm() {
    let mut rng = Rng::with_seed(16);
    let mut told = 0;
    for round in 0..3_000 {
        let mut bytes = Vec::new();
        let rows = rng.usize(1..4);
        (0..rows).for_each(|_| pack(&mut bytes, &Json::Object(map(&mut rng, 2))));
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            match rng.u8(..4) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes.insert(at, rng.u8(..)),
                2 => bytes[at] = [0x80, 0x9f, 0xc1, 0xc7, 0xdb, 0xdf, 0xff][rng.usize(..7)],
                _ => bytes[at] ^= 1 << rng.u8(..8),
            }
        }
        let (_, bad) = RowBatch::from_message_pack(&bytes);
        told += usize::from(!bad.is_empty());
        let offsets = bad.iter().map(|bad| bad.offset);
        assert!(offsets.clone().is_sorted(), "round {round}: {bad:?}");
        assert!(offsets.max() <= Some(bytes.len()), "round {round}: {bad:?}");
    }
    assert!(told > 1_000, "{told}");
}

//! What is exported and imported again is the same, to the byte.

use sapwood_testkit::case;

use super::{Contents, ENGINES, Place, contents, endings, export, import};

/// Keys and values of any bytes: random ones, and those that formats have a meaning for.
fn entries(rng: &mut fastrand::Rng) -> Contents {
    let mut entries = Contents::new();
    for special in [
        "a", " ", ",", "\"", "\n", "\r\n", "\\", "\\x41", "\\n", "'", "NA", "null", "{}", "key",
        "\u{FEFF}", "\u{2028}", "\u{202E}", "0", "-1.5", "é", "\0",
    ] {
        entries.insert(special.into(), special.into());
    }
    entries.insert(vec![0xFF; 3], Vec::new());
    for _ in 0..300 {
        let mut bytes = |least: usize, most: usize| -> Vec<u8> {
            let length = rng.usize(least..most);
            (0..length).map(|_| rng.u8(..)).collect()
        };
        let (key, value) = (bytes(1, 20), bytes(0, 60));
        entries.insert(key, value);
    }
    entries
}

#[test]
fn any_bytes_come_back_in_every_engine_and_format() {
    case!().seeds(2, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        for engine in ENGINES {
            let place = Place::new();
            let entries = entries(&mut rng);
            let from = place.database("from", engine, None, &entries);
            for ending in endings() {
                let file = place.path(&format!("t.{ending}"));
                export(&from, "t", &file, &[]);
                let to = place.path(&format!("to.{ending}"));
                import(&to, "t", &file, &["--engine", engine]);
                let (back, kept_by) = contents(&to, "t");
                assert!(back == entries, "{engine} {ending}");
                assert_eq!(kept_by, engine);
                // Once more, over what is there.
                import(&to, "t", &file, &[]);
                assert!(contents(&to, "t").0 == entries, "{engine} {ending}");
            }
        }
    });
}

const FIELDS: &str = "key(shop:str, day:u16, side:i8?), pieces:u32le, euros:f64le@4, \
    delay:i16be@12?-32768, name:text6@14, wide:i128le@20, f:f32be@36, raw:bytes2@40, rest:text@42";

/// Records of those fields.
fn records(rng: &mut fastrand::Rng, nan: bool) -> Contents {
    let mut records = Contents::new();
    for number in 0..200_u16 {
        let shop = ["north", "south", "a,b", "x\\y", ""][rng.usize(..5)];
        let side = rng.bool().then(|| rng.i8(..));
        let key = sapwood::key::encode(&(shop, number, side));
        let mut value = rng.u32(..).to_le_bytes().to_vec();
        let euros = match rng.usize(..8) {
            0 => -0.0,
            1 => f64::NEG_INFINITY,
            2 => 0.1,
            3 if nan => f64::from_bits(0x7FF8_0000_0000_1234),
            _ => {
                let any = f64::from_bits(rng.u64(..));
                if any.is_nan() { 1e-300 } else { any }
            }
        };
        value.extend(euros.to_le_bytes());
        let delay = if rng.bool() { -32768 } else { rng.i16(..) };
        value.extend(delay.to_be_bytes());
        value.extend([b"ab\0\0\0\0", b"abcdef", b"\0\0\0\0\0\0"][rng.usize(..3)]);
        value.extend((i128::MIN + i128::from(number)).to_le_bytes());
        value.extend((f32::from(number) / 3.0).to_be_bytes());
        value.extend([rng.u8(..), rng.u8(..)]);
        value.extend(["", "tail", "é\n"][rng.usize(..3)].as_bytes());
        records.insert(key, value);
    }
    records
}

#[test]
fn records_come_back_from_columns_of_their_types() {
    case!().seeds(2, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        for engine in ENGINES {
            let place = Place::new();
            let records = records(&mut rng, false);
            let from = place.database("from", engine, Some(FIELDS), &records);
            for ending in endings() {
                let file = place.path(&format!("t.{ending}"));
                let notice = export(&from, "t", &file, &[]);
                assert!(!notice.contains("as bytes"), "{ending}: {notice}");
                let to = place.path(&format!("to.{ending}"));
                let is_text = !matches!(ending, "parquet" | "arrow");
                let more: &[&str] =
                    if is_text { &["--engine", engine, "--layout", FIELDS] } else { &[] };
                let told = import(&to, "t", &file, more);
                assert!(told.contains("as           fields"), "{told}");
                let (back, kept_by) = contents(&to, "t");
                assert!(back == records, "{engine} {ending}");
                assert_eq!(kept_by, engine);
                // The table knows its fields now.
                import(&to, "t", &file, &[]);
                assert!(contents(&to, "t").0 == records, "{engine} {ending}");
            }
        }
    });
}

#[test]
fn what_text_cannot_say_is_written_as_bytes() {
    case!().seeds(2, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let place = Place::new();
        let records = records(&mut rng, true);
        let from = place.database("from", "hash", Some(FIELDS), &records);
        for ending in endings() {
            let file = place.path(&format!("t.{ending}"));
            let notice = export(&from, "t", &file, &[]);
            let is_text = !matches!(ending, "parquet" | "arrow");
            assert_eq!(notice.contains("NaN of `euros`"), is_text, "{notice}");
            let to = place.path(&format!("to.{ending}"));
            import(&to, "t", &file, &[]);
            assert!(contents(&to, "t").0 == records, "{ending}");
        }
    });
}

#[test]
fn an_empty_table_is_a_file_without_rows() {
    for engine in ENGINES {
        for fields in [None, Some(FIELDS)] {
            let place = Place::new();
            let from = place.database("from", engine, fields, &Contents::new());
            for ending in endings() {
                let file = place.path(&format!("t.{ending}"));
                export(&from, "t", &file, &[]);
                let to = place.path(&format!("to.{ending}"));
                let is_text = !matches!(ending, "parquet" | "arrow");
                let more: &[&str] = match fields {
                    Some(fields) if is_text => &["--layout", fields],
                    _ => &[],
                };
                import(&to, "t", &file, more);
                assert!(contents(&to, "t").0.is_empty());
            }
        }
    }
}

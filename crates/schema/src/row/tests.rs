//! Tests of rows as bytes.

use proptest::prelude::*;

use super::*;

fn format(text: &str) -> RowFormat {
    RowFormat::new(text.parse().unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn encoded(rows: &RowFormat, row: &[Value<'_>]) -> (Vec<u8>, Vec<u8>) {
    let (mut key, mut value) = (vec![9], vec![9]);
    let number = rows.schema().is_numbered().then_some(7);
    rows.encode(row, number, &mut key, &mut value).expect("it fits");
    (key, value)
}

/// As they lie in files: any change needs another version of the first byte.
#[test]
fn bytes_are_pinned() {
    let rows = format("a:text, b:u16, c:i16?, d:text?, e:text, f:f32?, key(a, b)");
    let row = ["UA".into(), 1.into(), (-2).into(), Value::Null, "xyz".into(), 0.5.into()];
    let (key, value) = encoded(&rows, &row);
    assert_eq!(key, b"UA\0\x01\0\x01");
    assert_eq!(value, [1, 0b010, 0xFE, 0xFF, 0, 0, 0, 0x3F, 0, 0, b'x', b'y', b'z']);
    assert_eq!(rows.decode(&key, &value), Ok(row.to_vec()));

    let rows = format("a:i16?, b:decimal(20,1), key(a, #)");
    let row = [Value::Int(-1), Value::Decimal { units: 15, scale: 1 }];
    let (key, value) = encoded(&rows, &row);
    assert_eq!(key, [2, 0x7F, 0xFF, 0, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(value, [1, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(rows.number_of(&key), Some(7));
}

#[test]
fn whole_numbers_of_128_bits_without_a_sign_lie_as_they_are() {
    let rows = format("a:u128, b:u128?, c:[u128; 2], key(a)");
    let huge = Value::from(u128::MAX - 1);
    let row = [huge.clone(), 1.into(), Value::Array(vec![huge, 0.into()])];
    let (key, value) = encoded(&rows, &row);
    assert_eq!(key[..], (u128::MAX - 1).to_be_bytes());
    assert_eq!(value[2..18], 1_u128.to_le_bytes());
    assert_eq!(rows.decode(&key, &value), Ok(row.to_vec()));
    let one = rows.project(&[1]);
    one.read(&key, &value, &mut |_, cell| assert_eq!(cell, Cell::Huge(1))).expect("a row");
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for (cell, expected) in [
        (Cell::Huge(u128::MAX), Ok(())),
        (Cell::Int(7), Ok(())),
        (Cell::Big(i128::MAX), Ok(())),
        (Cell::Int(-1), Err("-1 does not fit into u128")),
    ] {
        let rows = format("a:u128, b:u128, key(a)");
        let written = rows.encode_cells(&|_| cell.clone(), None, &mut key, &mut value);
        match expected {
            Ok(()) => assert_eq!(written, Ok(())),
            Err(says) => {
                let what = written.expect_err("it has a sign").to_string();
                assert!(what.contains(says), "{what}");
            }
        }
    }
    let narrow = format("a:i128, key(a)");
    let written = narrow.encode_cells(&|_| Cell::Huge(u128::MAX), None, &mut key, &mut value);
    assert!(written.expect_err("it is too large").to_string().contains("does not fit into i128"));
}

#[test]
fn long_texts_have_wide_ends() {
    let rows = format("a:i8, b:text, c:bytes, key(a)");
    for len in [65_530, 65_531, 65_535, 65_536, 200_000] {
        let row = [Value::Int(1), "x".repeat(len).into(), (&b"12345"[..]).into()];
        let (key, value) = encoded(&rows, &row);
        let ends = if len + 5 > 65_535 { 4 } else { 2 };
        assert_eq!(value.len(), 1 + ends + len + 5);
        expect_pieces(&rows, &key, &value);
        assert_eq!(rows.decode(&key, &value), Ok(row.to_vec()));
    }
}

#[test]
fn later_columns_are_null_in_earlier_rows() {
    let old = format("a:i8, b:text?, key(a)");
    let wider = old
        .schema()
        .with_column("c", Type::F64)
        .and_then(|schema| schema.with_column("d", Type::Text));
    let new = RowFormat::new(wider.expect("a schema"));
    let (key, value) = encoded(&old, &[1.into(), "x".into()]);
    let read = [Value::Int(1), "x".into(), Value::Null, Value::Null];
    assert_eq!(new.decode(&key, &value), Ok(read.to_vec()));
    expect_pieces(&new, &key, &value);
    assert!(new.set(2, &mut value.clone(), &1.5.into()).is_err());
    let row = [Value::Int(1), "x".into(), 1.5.into(), "y".into()];
    let (key, value) = encoded(&new, &row);
    assert_eq!(new.decode(&key, &value), Ok(row.to_vec()));
    let error = old.decode(&key, &value).expect_err("it is newer").to_string();
    assert!(error.contains("version 3") && error.contains("versions 1 to 1"), "{error}");
}

#[test]
fn columns_that_became_wider_are_read_in_rows_of_every_version() {
    let schemas = [
        "k:i8, a:i8?, f:f32, n:u16, d:decimal(4,2)?, t:text, key(k)",
        "k:i8, a:i16? was i8 until 2, f:f32, n:u16, d:decimal(4,2)?, t:text, key(k)",
        "k:i8, a:i64? was i8 until 2 was i16 until 3, f:f64 was f32 until 3, n:u64 was u16 until 3, \
         d:decimal(20,2)? was decimal(4,2) until 3, t:text, key(k)",
    ];
    let formats = schemas.map(format);
    let rows: [[Value<'_>; 6]; 4] = [
        ["1", "-128", "0.5", "65535", "99.99", "x"],
        ["1", "", "-2", "0", "", ""],
        ["1", "127", "0", "1", "-0.01", "naïve"],
        ["1", "0", "1e10", "7", "0", "y"],
    ]
    .map(|texts| {
        let mut columns = formats[0].schema().columns().iter();
        texts.map(|text| {
            let column = columns.next().expect("six columns");
            match text {
                "" if column.nullable => Value::Null,
                text => Value::of_text(text, &column.kind).expect("a value"),
            }
        })
    });
    let newest = &formats[2];
    for (version, written) in formats.iter().enumerate() {
        for row in &rows {
            let (key, mut value) = encoded(written, row);
            assert_eq!(usize::from(value[0]), version + 1);
            let read = newest.decode(&key, &value).expect("a row");
            // Floats and decimals of another type are equal values.
            assert_eq!(read, *row);
            for (column, expected) in row.iter().enumerate() {
                assert_eq!(newest.get(column, &key, &value).as_ref(), Ok(expected));
            }
            // What the row's own type has is changed where it lies; what it has not is refused, and nothing changes.
            assert_eq!(newest.set(1, &mut value, &5.into()), Ok(()));
            assert_eq!(newest.get(1, &key, &value), Ok(Value::Int(5)));
            assert_eq!(newest.set(1, &mut value, &Value::Null), Ok(()));
            assert_eq!(newest.get(1, &key, &value), Ok(Value::Null));
            let before = value.clone();
            let large = newest.set(1, &mut value, &100_000.into());
            match version {
                2 => assert_eq!(large, Ok(())),
                _ => {
                    assert!(large.expect_err("too large").to_string().contains("anew"));
                    assert_eq!(value, before);
                }
            }
            let exact = newest.set(2, &mut value, &Value::Float(0.1));
            assert_eq!(exact.is_ok(), version == 2, "f32 has no 0.1");
        }
    }
    assert!((0..6).all(|column| column == 5 || newest.offset_of(column).is_none()));
    assert!(formats[0].offset_of(3).is_some());
}

#[test]
fn columns_change_in_place() {
    let rows = format("a:i8, b:i32?, c:text, d:[u8; 2], key(a)");
    let row = [Value::Int(1), Value::Null, "x".into(), Value::Array(vec![1.into(), 2.into()])];
    let (key, mut value) = encoded(&rows, &row);
    for new in [Value::Int(-5), Value::Null, Value::Int(9)] {
        rows.set(1, &mut value, &new).expect("it is fixed");
        assert_eq!(rows.get(1, &key, &value), Ok(new));
    }
    rows.set(3, &mut value, &Value::Array(vec![7.into(), 8.into()])).expect("it is fixed");
    assert_eq!(rows.get(3, &key, &value).expect("a row").to_string(), "[7, 8]");
    assert_eq!(rows.get(2, &key, &value), Ok("x".into()));
    let before = value.clone();
    for (column, new) in [(1, Value::from("x")), (2, "y".into()), (0, 2.into()), (3, Value::Null)] {
        assert!(rows.set(column, &mut value, &new).is_err(), "{column}");
        assert_eq!(value, before);
    }
}

#[test]
fn values_that_do_not_fit_are_named() {
    let rows = format("a:u8, b:text?, key(a)");
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for (row, says) in [
        ([Value::Int(256), Value::Null], "column `a` (u8): 256 does not fit into u8"),
        ([Value::Null, Value::Null], "column `a` (u8): a value is needed"),
        ([Value::Int(1), Value::Int(1)], "column `b` (text): 1 is no text"),
    ] {
        let error = rows.encode(&row, None, &mut key, &mut value).expect_err("refused");
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// A type, and values of it.
fn typed() -> impl Strategy<Value = (Type, Vec<Value<'static>>)> {
    let ints = |kind: Type, values: BoxedStrategy<i128>| {
        prop::collection::vec(values.prop_map(Value::Int), 2)
            .prop_map(move |values| (kind.clone(), values))
    };
    prop_oneof![
        ints(Type::Int(8), any::<i8>().prop_map(i128::from).boxed()),
        ints(Type::UInt(16), any::<u16>().prop_map(i128::from).boxed()),
        ints(Type::Int(32), any::<i32>().prop_map(i128::from).boxed()),
        ints(Type::Int(64), any::<i64>().prop_map(i128::from).boxed()),
        ints(Type::UInt(64), any::<u64>().prop_map(i128::from).boxed()),
        ints(Type::Int(128), any::<i128>().boxed()),
        prop::collection::vec(any::<u128>().prop_map(Value::from), 2)
            .prop_map(|it| (Type::UInt(128), it)),
        prop::collection::vec(any::<bool>().prop_map(Value::Bool), 2)
            .prop_map(|it| (Type::Bool, it)),
        prop::collection::vec(any::<f64>().prop_map(Value::Float), 2)
            .prop_map(|it| (Type::F64, it)),
        prop::collection::vec(any::<f32>().prop_map(|it| Value::Float(it.into())), 2)
            .prop_map(|it| (Type::F32, it)),
        prop::collection::vec(any::<i32>().prop_map(Value::Date), 2)
            .prop_map(|it| (Type::Date, it)),
        prop::collection::vec("[\0-\x02a-c]{0,6}".prop_map(Value::from), 2)
            .prop_map(|it| (Type::Text, it)),
        prop::collection::vec(
            prop::collection::vec(any::<u8>(), 0..5).prop_map(|it| Value::Bytes(Cow::Owned(it))),
            2
        )
        .prop_map(|it| (Type::Bytes, it)),
        prop::collection::vec(
            (-999_999_i128..=999_999).prop_map(|units| Value::Decimal { units, scale: 2 }),
            2
        )
        .prop_map(|it| (Type::Decimal { digits: 6, scale: 2 }, it)),
    ]
}

/// As SQL compares them: all NaN are one, and so are the zeros.
fn ordered(left: &Value<'_>, right: &Value<'_>) -> std::cmp::Ordering {
    match (left, right) {
        (Value::Null, Value::Null) => std::cmp::Ordering::Equal,
        (Value::Null, _) => std::cmp::Ordering::Less,
        (_, Value::Null) => std::cmp::Ordering::Greater,
        (Value::Float(left), Value::Float(right)) => match (left.is_nan(), right.is_nan()) {
            (false, false) => left.partial_cmp(right).expect("no NaN"),
            (left, right) => left.cmp(&right),
        },
        (Value::Text(left), Value::Text(right)) => left.cmp(right),
        (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
        // Those of one form are above all of the other.
        (Value::Huge(left), Value::Huge(right)) => left.cmp(right),
        (Value::Huge(_), _) => std::cmp::Ordering::Greater,
        (_, Value::Huge(_)) => std::cmp::Ordering::Less,
        (left, right) => whole(left).cmp(&whole(right)),
    }
}

/// A row's pieces make up its bytes, and have the cells that it has.
fn expect_pieces(rows: &RowFormat, key: &[u8], value: &[u8]) {
    let mut lens = vec![9];
    let cut = rows.cut(key, value, &mut lens).expect("it is a row");
    let all = [key, value].concat();
    let mut rest = &all[..];
    let mut pieces = Vec::new();
    for &len in &lens[1..] {
        let (piece, behind) = rest.split_at(len as usize);
        pieces.push(piece);
        rest = behind;
    }
    assert!(rest.is_empty(), "{lens:?} of {}", all.len());
    assert_eq!(pieces[..cut.key_pieces].concat(), key);
    assert_eq!(cut.version, value[0] & !WIDE_ENDS);
    for column in 0..rows.schema().columns().len() {
        let at = rows.piece_of(cut.version, column).expect("there is such a version");
        let piece = at.piece().map_or(&b""[..], |piece| pieces[piece]);
        let nulls = at.null_piece().map_or(&b""[..], |piece| pieces[piece]);
        let cell = at.cell(piece, nulls).expect("a cell");
        let mut numbers = Vec::new();
        if at.width() == Some(piece.len()) && at.push_ints(piece, &mut numbers) {
            match at.is_null(nulls) {
                true => assert_eq!(cell, Cell::Null),
                false => assert_eq!(cell, Cell::Int(numbers[0]), "{column}"),
            }
            assert_eq!(numbers.len(), 1);
        }
        let mut floats = Vec::new();
        if at.width() == Some(piece.len()) && at.push_floats(piece, &mut floats) {
            match &cell {
                Cell::Float(cell) => assert_eq!(cell.to_bits(), floats[0].to_bits(), "{column}"),
                _ => assert!(at.is_null(nulls), "{column}"),
            }
        }
        if at.is_text() && !at.is_null(nulls) {
            assert_eq!(cell, Cell::Bytes(piece.into()), "{column}");
        }
        if at.is_key_text() {
            let Cell::Bytes(text) = &cell else { panic!("{column} is no text") };
            let found = ColumnPiece::key_text(piece);
            assert_eq!(found, (!text.contains(&0)).then_some(&text[..]), "{column}");
        }
        let bit = at.null_bit().is_some_and(|bit| nulls[bit / 8] & (1 << (bit % 8)) != 0);
        assert_eq!(bit, at.is_null(nulls), "{column}");
        rows.project(&[column])
            .read(key, value, &mut |_, read| match (&read, &cell) {
                (Cell::Float(read), Cell::Float(cell)) => {
                    assert_eq!(read.to_bits(), cell.to_bits())
                }
                _ => assert_eq!(read, cell, "column {column}"),
            })
            .expect("a row");
    }
}

proptest! {
    #[test]
    fn rows_come_back_and_keys_sort_as_values(
        columns in prop::collection::vec((typed(), any::<bool>(), any::<[bool; 2]>()), 1..7),
        key_columns in 1..4_usize,
    ) {
        let mut builder = Schema::builder();
        let mut rows = [Vec::new(), Vec::new()];
        for (at, ((kind, values), nullable, nulls)) in columns.iter().enumerate() {
            let name = format!("c{at}");
            builder = match nullable {
                true => builder.nullable(name, kind.clone()),
                false => builder.column(name, kind.clone()),
            };
            for (row, (value, null)) in rows.iter_mut().zip(values.iter().zip(nulls)) {
                row.push(if *null && *nullable { Value::Null } else { value.clone() });
            }
        }
        let names: Vec<String> = (0..key_columns.min(columns.len())).rev().map(|at| format!("c{at}")).collect();
        let format = RowFormat::new(builder.key(names).build().expect("a schema"));
        let written = rows.each_ref().map(|row| encoded(&format, row));
        for (row, (key, value)) in rows.iter().zip(&written) {
            expect_pieces(&format, key, value);
            let read = format.decode(key, value).expect("a row");
            for (at, (read, written)) in read.iter().zip(row).enumerate() {
                match format.schema().key_columns().contains(&at) {
                    true => prop_assert!(ordered(read, written).is_eq(), "{read:?} {written:?}"),
                    false => prop_assert_eq!(read, written),
                }
            }
        }
        let by_value = format.schema().key_columns().iter();
        let by_value = by_value.map(|&at| ordered(&rows[0][at], &rows[1][at]));
        let by_value = by_value.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then);
        prop_assert_eq!(written[0].0.cmp(&written[1].0), by_value);
    }

    #[test]
    fn any_bytes_are_answered(key: Vec<u8>, mut value: Vec<u8>, wide: bool) {
        let rows = format("a:text, b:i64?, c:bool, d:text?, e:i128?, f:text, g:[u16; 3], key(a, b, c)");
        if let Some(first) = value.first_mut() {
            *first = 1 | u8::from(wide) << 7;
        }
        let _ = rows.decode(&key, &value);
        let mut lens = Vec::new();
        if rows.cut(&key, &value, &mut lens).is_some() {
            prop_assert_eq!(lens.iter().sum::<u32>() as usize, key.len() + value.len());
        }
        let _ = rows.set(4, &mut value, &Value::Int(1));
        // What any change of a byte makes of a row is a row or is refused.
        let (key, good) = encoded(&rows, &["k".into(), 1.into(), true.into(), "x".into(), Value::Null,
            "yy".into(), Value::Array(vec![1.into(); 3])]);
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (at % 8);
            let _ = rows.decode(&key, &bytes);
            lens.clear();
            if rows.cut(&key, &bytes, &mut lens).is_some() {
                prop_assert_eq!(lens.iter().sum::<u32>() as usize, key.len() + bytes.len());
            }
            let _ = rows.decode(&key, &good[..at]);
        }
    }
}

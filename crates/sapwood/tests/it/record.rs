//! Records: structs over the bytes of values.

use sapwood::aggregate::{Aggregate, Layout, Query};
use sapwood::record::{F64, FieldType, I16, I64, Record, RecordLength, U32, big_endian, record};
use sapwood::{Db, HashTableOptions};

/// One of each kind of field.
#[derive(Debug, PartialEq)]
#[record]
struct Mixed {
    flag: u8,
    r#type: I16,
    total: I64,
    share: F64,
    net: big_endian::U16,
    code: [u8; 3],
}

fn mixed() -> Mixed {
    Mixed {
        flag: 7,
        r#type: (-2).into(),
        total: i64::MIN.into(),
        share: 0.25.into(),
        net: 0x0102.into(),
        code: *b"abc",
    }
}

#[test]
fn fields_lie_in_their_order_without_gaps() {
    assert_eq!(size_of::<Mixed>(), 1 + 2 + 8 + 8 + 2 + 3);
    assert_eq!(align_of::<Mixed>(), 1);
    let expected =
        "flag:u8, type:i16le@1, total:i64le@3, share:f64le@11, net:u16be@19, code:bytes3@21";
    assert_eq!(Mixed::layout().to_string(), expected);
    assert_eq!(expected.parse::<Layout>().expect("it is the text of a layout"), Mixed::layout());
}

#[test]
fn bytes_are_the_record_and_the_record_is_the_bytes() {
    let record = mixed();
    let mut expected = vec![7];
    expected.extend((-2_i16).to_le_bytes());
    expected.extend(i64::MIN.to_le_bytes());
    expected.extend(0.25_f64.to_le_bytes());
    expected.extend([1, 2]);
    expected.extend(b"abc");
    assert_eq!(record.as_bytes(), expected);
    // One byte further, where nothing is aligned.
    let mut shifted = vec![0];
    shifted.extend(&expected);
    assert_eq!(Mixed::view(&shifted[1..]), Ok(&record));
    Mixed::view_mut(&mut shifted[1..]).expect("it has the length").net += 1;
    assert_eq!(shifted[20..22], [1, 3]);
}

#[test]
fn bytes_of_another_length_are_refused() {
    for found in [0, 1, 23, 25, 1 << 20] {
        let mut bytes = vec![0; found];
        let refused = RecordLength { record: "Mixed", expected: 24, found };
        assert_eq!(Mixed::view(&bytes), Err(refused));
        assert_eq!(Mixed::view_mut(&mut bytes).map(|_| ()), Err(refused));
        let text = refused.to_string();
        assert!(text.contains(&format!("{found} bytes")) && text.contains("Mixed of 24"), "{text}");
    }
}

#[test]
fn queries_read_what_the_struct_wrote() {
    #[record]
    struct Route {
        flights: U32,
        minutes: I64,
    }
    let options = HashTableOptions::default().fields(Route::layout());
    let table = Db::in_memory().create_hash_table("routes", options).expect("there is room");
    for n in 0..100_u32 {
        let route = Route { flights: n.into(), minutes: (-i64::from(n)).into() };
        table.put(&n.to_be_bytes(), route.as_bytes()).expect("there is room");
    }
    let query = Query::new(Route::layout())
        .aggregates(Aggregate::list("sum(flights), min(minutes)").expect("it has the form"));
    let answer = table.aggregate(&query).expect("the fields are numbers");
    assert_eq!(answer.value(0, "sum(flights)").expect("it was asked for").as_i64(), Some(4950));
    assert_eq!(answer.value(0, "min(minutes)").expect("it was asked for").as_i64(), Some(-99));
}

#[test]
fn each_number_is_read_as_it_is_written() {
    assert_eq!(<u8 as FieldType>::READ.to_string(), "u8");
    assert_eq!(<i8 as FieldType>::READ.to_string(), "i8");
    assert_eq!(<U32 as FieldType>::READ.to_string(), "u32le");
    assert_eq!(<big_endian::F32 as FieldType>::READ.to_string(), "f32be");
    assert_eq!(<big_endian::I128 as FieldType>::READ.to_string(), "i128be");
}

//! Records: structs over the bytes of values.

use std::ops::ControlFlow;

use sapwood::aggregate::{Aggregate, Layout, Query};
use sapwood::record::{F64, FieldType, I16, I64, Record, RecordLength, U32, big_endian, record};
use sapwood::{Db, Error, HashTableOptions, OrderedTableOptions, Records, Upsert};

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
    assert_eq!(record.bytes(), expected);
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
        table.put(&n.to_be_bytes(), route.bytes()).expect("there is room");
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

/// Flights of a route, which are counted.
#[derive(Debug, PartialEq)]
#[record]
struct Count {
    flights: U32,
    minutes: I64,
}

fn count(flights: u32, minutes: i64) -> Count {
    Count { flights: flights.into(), minutes: minutes.into() }
}

/// A view of a table of each kind.
fn both() -> [Records<Count>; 2] {
    let db = Db::in_memory();
    let ordered = OrderedTableOptions::default().record::<Count>();
    let hash = HashTableOptions::default().record::<Count>();
    [
        Records::new(db.create_ordered_table("ordered", ordered).expect("there is room")),
        Records::new(db.create_hash_table("hash", hash).expect("there is room")),
    ]
}

#[test]
fn records_are_put_and_changed_as_the_struct() {
    for records in both() {
        assert_eq!(records.get(b"k"), Ok(None));
        assert_eq!(records.update(b"k", |_| panic!("it is not there")), Ok(None));
        assert_eq!(records.put_if_absent(b"k", &count(1, 2)), Ok(true));
        assert_eq!(records.put_if_absent(b"k", &count(9, 9)), Ok(false));
        let old = records.update(b"k", |it| {
            it.flights += 4;
            it.minutes.get()
        });
        assert_eq!(old, Ok(Some(2)));
        let add = |it: &mut Count| it.minutes += 40;
        assert_eq!(
            records.put_if_absent_or_update(b"k", &count(0, 0), add),
            Ok(Upsert::Updated(()))
        );
        assert_eq!(
            records.put_if_absent_or_update(b"new", &count(7, 7), add),
            Ok(Upsert::Inserted)
        );
        assert_eq!(records.get(b"k"), Ok(Some(count(5, 42))));
        assert_eq!(records.get_with(b"new", |it| it.flights.get()), Ok(Some(7)));
        assert_eq!(records.put(b"new", &count(8, 8)), Ok(()));
        let mut sum = 0;
        let flow = records.for_each(|_, it| {
            sum += it.flights.get();
            ControlFlow::<()>::Continue(())
        });
        assert_eq!((flow, sum), (Ok(ControlFlow::Continue(())), 13));
        assert_eq!(records.for_each(|_, _| ControlFlow::Break(3)), Ok(ControlFlow::Break(3)));
        assert_eq!(records.remove(b"new"), Ok(true));
        assert_eq!(records.table().len(), Ok(1));
    }
}

#[test]
fn a_value_of_another_length_is_refused_and_stays() {
    for records in both() {
        records.table().put(b"k", b"seven b").expect("there is room");
        let refused = Error::Record {
            table: records.table().name().into(),
            cause: RecordLength { record: "Count", expected: 12, found: 7 },
        };
        let never = |_: &mut Count| panic!("it is no record");
        assert_eq!(records.get(b"k"), Err(refused.clone()));
        assert_eq!(records.update(b"k", never), Err(refused.clone()));
        assert_eq!(
            records.put_if_absent_or_update(b"k", &count(1, 1), never),
            Err(refused.clone())
        );
        assert_eq!(records.for_each(|_, _| ControlFlow::<()>::Continue(())), Err(refused.clone()));
        let text = refused.to_string();
        assert!(text.contains("7 bytes") && text.contains("Records::table"), "{text}");
        assert_eq!(records.table().get(b"k"), Ok(Some(b"seven b".to_vec())));
    }
}

#[test]
fn threads_lose_no_change_of_a_record() {
    const THREADS: u32 = 4;
    const EACH: u32 = 2_000;
    for records in both() {
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for at in 0..EACH {
                        let add = |it: &mut Count| {
                            it.flights += 1;
                            it.minutes += i64::from(at);
                        };
                        let key = (at % 7).to_le_bytes();
                        let first = count(1, at.into());
                        records.put_if_absent_or_update(&key, &first, add).expect("there is room");
                    }
                });
            }
        });
        let (mut flights, mut minutes) = (0, 0);
        let _ = records.for_each(|_, it| {
            flights += it.flights.get();
            minutes += it.minutes.get();
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(flights, THREADS * EACH);
        assert_eq!(minutes, i64::from(THREADS) * i64::from(EACH) * i64::from(EACH - 1) / 2);
    }
}

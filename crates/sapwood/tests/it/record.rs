//! Records: structs over the bytes of values.

use std::ops::ControlFlow;

use sapwood::aggregate::{Aggregate, Layout, Query};
use sapwood::record::{F64, FieldType, I16, I64, Record, RecordLength, U32, big_endian, record};
use sapwood::{
    Db, Direction, Error, HashTableOptions, OrderedTableOptions, Records, Table, TreeTableOptions,
    Upsert, key,
};

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
        table.put(n.to_be_bytes(), route.bytes()).expect("there is room");
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
fn each() -> [Records<Count>; 3] {
    let db = Db::in_memory();
    let ordered = OrderedTableOptions::default().record::<Count>();
    let hash = HashTableOptions::default().record::<Count>();
    let tree = TreeTableOptions::default().record::<Count>();
    [
        Table::from(db.create_ordered_table("ordered", ordered).expect("there is room")),
        Table::from(db.create_hash_table("hash", hash).expect("there is room")),
        Table::from(db.create_tree_table("tree", tree).expect("there is room")),
    ]
    .map(|table| Records::new(table).expect("it declares these fields"))
}

#[test]
fn records_are_put_and_changed_as_the_struct() {
    for records in each() {
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
    for records in each() {
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
    for records in each() {
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
                        records.put_if_absent_or_update(key, &first, add).expect("there is room");
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

/// A table that declares these fields.
fn declaring(fields: &str) -> Table {
    let fields = fields.parse().expect("it has the form");
    let options = HashTableOptions::default().fields(fields);
    Db::in_memory().create_hash_table("t", options).expect("there is room").into()
}

#[test]
fn a_struct_is_compared_with_the_fields_of_the_table() {
    for same in [
        "flights:u32le, minutes:i64le@4",
        "key(from:str, to:str), minutes:i64le@4?-1, flights:u32le, raw:bytes12",
    ] {
        assert!(Records::<Count>::new(declaring(same)).is_ok(), "{same}");
    }
    for other in [
        "flights:u32le",
        "flights:u32be, minutes:i64le@4",
        "flights:i32le, minutes:i64le@4",
        "minutes:i64le, flights:u32le@8",
        "flights:u32le, minutes:i64le@4, seats:u16le@12",
        "flights:key.u32le, minutes:i64le@4",
        "n:u32le, minutes:i64le@4",
    ] {
        let refused = Records::<Count>::new(declaring(other)).expect_err(other);
        let Error::RecordFields { table, declared, record, fields } = &refused else {
            panic!("{refused}");
        };
        assert_eq!((&**table, *record), ("t", "Count"));
        assert_eq!((&declared[..], &fields[..]), (other, "flights:u32le, minutes:i64le@4"));
        let text = refused.to_string();
        assert!(text.contains("`t`") && text.contains("`Count`") && text.contains(other), "{text}");
    }
    // A text of so many bytes is such bytes.
    let text = "flag:u8, type:i16le@1, total:i64le@3, share:f64le@11, net:u16be@19, code:text3@21";
    assert!(Records::<Mixed>::new(declaring(text)).is_ok());
    // Without declared fields there is nothing to compare.
    let table = Db::in_memory().create_hash_table("t", HashTableOptions::default());
    assert!(Records::<Count>::new(table.expect("there is room")).is_ok());
}

#[test]
fn walks_of_records_go_by_key_where_there_is_order() {
    let [ordered, hash, tree] = each();
    let entries: Vec<([u8; 1], Count)> = (0..9).map(|n| ([n], count(n.into(), -1))).collect();
    for records in [&ordered, &hash, &tree] {
        records.put_many(&entries).expect("there is room");
        let walked: Result<Vec<_>, _> = records.iter().collect();
        let mut walked = walked.expect("all are records");
        walked.sort_by_key(|(key, _)| key.clone());
        let expected: Vec<_> = entries.iter().map(|(key, it)| (key.to_vec(), *it)).collect();
        assert_eq!(walked, expected);
        let mut found = [None; 2];
        let read = |index: usize, it: Option<&Count>| found[index] = it.map(|it| it.flights.get());
        assert_eq!(records.get_many(&[[7], [77]], read), Ok(()));
        assert_eq!(found, [Some(7), None]);
        assert_eq!(records.update_many(&[[1], [99]], |_, it| it.minutes += 5), Ok(1));
        assert_eq!(records.compare_and_put([1], &count(1, 4), &count(1, 9)), Ok(true));
        assert_eq!(records.compare_and_put([1], &count(1, 4), &count(1, 7)), Ok(false));
        assert_eq!(records.take([1]), Ok(Some(count(1, 9))));
        assert_eq!(records.contains_key([1]), Ok(false));
        assert_eq!(records.retain(|_, it| it.flights != 2), Ok(1));
    }
    let flights = |entry: sapwood::Result<(Vec<u8>, Count)>| entry.map(|(_, it)| it.flights.get());
    for ordered in [&ordered, &tree] {
        let range = ordered.range([3]..[6]).expect("it has order");
        assert_eq!(range.map(flights).collect::<sapwood::Result<Vec<_>>>(), Ok(vec![3, 4, 5]));
        let range = ordered.range(key::prefix_range([8])).expect("it has order");
        assert_eq!(range.rev().map(flights).collect::<sapwood::Result<Vec<_>>>(), Ok(vec![8]));
        let mut seen = Vec::new();
        let flow = ordered.scan([4].., Direction::Descending, |key, it| {
            seen.push((key[0], it.flights.get()));
            if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((flow, seen), (Ok(ControlFlow::Break(())), vec![(8, 8), (7, 7)]));
    }
    let refused = hash.range(..).expect_err("it has no order");
    assert_eq!(refused, Error::NoOrder { table: "hash".into() });
    assert!(refused.to_string().contains("Records::iter"), "{refused}");
}

#[test]
fn a_value_of_another_length_stops_no_walk_over_many() {
    for records in each() {
        records.put_many(&[("a", count(1, 1)), ("c", count(3, 3))]).expect("there is room");
        records.table().put("b", "short").expect("there is room");
        let refused = Error::Record {
            table: records.table().name().into(),
            cause: RecordLength { record: "Count", expected: 12, found: 5 },
        };
        let (good, bad): (Vec<_>, Vec<_>) = records.iter().partition(Result::is_ok);
        assert_eq!((good.len(), bad), (2, vec![Err(refused.clone())]));
        let mut read = 0;
        let many = records.get_many(&["a", "b", "c"], |_, _| read += 1);
        assert_eq!((many, read), (Err(refused.clone()), 2));
        let many = records.update_many(&["a", "b", "c"], |_, it| it.flights += 1);
        assert_eq!(many, Err(refused.clone()));
        assert_eq!(records.get("c"), Ok(Some(count(4, 3))));
        assert_eq!(records.retain(|_, _| false), Err(refused.clone()));
        assert_eq!(records.table().len(), Ok(1));
        assert_eq!(records.take("b"), Err(refused));
        assert_eq!(records.table().len(), Ok(0));
    }
}

#[test]
fn a_key_that_is_none_is_an_error_of_the_facade() {
    let decode = || -> sapwood::Result<u32> { Ok(key::decode(b"abc")?) };
    let error = decode().expect_err("three bytes are no number of four");
    assert!(matches!(&error, Error::Key(cause) if cause.offset == 0), "{error}");
    assert!(error.to_string().contains("not a key of this type"), "{error}");
}

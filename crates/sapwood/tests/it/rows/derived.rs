//! Structs that are rows.

use sapwood::row::{Date, Row, Timestamp};
use sapwood::schema::{Error as Cause, Value};
use sapwood::{Db, Engine, Error};

use super::{ENGINES, create, schema};

/// One of each kind of field.
#[derive(Row, Debug, Clone, PartialEq)]
struct Mixed {
    #[row(key)]
    id: u32,
    is_late: bool,
    tiny: i8,
    short: i16,
    int: i32,
    long: i64,
    huge: i128,
    byte: u8,
    word: u16,
    large: u64,
    vast: u128,
    #[row(key)]
    r#type: String,
    single: f32,
    double: f64,
    bytes: Vec<u8>,
    vector: [f32; 3],
    counts: [u16; 2],
    day: Date,
    moment: Timestamp,
    note: Option<String>,
    share: Option<f64>,
    days: Option<[i64; 2]>,
}

fn mixed(id: u32) -> Mixed {
    Mixed {
        id,
        is_late: true,
        tiny: i8::MIN,
        short: i16::MIN,
        int: i32::MIN,
        long: i64::MIN,
        huge: i128::MAX,
        byte: u8::MAX,
        word: u16::MAX,
        large: u64::MAX,
        vast: u128::MAX,
        r#type: "an oak".to_owned(),
        single: 0.5,
        double: 1e300,
        bytes: vec![0, 255],
        vector: [1.0, -0.25, 0.0],
        counts: [7, 8],
        day: Date(-1),
        moment: Timestamp(1_700_000_000_000_000),
        note: None,
        share: Some(0.25),
        days: Some([-1, 1]),
    }
}

#[test]
fn fields_are_columns() {
    assert_eq!(
        Mixed::schema().to_string(),
        "id:u32, is_late:bool, tiny:i8, short:i16, int:i32, long:i64, huge:i128, byte:u8, word:u16, \
         large:u64, vast:u128, type:text, single:f32, double:f64, bytes:bytes, vector:[f32; 3], counts:[u16; 2], \
         day:date, moment:timestamp(us), note:text?, share:f64?, days:[i64; 2]?, key(id, type)"
    );
    assert_eq!(Mixed::from_values(mixed(1).to_values()), Ok(mixed(1)));
}

#[test]
fn structs_come_back_as_they_were_put() {
    let db = Db::in_memory();
    for engine in ENGINES {
        create(&db, "t", engine, Some(&Mixed::schema())).expect("made");
        let rows = db.rows("t").expect("rows").typed::<Mixed>().expect("the same columns");
        rows.put(&mixed(1)).expect("put");
        assert_eq!(rows.insert(&mixed(1)), Ok(false));
        rows.put_many(&[mixed(2), Mixed { note: Some("x".into()), ..mixed(3) }]).expect("put");
        assert_eq!(rows.get((2, "an oak")), Ok(Some(mixed(2))));
        assert_eq!(rows.get((4, "an oak")), Ok(None));
        // A column that the struct does not know.
        db.add_column("t", "extra", sapwood::schema::Type::Text).expect("added");
        rows.put(&mixed(4)).expect("put");
        assert_eq!(rows.get((4, "an oak")), Ok(Some(mixed(4))));
        assert_eq!(rows.get((1, "an oak")), Ok(Some(mixed(1))));
        assert!(db.rows("t").expect("rows").typed::<Mixed>().is_ok());
        db.drop_table("t").expect("dropped");
    }
}

#[test]
fn structs_without_a_key_are_numbered() {
    #[derive(Row, Debug, PartialEq)]
    struct Line {
        text: String,
    }
    assert_eq!(Line::schema().to_string(), "text:text, key(#)");
    let db = Db::in_memory();
    create(&db, "lines", Engine::Tree, Some(&Line::schema())).expect("made");
    let lines = db.rows("lines").expect("rows").typed::<Line>().expect("its columns");
    let line = || Line { text: "an oak".to_owned() };
    assert_eq!((lines.put(&line()), lines.put(&line())), (Ok(Some(1)), Ok(Some(2))));
    assert_eq!(lines.get(2), Ok(Some(line())));
}

#[test]
fn structs_of_other_columns_are_refused() {
    #[derive(Row)]
    struct Plane {
        #[row(key)]
        tail: String,
        seats: Option<u16>,
    }
    let db = Db::in_memory();
    for (text, says) in [
        ("tail:text, key(tail)", "no column `seats`"),
        ("tail:text, seats:u16, key(tail)", "`seats` is `u16` here, and `u16?` in the struct"),
        ("tail:bytes, seats:u16?, key(tail)", "`tail` is `bytes` here"),
        ("tail:text, seats:u16?, year:u16, key(tail)", "every row has a `year`"),
        ("tail:text, seats:u16?", "its key is another"),
        ("tail:text, seats:u16?, key(tail, #)", "its key is another"),
    ] {
        create(&db, "t", Engine::Hash, Some(&schema(text))).expect("made");
        let refused = db.rows("t").expect("rows").typed::<Plane>().expect_err(text);
        assert!(matches!(refused, Error::Schema { .. }), "{refused}");
        assert!(refused.to_string().contains(says), "{text}: {refused}");
        db.drop_table("t").expect("dropped");
    }
    // Columns may stand in another order.
    let text = "seats:u16?, year:u16?, tail:text, key(tail)";
    create(&db, "t", Engine::Hash, Some(&schema(text))).expect("made");
    let rows = db.rows("t").expect("rows");
    let planes = rows.typed::<Plane>().expect("its columns");
    planes.put(&Plane { tail: "N1".to_owned(), seats: Some(7) }).expect("put");
    assert_eq!(rows.get(&["N1".into()]), Ok(Some(vec![7.into(), Value::Null, "N1".into()])));
}

#[test]
fn values_that_are_no_struct_are_refused() {
    let mixed = mixed(1);
    let mut values = mixed.to_values();
    values[0] = Value::Int(-1);
    let refused = Mixed::from_values(values).expect_err("no u32");
    assert!(matches!(&refused, Cause::Value { column, .. } if column == "id"), "{refused}");
    let few = mixed.to_values().into_iter().take(3);
    assert!(matches!(Mixed::from_values(few), Err(Cause::Schema(_))));
}

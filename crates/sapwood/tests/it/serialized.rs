//! What the feature `serde` writes of answers and figures.

use sapwood::aggregate::{Aggregate, Cell, Group, Mismatches, Value};
use sapwood::{Db, HashTableOptions, OrderedTableOptions};
use serde_json::{Value as Json, json, to_value};

#[test]
fn an_answer_is_its_columns_rows_and_tally() {
    let fields = "kind:key.bytes3, n:i64le, late:i64le@8?-1";
    let options = OrderedTableOptions::default().fields(fields.parse().expect("a layout"));
    let table = Db::in_memory().create_ordered_table("t", options).expect("a free name");
    for (key, n, late) in [(&b"oak1"[..], 90_i64, -1_i64), (b"oak2", 12, -1), (b"\xFF\0\0", 1, 5)] {
        let value = [n.to_le_bytes(), late.to_le_bytes()].concat();
        table.put(key, &value).expect("room");
    }
    table.put(b"tiny", b"").expect("room");
    let query = table
        .query()
        .expect("fields")
        .mismatches(Mismatches::Skip)
        .group_by(Group::list("kind").expect("groups"))
        .aggregates(Aggregate::list("sum(n), mean(late), top(n, 1), median(n)").expect("figures"));
    let answer = to_value(table.aggregate(&query).expect("an answer")).expect("JSON");
    assert_eq!(answer["columns"][0], json!({"name": "kind", "accuracy": "exact"}));
    assert_eq!(answer["columns"][1]["accuracy"], "exact");
    assert_eq!(answer["columns"][2]["accuracy"], "rounded");
    assert_eq!(answer["columns"][3]["accuracy"], "bounded");
    // So few numbers are all kept.
    assert_eq!(answer["columns"][4]["accuracy"], "rounded");
    let rows = answer["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0][0], &rows[0][1]), (&json!("oak"), &json!(102)));
    assert_eq!(rows[0][2], Json::Null);
    assert_eq!(rows[0][3][0]["at_least"], 1);
    assert_eq!(rows[1].as_array().expect("a row")[..3], [json!("ff0000"), json!(1), json!(5.0)]);
    let tally = &answer["tally"];
    assert_eq!((&tally["matched"], &tally["mismatched"]), (&json!(3), &json!(1)));
    assert_eq!(tally["first_mismatch"]["key"], "tiny");
    assert_eq!(answer["groups"], 2);
}

#[test]
fn values_keep_their_digits() {
    let float = |value| Value::float(value).expect("not NaN");
    for (value, expected) in [
        (Value::from(true), "true"),
        (Value::from(i64::MIN), "-9223372036854775808"),
        (Value::from(u64::MAX), "18446744073709551615"),
        (Value::from(i128::MIN), "-170141183460469231731687303715884105728"),
        (float(0.1), "0.1"),
        (float(f64::NEG_INFINITY), "\"-inf\""),
        (Value::from("a\"b"), r#""a\"b""#),
    ] {
        assert_eq!(serde_json::to_string(&value).expect("JSON"), expected);
    }
    assert_eq!(serde_json::to_string(&Cell::Nothing).expect("JSON"), "null");
}

#[test]
fn figures_of_tables_have_their_names() {
    let db = Db::in_memory();
    let ordered =
        db.create_ordered_table("o", OrderedTableOptions::default()).expect("a free name");
    let hash = db.create_hash_table("h", HashTableOptions::default()).expect("a free name");
    ordered.put(b"key", b"value").expect("room");
    hash.put(b"key", b"value").expect("room");
    let stats = to_value(db.stats()).expect("JSON");
    assert_eq!(stats["entries_estimate"], 2);
    assert_eq!(stats["ordered_tables"]["o"]["key_bytes"], 3);
    assert_eq!(stats["hash_tables"]["h"]["compaction_error"], Json::Null);
    assert_eq!(stats["hash_tables"]["h"]["entries_estimate"], 1);
    // For people, each kind by the name that programs have for it.
    assert!(format!("{:?}", ordered.stats()).starts_with("OrderedStats {"));
    assert!(format!("{:?}", hash.stats()).starts_with("HashStats {"));
}

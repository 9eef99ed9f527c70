//! Are there bytes that a decoder takes badly? What the fuzz targets in `fuzz` call.

use crate::stored_options;

/// The options of a table: bytes are refused, or are the ones that would be written, and zeros.
/// Those of earlier versions would be written otherwise.
pub fn table_options(bytes: &[u8]) {
    if let Ok(options) = stored_options::decode(bytes)
        && bytes.starts_with(stored_options::MAGIC.as_bytes())
    {
        let text = stored_options::encode(&options);
        let rest = bytes.strip_prefix(text.as_bytes()).expect("as it would be written");
        assert!(rest.iter().all(|byte| *byte == 0));
    }
}

/// Statements of SQL, and rows of a schema: the first byte says which.
///
/// Statements are refused, or have an answer whose values can all be read. Bytes of a row are refused, or read and
/// written again as the same values.
pub fn statements(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match (kind % 2, std::str::from_utf8(bytes)) {
        (0, Ok(text)) => executed(text),
        (0, Err(_)) => {}
        _ => rows(bytes),
    }
}

const SCHEMA: &str =
    "a:i32, b:text?, c:f64?, d:date?, e:decimal(9,2)?, f:bool?, g:timestamp?, h:[u8; 2]?, key(a)";

fn executed(text: &str) {
    let db = crate::Db::in_memory();
    let options = crate::OrderedTableOptions::default().schema(SCHEMA.parse().expect("a schema"));
    db.create_ordered_table("t", options).expect("a new database");
    db.sql(
        "insert into t values (1, 'x', 0.5, '2013-01-01', 1.25, true, '2013-01-01 10:00:00', '[1, 2]'),
         (2, null, null, null, null, null, null, null), (-3, '', 'nan', '1969-12-31', -9, false, '1969-12-31', '[0,0]')",
    )
    .expect("they fit");
    match db.sql(text) {
        Ok(crate::sql::Outcome::Rows(answer)) => {
            for row in 0..answer.len() {
                answer.row(row).expect("texts of this table are UTF-8");
            }
        }
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn rows(bytes: &[u8]) {
    let format = crate::schema::RowFormat::new(SCHEMA.parse().expect("a schema"));
    let Some((key, value)) = bytes.split_at_checked(4) else { return };
    let Ok(row) = format.decode(key, value) else { return };
    let (mut new_key, mut new_value) = (Vec::new(), Vec::new());
    // A decimal of more digits than its type has is none that was written.
    if format.encode(&row, None, &mut new_key, &mut new_value).is_ok() {
        assert_eq!(format.decode(&new_key, &new_value).as_ref(), Ok(&row));
    }
}

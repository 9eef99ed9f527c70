//! Rows as JSON, an object a line.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::batch::RowBatch;
use super::builder::RowBatchBuilder;
use crate::error::{Error, Result};
use crate::value::Value;

/// A line that is no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Its number in the text, from 0. Empty lines count.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl RowBatch {
    /// Reads JSON, an object a line. Objects inside of objects become columns with a dot in their name:
    /// `{"user": {"id": 7}}` has the column `user.id`. Lines that are empty are passed over, those that
    /// are no object, or with which the batch would have [too many](Self::COLUMNS_MAX) columns or
    /// [values](Self::CELLS_MAX), are told beside it.
    ///
    /// ```
    /// use sapwood::rollup::RowBatch;
    ///
    /// let (batch, bad) = RowBatch::from_json_lines(b"{\"a\": 1}\nnonsense\n{\"b\": [\"x\", null]}\n");
    /// assert_eq!((batch.rows(), bad[0].line), (2, 1));
    /// ```
    pub fn from_json_lines(text: &[u8]) -> (RowBatch, Vec<BadLine>) {
        let mut builder = RowBatchBuilder::new();
        let mut bad = Vec::new();
        for (line, text) in text.split(|&byte| byte == b'\n').enumerate() {
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if let Err(error) = read_row(text, &mut builder) {
                bad.push(BadLine { line, why: error.to_string() });
            }
        }
        (builder.finish(), bad)
    }
}

/// Adds a row, or nothing if the text is no object, or if the batch has no room for it.
pub(crate) fn read_row(text: &[u8], builder: &mut RowBatchBuilder) -> Result<()> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let row = Row { builder: &mut *builder, prefix: "" };
    let read = deserializer.deserialize_map(row).and_then(|()| deserializer.end());
    match read {
        Ok(()) => builder.end_row(),
        Err(error) => {
            builder.cancel_row();
            Err(Error::Input(format!("no JSON object: {error}")))
        }
    }
}

/// An object, whose fields go into the row.
struct Row<'b, 'p> {
    builder: &'b mut RowBatchBuilder,
    prefix: &'p str,
}

impl<'de> Visitor<'de> for Row<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        let mut path = String::new();
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let name = match self.prefix {
                "" => &*name,
                prefix => {
                    path.clear();
                    path.extend([prefix, ".", &name]);
                    &path
                }
            };
            map.next_value_seed(Cell { builder: self.builder, name })?;
        }
        Ok(())
    }
}

/// The value of a field.
struct Cell<'b, 'n> {
    builder: &'b mut RowBatchBuilder,
    name: &'n str,
}

impl<'de> DeserializeSeed<'de> for Cell<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> std::result::Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Cell<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> std::result::Result<(), E> {
        self.builder.push(self.name, Value::Null);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<(), E> {
        self.builder.push_text(self.name, if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<(), E> {
        self.builder.push(self.name, value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.builder.push(self.name, value),
            Err(_) => self.builder.push(self.name, Value::Double(value as f64)),
        }
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<(), E> {
        self.builder.push(self.name, Value::Double(value));
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<(), E> {
        self.builder.push_text(self.name, value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<(), A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element::<Value<'static>>()? {
            values.push(value);
        }
        self.builder.push(self.name, Value::List(values));
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<(), A::Error> {
        Row { builder: self.builder, prefix: self.name }.visit_map(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_row_or_told() {
        let text = br#"
{"time": "2013-01-01", "n": 1, "d": 1.5, "tags": ["b", "a"], "on": true, "deep": {"x": {"y": "z"}}}
{"n": null, "d": 18446744073709551615}

[1]
{"n": 1
{"n": 3} trailing
{"n": 4}"#;
        let (batch, bad) = RowBatch::from_json_lines(text);
        assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [4, 5, 6], "{bad:?}");
        let column = |name: &str| {
            let column = batch.find(name).expect(name);
            (0..batch.rows()).map(|row| column.value(row).to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(column("n"), "1 null 4");
        assert_eq!(column("d"), "1.5 1.8446744073709552e19 null");
        assert_eq!(column("tags"), "[b, a] null null");
        assert_eq!(column("on"), "true null null");
        assert_eq!(column("deep.x.y"), "z null null");
    }

    #[test]
    fn a_line_with_too_many_columns_is_told() {
        let fields: Vec<String> = (0..20_000).map(|number| format!("\"{number}\": 1")).collect();
        let text = format!(
            "{{\"a\": 1}}\n{{{}}}\n{{\"a\": 2}}\n{{\"b\": {{{}}}}}\n",
            fields.join(","),
            fields[..10_000].join(",")
        );
        let (batch, bad) = RowBatch::from_json_lines(text.as_bytes());
        assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [1]);
        assert!(bad[0].why.starts_with("16385 columns, "), "{bad:?}");
        assert_eq!((batch.rows(), batch.names().count()), (3, 10_001));
        assert!(batch.find("b.9999").is_some() && batch.find("9999").is_none());
    }
}

//! The columns that make the key of a row, and the order in which they sort.
//!
//! Keys of typed rows are those of their schema. Rows that are kept as text have keys of columns as `--key
//! carrier:str,flight:int` names them: numbers sort by value, everything else as text.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use sapwood::aggregate::{Component, ComponentForm, Field, Part, Place, Read, Tuple};
use sapwood::key::{self, DecodeError, Decoder, KeyDecode, KeyEncode};
use sapwood::schema::{RowFormat, Type, Value as Typed};
use serde_json::{Map, Value, json};

use crate::args::key_spec::{ColumnType, KeySpec, too_many};
use crate::rows::columns::Columns;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{escaped_bytes, quoted, shown, unescaped_bytes};

/// The columns of a key, found in the input and typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyColumns {
    columns: Vec<KeyColumn>,
    origin: Origin,
}

/// What keys are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Columns,
    /// Bytes of which nothing is known.
    Bytes,
    /// Columns of a schema, and the row's number behind them if it is numbered.
    Schema(Arc<RowFormat>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyColumn {
    name: String,
    /// Where in a CSV row; JSON rows are asked by name.
    index: usize,
    kind: ColumnType,
}

impl KeyColumns {
    /// Finds the columns of `spec`, which says the type of each, among those of the input.
    pub(crate) fn resolve(spec: &KeySpec, columns: &Columns) -> Outcome<Self> {
        let column = |(name, kind): &(String, Option<ColumnType>)| {
            let kind = kind.ok_or_else(|| {
                Failure::Usage(format!(
                    "--key: say the type of column {}: {name}:str, {name}:int or {name}:float",
                    quoted(name)
                ))
            })?;
            let index = columns.find(name).map_err(Failure::Failed)?;
            Ok(KeyColumn { name: name.clone(), index, kind })
        };
        let columns = spec.columns.iter().map(column).collect::<Outcome<Vec<_>>>()?;
        Ok(Self { columns, origin: Origin::Columns })
    }

    /// Keys that programs made.
    pub(crate) fn bytes() -> Self {
        Self { columns: Vec::new(), origin: Origin::Bytes }
    }

    /// The key of a schema.
    pub(crate) fn of_schema(format: &Arc<RowFormat>) -> Self {
        let origin = Origin::Schema(Arc::clone(format));
        Self { columns: Vec::new(), origin }
    }

    /// Whether these are the names of the columns.
    pub(crate) fn are_named(&self, names: &[String]) -> bool {
        match &self.origin {
            Origin::Schema(format) => {
                let schema = format.schema();
                let columns = schema.key_columns().iter().map(|at| &schema.columns()[*at].name);
                columns.eq(names)
            }
            Origin::Columns | Origin::Bytes => {
                self.columns.iter().map(|column| &column.name).eq(names)
            }
        }
    }

    /// Whether nothing but the number of a row is its key.
    pub(crate) fn is_row_number(&self) -> bool {
        match &self.origin {
            Origin::Schema(format) => format.schema().key_columns().is_empty(),
            Origin::Columns | Origin::Bytes => false,
        }
    }

    /// The columns as fields of a key, as far as fields can have their names.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let number = |form: &str| ComponentForm::Number(form.parse().expect("a number"));
        let forms = self.columns.iter().map(|column| match column.kind {
            ColumnType::Int => number("i64ord"),
            ColumnType::Float => number("f64ord"),
            ColumnType::Text => ComponentForm::Text,
        });
        let component = |form| Component { form, optional: false };
        let components: Vec<Component> = forms.map(component).collect();
        let fields = self.columns.iter().enumerate().filter_map(|(index, column)| {
            let tuple = Tuple::new(components.clone(), index).expect("each column is a component");
            (!column.name.contains('`')).then(|| Field {
                name: column.name.clone(),
                place: Place::Key,
                part: Part::From(0),
                read: Read::Tuple(tuple),
                absent: None,
            })
        });
        fields.collect()
    }

    /// The columns as they can be given to `--key`, quoted as a list is.
    pub(crate) fn to_spec(&self) -> String {
        let columns = self.columns.iter().map(|column| {
            let text = format!("{}:{}", column.name, column.kind);
            match column.name.contains([',', '"', '\n', '\r', ' ']) {
                true => format!("\"{}\"", text.replace('"', "\"\"")),
                false => text,
            }
        });
        columns.collect::<Vec<_>>().join(",")
    }

    /// Name and type of each column: `[["carrier", "str"], ["flight", "int"]]`.
    pub(crate) fn as_json(&self) -> Value {
        let columns = self.columns.iter();
        columns.map(|column| json!([column.name, column.kind.to_string()])).collect()
    }

    /// Reads what [`as_json`](Self::as_json) wrote.
    pub(crate) fn from_json(json: &Value, columns: &Columns) -> Option<Self> {
        let column = |pair: &Value| {
            let name = pair.get(0)?.as_str()?;
            Some(KeyColumn {
                name: name.to_owned(),
                index: columns.find(name).ok()?,
                kind: ColumnType::parse(pair.get(1)?.as_str()?)?,
            })
        };
        let columns = json.as_array()?.iter().map(column).collect::<Option<_>>()?;
        Some(Self { columns, origin: Origin::Columns })
    }

    /// The type of a column of CSV, if it is one of the key.
    pub(crate) fn kind_of(&self, index: usize) -> Option<ColumnType> {
        self.columns.iter().find(|column| column.index == index).map(|column| column.kind)
    }

    /// The place of a column among those of the key, from one. Not of a schema, which knows its own.
    pub(crate) fn place_of(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name).map(|at| at + 1)
    }

    /// The values that name the rows of a key; the number that tells them apart may stand behind them.
    pub(crate) fn len(&self) -> usize {
        match &self.origin {
            Origin::Columns => self.columns.len(),
            Origin::Bytes => 1,
            // Where nothing but the number is the key, it is its value.
            Origin::Schema(format) => format.schema().key_columns().len().max(1),
        }
    }

    /// The most values that a key has.
    pub(crate) fn len_max(&self) -> usize {
        match &self.origin {
            Origin::Schema(format) => {
                let schema = format.schema();
                schema.key_columns().len() + usize::from(schema.is_numbered())
            }
            _ => self.len(),
        }
    }

    /// Writes the key of a row of JSON lines into `out`, or says why the row has none.
    pub(crate) fn encode_members(
        &self,
        object: &Map<String, Value>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        out.clear();
        for column in &self.columns {
            let text = text_of(object.get(&column.name))
                .map_err(|what| format!("key column {} {what}", quoted(&column.name)))?;
            column.encode(&text, out)?;
        }
        Ok(())
    }

    /// As [`encode_members`](Self::encode_members), of the cells of a row of CSV.
    pub(crate) fn encode_cells<'a>(
        &self,
        cell: impl Fn(usize) -> Option<&'a str>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        out.clear();
        for column in &self.columns {
            let text = cell(column.index)
                .ok_or_else(|| format!("key column {} is missing", quoted(&column.name)))?;
            column.encode(text, out)?;
        }
        Ok(())
    }

    /// The key, or with fewer values than columns its beginning, of values as a user types them.
    pub(crate) fn encode_values(&self, values: &[String]) -> Outcome<Vec<u8>> {
        if values.len() > self.len_max() {
            return Err(Failure::Usage(too_many(values.len(), self.len_max())));
        }
        let mut out = Vec::new();
        match &self.origin {
            Origin::Bytes => {
                return Ok(values.iter().flat_map(|value| unescaped_bytes(value)).collect());
            }
            Origin::Schema(format) => {
                typed_key(format, values, &mut out).map_err(Failure::Usage)?;
                return Ok(out);
            }
            Origin::Columns => {}
        }
        for (column, value) in self.columns.iter().zip(values) {
            column.encode(value, &mut out).map_err(Failure::Usage)?;
        }
        Ok(out)
    }

    /// As [`encode_values`](Self::encode_values), for the keys that begin with `values`; the last
    /// may be the beginning of a text. An empty last value adds nothing: `UA,` is all of `UA`.
    pub(crate) fn encode_prefix(&self, values: &[String]) -> Outcome<Vec<u8>> {
        let Some((last, whole)) = values.split_last() else {
            return Ok(Vec::new());
        };
        let mut out = self.encode_values(whole)?;
        if let Origin::Schema(format) = &self.origin {
            let schema = format.schema();
            let column = schema.key_columns().get(whole.len()).map(|at| &schema.columns()[*at]);
            if column.is_some_and(|column| column.kind == Type::Text) {
                let with_empty: Vec<String> =
                    whole.iter().cloned().chain([String::new()]).collect();
                out = self.encode_values(&with_empty)?;
                // What is left of an empty text but its end.
                out.truncate(out.len() - key::encode("").len());
                out.extend(key::encode_partial(last));
            } else if !last.is_empty() {
                out = self.encode_values(values)?;
            }
            return Ok(out);
        }
        match self.columns.get(whole.len()) {
            Some(column) if column.kind == ColumnType::Text => {
                out.extend(key::encode_partial(last));
            }
            _ if last.is_empty() => {}
            _ => out = self.encode_values(values)?,
        }
        Ok(out)
    }

    /// The values of an encoded key, as a user would type them.
    pub(crate) fn decode(&self, key: &[u8]) -> Result<Vec<String>, DecodeError> {
        let mut decoder = Decoder::new(key);
        match &self.origin {
            Origin::Columns => {}
            Origin::Bytes => return Ok(vec![escaped_bytes(key)]),
            Origin::Schema(format) => {
                let columns = format.schema().key_columns().iter();
                let value = |column: &usize| match format.get(*column, key, &[]) {
                    Ok(value) => Ok(value.to_string()),
                    Err(error) => Err(decoder.error(error.to_string())),
                };
                let mut values = columns.map(value).collect::<Result<Vec<_>, _>>()?;
                values.extend(format.number_of(key).map(|number| number.to_string()));
                return Ok(values);
            }
        }
        let values = self.columns.iter().map(|column| {
            Ok(match column.kind {
                ColumnType::Int => i64::decode_from(&mut decoder)?.to_string(),
                ColumnType::Float => f64::decode_from(&mut decoder)?.to_string(),
                ColumnType::Text => String::decode_from(&mut decoder)?,
            })
        });
        values.collect()
    }
}

/// `carrier:str,flight:int`, as it could be given to `--key`.
impl fmt::Display for KeyColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Bytes => return f.write_str("its bytes"),
            Origin::Schema(format) => {
                let schema = format.schema();
                let columns = schema.key_columns().iter().map(|at| &schema.columns()[*at]);
                let columns =
                    columns.map(|column| format!("{}:{}", shown(&column.name), column.kind));
                let number = schema.is_numbered().then(|| "#".to_owned());
                return f.write_str(&columns.chain(number).collect::<Vec<_>>().join(","));
            }
            Origin::Columns => {}
        }
        for (index, column) in self.columns.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}:{}", shown(&column.name), column.kind)?;
        }
        Ok(())
    }
}

/// Writes the key, or with fewer values its beginning, of rows of a schema.
fn typed_key(format: &RowFormat, values: &[String], out: &mut Vec<u8>) -> Result<(), String> {
    let schema = format.schema();
    let columns = schema.key_columns();
    let (in_columns, number) = values.split_at(columns.len().min(values.len()));
    let value = |(text, at): (&'_ String, &usize)| {
        let column = &schema.columns()[*at];
        let value = match text.as_str() {
            "null" if column.nullable && column.kind != Type::Text => Ok(Typed::Null),
            text => Typed::of_text(text, &column.kind).map(Typed::into_owned),
        };
        value.map_err(|what| format!("key column {}: {what}", quoted(&column.name)))
    };
    let typed = in_columns.iter().zip(columns).map(value).collect::<Result<Vec<_>, _>>()?;
    format.encode_key(&typed, out).map_err(|error| error.to_string())?;
    for number in number {
        let number: u64 = number
            .parse()
            .map_err(|_| format!("{} is no number of a row, from 1", quoted(number)))?;
        number.encode_to(out);
    }
    Ok(())
}

impl KeyColumn {
    fn encode(&self, text: &str, out: &mut Vec<u8>) -> Result<(), String> {
        match self.kind {
            ColumnType::Int => match text.parse::<i64>() {
                Ok(number) => number.encode_to(out),
                Err(_) => return Err(self.refusal(text)),
            },
            ColumnType::Float => match text.parse::<f64>() {
                Ok(number) => number.encode_to(out),
                Err(_) => return Err(self.refusal(text)),
            },
            ColumnType::Text => text.encode_to(out),
        }
        Ok(())
    }

    fn refusal(&self, text: &str) -> String {
        let name = quoted(&self.name);
        let what =
            if text.is_empty() { "is empty".to_owned() } else { format!("is {}", quoted(text)) };
        let kind = match self.kind {
            ColumnType::Int => "a whole number of 64 bits",
            ColumnType::Float => "a number",
            ColumnType::Text => "text",
        };
        format!("key column {name} {what}, not {kind}")
    }
}

/// A member of an object as a value of a key, or why it is none.
fn text_of(value: Option<&Value>) -> Result<Cow<'_, str>, &'static str> {
    match value {
        Some(Value::String(text)) => Ok(Cow::Borrowed(text)),
        Some(Value::Number(number)) => Ok(Cow::Owned(number.to_string())),
        Some(Value::Bool(value)) => Ok(Cow::Borrowed(if *value { "true" } else { "false" })),
        Some(Value::Null) => Err("is null"),
        Some(Value::Array(_)) => Err("is an array"),
        Some(Value::Object(_)) => Err("is an object"),
        None => Err("is missing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::key_spec::split_list;

    fn typed(columns: &[(&str, ColumnType)]) -> KeyColumns {
        let columns = columns.iter().enumerate();
        let columns = columns.map(|(index, (name, kind))| KeyColumn {
            name: (*name).to_owned(),
            index,
            kind: *kind,
        });
        KeyColumns { columns: columns.collect(), origin: Origin::Columns }
    }

    #[test]
    fn prefixes_end_in_a_whole_value_or_the_beginning_of_a_text() {
        let columns = typed(&[("carrier", ColumnType::Text), ("flight", ColumnType::Int)]);
        let prefix = |text: &str| {
            let values = split_list(text).expect("a list");
            columns.encode_prefix(&values).expect("a prefix")
        };
        assert_eq!(prefix(""), b"");
        assert_eq!(prefix("U"), b"U");
        assert_eq!(prefix("UA,"), key::encode("UA"));
        assert_eq!(prefix("UA,15"), key::encode(&("UA", 15_i64)));
        assert_eq!(prefix("UA,15,"), key::encode(&("UA", 15_i64)));
        for bad in ["UA,x", "UA,15,16", "UA,15,16,"] {
            let values = split_list(bad).expect("a list");
            let refused = columns.encode_prefix(&values);
            assert!(matches!(refused, Err(Failure::Usage(_))), "{bad}");
        }
    }

    #[test]
    fn members_of_objects_are_values_of_keys() {
        let columns = typed(&[("a", ColumnType::Text), ("b", ColumnType::Int)]);
        let keyed = |text: &str| {
            let object: Map<String, Value> = serde_json::from_str(text).expect("an object");
            let mut key = Vec::new();
            columns.encode_members(&object, &mut key).map(|()| key)
        };
        assert_eq!(keyed(r#"{"b": 5, "a": "x"}"#), Ok(key::encode(&("x", 5_i64))));
        assert_eq!(keyed(r#"{"a": true, "b": "5"}"#), Ok(key::encode(&("true", 5_i64))));
        for (text, says) in [
            (r#"{"a": "x"}"#, "key column `b` is missing"),
            (r#"{"a": null, "b": 1}"#, "key column `a` is null"),
            (r#"{"a": [1], "b": 1}"#, "key column `a` is an array"),
            (r#"{"a": {}, "b": 1}"#, "key column `a` is an object"),
            (r#"{"a": "x", "b": 1.5}"#, "key column `b` is `1.5`, not a whole number of 64 bits"),
        ] {
            assert_eq!(keyed(text), Err(says.to_owned()), "{text}");
        }
    }

    #[test]
    fn keys_are_read_back() {
        let columns =
            typed(&[("a", ColumnType::Text), ("b", ColumnType::Int), ("c", ColumnType::Float)]);
        let values = ["x\0y".to_owned(), "-5".to_owned(), "2.5".to_owned()];
        let key = columns.encode_values(&values).expect("good values");
        assert_eq!(columns.decode(&key), Ok(values.to_vec()));
        assert!(columns.decode(&key[..5]).is_err());
    }
}

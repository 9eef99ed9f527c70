//! The argument of `--key`: columns by name and, where it matters, by type.

use std::fmt;
use std::str::FromStr;

use crate::args::quotes::ends_within_quotes;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{plural, quoted};

/// The type of a column, which decides how its values sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// A whole number of 64 bits.
    Int,
    /// A 64-bit float, in IEEE 754's total order.
    Float,
    /// UTF-8 bytes.
    Text,
}

impl ColumnType {
    /// Reads what `Display` writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "int" => Some(Self::Int),
            "float" => Some(Self::Float),
            "str" => Some(Self::Text),
            _ => None,
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Int => "int",
            Self::Float => "float",
            Self::Text => "str",
        })
    }
}

/// The argument of `--key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeySpec {
    /// The names, in the order in which they sort, and the types that were given.
    pub(crate) columns: Vec<(String, Option<ColumnType>)>,
}

impl KeySpec {
    /// Refuses more values than the key has columns, before a file is read for nothing.
    pub(crate) fn check_count(&self, values: &[String]) -> Outcome {
        let whole = values.len() - usize::from(values.last().is_some_and(String::is_empty));
        if whole > self.columns.len() {
            return Err(Failure::Usage(too_many(values.len(), self.columns.len())));
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }
}

impl FromStr for KeySpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut columns: Vec<(String, Option<ColumnType>)> = Vec::new();
        for part in split_list(text)? {
            let typed = part.rsplit_once(':');
            let typed = typed.and_then(|(name, kind)| Some((name, ColumnType::parse(kind)?)));
            let (name, kind) = match typed {
                Some((name, kind)) => (name, Some(kind)),
                None => (part.as_str(), None),
            };
            if name.is_empty() {
                return Err("a column name is empty".to_owned());
            }
            if columns.iter().any(|(other, _)| other == name) {
                return Err(format!("column {} is named twice", quoted(name)));
            }
            columns.push((name.to_owned(), kind));
        }
        Ok(Self { columns })
    }
}

/// Splits `a,b,"c,d"` as a line of CSV, so that values with commas can be given.
pub(crate) fn split_list(text: &str) -> Result<Vec<String>, String> {
    if ends_within_quotes(text) {
        return Err("a quote opens a value, and none closes it".to_owned());
    }
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let mut lines = reader.records();
    let first = lines.next().transpose().map_err(|error| error.to_string())?;
    if lines.next().is_some() {
        return Err("one line is expected".to_owned());
    }
    let fields = first.map(|record| record.iter().map(str::to_owned).collect());
    Ok(fields.unwrap_or_else(|| vec![String::new()]))
}

/// The refusal of more values than the key has columns.
pub(crate) fn too_many(values: usize, columns: usize) -> String {
    let columns = plural(columns, "column");
    format!("{} given, the key has {columns}", plural(values, "value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_read() {
        let spec: KeySpec =
            r#"carrier:str,flight:int,"a,b",x:y,delay:float"#.parse().expect("good");
        let expected = [
            ("carrier", Some(ColumnType::Text)),
            ("flight", Some(ColumnType::Int)),
            ("a,b", None),
            ("x:y", None),
            ("delay", Some(ColumnType::Float)),
        ];
        assert_eq!(spec.columns, expected.map(|(name, kind)| (name.to_owned(), kind)));
        for (bad, why) in [
            ("", "a column name is empty"),
            ("a,,b", "a column name is empty"),
            (":int", "a column name is empty"),
            ("a,a:int", "column `a` is named twice"),
            ("a\nb", "one line is expected"),
            ("a,\"b", "a quote opens a value, and none closes it"),
        ] {
            assert_eq!(bad.parse::<KeySpec>(), Err(why.to_owned()), "{bad:?}");
        }
    }
}

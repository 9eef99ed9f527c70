//! How the columns of files of text are read: their types, as arguments have them (`delay:i16, price:decimal(10,2)`), what
//! stands for a missing value, and what between two.

use std::str::FromStr;

use sapwood::schema::{Schema, Type};

/// How columns of CSV and JSON are read.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TextColumns {
    /// Types of columns, instead of those that all their values have: `flight:u16, price:decimal(10,2)`
    ///
    /// bool, i8 to i128, u8 to u128, f32, f64, decimal(DIGITS,SCALE), date, timestamp(s|ms|us|ns), text, bytes, and arrays
    /// as [f32; 4]. A row with a value of another type is malformed.
    #[arg(long, value_name = "COLUMN:TYPE,...")]
    pub(crate) types: Option<Types>,

    /// The text that stands for a missing value, beside the empty one [default: NA, if a column of numbers has
    /// it]
    #[arg(long, value_name = "TEXT")]
    pub(crate) na: Option<String>,

    /// The delimiter of CSV [default: the one that the first lines have]
    #[arg(long, value_name = "SIGN", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
}

impl TextColumns {
    /// The types that were said.
    pub(crate) fn said(&self) -> &[(String, Type)] {
        self.types.as_ref().map_or(&[], |types| &types.0)
    }
}

/// Reads a delimiter of CSV.
fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" | "\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [sign] if sign.is_ascii_punctuation() => Ok(*sign),
            _ => Err("one sign is expected, or `tab`".to_owned()),
        },
    }
}

/// Columns and their types, in the text form of schemas.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Types(pub(crate) Vec<(String, Type)>);

impl FromStr for Types {
    type Err = String;

    fn from_str(text: &str) -> Result<Types, String> {
        let schema: Schema =
            text.parse().map_err(|error: sapwood::schema::Error| error.to_string())?;
        if !schema.key_columns().is_empty() {
            return Err("columns and types are expected, without a key".to_owned());
        }
        let columns = schema.columns().iter();
        Ok(Types(columns.map(|column| (column.name.clone(), column.kind.clone())).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_of_types_are_no_ends() {
        let types: Types = "a:decimal(10,2), \"b c\":[f32; 2]".parse().expect("types");
        let expected = [("a", "decimal(10,2)"), ("b c", "[f32; 2]")];
        let expected =
            expected.map(|(name, kind)| (name.to_owned(), kind.parse().expect("a type")));
        assert_eq!(types.0, expected);
        for bad in ["", "a", "a:number", "a:i8, key(a)", "a:i8, a:i16"] {
            assert!(bad.parse::<Types>().is_err(), "{bad}");
        }
    }
}

//! Types of columns, as arguments have them: `delay:i16, price:decimal(10,2)`.

use std::str::FromStr;

use sapwood::schema::{Schema, Type};

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

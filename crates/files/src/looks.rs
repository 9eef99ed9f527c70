//! What is known of the columns of a file, and the types that they have.

use sapwood_schema::{Inference, SourceColumn, Type};

use crate::members::{Json, items};
use crate::names::no_column;
use crate::options::ReadOptions;

/// Items that an array has at most.
const ITEMS_MAX: u16 = 4_096;

/// The text that many programs write for a missing value, and that is a word as well.
pub(crate) const NA: &str = "NA";

/// What the values of a column are that were looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Those that are no arrays.
    pub(crate) values: Values,
    /// The items of arrays of JSON.
    pub(crate) items: Values,
    /// How many items each array has.
    len: Option<u16>,
    /// Whether a field is `NA`, which is a missing value or a text.
    has_na: bool,
}

/// What values are, of which none is an array.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Values {
    /// Fields of CSV, and numbers of JSON: what they say tells their type.
    plain: Inference,
    /// Strings of JSON.
    strings: Inference,
    /// Whether there are truth values of JSON.
    has_truth: bool,
    /// Whether values are text, whatever they look like.
    is_text: bool,
}

impl Values {
    /// Takes a value of JSON into account; null tells nothing.
    fn json(&mut self, value: &Json<'_>) {
        match value {
            Json::Null => {}
            Json::Bool(_) => self.has_truth = true,
            Json::Number(text) => self.plain.look(text),
            Json::String(text) if text.is_empty() => self.is_text = true,
            Json::String(text) => self.strings.look(text),
            Json::Array(_) | Json::Object(_) | Json::Nested(_) => self.is_text = true,
        }
    }

    fn merge(&mut self, other: &Values) {
        self.plain.merge(&other.plain);
        self.strings.merge(&other.strings);
        self.has_truth |= other.has_truth;
        self.is_text |= other.is_text;
    }

    /// The type of all values.
    fn kind(&self) -> Type {
        let none = Inference::default();
        match (self.plain != none, self.strings != none, self.has_truth) {
            _ if self.is_text => Type::Text,
            (true, false, false) => self.plain.kind(),
            (false, false, true) => Type::Bool,
            (false, true, false) => match self.strings.kind() {
                kind @ (Type::Date | Type::Timestamp(_)) => kind,
                _ => Type::Text,
            },
            _ => Type::Text,
        }
    }

    /// Whether a number is of the type that those before have.
    pub(crate) fn holds(&self, text: &str, kind: &Type) -> bool {
        let mut with = *self;
        with.plain.look(text);
        with.kind() == *kind
    }
}

impl Look {
    /// Takes a field of CSV into account; missing ones tell nothing.
    #[inline]
    pub(crate) fn field(&mut self, text: &str, missing: Option<&str>) {
        match missing {
            _ if text.is_empty() => {}
            Some(missing) if text == missing => {}
            None if text == NA => self.has_na = true,
            _ => self.values.plain.look(text),
        }
    }

    /// Takes a value of JSON into account.
    pub(crate) fn json(&mut self, value: &Json<'_>) {
        let Json::Array(text) = value else { return self.values.json(value) };
        let items = items(text).unwrap_or_default();
        let has_null = items.contains(&Json::Null);
        let len = u16::try_from(items.len()).ok().filter(|len| (1..=ITEMS_MAX).contains(len));
        match (len, self.len) {
            (Some(len), before) if !has_null && before.is_none_or(|before| before == len) => {
                self.len = Some(len);
                items.iter().for_each(|item| self.items.json(item));
            }
            _ => self.text(),
        }
    }

    /// From here on all values are text.
    pub(crate) fn text(&mut self) {
        self.values.is_text = true;
    }

    pub(crate) fn merge(&mut self, other: &Look) {
        self.values.merge(&other.values);
        self.items.merge(&other.items);
        if self.len.is_some() && other.len.is_some() && self.len != other.len {
            self.text();
        }
        self.len = self.len.or(other.len);
        self.has_na |= other.has_na;
    }

    /// The type of all values, where `NA` is missing.
    fn kind_without_na(&self) -> Type {
        let Some(len) = self.len else { return self.values.kind() };
        let item = self.items.kind();
        match self.values == Values::default() && item.width().is_some() {
            true => Type::Array(Box::new(item), len),
            false => Type::Text,
        }
    }

    /// The type of all values.
    pub(crate) fn kind(&self, is_na_missing: bool) -> Type {
        match self.has_na && !is_na_missing {
            true => Type::Text,
            false => self.kind_without_na(),
        }
    }

    /// The narrowest type that stores values of this type.
    pub(crate) fn stored_kind(&self, kind: &Type) -> Type {
        match kind {
            Type::Int(64) => self.values.plain.stored_kind(),
            kind => kind.clone(),
        }
    }

    /// Whether a field is of the type that those before have.
    pub(crate) fn holds(&self, text: &str, kind: &Type) -> bool {
        let mut with = *self;
        with.values.plain.look(text);
        with.kind_without_na() == *kind
    }
}

/// The columns of a file, with their types.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) columns: Vec<SourceColumn>,
    /// For each column, whether its type was said, so that it stays.
    pub(crate) is_said: Vec<bool>,
    /// The text that stands for a missing value.
    pub(crate) missing: Option<String>,
    pub(crate) notices: Vec<String>,
}

impl Typed {
    /// The types that were said, and those that looks tell.
    pub(crate) fn of(
        names: &[String],
        looks: &[Look],
        options: &ReadOptions,
    ) -> Result<Typed, String> {
        for (name, kind) in &options.types {
            if !names.contains(name) {
                return Err(format!(
                    "{} (it was to be {kind})",
                    no_column(name, "the file", names.iter())
                ));
            }
        }
        let said = |name: &String| {
            options.types.iter().find(|(column, _)| column == name).map(|(_, kind)| kind.clone())
        };
        let is_key = |name: &String| options.key.contains(name);
        let is_na = names.iter().zip(looks).any(|(name, look)| {
            look.has_na
                && !is_key(name)
                && said(name).unwrap_or_else(|| look.kind_without_na()) != Type::Text
        });
        let missing = match &options.na {
            Some(text) => Some(text.clone()),
            None => is_na.then(|| NA.to_owned()),
        };
        let mut notices = Vec::new();
        if options.na.is_none() && is_na {
            notices.push(format!("{NA} stands for a missing value in all columns"));
        }
        let columns = names.iter().zip(looks).map(|(name, look)| SourceColumn {
            name: name.clone(),
            kind: said(name).unwrap_or_else(|| look.kind(is_na && !is_key(name))),
            nullable: true,
        });
        let columns = columns.collect();
        let is_said = names.iter().map(|name| said(name).is_some()).collect();
        Ok(Typed { columns, is_said, missing, notices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn na_is_missing_in_every_column_or_in_none() {
        let look = |texts: &[&str]| {
            let mut look = Look::default();
            texts.iter().for_each(|text| look.field(text, None));
            look
        };
        let names = ["a".to_owned(), "b".to_owned()];
        let kinds = |looks: &[Look]| {
            let typed = Typed::of(&names, looks, &ReadOptions::default()).expect("columns");
            let kinds: Vec<String> =
                typed.columns.iter().map(|column| column.kind.to_string()).collect();
            (kinds.join(" "), typed.missing.is_some(), typed.notices.len())
        };
        assert_eq!(kinds(&[look(&["1", "NA"]), look(&["NA", "x"])]), ("i64 text".into(), true, 1));
        assert_eq!(kinds(&[look(&["1"]), look(&["NA", "x"])]), ("i64 text".into(), false, 0));
        assert_eq!(kinds(&[look(&["NA"]), look(&[""])]), ("text text".into(), false, 0));
    }

    #[test]
    fn types_that_are_said_need_their_column() {
        let options = ReadOptions { types: vec![("c".into(), Type::Date)], ..Default::default() };
        let what = Typed::of(&["a".to_owned()], &[Look::default()], &options);
        let what = what.expect_err("there is none");
        assert_eq!(what, "no column `c`; the file has `a` (it was to be date)");
    }
}

//! The text form of groups.

use std::fmt;

use super::{Group, GroupBy, Input as Read};
use crate::error::SyntaxError;
use crate::question::layout;
use crate::question::syntax::{self, Cursor, Parsed, expect, fail, found, keyword, symbol};
use crate::value::{Value, literal};

pub(super) fn list(text: &str) -> Result<Vec<Group>, SyntaxError> {
    syntax::whole("list of groups", text, |input| syntax::list(input, group))
}

fn group(input: &mut Cursor<'_>) -> Parsed<Group> {
    let group = Group::by(by(input)?);
    match alias(input)? {
        Some(name) => Ok(group.named(name)),
        None => Ok(group),
    }
}

/// The name behind `as`, if it comes next.
pub(crate) fn alias(input: &mut Cursor<'_>) -> Parsed<Option<String>> {
    match keyword(input, "as")? {
        true => syntax::expect_name(input, "the column").map(Some),
        false => Ok(None),
    }
}

fn by(input: &mut Cursor<'_>) -> Parsed<GroupBy> {
    if let Some(by) = call(input)? {
        return Ok(by);
    }
    if let Read::Field(name) = read(input)? {
        return match symbol(input, ":")? {
            true => Ok(GroupBy::Field(Box::new(layout::body(input, name)?))),
            false => Ok(GroupBy::Input(Read::Field(name))),
        };
    }
    Ok(GroupBy::Input(Read::Key))
}

/// `bucket(...)` or `classes(...)`, if one comes next.
pub(crate) fn call(input: &mut Cursor<'_>) -> Parsed<Option<GroupBy>> {
    syntax::try_take(input, |input| {
        let word = syntax::word(input)?;
        if !symbol(input, "(")? {
            return Ok(None);
        }
        let by = match word {
            Some("bucket") => {
                let of = read(input)?;
                expect(input, ",")?;
                let width = whole(input)?;
                let origin = if symbol(input, ",")? { whole(input)? } else { 0 };
                GroupBy::Bucket { input: of, width, origin }
            }
            Some("classes") => {
                let of = read(input)?;
                expect(input, ",")?;
                let bounds = syntax::list(input, |input| match syntax::number(input)? {
                    Some(bound) => Ok(bound),
                    None => fail(input, format!("a number is expected, and {}", found(input))),
                })?;
                GroupBy::Classes { input: of, bounds }
            }
            _ => return Ok(None),
        };
        expect(input, ")")?;
        Ok(Some(by))
    })
}

fn whole(input: &mut Cursor<'_>) -> Parsed<i128> {
    match syntax::number(input)? {
        Some(Value::Int(number)) => Ok(number),
        _ => fail(input, "a whole number is expected, in the unit of the field"),
    }
}

/// A field or `key`, which must come next.
pub(crate) fn read(input: &mut Cursor<'_>) -> Parsed<Read> {
    match keyword(input, "key")? {
        true => Ok(Read::Key),
        false => syntax::expect_name(input, "a field").map(Read::Field),
    }
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Read::Key => f.write_str("key"),
            Read::Field(name) => f.write_str(&syntax::quoted_name(name)),
        }
    }
}

/// In the form that is read.
impl fmt::Display for GroupBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupBy::Input(input) => input.fmt(f),
            GroupBy::Field(field) => field.fmt(f),
            GroupBy::Bucket { input, width, origin: 0 } => write!(f, "bucket({input}, {width})"),
            GroupBy::Bucket { input, width, origin } => {
                write!(f, "bucket({input}, {width}, {origin})")
            }
            GroupBy::Classes { input, bounds } => {
                let bounds: Vec<_> = bounds.iter().map(literal).collect();
                write!(f, "classes({input}, {})", bounds.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (text, name) in [
            ("carrier", "carrier"),
            ("key", "key"),
            ("`a b`", "a b"),
            ("bucket(time, 3600)", "bucket(time, 3600)"),
            ("bucket(time, 3600, -5)", "bucket(time, 3600, -5)"),
            ("classes(delay, -1.5, 0, 60)", "classes(delay, -1.5, 0, 60)"),
            ("day:key.bytes2@4", "day"),
        ] {
            let groups = Group::list(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((groups[0].by.to_string().as_str(), groups[0].name.as_str()), (text, name));
        }
        let named = Group::list("bucket(t, 60) as minute").expect("a group");
        assert_eq!(named, [Group::bucket("t", 60, 0).named("minute")]);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, at, says) in [
            ("", 0, "the name of a field"),
            ("a,", 2, "the name of a field"),
            ("bucket(t)", 8, "`,` is expected"),
            ("bucket(t, 1h)", 11, "`)` is expected"),
            ("bucket(t, 1.5)", 13, "a whole number"),
            ("classes(t, x)", 11, "a number is expected"),
            ("a as", 4, "the name of the column"),
            ("day:key.", 8, "a number such as"),
        ] {
            let error = Group::list(text).expect_err(text);
            assert_eq!(error.offset, at, "{text}: {error}");
            assert!(error.what.contains(says), "{text}: {error}");
        }
    }
}

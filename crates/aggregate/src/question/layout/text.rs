//! The text form of a layout.

use std::fmt;
use std::str::FromStr;

use super::document::{Path, Step};
use super::tuple::{Component, Follow, Tuple};
use super::{Field, Layout, Part, Place, Read};
use crate::error::SyntaxError;
use crate::question::syntax::{
    self, Cursor, Parsed, expect, fail, fail_at, found, index, keyword, symbol,
};
use crate::value::literal;
use crate::value::number::Number;

impl FromStr for Layout {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Layout, SyntaxError> {
        syntax::whole("layout", text, |input| {
            let begin = syntax::offset(input);
            let groups = syntax::list(input, |input| match keyword(input, "key")? {
                true => key_fields(input),
                false => field(input).map(|field| vec![field]),
            })?;
            Layout::new(groups.concat()).or_else(|error| fail_at(begin, error.to_string()))
        })
    }
}

impl FromStr for Field {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Field, SyntaxError> {
        syntax::whole("field", text, |input| {
            let begin = syntax::offset(input);
            let field = field(input)?;
            field.check().or_else(|error| fail_at(begin, error.to_string()))?;
            Ok(field)
        })
    }
}

/// `(carrier:str, flight:u16)` behind `key`.
fn key_fields(input: &mut Cursor<'_>) -> Parsed<Vec<Field>> {
    let begin = syntax::offset(input);
    let (named, follow) = components(input, |input| {
        let name = syntax::expect_name(input, "a component, or _ to skip one,")?;
        expect(input, ":")?;
        Ok((name, component(input)?))
    })?;
    let (names, components): (Vec<String>, Vec<Component>) = named.into_iter().unzip();
    let named = names.into_iter().enumerate().filter(|(_, name)| name != "_");
    let field = |(index, name)| {
        let read = Read::Tuple(tuple(begin, follow, components.clone(), index)?);
        Ok(Field { name, place: Place::Key, part: Part::From(0), read, absent: None })
    };
    named.map(field).collect()
}

/// Components in parentheses, and `..` behind them where bytes may follow.
fn components<T>(
    input: &mut Cursor<'_>,
    mut component: impl FnMut(&mut Cursor<'_>) -> Parsed<T>,
) -> Parsed<(Vec<T>, Follow)> {
    expect(input, "(")?;
    let mut follow = Follow::Nothing;
    let components = syntax::list(input, |input| match follow {
        Follow::Anything => fail(input, "`..` stands behind the last component"),
        Follow::Nothing if symbol(input, "..")? => {
            follow = Follow::Anything;
            Ok(None)
        }
        Follow::Nothing => component(input).map(Some),
    })?;
    expect(input, ")")?;
    Ok((components.into_iter().flatten().collect(), follow))
}

fn tuple(begin: usize, follow: Follow, components: Vec<Component>, index: usize) -> Parsed<Tuple> {
    let tuple = Tuple::followed_by(follow, components, index);
    tuple.or_else(|error| fail_at(begin, error.to_string()))
}

/// `(str,u16)[0]` behind `tuple`. Without an index the last one is read, and any bytes may follow:
/// tables in directories have that form in their stored fields.
fn tuple_read(input: &mut Cursor<'_>) -> Parsed<Tuple> {
    let begin = syntax::offset(input);
    let (components, follow) = components(input, component)?;
    if !symbol(input, "[")? {
        let last = components.len().saturating_sub(1);
        return tuple(begin, Follow::Anything, components, last);
    }
    let index = index(input, "the number of a component")?;
    expect(input, "]")?;
    tuple(begin, follow, components, index)
}

fn field(input: &mut Cursor<'_>) -> Parsed<Field> {
    let name = syntax::expect_name(input, "a field")?;
    expect(input, ":")?;
    body(input, name)
}

/// What stands behind a field's name.
pub(crate) fn body(input: &mut Cursor<'_>, name: String) -> Parsed<Field> {
    let place = place(input)?;
    let part = part(input)?;
    let read = read(input)?;
    let at = syntax::offset(input);
    let offset = match symbol(input, "@")? {
        true => Some(index(input, "the offset in bytes")?),
        false => None,
    };
    let part = match (part, offset) {
        (None, offset) => Part::From(offset.unwrap_or(0)),
        (Some(part), None) => part,
        (Some(_), Some(_)) => {
            return fail_at(at, "parts are read from their beginning: leave the offset out");
        }
    };
    let absent = match symbol(input, "?")? {
        true => match syntax::value(input)? {
            Some(value) => Some(value),
            None => return fail(input, "the value that stands for missing is expected behind `?`"),
        },
        false => None,
    };
    Ok(Field { name, place, part, read, absent })
}

fn place(input: &mut Cursor<'_>) -> Parsed<Place> {
    for (word, place) in [("key", Place::Key), ("value", Place::Value)] {
        if keyword(input, word)? {
            expect(input, ".")?;
            return Ok(place);
        }
    }
    Ok(Place::Value)
}

fn part(input: &mut Cursor<'_>) -> Parsed<Option<Part>> {
    let part = if keyword(input, "split")? {
        expect(input, "(")?;
        let Some(separator) = syntax::text(input)? else {
            return fail(input, "the separator is expected, in quotes: split(\"/\",1)");
        };
        expect(input, ",")?;
        let index = index(input, "the number of the part")?;
        Part::Split { separator, index }
    } else if keyword(input, "cell")? {
        expect(input, "(")?;
        Part::Cell(index(input, "the number of the cell")?)
    } else {
        return Ok(None);
    };
    expect(input, ")")?;
    expect(input, ".")?;
    Ok(Some(part))
}

fn read(input: &mut Cursor<'_>) -> Parsed<Read> {
    let begin = syntax::offset(input);
    let unknown = |input: &Cursor<'_>| {
        let next = "a number such as i64le, or bytes, text, decimal, json, msgpack or tuple";
        format!("{next} is expected, and {}", found(input))
    };
    let Some(word) = syntax::next_word(input)? else {
        let what = unknown(input);
        return fail(input, what);
    };
    let width = |prefix: &str| word.strip_prefix(prefix).map(|digits| (digits, digits.parse()));
    let read = match word {
        "decimal" => Read::Decimal,
        "tuple" => {
            syntax::word(input)?;
            return tuple_read(input).map(Read::Tuple);
        }
        "json" | "msgpack" => {
            syntax::word(input)?;
            expect(input, "(")?;
            let read = match word {
                "json" => Read::Json(path(input)?),
                _ => Read::MessagePack(path(input)?),
            };
            expect(input, ")")?;
            return Ok(read);
        }
        _ => match (width("bytes"), width("text")) {
            (Some(("", _)), _) => Read::Bytes(None),
            (_, Some(("", _))) => Read::Text(None),
            (Some((_, Ok(len))), _) => Read::Bytes(Some(len)),
            (_, Some((_, Ok(len)))) => Read::Text(Some(len)),
            _ => match Number::from_word(word) {
                Ok(number) => Read::Number(number),
                Err(what) if what.is_empty() => {
                    let what = unknown(input);
                    return fail(input, what);
                }
                Err(what) => return fail_at(begin, what),
            },
        },
    };
    syntax::word(input)?;
    Ok(read)
}

fn component(input: &mut Cursor<'_>) -> Parsed<Component> {
    let form = syntax::next_word(input)?.and_then(Component::from_word);
    let Some(form) = form else {
        let what = "the type of a component is expected, such as str, u16, i64, f64 or bool";
        return fail(input, format!("{what}, and {}", found(input)));
    };
    syntax::word(input)?;
    Ok(Component { form, optional: symbol(input, "?")? })
}

fn path(input: &mut Cursor<'_>) -> Parsed<Path> {
    expect(input, "$")?;
    let mut steps = Vec::new();
    loop {
        let begin = syntax::offset(input);
        if symbol(input, ".")? {
            match syntax::word(input)? {
                Some(name) => steps.push(Step::Member(name.to_owned())),
                None => {
                    return fail(input, "a member's name is expected; write others as [\"a b\"]");
                }
            }
        } else if symbol(input, "[")? {
            steps.push(match syntax::text(input)? {
                Some(name) => match String::from_utf8(name) {
                    Ok(name) => Step::Member(name),
                    Err(_) => return fail_at(begin, "a member's name is UTF-8"),
                },
                None => Step::Index(index(input, "a number, or a name in quotes,")?),
            });
            expect(input, "]")?;
        } else {
            return Ok(Path(steps));
        }
        if steps.len() > syntax::DEPTH_MAX {
            return fail_at(begin, format!("a path has at most {} steps", syntax::DEPTH_MAX));
        }
    }
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Read::Number(number) => number.fmt(f),
            Read::Bytes(None) => f.write_str("bytes"),
            Read::Bytes(Some(len)) => write!(f, "bytes{len}"),
            Read::Text(None) => f.write_str("text"),
            Read::Text(Some(len)) => write!(f, "text{len}"),
            Read::Decimal => f.write_str("decimal"),
            Read::Json(path) => write!(f, "json({path})"),
            Read::MessagePack(path) => write!(f, "msgpack({path})"),
            Read::Tuple(tuple) => tuple.fmt(f),
            Read::Row(column) => column.fmt(f),
        }
    }
}

/// In the form that is read.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", syntax::quoted_name(&self.name))?;
        if self.place == Place::Key {
            f.write_str("key.")?;
        }
        match &self.part {
            Part::From(0) => write!(f, "{}", self.read)?,
            Part::From(offset) => write!(f, "{}@{offset}", self.read)?,
            Part::Cell(index) => write!(f, "cell({index}).{}", self.read)?,
            Part::Split { separator, index } => {
                let separator = literal(&separator[..].into());
                write!(f, "split({separator},{index}).{}", self.read)?;
            }
        }
        match &self.absent {
            None => Ok(()),
            Some(value) => write!(f, "?{}", literal(value)),
        }
    }
}

/// In the form that is read.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<_> = self.fields().iter().map(Field::to_string).collect();
        f.write_str(&fields.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "count:u32le",
            "count:u32le@4, delay:i16le@8?-32768",
            "a:key.bytes4@2, b:key.bytes, c:text6@14, d:text",
            "a:key.split(\"/\",1).decimal, b:split(x\"00\",0).text",
            "a:cell(5).decimal?\"NA\"",
            "a:json($.a.b[0][\"x y\"]), b:msgpack($)",
            "a:key.tuple(str,u16,i64?,f32,bool)",
            "a:key.tuple(str,u16)[1], b:key.tuple(str,u16,..)[0], c:key.tuple(bool)[0]?true",
            "`arr delay`:f64be, `key`:u8",
            "a:f64le?2.0, b:json($.b)?true",
        ] {
            let layout: Layout = text.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(layout.to_string(), text);
        }
    }

    #[test]
    fn a_key_names_its_components_at_once() {
        let layout: Layout = "key(a:str, _:u16, b:u8?)".parse().expect("a layout");
        assert_eq!(layout.to_string(), "a:key.tuple(str,u16,u8?)[0], b:key.tuple(str,u16,u8?)[2]");
        let layout: Layout = "key(a:str, b:u16, ..)".parse().expect("a layout");
        assert_eq!(layout.to_string(), "a:key.tuple(str,u16,..)[0], b:key.tuple(str,u16)");
        assert_eq!("n : value . u8 @ 3".parse::<Layout>().expect("a layout").to_string(), "n:u8@3");
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, at, says) in [
            ("", 0, "the name of a field"),
            ("a", 1, "`:` is expected, and the text ends"),
            ("a:", 2, "a number such as i64le"),
            ("a:int", 2, "`int` stands"),
            ("a:u32", 2, "`u32le` or `u32be`"),
            ("a:u8, b:u7le", 8, "no number has 7 bits"),
            ("a:u8@", 5, "offset in bytes"),
            ("a:u8 b:u8", 5, "nothing more"),
            ("a:u8, a:u8", 0, "two fields"),
            ("a:cell(1).u8@1", 12, "leave the offset out"),
            ("a:cell(x).u8", 7, "number of the cell"),
            ("a:split(1,1).u8", 8, "separator is expected"),
            ("a:split('',1).u8", 0, "separator has no bytes"),
            ("a:json(a)", 7, "`$` is expected"),
            ("a:json($.)", 9, "member's name"),
            ("a:json($[)", 9, "a number, or a name"),
            ("a:tuple(strr)", 8, "type of a component"),
            ("a:tuple(str)[1]", 7, "components 0 to 0"),
            ("a:tuple(..)", 7, "no components"),
            ("a:tuple(str)[x]", 13, "number of a component"),
            ("key(a:str, .., b:u8)", 15, "behind the last component"),
            ("key(a:str", 9, "`)` is expected"),
            ("key.a:str", 3, "`(` is expected"),
            ("a:u8?", 5, "stands for missing"),
            ("a:bytesx", 2, "`bytesx` stands"),
            ("a:u16le@99999999999999999999", 8, "offset in bytes"),
        ] {
            let error = text.parse::<Layout>().expect_err(text);
            assert_eq!(error.offset, at, "{text}: {error}");
            assert!(error.what.contains(says), "{text}: {error}");
        }
        let long = format!("a:json(${})", "[0]".repeat(65));
        assert!(long.parse::<Layout>().is_err());
    }
}

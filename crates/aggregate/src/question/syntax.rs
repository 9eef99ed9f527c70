//! The words of the text forms, and the places of mistakes.
//!
//! Layouts, predicates, groups, aggregates and orders have text forms, to be typed.
//! They share these words: names, numbers, texts, symbols. Each word eats the blanks behind it.

use std::borrow::Cow;

use winnow::Parser;
use winnow::combinator::{alt, opt, peek, repeat};
use winnow::error::{ErrMode, ParserError};
use winnow::stream::{LocatingSlice, Location, Stream};
use winnow::token::{literal, one_of, take_while};

use crate::error::SyntaxError;
use crate::value::{Float, Value};

pub(crate) type Cursor<'a> = LocatingSlice<&'a str>;
pub(crate) type Parsed<T> = Result<T, ErrMode<Complaint>>;

/// How deep predicates and paths may nest.
pub(crate) const DEPTH_MAX: usize = 64;

/// What is wrong, and where.
#[derive(Debug)]
pub(crate) struct Complaint {
    offset: usize,
    what: String,
}

impl<'a> ParserError<Cursor<'a>> for Complaint {
    type Inner = Self;

    fn from_input(input: &Cursor<'a>) -> Self {
        Complaint { offset: input.current_token_start(), what: String::new() }
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

/// Reads all of `text`.
pub(crate) fn whole<T>(
    form: &'static str,
    text: &str,
    mut parser: impl FnMut(&mut Cursor<'_>) -> Parsed<T>,
) -> Result<T, SyntaxError> {
    let mut input = Cursor::new(text);
    let result = blanks(&mut input).and_then(|()| parser(&mut input)).and_then(|parsed| {
        if input.is_empty() { Ok(parsed) } else { fail(&input, "nothing more is expected here") }
    });
    result.map_err(|error| {
        let complaint = match error {
            ErrMode::Backtrack(complaint) | ErrMode::Cut(complaint) => complaint,
            ErrMode::Incomplete(_) => unreachable!("the whole text is given"),
        };
        SyntaxError { form, text: text.to_owned(), offset: complaint.offset, what: complaint.what }
    })
}

/// Ends the parsing at the word that comes next.
pub(crate) fn fail<T>(input: &Cursor<'_>, what: impl Into<String>) -> Parsed<T> {
    fail_at(input.current_token_start(), what)
}

/// Ends the parsing at an earlier place.
pub(crate) fn fail_at<T>(offset: usize, what: impl Into<String>) -> Parsed<T> {
    Err(ErrMode::Cut(Complaint { offset, what: what.into() }))
}

pub(crate) fn offset(input: &Cursor<'_>) -> usize {
    input.current_token_start()
}

/// What comes next, for a message.
pub(crate) fn found(input: &Cursor<'_>) -> String {
    let rest: &str = input;
    match rest.chars().next() {
        None => "the text ends".to_owned(),
        Some(first) if first.is_alphanumeric() => {
            let word = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next();
            format!("`{}` stands", word.unwrap_or_default())
        }
        Some(first) => format!("`{first}` stands"),
    }
}

fn blanks(input: &mut Cursor<'_>) -> Parsed<()> {
    take_while(0.., char::is_whitespace).void().parse_next(input)
}

/// Takes `symbol` if it comes next.
pub(crate) fn symbol(input: &mut Cursor<'_>, symbol: &'static str) -> Parsed<bool> {
    let taken = opt(literal(symbol)).parse_next(input)?.is_some();
    if taken {
        blanks(input)?;
    }
    Ok(taken)
}

/// Takes `symbol`, which must come next.
pub(crate) fn expect(input: &mut Cursor<'_>, wanted: &'static str) -> Parsed<()> {
    match symbol(input, wanted)? {
        true => Ok(()),
        false => fail(input, format!("`{wanted}` is expected, and {}", found(input))),
    }
}

/// The identifier that comes next, if one does, without the blanks behind it.
fn bare<'a>(input: &mut Cursor<'a>) -> Parsed<&'a str> {
    let first = |c: char| c.is_alphabetic() || c == '_';
    let later = |c: char| c.is_alphanumeric() || c == '_';
    (one_of(first), take_while(0.., later)).take().parse_next(input)
}

/// Takes an identifier if one comes next.
pub(crate) fn word<'a>(input: &mut Cursor<'a>) -> Parsed<Option<&'a str>> {
    let word = opt(bare).parse_next(input)?;
    blanks(input)?;
    Ok(word)
}

/// The identifier that comes next, which stays.
pub(crate) fn next_word<'a>(input: &mut Cursor<'a>) -> Parsed<Option<&'a str>> {
    peek(opt(bare)).parse_next(input)
}

/// Takes `keyword`, in lower or upper case, if it comes next.
pub(crate) fn keyword(input: &mut Cursor<'_>, keyword: &str) -> Parsed<bool> {
    match next_word(input)? {
        Some(next) if next.eq_ignore_ascii_case(keyword) => word(input).map(|_| true),
        _ => Ok(false),
    }
}

/// Words that name no field unless they stand in backquotes.
pub(crate) const RESERVED: [&str; 16] = [
    "and", "or", "not", "in", "is", "missing", "null", "begins", "with", "true", "false", "key",
    "as", "by", "asc", "desc",
];

/// Takes a name if one comes next: an identifier, or anything in backquotes.
pub(crate) fn name(input: &mut Cursor<'_>) -> Parsed<Option<String>> {
    if input.starts_with('`') {
        let begin = offset(input);
        let quoted = ('`', take_while(1.., |c| c != '`'), '`');
        let Some((_, name, _)) = opt(quoted).parse_next(input)? else {
            return fail_at(begin, "the name in backquotes is empty, or does not end");
        };
        let name: &str = name;
        blanks(input)?;
        return Ok(Some(name.to_owned()));
    }
    match next_word(input)? {
        Some(next) if !RESERVED.iter().any(|word| next.eq_ignore_ascii_case(word)) => {
            Ok(word(input)?.map(str::to_owned))
        }
        _ => Ok(None),
    }
}

/// Writes a name so that [`name`] reads it.
pub(crate) fn quoted_name(name: &str) -> Cow<'_, str> {
    let mut input = Cursor::new(name);
    let bare = bare(&mut input).is_ok() && input.is_empty();
    let reserved = RESERVED.iter().any(|word| name.eq_ignore_ascii_case(word));
    if bare && !reserved { Cow::Borrowed(name) } else { Cow::Owned(format!("`{name}`")) }
}

/// Takes a name, which must come next.
pub(crate) fn expect_name(input: &mut Cursor<'_>, of: &str) -> Parsed<String> {
    match name(input)? {
        Some(name) => Ok(name),
        None => {
            let found = found(input);
            fail(
                input,
                format!(
                    "the name of {of} is expected, and {found}; write names that are not plain words in backquotes"
                ),
            )
        }
    }
}

/// Takes a whole number from 0, which must come next.
pub(crate) fn index(input: &mut Cursor<'_>, of: &str) -> Parsed<usize> {
    let begin = offset(input);
    let digits: &str = take_while(0.., |c: char| c.is_ascii_digit()).parse_next(input)?;
    blanks(input)?;
    match digits.parse() {
        Ok(index) => Ok(index),
        Err(_) => fail_at(begin, format!("{of} is expected here, a whole number from 0")),
    }
}

/// Takes a number if one comes next.
pub(crate) fn number(input: &mut Cursor<'_>) -> Parsed<Option<Value<'static>>> {
    let begin = offset(input);
    let digits = || take_while(1.., |c: char| c.is_ascii_digit());
    let fraction = ('.', digits());
    let exponent = (one_of(['e', 'E']), opt(one_of(['+', '-'])), digits());
    let form = (opt('-'), digits(), opt(fraction), opt(exponent));
    let Some(text) = opt(form.take()).parse_next(input)? else {
        return Ok(None);
    };
    let text: &str = text;
    blanks(input)?;
    if text.contains(['.', 'e', 'E']) {
        let value: f64 = text.parse().expect("digits, a point and an exponent are a float");
        if value.is_infinite() {
            return fail_at(begin, "this number is too large for a float of 64 bits");
        }
        return Ok(Some(Value::Float(Float::new(value).expect("digits are not NaN"))));
    }
    match text.parse() {
        Ok(value) => Ok(Some(Value::Int(value))),
        Err(_) => fail_at(begin, "this whole number has more than 128 bits"),
    }
}

/// Takes a text in single or double quotes, or bytes as `x"00ff"`, if one comes next.
pub(crate) fn text(input: &mut Cursor<'_>) -> Parsed<Option<Vec<u8>>> {
    let begin = offset(input);
    if let Some(quote) =
        opt(("x", one_of(['"', '\''])).map(|(_, quote)| quote)).parse_next(input)?
    {
        let digits: &str = take_while(0.., |c: char| c.is_ascii_hexdigit()).parse_next(input)?;
        let closed = opt(one_of(quote)).parse_next(input)?.is_some();
        blanks(input)?;
        if !closed || !digits.len().is_multiple_of(2) {
            return fail_at(begin, "bytes are written as pairs of hexadecimal digits: x\"00ff\"");
        }
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16);
        let bytes: Result<_, _> = (0..digits.len()).step_by(2).map(byte).collect();
        return Ok(Some(bytes.expect("hexadecimal digits")));
    }
    let Some(quote) = opt(one_of(['"', '\''])).parse_next(input)? else {
        return Ok(None);
    };
    let plain = take_while(1.., move |c| c != quote && c != '\\').map(str::to_owned);
    let escape = ('\\', one_of(['\\', '"', '\''])).map(|(_, c): (_, char)| c.to_string());
    let parts: Vec<String> = repeat(0.., alt((plain, escape))).parse_next(input)?;
    if opt(one_of(quote)).parse_next(input)?.is_none() {
        return match input.starts_with('\\') {
            true => fail(
                input,
                "after a backslash, \\, \" or ' is expected; write other bytes as x\"00ff\"",
            ),
            false => fail_at(begin, format!("this text does not end: close it with {quote}")),
        };
    }
    blanks(input)?;
    Ok(Some(parts.concat().into_bytes()))
}

/// Takes a value that is written out, if one comes next.
pub(crate) fn value(input: &mut Cursor<'_>) -> Parsed<Option<Value<'static>>> {
    for (word, value) in [("true", true), ("false", false)] {
        if keyword(input, word)? {
            return Ok(Some(Value::Bool(value)));
        }
    }
    if let Some(bytes) = text(input)? {
        return Ok(Some(Value::Bytes(Cow::Owned(bytes))));
    }
    number(input)
}

/// Takes one or more, with commas between.
pub(crate) fn list<T>(
    input: &mut Cursor<'_>,
    mut item: impl FnMut(&mut Cursor<'_>) -> Parsed<T>,
) -> Parsed<Vec<T>> {
    let mut items = vec![item(input)?];
    while symbol(input, ",")? {
        items.push(item(input)?);
    }
    Ok(items)
}

/// Goes back to where `attempt` began unless it took something.
pub(crate) fn try_take<T>(
    input: &mut Cursor<'_>,
    attempt: impl FnOnce(&mut Cursor<'_>) -> Parsed<Option<T>>,
) -> Parsed<Option<T>> {
    let begin = input.checkpoint();
    let taken = attempt(input)?;
    if taken.is_none() {
        input.reset(&begin);
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<T: std::fmt::Debug>(parsed: Result<T, SyntaxError>) -> (usize, String) {
        let error = parsed.expect_err("not to be read");
        (error.offset, error.what)
    }

    #[test]
    fn values_are_read_as_they_are_written() {
        for (text, expected) in [
            ("12", Value::Int(12)),
            ("-170141183460469231731687303715884105728", Value::Int(i128::MIN)),
            (" 1.5e3 ", Value::float(1500.0).expect("a number")),
            ("'it\\'s'", Value::from("it's")),
            ("\"\\\\\"", Value::from("\\")),
            ("x\"00FF\"", Value::from(&[0, 255][..])),
            ("TRUE", Value::Bool(true)),
        ] {
            let read = whole("value", text, value).expect("a value").expect("a value");
            assert_eq!(read, expected, "{text}");
            let again = crate::value::literal(&read);
            assert_eq!(whole("value", &again, value), Ok(Some(expected)), "{again}");
        }
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, at, says) in [
            ("1 2", 2, "nothing more"),
            ("'a", 0, "does not end"),
            ("'a\\n'", 2, "backslash"),
            ("x\"0\"", 0, "pairs"),
            ("1e999", 0, "too large"),
            ("999999999999999999999999999999999999999999", 0, "128 bits"),
        ] {
            let (offset, what) = error(whole("value", text, value));
            assert_eq!(offset, at, "{text}: {what}");
            assert!(what.contains(says), "{text}: {what}");
        }
    }

    #[test]
    fn names_that_are_not_plain_stand_in_backquotes() {
        for plain in ["delay", "_x1", "größe"] {
            assert_eq!(quoted_name(plain), plain);
        }
        for odd in ["arr delay", "1st", "and", "KEY", "a-b"] {
            assert_eq!(quoted_name(odd), format!("`{odd}`"));
            assert_eq!(whole("name", &quoted_name(odd), name), Ok(Some(odd.to_owned())));
        }
        assert_eq!(error(whole("name", "`a", name)).0, 0);
    }
}

//! Arguments that are keywords with their values.

use std::ops::Bound;

use crate::command::arguments::{integer, is};
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX};

/// The arguments behind those that have their place: keywords in any order, each with its values.
#[derive(Debug)]
pub(super) struct Words<'a> {
    rest: &'a [&'a [u8]],
    /// The keyword that was read last.
    keyword: &'a [u8],
}

impl<'a> Words<'a> {
    pub(super) fn new(rest: &'a [&'a [u8]]) -> Words<'a> {
        Words { rest, keyword: b"" }
    }

    /// The next keyword, if there is one.
    pub(super) fn keyword(&mut self) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_first()?;
        (self.keyword, self.rest) = (*first, rest);
        Some(*first)
    }

    /// The value of the keyword.
    pub(super) fn value(&mut self) -> Result<&'a [u8], Refusal> {
        let (first, rest) = self.rest.split_first().ok_or(SYNTAX)?;
        self.rest = rest;
        Ok(*first)
    }

    /// Its value, as text.
    pub(super) fn text(&mut self) -> Result<&'a str, Refusal> {
        let keyword = self.keyword;
        let value = self.value()?;
        let not_text = |_| Refusal::err(format!("{} is not UTF-8", shown(keyword)));
        std::str::from_utf8(value).map_err(not_text)
    }

    /// Its value, as a number that is not negative.
    pub(super) fn number(&mut self) -> Result<u64, Refusal> {
        u64::try_from(integer(self.value()?)?).map_err(|_| NOT_AN_INTEGER)
    }

    /// A number of values, and behind it `each` arguments for every one.
    pub(super) fn counted(&mut self, each: usize) -> Result<&'a [&'a [u8]], Refusal> {
        let count = usize::try_from(self.number()?).ok().and_then(|count| count.checked_mul(each));
        let count = count.filter(|count| *count <= self.rest.len()).ok_or_else(|| {
            let keyword = shown(self.keyword);
            Refusal::err(format!("Number of {keyword} can't be greater than number of args"))
        })?;
        let (values, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(values)
    }

    /// The refusal of the keyword that was read last.
    pub(super) fn unknown<T>(&self) -> Result<T, Refusal> {
        Err(Refusal::err(format!("syntax error: '{}' is no option here", shown(self.keyword))))
    }
}

/// An argument in a message.
pub(super) fn shown(argument: &[u8]) -> String {
    String::from_utf8_lossy(&argument[..argument.len().min(64)]).into_owned()
}

/// The word of a meaning that one of them has.
pub(super) fn word_of<T: PartialEq>(meaning: T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, known)| *known == meaning).map_or("", |(word, _)| word)
}

/// One of the words, by its place among them.
pub(super) fn one_of<T: Copy>(argument: &[u8], words: &[(&str, T)]) -> Result<T, Refusal> {
    let found = words.iter().find(|(word, _)| is(argument, word));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Refusal::err(format!("'{}' is none of: {}", shown(argument), words.join(", ")))
    })
}

/// Keys between two bounds.
pub(super) type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The keys between two bounds as `ZRANGEBYLEX` writes them: `[a` with the key, `(a` without it,
/// `-` below and `+` above all keys. `None` if no key lies between them.
pub(super) fn bounds<'a>(min: &'a [u8], max: &'a [u8]) -> Result<Option<Bounds<'a>>, Refusal> {
    const NO_BOUND: Refusal = Refusal::text("ERR min or max not valid string range item");
    let of = |bound: &'a [u8]| match bound {
        [b'[', key @ ..] => Ok(Bound::Included(key)),
        [b'(', key @ ..] => Ok(Bound::Excluded(key)),
        b"-" | b"+" => Ok(Bound::Unbounded),
        _ => Err(NO_BOUND),
    };
    let (begin, limit) = (of(min)?, of(max)?);
    let is_empty = match (begin, limit) {
        _ if min == b"+" || max == b"-" => true,
        (Bound::Included(begin), Bound::Included(limit)) => begin > limit,
        (
            Bound::Included(begin) | Bound::Excluded(begin),
            Bound::Included(limit) | Bound::Excluded(limit),
        ) => begin >= limit,
        _ => false,
    };
    Ok((!is_empty).then_some((begin, limit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_sorted_sets() {
        let all = (Bound::Unbounded, Bound::Unbounded);
        assert_eq!(bounds(b"-", b"+"), Ok(Some(all)));
        let some = (Bound::Included(&b"a"[..]), Bound::Excluded(&b"b("[..]));
        assert_eq!(bounds(b"[a", b"(b("), Ok(Some(some)));
        let one = (Bound::Included(&b"a"[..]), Bound::Included(&b"a"[..]));
        assert_eq!(bounds(b"[a", b"[a"), Ok(Some(one)));
        for (min, max) in [("+", "-"), ("+", "+"), ("-", "-"), ("[b", "[a"), ("(a", "[a")] {
            assert_eq!(bounds(min.as_bytes(), max.as_bytes()), Ok(None), "{min} {max}");
        }
        for (min, max) in [("a", "+"), ("-", ""), ("--", "+")] {
            assert!(bounds(min.as_bytes(), max.as_bytes()).is_err(), "{min} {max}");
        }
    }

    #[test]
    fn counts_are_checked_before_anything_is_taken() {
        let args: [&[u8]; 4] = [b"KEYS", b"2", b"a", b"b"];
        let mut words = Words::new(&args);
        assert_eq!(words.keyword(), Some(&b"KEYS"[..]));
        assert_eq!(words.counted(1), Ok(&args[2..]));
        assert_eq!(words.keyword(), None);
        for count in ["3", "-1", "9223372036854775807", "x"] {
            let args: [&[u8]; 4] = [b"KEYS", count.as_bytes(), b"a", b"b"];
            let mut words = Words::new(&args);
            words.keyword();
            assert!(words.counted(2).is_err(), "{count}");
        }
    }
}

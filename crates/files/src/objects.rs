//! The objects in a block of JSON, with their lines.

use memchr::memchr_iter;
use serde_json::value::RawValue;

use crate::blocks::Place;
use crate::content::Layout;
use crate::members::Members;

/// What is no object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) line: u64,
    pub(crate) what: String,
    /// Whether nothing behind it can be read.
    pub(crate) is_end: bool,
}

/// The objects of a block that are not yet shown.
pub(crate) struct Objects<'b> {
    block: &'b [u8],
    layout: Layout,
    at: usize,
    /// The line of a place that was passed.
    line: u64,
    line_at: usize,
    /// Whether a comma is expected before the next item.
    is_behind: bool,
    /// What is to come of the array's signs.
    array: Array,
    is_last: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Array {
    Unopened,
    Open,
    Closed,
}

impl<'b> Objects<'b> {
    pub(crate) fn of(block: &'b [u8], layout: Layout, place: Place) -> Objects<'b> {
        let is_first = place.number == 0;
        let array = if is_first { Array::Unopened } else { Array::Open };
        let (line, is_last) = (place.line, place.is_last);
        Objects { block, layout, at: 0, line, line_at: 0, is_behind: !is_first, array, is_last }
    }

    /// The line of an offset; offsets do not go down from call to call.
    fn line(&mut self, offset: usize) -> u64 {
        self.line += memchr_iter(b'\n', &self.block[self.line_at..offset]).count() as u64;
        self.line_at = offset;
        self.line
    }

    fn skip_blanks(&mut self) {
        let rest = &self.block[self.at..];
        self.at += rest.len() - rest.trim_ascii_start().len();
    }

    /// An error at the place, behind which nothing is shown.
    fn end(&mut self, what: impl Into<String>) -> Option<<Self as Iterator>::Item> {
        let line = self.line(self.at.min(self.block.len()));
        self.at = self.block.len();
        self.array = Array::Closed;
        Some(Err(Bad { line, what: what.into(), is_end: true }))
    }

    fn next_line(&mut self) -> Option<<Self as Iterator>::Item> {
        self.skip_blanks();
        if self.at == self.block.len() {
            return None;
        }
        let rest = &self.block[self.at..];
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = self.line(self.at);
        self.at += len;
        let bad = |what: String| Some(Err(Bad { line, what, is_end: false }));
        match serde_json::from_slice::<&RawValue>(&rest[..len]).and_then(members) {
            Ok(Ok(object)) => Some(Ok((line, object))),
            Ok(Err(what)) => bad(what),
            Err(error) => bad(format!("it is no JSON: {}", words(&error))),
        }
    }

    /// Passes over the signs of an array before its next item; whether there is one.
    fn next_item(&mut self) -> Result<bool, &'static str> {
        self.skip_blanks();
        if self.layout == Layout::Values {
            return Ok(self.at < self.block.len());
        }
        if self.array == Array::Unopened {
            if self.block.get(self.at) != Some(&b'[') {
                return Err("`[` is expected before the items of an array");
            }
            self.array = Array::Open;
            self.at += 1;
            self.skip_blanks();
        }
        match self.block.get(self.at) {
            None if self.array == Array::Open && self.is_last => {
                Err("`]` is expected behind the items of an array; is the file whole?")
            }
            None => Ok(false),
            Some(_) if self.array == Array::Closed => {
                Err("nothing is expected behind an array; are these several files?")
            }
            Some(b']') => {
                self.array = Array::Closed;
                self.at += 1;
                self.next_item()
            }
            Some(b',') if self.is_behind => {
                self.at += 1;
                self.skip_blanks();
                Ok(true)
            }
            Some(_) if self.is_behind => Err("`,` or `]` is expected behind an item"),
            Some(_) => Ok(true),
        }
    }
}

impl<'b> Iterator for Objects<'b> {
    type Item = Result<(u64, Members<'b>), Bad>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.layout == Layout::Lines {
            return self.next_line();
        }
        if self.array == Array::Closed {
            return None;
        }
        match self.next_item() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(what) => return self.end(what),
        }
        self.is_behind = true;
        let line = self.line(self.at);
        let rest = &self.block[self.at..];
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
        match values.next().map(|value| value.and_then(members)) {
            Some(Ok(Ok(object))) => {
                self.at += values.byte_offset();
                Some(Ok((line, object)))
            }
            Some(Ok(Err(what))) => {
                self.at += values.byte_offset();
                Some(Err(Bad { line, what, is_end: false }))
            }
            Some(Err(error)) => {
                let on = line + (error.line().max(1) - 1) as u64;
                let what = format!("it is no JSON: {}", words(&error));
                let end = self.end(what);
                end.map(|bad| bad.map_err(|bad| Bad { line: on, ..bad }))
            }
            None => self.end("an item is expected"),
        }
    }
}

/// An error without its place, which is that of a part.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// The members of a value, or what else it is.
fn members(value: &RawValue) -> serde_json::Result<Result<Members<'_>, String>> {
    let what = match value.get().as_bytes().first() {
        Some(b'{') => return Members::of(value.get()).map(Ok),
        Some(b'n') => "null",
        Some(b't' | b'f') => "a truth value",
        Some(b'"') => "a text",
        Some(b'[') => "an array",
        _ => "a number",
    };
    Ok(Err(format!("an object is expected, and this is {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, layout: Layout) -> Vec<String> {
        let place = Place { number: 0, line: 1, is_last: true };
        let objects = Objects::of(text.as_bytes(), layout, place);
        objects
            .map(|object| match object {
                Ok((line, object)) => {
                    let mut fields = Vec::new();
                    object.leaves(&mut |name, value| {
                        fields.push(format!("\"{name}\":{}", value.text()))
                    });
                    format!("{line} {{{}}}", fields.join(","))
                }
                Err(bad) => format!("{} {}", bad.line, bad.what),
            })
            .collect()
    }

    #[test]
    fn objects_are_shown_with_their_lines() {
        let array = |text| shown(text, Layout::Array);
        assert_eq!(array("[\n{\"a\":1},\n\n{}]\n"), ["2 {\"a\":1}", "4 {}"]);
        assert_eq!(array("[]"), [""; 0]);
        assert_eq!(array("[{},\n3]"), ["1 {}", "2 an object is expected, and this is a number"]);
        for (text, line, what) in [
            ("[{}\n", 2, "is the file whole"),
            ("[{}\n{}]", 2, "`,` or `]`"),
            ("[{}]\n{}", 2, "behind an array"),
            ("{}", 1, "`[` is expected"),
            ("[{},\n]", 2, "no JSON"),
            ("[{},\n{\n\"a\" 1}]", 3, "expected `:`"),
        ] {
            let last = array(text).pop().expect("an error");
            assert!(last.starts_with(&format!("{line} ")) && last.contains(what), "{last}");
        }
        assert_eq!(shown("{\n\"a\":1}\n{}", Layout::Values), ["1 {\"a\":1}", "3 {}"]);
        assert_eq!(
            shown("{}\n\n{\"a\"}\n[1]\n{}", Layout::Lines),
            [
                "1 {}",
                "3 it is no JSON: expected `:`",
                "4 an object is expected, and this is an array",
                "5 {}"
            ]
        );
    }
}

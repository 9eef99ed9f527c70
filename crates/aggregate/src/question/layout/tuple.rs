//! The components of an ordered key.
//!
//! `docs/design/keys.md` is the format; the tests here compare with its examples.

use std::borrow::Cow;
use std::fmt;

use crate::error::Why;
use crate::value::number::{Form, Number, Order};
use crate::value::{Kind, Value};

/// One component of an ordered key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// What it holds.
    pub form: ComponentForm,
    /// Whether it may be absent: `Option<K>`.
    pub optional: bool,
}

/// What a component of an ordered key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentForm {
    /// `u8` to `u128`, `i8` to `i128`, `f32` or `f64`; the number's order is [`Order::Ordered`].
    Number(Number),
    /// `bool`.
    Bool,
    /// `str` or bytes, with the mark that ends them.
    Text,
}

impl Component {
    pub(super) fn kind(&self) -> Kind {
        match self.form {
            ComponentForm::Number(_) => Kind::Number,
            ComponentForm::Bool => Kind::Bool,
            ComponentForm::Text => Kind::Bytes,
        }
    }

    pub(super) fn is_float(&self) -> bool {
        matches!(self.form, ComponentForm::Number(number) if number.form() == Form::Float)
    }

    /// Reads `u16`, `str?` without the mark behind it.
    pub(super) fn from_word(word: &str) -> Option<ComponentForm> {
        match word {
            "bool" => Some(ComponentForm::Bool),
            "str" | "bytes" => Some(ComponentForm::Text),
            _ => {
                let number = Number::from_word(&format!("{word}ord")).ok()?;
                Some(ComponentForm::Number(number))
            }
        }
    }

    /// Takes the component off the front of `bytes`: what it holds, and what lies behind it.
    fn take<'a>(&self, bytes: &'a [u8]) -> Option<(Result<Option<Value<'a>>, Why>, &'a [u8])> {
        let bytes = match (self.optional, bytes) {
            (false, _) => bytes,
            (true, [1, rest @ ..]) => return Some((Ok(None), rest)),
            (true, [2, rest @ ..]) => rest,
            (true, _) => return None,
        };
        match self.form {
            ComponentForm::Number(number) => {
                debug_assert!(number.order() != Order::Little, "components sort as bytes");
                let (own, rest) = bytes.split_at_checked(number.bytes())?;
                Some((number.read(own).map(Some), rest))
            }
            ComponentForm::Bool => match bytes {
                [flag @ (0 | 1), rest @ ..] => Some((Ok(Some(Value::Bool(*flag == 1))), rest)),
                _ => None,
            },
            ComponentForm::Text => {
                let (text, rest) = take_text(bytes)?;
                Some((Ok(Some(Value::Bytes(text))), rest))
            }
        }
    }
}

/// Up to the mark `00 01`; `00 FF` is a zero.
fn take_text(bytes: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let mut text = Cow::Borrowed(&[][..]);
    let mut rest = bytes;
    loop {
        let zero = rest.iter().position(|&byte| byte == 0)?;
        let (plain, mark) = rest.split_at(zero);
        if text.is_empty() {
            text = Cow::Borrowed(plain);
        } else {
            text.to_mut().extend_from_slice(plain);
        }
        match mark {
            [0, 1, behind @ ..] => return Some((text, behind)),
            [0, 0xFF, behind @ ..] => {
                text.to_mut().push(0);
                rest = behind;
            }
            _ => return None,
        }
    }
}

/// The last component of a tuple that begins at the first of `bytes`.
pub(super) fn read_last<'a>(
    components: &[Component],
    bytes: &'a [u8],
) -> Result<Option<Value<'a>>, Why> {
    let mut rest = bytes;
    let mut last = Ok(None);
    for (index, component) in components.iter().enumerate() {
        (last, rest) = component.take(rest).ok_or(Why::BadComponent { index })?;
    }
    last
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            ComponentForm::Number(number) => {
                f.write_str(number.to_string().trim_end_matches("ord"))?;
            }
            ComponentForm::Bool => f.write_str("bool")?,
            ComponentForm::Text => f.write_str("str")?,
        }
        f.write_str(if self.optional { "?" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the document's table of examples: what is encoded, and the bytes.
    fn examples() -> Vec<(String, Vec<u8>)> {
        let page = include_str!("../../../../../docs/design/keys.md");
        let table = page.split("<!-- examples").nth(1).expect("the mark before the table");
        let table = table.split("<!-- end -->").next().expect("the mark behind it");
        let rows = table.lines().filter_map(|line| {
            let cells: Vec<_> = line.split('`').collect();
            let [_, value, _, bytes, _] = cells[..] else { return None };
            let bytes = bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16));
            Some((value.to_owned(), bytes.collect::<Result<_, _>>().ok()?))
        });
        rows.collect()
    }

    fn component(word: &str) -> Component {
        let bare = word.trim_end_matches('?');
        let form = Component::from_word(bare).expect("a component");
        Component { form, optional: bare != word }
    }

    #[test]
    fn the_examples_of_the_document_are_read() {
        let mut read = 0;
        for (value, bytes) in examples() {
            let (word, expected) = match value.as_str() {
                "false" => ("bool", Ok(Some(Value::Bool(false)))),
                "true" => ("bool", Ok(Some(Value::Bool(true)))),
                "None::<u8>" => ("u8?", Ok(None)),
                "Some(5u8)" => ("u8?", Ok(Some(Value::Int(5)))),
                "NaN f32" => ("f32", Err(Why::Nan)),
                r#"("UA", 1545u16, 3u8)"# => {
                    let tuple = ["str", "u16", "u8"].map(component);
                    let parts = [Value::from("UA"), Value::from(1545), Value::from(3)];
                    for (at, part) in parts.into_iter().enumerate() {
                        assert_eq!(read_last(&tuple[..=at], &bytes), Ok(Some(part)));
                    }
                    read += 1;
                    continue;
                }
                text if text.starts_with('"') => {
                    let text = text.trim_matches('"').replace("\\0", "\0");
                    ("str", Ok(Some(Value::from(text.as_str()).into_owned())))
                }
                number => {
                    let split = number.find(['u', 'i', 'f']).filter(|&at| at > 0);
                    let split = match number.split_once(' ') {
                        Some((digits, _)) => digits.len(),
                        None => split.expect("digits, then a type"),
                    };
                    let (digits, word) = number.split_at(split);
                    let word = word.trim();
                    let value = match word.starts_with('f') {
                        true => Value::float(digits.parse().expect("a float")).expect("no NaN"),
                        false => Value::Int(digits.parse().expect("digits")),
                    };
                    assert_eq!(read_last(&[component(word)], &bytes), Ok(Some(value)), "{number}");
                    read += 1;
                    continue;
                }
            };
            assert_eq!(read_last(&[component(word)], &bytes), expected, "{value}");
            read += 1;
        }
        assert!(read > 20, "{read} examples");
    }

    #[test]
    fn bytes_that_are_no_key_are_refused() {
        let tuple = ["str", "u16"].map(component);
        for (bytes, index) in [
            (&b""[..], 0),
            (b"UA", 0),
            (b"UA\x00", 0),
            (b"UA\x00\x02", 0),
            (b"UA\x00\x01", 1),
            (b"UA\x00\x01\x05", 1),
        ] {
            assert_eq!(read_last(&tuple, bytes), Err(Why::BadComponent { index }), "{bytes:?}");
        }
        for (word, bytes) in [("bool", &[2][..]), ("u8?", &[3, 1]), ("u8?", &[])] {
            let expected = Err(Why::BadComponent { index: 0 });
            assert_eq!(read_last(&[component(word)], bytes), expected, "{word}");
        }
    }

    #[test]
    fn zeros_in_texts_are_kept() {
        let tuple = [component("str")];
        let bytes = b"\x00\xFFa\x00\xFF\x00\xFFb\x00\x01rest";
        assert_eq!(read_last(&tuple, bytes), Ok(Some("\0a\0\0b".into())));
    }
}

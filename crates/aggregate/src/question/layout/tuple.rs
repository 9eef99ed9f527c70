//! The components of an ordered key.
//!
//! `docs/design/keys.md` is the format; the tests here compare with its examples. Keys carry no marks
//! of their types, so what a key can tell is its length: a field compares the bytes that are left
//! behind its component with those that the components behind it take. That costs one comparison.

use std::borrow::Cow;
use std::fmt;

use crate::error::{QueryError, Result, Why};
use crate::value::number::{Form, Number, Order};
use crate::value::{Kind, Value};

/// One component of a tuple, and all that the tuple is declared to have.
///
/// # Mismatches
///
/// The bytes behind the component must be as many as the components behind it take, or at least as
/// many where one of them is a text or optional. So the last component is read only where the key ends
/// behind it. Two types of the same width are not told apart: the bytes of an `i32` that is declared as
/// `u32` are read as one.
///
/// ```
/// use sapwood::aggregate::{Component, ComponentForm, Tuple};
///
/// let number = |form: &str| Component {
///     form: ComponentForm::Number(form.parse().expect("a number")),
///     optional: false,
/// };
/// let components = [Component { form: ComponentForm::Text, optional: false }, number("u16ord")];
/// assert_eq!(Tuple::new(components, 0)?.to_string(), "tuple(str,u16)[0]");
/// assert_eq!(Tuple::open(components, 0)?.to_string(), "tuple(str,u16,..)[0]");
/// assert!(Tuple::new(components, 2).is_err());
/// # Ok::<(), sapwood::aggregate::QueryError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuple {
    components: Vec<Component>,
    /// Which of them is read.
    index: usize,
    behind: Behind,
}

/// The bytes behind the component that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behind {
    Exactly(usize),
    AtLeast { bytes: usize, may_follow: Follow },
}

/// Whether bytes may follow the last component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follow {
    Nothing,
    Anything,
}

impl Tuple {
    /// The component `index`, from 0, of a tuple that has these components and nothing more.
    ///
    /// # Errors
    /// [`QueryError::Query`] if there is no such component.
    pub fn new(components: impl Into<Vec<Component>>, index: usize) -> Result<Tuple> {
        Tuple::followed_by(Follow::Nothing, components.into(), index)
    }

    /// The component `index`, from 0, of a tuple that begins with these components; any bytes may
    /// follow.
    ///
    /// # Errors
    /// [`QueryError::Query`] if there is no such component.
    pub fn open(components: impl Into<Vec<Component>>, index: usize) -> Result<Tuple> {
        Tuple::followed_by(Follow::Anything, components.into(), index)
    }

    pub(super) fn followed_by(
        may_follow: Follow,
        components: Vec<Component>,
        index: usize,
    ) -> Result<Tuple> {
        let Some(behind) = components.get(index..).and_then(|own| own.get(1..)) else {
            let what = match components.len() {
                0 => "the tuple has no components: name those up to the one to be read".to_owned(),
                some => format!("the tuple has components 0 to {}, and no {index}", some - 1),
            };
            return Err(QueryError::Query(what));
        };
        let bytes = behind.iter().map(Component::bytes_min).sum();
        let behind = match may_follow {
            Follow::Nothing if behind.iter().all(Component::is_fixed) => Behind::Exactly(bytes),
            _ => Behind::AtLeast { bytes, may_follow },
        };
        Ok(Tuple { components, index, behind })
    }

    /// The component that is read.
    pub fn component(&self) -> &Component {
        &self.components[self.index]
    }

    /// All components, in order.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Reads the component of a tuple that begins at the first of `bytes`.
    pub(super) fn read<'a>(&self, bytes: &'a [u8]) -> Result<Option<Value<'a>>, Why> {
        let mut rest = bytes;
        let mut last = Ok(None);
        for (index, component) in self.components[..=self.index].iter().enumerate() {
            (last, rest) = component.take(rest).ok_or(Why::BadComponent { index })?;
        }
        let left = rest.len();
        match self.behind {
            Behind::Exactly(bytes) if left > bytes => Err(Why::BytesLeft { left, declared: bytes }),
            Behind::Exactly(bytes) | Behind::AtLeast { bytes, .. } if left < bytes => {
                Err(Why::BytesLack { left, declared: bytes })
            }
            Behind::Exactly(_) | Behind::AtLeast { .. } => last,
        }
    }
}

/// As a layout has it: `tuple(str,u16)[0]`.
impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let components: Vec<_> = self.components.iter().map(Component::to_string).collect();
        let is_open = matches!(self.behind, Behind::AtLeast { may_follow: Follow::Anything, .. });
        let components = components.join(",");
        match (is_open, self.index + 1 == self.components.len()) {
            (true, true) => write!(f, "tuple({components})"),
            (true, false) => write!(f, "tuple({components},..)[{}]", self.index),
            (false, _) => write!(f, "tuple({components})[{}]", self.index),
        }
    }
}

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

    /// The fewest bytes that it takes: a text has the mark that ends it, an option its own.
    fn bytes_min(&self) -> usize {
        match (self.optional, self.form) {
            (true, _) | (false, ComponentForm::Bool) => 1,
            (false, ComponentForm::Number(number)) => number.bytes(),
            (false, ComponentForm::Text) => 2,
        }
    }

    /// Whether it always takes as many.
    fn is_fixed(&self) -> bool {
        !self.optional && self.form != ComponentForm::Text
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

    /// The last component, whatever follows it.
    fn read_last<'a>(components: &[Component], bytes: &'a [u8]) -> Result<Option<Value<'a>>, Why> {
        let tuple = Tuple::open(components, components.len() - 1).expect("there is a last one");
        tuple.read(bytes)
    }

    #[test]
    fn bytes_that_the_layout_does_not_declare_are_a_mismatch() {
        let whole = |words: &[&str], index: usize| {
            let components: Vec<_> = words.iter().map(|word| component(word)).collect();
            Tuple::new(components, index).expect("there is such a component")
        };
        // A literal `1` is an `i32`, and the layout says `u16`: seen in both components.
        let key = b"UA\x00\x01\x80\x00\x00\x01";
        let left = Err(Why::BytesLeft { left: 2, declared: 0 });
        assert_eq!(whole(&["str", "u16"], 1).read(key), left);
        let left = Err(Why::BytesLeft { left: 4, declared: 2 });
        assert_eq!(whole(&["str", "u16"], 0).read(key), left);
        let lack = Err(Why::BytesLack { left: 4, declared: 8 });
        assert_eq!(whole(&["str", "u64"], 0).read(key), lack);
        assert_eq!(whole(&["str", "i32"], 0).read(key), Ok(Some("UA".into())));
        assert_eq!(whole(&["str", "i32"], 1).read(key), Ok(Some(1.into())));
        // Of the same width, so that no length tells.
        assert_eq!(whole(&["str", "u32"], 1).read(key), Ok(Some(0x8000_0001_u32.into())));
        // A text or an option behind the field leaves the length open, but for the fewest bytes.
        let text = b"\x05UA\x00\x01";
        assert_eq!(whole(&["u8", "str"], 0).read(text), Ok(Some(5.into())));
        assert_eq!(whole(&["u8", "str"], 1).read(text), Ok(Some("UA".into())));
        assert_eq!(whole(&["u8", "u32?"], 0).read(text), Ok(Some(5.into())));
        let lack = Err(Why::BytesLack { left: 4, declared: 5 });
        assert_eq!(whole(&["u8", "str", "bool", "u16"], 0).read(text), lack);
    }

    #[test]
    fn an_open_tuple_takes_any_bytes_behind_it() {
        let components = ["str", "u16"].map(component);
        let open = |index| Tuple::open(components, index).expect("there is such a component");
        let key = b"UA\x00\x01\x00\x07and more";
        assert_eq!(open(0).read(key), Ok(Some("UA".into())));
        assert_eq!(open(1).read(key), Ok(Some(7.into())));
        let lack = Err(Why::BytesLack { left: 1, declared: 2 });
        assert_eq!(open(0).read(&key[..5]), lack);
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
                // No component of a layout descends.
                "Reverse(258u16)" => continue,
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

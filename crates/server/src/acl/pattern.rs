//! Patterns of keys and channels, compiled: most that are in use are a prefix and a star.

use crate::protocol::glob;

/// The quick way to match a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It matches any bytes.
    Any,
    /// It is the only text that it matches.
    Exact,
    /// Plain bytes and a star behind them.
    Prefix,
    /// Any other.
    Glob,
}

/// A pattern as `KEYS` has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    text: Box<[u8]>,
    way: Way,
}

impl Pattern {
    pub(crate) fn new(text: &[u8]) -> Pattern {
        let is_plain = |text: &[u8]| !text.iter().any(|byte| b"*?[\\".contains(byte));
        let way = match text {
            b"*" => Way::Any,
            text if is_plain(text) => Way::Exact,
            [prefix @ .., b'*'] if is_plain(prefix) => Way::Prefix,
            _ => Way::Glob,
        };
        Pattern { text: text.into(), way }
    }

    /// The pattern as it was given.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether a text is of the pattern.
    #[inline]
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        match self.way {
            Way::Any => true,
            Way::Exact => *text == *self.text,
            Way::Prefix => text.starts_with(&self.text[..self.text.len() - 1]),
            Way::Glob => glob::matches(&self.text, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The quick ways answer as the slow one does.
        #[test]
        fn quick_ways_are_right(pattern in "[ab*?\\[\\]\\\\]{0,5}", text in "[ab*]{0,5}") {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(Pattern::new(pattern).matches(text), glob::matches(pattern, text));
        }
    }

    #[test]
    fn usual_patterns_have_a_quick_way() {
        for (text, way) in [
            ("*", Way::Any),
            ("app:*", Way::Prefix),
            ("app", Way::Exact),
            ("", Way::Exact),
            ("a*b", Way::Glob),
            ("a?*", Way::Glob),
            ("a\\*", Way::Glob),
        ] {
            assert_eq!(Pattern::new(text.as_bytes()).way, way, "{text}");
        }
    }
}

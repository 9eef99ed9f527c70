//! Patterns of `like`: `%` stands for any letters, `_` for one.

/// A pattern that a text matches or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
    case: Case,
    /// The one literal of the commonest patterns.
    shape: Shape,
}

/// Whether letters match in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Sensitive,
    /// `ilike`.
    Insensitive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Letter(char),
    One,
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    Equal(String),
    Begins(String),
    Ends(String),
    Contains(String),
    Other,
}

/// The lower case of a letter, where that is one letter.
fn fold(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => letter,
    }
}

impl Pattern {
    /// Reads a pattern, in which `escape` makes letters of the signs behind it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn new(text: &str, escape: Option<char>, case: Case) -> Result<Pattern, String> {
        let mut parts = Vec::new();
        let of_letter = |letter| match case {
            Case::Sensitive => Part::Letter(letter),
            Case::Insensitive => Part::Letter(fold(letter)),
        };
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            if Some(letter) == escape {
                match letters.next() {
                    Some(letter) => parts.push(of_letter(letter)),
                    None => return Err("a pattern does not end with its escape sign".to_owned()),
                }
                continue;
            }
            match letter {
                '%' if parts.last() == Some(&Part::Any) => {}
                '%' => parts.push(Part::Any),
                '_' => parts.push(Part::One),
                letter => parts.push(of_letter(letter)),
            }
        }
        let shape = Shape::of(&parts);
        Ok(Pattern { parts, case, shape })
    }

    /// Whether a text matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        match self.case {
            Case::Sensitive => self.matches_folded(text),
            Case::Insensitive => {
                let folded: String = text.chars().map(fold).collect();
                self.matches_folded(&folded)
            }
        }
    }

    fn matches_folded(&self, text: &str) -> bool {
        match &self.shape {
            Shape::Equal(literal) => text == literal,
            Shape::Begins(literal) => text.starts_with(literal),
            Shape::Ends(literal) => text.ends_with(literal),
            Shape::Contains(literal) => text.contains(literal),
            Shape::Other => self.matches_parts(text),
        }
    }

    /// Goes back to the last `%` where it fails, and lets that stand for a letter more.
    fn matches_parts(&self, text: &str) -> bool {
        let (mut rest, mut at) = (text, 0);
        let mut again: Option<(&str, usize)> = None;
        loop {
            match (self.parts.get(at), rest.chars().next()) {
                (Some(Part::Any), _) => {
                    at += 1;
                    again = Some((rest, at));
                    continue;
                }
                (None, None) => return true,
                (Some(Part::Letter(wanted)), Some(letter)) if *wanted == letter => {
                    rest = &rest[letter.len_utf8()..];
                    at += 1;
                    continue;
                }
                (Some(Part::One), Some(letter)) => {
                    rest = &rest[letter.len_utf8()..];
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let Some((begin, behind)) = again else { return false };
            let Some(letter) = begin.chars().next() else { return false };
            rest = &begin[letter.len_utf8()..];
            at = behind;
            again = Some((rest, at));
        }
    }

    /// The letters that every text begins with that matches, if case matters.
    pub(crate) fn prefix(&self) -> Option<String> {
        if self.case == Case::Insensitive {
            return None;
        }
        let letters = self.parts.iter().map_while(|part| match part {
            Part::Letter(letter) => Some(*letter),
            _ => None,
        });
        Some(letters.collect()).filter(|prefix: &String| !prefix.is_empty())
    }
}

impl Shape {
    fn of(parts: &[Part]) -> Shape {
        let literal = |parts: &[Part]| -> Option<String> {
            let letter = |part: &Part| match part {
                Part::Letter(letter) => Some(*letter),
                _ => None,
            };
            parts.iter().map(letter).collect()
        };
        let shape = match parts {
            [Part::Any, inner @ .., Part::Any] => literal(inner).map(Shape::Contains),
            [Part::Any, inner @ ..] => literal(inner).map(Shape::Ends),
            [inner @ .., Part::Any] => literal(inner).map(Shape::Begins),
            all => literal(all).map(Shape::Equal),
        };
        shape.unwrap_or(Shape::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_as_sql_says() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("%%", "abc", true),
            ("a%", "abc", true),
            ("%c", "abc", true),
            ("%b%", "abc", true),
            ("a_c", "abc", true),
            ("a_c", "a\u{e4}c", true),
            ("_", "", false),
            ("%a%b%c%", "xxaxxbxxc", true),
            ("%a%b%c%", "xxcxxbxxa", false),
            ("a%b_", "aXbYbZ", true),
            ("%aab", "aaaaab", true),
            ("A%", "abc", false),
            (r"100\%", "100%", true),
            (r"100\%", "1000", false),
            (r"a\_%", "a_b", true),
        ] {
            let compiled = Pattern::new(pattern, Some('\\'), Case::Sensitive).expect("a pattern");
            assert_eq!(compiled.matches(text), expected, "{text} like {pattern}");
            assert_eq!(compiled.matches_parts(text), expected, "{text} like {pattern}, by parts");
        }
        let pattern = Pattern::new("ÄB%", None, Case::Insensitive).expect("a pattern");
        assert!(pattern.matches("äbc") && pattern.matches("ÄBC") && !pattern.matches("ab"));
        assert!(Pattern::new("a!", Some('!'), Case::Sensitive).is_err());
        for (pattern, escape, text, expected) in [
            ("aE%", Some('E'), "A%", true),
            ("aE%", Some('E'), "ab", false),
            ("aE%", Some('e'), "AEb", true),
            // Its lower case is two letters.
            ("_", None, "\u{130}", true),
            ("\u{130}", None, "\u{130}", true),
            ("%\u{3a3}", None, "\u{391}\u{3a3}", true),
            ("%\u{3c3}", None, "\u{391}\u{3a3}", true),
        ] {
            let compiled = Pattern::new(pattern, escape, Case::Insensitive).expect("a pattern");
            assert_eq!(compiled.matches(text), expected, "{text} ilike {pattern}");
        }
    }

    #[test]
    fn prefixes_are_what_all_matches_begin_with() {
        let prefix = |text| Pattern::new(text, None, Case::Sensitive).expect("a pattern").prefix();
        assert_eq!(prefix("N14%").as_deref(), Some("N14"));
        assert_eq!(prefix("a_c%").as_deref(), Some("a"));
        assert_eq!(prefix("%a"), None);
    }
}

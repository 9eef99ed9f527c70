//! Where records end: the places at which text can be cut into blocks.

use memchr::{memchr, memrchr2};

/// Looks for ends of records, from the beginning of a record on, in bytes that become more.
#[derive(Debug, Clone)]
pub(crate) enum Cuts {
    Csv(CsvCuts),
    Lines(LineCuts),
    Values(ValueCuts),
}

impl Cuts {
    pub(crate) fn csv(delimiter: u8) -> Cuts {
        Cuts::Csv(CsvCuts { delimiter, at: 0, is_quoted: false, end: 0 })
    }

    pub(crate) fn lines() -> Cuts {
        Cuts::Lines(LineCuts { at: 0, end: 0 })
    }

    /// Of values of JSON, which are items of an array or stand one behind the other.
    pub(crate) fn values() -> Cuts {
        Cuts::Values(ValueCuts { at: 0, end: 0, depth: 0, base: None, text: Text::Outside })
    }

    /// The end of the last record that these bytes hold whole; zero if they hold none. Bytes of the call before
    /// are the same.
    pub(crate) fn find(&mut self, bytes: &[u8]) -> usize {
        match self {
            Cuts::Csv(cuts) => cuts.find(bytes),
            Cuts::Lines(cuts) => cuts.find(bytes),
            Cuts::Values(cuts) => cuts.find(bytes),
        }
    }

    /// Goes on at the place that was found last: the bytes before it are gone.
    pub(crate) fn pass(&mut self) {
        match self {
            Cuts::Csv(cuts) => {
                cuts.at -= cuts.end;
                cuts.end = 0;
            }
            Cuts::Lines(cuts) => {
                cuts.at -= cuts.end;
                cuts.end = 0;
            }
            Cuts::Values(cuts) => {
                cuts.at -= cuts.end;
                cuts.end = 0;
            }
        }
    }
}

/// Records of CSV: line ends within quotes are none.
#[derive(Debug, Clone)]
pub(crate) struct CsvCuts {
    delimiter: u8,
    /// Bytes that were looked at.
    at: usize,
    is_quoted: bool,
    end: usize,
}

impl CsvCuts {
    fn find(&mut self, bytes: &[u8]) -> usize {
        while self.at < bytes.len() {
            let rest = &bytes[self.at..];
            let quote = memchr(b'"', rest).map(|found| self.at + found);
            if !self.is_quoted {
                let limit = quote.unwrap_or(bytes.len());
                if let Some(found) = memrchr2(b'\n', b'\r', &bytes[self.at..limit]) {
                    self.end = self.at + found + 1;
                }
                let Some(quote) = quote else {
                    self.at = bytes.len();
                    break;
                };
                // Others belong to their field, as they are.
                self.is_quoted = quote == self.end
                    || bytes[..quote].last().is_none_or(|before| *before == self.delimiter);
                self.at = quote + 1;
            } else {
                let Some(quote) = quote else {
                    self.at = bytes.len();
                    break;
                };
                match bytes.get(quote + 1) {
                    // The byte behind it tells whether it closes.
                    None => {
                        self.at = quote;
                        break;
                    }
                    Some(b'"') => self.at = quote + 2,
                    Some(_) => {
                        self.is_quoted = false;
                        self.at = quote + 1;
                    }
                }
            }
        }
        self.end
    }
}

/// Lines.
#[derive(Debug, Clone)]
pub(crate) struct LineCuts {
    at: usize,
    end: usize,
}

impl LineCuts {
    fn find(&mut self, bytes: &[u8]) -> usize {
        if let Some(found) = memchr::memrchr(b'\n', &bytes[self.at..]) {
            self.end = self.at + found + 1;
        }
        self.at = bytes.len();
        self.end
    }
}

/// Values of JSON: objects, on any number of lines.
#[derive(Debug, Clone)]
pub(crate) struct ValueCuts {
    at: usize,
    end: usize,
    depth: usize,
    /// The depth between values: 1 within an array. The first sign tells it.
    base: Option<usize>,
    text: Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    /// Behind a backslash.
    Escaped,
}

impl ValueCuts {
    fn find(&mut self, bytes: &[u8]) -> usize {
        for &byte in &bytes[self.at..] {
            self.at += 1;
            match (self.text, byte) {
                (Text::Escaped, _) | (Text::Outside, b'"') => self.text = Text::Inside,
                (Text::Inside, b'\\') => self.text = Text::Escaped,
                (Text::Inside, b'"') => self.text = Text::Outside,
                (Text::Inside, _) => {}
                (Text::Outside, b'{' | b'[') => {
                    self.base.get_or_insert(usize::from(byte == b'['));
                    self.depth += 1;
                }
                (Text::Outside, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    if Some(self.depth) == self.base {
                        self.end = self.at;
                    }
                }
                (Text::Outside, _) => {}
            }
        }
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of records, where bytes come one by one.
    fn ends(mut cuts: Cuts, text: &str) -> Vec<usize> {
        let mut ends = Vec::new();
        let mut begin = 0;
        for limit in 1..=text.len() {
            let found = cuts.find(&text.as_bytes()[begin..limit]);
            if found > 0 {
                begin += found;
                ends.push(begin);
                cuts.pass();
            }
        }
        ends
    }

    #[test]
    fn records_end_outside_of_quotes() {
        for (text, expected) in [
            ("a,b\nc\n", &[4, 6][..]),
            ("\"a\nb\"\nc\n", &[6, 8]),
            ("\"a\"\"\n\"\nc\n", &[7, 9]),
            ("a\"\nb\"\n", &[3, 6]),
            ("x,\"\n\"\r\ny", &[6, 7]),
            ("x;\"\n", &[4]),
        ] {
            assert_eq!(ends(Cuts::csv(b','), text), expected, "{text:?}");
        }
    }

    #[test]
    fn values_end_where_their_objects_end() {
        for (text, expected) in [
            ("[{\"a\": [1, {}]}, {}]", &[15, 19][..]),
            ("{\"a\": \"}\\\"}\"}\n{}", &[13, 16]),
            (" [ ]", &[]),
        ] {
            let found = ends(Cuts::values(), text);
            assert!(found.starts_with(expected), "{text:?} {found:?}");
        }
    }
}

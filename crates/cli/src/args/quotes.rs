//! The quotes of CSV: which bytes stand within them, by the rules of the CSV reader.

/// Whether `text`, some CSV, ends within quotes.
pub(crate) fn ends_within_quotes(text: &str) -> bool {
    let mut quotes = Quotes::default();
    quotes.pass(text.as_bytes());
    quotes.state == QuoteState::Quoted
}

/// Which bytes stand within quotes, by the rules of the CSV reader.
#[derive(Debug, Default)]
pub(crate) struct Quotes {
    pub(crate) state: QuoteState,
    /// Line ends so far.
    pub(crate) line_ends: u64,
    /// Where the last quoted field began, as a line counted from one.
    pub(crate) opened_on: u64,
    /// Of the quoted field that is open.
    pub(crate) length: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum QuoteState {
    /// Where a field begins.
    #[default]
    Begin,
    Unquoted,
    Quoted,
    /// Behind a quote in a quoted field: its end, unless another quote follows.
    BehindQuote,
}

impl Quotes {
    pub(crate) fn pass(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            if self.state == QuoteState::BehindQuote {
                self.state = match first {
                    b'"' => QuoteState::Quoted,
                    other => after(other),
                };
                self.line_ends += u64::from(first == b'\n');
                bytes = rest;
                continue;
            }
            let quote = bytes.iter().position(|byte| *byte == b'"');
            let (before, behind) = match quote {
                Some(at) => (&bytes[..at], &bytes[at + 1..]),
                None => (bytes, &[][..]),
            };
            self.line_ends += before.iter().filter(|byte| **byte == b'\n').count() as u64;
            match self.state {
                QuoteState::Quoted => {
                    self.length += before.len() as u64;
                    if quote.is_some() {
                        self.state = QuoteState::BehindQuote;
                    }
                }
                _ => {
                    self.state = before.last().map_or(self.state, |last| after(*last));
                    self.state = match (quote, self.state) {
                        (Some(_), QuoteState::Begin) => {
                            self.opened_on = self.line_ends + 1;
                            self.length = 0;
                            QuoteState::Quoted
                        }
                        // A quote within a field is a character of it.
                        (Some(_), _) => QuoteState::Unquoted,
                        (None, state) => state,
                    };
                }
            }
            bytes = behind;
        }
    }
}

/// Where a reader is behind a byte that is no quote, outside of quotes.
fn after(byte: u8) -> QuoteState {
    match byte {
        b',' | b'\n' | b'\r' => QuoteState::Begin,
        _ => QuoteState::Unquoted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_that_nothing_closes_is_noticed() {
        assert!(ends_within_quotes("a,\"b"));
        assert!(!ends_within_quotes("a,\"b\""));
    }
}

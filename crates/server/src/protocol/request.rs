//! Requests: the arguments of commands in the bytes that a client sent.
//!
//! A [`Parser`] finds the arguments and copies none: it keeps where in the caller's buffer each
//! lies. It goes on where it stopped when more bytes have come, so that a request that trickles in
//! is read once. Allocations are those of its list of places, which it uses again.
//!
//! Two forms are read, as Redis does: an array of bulk strings, `*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`,
//! and a line of words for people, `GET k\r\n`, whose words may be quoted.
//!
//! The lines of a request of HTTP are such lines, too, and a page in a browser can send one to any
//! port of its machine. [`is_http`] tells them by their first word.

use std::ops::Range;

/// Bounds of what a client may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an argument at most.
    pub argument_bytes: usize,
    /// Arguments of a request at most.
    pub arguments: usize,
}

impl Limits {
    /// The limits of Redis: 512 MiB, and 2,147,483,647 arguments.
    pub const REDIS: Limits = Limits { argument_bytes: 512 << 20, arguments: i32::MAX as usize };
    /// Those of a client that has not said its password: 16 KiB, and 10 arguments.
    pub const UNAUTHENTICATED: Limits = Limits { argument_bytes: 16 << 10, arguments: 10 };
}

/// Bytes of a line at most: a length with its mark, or a request of words.
const LINE_MAX: usize = 64 << 10;

/// The refusal of bytes that are no request. Nothing behind them can be understood: the connection
/// ends. The texts are those of Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The number behind `*` is none, or beyond [`Limits::arguments`].
    #[error("Protocol error: invalid multibulk length")]
    Count,
    /// The same, of a client that has not said its password.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedCount,
    /// The number behind `$` is none, or beyond [`Limits::argument_bytes`].
    #[error("Protocol error: invalid bulk length")]
    Length,
    /// The same, of a client that has not said its password.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedLength,
    /// Another mark than `$` before an argument.
    #[error("Protocol error: expected '$', got '{}'", char::from(*.0))]
    NoArgument(u8),
    /// A line of 64 KiB without an end, behind `*`.
    #[error("Protocol error: too big mbulk count string")]
    CountLine,
    /// The same, behind `$`.
    #[error("Protocol error: too big bulk count string")]
    LengthLine,
    /// The same, of words.
    #[error("Protocol error: too big inline request")]
    Words,
    /// A quote without its partner, or with text right behind it.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
}

/// Finds the arguments of requests.
///
/// ```
/// use sapwood_server::protocol::request::{Limits, Parser};
///
/// let mut parser = Parser::new(Limits::REDIS);
/// let mut buffer = b"*2\r\n$3\r\nGET\r\n$1\r".to_vec();
/// assert_eq!(parser.parse(&buffer)?, None);
/// buffer.extend(b"\nk\r\nPING\r\n");
/// let end = parser.parse(&buffer)?.expect("the request is whole");
/// assert_eq!(parser.arguments(&buffer).collect::<Vec<_>>(), [&b"GET"[..], b"k"]);
///
/// let rest = &buffer[end..];
/// assert_eq!(parser.parse(rest)?, Some(rest.len()));
/// assert_eq!(parser.arguments(rest).collect::<Vec<_>>(), [b"PING"]);
/// # Ok::<(), sapwood_server::protocol::request::RequestError>(())
/// ```
pub struct Parser {
    limits: Limits,
    /// Where the arguments lie: in the buffer, or in `words`.
    places: Vec<Range<usize>>,
    /// Arguments of a request of words, without their quotes.
    words: Vec<u8>,
    form: Form,
    /// Bytes of the request that have been read.
    at: usize,
    /// Bytes behind `at` in which no line ends.
    searched: usize,
}

/// How far a request has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// To its end; the next call begins another.
    Done,
    /// The same, and its arguments are words that were cut out.
    Words,
    /// Not to the end of its first line.
    First,
    /// Of an array, so many arguments are left.
    Array { left: usize },
    /// As the above, and the next argument has so many bytes.
    Argument { left: usize, len: usize },
}

impl std::fmt::Debug for Parser {
    /// Without the words, among which a password may be.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Parser");
        debug.field("limits", &self.limits).field("form", &self.form).field("at", &self.at);
        debug.finish_non_exhaustive()
    }
}

impl Parser {
    /// A parser at the beginning of a request.
    pub fn new(limits: Limits) -> Parser {
        Parser {
            limits,
            places: Vec::new(),
            words: Vec::new(),
            form: Form::Done,
            at: 0,
            searched: 0,
        }
    }

    /// Sets other limits for what comes, such as when the client has said its password.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Reads a request from the beginning of `buffer`; answers where it ends, or `None` if more
    /// bytes must come. In the next call after `None` the buffer begins with the same bytes.
    ///
    /// A request may have no arguments, such as an empty line: Redis answers none.
    ///
    /// # Errors
    /// [`RequestError`]; the parser is of no use any more.
    #[inline]
    pub fn parse(&mut self, buffer: &[u8]) -> Result<Option<usize>, RequestError> {
        if matches!(self.form, Form::Done | Form::Words) {
            self.begin();
        }
        loop {
            match self.form {
                Form::Done | Form::Words | Form::First => match buffer.first() {
                    None => return Ok(None),
                    Some(b'*') => {
                        let Some(line) = self.line(buffer, RequestError::CountLine)? else {
                            return Ok(None);
                        };
                        let left = self.count(&buffer[line])?;
                        self.form = Form::Array { left };
                    }
                    Some(_) => {
                        let Some(line) = self.line(buffer, RequestError::Words)? else {
                            return Ok(None);
                        };
                        self.form = Form::Words;
                        self.cut(&buffer[line])?;
                        return Ok(Some(self.at));
                    }
                },
                Form::Array { left: 0 } => {
                    self.form = Form::Done;
                    return Ok(Some(self.at));
                }
                Form::Array { left } => {
                    match buffer.get(self.at) {
                        None => return Ok(None),
                        Some(b'$') => {}
                        Some(other) => return Err(RequestError::NoArgument(*other)),
                    }
                    let Some(line) = self.line(buffer, RequestError::LengthLine)? else {
                        return Ok(None);
                    };
                    let len = self.length(&buffer[line])?;
                    self.form = Form::Argument { left, len };
                }
                Form::Argument { left, len } => {
                    // The two bytes behind it are not looked at, as in Redis.
                    let end = self.at + len;
                    if buffer.len() < end + 2 {
                        return Ok(None);
                    }
                    self.places.push(self.at..end);
                    self.at = end + 2;
                    self.form = Form::Array { left: left - 1 };
                }
            }
        }
    }

    /// The bytes that the buffer must have before it is of use to ask again; a caller that makes
    /// room for them copies a long argument once.
    pub fn wanted(&self) -> usize {
        match self.form {
            Form::Argument { len, .. } => self.at + len + 2,
            Form::Done | Form::Words => 1,
            Form::First | Form::Array { .. } => self.at + self.searched + 1,
        }
    }

    /// The arguments of the request that [`parse`](Self::parse) ended, in the same buffer.
    #[inline]
    pub fn arguments<'a>(&'a self, buffer: &'a [u8]) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let bytes = if self.form == Form::Words { &self.words } else { buffer };
        self.places.iter().map(move |place| &bytes[place.clone()])
    }

    /// Where argument `index` of that request lies in the buffer; `None` if it was cut out of a
    /// line of words, or is not there.
    #[inline]
    pub fn place(&self, index: usize) -> Option<Range<usize>> {
        if self.form == Form::Words { None } else { self.places.get(index).cloned() }
    }

    /// Gives the memory of an unusually long request back. Between requests.
    #[inline]
    pub fn give_back(&mut self) {
        const PLACES_KEPT: usize = 64;
        const WORDS_KEPT: usize = 1 << 10;
        if self.form == Form::Done && self.places.capacity() > PLACES_KEPT {
            self.places = Vec::new();
        }
        if self.words.capacity() > WORDS_KEPT && self.form != Form::Words {
            self.words = Vec::new();
        }
    }

    fn begin(&mut self) {
        self.places.clear();
        self.words.clear();
        (self.form, self.at, self.searched) = (Form::First, 0, 0);
    }

    /// The line from `at` on, without its end, which is `\n` or `\r\n`; `at` is behind it then.
    fn line(
        &mut self,
        buffer: &[u8],
        too_long: RequestError,
    ) -> Result<Option<Range<usize>>, RequestError> {
        let rest = &buffer[self.at..];
        let Some(len) = rest[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = rest.len();
            return if rest.len() > LINE_MAX { Err(too_long) } else { Ok(None) };
        };
        let begin = self.at;
        let len = self.searched + len;
        (self.at, self.searched) = (begin + len + 1, 0);
        let end = begin + len;
        let has_return = end > begin && buffer[end - 1] == b'\r';
        Ok(Some(begin..end - usize::from(has_return)))
    }

    /// The number of arguments, of a line that begins with `*`.
    fn count(&self, line: &[u8]) -> Result<usize, RequestError> {
        let count = integer(&line[1..]).ok_or(RequestError::Count)?;
        // None at all, or fewer: an empty request.
        let count = usize::try_from(count).unwrap_or(0);
        if count <= self.limits.arguments {
            Ok(count)
        } else if self.limits == Limits::UNAUTHENTICATED && count <= Limits::REDIS.arguments {
            Err(RequestError::UnauthenticatedCount)
        } else {
            Err(RequestError::Count)
        }
    }

    /// The bytes of an argument, of a line that begins with `$`.
    fn length(&self, line: &[u8]) -> Result<usize, RequestError> {
        let len = integer(&line[1..]).and_then(|len| usize::try_from(len).ok());
        let len = len.ok_or(RequestError::Length)?;
        if len <= self.limits.argument_bytes {
            Ok(len)
        } else if self.limits == Limits::UNAUTHENTICATED && len <= Limits::REDIS.argument_bytes {
            Err(RequestError::UnauthenticatedLength)
        } else {
            Err(RequestError::Length)
        }
    }

    /// Cuts a line into words: between spaces, or within quotes. In double quotes `\n`, `\r`, `\t`,
    /// `\b`, `\a`, `\xHH` and any escaped byte are read, in single quotes `\'` alone.
    fn cut(&mut self, line: &[u8]) -> Result<(), RequestError> {
        let mut rest = line;
        loop {
            rest = rest.trim_ascii_start();
            if rest.is_empty() {
                return Ok(());
            }
            let begin = self.words.len();
            while let Some((&byte, behind)) = rest.split_first() {
                rest = match byte {
                    b'"' | b'\'' => self.quoted(byte, behind)?,
                    _ if byte.is_ascii_whitespace() || byte == 0 => break,
                    _ => {
                        self.words.push(byte);
                        behind
                    }
                };
            }
            self.places.push(begin..self.words.len());
            // A zero ends the line.
            if rest.first() == Some(&0) {
                return Ok(());
            }
        }
    }

    /// The word behind a quote; answers what follows its partner.
    fn quoted<'l>(&mut self, quote: u8, mut rest: &'l [u8]) -> Result<&'l [u8], RequestError> {
        loop {
            let (&byte, behind) = rest.split_first().ok_or(RequestError::Quotes)?;
            rest = behind;
            if byte == quote {
                // Text right behind a quote belongs to no word.
                return match rest.first() {
                    Some(next) if !next.is_ascii_whitespace() && *next != 0 => {
                        Err(RequestError::Quotes)
                    }
                    _ => Ok(rest),
                };
            }
            let escaped = match (quote, byte, rest) {
                (b'"', b'\\', [b'x', high, low, ..])
                    if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
                {
                    rest = &rest[3..];
                    self.words.push(nibble(*high) << 4 | nibble(*low));
                    continue;
                }
                (b'"', b'\\', [b'n', ..]) => b'\n',
                (b'"', b'\\', [b'r', ..]) => b'\r',
                (b'"', b'\\', [b't', ..]) => b'\t',
                (b'"', b'\\', [b'b', ..]) => 8,
                (b'"', b'\\', [b'a', ..]) => 7,
                (b'"', b'\\', [any, ..]) => *any,
                (b'\'', b'\\', [b'\'', ..]) => b'\'',
                _ => {
                    self.words.push(byte);
                    continue;
                }
            };
            self.words.push(escaped);
            rest = &rest[1..];
        }
    }
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Tells if a request of this name is a line of HTTP: one whose body would be executed, or the
/// header that every other has. Redis ends the connection at the same two words.
#[inline]
pub fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// A number in decimal digits as Redis writes it, and no other way: without a plus, without zeros
/// before it.
#[inline]
pub fn integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] => return (!is_negative).then_some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut number = 0_i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // Down from zero: the least number has no positive one.
        number = number.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))?;
    }
    if is_negative { Some(number) } else { number.checked_neg() }
}

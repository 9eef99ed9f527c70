//! The words of a line, quoted as `redis-cli` does it.
//!
//! Blanks part words. In double quotes `\n`, `\r`, `\t`, `\b`, `\a` and `\x00` stand for bytes, and
//! any other character behind a backslash for itself; in single quotes only `\'` is an escape. A
//! quoted word ends with its quote. A backslash alone at the end of a line goes on in the next one.

use std::iter::Peekable;
use std::slice::Iter;

/// The reason why a line is no list of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// A quote is open, or the line ends with a backslash: another line may follow.
    Open,
    /// A quote is closed in the middle of a word.
    Glued,
}

/// The words of a line.
pub(crate) fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, Unfinished> {
    let mut words = Vec::new();
    let mut bytes = line.iter().peekable();
    loop {
        while bytes.next_if(|byte| byte.is_ascii_whitespace()).is_some() {}
        if bytes.peek() == Some(&&b'\\') {
            let mut ahead = bytes.clone();
            ahead.next();
            ahead.next_if_eq(&&b'\r');
            match ahead.next() {
                None => return Err(Unfinished::Open),
                Some(b'\n') => {
                    bytes = ahead;
                    if bytes.peek().is_none() {
                        return Err(Unfinished::Open);
                    }
                    continue;
                }
                Some(_) => {}
            }
        }
        if bytes.peek().is_none() {
            return Ok(words);
        }
        words.push(word(&mut bytes)?);
    }
}

fn word(bytes: &mut Peekable<Iter<'_, u8>>) -> Result<Vec<u8>, Unfinished> {
    let mut word = Vec::new();
    while let Some(byte) = bytes.next_if(|byte| !byte.is_ascii_whitespace()) {
        match byte {
            b'"' | b'\'' => {
                quoted(*byte, bytes, &mut word)?;
                return match bytes.peek() {
                    Some(behind) if !behind.is_ascii_whitespace() => Err(Unfinished::Glued),
                    _ => Ok(word),
                };
            }
            byte => word.push(*byte),
        }
    }
    Ok(word)
}

fn quoted(
    quote: u8,
    bytes: &mut Peekable<Iter<'_, u8>>,
    word: &mut Vec<u8>,
) -> Result<(), Unfinished> {
    loop {
        match *bytes.next().ok_or(Unfinished::Open)? {
            b'\\' if quote == b'"' => word.push(escape(bytes)?),
            b'\\' if bytes.next_if_eq(&&b'\'').is_some() => word.push(b'\''),
            byte if byte == quote => return Ok(()),
            byte => word.push(byte),
        }
    }
}

/// The byte of what follows a backslash in double quotes.
fn escape(bytes: &mut Peekable<Iter<'_, u8>>) -> Result<u8, Unfinished> {
    let byte = *bytes.next().ok_or(Unfinished::Open)?;
    Ok(match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        b'x' => {
            let mut ahead = bytes.clone();
            match (ahead.next().and_then(digit), ahead.next().and_then(digit)) {
                (Some(high), Some(low)) => {
                    *bytes = ahead;
                    high * 16 + low
                }
                _ => b'x',
            }
        }
        other => other,
    })
}

fn digit(byte: &u8) -> Option<u8> {
    char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Bytes in double quotes, as [`split`] reads them.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut quoted = String::with_capacity(bytes.len() + 2);
    quoted.push('"');
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' | '\\' => quoted.extend(['\\', char]),
                '\n' => quoted.push_str("\\n"),
                '\r' => quoted.push_str("\\r"),
                '\t' => quoted.push_str("\\t"),
                '\u{8}' => quoted.push_str("\\b"),
                '\u{7}' => quoted.push_str("\\a"),
                char if is_plain(char) => quoted.push(char),
                char => push_hex(&mut quoted, char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        push_hex(&mut quoted, chunk.invalid());
    }
    quoted.push('"');
    quoted
}

/// Text of which what is not UTF-8 stands as `\x00`.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        push_hex(&mut text, chunk.invalid());
    }
    text
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|byte| *text += &format!("\\x{byte:02x}"));
}

/// Whether a terminal shows a character and does nothing else.
fn is_plain(char: char) -> bool {
    let mut one = [0; 4];
    crate::terminal::format::escaped(char.encode_utf8(&mut one)).len() == char.len_utf8()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, Unfinished> {
        split(line)
    }

    #[test]
    fn lines_are_split_as_redis_cli_splits_them() {
        for (line, expected) in [
            (&b""[..], &[][..]),
            (b"  \t ", &[]),
            (b"set a 1", &[&b"set"[..], b"a", b"1"]),
            (b" get  'a b' ", &[b"get", b"a b"]),
            (br#"set "a \"b\"" '\'' "#, &[b"set", b"a \"b\"", b"'"]),
            (br#"echo "\x00\xff\n\r\t\b\a\\""#, &[b"echo", b"\x00\xff\n\r\t\x08\x07\\"]),
            (br#"echo "\xg1\q" '\n'"#, &[b"echo", b"xg1q", b"\\n"]),
            (br#"echo "" ''"#, &[b"echo", b"", b""]),
            (br"echo a\nb \ c", &[b"echo", b"a\\nb", b"\\", b"c"]),
            (b"echo pre\"fix ed\"", &[b"echo", b"prefix ed"]),
            (b"echo \xff\xfe", &[b"echo", b"\xff\xfe"]),
        ] {
            assert_eq!(words(line).expect("words"), expected, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn what_may_go_on_is_told_from_what_is_wrong() {
        for line in
            [&b"set a \"b"[..], b"set a 'b", b"set a \"b\\", b"set a \\", b"set a \\\n", b"'\\'"]
        {
            assert_eq!(words(line), Err(Unfinished::Open), "{}", line.escape_ascii());
        }
        for line in [&b"set \"a\"b"[..], b"set 'a''b'", b"\"a\"'b'"] {
            assert_eq!(words(line), Err(Unfinished::Glued), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn lines_go_on() {
        assert_eq!(words(b"set a \\\n 1").expect("words"), [&b"set"[..], b"a", b"1"]);
        assert_eq!(words(b"set a \\\r\n1").expect("words"), [&b"set"[..], b"a", b"1"]);
        assert_eq!(words(b"echo 'a\nb'").expect("words"), [&b"echo"[..], b"a\nb"]);
    }

    #[test]
    fn quoted_bytes_are_read_as_they_were() {
        let all: Vec<u8> = (0..=255).collect();
        let bytes = [&all[..], "é\u{202e}\u{1b}[31m".as_bytes()].concat();
        let quoted = quote(&bytes);
        assert!(!quoted.contains(['\u{1b}', '\u{202e}', '\n', '\0']), "{quoted}");
        assert_eq!(words(quoted.as_bytes()).expect("words"), [bytes]);
        assert_eq!(text(b"a\xffb"), "a\\xffb");
    }
}

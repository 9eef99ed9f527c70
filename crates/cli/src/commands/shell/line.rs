//! The languages of lines: statements of SQL, commands of the shell, and commands for the other side.
//!
//! | a piece | begins with | ends with |
//! |---|---|---|
//! | a statement | a word of SQL, or `(` | `;` outside of quotes and comments |
//! | a command of the shell | `.` and a letter | its line |
//! | a command | anything else | its line, but not inside a quote |
//! | nothing | `#` or `--` | its line |
//!
//! Two words are both SQL's and Redis'. `select` and a number alone are the command, and so is `copy` with two keys
//! (`copy a b`, but not `copy a to ...` or `copy a from ...`). All else that begins with them is a statement.

use super::words::{self, Unfinished};

/// The words that statements begin with, and what follows them.
pub(crate) const STATEMENTS: &[(&str, &str)] = &[
    ("alter", "table TABLE add column COLUMN TYPE;"),
    ("copy", "TABLE | (select ...) to 'FILE'; or TABLE from 'FILE';"),
    (
        "create",
        "table TABLE (COLUMN TYPE, ..., primary key (COLUMN, ...)) [with (engine = 'hash')]; or table TABLE as select ...;",
    ),
    ("delete", "from TABLE [where ...];"),
    ("describe", "TABLE;"),
    ("drop", "table TABLE;"),
    ("explain", "[analyze] select ...;"),
    ("insert", "into TABLE [(COLUMN, ...)] values (...), ...; or into TABLE select ...;"),
    (
        "select",
        "... from TABLE [where ...] [group by ...] [having ...] [order by ...] [limit COUNT [offset COUNT]];",
    ),
    ("show", "tables;"),
    ("summarize", "TABLE; or select ...;"),
    ("truncate", "TABLE;"),
    ("update", "TABLE set COLUMN = ..., ... [where ...];"),
    ("values", "(...), ...;"),
];

/// Words that statements of other databases begin with: SQL refuses them with what to use instead.
const OTHERS: &[&str] = &["begin", "commit", "desc", "merge", "rollback", "with"];

/// What a statement says that begins with a word.
pub(crate) fn statement(word: &str) -> Option<(&'static str, &'static str)> {
    STATEMENTS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).copied()
}

fn is_statement(word: &[u8]) -> bool {
    let names = STATEMENTS.iter().map(|(name, _)| name).chain(OTHERS);
    names.into_iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}

/// The language of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// A comment, or no text.
    Nothing,
    Statement,
    /// Commands of the shell that begin with a dot.
    Own,
    Command,
}

/// The language of what a text begins with.
pub(crate) fn language(text: &[u8]) -> Language {
    let text = text.trim_ascii_start();
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = match text {
        [] | [b'#', ..] | [b'-', b'-', ..] => return Language::Nothing,
        [b'(', ..] | [b'/', b'*', ..] => return Language::Statement,
        [b'.', letter, ..] if letter.is_ascii_alphabetic() => return Language::Own,
        _ => words.next().unwrap_or_default(),
    };
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let name = &first[..first.iter().position(|byte| !is_of_name(byte)).unwrap_or(first.len())];
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    if !is_statement(name) {
        return Language::Command;
    }
    let is_whole_word = name.len() == first.len();
    let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    // Of the line alone: a number below it is of a statement that goes on.
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).skip(1);
    let is_command = is_whole_word
        && match (words.next(), words.next()) {
            (Some(number), None) => is(name, "select") && is_number(number),
            (Some(source), Some(target)) => {
                is(name, "copy")
                    && !source.contains(&b'(')
                    && !target.starts_with(b"(")
                    && !is(target, "to")
                    && !is(target, "from")
            }
            _ => false,
        };
    if is_command { Language::Command } else { Language::Statement }
}

/// Text that comes line by line, and leaves piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    text: Vec<u8>,
    /// How far the end of a statement was looked for.
    look: Look,
}

/// A look for the `;` of a statement, which goes on as text comes.
#[derive(Debug, Default)]
struct Look {
    at: usize,
    inside: Inside,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Inside {
    #[default]
    Statement,
    Quote(u8),
    LineComment,
    /// Comments may stand in comments: so many.
    Comment(usize),
}

impl Pieces {
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
    }

    /// The next piece that has its end.
    pub(crate) fn next(&mut self) -> Option<(Language, Vec<u8>)> {
        let blanks = self.text.len() - self.text.trim_ascii_start().len();
        if blanks > 0 && self.look.at == 0 {
            self.text.drain(..blanks);
        }
        let language = language(&self.text);
        let length = match language {
            _ if self.text.is_empty() => return None,
            Language::Statement => self.look.end(&self.text)?,
            Language::Nothing | Language::Own => line(&self.text, 0)?,
            Language::Command => self.command()?,
        };
        self.look = Look::default();
        Some((language, self.text.drain(..length).collect()))
    }

    /// The last piece, whose end is that of the text.
    pub(crate) fn rest(&mut self) -> Option<(Language, Vec<u8>)> {
        self.look = Look::default();
        let text = std::mem::take(&mut self.text);
        (!text.trim_ascii().is_empty()).then(|| (language(&text), text))
    }

    fn command(&self) -> Option<usize> {
        let mut length = 0;
        loop {
            length = line(&self.text, length)?;
            if words::split(&self.text[..length]) != Err(Unfinished::Open) {
                return Some(length);
            }
        }
    }
}

/// The end of the line that begins at a place.
fn line(text: &[u8], at: usize) -> Option<usize> {
    text[at..].iter().position(|&byte| byte == b'\n').map(|length| at + length + 1)
}

impl Look {
    /// The place behind the `;`, if it is there.
    fn end(&mut self, text: &[u8]) -> Option<usize> {
        while let Some(&byte) = text.get(self.at) {
            let two = [byte, text.get(self.at + 1).copied().unwrap_or_default()];
            // The second sign of two may not have come yet.
            let may_be_two = matches!(byte, b'-' | b'/' | b'*');
            if may_be_two && self.at + 1 == text.len() {
                return None;
            }
            let mut step = 1;
            self.inside = match (self.inside, &two) {
                (Inside::Statement, b"--") => Inside::LineComment,
                (Inside::Statement, b"/*") => {
                    step = 2;
                    Inside::Comment(1)
                }
                (Inside::Statement, [b'\'' | b'"', _]) => Inside::Quote(byte),
                (Inside::Statement, [b';', _]) => return Some(self.at + 1),
                // A quote that is doubled opens again.
                (Inside::Quote(quote), _) if quote == byte => Inside::Statement,
                (Inside::LineComment, [b'\n', _]) => Inside::Statement,
                (Inside::Comment(depth), b"*/") => {
                    step = 2;
                    if depth == 1 { Inside::Statement } else { Inside::Comment(depth - 1) }
                }
                (Inside::Comment(depth), b"/*") => {
                    step = 2;
                    Inside::Comment(depth + 1)
                }
                (inside, _) => inside,
            };
            self.at += step;
        }
        None
    }
}

/// The pieces of a text that is whole.
pub(crate) fn pieces(text: &[u8]) -> Vec<(Language, Vec<u8>)> {
    let mut pieces = Pieces::default();
    pieces.push(text);
    let mut all: Vec<_> = std::iter::from_fn(|| pieces.next()).collect();
    all.extend(pieces.rest());
    all
}

/// Whether a text that was typed goes on in a further line.
pub(crate) fn goes_on(text: &str) -> bool {
    let mut pieces = Pieces::default();
    pieces.push(text.as_bytes());
    pieces.push(b"\n");
    while pieces.next().is_some() {}
    pieces.rest().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood_server::command;

    #[test]
    fn statements_are_told_from_commands() {
        for (text, expected) in [
            ("", Language::Nothing),
            (" # a comment", Language::Nothing),
            ("-- a comment", Language::Nothing),
            ("get a", Language::Command),
            ("selection a", Language::Command),
            ("sw.get select a", Language::Command),
            ("help select", Language::Command),
            ("\\output json", Language::Command),
            (".tables", Language::Own),
            (".5", Language::Command),
            (" Select 1 + 1", Language::Statement),
            ("select*from t", Language::Statement),
            ("select", Language::Statement),
            ("(select 1)", Language::Statement),
            ("/* why */ select 1", Language::Statement),
            ("show tables;", Language::Statement),
            ("values(1)", Language::Statement),
            // `SELECT index`
            ("SELECT 1", Language::Command),
            ("select 15 ", Language::Command),
            ("select 1;", Language::Statement),
            ("select 1 ;", Language::Statement),
            ("select 1, 2", Language::Statement),
            ("select '1'", Language::Statement),
            ("select\n1", Language::Statement),
            // `COPY source destination [DB destination-db] [REPLACE]`
            ("COPY a b", Language::Command),
            ("copy a b db 1 replace", Language::Command),
            ("copy \"a\" \"to\"", Language::Command),
            ("copy t to 'f.csv'", Language::Statement),
            ("copy t FROM 'f.csv'", Language::Statement),
            ("copy t to", Language::Statement),
            ("copy t (a, b) from 'f.csv'", Language::Statement),
            ("copy t(a, b) from 'f.csv'", Language::Statement),
            ("copy (select 1) to 'f.csv'", Language::Statement),
            ("copy t", Language::Statement),
        ] {
            assert_eq!(language(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn no_other_command_is_called_as_a_statement() {
        let both = |name: &&str| is_statement(name.as_bytes());
        let mut names: Vec<_> = command::all().map(|it| it.name).filter(both).collect();
        names.sort_unstable_by_key(|name| name.to_lowercase());
        assert!(
            names.iter().map(|name| name.to_lowercase()).eq(["copy", "select"]),
            "a collision to decide: {names:?}"
        );
    }

    fn pieces(lines: &[&str]) -> (Vec<String>, Option<String>) {
        let mut pieces = Pieces::default();
        let mut whole = Vec::new();
        let text = |(_, text): (Language, Vec<u8>)| String::from_utf8(text).expect("UTF-8");
        for line in lines {
            pieces.push(line.as_bytes());
            whole.extend(std::iter::from_fn(|| pieces.next()).map(text));
        }
        (whole, pieces.rest().map(text))
    }

    #[test]
    fn pieces_end_where_their_language_says() {
        for (lines, whole, rest) in [
            (&["get a\n", "get b\n"][..], &["get a\n", "get b\n"][..], None),
            (&["select 1; select 2;\n"], &["select 1;", "select 2;"], None),
            (&["select 1; get a\nget b\n"], &["select 1;", "get a\n", "get b\n"], None),
            (&["select\n", "1\n", ";\n"], &["select\n1\n;"], None),
            (&["select ';', \";\"\n", "; get a\n"], &["select ';', \";\"\n;", "get a\n"], None),
            (&["select 'it''s;\n", "';\n"], &["select 'it''s;\n';"], None),
            (&["select 1 -- one; 'two\n", "; \n"], &["select 1 -- one; 'two\n;"], None),
            (&["select /* ; /* ; */ ' */ 1;\n"], &["select /* ; /* ; */ ' */ 1;"], None),
            (&["select 4 -", "- 2;\n;"], &["select 4 -- 2;\n;"], None),
            (&["set a \"x\n", "y;\" \n", "get"], &["set a \"x\ny;\" \n"], Some("get")),
            (&["select 1\n", "get a\n"], &["select 1\n", "get a\n"], None),
            (&["select 1 +\n", "get a\n"], &[], Some("select 1 +\nget a\n")),
            (
                &["-- it's\n", ".mode csv\n", "# it's\n"],
                &["-- it's\n", ".mode csv\n", "# it's\n"],
                None,
            ),
            (&["\n", "  \n"], &[], None),
        ] {
            let whole: Vec<_> = whole.iter().map(|&piece| piece.to_owned()).collect();
            assert_eq!(pieces(lines), (whole, rest.map(str::to_owned)), "{lines:?}");
        }
    }

    #[test]
    fn what_goes_on_is_told() {
        for text in ["select 1 +", "select 1; select", "get \"a", "insert into t\nvalues ('a;"] {
            assert!(goes_on(text), "{text}");
        }
        for text in ["", "get a", "select 1", "select 1 + 1;", "-- x", ".tables", "select 1; get a"]
        {
            assert!(!goes_on(text), "{text}");
        }
    }
}

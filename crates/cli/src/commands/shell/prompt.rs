//! Lines from a person: history, completion, hints.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use sapwood::aggregate::Cancel;

use super::catalog::Catalog;
use super::completion::{self, Line, table_name};
use super::conversation::Conversation;
use super::line::{self, Language};
use super::statements::Statements;
use super::value::Value;
use super::words::{self, Unfinished};

/// How long the other side may take to say which tables there are.
const TABLES_PATIENCE: Duration = Duration::from_secs(1);

/// What was typed, or the reason why there is nothing.
#[derive(Debug)]
pub(crate) enum Typed {
    /// A line, or the lines of a statement.
    Text(String),
    /// Ctrl-C: the line is given up.
    Cancelled,
    /// Ctrl-D.
    End,
}

/// Whether text has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    On,
    Off,
}

/// An editor of lines.
pub(crate) struct Prompt {
    editor: Editor<Assistant, FileHistory>,
    history: Option<PathBuf>,
}

impl Prompt {
    /// An editor that completes names of commands and of tables, and words of SQL.
    ///
    /// # Errors
    /// Without a terminal.
    pub(crate) fn new(
        catalog: Rc<Catalog>,
        conversation: Rc<RefCell<Conversation>>,
        statements: Statements,
        colours: Colours,
    ) -> rustyline::Result<Prompt> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .history_ignore_space(true)
            .auto_add_history(false)
            .build();
        let mut editor = Editor::with_config(config)?;
        let above = String::new();
        editor.set_helper(Some(Assistant { catalog, conversation, statements, above, colours }));
        let history = history_path(|name| std::env::var_os(name).map(PathBuf::from));
        if let Some(path) = &history {
            // The first time there is none.
            let _ = editor.load_history(path);
        }
        Ok(Prompt { editor, history })
    }

    /// The next line; of a statement, all lines up to its `;`.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(crate) fn read(&mut self, label: &str) -> rustyline::Result<Typed> {
        let mut text = String::new();
        let width = label.chars().count() + 2;
        loop {
            let prompt = match text.is_empty() {
                true => format!("{label}> "),
                false => format!("{:>width$}", "...> "),
            };
            if let Some(assistant) = self.editor.helper_mut() {
                assistant.above.clone_from(&text);
            }
            match self.editor.readline(&prompt) {
                Ok(line) => text += &line,
                Err(ReadlineError::Interrupted) => return Ok(Typed::Cancelled),
                Err(ReadlineError::Eof) => return Ok(Typed::End),
                Err(error) => return Err(error),
            }
            if !line::goes_on(&text) {
                return Ok(Typed::Text(text));
            }
            text.push('\n');
        }
    }

    /// Keeps a text for later runs too, if it says no password.
    pub(crate) fn remember(&mut self, text: &str) {
        if !is_kept(text) {
            return;
        }
        // A line that is not remembered is typed again.
        let _ = self.editor.add_history_entry(text);
        if let Some(path) = &self.history {
            let _ = keep_history(&mut self.editor, path);
        }
    }
}

fn keep_history(editor: &mut Editor<Assistant, FileHistory>, path: &Path) -> rustyline::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    editor.append_history(path)
}

/// Where lines are kept: in the folder of the user's state, or where `SAPWOOD_HISTORY` says; empty
/// is nowhere.
fn history_path(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(path) = variable("SAPWOOD_HISTORY") {
        return (!path.as_os_str().is_empty()).then_some(path);
    }
    let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(state.join("sapwood/history"))
}

/// Whether all of a text can be kept: it is not blank, and its commands are good and say no password.
fn is_kept(text: &str) -> bool {
    let is_good = |line: &[u8]| words::split(line).is_ok_and(|words| !has_secrets(&words));
    let mut pieces = line::pieces(text.as_bytes()).into_iter();
    !text.trim().is_empty()
        && pieces.all(|(language, piece)| language != Language::Command || is_good(&piece))
}

/// Whether a command says a password.
pub(crate) fn has_secrets(words: &[Vec<u8>]) -> bool {
    let is = |at: usize, name: &str| {
        words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
    };
    let mentions = |name: &[u8]| {
        let lower = |word: &Vec<u8>| word.to_ascii_lowercase();
        words.iter().map(lower).any(|word| word.windows(name.len()).any(|part| part == name))
    };
    is(0, "auth")
        || is(0, "hello") && mentions(b"auth")
        || is(0, "acl") && is(1, "setuser")
        || is(0, "config") && is(1, "set") && (mentions(b"pass") || mentions(b"auth"))
        || is(0, "migrate") && mentions(b"auth")
}

/// What helps while a line is typed.
struct Assistant {
    catalog: Rc<Catalog>,
    conversation: Rc<RefCell<Conversation>>,
    statements: Statements,
    /// The lines of the statement before the one that is typed.
    above: String,
    colours: Colours,
}

impl Helper for Assistant {}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let (before, behind) = line.split_at(pos);
        let line = Line { above: &self.above, before, behind };
        Ok(completion::complete(&self.catalog, &self.statements, line, || self.tables()))
    }
}

impl Assistant {
    /// The tables that there are, if the other side can say it now.
    fn tables(&self) -> Vec<String> {
        let Ok(mut conversation) = self.conversation.try_borrow_mut() else { return Vec::new() };
        if conversation.is_in_transaction {
            return Vec::new();
        }
        let cancel = Cancel::new();
        let late = cancel.clone();
        thread::spawn(move || {
            thread::sleep(TABLES_PATIENCE);
            late.cancel();
        });
        match conversation.call(&[b"SW.LIST".to_vec()], &cancel) {
            Ok(Value::Array(names)) => {
                names.iter().filter_map(Value::bytes).map(table_name).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<String> {
        let is_at_end = pos == line.len() && self.above.is_empty();
        if is_at_end { completion::hint(&self.catalog, line) } else { None }
    }
}

impl Highlighter for Assistant {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        match self.colours {
            Colours::On => Cow::Owned(format!("\x1b[1m{prompt}\x1b[0m")),
            Colours::Off => Cow::Borrowed(prompt),
        }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        match self.colours {
            Colours::On => Cow::Owned(format!("\x1b[90m{hint}\x1b[0m")),
            Colours::Off => Cow::Borrowed(hint),
        }
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        // The lines of a statement are read one by one.
        let line = context.input().as_bytes();
        let is_command = self.above.is_empty() && line::language(line) == Language::Command;
        Ok(match is_command && words::split(line) == Err(Unfinished::Open) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_noticed() {
        for line in [
            "auth secret",
            "AUTH user secret",
            "hello 3 auth u p",
            "acl setuser u >p",
            "config set requirepass p",
            "CONFIG SET masterauth p",
            "migrate h 1 k 0 9 auth p",
        ] {
            let words = words::split(line.as_bytes()).expect("words");
            assert!(has_secrets(&words), "{line}");
        }
        for line in ["get auth", "hello 3", "acl whoami", "config set maxmemory 1", ""] {
            let words = words::split(line.as_bytes()).expect("words");
            assert!(!has_secrets(&words), "{line}");
        }
        for text in ["select 'it''s';", "get a", ".tables", "select 1; get a"] {
            assert!(is_kept(text), "{text}");
        }
        for text in ["", " ", "get \"a\"b", "select 1; auth secret", "auth secret"] {
            assert!(!is_kept(text), "{text}");
        }
    }

    #[test]
    fn history_lies_in_the_state_of_the_user() {
        let path = |variables: &[(&str, &str)]| {
            let variables = variables.to_vec();
            history_path(move |name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| PathBuf::from(value))
            })
        };
        assert_eq!(path(&[]), None);
        assert_eq!(path(&[("HOME", "/h")]), Some("/h/.local/state/sapwood/history".into()));
        let state = [("HOME", "/h"), ("XDG_STATE_HOME", "/s")];
        assert_eq!(path(&state), Some("/s/sapwood/history".into()));
        assert_eq!(path(&[("HOME", "/h"), ("SAPWOOD_HISTORY", "")]), None);
        assert_eq!(path(&[("HOME", "/h"), ("SAPWOOD_HISTORY", "/x")]), Some("/x".into()));
    }
}

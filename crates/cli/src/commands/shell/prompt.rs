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

use super::catalog::{Catalog, OWN};
use super::conversation::Conversation;
use super::value::Value;
use super::words::{self, Unfinished};

/// How long the other side may take to say which tables there are.
const TABLES_PATIENCE: Duration = Duration::from_secs(1);

/// A line that was typed, or the reason why there is none.
#[derive(Debug)]
pub(crate) enum Typed {
    Line(String),
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
    /// An editor that completes names of commands and of tables.
    ///
    /// # Errors
    /// Without a terminal.
    pub(crate) fn new(
        catalog: Rc<Catalog>,
        conversation: Rc<RefCell<Conversation>>,
        colours: Colours,
    ) -> rustyline::Result<Prompt> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .history_ignore_space(true)
            .auto_add_history(false)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Assistant { catalog, conversation, colours }));
        let history = history_path(|name| std::env::var_os(name).map(PathBuf::from));
        if let Some(path) = &history {
            // The first time there is none.
            let _ = editor.load_history(path);
        }
        Ok(Prompt { editor, history })
    }

    /// The next line, which goes over several while a quote is open.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(crate) fn read(&mut self, label: &str) -> rustyline::Result<Typed> {
        match self.editor.readline(&format!("{label}> ")) {
            Ok(line) => Ok(Typed::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Typed::Cancelled),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(error) => Err(error),
        }
    }

    /// Keeps a line for later runs too, if it says no password.
    pub(crate) fn remember(&mut self, line: &str) {
        let is_kept = words::split(line.as_bytes()).is_ok_and(|words| !has_secrets(&words));
        if !is_kept || line.trim().is_empty() {
            return;
        }
        // A line that is not remembered is typed again.
        let _ = self.editor.add_history_entry(line);
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
        Ok(complete(&self.catalog, &line[..pos], || self.tables()))
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

/// A name as it is typed.
fn table_name(name: &[u8]) -> String {
    match words::split(name) {
        Ok(words) if words == [name] && name.is_ascii() => words::text(name),
        _ => words::quote(name),
    }
}

/// Where the last word of a line begins, and what it could be.
fn complete(
    catalog: &Catalog,
    line: &str,
    tables: impl FnOnce() -> Vec<String>,
) -> (usize, Vec<String>) {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let typed = &line[start..];
    let mut before: Vec<String> = line[..start].split_whitespace().map(str::to_owned).collect();
    let is_help = before.first().is_some_and(|word| word.eq_ignore_ascii_case("help"));
    let first = before.first().map_or("", String::as_str);
    let mut words: Vec<String> = match first {
        "\\output" => ["table", "json", "csv"].map(str::to_owned).into(),
        "\\timing" => ["on", "off"].map(str::to_owned).into(),
        _ => Vec::new(),
    };
    let is_of_table = first.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case("sw."));
    if is_of_table && before.len() == 1 {
        words = tables();
        words.retain(|word| word.starts_with(typed));
        return (start, words);
    }
    if before.is_empty() {
        words.extend(OWN.iter().map(|(name, ..)| (*name).to_owned()));
    }
    if is_help {
        before.remove(0);
    }
    words.extend(catalog.words_behind(&before).into_iter().map(str::to_owned));
    words.retain(|word| {
        word.get(..typed.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(typed))
    });
    // Letters stay as large as they were typed.
    if typed.contains(char::is_lowercase) && !typed.contains(char::is_uppercase) {
        words.iter_mut().for_each(|word| word.make_ascii_lowercase());
    }
    (start, words)
}

/// The arguments that a line has not got yet.
fn hint(catalog: &Catalog, line: &str) -> Option<String> {
    if !line.ends_with(' ') {
        return None;
    }
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let entry = catalog.of_words(&words)?;
    let given = words.len() - entry.name.split(' ').count();
    let parts: Vec<&str> = entry.syntax.split(' ').collect();
    let is_optional = |part: &&str| part.starts_with(['[', '<']);
    let needed = parts.iter().position(is_optional).unwrap_or(parts.len());
    let rest = parts.get(given.min(needed)..)?.join(" ");
    // Behind what must be there, what may be there has no fixed place.
    (!rest.is_empty() && given <= needed).then_some(rest)
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<String> {
        if pos == line.len() { hint(&self.catalog, line) } else { None }
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
        Ok(match words::split(context.input().as_bytes()) {
            Err(Unfinished::Open) => ValidationResult::Incomplete,
            _ => ValidationResult::Valid(None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> (usize, Vec<String>) {
        let tables = || vec!["flights".to_owned(), "Events".to_owned()];
        complete(&Catalog::built_in(), line, tables)
    }

    #[test]
    fn names_are_completed_as_they_are_typed() {
        for (line, start, words) in [
            ("getr", 0, &["getrange"][..]),
            ("GETR", 0, &["GETRANGE"]),
            ("client ki", 7, &["kill"]),
            ("CLIENT KI", 7, &["KILL"]),
            ("help getr", 5, &["getrange"]),
            ("help client ki", 12, &["kill"]),
            ("\\ou", 0, &["\\output"]),
            ("\\output j", 8, &["json"]),
            ("\\timing o", 8, &["on", "off"]),
            ("sw.get f", 7, &["flights"]),
            ("SW.GET ", 7, &["flights", "Events"]),
            ("get f", 4, &[]),
            ("sw.get flights f", 15, &[]),
        ] {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(completed(line), (start, words), "{line}");
        }
        assert!(completed("").1.contains(&"SET".to_owned()));
    }

    #[test]
    fn hints_are_the_arguments_that_are_left() {
        let catalog = Catalog::built_in();
        for (line, rest) in [
            ("getrange ", Some("key start end")),
            ("getrange a ", Some("start end")),
            ("getrange a 1 2 ", None),
            ("getrange", None),
            ("unknown ", None),
            ("ping ", Some("[message]")),
            ("ping a ", None),
        ] {
            assert_eq!(hint(&catalog, line).as_deref(), rest, "{line}");
        }
    }

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

    #[test]
    fn names_of_tables_are_quoted_where_they_must_be() {
        assert_eq!(table_name(b"flights"), "flights");
        assert_eq!(table_name(b"two words"), "\"two words\"");
        assert_eq!(table_name(b"\xff"), "\"\\xff\"");
    }
}

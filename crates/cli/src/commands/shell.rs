//! `sapwood shell`: commands to a server, or to a database in this process, and statements of SQL.
//!
//! | module | holds |
//! |---|---|
//! | `line` | the languages of lines, and where statements end |
//! | `file_columns` | columns of files, for completion |
//! | `statements` | statements of SQL |
//! | `own` | commands of the shell that begin with a dot |
//! | `words` | the words of a command, and their quotes |
//! | `value` | replies as values |
//! | `place`, `address` | the directory or the server that the arguments name |
//! | `link` | a way for bytes, with `in_process` and `remote` |
//! | `conversation` | requests and their replies |
//! | `catalog` | the commands that there are |
//! | `show` | replies as text, JSON or CSV |
//! | `prompt` | lines from a person |
//! | `completion`, `vocabulary` | the words that a line may go on with |
//! | `signals` | Ctrl-C, and signals to end |

mod address;
mod catalog;
mod completion;
mod conversation;
mod file_columns;
mod in_process;
mod line;
mod link;
mod own;
mod place;
mod prompt;
mod remote;
mod show;
mod signals;
mod statements;
mod value;
mod vocabulary;
mod words;

use std::cell::RefCell;
use std::io::{self, BufRead, IsTerminal};
use std::rc::Rc;
use std::time::{Duration, Instant};

use sapwood::aggregate::Cancel;
use sapwood::schema::nearest;

use crate::args::{self, Form};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{escaped, time};
use crate::terminal::stderr;
use crate::terminal::ui::{Answers, Ui};

use catalog::Catalog;
use conversation::{Conversation, Failed};
use line::{Language, Pieces};
use place::Opened;
use prompt::{Colours, Prompt, Typed};
use show::Reader;
use signals::{Signals, Stopped};
use statements::Statements;
use value::Value;

/// Beyond this a person is told how long a reply took.
const LONG: Duration = Duration::from_millis(500);
/// How often the shell looks whether messages are still wanted.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &args::Shell, ui: &Ui) -> Outcome {
    let is_person = args.commands.is_empty() && io::stdin().is_terminal();
    let Opened { target, local, directory } = place::open(args, ui)?;
    let db = local.as_ref().map(|(db, _)| db.clone());
    let statements = Statements::over(db.clone(), directory);
    let stopped = if is_person { Stopped::Command } else { Stopped::Run };
    let signals = Signals::listen(stopped, db)
        .map_err(|error| Failure::Failed(format!("signals cannot be heard: {error}")))?;
    let is_terminal = io::stdout().is_terminal();
    let form = match (args.output, ui.answers) {
        (Some(form), _) => form,
        (None, Answers::Json) => Form::Json,
        (None, Answers::Text) => Form::Table,
    };
    let mut shell = Shell {
        is_local: local.is_some(),
        conversation: Rc::new(RefCell::new(Conversation::new(target))),
        catalog: None,
        statements,
        signals,
        ui,
        form,
        timing: if args.timing { Timing::Each } else { Timing::Long },
        has_plans: false,
        reader: if is_terminal { Reader::Person } else { Reader::Program },
        colours: if ui.has_colours() { Colours::On } else { Colours::Off },
        is_person,
        refusals: 0,
    };
    let outcome = match is_person {
        true => shell.converse(),
        false if args.commands.is_empty() => shell.run_input(),
        false => shell.run_lines(&args.commands),
    };
    let refusals = shell.refusals;
    drop(shell);
    if let Some((db, housekeeping)) = local {
        drop(housekeeping);
        db.close()?;
    }
    outcome?;
    // A person has seen them.
    if refusals > 0 && !is_person { Err(Failure::Said) } else { Ok(()) }
}

/// Which replies have their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timing {
    Each,
    /// Those for which a person has waited.
    Long,
    None,
}

/// Whether another line is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    End,
}

struct Shell<'u> {
    conversation: Rc<RefCell<Conversation>>,
    /// Whether the other side is in this process, with this program's commands.
    is_local: bool,
    catalog: Option<Rc<Catalog>>,
    statements: Statements,
    signals: Signals,
    ui: &'u Ui,
    form: Form,
    timing: Timing,
    /// Whether the plan of a select is shown before its answer.
    has_plans: bool,
    reader: Reader,
    colours: Colours,
    /// Whether lines are typed.
    is_person: bool,
    /// Replies that were errors.
    refusals: u64,
}

impl Shell<'_> {
    /// Lines from a person, until Ctrl-D.
    fn converse(&mut self) -> Outcome {
        let cancel = self.signals.begin();
        if let Some(refusal) = self.conversation.borrow_mut().open(&cancel)? {
            self.say_error(&refusal);
        }
        let catalog = self.catalog();
        let conversation = Rc::clone(&self.conversation);
        let failed = |error| Failure::Failed(format!("the terminal cannot be used: {error}"));
        let mut prompt = Prompt::new(catalog, conversation, self.statements.clone(), self.colours)
            .map_err(failed)?;
        self.ui.notice("`.help` says what there is; statements of SQL end with `;`; Ctrl-D ends.");
        loop {
            let label = self.conversation.borrow().label();
            match prompt.read(&label).map_err(failed)? {
                Typed::End => return Ok(()),
                Typed::Cancelled => continue,
                Typed::Text(text) => {
                    prompt.remember(&text);
                    if self.execute_all(text.as_bytes())? == Then::End {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn run_lines(&mut self, lines: &[String]) -> Outcome {
        for line in lines {
            if self.execute_all(line.as_bytes())? == Then::End {
                break;
            }
        }
        Ok(())
    }

    /// Lines of standard input; a statement goes over lines up to its `;`, a command while a quote is open.
    fn run_input(&mut self) -> Outcome {
        let mut input = io::stdin().lock();
        let mut pieces = Pieces::default();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = input.read_until(b'\n', &mut line).map_err(|error| {
                Failure::Failed(format!("standard input cannot be read: {error}"))
            })?;
            pieces.push(&line);
            let is_end = read == 0;
            let mut next = || pieces.next().or_else(|| if is_end { pieces.rest() } else { None });
            while let Some((language, piece)) = next() {
                if self.execute(language, &piece)? == Then::End {
                    return Ok(());
                }
            }
            if is_end {
                return Ok(());
            }
        }
    }

    /// Executes all pieces of a text.
    fn execute_all(&mut self, text: &[u8]) -> Outcome<Then> {
        for (language, piece) in line::pieces(text) {
            if self.execute(language, &piece)? == Then::End {
                return Ok(Then::End);
            }
        }
        Ok(Then::GoOn)
    }

    fn execute(&mut self, language: Language, piece: &[u8]) -> Outcome<Then> {
        match (language, std::str::from_utf8(piece)) {
            (Language::Nothing, _) => Ok(Then::GoOn),
            (Language::Command, _) => self.command(piece),
            (Language::Own, Ok(line)) => self.own(line),
            (Language::Statement, Ok(text)) => self.statement(text).map(|()| Then::GoOn),
            (_, Err(_)) => self.refuse("the line is not UTF-8").map(|()| Then::GoOn),
        }
    }

    /// Executes a command.
    fn command(&mut self, line: &[u8]) -> Outcome<Then> {
        let Ok(words) = words::split(line) else {
            self.refusals += 1;
            self.say_error("Invalid argument(s)");
            return Ok(Then::GoOn);
        };
        let Some(first) = words.first() else { return Ok(Then::GoOn) };
        let first = words::text(first).to_ascii_lowercase();
        match first.as_str() {
            "help" | "?" => self.help(&words[1..])?,
            "exit" | "\\quit" | "\\q" => return Ok(Then::End),
            _ if first.starts_with('\\') => self.set(&first, &words[1..]),
            _ => return self.call(&words),
        }
        Ok(Then::GoOn)
    }

    fn help(&mut self, names: &[Vec<u8>]) -> Outcome {
        let names: Vec<_> = names.iter().map(|name| words::text(name)).collect();
        let name = names.join(" ");
        let catalog = self.catalog();
        let text = if name.is_empty() { Some(catalog.overview()) } else { catalog.help(&name) };
        match text {
            Some(text) => self.ui.print(|out| io::Write::write_all(out, text.as_bytes())),
            None => {
                self.refusals += 1;
                self.say_error(&format!("no command is called {}", words::quote(name.as_bytes())));
                Ok(())
            }
        }
    }

    /// Changes a choice of the shell.
    fn set(&mut self, name: &str, values: &[Vec<u8>]) {
        let value = values.first().map(|value| words::text(value).to_ascii_lowercase());
        match (name, value.as_deref()) {
            ("\\output", Some(name)) if own::mode(name).is_some() => {
                self.form = own::mode(name).unwrap_or(self.form);
            }
            ("\\timing", Some("on")) => self.timing = Timing::Each,
            ("\\timing", Some("off")) => self.timing = Timing::None,
            ("\\timing", None) => {
                self.timing = match self.timing {
                    Timing::Each => Timing::None,
                    Timing::Long | Timing::None => Timing::Each,
                }
            }
            _ => {
                self.refusals += 1;
                self.say_error(
                    "\\output table|json|csv|markdown, \\timing on|off and \\quit are known",
                );
            }
        }
    }

    fn call(&mut self, words: &[Vec<u8>]) -> Outcome<Then> {
        let cancel = self.begin();
        let begun = Instant::now();
        let called = self.conversation.borrow_mut().call(words, &cancel);
        let messages = self.conversation.borrow_mut().kept_messages();
        self.show_all(&messages)?;
        match called {
            // The messages were the answer.
            Ok(Value::Push(_)) => {
                if conversation::is_subscription(words) {
                    self.listen(&cancel)?;
                }
            }
            Ok(reply) => {
                self.show(&reply)?;
                if let Some(near) = nearest_word(words, &reply) {
                    self.ui.notice(format_args!("did you mean {near}?"));
                }
                self.show_time(begun.elapsed())?;
            }
            Err(failed) => self.fail(failed)?,
        }
        Ok(if self.conversation.borrow().is_ended { Then::End } else { Then::GoOn })
    }

    fn begin(&self) -> Cancel {
        if self.is_person { self.signals.begin() } else { self.signals.whole() }
    }

    /// Shows messages as they come, until Ctrl-C.
    fn listen(&mut self, cancel: &Cancel) -> Outcome {
        if self.is_person {
            self.ui.notice("Waiting for messages; Ctrl-C ends it.");
        }
        while !cancel.is_cancelled() {
            let came = self.conversation.borrow_mut().messages(LOOK);
            match came {
                Ok(messages) => self.show_all(&messages)?,
                Err(failed) => return self.fail(failed),
            }
        }
        match self.is_person {
            true => Ok(()),
            false => Err(Failure::Interrupted("no more messages are shown".to_owned())),
        }
    }

    /// A person may go on after a failure.
    fn fail(&mut self, failed: Failed) -> Outcome {
        match (failed, self.is_person) {
            (Failed::Cancelled(why), true) => stderr::line(why),
            (Failed::Lost(why), true) => self.say_error(&why),
            (failed, false) => return Err(failed.into()),
        }
        Ok(())
    }

    fn show_all(&mut self, messages: &[Value]) -> Outcome {
        messages.iter().try_for_each(|message| self.show(message))
    }

    fn show(&mut self, reply: &Value) -> Outcome {
        if let Value::Error(text) = reply {
            self.refusals += 1;
            if self.form != Form::Json {
                self.say_error(&words::text(text));
                return Ok(());
            }
        }
        self.ui.print(|out| show::write(reply, self.form, self.reader, out))
    }

    fn show_time(&self, taken: Duration) -> Outcome {
        let is_shown = match self.timing {
            Timing::Each => true,
            Timing::Long => self.is_person && taken > LONG,
            Timing::None => false,
        };
        if is_shown {
            // Beside the replies, which may go into a file.
            stderr::line(format_args!("({})", time(taken)));
        }
        Ok(())
    }

    /// Says what is wrong with a line.
    fn refuse(&mut self, what: &str) -> Outcome {
        self.refusals += 1;
        if self.form == Form::Json {
            return self.ui.print_json(&serde_json::json!({ "error": what }));
        }
        self.say_error(what);
        Ok(())
    }

    fn say_error(&self, text: &str) {
        // An error of SQL has several lines.
        let lines: Vec<_> = text.split('\n').map(escaped).collect();
        let text = lines.join("\n");
        match self.colours {
            Colours::On => stderr::line(format_args!("\x1b[31m(error)\x1b[0m {text}")),
            Colours::Off => stderr::line(format_args!("(error) {text}")),
        }
    }

    /// The commands that the other side has; asked for once.
    fn catalog(&mut self) -> Rc<Catalog> {
        if let Some(catalog) = &self.catalog {
            return Rc::clone(catalog);
        }
        let docs = match self.is_local {
            true => None,
            false => {
                let words = [b"COMMAND".to_vec(), b"DOCS".to_vec()];
                let mut conversation = self.conversation.borrow_mut();
                conversation.call(&words, &self.begin()).ok()
            }
        };
        let told = docs.as_ref().and_then(Catalog::of_docs);
        let catalog = Rc::new(told.unwrap_or_else(Catalog::built_in));
        self.catalog = Some(Rc::clone(&catalog));
        catalog
    }
}

/// The statement or the command that may be meant, where the other side knows none that begins so.
fn nearest_word(words: &[Vec<u8>], reply: &Value) -> Option<String> {
    let Value::Error(text) = reply else { return None };
    if !text.starts_with(b"ERR unknown command") {
        return None;
    }
    let word = words::text(words.first()?);
    if let Some(near) = nearest(&word, line::STATEMENTS.iter().map(|(name, _)| *name)) {
        return Some(format!("`{near}`, with which a statement of SQL begins"));
    }
    let catalog = Catalog::built_in();
    nearest(&word, catalog.words_behind(&[])).map(|near| format!("`{near}`"))
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Failure {
        match failed {
            Failed::Cancelled(why) => Failure::Interrupted(why.to_owned()),
            Failed::Lost(why) => Failure::Failed(why),
        }
    }
}

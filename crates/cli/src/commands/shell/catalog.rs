//! The commands that there are, for help, hints and completion.

use std::fmt::Write;

use sapwood_server::command::{self, Command};

use super::line::{STATEMENTS, statement};
use super::value::Value;

/// Commands of the shell itself, with their arguments and what they do.
pub(crate) const OWN: &[(&str, &str, &str)] = &[
    (".tables", "[TEXT]", "Names the tables, or those whose names contain a text."),
    (".schema", "[TABLE]", "Shows the statements that make tables like those that are there."),
    (".mode", "table|csv|json|markdown", "Chooses the form of answers and replies."),
    (".timer", "on|off", "Chooses whether each answer has its time."),
    (
        ".import",
        "FILE TABLE",
        "Puts the rows of a file into a table, which it makes if there is none.",
    ),
    (".explain", "on|off|STATEMENT", "Shows the plan of each select before its answer, or of one."),
    (".help", "[command | @group]", "Says what a command does, as `help`."),
    (".quit", "", "Ends the shell, as `.exit` and Ctrl-D do."),
    ("help", "[command | @group]", "Says what a command does."),
    ("\\output", "table | json | csv | markdown", "The same as `.mode`."),
    ("\\timing", "on | off", "The same as `.timer`."),
    ("\\quit", "", "The same as `.quit`."),
];

/// A command, or a subcommand, of the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its name in capitals; a blank stands before that of a subcommand.
    pub(crate) name: String,
    pub(crate) syntax: String,
    pub(crate) summary: String,
    pub(crate) since: String,
    pub(crate) group: String,
}

/// Commands by name.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    entries: Vec<Entry>,
}

impl Catalog {
    /// Those of this program.
    pub(crate) fn built_in() -> Catalog {
        let with_subcommands =
            command::all().flat_map(|command| std::iter::once(command).chain(command.subcommands));
        Catalog::of(with_subcommands.map(entry).collect())
    }

    /// Those in the reply to `COMMAND DOCS`; `None` if it is none.
    pub(crate) fn of_docs(docs: &Value) -> Option<Catalog> {
        let mut entries = Vec::new();
        for (name, about) in pairs(docs)? {
            push_docs(name, about, &mut entries);
        }
        // Where one side says less than this program, this program's words stand.
        let own = Catalog::built_in();
        for entry in &mut entries {
            if let Some(known) = own.find(&entry.name)
                && entry.syntax.is_empty()
            {
                entry.syntax.clone_from(&known.syntax);
            }
        }
        (!entries.is_empty()).then(|| Catalog::of(entries))
    }

    fn of(mut entries: Vec<Entry>) -> Catalog {
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Catalog { entries }
    }

    /// The command of a name.
    pub(crate) fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
    }

    /// The command that words begin with: a subcommand before the command that has it.
    pub(crate) fn of_words(&self, words: &[String]) -> Option<&Entry> {
        let two = words.get(..2).and_then(|two| self.find(&two.join(" ")));
        two.or_else(|| self.find(words.first()?))
    }

    /// The words that may stand at a place where others stand before it: names of commands, or of
    /// subcommands.
    pub(crate) fn words_behind(&self, before: &[String]) -> Vec<&str> {
        let mut words: Vec<&str> = match before {
            [] => self.entries.iter().filter_map(|entry| entry.name.split(' ').next()).collect(),
            [of] => self.subcommands(of).collect(),
            _ => Vec::new(),
        };
        words.dedup();
        words
    }

    fn subcommands(&self, of: &str) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(move |entry| {
            let (container, name) = entry.name.split_once(' ')?;
            container.eq_ignore_ascii_case(of).then_some(name)
        })
    }

    /// The groups, and how to ask for more.
    pub(crate) fn overview(&self) -> String {
        let mut text = String::new();
        for (name, syntax, summary) in OWN {
            let head = format!("{name} {syntax}");
            let _ = writeln!(text, "{head:40}{summary}");
        }
        let statements = "\nStatements of SQL go over lines and end with `;`. They begin with";
        let words: Vec<_> = STATEMENTS.iter().map(|(word, _)| *word).collect();
        let _ = writeln!(text, "{statements}: {}.", words.join(" "));
        let mut groups: Vec<&str> = self.entries.iter().map(|entry| &entry.group[..]).collect();
        groups.sort_unstable();
        groups.dedup();
        let groups: Vec<_> = groups.iter().map(|group| format!("@{group}")).collect();
        let _ = writeln!(text, "\nGroups of commands: {}", groups.join(" "));
        text
    }

    /// What there is to say of a command, of a group behind an `@`, or of the names that begin so.
    pub(crate) fn help(&self, name: &str) -> Option<String> {
        if let Some(group) = name.strip_prefix('@') {
            let of_group = |entry: &&Entry| entry.group.eq_ignore_ascii_case(group);
            return listing(self.entries.iter().filter(of_group));
        }
        let plain = name.trim_start_matches(['\\', '.']);
        if let Some((name, syntax, summary)) = OWN
            .iter()
            .find(|(own, ..)| own.trim_start_matches(['\\', '.']).eq_ignore_ascii_case(plain))
        {
            return Some(format!("{name} {syntax}\n  {summary}\n"));
        }
        if let Some((word, syntax)) = statement(name) {
            let command =
                self.command_help(name).map_or_else(String::new, |text| format!("\n{text}"));
            return Some(format!("{word} {syntax}\n  A statement of SQL.\n{command}"));
        }
        self.command_help(name).or_else(|| {
            let begins = |entry: &&Entry| {
                entry.name.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name))
            };
            listing(self.entries.iter().filter(begins))
        })
    }

    fn command_help(&self, name: &str) -> Option<String> {
        let entry = self.find(name)?;
        let mut text = format!("{} {}", entry.name, entry.syntax).trim_end().to_owned();
        let _ = write!(text, "\n  {}\n", entry.summary);
        let _ = writeln!(text, "  group {}, since {}", entry.group, entry.since);
        let of_it =
            self.entries.iter().filter(|it| it.name.starts_with(&format!("{} ", entry.name)));
        if let Some(subcommands) = listing(of_it) {
            let _ = write!(text, "\n{subcommands}");
        }
        Some(text)
    }
}

fn listing<'e>(entries: impl Iterator<Item = &'e Entry>) -> Option<String> {
    let mut text = String::new();
    for entry in entries {
        let _ = writeln!(text, "{:20}  {}", entry.name, entry.summary);
    }
    (!text.is_empty()).then_some(text)
}

fn entry(command: &Command) -> Entry {
    Entry {
        name: command.name.replace('|', " ").to_uppercase(),
        syntax: command.syntax.to_owned(),
        summary: command.summary.to_owned(),
        since: command.since.to_owned(),
        group: command.group.to_owned(),
    }
}

/// Keys and values, in either version of the protocol.
fn pairs(value: &Value) -> Option<Vec<(&Value, &Value)>> {
    match value {
        Value::Map(pairs) => Some(pairs.iter().map(|(key, value)| (key, value)).collect()),
        Value::Array(values) => {
            Some(values.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect())
        }
        _ => None,
    }
}

fn push_docs(name: &Value, about: &Value, entries: &mut Vec<Entry>) {
    let Some(name) = name.bytes() else { return };
    let said = |field| {
        about.field(field).and_then(Value::bytes).map_or_else(String::new, super::words::text)
    };
    entries.push(Entry {
        name: super::words::text(name).replace('|', " ").to_uppercase(),
        syntax: match said("syntax") {
            said if said.is_empty() => about.field("arguments").map_or_else(String::new, syntax),
            said => said,
        },
        summary: said("summary"),
        since: said("since"),
        group: said("group"),
    });
    for (name, about) in about.field("subcommands").and_then(pairs).unwrap_or_default() {
        push_docs(name, about, entries);
    }
}

/// Arguments as documentation writes them.
fn syntax(arguments: &Value) -> String {
    syntax_of(arguments, " ")
}

fn syntax_of(arguments: &Value, between: &str) -> String {
    let Value::Array(arguments) = arguments else { return String::new() };
    arguments.iter().map(argument).collect::<Vec<_>>().join(between)
}

fn argument(argument: &Value) -> String {
    let said = |field| argument.field(field).and_then(Value::bytes).map(super::words::text);
    let flags = match argument.field("flags") {
        Some(Value::Array(flags)) => &flags[..],
        _ => &[],
    };
    let has = |flag: &str| flags.iter().any(|it| it.bytes() == Some(flag.as_bytes()));
    let inner = argument.field("arguments");
    let token = said("token").filter(|token| !token.is_empty());
    let mut text = match said("type").as_deref() {
        Some("oneof") => match inner {
            Some(inner) if has("optional") || token.is_some() => syntax_of(inner, " | "),
            Some(inner) => format!("<{}>", syntax_of(inner, " | ")),
            None => String::new(),
        },
        Some("block") => inner.map_or_else(String::new, |inner| syntax_of(inner, " ")),
        Some("pure-token") => String::new(),
        _ => said("display_text").or_else(|| said("name")).unwrap_or_default(),
    };
    let words = |text: &str| match &token {
        Some(token) if text.is_empty() => token.clone(),
        Some(token) => format!("{token} {text}"),
        None => text.to_owned(),
    };
    if has("multiple") {
        text = match has("multiple_token") {
            true => format!("{} [{} ...]", words(&text), words(&text)),
            false => words(&format!("{text} [{text} ...]")),
        };
    } else {
        text = words(&text);
    }
    if has("optional") { format!("[{text}]") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Bulk(text.into())
    }

    fn map(pairs: &[(&str, Value)]) -> Value {
        Value::Map(pairs.iter().map(|(key, value)| (text(key), value.clone())).collect())
    }

    fn flags(flags: &[&str]) -> Value {
        Value::Array(flags.iter().map(|flag| text(flag)).collect())
    }

    #[test]
    fn arguments_are_written_as_documentation_has_them() {
        let plain = |name: &str| map(&[("name", text(name)), ("type", text("string"))]);
        let token = |name: &str| {
            map(&[("name", text(name)), ("type", text("pure-token")), ("token", text(name))])
        };
        let arguments = Value::Array(vec![
            plain("key"),
            map(&[
                ("name", text("condition")),
                ("type", text("oneof")),
                ("flags", flags(&["optional"])),
                ("arguments", Value::Array(vec![token("NX"), token("XX")])),
            ]),
            map(&[
                ("name", text("count")),
                ("type", text("integer")),
                ("token", text("COUNT")),
                ("flags", flags(&["optional"])),
            ]),
            map(&[
                ("name", text("data")),
                ("type", text("block")),
                ("flags", flags(&["multiple"])),
                ("arguments", Value::Array(vec![plain("field"), plain("value")])),
            ]),
            map(&[
                ("name", text("of")),
                ("type", text("oneof")),
                ("arguments", Value::Array(vec![token("A"), token("B")])),
            ]),
        ]);
        let written = "key [NX | XX] [COUNT count] field value [field value ...] <A | B>";
        assert_eq!(syntax(&arguments), written);
        let docs = map(&[(
            "x",
            map(&[
                ("summary", text("Does x.")),
                ("group", text("string")),
                ("arguments", arguments),
                ("subcommands", map(&[("x|y", map(&[("summary", text("Does y."))]))])),
            ]),
        )]);
        let catalog = Catalog::of_docs(&docs).expect("docs");
        let help = catalog.help("x").expect("help");
        assert!(help.starts_with(&format!("X {written}\n  Does x.\n")), "{help}");
        assert!(help.ends_with("X Y                   Does y.\n"), "{help}");
        assert_eq!(catalog.words_behind(&["x".to_owned()]), ["Y"]);
        assert!(Catalog::of_docs(&Value::Error("ERR".into())).is_none());
    }

    #[test]
    fn commands_of_this_program_have_help() {
        let catalog = Catalog::built_in();
        let help = catalog.help("set").expect("help");
        assert!(help.starts_with("SET key value"), "{help}");
        assert!(catalog.help("@string").expect("help").contains("GETRANGE"));
        assert!(catalog.help("getr").expect("help").contains("GETRANGE"));
        assert!(catalog.help("output").expect("help").contains("json"));
        assert!(catalog.help("no-such-command").is_none());
        let words = ["client".to_owned(), "kill".to_owned()];
        assert_eq!(catalog.of_words(&words).expect("it").name, "CLIENT KILL");
        assert!(catalog.overview().contains("@string"));
        assert!(catalog.words_behind(&[]).contains(&"GET"));
        assert!(catalog.words_behind(&["CLIENT".to_owned()]).contains(&"KILL"));
    }
}

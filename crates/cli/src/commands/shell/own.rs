//! Commands of the shell that begin with a dot.

use std::io;

use crate::args::Form;
use crate::terminal::exit::Outcome;
use crate::terminal::format::escaped;

use super::statements::{name, text};
use super::value::Value;
use super::{Shell, Then, Timing, show, words};

/// A command of the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Own {
    Help(Vec<Vec<u8>>),
    /// The names of tables that contain a text.
    Tables(String),
    /// The statements that make tables: of one, or of all.
    Schema(Option<String>),
    Mode(Option<Form>),
    Timer(Option<bool>),
    /// Plans before answers.
    Plans(bool),
    /// The plan of a statement alone.
    Explain(String),
    Import {
        file: String,
        table: String,
    },
    Quit,
}

/// The choices of `.mode`.
pub(crate) const MODES: &[(&str, Form)] = &[
    ("table", Form::Table),
    ("csv", Form::Csv),
    ("json", Form::Json),
    ("markdown", Form::Markdown),
];

/// The form of a name.
pub(crate) fn mode(name: &str) -> Option<Form> {
    let found = MODES.iter().find(|(mode, _)| mode.eq_ignore_ascii_case(name));
    found.map(|(_, form)| *form)
}

/// The name of a form.
pub(crate) fn mode_name(form: Form) -> &'static str {
    MODES.iter().find(|(_, mode)| *mode == form).map_or("", |(name, _)| name)
}

/// Reads a line.
///
/// # Errors
/// What is expected instead.
pub(crate) fn read(line: &str) -> Result<Own, String> {
    // As users of other shells end it.
    let line = line.trim().trim_end_matches(';').trim_end();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let name = name.to_ascii_lowercase();
    if name == ".explain" {
        return match rest.to_ascii_lowercase().as_str() {
            "on" => Ok(Own::Plans(true)),
            "off" => Ok(Own::Plans(false)),
            "" => Err(".explain on|off|STATEMENT is expected".to_owned()),
            _ => Ok(Own::Explain(rest.to_owned())),
        };
    }
    let arguments = words::split(rest.as_bytes())
        .map_err(|_| format!("a quote is open, or closed in the middle of a word: {rest}"))?;
    if name == ".help" {
        return Ok(Own::Help(arguments));
    }
    let arguments: Vec<String> = arguments.iter().map(|word| words::text(word)).collect();
    match (&name[..], &arguments[..]) {
        (".tables", []) => Ok(Own::Tables(String::new())),
        (".tables", [part]) => Ok(Own::Tables(part.clone())),
        (".schema", []) => Ok(Own::Schema(None)),
        (".schema", [table]) => Ok(Own::Schema(Some(table.clone()))),
        (".mode", []) => Ok(Own::Mode(None)),
        (".mode", [name]) => {
            mode(name).map(|form| Own::Mode(Some(form))).ok_or_else(|| expected(".mode"))
        }
        (".timer", []) => Ok(Own::Timer(None)),
        (".timer", [choice]) => match choice.to_ascii_lowercase().as_str() {
            "on" => Ok(Own::Timer(Some(true))),
            "off" => Ok(Own::Timer(Some(false))),
            _ => Err(expected(".timer")),
        },
        (".import", [file, table]) => Ok(Own::Import { file: file.clone(), table: table.clone() }),
        (".quit" | ".exit" | ".q", []) => Ok(Own::Quit),
        _ => Err(expected(&name)),
    }
}

/// What a command expects, or the commands that there are.
fn expected(name: &str) -> String {
    let mut own = super::catalog::OWN.iter().filter(|(own, ..)| own.starts_with('.'));
    match own.clone().find(|(own, ..)| *own == name) {
        Some((name, syntax, _)) => {
            format!("{name} {syntax}").trim_end().to_owned() + " is expected"
        }
        None => {
            let first = own.next().map_or("", |(name, ..)| name);
            let names = own.fold(first.to_owned(), |text, (name, ..)| text + " " + name);
            format!("no command is called `{name}`: there are {names}")
        }
    }
}

impl Shell<'_> {
    /// Executes a command of the shell.
    pub(super) fn own(&mut self, line: &str) -> Outcome<Then> {
        let own = match read(line) {
            Ok(own) => own,
            Err(what) => {
                self.refuse(&what)?;
                return Ok(Then::GoOn);
            }
        };
        match own {
            Own::Help(names) => self.help(&names)?,
            Own::Tables(part) => return self.tables(&part),
            Own::Schema(table) => self.schema(table)?,
            Own::Mode(Some(form)) => self.form = form,
            Own::Mode(None) => self.say(mode_name(self.form))?,
            Own::Timer(Some(true)) => self.timing = Timing::Each,
            Own::Timer(Some(false)) => self.timing = Timing::None,
            Own::Timer(None) => {
                self.say(if self.timing == Timing::Each { "on" } else { "off" })?;
            }
            Own::Plans(are_shown) => self.has_plans = are_shown,
            Own::Explain(statement) => self.statement(&explained(&statement))?,
            Own::Import { file, table } => self.import(&file, &table)?,
            Own::Quit => return Ok(Then::End),
        }
        Ok(Then::GoOn)
    }

    fn say(&self, text: &str) -> Outcome {
        self.ui.print(|out| io::Write::write_all(out, format!("{text}\n").as_bytes()))
    }

    /// Names tables, one a line; a server is asked for its own.
    fn tables(&mut self, part: &str) -> Outcome<Then> {
        if self.statements.db().is_err() {
            let mut words = vec![b"SW.LIST".to_vec()];
            if !part.is_empty() {
                words.extend([b"MATCH".to_vec(), format!("*{part}*").into_bytes()]);
            }
            return self.call(&words);
        }
        let mut names = self.statements.tables();
        names.retain(|name| name.contains(part));
        if self.form == Form::Table {
            names.iter().try_for_each(|name| self.say(&escaped(name)))?;
        } else {
            let names = names.into_iter().map(|name| Value::Bulk(name.into_bytes())).collect();
            let names = Value::Array(names);
            self.ui.print(|out| show::write(&names, self.form, self.reader, out))?;
        }
        Ok(Then::GoOn)
    }

    fn schema(&mut self, table: Option<String>) -> Outcome {
        let tables = match table {
            Some(table) => vec![table],
            None => self.statements.tables(),
        };
        if let Err(failure) = self.statements.db() {
            return self.fail_statement(failure);
        }
        for table in tables {
            match self.statements.definition(&table) {
                Ok(definition) => self.say(&definition)?,
                Err(failure) => self.fail_statement(failure)?,
            }
        }
        Ok(())
    }

    fn import(&mut self, file: &str, table: &str) -> Outcome {
        let is_there = match self.statements.db() {
            Ok(db) => db.engine(table).is_some(),
            Err(failure) => return self.fail_statement(failure),
        };
        let (table, file) = (name(table), text(file));
        self.statement(&match is_there {
            true => format!("copy {table} from {file}"),
            false => format!("create table {table} as select * from {file}"),
        })
    }
}

/// The statement that shows the plan of another.
pub(crate) fn explained(statement: &str) -> String {
    let begins = statement.get(..8).is_some_and(|begin| begin.eq_ignore_ascii_case("explain "));
    if begins { statement.to_owned() } else { format!("explain {statement}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        let import =
            |file: &str, table: &str| Own::Import { file: file.into(), table: table.into() };
        for (line, expected) in [
            (".tables", Own::Tables(String::new())),
            (".TABLES fli;", Own::Tables("fli".into())),
            (".schema", Own::Schema(None)),
            (".schema \"two words\"", Own::Schema(Some("two words".into()))),
            (".mode", Own::Mode(None)),
            (".mode Markdown", Own::Mode(Some(Form::Markdown))),
            (".timer on", Own::Timer(Some(true))),
            (".timer OFF", Own::Timer(Some(false))),
            (".explain on", Own::Plans(true)),
            (".explain select ' a'", Own::Explain("select ' a'".into())),
            (".explain select\n1;\n", Own::Explain("select\n1".into())),
            (".import 'a b.csv' t", import("a b.csv", "t")),
            (".help mode", Own::Help(vec![b"mode".to_vec()])),
            (".exit", Own::Quit),
        ] {
            assert_eq!(read(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn mistakes_name_what_is_expected() {
        for (line, says) in [
            (".mode xml", ".mode table|csv|json|markdown is expected"),
            (".timer maybe", ".timer on|off is expected"),
            (".explain", "on|off|STATEMENT"),
            (".import a.csv", ".import FILE TABLE is expected"),
            (".quit now", ".quit is expected"),
            (".tabels", "`.tabels`: there are .tables"),
            (".schema 'a", "a quote is open"),
        ] {
            let said = read(line).expect_err(line);
            assert!(said.contains(says), "{said}");
        }
    }
}

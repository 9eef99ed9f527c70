//! The words that the last word of a line could become, and the arguments that a command still expects.

use std::collections::HashSet;

use rustyline::completion::FilenameCompleter;
use sapwood::sql::function_names;

use super::catalog::{Catalog, OWN};
use super::file_columns::named_in;
use super::line::{Language, STATEMENTS, language};
use super::own::MODES;
use super::statements::{Statements, name};
use super::vocabulary::KEYWORDS;
use super::words;

/// A line that is typed, up to its cursor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'l> {
    /// The lines of the statement before it.
    pub(crate) above: &'l str,
    pub(crate) before: &'l str,
    pub(crate) behind: &'l str,
}

/// Where the last word begins, and what it could be. `tables` asks the other side.
pub(crate) fn complete(
    catalog: &Catalog,
    statements: &Statements,
    line: Line<'_>,
    tables: impl FnOnce() -> Vec<String>,
) -> (usize, Vec<String>) {
    let text = format!("{}{}", line.above, line.before);
    let is_first_word = !text.trim_start().contains(|sign: char| !sign.is_alphanumeric());
    match language(text.as_bytes()) {
        Language::Statement if !is_first_word => of_statement(statements, &text, line),
        Language::Own => of_own(statements, line.before),
        _ => of_command(catalog, line.before, tables),
    }
}

/// Of a statement: behind `from` and its like tables, in single quotes files, else columns and words of SQL.
fn of_statement(statements: &Statements, text: &str, line: Line<'_>) -> (usize, Vec<String>) {
    if text.matches('\'').count() % 2 == 1 {
        return files(line.before);
    }
    let is_of_name = |sign: char| sign.is_alphanumeric() || sign == '_';
    let last_word = |text: &str| text[text.trim_end_matches(is_of_name).len()..].to_owned();
    let typed = last_word(text);
    let before = &text[..text.len() - typed.len()];
    let is_typed = |word: &str| {
        let begin = word.get(..typed.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(&typed))
    };
    let named = |names: Vec<String>| {
        let names = names.into_iter().filter(|name| is_typed(name));
        names.map(|known| name(&known)).collect::<Vec<_>>()
    };
    let start = line.before.len() - typed.len();
    if let Some(table) = before.strip_suffix('.') {
        let of_table = statements.columns(&last_word(table));
        let of_files = || of_files(statements, &format!("{text}{}", line.behind));
        // A name of its own stands for a file.
        return (start, named(if of_table.is_empty() { of_files() } else { of_table }));
    }
    let behind = last_word(before.trim_end()).to_lowercase();
    let is_table =
        ["from", "into", "update", "table", "describe", "desc", "summarize", "copy", "join"]
            .contains(&&behind[..]);
    let tables = statements.tables();
    if is_table {
        return (start, named(tables));
    }
    let whole = format!("{text}{}", line.behind);
    // What stands in quotes are files and texts.
    let outside = whole.split('\'').step_by(2);
    let said: HashSet<&str> =
        outside.flat_map(|part| part.split(|sign| !is_of_name(sign))).collect();
    let is_said = |table: &&String| said.contains(&table[..]);
    let mut of: Vec<&String> = tables.iter().filter(is_said).collect();
    let of_files = of_files(statements, &whole);
    if of.is_empty() && of_files.is_empty() {
        of.extend(&tables);
    }
    let of_tables = of.iter().flat_map(|table| statements.columns(table));
    let mut words = named(of_tables.chain(of_files).collect());
    words.sort_unstable();
    words.dedup();
    let is_large = typed.contains(char::is_uppercase) && !typed.contains(char::is_lowercase);
    let of_language = KEYWORDS.iter().map(|word| (*word).to_owned());
    let mut functions: Vec<String> = function_names().map(|word| format!("{word}(")).collect();
    functions.sort_unstable();
    let of_language = of_language.chain(functions).filter(|word| is_typed(word));
    words.extend(of_language.map(|word| if is_large { word.to_uppercase() } else { word }));
    (start, words)
}

/// The columns of the files that a statement names.
fn of_files(statements: &Statements, text: &str) -> Vec<String> {
    let files = named_in(text);
    files.iter().flat_map(|file| statements.columns_of_file(file)).collect()
}

/// Names of files that begin as the last word does, which may be in quotes.
fn files(before: &str) -> (usize, Vec<String>) {
    match FilenameCompleter::new().complete_path(before, before.len()) {
        Ok((start, pairs)) => (start, pairs.into_iter().map(|pair| pair.replacement).collect()),
        Err(_) => (before.len(), Vec::new()),
    }
}

/// Of a command of the shell.
fn of_own(statements: &Statements, before: &str) -> (usize, Vec<String>) {
    let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let typed = &before[start..];
    let given: Vec<&str> = before[..start].split_whitespace().collect();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let mut words: Vec<String> = match given[..] {
        [] => OWN.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        [".mode"] => MODES.iter().map(|(name, _)| (*name).to_owned()).collect(),
        [".timer"] => texts(&["on", "off"]),
        [".explain"] => texts(&["on", "off", "select"]),
        [".schema"] | [".import", _] => {
            statements.tables().iter().map(|name| table_name(name.as_bytes())).collect()
        }
        [".import"] => return files(before),
        _ => Vec::new(),
    };
    words.retain(|word| word.starts_with(typed));
    (start, words)
}

/// A name as it is typed.
pub(crate) fn table_name(name: &[u8]) -> String {
    match words::split(name) {
        Ok(words) if words == [name] && name.is_ascii() => words::text(name),
        _ => words::quote(name),
    }
}

/// Of a command.
fn of_command(
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
        "\\output" => MODES.iter().map(|(name, _)| (*name).to_owned()).collect(),
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
        words.extend(STATEMENTS.iter().map(|(word, _)| word.to_uppercase()));
    }
    if is_help {
        before.remove(0);
    }
    words.extend(catalog.words_behind(&before).into_iter().map(str::to_owned));
    words.sort_unstable();
    words.dedup();
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
pub(crate) fn hint(catalog: &Catalog, line: &str) -> Option<String> {
    if !line.ends_with(' ') || language(line.as_bytes()) != Language::Command {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> (usize, Vec<String>) {
        let tables = || vec!["flights".to_owned(), "Events".to_owned()];
        let line = Line { above: "", before: line, behind: "" };
        complete(&Catalog::built_in(), &statements(), line, tables)
    }

    fn statements() -> Statements {
        let db = sapwood::Db::in_memory();
        db.sql("create table flights (carrier text, dep_delay int, \"order\" int)")
            .expect("a table");
        db.sql("create table \"two-words\" (cause text)").expect("a table");
        Statements::over(Some(db), None)
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
            ("\\timing o", 8, &["off", "on"]),
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
    fn statements_are_completed_with_tables_columns_and_words() {
        for (above, before, behind, expected) in [
            ("", "sel", "", &["select"][..]),
            ("", "SEL", "", &["SELECT"]),
            ("", "select * from fl", "", &["flights"]),
            ("", "select * from ", "", &["flights", "\"two-words\""]),
            ("", "select ca", "", &["carrier", "cause", "case", "cast"]),
            ("", "select ca", " from flights", &["carrier", "case", "cast"]),
            ("", "select CA", " from flights", &["carrier", "CASE", "CAST"]),
            ("select carrier\nfrom flights\n", "wh", "", &["when", "where"]),
            ("select avg(\n", "dep", "\n", &["dep_delay"]),
            ("", "select flights.or", "", &["\"order\""]),
            ("", "select appro", "", &["approx_count_distinct(", "approx_quantile("]),
            ("", ".mo", "", &[".mode"]),
            ("", ".mode m", "", &["markdown"]),
            ("", ".timer o", "", &["on", "off"]),
            ("", ".schema ", "", &["flights", "two-words"]),
            ("", ".import f.csv fl", "", &["flights"]),
        ] {
            let (_, words) = complete(
                &Catalog::built_in(),
                &statements(),
                Line { above, before, behind },
                Vec::new,
            );
            assert_eq!(words, expected, "{above}{before}");
        }
    }

    #[test]
    fn names_of_files_are_completed_in_quotes() {
        let folder = tempfile::TempDir::new().expect("a directory for the test");
        std::fs::write(folder.path().join("flights.csv"), "a\n1\n").expect("a file");
        let begin = folder.path().join("fli").display().to_string();
        for before in [format!("select * from '{begin}"), format!(".import {begin}")] {
            let line = Line { above: "", before: &before, behind: "" };
            let (start, words) = complete(&Catalog::built_in(), &statements(), line, Vec::new);
            assert_eq!(words, [folder.path().join("flights.csv").display().to_string()]);
            assert_eq!(before[start..], begin);
        }
    }

    #[test]
    fn columns_of_files_are_completed() {
        let folder = tempfile::TempDir::new().expect("a directory for the test");
        let file = folder.path().join("flights.csv");
        std::fs::write(&file, "carrier,dep_time,\"sched dep\"\nUA,1,2\n").expect("a file");
        let from = format!(" from '{}'", file.display());
        for statements in [statements(), Statements::over(None, None)] {
            for (before, behind, expected) in [
                ("select ca".to_owned(), from.clone(), &["carrier", "case", "cast"][..]),
                ("select sch".to_owned(), format!("{from} limit 1"), &["\"sched dep\""]),
                (format!("select *{from} where dep_"), String::new(), &["dep_time"]),
                (format!("select *{from} f where f.d"), String::new(), &["dep_time"]),
                ("select dep_".to_owned(), " from 'none.csv'".to_owned(), &[]),
            ] {
                let line = Line { above: "", before: &before, behind: &behind };
                let (_, words) = complete(&Catalog::built_in(), &statements, line, Vec::new);
                let is_of_table = words == ["dep_delay"];
                assert!(
                    words == expected || expected.is_empty() && is_of_table,
                    "{before}: {words:?}"
                );
            }
        }
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
            ("select ", None),
        ] {
            assert_eq!(hint(&catalog, line).as_deref(), rest, "{line}");
        }
    }

    #[test]
    fn names_of_tables_are_quoted_where_they_must_be() {
        assert_eq!(table_name(b"flights"), "flights");
        assert_eq!(table_name(b"two words"), "\"two words\"");
        assert_eq!(table_name(b"\xff"), "\"\\xff\"");
    }
}

//! Options from flags, the environment and a file, in this order of precedence.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, FromArgMatches};

use crate::args::serve::Serve;
use crate::terminal::exit::{Failure, Outcome};

/// Options whose values are shown to no reader.
const SECRETS: &[&str] = &["requirepass"];

/// The place that an option's value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag,
    Environment,
    File,
    Default,
}

impl Origin {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Origin::Flag => "flag",
            Origin::Environment => "environment",
            Origin::File => "file",
            Origin::Default => "default",
        }
    }
}

/// An option with its value, where it came from, and its variable of the environment.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) name: String,
    /// `None` where it has none.
    pub(crate) value: Option<String>,
    pub(crate) origin: Origin,
}

/// The options that hold.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) serve: Serve,
    pub(crate) shown: Vec<Shown>,
}

impl Options {
    /// Adds the options of the file to those of the command line and the environment.
    pub(crate) fn read(matches: &ArgMatches) -> Outcome<Options> {
        let given = Serve::from_arg_matches(matches).map_err(usage)?;
        let Some(path) = &given.config else {
            return Ok(Options { shown: shown(matches, &BTreeSet::new()), serve: given });
        };
        let unread = |why: String| {
            Failure::Usage(format!("the options in {} cannot be used: {why}", path.display()))
        };
        let text = fs::read_to_string(path).map_err(|error| unread(error.to_string()))?;
        // Its error quotes the line, which may hold a secret: the place is enough.
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
            unread(format!("line {line}: {}", error.message()))
        })?;
        let command = command();
        let mut words: Vec<OsString> = vec!["serve".into()];
        let mut from_file = BTreeSet::new();
        for (name, value) in &table {
            let id = name.replace('-', "_");
            let known = command.get_arguments().any(|argument| argument.get_long() == Some(name));
            if !known || name == "config" {
                return Err(unread(format!(
                    "there is no option `{name}`; `sapwood serve --help` lists them"
                )));
            }
            if is_given(matches, &id) {
                continue;
            }
            for value in values(value).ok_or_else(|| {
                unread(format!("`{name}` must be a text, a number, true or false, or a list"))
            })? {
                words.push(format!("--{name}={value}").into());
            }
            from_file.insert(id);
        }
        for argument in command.get_arguments() {
            let (id, Some(long)) = (argument.get_id().as_str(), argument.get_long()) else {
                continue;
            };
            if matches.value_source(id) == Some(ValueSource::CommandLine) {
                for value in matches.get_raw(id).into_iter().flatten() {
                    let mut word = OsString::from(format!("--{long}="));
                    word.push(value);
                    words.push(word);
                }
            }
        }
        let matches = command.try_get_matches_from(words).map_err(|error| {
            unread(error.to_string().trim_start_matches("error: ").trim_end().to_owned())
        })?;
        let serve = Serve::from_arg_matches(&matches).map_err(usage)?;
        Ok(Options { shown: shown(&matches, &from_file), serve })
    }
}

fn command() -> clap::Command {
    Serve::augment_args(clap::Command::new("serve"))
}

fn usage(error: clap::Error) -> Failure {
    Failure::Usage(error.to_string())
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    let source = matches.value_source(id);
    matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

/// A value of a file as the words of a flag.
fn values(value: &toml::Value) -> Option<Vec<String>> {
    Some(match value {
        toml::Value::String(text) => vec![text.clone()],
        toml::Value::Integer(number) => vec![number.to_string()],
        toml::Value::Float(number) => vec![number.to_string()],
        toml::Value::Boolean(is_true) => vec![if *is_true { "yes" } else { "no" }.to_owned()],
        toml::Value::Array(all) => {
            let all: Option<Vec<_>> = all.iter().map(values).collect();
            all?.concat()
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => return None,
    })
}

fn shown(matches: &ArgMatches, from_file: &BTreeSet<String>) -> Vec<Shown> {
    let command = command();
    let arguments = command.get_arguments().filter(|argument| argument.get_long().is_some());
    let show = |argument: &clap::Arg| {
        let id = argument.get_id().as_str();
        let origin = match matches.value_source(id) {
            _ if from_file.contains(id) => Origin::File,
            Some(ValueSource::CommandLine) => Origin::Flag,
            Some(ValueSource::EnvVariable) => Origin::Environment,
            _ => Origin::Default,
        };
        let name = argument.get_long().unwrap_or(id).to_owned();
        let value = matches.get_raw(id).map(|values| {
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            match SECRETS.contains(&id) {
                true => "(hidden)".to_owned(),
                false => values.join(","),
            }
        });
        Shown { name, value, origin }
    };
    arguments.map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Outcome<Options> {
        let words = ["serve"].iter().chain(words);
        Options::read(&command().try_get_matches_from(words).expect("flags"))
    }

    #[test]
    fn a_flag_goes_before_the_file_and_that_before_the_default() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text = "port = 7001\nbind = ['127.0.0.1', '::1']\nsave = '60 1'\n\
            enable-debug-command = true\nmaxmemory = '2M'\nslowlog-log-slower-than = -1\n";
        fs::write(file.path(), text).expect("it is written");
        let path = file.path().to_str().expect("text");
        let options = read(&["--config", path, "--save=9 9"]).expect("options");
        assert_eq!(options.serve.network.port, 7001);
        assert_eq!(options.serve.network.bind.len(), 2);
        assert_eq!(options.serve.storage.save, "9 9");
        assert_eq!(options.serve.storage.maxmemory, Some(2 << 20));
        assert_eq!(options.serve.watching.slowlog_log_slower_than, -1);
        let origin = |name: &str| {
            let of_name = options.shown.iter().find(|shown| shown.name == name);
            of_name.map(|shown| shown.origin)
        };
        assert_eq!(origin("port"), Some(Origin::File));
        assert_eq!(origin("save"), Some(Origin::Flag));
        assert_eq!(origin("databases"), Some(Origin::Default));
    }

    #[test]
    fn every_client_may_send_a_mebibyte() {
        for text in ["0", "1", "1023K"] {
            let words = ["serve", "--client-query-buffer-limit", text];
            let refused = command().try_get_matches_from(words).expect_err(text).to_string();
            assert!(refused.contains("clients must be able to send 1.0 MiB at least"), "{refused}");
        }
        for (text, bytes) in [("1M", 1_u64 << 20), ("2G", 2 << 30)] {
            let options = read(&["--client-query-buffer-limit", text]).expect("options");
            assert_eq!(options.serve.clients.client_query_buffer_limit, bytes);
        }
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("text");
        for (text, says) in [
            ("prot = 1", "no option `prot`"),
            ("port = 'x'", "invalid value 'x' for '--port"),
            ("port = 1\nport = [", "line 2"),
            ("[port]\na = 1", "`port` must be"),
            ("config = 'x'", "no option `config`"),
            ("client-query-buffer-limit = 0", "send 1.0 MiB at least"),
        ] {
            fs::write(file.path(), text).expect("it is written");
            match read(&["--config", path]) {
                Err(Failure::Usage(words)) => assert!(words.contains(says), "{words}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}

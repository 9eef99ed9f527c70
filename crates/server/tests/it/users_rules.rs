//! Rules of users, against a model that reads them one after another for every question.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::client::{Client, Value, ok, service};

/// Rules about commands and keys; in any order and number.
const RULES: &[&str] = &[
    "+@all",
    "-@all",
    "allcommands",
    "nocommands",
    "+get",
    "-get",
    "+set",
    "-set",
    "+select|0",
    "+select",
    "-select",
    "+@string",
    "-@string",
    "+@connection",
    "-@connection",
    "-@dangerous",
    "+@dangerous",
    "+@hash",
    "+acl",
    "-acl",
    "+acl|cat",
    "-acl|cat",
    "-acl|list",
    "~a*",
    "~b",
    "%R~r*",
    "%W~r*",
    "%W~w*",
    "~*",
    "resetkeys",
];

/// Questions: a class of the command that the rules name, the command, its key and the rights on it.
const QUESTIONS: &[(&str, Option<(&str, &str)>)] = &[
    ("get a1", Some(("a1", "R"))),
    ("get b", Some(("b", "R"))),
    ("get b1", Some(("b1", "R"))),
    ("get r", Some(("r", "R"))),
    ("get w", Some(("w", "R"))),
    ("set a v", Some(("a", "W"))),
    ("set r v", Some(("r", "W"))),
    ("set r v get", Some(("r", "RW"))),
    ("set w v", Some(("w", "W"))),
    ("strlen w", Some(("w", ""))),
    ("incr r", Some(("r", "RW"))),
    ("select 0", None),
    ("select 1", None),
    ("acl cat", None),
    ("acl list", None),
    ("flushall", None),
];

/// The model of a user: the rules that were taken, and whether the last list was.
#[derive(Debug, Clone, Default)]
struct Model {
    rules: Vec<&'static str>,
}

impl Model {
    /// Whether all keys are allowed behind these rules.
    fn has_all_keys(rules: &[&str]) -> bool {
        let last = rules.iter().rev().find(|rule| ["~*", "resetkeys"].contains(rule));
        last == Some(&"~*")
    }

    fn set(&mut self, rules: &[&'static str]) -> bool {
        let mut all = self.rules.clone();
        for rule in rules {
            let is_pattern = rule.contains('~') && *rule != "~*";
            if is_pattern && Self::has_all_keys(&all) {
                return false;
            }
            all.push(rule);
        }
        self.rules = all;
        true
    }

    fn allows(&self, classes: &dyn Fn(&str) -> Vec<String>, question: usize) -> bool {
        let (line, key) = QUESTIONS[question];
        let words: Vec<&str> = line.split(' ').collect();
        let is_acl = words[0] == "acl";
        let name = if is_acl { format!("acl|{}", words[1]) } else { words[0].to_owned() };
        let (mut may, mut may_first) = (false, false);
        for rule in &self.rules {
            let (sign, what) = rule.split_at(1);
            let is_meant = match (*rule, what) {
                ("allcommands" | "nocommands" | "+@all" | "-@all", _) => true,
                (_, "select|0") => {
                    may_first |= line == "select 0";
                    false
                }
                (_, what) if what.starts_with('@') => classes(&what[1..]).contains(&name),
                (_, "acl") => is_acl,
                (_, what) => what == name,
            };
            if is_meant {
                may = sign == "+" || *rule == "allcommands";
                may_first = false;
            }
        }
        let Some((key, rights)) = key else { return may || may_first };
        let mut patterns: Vec<(String, String)> = Vec::new();
        for rule in &self.rules {
            match *rule {
                "resetkeys" => patterns.clear(),
                "~*" => patterns = vec![("*".to_owned(), "RW".to_owned())],
                rule => {
                    let Some((mark, pattern)) = rule.split_once('~') else { continue };
                    let rights = if mark.is_empty() { "RW" } else { &mark[1..] };
                    match patterns.iter_mut().find(|(old, _)| old == pattern) {
                        Some((_, old)) => old.push_str(rights),
                        None => patterns.push((pattern.to_owned(), rights.to_owned())),
                    }
                }
            }
        }
        may && patterns.iter().any(|(pattern, allowed)| {
            let matches = match pattern.strip_suffix('*') {
                Some(prefix) => key.starts_with(prefix),
                None => key == pattern,
            };
            matches && rights.chars().all(|right| allowed.contains(right))
        })
    }
}

fn words(value: Value) -> Vec<String> {
    let Value::Array(values) = value else { panic!("no list: {value:?}") };
    let word = |value| match value {
        Value::Bulk(word) => String::from_utf8(word).expect("text"),
        other => panic!("no word: {other:?}"),
    };
    values.into_iter().map(word).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rules_are_read_one_after_another(
        lists in vec(vec(select(RULES), 1..6), 1..5),
    ) {
        let service = service();
        let mut admin = Client::new(&service);
        let mut model = Model::default();
        let mut classes = std::collections::HashMap::new();
        for class in words(admin.line("ACL CAT")) {
            let commands = words(admin.line(&format!("ACL CAT {class}")));
            classes.insert(class, commands);
        }
        let classes = |name: &str| classes[name].clone();
        for rules in lists {
            let reply = admin.line(&format!("ACL SETUSER u {}", rules.join(" ")));
            prop_assert_eq!(reply == ok(), model.set(&rules), "{:?}", rules);
            if model.rules.is_empty() {
                continue;
            }
            for (at, (line, _)) in QUESTIONS.iter().enumerate() {
                let answer = admin.line(&format!("ACL DRYRUN u {line}"));
                prop_assert_eq!(answer == ok(), model.allows(&classes, at), "{} {:?}", line, model);
            }
        }
        if model.rules.is_empty() {
            return Ok(());
        }
        // What is shown makes the same user again.
        let shown = |admin: &mut Client, name: &str| {
            let of_it = |line: &String| line.starts_with(&format!("user {name} "));
            let line = words(admin.line("ACL LIST")).into_iter().find(of_it).expect("its line");
            line.split_once(' ').and_then(|(_, rest)| rest.split_once(' ')).expect("rules").1.to_owned()
        };
        let rules = shown(&mut admin, "u");
        prop_assert_eq!(admin.line(&format!("ACL SETUSER copy {rules}")), ok());
        prop_assert_eq!(shown(&mut admin, "copy"), rules);
        for (line, _) in QUESTIONS {
            let [one, copy] = ["u", "copy"].map(|user| {
                admin.line(&format!("ACL DRYRUN {user} {line}")) == ok()
            });
            prop_assert_eq!(one, copy, "{}", line);
        }
    }
}

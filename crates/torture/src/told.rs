//! The lines that a worker tells, each written when what it says has happened.

use std::fmt;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// The database is open.
    Opened,
    Making(String),
    Made(String),
    Dropping(String),
    Dropped(String),
    /// A checkpoint of the table is complete; it covers so many operations of each thread.
    Checkpoint(String, Vec<u64>),
    /// An operation failed, as it may when calls do.
    Refused(String),
    /// The database did something wrong.
    Wrong(String),
    /// Calls of each kind since the worker was armed.
    Calls(Vec<u64>),
    /// The worker has done all that it should.
    Ended,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = |numbers: &[u64]| -> String {
            numbers.iter().map(|number| format!(" {number}")).collect()
        };
        // One line each.
        let line = |text: &str| text.replace('\n', " ");
        match self {
            Told::Opened => write!(f, "opened"),
            Told::Making(name) => write!(f, "making {name}"),
            Told::Made(name) => write!(f, "made {name}"),
            Told::Dropping(name) => write!(f, "dropping {name}"),
            Told::Dropped(name) => write!(f, "dropped {name}"),
            Told::Checkpoint(name, covered) => write!(f, "checkpoint {name}{}", numbers(covered)),
            Told::Refused(why) => write!(f, "refused {}", line(why)),
            Told::Wrong(what) => write!(f, "wrong {}", line(what)),
            Told::Calls(counts) => write!(f, "calls{}", numbers(counts)),
            Told::Ended => write!(f, "ended"),
        }
    }
}

impl Told {
    /// `None`: no line of a worker, perhaps the first half of one.
    pub(crate) fn parse(line: &str) -> Option<Told> {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        let name = || rest.to_owned();
        let numbers = |words: &str| -> Option<Vec<u64>> {
            words.split_whitespace().map(|word| word.parse().ok()).collect()
        };
        Some(match what {
            "opened" => Told::Opened,
            "making" => Told::Making(name()),
            "made" => Told::Made(name()),
            "dropping" => Told::Dropping(name()),
            "dropped" => Told::Dropped(name()),
            "checkpoint" => {
                let (name, covered) = rest.split_once(' ')?;
                Told::Checkpoint(name.to_owned(), numbers(covered)?)
            }
            "refused" => Told::Refused(name()),
            "wrong" => Told::Wrong(name()),
            "calls" => Told::Calls(numbers(rest)?),
            "ended" => Told::Ended,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        for told in [
            Told::Opened,
            Told::Making("a".to_owned()),
            Told::Dropped("a-b".to_owned()),
            Told::Checkpoint("a".to_owned(), vec![1, 20]),
            Told::Refused("put: no space".to_owned()),
            Told::Calls(vec![1, 2, 3]),
            Told::Ended,
        ] {
            assert_eq!(Told::parse(&told.to_string()), Some(told));
        }
        assert_eq!(Told::parse("no line of ours"), None);
    }
}

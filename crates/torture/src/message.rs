//! Messages of a worker, each a line, written when what it says has happened.

use std::fmt;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// The database is open.
    Opened,
    Making(String),
    Made(String),
    Dropping(String),
    Dropped(String),
    /// A checkpoint of the table is complete; it covers so many operations of each thread.
    Checkpoint(String, Vec<u64>),
    /// A thread has committed a step on a pool.
    Step(u64, u64),
    /// An operation failed, as it may when calls do.
    Refused(String),
    /// The database did something wrong.
    Wrong(String),
    /// Calls of each kind since the worker was armed.
    Calls(Vec<u64>),
    /// The worker has done all that it should.
    Ended,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = |numbers: &[u64]| -> String {
            numbers.iter().map(|number| format!(" {number}")).collect()
        };
        // One line each.
        let line = |text: &str| text.replace('\n', " ");
        match self {
            Message::Opened => write!(f, "opened"),
            Message::Making(name) => write!(f, "making {name}"),
            Message::Made(name) => write!(f, "made {name}"),
            Message::Dropping(name) => write!(f, "dropping {name}"),
            Message::Dropped(name) => write!(f, "dropped {name}"),
            Message::Checkpoint(name, covered) => {
                write!(f, "checkpoint {name}{}", numbers(covered))
            }
            Message::Step(thread, step) => write!(f, "step {thread} {step}"),
            Message::Refused(why) => write!(f, "refused {}", line(why)),
            Message::Wrong(what) => write!(f, "wrong {}", line(what)),
            Message::Calls(counts) => write!(f, "calls{}", numbers(counts)),
            Message::Ended => write!(f, "ended"),
        }
    }
}

impl Message {
    /// `None`: no line of a worker, perhaps the first half of one.
    pub(crate) fn parse(line: &str) -> Option<Message> {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        let name = || rest.to_owned();
        let numbers = |words: &str| -> Option<Vec<u64>> {
            words.split_whitespace().map(|word| word.parse().ok()).collect()
        };
        Some(match what {
            "opened" => Message::Opened,
            "making" => Message::Making(name()),
            "made" => Message::Made(name()),
            "dropping" => Message::Dropping(name()),
            "dropped" => Message::Dropped(name()),
            "checkpoint" => {
                let (name, covered) = rest.split_once(' ')?;
                Message::Checkpoint(name.to_owned(), numbers(covered)?)
            }
            "step" => match numbers(rest)?[..] {
                [thread, step] => Message::Step(thread, step),
                _ => return None,
            },
            "refused" => Message::Refused(name()),
            "wrong" => Message::Wrong(name()),
            "calls" => Message::Calls(numbers(rest)?),
            "ended" => Message::Ended,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        for message in [
            Message::Opened,
            Message::Making("a".to_owned()),
            Message::Dropped("a-b".to_owned()),
            Message::Checkpoint("a".to_owned(), vec![1, 20]),
            Message::Refused("put: no space".to_owned()),
            Message::Calls(vec![1, 2, 3]),
            Message::Step(1, 20),
            Message::Ended,
        ] {
            assert_eq!(Message::parse(&message.to_string()), Some(message));
        }
        assert_eq!(Message::parse("step 1"), None);
        assert_eq!(Message::parse("no line of ours"), None);
    }
}

//! The executors: ways to reach objects.

use std::fmt;
use std::str::FromStr;

/// A way to reach the objects of a query.
///
/// | executor | tables | reads | best for |
/// |---|---|---|---|
/// | `LookUp` | both | each selected key, in batches | few of many: lists of keys, short ranges of 8-byte keys |
/// | `Range` | ordered | the selected range, in key order | ranges and prefixes, or all |
/// | `Walk` | hash | every entry, in the order of the index | all, where most of the log is garbage |
/// | `Log` | hash | every record of the log, one after the other; as of one moment, if asked | much of the table |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Executor {
    /// Looks each key up, many at a time.
    LookUp,
    /// Scans a range of an ordered table.
    Range,
    /// Walks the index of a hash table.
    Walk,
    /// Walks the log of a hash table: the one that can show all objects as of one moment.
    Log,
}

impl Executor {
    /// All of them.
    pub const ALL: [Executor; 4] =
        [Executor::LookUp, Executor::Range, Executor::Walk, Executor::Log];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Executor::LookUp => "look-up",
            Executor::Range => "range",
            Executor::Walk => "walk",
            Executor::Log => "log",
        }
    }
}

impl fmt::Display for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Executor {
    type Err = String;

    fn from_str(name: &str) -> Result<Executor, String> {
        Executor::ALL.into_iter().find(|executor| executor.name() == name).ok_or_else(|| {
            let names = Executor::ALL.map(Executor::name).join(", ");
            format!("there is no executor `{name}`; there are: {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for executor in Executor::ALL {
            assert_eq!(executor.to_string().parse(), Ok(executor));
        }
        let error = "guess".parse::<Executor>().expect_err("no such executor");
        assert_eq!(error, "there is no executor `guess`; there are: look-up, range, walk, log");
    }
}

//! Plans of faults: what is to go wrong, and when. They have a text form, to travel on a command
//! line.

use std::fmt;
use std::str::FromStr;

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Opens or makes a file or folder.
    Open,
    /// Reads from a place in a file.
    Read,
    /// Writes to a place in a file.
    Write,
    /// Cuts a file.
    Cut,
    /// Makes the bytes of a file last.
    SyncData,
    /// Makes the names of a folder last.
    SyncNames,
    /// Gives a file another name.
    Rename,
    /// Removes a file or a folder.
    Remove,
    /// Makes a folder.
    MakeFolder,
}

impl Call {
    /// All kinds.
    pub const ALL: [Call; 9] = [
        Call::Open,
        Call::Read,
        Call::Write,
        Call::Cut,
        Call::SyncData,
        Call::SyncNames,
        Call::Rename,
        Call::Remove,
        Call::MakeFolder,
    ];

    /// The name of the system call, or of the one that stands for several.
    pub fn name(self) -> &'static str {
        match self {
            Call::Open => "open",
            Call::Read => "pread",
            Call::Write => "pwrite",
            Call::Cut => "ftruncate",
            Call::SyncData => "fdatasync",
            Call::SyncNames => "fsync",
            Call::Rename => "rename",
            Call::Remove => "unlink",
            Call::MakeFolder => "mkdir",
        }
    }
}

/// How the system answers a call that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemError {
    /// `EIO`: a broken device. A failed `fdatasync` loses what it was to make last.
    Io,
    /// `ENOSPC`: a full one. A failed write has written its first half.
    NoSpace,
}

/// How often a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// That call alone.
    Once,
    /// That call and all of its kind after it.
    FromThenOn,
}

/// A call that fails. Its text form is `fsync:37:EIO:once`, or `...:on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Of which kind.
    pub call: Call,
    /// Which one of its kind, from 1.
    pub nth: u64,
    /// How it fails.
    pub error: SystemError,
    /// How often.
    pub repeat: Repeat,
}

/// The fate of changes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// All are lost.
    Lost,
    /// A seed says for each write whether it is kept, lost, or torn at borders of 512 bytes, and
    /// for each folder how many of the changes to its names are kept, the oldest first.
    Some,
    /// All are kept, as when only the process ends.
    Kept,
}

/// From when on changes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// From the first one.
    Armed,
    /// From the planned failure.
    Failure,
}

/// A loss of power. Its text form is `SEED:117:lost`, or `...:some`, `...:kept`; with `+117`, the
/// number counts from the planned failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerLoss {
    /// Decides what [`Fate::Some`] keeps.
    pub seed: u64,
    /// At which of all calls that change something, from 1. The call itself is done, but for a
    /// sync.
    pub nth: u64,
    /// From when on they are counted.
    pub since: Since,
    /// The fate of changes that were not synced.
    pub fate: Fate,
}

/// All that is to go wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Plan {
    /// A call that fails.
    pub failure: Option<Failure>,
    /// An end of the process.
    pub power_loss: Option<PowerLoss>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self.error {
            SystemError::Io => "EIO",
            SystemError::NoSpace => "ENOSPC",
        };
        let repeat = match self.repeat {
            Repeat::Once => "once",
            Repeat::FromThenOn => "on",
        };
        write!(f, "{}:{}:{error}:{repeat}", self.call.name(), self.nth)
    }
}

impl FromStr for Failure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no failing call; say, for example, fsync:37:EIO:once");
        let [call, nth, error, repeat] = words(text).ok_or_else(wrong)?;
        Ok(Failure {
            call: Call::ALL.into_iter().find(|kind| kind.name() == call).ok_or_else(wrong)?,
            nth: nth.parse().map_err(|_| wrong())?,
            error: match error {
                "EIO" => SystemError::Io,
                "ENOSPC" => SystemError::NoSpace,
                _ => return Err(wrong()),
            },
            repeat: match repeat {
                "once" => Repeat::Once,
                "on" => Repeat::FromThenOn,
                _ => return Err(wrong()),
            },
        })
    }
}

impl fmt::Display for PowerLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = match self.fate {
            Fate::Lost => "lost",
            Fate::Some => "some",
            Fate::Kept => "kept",
        };
        let since = match self.since {
            Since::Armed => "",
            Since::Failure => "+",
        };
        write!(f, "{}:{since}{}:{fate}", self.seed, self.nth)
    }
}

impl FromStr for PowerLoss {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no loss of power; say, for example, 7:117:some");
        let [seed, nth, fate] = words(text).ok_or_else(wrong)?;
        Ok(PowerLoss {
            seed: seed.parse().map_err(|_| wrong())?,
            since: if nth.starts_with('+') { Since::Failure } else { Since::Armed },
            nth: nth.trim_start_matches('+').parse().map_err(|_| wrong())?,
            fate: match fate {
                "lost" => Fate::Lost,
                "some" => Fate::Some,
                "kept" => Fate::Kept,
                _ => return Err(wrong()),
            },
        })
    }
}

/// Exactly so many words with colons between.
fn words<const COUNT: usize>(text: &str) -> Option<[&str; COUNT]> {
    let words: Vec<&str> = text.split(':').collect();
    words.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_as_they_are_written() {
        for call in Call::ALL {
            for error in [SystemError::Io, SystemError::NoSpace] {
                for repeat in [Repeat::Once, Repeat::FromThenOn] {
                    let failure = Failure { call, nth: 12, error, repeat };
                    assert_eq!(failure.to_string().parse(), Ok(failure));
                }
            }
        }
        for fate in [Fate::Lost, Fate::Some, Fate::Kept] {
            for since in [Since::Armed, Since::Failure] {
                let loss = PowerLoss { seed: 3, nth: 4, since, fate };
                assert_eq!(loss.to_string().parse(), Ok(loss));
            }
        }
        for wrong in ["", "fsync", "fsync:1:EIO", "fsync:x:EIO:on", "sync:1:EIO:on", "a:b:c:d:e"] {
            assert!(wrong.parse::<Failure>().is_err(), "{wrong}");
            assert!(wrong.parse::<PowerLoss>().is_err(), "{wrong}");
        }
    }
}

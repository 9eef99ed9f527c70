//! Damage of a log, and what is found of one that may have some.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

use super::format::Lsn;

/// A place in a file where the log is not what was written. An error of [`Log::open`](super::Log::open) of kind
/// `InvalidData` has it inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The name of the file.
    pub file: String,
    /// At which byte of it.
    pub offset: u64,
    /// How many bytes of the log are not there; 0 where that is not known.
    pub bytes: u64,
    /// What is wrong.
    pub what: String,
}

impl Display for Damage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Damage { file, offset, what, .. } = self;
        write!(f, "{file} is damaged at byte {offset}: {what}")
    }
}

impl Error for Damage {}

/// What [`Log::survey`](super::Log::survey) finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSurvey {
    /// The position behind the last record.
    pub end: Lsn,
    /// The log was synced up to there, as far as its files tell.
    pub durable: Lsn,
    /// The byte of the last part at which reading ended.
    pub end_offset: u64,
    /// The parts that were read, in order.
    pub parts: Vec<PartSurvey>,
    /// Files that reading did not come to.
    pub unread: Vec<String>,
    /// What is wrong.
    pub damage: Vec<Damage>,
    /// The record at the end that a crash has cut off, where its header is there.
    pub cut_off: Option<Damage>,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSurvey {
    /// The name of its file.
    pub name: String,
    /// Its number.
    pub number: u64,
    /// The position of its first record.
    pub first: Lsn,
    /// Its bytes, most of which need not be used.
    pub bytes: u64,
}

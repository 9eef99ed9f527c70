//! What is timed, and of which rows.

use super::sets::Set;
use crate::figures::{Timed, Unit};

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Phase {
    /// Rows that are columns already are folded into facts
    Ingest,
    /// Rows are parsed from JSON lines, and folded
    Json,
    /// Facts are added up by the hour
    Timeseries,
    /// Facts are grouped by one dimension
    GroupByOne,
    /// Facts are grouped by two dimensions
    GroupBy,
    /// The ten values of a dimension with the greatest sums
    TopN,
    /// Facts with one text are added up by the hour
    Filter,
}

impl Phase {
    pub(crate) const ALL: [Phase; 7] = [
        Phase::Ingest,
        Phase::Json,
        Phase::Timeseries,
        Phase::GroupByOne,
        Phase::GroupBy,
        Phase::TopN,
        Phase::Filter,
    ];
    pub(crate) const FOLDS: [Phase; 2] = [Phase::Ingest, Phase::Json];
    pub(crate) const QUESTIONS: [Phase; 5] =
        [Phase::Timeseries, Phase::GroupByOne, Phase::GroupBy, Phase::TopN, Phase::Filter];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Ingest => "ingest",
            Phase::Json => "json",
            Phase::Timeseries => "timeseries",
            Phase::GroupByOne => "group-by-one",
            Phase::GroupBy => "group-by",
            Phase::TopN => "top-n",
            Phase::Filter => "filter",
        }
    }

    pub(crate) fn is_question(self) -> bool {
        Phase::QUESTIONS.contains(&self)
    }
}

/// Where facts lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// As they were folded, in memory.
    Live,
    /// There, when what is free was given back: a size, and never asked.
    Trimmed,
    /// In files: segments, Parquet.
    Files,
}

impl Place {
    /// Those that are asked.
    pub(crate) const ASKED: [Place; 2] = [Place::Live, Place::Files];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::Live => "live",
            Place::Trimmed => "trimmed",
            Place::Files => "files",
        }
    }
}

/// A phase over a set of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) phase: Phase,
    pub(crate) place: Place,
    pub(crate) set: Set,
}

impl Timed for Workload {
    fn name(self) -> String {
        match self.place {
            Place::Live => format!("{}, {}", self.phase.name(), self.set.name()),
            place => {
                format!("{} of {}, {}", self.phase.name(), place.name(), self.set.name())
            }
        }
    }

    fn unit(self) -> Unit {
        match self.phase.is_question() {
            false => Unit::Rows,
            true => Unit::Questions,
        }
    }
}

//! What is asked, where, and of which rows.

use crate::figures::{Timed, Unit};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Phase {
    /// The rows of the file become a table
    Load,
    /// One row by its key
    Get,
    /// Count and mean by carrier
    ByCarrier,
    /// Median, and the number of different destinations, by origin and carrier, under a filter
    Median,
    /// The ten latest of a week
    Top,
    /// Sums over everything
    Sum,
    /// A column of one row is changed, by its key
    Update,
}

impl Phase {
    pub(crate) const ALL: [Phase; 7] = [
        Phase::Load,
        Phase::Get,
        Phase::ByCarrier,
        Phase::Median,
        Phase::Top,
        Phase::Sum,
        Phase::Update,
    ];
    pub(crate) const QUESTIONS: [Phase; 4] =
        [Phase::ByCarrier, Phase::Median, Phase::Top, Phase::Sum];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Load => "load",
            Phase::Get => "get",
            Phase::ByCarrier => "by-carrier",
            Phase::Median => "median",
            Phase::Top => "top",
            Phase::Sum => "sum",
            Phase::Update => "update",
        }
    }
}

/// Where rows lie, and whether the start of a process is timed with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the CSV file; by a process.
    File,
    /// In a directory or a database file; by a process.
    Stored,
    /// There, opened by a program before.
    Library,
}

impl Place {
    pub(crate) const ALL: [Place; 3] = [Place::File, Place::Stored, Place::Library];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::File => "file",
            Place::Stored => "stored",
            Place::Library => "library",
        }
    }

    /// What is asked there.
    pub(crate) fn phases(self) -> &'static [Phase] {
        match self {
            Place::File => &Phase::QUESTIONS,
            Place::Stored => &Phase::ALL,
            Place::Library => &Phase::ALL[1..],
        }
    }
}

/// A question of rows that lie somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) phase: Phase,
    pub(crate) place: Place,
}

impl Timed for Workload {
    fn name(self) -> String {
        match self.phase {
            Phase::Load => Phase::Load.name().to_owned(),
            phase => format!("{}, {}", phase.name(), self.place.name()),
        }
    }

    fn unit(self) -> Unit {
        match (self.phase, self.place) {
            (Phase::Load, _) => Unit::Rows,
            (Phase::Get | Phase::Update, Place::Library) => Unit::Operations,
            _ => Unit::Questions,
        }
    }
}

/// The first day of the week that is asked about, and the first one behind it.
const WEEK: (&str, &str) = ("2013-07-01", "2013-07-08");

/// A question, of `rows`; none for what is asked by key. All systems understand it, with moments as they write them.
pub(crate) fn question(phase: Phase, rows: &str, moment: fn(&str) -> String) -> Option<String> {
    let (from, to) = (moment(WEEK.0), moment(WEEK.1));
    Some(match phase {
        Phase::ByCarrier => format!(
            "select carrier, count(*) as flights, avg(dep_delay) as late from {rows} \
             group by carrier order by carrier"
        ),
        Phase::Median => format!(
            "select origin, carrier, median(arr_delay) as late, count(distinct dest) as dests \
             from {rows} where distance > 500 group by origin, carrier order by origin, carrier"
        ),
        Phase::Top => format!(
            "select carrier, flight, dep_delay from {rows} \
             where time_hour >= {from} and time_hour < {to} and dep_delay is not null \
             order by dep_delay desc, carrier, flight limit 10"
        ),
        Phase::Sum => format!(
            "select count(*) as flights, sum(dep_delay) as late, sum(distance) as miles from {rows}"
        ),
        Phase::Load | Phase::Get | Phase::Update => return None,
    })
}

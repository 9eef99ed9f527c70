//! What became of the rows of a batch.

/// What became of the rows of a batch. Each row is in `processed`, `thrown_away`, `unparseable`,
/// `overflowed` or `repeated`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Ingested {
    /// Rows that are in facts.
    pub processed: u64,
    /// Of them, those with a value that could not be read and counts as null.
    pub processed_with_error: u64,
    /// Rows that the filter, or the windows of time, left out.
    pub thrown_away: u64,
    /// Rows that have no time that can be read.
    pub unparseable: u64,
    /// Rows that would take a sum beyond its type. They are in no figure.
    pub overflowed: u64,
    /// Rows of a batch whose offsets were taken before: they are in already, and were not taken again.
    pub repeated: u64,
    /// Facts that are new.
    pub new_facts: u64,
    /// The first of the rows with errors.
    pub samples: Vec<Sample>,
}

/// A row with an error.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Sample {
    /// Its number in the batch, from 0.
    pub row: usize,
    /// The column.
    pub column: String,
    /// What is wrong.
    pub why: String,
}

/// So many samples are kept of a batch.
pub const SAMPLES_MAX: usize = 10;

impl Ingested {
    pub(crate) fn sample(&mut self, row: usize, column: &str, why: impl FnOnce() -> String) {
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(Sample { row, column: column.to_owned(), why: why() });
        }
    }

    /// Adds what became of another batch, whose rows come after `rows` others.
    pub fn merge(&mut self, other: Ingested, rows: usize) {
        self.processed += other.processed;
        self.processed_with_error += other.processed_with_error;
        self.thrown_away += other.thrown_away;
        self.unparseable += other.unparseable;
        self.overflowed += other.overflowed;
        self.repeated += other.repeated;
        self.new_facts += other.new_facts;
        let room = SAMPLES_MAX - self.samples.len();
        let samples = other.samples.into_iter().take(room);
        self.samples.extend(samples.map(|sample| Sample { row: sample.row + rows, ..sample }));
    }
}

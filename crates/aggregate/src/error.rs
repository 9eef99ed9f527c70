//! What can be refused, and what to do next.

use std::fmt;

use sapwood_engine::InvalidBatch;
use sapwood_schema::nearest;

/// Why a query, a merge or an answer was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// A text form cannot be read.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The parts of a query do not fit together, or a number in it is out of range.
    #[error("{0}")]
    Query(String),
    /// No field of the layout is called so.
    #[error("there is no field `{name}`{}", near_or_all(name, known))]
    NoField {
        /// The name that was given.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// Objects did not have what the query reads, and the query does not skip such objects.
    #[error(
        "{count} of {selected} selected objects do not have what the query reads; the first by key: {first}. Correct the layout or the objects, or skip and count such objects"
    )]
    Mismatched {
        /// How many objects.
        count: u64,
        /// Out of how many that were selected.
        selected: u64,
        /// The one with the least key.
        first: Box<Example>,
    },
    /// A figure leaves the range of its type.
    #[error(
        "{column} is {what}, beyond the range of its type: select fewer objects, or group them"
    )]
    Overflow {
        /// The column of the answer, or the counter.
        column: String,
        /// What it would be.
        what: String,
    },
    /// There are more groups than the query allows.
    #[error(
        "the objects fall into more than {max} groups: group by something coarser, or raise the query's groups_max"
    )]
    TooManyGroups {
        /// The most that the query allows.
        max: usize,
    },
    /// A figure was asked for that nothing was selected for.
    #[error(
        "there is no {column}: no object of the group has a value for it; loosen the selection"
    )]
    Nothing {
        /// The column of the answer.
        column: String,
    },
    /// A value is to be taken as a type that cannot hold it.
    #[error("the value {value} is {found}, and no {wanted}: take it as what it is (`Value::kind`)")]
    Conversion {
        /// The value, as text.
        value: String,
        /// What it is.
        found: String,
        /// The type.
        wanted: &'static str,
    },
    /// A total is to be spread over no objects at all.
    #[error(
        "there is no object to spread {total} over: nothing is selected. Loosen the selection or the filter"
    )]
    NoObjects {
        /// The total.
        total: i128,
    },
    /// A total is to be spread over objects that all have the weight zero.
    #[error(
        "{total} cannot be spread over {count} objects whose weights are all zero: give one a weight, or spread it equally"
    )]
    NoWeights {
        /// The total.
        total: i128,
        /// How many objects.
        count: u64,
    },
    /// Parts do not fit into the field. Nothing was changed.
    #[error(
        "the parts of {count} objects do not fit; the first by key: {first}. Nothing was changed: spread less, or over more objects, or widen the field"
    )]
    Unfit {
        /// How many objects.
        count: u64,
        /// The one with the least key.
        first: Box<Example>,
    },
    /// An object was handed over more than once.
    #[error(
        "the object with the key {key} was handed over more than once, so its parts would not add up: hand over each object once"
    )]
    Twice {
        /// Its key.
        key: String,
    },
    /// What was collected, or is left to be done, is of another disaggregation.
    #[error(
        "this is of another disaggregation: it must have the same field, filter, total, weights and action as the one that goes on with it"
    )]
    OtherDisaggregation,
    /// A partial state is of another query.
    #[error(
        "the partial state is of another query: it must have the same layout, predicate, groups and aggregates as the one that it is merged into"
    )]
    Foreign,
    /// Bytes are not a partial state, nor what is left of a disaggregation.
    #[error("the stored state is corrupt at offset {offset}: {what}")]
    Corrupt {
        /// At which byte.
        offset: usize,
        /// What is wrong there.
        what: String,
    },
}

impl QueryError {
    pub(crate) fn no_field(name: &str, known: &[&str]) -> QueryError {
        let known = known.iter().map(|&name| name.to_owned()).collect();
        QueryError::NoField { name: name.to_owned(), known }
    }
}

/// The name that may be meant, or all that there are.
fn near_or_all(name: &str, known: &[String]) -> String {
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!(": did you mean `{near}`?"),
        None => format!("; the layout has {}", known.join(", ")),
    }
}

/// The result of building, merging or answering a query.
pub type Result<T, E = QueryError> = std::result::Result<T, E>;

/// A text form that cannot be read: where, and what would be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SyntaxError {
    /// Which form, for people: "layout", "predicate".
    pub form: &'static str,
    /// The text that was given.
    pub text: String,
    /// At which byte of it.
    pub offset: usize,
    /// What is wrong there, and what to write.
    pub what: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.text.get(..self.offset).unwrap_or(&self.text);
        let column = before.chars().count();
        write!(f, "this {} cannot be read at character {}: {}", self.form, column + 1, self.what)?;
        if !self.text.contains(char::is_control) {
            write!(f, "\n  {}\n  {:column$}^", self.text, "")?;
        }
        Ok(())
    }
}

/// An object that does not have what a query reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Example {
    /// The first 64 bytes of its key.
    #[cfg_attr(feature = "serde", serde(serialize_with = "as_value"))]
    pub key: Vec<u8>,
    /// What it does not have.
    pub what: String,
}

/// As values are written.
#[cfg(feature = "serde")]
fn as_value<S: serde::Serializer>(key: &[u8], to: S) -> std::result::Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&crate::Value::from(key), to)
}

impl Example {
    /// Bytes of the key that are kept.
    pub const KEY_BYTES_MAX: usize = 64;
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = crate::Value::from(&self.key[..]);
        write!(f, "key {key}: {}", self.what)
    }
}

/// Why a field of an object has no value. Cheap to make: objects are skipped by the million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    TooShort {
        needed: usize,
        len: usize,
    },
    NoPart {
        index: usize,
        count: usize,
    },
    BadCell {
        index: usize,
    },
    BadComponent {
        index: usize,
    },
    BytesLeft {
        left: usize,
        declared: usize,
    },
    BytesLack {
        left: usize,
        declared: usize,
    },
    NotUtf8,
    NotRow,
    NotDecimal,
    NotFinite,
    BeyondFloats,
    Nan,
    Wide,
    #[cfg_attr(not(feature = "documents"), expect(dead_code, reason = "no documents are read"))]
    BadJson {
        line: usize,
        column: usize,
    },
    #[cfg_attr(not(feature = "documents"), expect(dead_code, reason = "no documents are read"))]
    BadMessagePack {
        offset: usize,
    },
    Compound,
    Missing,
    NotWhole,
    NoWeight,
    /// What a field would become, and cannot.
    OutOfRange {
        value: i128,
    },
    BeyondWhole,
    Inexact,
    StandsForMissing {
        value: i128,
    },
    /// The value is there, and of a kind that the query cannot use.
    Kind {
        found: crate::Kind,
        wanted: crate::Kind,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Why::TooShort { needed, len } => write!(f, "needs {needed} bytes, there are {len}"),
            Why::NoPart { index, count } => write!(f, "is part {index}, and there are {count}"),
            Why::BadCell { index } => write!(f, "is cell {index}, and the row ends before"),
            Why::BadComponent { index } => {
                write!(f, "component {index} of the tuple is not of its type")
            }
            Why::BytesLeft { left, declared } => write!(
                f,
                "has {left} bytes behind it, and the layout declares {declared}: correct the types of \
                 the components, or end them with `..`"
            ),
            Why::BytesLack { left, declared } => write!(
                f,
                "has {left} bytes behind it, and the components that the layout declares there take \
                 {declared}"
            ),
            Why::NotUtf8 => f.write_str("is not UTF-8"),
            Why::NotRow => f.write_str("is no row of the table's columns"),
            Why::NotDecimal => f.write_str("is not a decimal number"),
            Why::NotFinite => f.write_str("is infinite, and cannot be added up"),
            Why::BeyondFloats => f.write_str("is beyond the range of 64-bit floats"),
            Why::Nan => f.write_str("is NaN"),
            Why::Wide => f.write_str("is a whole number of more than 128 bits"),
            Why::BadJson { line, column } => {
                write!(f, "is not JSON at line {line}, column {column}")
            }
            Why::BadMessagePack { offset } => write!(f, "is not MessagePack at byte {offset}"),
            Why::Compound => f.write_str("is an array or a map"),
            Why::Missing => f.write_str("is missing"),
            Why::NotWhole => f.write_str("is not a whole number"),
            Why::NoWeight => f.write_str("is no whole number from 0 to 2^64 - 1, as weights are"),
            Why::OutOfRange { value } => write!(f, "cannot hold {value}"),
            Why::BeyondWhole => f.write_str("would leave the whole numbers of 128 bits"),
            Why::Inexact => f.write_str("is a float that would have to be rounded"),
            Why::StandsForMissing { value } => {
                write!(f, "would become {value}, which stands for missing")
            }
            Why::Kind { found, wanted } => write!(f, "is {found}, and {wanted} is needed"),
        }
    }
}

/// A mismatch of one field: its number in the query, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) field: usize,
    pub(crate) why: Why,
}
impl From<InvalidBatch> for QueryError {
    fn from(invalid: InvalidBatch) -> QueryError {
        QueryError::Query(invalid.to_string())
    }
}

//! How is a total spread over objects?
//!
//! The way back from a figure to the objects. A [`Disaggregation`] says which field of which objects
//! gets a part of a total, and [`Disaggregator`], what it is compiled to, does it in two phases that
//! whoever reaches the objects drives:
//!
//! 1. *Collect.* Each thread hands the objects to a [`Collector`], which keeps their keys, and their
//!    weights where parts depend on them. Of all that was [`Collected`] the parts are computed at
//!    once: [`Shares`]. So far nothing is changed, and what cannot succeed is refused here.
//! 2. *Apply.* The shares come in batches, in the order in which the objects were collected. Each
//!    object is changed by [`Disaggregator::change`], inside whatever makes an engine's update
//!    atomic, and its [`Fate`] goes into a [`Progress`]. What is not done yet can be saved at any
//!    moment as [`Pending`], and gone on with, here or elsewhere.
//!
//! *Not for* atomicity of the whole: others may see some objects changed and some not yet.

mod apportion;
mod chunk;
mod collect;
mod disaggregator;
mod field;
mod pending;
mod progress;
mod select;
mod shares;

pub use collect::{Collected, Collector, Places};
pub use disaggregator::Disaggregator;
pub use field::{Amount, Change, Refusal};
pub use pending::Pending;
pub use progress::{Disaggregated, Fate, Progress};
pub use shares::{Batch, Share, Shares};

use crate::error::Result;
use crate::layout::Layout;
use crate::predicate::Predicate;
use crate::query::Mismatches;
use crate::selection::Selection;

/// How a total is spread over a field of objects.
///
/// Parts are whole numbers, and their sum is the total, exactly. Each object's exact share is rounded
/// towards zero, and what then is left of the total goes in units to the objects that lost most by
/// rounding; where these tie, to those with the lesser keys (the method of largest remainders). Of a
/// negative total the parts are the negatives of those of its magnitude.
///
/// Fields that can be changed are numbers of fixed width and decimal digits at an offset of the value.
/// Floats are changed where the result is exact.
///
/// ```
/// use sapwood_aggregate::{Disaggregation, Fate};
///
/// let budget = Disaggregation::new("minutes:i16le, seats:u16le@2".parse()?, "minutes", 100)
///     .in_proportion_to("seats")
///     .adding()
///     .compile()?;
/// let mut flights: Vec<([u8; 3], Vec<u8>)> = [(b"AA1", 10_i16, 150_u16), (b"UA1", -5, 150), (b"UA2", 0, 30)]
///     .map(|(key, minutes, seats)| (*key, [minutes.to_le_bytes(), seats.to_le_bytes()].concat()))
///     .into();
///
/// // Nothing is changed while objects are collected.
/// let mut collector = budget.collector();
/// for (key, value) in &flights {
///     collector.push(key, value);
/// }
/// let shares = budget.shares([collector.into_collected()])?;
///
/// let mut progress = shares.progress();
/// for at in 0..shares.batch_count() {
///     for share in shares.batch(at).shares() {
///         let flight = flights.iter_mut().find(|(key, _)| key == share.key);
///         let fate = match flight {
///             Some((_, value)) => budget.change(value, share.part).into(),
///             None => Fate::Vanished,
///         };
///         progress.settle(at, &share, fate);
///     }
/// }
/// let minutes = |at: usize| i16::from_le_bytes([flights[at].1[0], flights[at].1[1]]);
/// assert_eq!([minutes(0), minutes(1), minutes(2)], [10 + 46, -5 + 45, 9]);
/// let report = shares.report(&progress);
/// assert_eq!((report.changed, report.given), (3, 100));
/// assert_eq!((report.sum_before, report.sum_after), (Some(5.into()), Some(105.into())));
/// # Ok::<(), sapwood_aggregate::QueryError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Disaggregation {
    layout: Layout,
    field: String,
    total: i128,
    selection: Selection,
    filter: Option<Predicate>,
    how: How,
    action: Action,
    mismatches: Mismatches,
}

/// What is done with an object's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The field becomes the part. Doing it twice is doing it once.
    Set,
    /// The part is added to the field.
    Add,
}

/// By what the parts differ.
#[derive(Debug, Clone)]
enum How {
    Equally,
    InProportionTo(String),
    Weights(Vec<(Vec<u8>, u64)>),
}

impl Disaggregation {
    /// Of a total over a field of all objects that look so: equally, set.
    pub fn new(layout: Layout, field: impl Into<String>, total: i128) -> Disaggregation {
        Disaggregation {
            layout,
            field: field.into(),
            total,
            selection: Selection::EVERYTHING,
            filter: None,
            how: How::Equally,
            action: Action::Set,
            mismatches: Mismatches::Refuse,
        }
    }

    /// Only objects with these keys.
    pub fn select(self, selection: Selection) -> Disaggregation {
        Disaggregation { selection, ..self }
    }

    /// Only objects for which this is true when they are collected. What another writer does to an
    /// object after that does not take its part away.
    pub fn filter(self, filter: Predicate) -> Disaggregation {
        Disaggregation { filter: Some(filter), ..self }
    }

    /// The same to each object. This is the default.
    pub fn equally(self) -> Disaggregation {
        Disaggregation { how: How::Equally, ..self }
    }

    /// In proportion to a field of the object, as it is when it is collected: a whole number from 0
    /// to 2^64 - 1.
    pub fn in_proportion_to(self, field: impl Into<String>) -> Disaggregation {
        Disaggregation { how: How::InProportionTo(field.into()), ..self }
    }

    /// In proportion to these weights of keys. Of the selection only objects with these keys remain.
    pub fn weights<K: AsRef<[u8]>>(
        self,
        weights: impl IntoIterator<Item = (K, u64)>,
    ) -> Disaggregation {
        let weights = weights.into_iter().map(|(key, weight)| (key.as_ref().to_vec(), weight));
        Disaggregation { how: How::Weights(weights.collect()), ..self }
    }

    /// The field becomes the part. This is the default.
    pub fn setting(self) -> Disaggregation {
        Disaggregation { action: Action::Set, ..self }
    }

    /// The part is added to the field.
    pub fn adding(self) -> Disaggregation {
        Disaggregation { action: Action::Add, ..self }
    }

    /// What happens with objects that do not have what is read of them: the field, the weight, what
    /// the filter asks for. Default: refuse.
    pub fn mismatches(self, mismatches: Mismatches) -> Disaggregation {
        Disaggregation { mismatches, ..self }
    }

    /// Checks that the parts fit together, and makes ready to collect.
    ///
    /// # Errors
    /// [`QueryError::Query`](crate::QueryError::Query): a name that is not known, a field that cannot be
    /// changed, a weight that is no number, two weights for one key.
    pub fn compile(&self) -> Result<Disaggregator> {
        Disaggregator::new(self)
    }
}

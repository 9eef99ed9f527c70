//! The question: a total, a field, and the objects among which it is divided.

use super::field::Action;
use crate::question::layout::Layout;
use crate::question::predicate::Predicate;
use crate::question::query::Mismatches;
use crate::question::selection::Selection;

/// The spread of a total over a field of objects.
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
/// use sapwood::aggregate::Disaggregation;
/// use sapwood::{Db, OrderedTableOptions};
///
/// let flights = Db::in_memory().create_ordered_table("flights", OrderedTableOptions::default())?;
/// for (flight, minutes, seats) in [("AA1", 10_i16, 150_u16), ("UA1", -5, 150), ("UA2", 0, 30)] {
///     let value = [minutes.to_le_bytes(), seats.to_le_bytes()].concat();
///     flights.put(flight.as_bytes(), &value)?;
/// }
///
/// let budget = Disaggregation::new("minutes:i16le, seats:u16le@2".parse()?, "minutes", 100)
///     .in_proportion_to("seats")
///     .adding();
/// let report = flights.disaggregate(&budget)?;
/// assert_eq!((report.changed, report.given), (3, 100));
/// assert_eq!((report.sum_before, report.sum_after), (Some(5.into()), Some(105.into())));
///
/// let minutes = |value: &[u8]| i16::from_le_bytes([value[0], value[1]]);
/// assert_eq!(flights.get_with(b"AA1", minutes)?, Some(10 + 46));
/// assert_eq!(flights.get_with(b"UA1", minutes)?, Some(-5 + 45));
/// assert_eq!(flights.get_with(b"UA2", minutes)?, Some(9));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Disaggregation {
    pub(super) layout: Layout,
    pub(super) field: String,
    pub(super) total: i128,
    pub(super) selection: Selection,
    pub(super) filter: Option<Predicate>,
    pub(super) weighting: Weighting,
    pub(super) action: Action,
    pub(super) mismatches: Mismatches,
}

/// By what the parts differ.
#[derive(Debug, Clone)]
pub(super) enum Weighting {
    Equally,
    InProportionTo(String),
    Weights(Vec<(Vec<u8>, u64)>),
}

impl Disaggregation {
    /// Spreads a total over a field of all objects of a layout, in equal parts that replace what the field had.
    pub fn new(layout: Layout, field: impl Into<String>, total: i128) -> Disaggregation {
        Disaggregation {
            layout,
            field: field.into(),
            total,
            selection: Selection::EVERYTHING,
            filter: None,
            weighting: Weighting::Equally,
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

    /// Gives equal parts to all objects. This is the default.
    pub fn equally(self) -> Disaggregation {
        Disaggregation { weighting: Weighting::Equally, ..self }
    }

    /// In proportion to a field of the object, as it is when it is collected: a whole number from 0
    /// to 2^64 - 1.
    pub fn in_proportion_to(self, field: impl Into<String>) -> Disaggregation {
        Disaggregation { weighting: Weighting::InProportionTo(field.into()), ..self }
    }

    /// In proportion to these weights of keys. Of the selection only objects with these keys remain.
    pub fn weights<K: AsRef<[u8]>>(
        self,
        weights: impl IntoIterator<Item = (K, u64)>,
    ) -> Disaggregation {
        let weights = weights.into_iter().map(|(key, weight)| (key.as_ref().to_vec(), weight));
        Disaggregation { weighting: Weighting::Weights(weights.collect()), ..self }
    }

    /// The field becomes the part. This is the default.
    pub fn setting(self) -> Disaggregation {
        Disaggregation { action: Action::Set, ..self }
    }

    /// The part is added to the field.
    pub fn adding(self) -> Disaggregation {
        Disaggregation { action: Action::Add, ..self }
    }

    /// Sets the treatment of objects that lack what is read of them: the field, the weight, what
    /// the filter asks for. Default: refuse.
    pub fn mismatches(self, mismatches: Mismatches) -> Disaggregation {
        Disaggregation { mismatches, ..self }
    }
}

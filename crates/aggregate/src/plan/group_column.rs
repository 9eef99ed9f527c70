//! A column that objects are grouped by.

use crate::columns::dictionary::Dictionary;
use crate::columns::kernels::MISSING;
use crate::plan::meaning::Meaning;
use crate::question::group::Shape;
use crate::value::stored;
use crate::value::{Float, Value};

/// How a column becomes groups.
#[derive(Debug, Clone)]
pub(crate) struct GroupColumn {
    pub(crate) column: usize,
    meaning: Meaning,
    /// Whether objects may have no value: they are the group [`MISSING`].
    may_miss: bool,
    form: GroupForm,
}

#[derive(Debug, Clone)]
enum GroupForm {
    /// Each lane is a group.
    Lane,
    /// Group `n`, from 1 on, begins at `first + (n - 1) * width`; group 0 ends at `first`.
    Bucket { first: u64, width: u64 },
    /// Group `n`, from 1 on, begins at the lane `from[n - 1]`, which is beyond all lanes perhaps.
    Classes { from: Vec<i128>, bounds: Vec<Value<'static>> },
    /// So many bytes, the first one most significant.
    Bytes(usize),
}

impl GroupColumn {
    /// None if groups of this shape do not go by column.
    pub(crate) fn new(
        column: usize,
        meaning: &Meaning,
        may_miss: bool,
        shape: &Shape,
    ) -> Option<GroupColumn> {
        let form = match shape {
            Shape::Plain => GroupForm::Lane,
            Shape::Bucket { width: 1, .. } if meaning.is_whole() => GroupForm::Lane,
            Shape::Bucket { width, begin } if meaning.is_whole() => {
                let width = u64::try_from(*width).ok()?;
                // Below the width.
                let first = (meaning.bias() + begin).rem_euclid(width.into()) as u64;
                GroupForm::Bucket { first, width }
            }
            Shape::Bucket { .. } => return None,
            Shape::Classes(bounds) => {
                let from = bounds.iter().map(|bound| meaning.first_from(bound).0).collect();
                GroupForm::Classes { from, bounds: bounds.clone() }
            }
        };
        Some(GroupColumn { column, meaning: meaning.clone(), may_miss, form })
    }

    pub(crate) fn bytes(column: usize, width: usize) -> GroupColumn {
        let form = GroupForm::Bytes(width);
        GroupColumn { column, meaning: Meaning::Unsigned, may_miss: false, form }
    }

    /// The numbers of the groups that lanes fall into.
    pub(crate) fn groups(&self, lanes: &[u64], groups: &mut [u64]) {
        let is_missing = |lane: u64| self.may_miss && lane == MISSING;
        match &self.form {
            GroupForm::Lane | GroupForm::Bytes(_) => groups.copy_from_slice(lanes),
            GroupForm::Bucket { first, width } => {
                for (group, &lane) in groups.iter_mut().zip(lanes) {
                    // Above group 0; a width of at least two leaves room for it, and for what is missing.
                    let above = lane.wrapping_sub(*first) / width + 1;
                    *group = match lane < *first {
                        _ if is_missing(lane) => MISSING,
                        true => 0,
                        false => above,
                    };
                }
            }
            GroupForm::Classes { from, .. } => {
                for (group, &lane) in groups.iter_mut().zip(lanes) {
                    let reached = from.partition_point(|from| *from <= i128::from(lane));
                    *group = if is_missing(lane) { MISSING } else { reached as u64 };
                }
            }
        }
    }

    /// Appends the stored form of a group.
    pub(crate) fn encode(&self, group: u64, dictionaries: &[Dictionary], out: &mut Vec<u8>) {
        if self.may_miss && group == MISSING {
            return stored::value(None, out);
        }
        let value = match &self.form {
            GroupForm::Lane => self.meaning.value(group, &dictionaries[self.column]),
            GroupForm::Bucket { first, width } => {
                let begin = i128::from(*first) + (i128::from(group) - 1) * i128::from(*width);
                Value::Int(begin - self.meaning.bias())
            }
            GroupForm::Classes { bounds, .. } => match group.checked_sub(1) {
                Some(bound) => bounds[bound as usize].clone(),
                None => {
                    let below = Float::new(f64::NEG_INFINITY).expect("infinities are not NaN");
                    Value::Float(below)
                }
            },
            GroupForm::Bytes(width) => {
                return stored::value(Some(&Value::from(&group.to_be_bytes()[8 - width..])), out);
            }
        };
        stored::value(Some(&value), out);
    }
}

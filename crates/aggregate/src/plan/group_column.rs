//! The column that objects are grouped by.

use crate::question::group::Shape;
use crate::value::Value;
use crate::value::stored;

/// How a column becomes groups.
#[derive(Debug, Clone)]
pub(crate) struct GroupColumn {
    pub(crate) column: usize,
    form: GroupForm,
}

#[derive(Debug, Clone)]
enum GroupForm {
    Number {
        /// What lanes are more than numbers.
        bias: i128,
    },
    /// Group `n`, from 1 on, begins at `first + (n - 1) * width`; group 0 ends at `first`.
    Bucket { first: u64, width: u64, bias: i128 },
    /// So many bytes, the first one most significant.
    Bytes(usize),
}

impl GroupColumn {
    /// None if groups of this shape do not go by column.
    pub(crate) fn number(column: usize, bias: i128, shape: &Shape) -> Option<GroupColumn> {
        let form = match shape {
            Shape::Plain => GroupForm::Number { bias },
            Shape::Bucket { width: 1, .. } => GroupForm::Number { bias },
            Shape::Bucket { width, begin } => {
                let width = u64::try_from(*width).ok()?;
                // Below the width.
                let first = (bias + begin).rem_euclid(width.into()) as u64;
                GroupForm::Bucket { first, width, bias }
            }
            Shape::Classes(_) => return None,
        };
        Some(GroupColumn { column, form })
    }

    pub(crate) fn bytes(column: usize, width: usize) -> GroupColumn {
        GroupColumn { column, form: GroupForm::Bytes(width) }
    }

    /// The numbers of the groups that lanes fall into.
    pub(crate) fn groups(&self, lanes: &[u64], groups: &mut [u64]) {
        match self.form {
            GroupForm::Number { .. } | GroupForm::Bytes(_) => groups.copy_from_slice(lanes),
            GroupForm::Bucket { first, width, .. } => {
                for (group, &lane) in groups.iter_mut().zip(lanes) {
                    // Above group 0; a width of at least two leaves room for it.
                    let above = lane.wrapping_sub(first) / width + 1;
                    *group = if lane < first { 0 } else { above };
                }
            }
        }
    }

    /// Appends the stored form of a group.
    pub(crate) fn encode(&self, group: u64, out: &mut Vec<u8>) {
        match self.form {
            GroupForm::Number { bias } => {
                stored::value(Some(&Value::Int(i128::from(group) - bias)), out);
            }
            GroupForm::Bucket { first, width, bias } => {
                let begin = i128::from(first) + (i128::from(group) - 1) * i128::from(width);
                stored::value(Some(&Value::Int(begin - bias)), out);
            }
            GroupForm::Bytes(width) => {
                let bytes = group.to_be_bytes();
                stored::value(Some(&Value::from(&bytes[8 - width..])), out);
            }
        }
    }
}

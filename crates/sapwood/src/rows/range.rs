//! Ranges of rows, by values of the first columns of their keys.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::Rows;
use crate::key::prefix_range;
use crate::schema::Value;
use crate::{KeyRange, Result};

/// A range of rows: bounds are values of the first columns of the key, all of them or fewer.
///
/// A bound stands for all rows whose keys begin with its values: a range from it begins with the first of
/// them, a range through it (`..=`) ends behind the last, and one up to it (`..`) ends before the first. The
/// ranges of Rust are ranges of rows, of arrays, slices and vectors of values.
///
/// ```
/// use sapwood::RowRange;
/// use sapwood::schema::Value;
/// use std::ops::Bound;
///
/// let range = [Value::Int(1)]..[Value::Int(3)];
/// assert_eq!(range.bounds().0, Bound::Included(&[Value::Int(1)][..]));
/// ```
pub trait RowRange<'v> {
    /// Where the range begins, and where it ends.
    fn bounds(&self) -> (Bound<&[Value<'v>]>, Bound<&[Value<'v>]>);
}

impl<'v> RowRange<'v> for RangeFull {
    fn bounds(&self) -> (Bound<&[Value<'v>]>, Bound<&[Value<'v>]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<'v, K: AsRef<[Value<'v>]>> RowRange<'v> for Range<K> {
    fn bounds(&self) -> (Bound<&[Value<'v>]>, Bound<&[Value<'v>]>) {
        (Bound::Included(self.start.as_ref()), Bound::Excluded(self.end.as_ref()))
    }
}

impl<'v, K: AsRef<[Value<'v>]>> RowRange<'v> for RangeInclusive<K> {
    fn bounds(&self) -> (Bound<&[Value<'v>]>, Bound<&[Value<'v>]>) {
        (Bound::Included(self.start().as_ref()), Bound::Included(self.end().as_ref()))
    }
}

impl<'v, K: AsRef<[Value<'v>]>> RowRange<'v> for RangeFrom<K> {
    fn bounds(&self) -> (Bound<&[Value<'v>]>, Bound<&[Value<'v>]>) {
        (Bound::Included(self.start.as_ref()), Bound::Unbounded)
    }
}

impl<'v, K: AsRef<[Value<'v>]>> RowRange<'v> for RangeTo<K> {
    fn bounds(&self) -> (Bound<&[Value<'v>]>, Bound<&[Value<'v>]>) {
        (Bound::Unbounded, Bound::Excluded(self.end.as_ref()))
    }
}

impl<'v, K: AsRef<[Value<'v>]>> RowRange<'v> for RangeToInclusive<K> {
    fn bounds(&self) -> (Bound<&[Value<'v>]>, Bound<&[Value<'v>]>) {
        (Bound::Unbounded, Bound::Included(self.end.as_ref()))
    }
}

impl<'v, K: AsRef<[Value<'v>]>> RowRange<'v> for (Bound<K>, Bound<K>) {
    fn bounds(&self) -> (Bound<&[Value<'v>]>, Bound<&[Value<'v>]>) {
        (self.0.as_ref().map(AsRef::as_ref), self.1.as_ref().map(AsRef::as_ref))
    }
}

/// A range of keys.
#[derive(Debug)]
pub(super) struct ByteRange {
    begin: Bound<Vec<u8>>,
    limit: Bound<Vec<u8>>,
    is_empty: bool,
}

impl KeyRange for ByteRange {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        if self.is_empty {
            return (Bound::Included(&[]), Bound::Excluded(&[]));
        }
        (self.begin.as_ref().map(Vec::as_slice), self.limit.as_ref().map(Vec::as_slice))
    }
}

impl Rows {
    pub(super) fn byte_range<'v>(&self, range: &impl RowRange<'v>) -> Result<ByteRange> {
        let (from, to) = range.bounds();
        let mut is_empty = false;
        let begin = match from {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(values) => Bound::Included(self.key_prefix(values)?),
            Bound::Excluded(values) => match behind(&self.key_prefix(values)?) {
                Some(behind) => Bound::Included(behind),
                None => {
                    is_empty = true;
                    Bound::Unbounded
                }
            },
        };
        let limit = match to {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Excluded(values) => Bound::Excluded(self.key_prefix(values)?),
            Bound::Included(values) => {
                behind(&self.key_prefix(values)?).map_or(Bound::Unbounded, Bound::Excluded)
            }
        };
        if let (Bound::Included(begin), Bound::Excluded(limit)) = (&begin, &limit) {
            is_empty |= begin >= limit;
        }
        Ok(ByteRange { begin, limit, is_empty })
    }
}

/// The least key behind all that begin with a prefix, if there can be one.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    prefix_range(prefix).limit().map(<[u8]>::to_vec)
}

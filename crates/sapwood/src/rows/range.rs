//! Ranges of rows, by values of the first columns of their keys.

use std::borrow::Cow;
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::Rows;
use crate::key::prefix_range;
use crate::row::RowField;
use crate::schema::Value;
use crate::{KeyRange, Keyed, Result};

/// The values at both ends of a range.
pub(crate) type Ends<'v> = (Bound<Cow<'v, [Value<'v>]>>, Bound<Cow<'v, [Value<'v>]>>);

/// Values of the first columns of a key, all of them or fewer: an array, a slice or a vector of values, or a tuple of
/// Rust types.
pub trait RowPrefix {
    /// The values.
    fn values(&self) -> Cow<'_, [Value<'_>]>;
}

impl<const N: usize> RowPrefix for [Value<'_>; N] {
    fn values(&self) -> Cow<'_, [Value<'_>]> {
        Cow::Borrowed(self)
    }
}

impl RowPrefix for &[Value<'_>] {
    fn values(&self) -> Cow<'_, [Value<'_>]> {
        Cow::Borrowed(self)
    }
}

impl RowPrefix for Vec<Value<'_>> {
    fn values(&self) -> Cow<'_, [Value<'_>]> {
        Cow::Borrowed(self)
    }
}

/// A value of one column in a bound: a Rust type that a field may have, `&str`, or a [`Value`].
pub trait KeyPart {
    /// The value.
    fn value(&self) -> Value<'_>;
}

impl<T: RowField> KeyPart for T {
    fn value(&self) -> Value<'_> {
        self.to_value()
    }
}

impl KeyPart for Value<'_> {
    fn value(&self) -> Value<'_> {
        self.clone()
    }
}

impl KeyPart for &str {
    fn value(&self) -> Value<'_> {
        Value::text(*self)
    }
}

macro_rules! tuples {
    ($(($($part:ident)+))+) => {
        $(
            impl<$($part: KeyPart),+> RowPrefix for ($($part,)+) {
                fn values(&self) -> Cow<'_, [Value<'_>]> {
                    #[expect(non_snake_case, reason = "the parts have the names of their types")]
                    let ($($part,)+) = self;
                    Cow::Owned(vec![$($part.value()),+])
                }
            }
        )+
    };
}

tuples!((A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F));

/// A range of rows: a Rust range of [`RowPrefix`]es.
///
/// A bound stands for all rows whose keys begin with its values: a range from it begins with the first of them, a range
/// through it (`..=`) ends behind the last, and one up to it (`..`) ends before the first.
///
/// ```
/// use sapwood::{Db, OrderedTableOptions};
///
/// let db = Db::in_memory();
/// let schema = "day:u8, hour:u8, hits:u32, key(day, hour)".parse().expect("a schema");
/// db.create_ordered_table("hits", OrderedTableOptions::default().schema(schema))?;
/// let hits = db.rows("hits")?;
/// for (day, hour) in [(1, 23), (2, 0), (2, 9), (3, 0)] {
///     hits.put(&[day.into(), hour.into(), 7.into()])?;
/// }
/// assert_eq!(hits.range((2_u8,)..=(2_u8,)).count(), 2);
/// assert_eq!(hits.range((2_u8, 1_u8)..).count(), 2);
/// assert_eq!(hits.range(..[3.into()]).count(), 3);
/// # Ok::<(), sapwood::Error>(())
/// ```
pub trait RowRange {
    /// The values at both ends.
    fn bounds(&self) -> Ends<'_>;
}

impl RowRange for RangeFull {
    fn bounds(&self) -> Ends<'_> {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: RowPrefix> RowRange for Range<K> {
    fn bounds(&self) -> Ends<'_> {
        (Bound::Included(self.start.values()), Bound::Excluded(self.end.values()))
    }
}

impl<K: RowPrefix> RowRange for RangeInclusive<K> {
    fn bounds(&self) -> Ends<'_> {
        (Bound::Included(self.start().values()), Bound::Included(self.end().values()))
    }
}

impl<K: RowPrefix> RowRange for RangeFrom<K> {
    fn bounds(&self) -> Ends<'_> {
        (Bound::Included(self.start.values()), Bound::Unbounded)
    }
}

impl<K: RowPrefix> RowRange for RangeTo<K> {
    fn bounds(&self) -> Ends<'_> {
        (Bound::Unbounded, Bound::Excluded(self.end.values()))
    }
}

impl<K: RowPrefix> RowRange for RangeToInclusive<K> {
    fn bounds(&self) -> Ends<'_> {
        (Bound::Unbounded, Bound::Included(self.end.values()))
    }
}

impl<K: RowPrefix> RowRange for (Bound<K>, Bound<K>) {
    fn bounds(&self) -> Ends<'_> {
        (self.0.as_ref().map(K::values), self.1.as_ref().map(K::values))
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

impl<R, E: Keyed> Rows<R, E> {
    pub(super) fn byte_range(&self, range: &impl RowRange) -> Result<ByteRange> {
        let (from, to) = range.bounds();
        let mut is_empty = false;
        let begin = match from {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(values) => Bound::Included(self.key_prefix(&values)?),
            Bound::Excluded(values) => match behind(&self.key_prefix(&values)?) {
                Some(behind) => Bound::Included(behind),
                None => {
                    is_empty = true;
                    Bound::Unbounded
                }
            },
        };
        let limit = match to {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Excluded(values) => Bound::Excluded(self.key_prefix(&values)?),
            Bound::Included(values) => {
                behind(&self.key_prefix(&values)?).map_or(Bound::Unbounded, Bound::Excluded)
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

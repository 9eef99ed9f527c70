//! Ranges of keys, and directions.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the least key to the greatest.
    Ascending,
    /// From the greatest key to the least.
    Descending,
}

/// A range of keys, in the order of their bytes.
///
/// `..` is one, and so are `from..to`, `from..=last`, `from..`, `..to`, `..=last` and a pair of
/// [`Bound`]s, of anything that has bytes: `&[u8]`, `Vec<u8>`, `&str`, `[u8; 4]`. The keys with a common
/// prefix are another (`sapwood::key::prefix_range`). Every operation on a range takes any of them, by
/// value or by reference.
///
/// ```
/// use sapwood::{Db, OrderedTableOptions, key};
///
/// let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
/// table.put_many(&[("elm", ""), ("oak", ""), ("oats", "")])?;
/// assert_eq!(table.range("f".."oak").count(), 0);
/// assert_eq!(table.range("f"..="oak").count(), 1);
/// assert_eq!(table.range(vec![b'f']..).count(), 2);
/// assert_eq!(table.range(key::prefix_range("oa")).count(), 2);
/// # Ok::<(), sapwood::Error>(())
/// ```
pub trait KeyRange {
    /// Where the range begins, and where it ends.
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl<R: KeyRange + ?Sized> KeyRange for &R {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (**self).bounds()
    }
}

impl KeyRange for RangeFull {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for Range<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start().as_ref()), Bound::Included(self.end().as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeFrom<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeTo<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeToInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Included(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for (Bound<K>, Bound<K>) {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.0.as_ref().map(K::as_ref), self.1.as_ref().map(K::as_ref))
    }
}

/// True if no key can lie between the bounds, as where they cross.
///
/// ```
/// use sapwood_engine::is_empty_range;
/// use std::ops::Bound::{Excluded, Included, Unbounded};
///
/// assert!(is_empty_range(Included(b"b"), Included(b"a")));
/// assert!(is_empty_range(Included(b"a"), Excluded(b"a")));
/// assert!(!is_empty_range(Included(b"a"), Included(b"a")));
/// assert!(!is_empty_range(Excluded(b"a"), Unbounded));
/// ```
pub fn is_empty_range(low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => low >= high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_the_bounds_that_it_says() {
        use Bound::{Excluded, Included, Unbounded};
        let (a, b) = (&b"a"[..], &b"b"[..]);
        assert_eq!((..).bounds(), (Unbounded, Unbounded));
        assert_eq!(("a".."b").bounds(), (Included(a), Excluded(b)));
        assert_eq!(("a"..="b").bounds(), (Included(a), Included(b)));
        assert_eq!((vec![b'a']..).bounds(), (Included(a), Unbounded));
        assert_eq!((..[b'b']).bounds(), (Unbounded, Excluded(b)));
        assert_eq!((..=b).bounds(), (Unbounded, Included(b)));
        assert_eq!((Excluded("a"), Unbounded).bounds(), (Excluded(a), Unbounded));
    }
}

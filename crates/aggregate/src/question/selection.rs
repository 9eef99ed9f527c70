//! The selection of objects by key.

use std::ops::Bound;

use sapwood_engine::KeyRange;

use crate::error::{QueryError, Result};
use crate::question::key_list::KeyList;

/// Which objects are looked at, by their keys alone. A predicate narrows it further.
///
/// An executor may use it to reach the objects: by look-up for keys, in order for
/// ranges and prefixes. An executor that walks everything leaves it to the query to check each key.
///
/// ```
/// use std::ops::Bound;
/// use sapwood::aggregate::Selection;
///
/// let united = Selection::prefix(b"UA");
/// assert!(united.contains(b"UA1545") && !united.contains(b"U"));
/// assert_eq!(united.bounds(), (Bound::Included(&b"UA"[..]), Bound::Excluded(&b"UB"[..])));
///
/// let some = Selection::keys([b"b", b"a", b"b"]);
/// assert_eq!(some.as_keys().map(|keys| keys.len()), Some(2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection(Scope);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    Everything,
    Keys(KeyList),
    Range { begin: Bound<Vec<u8>>, limit: Bound<Vec<u8>> },
}

impl Selection {
    /// Every object.
    pub const EVERYTHING: Selection = Selection(Scope::Everything);

    /// The objects with these keys; a key that is given twice counts once.
    pub fn keys<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Selection {
        Selection(Scope::Keys(KeyList::new(keys)))
    }

    /// The objects with keys in a range, in the order of their bytes.
    ///
    /// # Errors
    /// [`QueryError::Query`] if no key can lie in it because its bounds are the wrong way around.
    ///
    /// ```
    /// use sapwood::aggregate::Selection;
    /// use sapwood::key;
    ///
    /// assert!(Selection::range("a".."c")?.contains(b"b"));
    /// assert!(!Selection::range(key::prefix_range("ab"))?.contains(b"ac"));
    /// assert!(Selection::range("c".."a").is_err());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn range(range: impl KeyRange) -> Result<Selection> {
        let (begin, limit) = range.bounds();
        if let (
            Bound::Included(first) | Bound::Excluded(first),
            Bound::Included(last) | Bound::Excluded(last),
        ) = (begin, limit)
            && first > last
        {
            let why = "the range of keys begins behind its end: give the smaller key first";
            return Err(QueryError::Query(why.into()));
        }
        let range =
            Scope::Range { begin: begin.map(<[u8]>::to_vec), limit: limit.map(<[u8]>::to_vec) };
        Ok(Selection(range))
    }

    /// The objects whose keys begin with these bytes.
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Selection {
        let prefix = prefix.as_ref();
        // The least greater string: without the FF bytes at the end, which cannot be raised, and
        // the byte before them raised. Nothing is greater than all that begin with FF alone.
        let limit = prefix.iter().rposition(|&byte| byte != 0xFF).map(|last| {
            let mut limit = prefix[..=last].to_vec();
            limit[last] += 1;
            limit
        });
        Selection(Scope::Range {
            begin: Bound::Included(prefix.to_vec()),
            limit: limit.map_or(Bound::Unbounded, Bound::Excluded),
        })
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.0 == Scope::Everything
    }

    /// The keys, ascending, each once, if the selection is a list of keys.
    pub fn as_keys(&self) -> Option<&KeyList> {
        match &self.0 {
            Scope::Keys(keys) => Some(keys),
            Scope::Everything | Scope::Range { .. } => None,
        }
    }

    /// Bounds within which all selected keys lie.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        match &self.0 {
            Scope::Everything => (Bound::Unbounded, Bound::Unbounded),
            Scope::Range { begin, limit } => {
                (begin.as_ref().map(Vec::as_slice), limit.as_ref().map(Vec::as_slice))
            }
            // Below the empty key there is none.
            Scope::Keys(keys) if keys.is_empty() => (Bound::Unbounded, Bound::Excluded(&[])),
            Scope::Keys(keys) => {
                (Bound::Included(keys.get(0)), Bound::Included(keys.get(keys.len() - 1)))
            }
        }
    }

    /// Whether the object with this key is selected.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        match &self.0 {
            Scope::Everything => true,
            Scope::Keys(keys) => keys.contains(key),
            Scope::Range { begin, limit } => {
                let above = match begin {
                    Bound::Included(begin) => key >= begin.as_slice(),
                    Bound::Excluded(begin) => key > begin.as_slice(),
                    Bound::Unbounded => true,
                };
                above
                    && match limit {
                        Bound::Included(limit) => key <= limit.as_slice(),
                        Bound::Excluded(limit) => key < limit.as_slice(),
                        Bound::Unbounded => true,
                    }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_contain_what_they_say() {
        let range = |begin: &[u8], limit: &[u8]| {
            Selection::range((Bound::Excluded(begin), Bound::Included(limit))).expect("a range")
        };
        let ff: &[u8] = &[0xFF, 0xFF];
        let cases: [(Selection, &[&[u8]], &[&[u8]]); 8] = [
            (Selection::EVERYTHING, &[b"", b"a"], &[]),
            (Selection::keys([b"b", b"a"]), &[b"a", b"b"], &[b"", b"ab", b"c"]),
            (Selection::keys::<&[u8]>([]), &[], &[b"", b"a"]),
            (range(b"a", b"c"), &[b"a\0", b"b", b"c"], &[b"a", b"c\0", b""]),
            (Selection::prefix(b"a"), &[b"a", b"a\xFF"], &[b"", b"b"]),
            (Selection::prefix(b"a\xFF"), &[b"a\xFF", b"a\xFFz"], &[b"a", b"b"]),
            (Selection::prefix(ff), &[ff, b"\xFF\xFFz"], &[b"\xFF", b"a"]),
            (Selection::prefix(b""), &[b"", b"\xFF"], &[]),
        ];
        for (selection, inside, outside) in cases {
            let within =
                |key: &[u8]| std::ops::RangeBounds::<[u8]>::contains(&selection.bounds(), key);
            for key in inside {
                assert!(selection.contains(key) && within(key), "{selection:?} {key:?}");
            }
            for key in outside {
                assert!(!selection.contains(key), "{selection:?} {key:?}");
            }
        }
    }

    #[test]
    fn a_range_the_wrong_way_around_is_refused() {
        let error = Selection::range((Bound::Included(b"b"), Bound::Excluded(b"a")));
        assert!(error.is_err());
        assert!(Selection::range((Bound::Included(b"b"), Bound::Unbounded)).is_ok());
    }
}

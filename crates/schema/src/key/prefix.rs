//! The range of keys with a common prefix.

use std::ops::Bound;

use super::text;
use sapwood_engine::KeyRange;

/// All keys that begin with a prefix: from the prefix itself up to the least byte string that
/// is greater than all of them.
///
/// ```
/// use sapwood::{Db, Direction, OrderedTableOptions, key};
/// use std::ops::ControlFlow;
///
/// let db = Db::in_memory();
/// let flights = db.create_ordered_table("flights", OrderedTableOptions::default())?;
/// for (carrier, flight) in [("AA", 1_u16), ("UA", 15), ("UA", 1545), ("US", 9)] {
///     flights.put(&key::encode(&(carrier, flight)), b"")?;
/// }
///
/// let united = key::prefix_range(&key::encode(&"UA"));
/// let mut numbers = Vec::new();
/// let _ = flights.scan_keys(united, Direction::Descending, |bytes| {
///     let (_, flight): (String, u16) = key::decode(bytes).expect("keys of this table");
///     numbers.push(flight);
///     ControlFlow::<()>::Continue(())
/// })?;
/// assert_eq!(numbers, [1545, 15]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixRange {
    begin: Vec<u8>,
    limit: Option<Vec<u8>>,
}

/// The range of all keys that begin with `prefix`; the empty prefix is every key.
///
/// ```
/// # use sapwood::key;
/// let range = key::prefix_range(b"oak");
/// assert_eq!((range.begin(), range.limit()), (&b"oak"[..], Some(&b"oal"[..])));
/// assert_eq!(key::prefix_range(&[0xFF]).limit(), None);
/// ```
pub fn prefix_range(prefix: impl AsRef<[u8]>) -> PrefixRange {
    let prefix = prefix.as_ref();
    // The least greater string: drop trailing 0xFF bytes, which cannot be raised, and raise
    // the byte before them. A prefix of 0xFF bytes alone has no such string: no limit.
    let kept = prefix.iter().rposition(|&byte| byte != 0xFF);
    let limit = kept.map(|last| {
        let mut limit = prefix[..=last].to_vec();
        limit[last] += 1;
        limit
    });
    PrefixRange { begin: prefix.to_vec(), limit }
}

impl PrefixRange {
    /// Where the range begins, and where it ends. Operations take the range itself: it is a
    /// [`KeyRange`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, key};
    /// # use std::ops::Bound;
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("oak tree", ""), ("oats", "")])?;
    /// let oaks = key::prefix_range(b"oak");
    /// assert_eq!(table.range(&oaks).count(), 1);
    /// assert_eq!(oaks.bounds(), (Bound::Included(&b"oak"[..]), Bound::Excluded(&b"oal"[..])));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let limit = self.limit();
        (Bound::Included(&self.begin), limit.map_or(Bound::Unbounded, Bound::Excluded))
    }

    /// The first key that can be in the range: the prefix itself.
    ///
    /// ```
    /// assert_eq!(sapwood::key::prefix_range(b"oak").begin(), b"oak");
    /// ```
    pub fn begin(&self) -> &[u8] {
        &self.begin
    }

    /// The least byte string above every key in the range; none when nothing lies above.
    ///
    /// ```
    /// assert_eq!(sapwood::key::prefix_range(b"oak").limit(), Some(&b"oal"[..]));
    /// assert_eq!(sapwood::key::prefix_range(b"\xff").limit(), None);
    /// ```
    pub fn limit(&self) -> Option<&[u8]> {
        self.limit.as_deref()
    }
}

impl KeyRange for PrefixRange {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        PrefixRange::bounds(self)
    }
}

/// Encodes the beginning of a text component: as [`encode`](super::encode) of the text, but
/// without the mark that ends it, so that it is a prefix of every text that begins so.
///
/// ```
/// use sapwood::key;
///
/// assert!(key::encode(&"N14228").starts_with(&key::encode_partial("N14")));
/// assert!(!key::encode(&"N14228").starts_with(&key::encode(&"N14")));
/// ```
pub fn encode_partial(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    text::escape(text.as_bytes(), &mut out);
    out
}

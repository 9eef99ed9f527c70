//! Counters: values of eight bytes, an `i64` with its least significant byte first.

use crate::error::{Error, Result};
use crate::map::ChunkMap;
use crate::tree::Found;
use crate::write::value::ValueMut;
use sapwood_engine::Upsert;

impl ChunkMap {
    /// Adds to a counter and returns the sum; an absent key counts as 0, and is there
    /// afterwards. Searches once, and changes the counter in place.
    ///
    /// # Errors
    /// [`Error::Overflow`] and [`Error::NotACounter`], which change nothing; as of
    /// [`put`](Self::put).
    pub fn add(&self, key: &[u8], delta: i64) -> Result<i64> {
        self.add_at(None, key, delta)
    }

    /// The same for a key whose chunk was found before: see
    /// [`put_if_absent_or_update_at`](Self::put_if_absent_or_update_at).
    #[inline]
    pub(crate) fn add_at(&self, found: Option<Found>, key: &[u8], delta: i64) -> Result<i64> {
        let initial = delta.to_le_bytes();
        let change = |value: &mut ValueMut<'_>| add_to(value, delta);
        match self.put_if_absent_or_update_at(found, key, &initial, change)? {
            Upsert::Inserted => Ok(delta),
            Upsert::Updated(sum) => sum,
        }
    }
}

/// Adds to the counter that a value is, or leaves it as it is.
fn add_to(value: &mut ValueMut<'_>, delta: i64) -> Result<i64> {
    let len = value.len();
    let Ok(bytes) = <&[u8; 8]>::try_from(&**value) else {
        return Err(Error::NotACounter { len });
    };
    let held = i64::from_le_bytes(*bytes);
    let sum = held.checked_add(delta).ok_or(Error::Overflow { value: held, delta })?;
    value.write(0, &sum.to_le_bytes());
    Ok(sum)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::BatchError;

    #[test]
    fn sums_are_exact_or_refused() {
        let map = ChunkMap::new();
        assert_eq!(map.add(b"k", -3), Ok(-3));
        assert_eq!(map.add(b"k", 45), Ok(42));
        assert_eq!(map.add(b"k", i64::MAX), Err(Error::Overflow { value: 42, delta: i64::MAX }));
        assert_eq!(map.get(b"k"), Ok(Some(42_i64.to_le_bytes().to_vec())));
        assert_eq!(map.put(b"text", b"123456789"), Ok(false));
        assert_eq!(map.add(b"text", 1), Err(Error::NotACounter { len: 9 }));
        assert_eq!(map.get(b"text"), Ok(Some(b"123456789".to_vec())));
        assert_eq!(map.add(b"", 1), Err(Error::KeyLength { len: 0 }));
    }

    #[test]
    fn a_batch_stops_at_the_first_that_is_refused() {
        let map = ChunkMap::new();
        assert_eq!(map.put(b"k30", b"text"), Ok(false));
        let deltas: Vec<_> = (0..40).map(|at| (format!("k{at:02}"), at)).collect();
        let stopped = BatchError { done: 30, error: Error::NotACounter { len: 4 } };
        assert_eq!(map.add_many(&deltas), Err(stopped));
        assert_eq!(map.get(b"k29"), Ok(Some(29_i64.to_le_bytes().to_vec())));
        assert_eq!(map.contains_key(b"k31"), Ok(false));
        let keys = ["k01", "none", "k29"];
        let found = map.update_many(&keys, |index, value| value[7] = index as u8);
        assert_eq!(found, Ok(2));
        assert_eq!(map.get_with(b"k29", |value| value[7]), Ok(Some(2)));
    }

    #[test]
    fn a_value_is_exchanged_for_another_of_any_length() {
        let map = ChunkMap::new();
        assert_eq!(map.compare_and_put(b"k", b"", b"new"), Ok(false));
        assert_eq!(map.put(b"k", b"old"), Ok(false));
        assert_eq!(map.compare_and_put(b"k", b"ol", b"new"), Ok(false));
        let long = vec![7; 5_000];
        assert_eq!(map.compare_and_put(b"k", b"old", &long), Ok(true));
        // A reader inside: the value is replaced, and stays for the reader.
        let swapped = map.get_with(b"k", |value| {
            let swapped = map.compare_and_put(b"k", &long, b"short");
            assert_eq!(value, long);
            swapped
        });
        assert_eq!(swapped, Ok(Some(Ok(true))));
        assert_eq!(map.get(b"k"), Ok(Some(b"short".to_vec())));
        map.check().expect("a sound map");
    }
}

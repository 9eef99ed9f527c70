//! The keys of a list, in order.
//!
//! One behind the other, ascending, each once: a million keys of 8 bytes are 8 MB and are walked
//! without a jump.

use std::fmt;

/// Keys, ascending by their bytes, each once.
///
/// ```
/// use sapwood::aggregate::Selection;
///
/// let some = Selection::keys(["oak", "elm", "oak"]);
/// let keys = some.as_keys().expect("it is a list");
/// assert_eq!(keys.iter().collect::<Vec<_>>(), [&b"elm"[..], b"oak"]);
/// assert_eq!(keys.get(1), b"oak");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct KeyList {
    bytes: Vec<u8>,
    ends: Ends,
}

#[derive(Clone, PartialEq, Eq)]
enum Ends {
    /// All keys are of this width, above zero.
    Width(usize),
    /// Where each key ends; not all are of one width.
    Each(Vec<usize>),
}

impl KeyList {
    pub(crate) fn new<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> KeyList {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for key in keys {
            bytes.extend_from_slice(key.as_ref());
            ends.push(bytes.len());
        }
        let width = ends.first().copied().unwrap_or(1);
        let is_even = width > 0 && ends.iter().zip(1..).all(|(end, count)| *end == width * count);
        match width {
            8 if is_even => KeyList { bytes: sorted_words(&bytes), ends: Ends::Width(8) },
            _ => sorted(&bytes, &ends, is_even.then_some(width)),
        }
    }

    /// How many keys.
    pub fn len(&self) -> usize {
        match &self.ends {
            Ends::Width(width) => self.bytes.len() / width,
            Ends::Each(ends) => ends.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A key, by its rank.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn get(&self, rank: usize) -> &[u8] {
        match &self.ends {
            Ends::Width(width) => &self.bytes[rank * width..][..*width],
            Ends::Each(ends) => {
                let begin = if rank == 0 { 0 } else { ends[rank - 1] };
                &self.bytes[begin..ends[rank]]
            }
        }
    }

    /// The keys, if all are of 8 bytes.
    pub fn words(&self) -> Option<&[[u8; 8]]> {
        match self.ends {
            Ends::Width(8) => Some(self.bytes.as_chunks().0),
            Ends::Width(_) | Ends::Each(_) => None,
        }
    }

    /// The keys, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|rank| self.get(rank))
    }

    /// Whether a key is among them, by a search.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return true,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        false
    }
}

impl fmt::Debug for KeyList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Keys of 8 bytes sort as numbers.
fn sorted_words(bytes: &[u8]) -> Vec<u8> {
    let (words, _) = bytes.as_chunks();
    let mut words: Vec<u64> = words.iter().map(|word| u64::from_be_bytes(*word)).collect();
    words.sort_unstable();
    words.dedup();
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn sorted(bytes: &[u8], ends: &[usize], width: Option<usize>) -> KeyList {
    let begins = std::iter::once(0).chain(ends.iter().copied());
    let mut keys: Vec<&[u8]> = begins.zip(ends).map(|(begin, end)| &bytes[begin..*end]).collect();
    keys.sort_unstable();
    keys.dedup();
    let sorted = keys.concat();
    let end = |at: &mut usize, key: &[u8]| {
        *at += key.len();
        Some(*at)
    };
    let ends = match width {
        Some(width) => Ends::Width(width),
        None => Ends::Each(keys.iter().scan(0, |at, key| end(at, key)).collect()),
    };
    KeyList { bytes: sorted, ends }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept_in_order_and_once() {
        let lists: [&[&[u8]]; 8] = [
            &[],
            &[b""],
            &[b"", b""],
            &[b"b", b"a", b"b"],
            &[b"bb", b"a", b"", b"bb", b"ab"],
            &[b"a", b"", b"b", b"c"],
            &[b"87654321", b"12345678", b"12345678", b"\xFF2345678"],
            &[b"87654321", b"12345678", b"1234567"],
        ];
        for list in lists {
            let keys = KeyList::new(list);
            let mut expected = list.to_vec();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(keys.iter().collect::<Vec<_>>(), expected);
            assert_eq!((keys.len(), keys.is_empty()), (expected.len(), expected.is_empty()));
            for key in list.iter().copied().chain([&b"aa"[..], b"x", b"12345679"]) {
                assert_eq!(keys.contains(key), expected.contains(&key), "{key:?} in {list:?}");
            }
        }
    }
}

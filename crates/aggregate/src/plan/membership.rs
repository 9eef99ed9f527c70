//! The test whether an object is selected, fast enough for millions.
//!
//! A [`Selection`] says which keys are meant; this answers for each key of a walk. Keys of a list are
//! looked up in hash tables, which are made when the first key is asked for, since a look-up of
//! the objects never asks. Keys of 8 bytes are numbers, so that a range of them is two comparisons.

use std::hash::Hash;
use std::ops::Bound;
use std::sync::OnceLock;

use hashbrown::HashSet;
use sapwood_engine::Column;
use sapwood_mem::vector::Level;

use crate::columns::Masking;
use crate::columns::kernels::{self, Lanes};
use crate::question::key_list::KeyList;
use crate::question::selection::Selection;
use crate::value::number::{Form, Number, Order};

/// A selection that is asked about many keys.
#[derive(Debug)]
pub(crate) struct Membership {
    selection: Selection,
    /// The first and the last key of 8 bytes between the bounds.
    words: Option<(u64, u64)>,
    keys: OnceLock<KeySet>,
}

/// Keys of a list: those of 8 bytes, and the others.
#[derive(Debug)]
struct KeySet {
    words: HashSet<u64>,
    others: HashSet<Box<[u8]>>,
}

/// Keys of 8 bytes in the order of their bytes.
const KEY: Number = Number::new(Form::Unsigned, 8, Order::Big).expect("a number of 8 bytes");

impl Clone for Membership {
    /// The tables are made anew where they are needed.
    fn clone(&self) -> Membership {
        Membership::new(self.selection.clone())
    }
}

impl Membership {
    pub(crate) fn new(selection: Selection) -> Membership {
        let words = words(selection.bounds());
        Membership { selection, words, keys: OnceLock::new() }
    }

    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.selection.is_everything()
    }

    /// Whether the object with this key is selected.
    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        if self.is_everything() {
            return true;
        }
        if self.selection.as_keys().is_some() {
            return self.key_set().contains(key);
        }
        match key.try_into() {
            Ok(word) => self.is_between(u64::from_be_bytes(word)),
            Err(_) => self.selection.contains(key),
        }
    }

    fn is_between(&self, word: u64) -> bool {
        self.words.is_some_and(|(first, last)| (first..=last).contains(&word))
    }

    fn key_set(&self) -> &KeySet {
        self.keys.get_or_init(|| KeySet::new(self.selection.as_keys()))
    }

    /// Sets the mask of the selected objects of a run, from `begin` on, or narrows it if it is set
    /// already. Says whether it is set now.
    pub(crate) fn mask(
        &self,
        level: Level,
        keys: Column<'_>,
        begin: usize,
        masking: Masking,
        lanes: &mut Lanes,
        mask: &mut [u64],
    ) -> Masking {
        if self.is_everything() {
            return masking;
        }
        if masking == Masking::Unmasked {
            mask.fill(u64::MAX);
        }
        let lanes = &mut lanes[..mask.len()];
        let of_words = keys.width() == 8;
        if of_words {
            kernels::gather(level, KEY, keys.bytes_from(begin, 0), keys.stride(), lanes);
        }
        match (self.selection.as_keys(), self.words) {
            (None, Some((first, last))) if of_words => {
                kernels::within(level, lanes, first, last, mask);
            }
            (None, None) if of_words => mask.fill(0),
            (Some(_), _) if of_words => {
                let set = &self.key_set().words;
                for (mask, key) in mask.iter_mut().zip(lanes) {
                    *mask &= u64::from(set.contains(key)).wrapping_neg();
                }
            }
            _ => {
                for (at, mask) in mask.iter_mut().enumerate().filter(|(_, mask)| **mask != 0) {
                    *mask = u64::from(self.contains(keys.item(begin + at))).wrapping_neg();
                }
            }
        }
        Masking::Masked
    }
}

impl KeySet {
    fn new(keys: Option<&KeyList>) -> KeySet {
        let keys = || keys.into_iter().flat_map(KeyList::iter);
        let word = |key: &[u8]| <[u8; 8]>::try_from(key).map(u64::from_be_bytes);
        let words = keys().filter_map(|key| word(key).ok());
        let others = keys().filter(|key| key.len() != 8);
        KeySet { words: set(words), others: set(others.map(Box::from)) }
    }

    fn contains(&self, key: &[u8]) -> bool {
        match key.try_into() {
            Ok(word) => self.words.contains(&u64::from_be_bytes(word)),
            Err(_) => self.others.contains(key),
        }
    }
}

fn set<T: Eq + Hash>(keys: impl Iterator<Item = T> + Clone) -> HashSet<T> {
    let mut set = HashSet::with_capacity(keys.clone().count());
    set.extend(keys);
    set
}

/// The first key of 8 bytes, as a number, that is not below `bound`.
pub(crate) fn first_word_from(bound: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    let len = bound.len().min(8);
    word[..len].copy_from_slice(&bound[..len]);
    let word = u64::from_be_bytes(word);
    // A longer bound lies above the key that it begins with.
    if bound.len() > 8 { word.checked_add(1) } else { Some(word) }
}

/// The first that is above it.
fn first_word_above(bound: &[u8]) -> Option<u64> {
    let from = first_word_from(bound)?;
    if bound.len() == 8 { from.checked_add(1) } else { Some(from) }
}

/// The first and the last key of 8 bytes between two bounds.
fn words((begin, limit): (Bound<&[u8]>, Bound<&[u8]>)) -> Option<(u64, u64)> {
    let first = match begin {
        Bound::Unbounded => Some(0),
        Bound::Included(begin) => first_word_from(begin),
        Bound::Excluded(begin) => first_word_above(begin),
    }?;
    // Nothing is above the last key of all.
    let last = |behind: Option<u64>| behind.map_or(Some(u64::MAX), |behind| behind.checked_sub(1));
    let last = match limit {
        Bound::Unbounded => Some(u64::MAX),
        Bound::Included(limit) => last(first_word_above(limit)),
        Bound::Excluded(limit) => last(first_word_from(limit)),
    }?;
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::kernels::RUN;
    use proptest::prelude::*;

    /// Keys about each other and about the ends of what 8 bytes can say.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop::sample::select(vec![0_u8, 1, 7, 0xFE, 0xFF]);
        prop_oneof![
            2 => prop::collection::vec(byte.clone(), 0..11),
            3 => (prop::sample::select(vec![0_u8, 7, 0xFF]), byte).prop_map(|(most, last)| {
                let mut key = vec![most; 8];
                key[7] = last;
                key
            }),
        ]
    }

    fn selection() -> impl Strategy<Value = Selection> {
        let bound = || {
            prop_oneof![
                Just(Bound::Unbounded),
                key().prop_map(Bound::Included),
                key().prop_map(Bound::Excluded),
            ]
        };
        prop_oneof![
            Just(Selection::EVERYTHING),
            prop::collection::vec(key(), 0..6).prop_map(Selection::keys),
            key().prop_map(|prefix| Selection::prefix(&prefix)),
            (bound(), bound()).prop_map(|(begin, limit)| {
                let range = |begin: &Bound<Vec<u8>>, limit: &Bound<Vec<u8>>| {
                    let slices =
                        (begin.as_ref().map(|key| &key[..]), limit.as_ref().map(|key| &key[..]));
                    Selection::range((slices.0, slices.1))
                };
                range(&begin, &limit).or_else(|_| range(&limit, &begin)).expect("one way around")
            }),
        ]
    }

    proptest! {
        #[test]
        fn membership_is_that_of_the_selection(selection in selection(), keys in prop::collection::vec(key(), 1..40)) {
            let membership = Membership::new(selection.clone());
            for key in &keys {
                prop_assert_eq!(membership.contains(key), selection.contains(key), "{:?}", key);
            }
            for width in [8, 3] {
                let keys: Vec<_> = keys.iter().filter(|key| key.len() == width).cloned().collect();
                let bytes = keys.concat();
                let column = Column::new(&bytes, 0, width, width).expect("inside");
                for masking in [Masking::Unmasked, Masking::Masked] {
                    let is_masked = masking == Masking::Masked;
                    let mut mask = vec![if is_masked { 0 } else { 7 }; keys.len()];
                    if is_masked {
                        mask.iter_mut().step_by(2).for_each(|mask| *mask = u64::MAX);
                    }
                    let was_live = |at: usize| !is_masked || at.is_multiple_of(2);
                    let now = membership.mask(Level::detected(), column, 0, masking, &mut [0; RUN], &mut mask);
                    let is_set = now == Masking::Masked;
                    prop_assert_eq!(is_set, is_masked || !selection.is_everything());
                    for (at, key) in keys.iter().enumerate().filter(|_| is_set) {
                        let expected = selection.contains(key) && was_live(at);
                        prop_assert_eq!(mask[at], u64::from(expected).wrapping_neg());
                    }
                }
            }
        }
    }
}

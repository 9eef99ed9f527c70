//! Shapes: the eight bytes of a chunk's keys that tell them apart.
//!
//! Behind the common prefix, keys often go on with bytes that are the same in
//! all of them: the high bytes of fixed-width numbers, separators. A [`Shape`]
//! picks up to eight bytes that vary and leaves out the others:
//!
//! ```text
//!  key       U A 0 0 0 0 6 9 0 0 0 0 0 0 0 3 ...
//!            prefix      ^ ^               ^        picked: bytes 6, 7, 15
//!  template              . . 0 0 0 0 0 0 0 .        what lies between
//! ```
//! A key that differs from the template is rounded to its nearest neighbour of
//! this shape: down to it with zeros, or up with ones, from the first
//! difference on. So abbreviations stay in key order whatever key comes;
//! equal ones decide nothing.
//!
//! Keys of one length that differ in the picked bytes alone follow from their
//! abbreviations: a shape is *exact* of them, and has their *tail*, too, what lies
//! behind its template.

use crate::node::abbreviation::{abbreviate, abbreviate_foreign, common_prefix_len};

/// Bytes behind the prefix that a shape looks at.
pub(crate) const SPAN_MAX: usize = 256;
/// Bytes that a shape picks at most.
pub(crate) const PICKS_MAX: usize = 8;

/// The bytes of a key that go into its abbreviation, most significant first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape<'a> {
    pub(crate) prefix: &'a [u8],
    /// Positions behind the prefix, ascending; those not used are zero.
    pub(crate) picks: [u8; PICKS_MAX],
    /// The bytes that all keys have in common behind the prefix, up to the last pick; empty:
    /// the eight bytes behind the prefix are picked. Picked bytes are zero.
    pub(crate) template: &'a [u8],
    /// If the shape is exact of its keys: the bytes that they have in common behind the template, up to their end.
    /// Picked bytes are zero.
    pub(crate) tail: Option<&'a [u8]>,
}

impl<'a> Shape<'a> {
    /// The shape that picks the eight bytes behind the prefix.
    pub(crate) fn plain(prefix: &'a [u8]) -> Shape<'a> {
        Shape { prefix, picks: [0; PICKS_MAX], template: &[], tail: None }
    }

    /// The key's abbreviation.
    #[inline]
    pub(crate) fn abbreviate(&self, key: &[u8]) -> u64 {
        if self.template.is_empty() {
            return abbreviate_foreign(key, self.prefix);
        }
        if !key.starts_with(self.prefix) {
            return if key < self.prefix { 0 } else { u64::MAX };
        }
        self.abbreviate_behind(&key[self.prefix.len()..])
    }

    /// As [`abbreviate`](Self::abbreviate), for a key that is known to have the prefix.
    #[inline]
    pub(crate) fn abbreviate_own(&self, key: &[u8]) -> u64 {
        if self.template.is_empty() {
            return abbreviate(key, self.prefix.len());
        }
        self.abbreviate_behind(key.get(self.prefix.len()..).unwrap_or_default())
    }

    fn abbreviate_behind(&self, rest: &[u8]) -> u64 {
        let mut word = 0u64;
        let mut passed = 0;
        for (at, pick) in self.picks.iter().enumerate() {
            let pick = *pick as usize;
            if at > 0 && pick == 0 {
                break;
            }
            let shift = (PICKS_MAX - 1 - at) * 8;
            let wanted = &self.template[passed..pick];
            let found = rest.get(passed..pick);
            if found != Some(wanted) {
                // A key that ends here lacks something, so it sorts before.
                let found = found.unwrap_or_else(|| rest.get(passed..).unwrap_or_default());
                return if found < wanted { word } else { word | (u64::MAX >> (at * 8)) };
            }
            let Some(byte) = rest.get(pick) else { return word };
            word |= u64::from(*byte) << shift;
            passed = pick + 1;
        }
        word
    }

    /// Where the bytes of an abbreviation lie behind the prefix of keys that the shape is exact of.
    pub(crate) fn picked(&self) -> Picked {
        let mut picked = Picked { places: [0; PICKS_MAX], len: 0 };
        let rest_len = self.template.len() + self.tail.map_or(0, <[u8]>::len);
        for (at, pick) in self.picks.iter().enumerate() {
            let place = if self.template.is_empty() { at } else { *pick as usize };
            if at > 0 && place == 0 || place >= rest_len {
                break;
            }
            picked.places[at] = place;
            picked.len = at + 1;
        }
        picked
    }

    /// Whether the shape is exact of this key too, which has the prefix.
    #[inline]
    pub(crate) fn gives(&self, key: &[u8], abbreviation: u64) -> bool {
        let (Some(tail), Some(rest)) = (self.tail, key.get(self.prefix.len()..)) else {
            return false;
        };
        let span = self.template.len();
        if rest.len() != span + tail.len() {
            return false;
        }
        if span == 0 {
            let picked = rest.len().min(PICKS_MAX);
            return rest[picked..] == tail[picked..];
        }
        // The template ends with the last pick.
        let mut passed = 0;
        let picked = self.picked();
        for (place, byte) in picked.places[..picked.len].iter().zip(abbreviation.to_be_bytes()) {
            if rest[passed..*place] != self.template[passed..*place] || rest[*place] != byte {
                return false;
            }
            passed = place + 1;
        }
        rest[span..] == *tail
    }

    /// The shape with the tail of the keys, if it is exact of them.
    pub(crate) fn exact_of<'k: 'a>(
        &self,
        mut keys: impl Iterator<Item = &'k [u8]> + Clone,
        tail: &'a mut [u8; SPAN_MAX],
    ) -> Option<Shape<'a>> {
        let span = self.template.len();
        let rest = keys.clone().next()?.get(self.prefix.len()..)?;
        if rest.len() < span || rest.len() > SPAN_MAX {
            return None;
        }
        let tail = &mut tail[..rest.len() - span];
        tail.copy_from_slice(&rest[span..]);
        if span == 0 {
            let picked = tail.len().min(PICKS_MAX);
            tail[..picked].fill(0);
        }
        let exact = Shape { tail: Some(tail), ..*self };
        let gives =
            |key: &[u8]| key.starts_with(self.prefix) && exact.gives(key, exact.abbreviate(key));
        keys.all(gives).then_some(exact)
    }
}

/// Whether a few of the keys look as if a shape could be exact of all.
pub(crate) fn may_be_exact<'k>(mut keys: impl Iterator<Item = &'k [u8]>) -> bool {
    let Some(first) = keys.next() else { return false };
    let mut varies = [false; SPAN_MAX];
    let mut count = 0;
    for key in keys {
        if key.len() != first.len() {
            return false;
        }
        let begin = common_prefix_len(first, key);
        let behind = first[begin..].iter().zip(&key[begin..]);
        for (at, _) in behind.enumerate().filter(|(_, (a, b))| a != b) {
            let Some(varies) = varies.get_mut(begin + at) else { return false };
            count += usize::from(!std::mem::replace(varies, true));
        }
        if count > PICKS_MAX {
            return false;
        }
    }
    true
}

/// The places behind a prefix of the bytes that an abbreviation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picked {
    places: [usize; PICKS_MAX],
    len: usize,
}

impl Picked {
    /// Writes the bytes of an abbreviation to their places.
    #[inline]
    pub(crate) fn write(&self, abbreviation: u64, rest: &mut [u8]) {
        let bytes = abbreviation.to_be_bytes();
        let [first, .., last] = self.places;
        if self.len == PICKS_MAX && last == first + PICKS_MAX - 1 {
            rest[first..=last].copy_from_slice(&bytes);
            return;
        }
        for (place, byte) in self.places[..self.len].iter().zip(bytes) {
            rest[*place] = byte;
        }
    }
}

/// Picks the first bytes that vary in `keys` behind a prefix that all of them
/// have; `None` if the plain shape is as good. Writes the template to `template`.
pub(crate) fn pick_varying<'k>(
    keys: impl Iterator<Item = &'k [u8]> + Clone,
    prefix_len: usize,
    template: &mut [u8; SPAN_MAX],
) -> Option<([u8; PICKS_MAX], usize)> {
    let behind = keys.map(|key| key.get(prefix_len..).unwrap_or_default());
    let first = behind.clone().next()?;
    // Byte i varies if its bits do, or if some keys have it and some do not.
    let mut varying = [0u8; SPAN_MAX];
    let (mut len_min, mut len_max) = (SPAN_MAX, 0);
    for rest in behind {
        for ((varying, a), b) in varying.iter_mut().zip(first).zip(rest) {
            *varying |= a ^ b;
        }
        len_min = len_min.min(rest.len());
        len_max = len_max.max(rest.len().min(SPAN_MAX));
    }
    if len_min < len_max {
        varying[len_min..len_max].fill(1);
    }
    let mut picks = [0u8; PICKS_MAX];
    let mut count = 0;
    for (at, _) in varying.iter().enumerate().filter(|(_, bits)| **bits != 0).take(PICKS_MAX) {
        picks[count] = at as u8;
        count += 1;
    }
    let last = *picks[..count].last()? as usize;
    if last + 1 == count {
        return None;
    }
    // What does not vary, every key has.
    for (at, byte) in template[..=last].iter_mut().enumerate() {
        *byte = if picks[..count].contains(&(at as u8)) { 0 } else { first[at] };
    }
    Some((picks, last + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of<'a>(
        keys: &[Vec<u8>],
        prefix: &'a [u8],
        template: &'a mut [u8; SPAN_MAX],
    ) -> Shape<'a> {
        let keys = keys.iter().map(Vec::as_slice);
        match pick_varying(keys, prefix.len(), template) {
            Some((picks, span)) => Shape { prefix, picks, template: &template[..span], tail: None },
            None => Shape::plain(prefix),
        }
    }

    #[test]
    fn numbers_behind_zeros_are_told_apart() {
        let keys: Vec<Vec<u8>> = (0..600u64)
            .map(|i| {
                [b"UA".to_vec(), (i / 30).to_be_bytes().to_vec(), (i % 30).to_be_bytes().to_vec()]
                    .concat()
            })
            .collect();
        let mut template = [0; SPAN_MAX];
        let shape = shape_of(&keys, b"UA", &mut template);
        assert_eq!((shape.picks, shape.template.len()), ([7, 15, 0, 0, 0, 0, 0, 0], 16));
        let abbreviations: Vec<u64> = keys.iter().map(|key| shape.abbreviate(key)).collect();
        assert!(abbreviations.is_sorted_by(|a, b| a < b), "each differs from the one before");
        assert!(keys.iter().all(|key| shape.abbreviate_own(key) == shape.abbreviate(key)));
    }

    #[test]
    fn keys_are_told_apart_by_bytes_far_behind_their_prefix() {
        for equal in [0, 7, 8, 63, 64, 72, 200, 247] {
            let keys: Vec<Vec<u8>> = (0..500u64)
                .map(|i| [b"a".repeat(equal), i.to_be_bytes().to_vec(), b"tail".to_vec()].concat())
                .collect();
            let mut template = [0; SPAN_MAX];
            let shape = shape_of(&keys, b"", &mut template);
            let abbreviations: Vec<u64> = keys.iter().map(|key| shape.abbreviate(key)).collect();
            assert!(abbreviations.is_sorted_by(|a, b| a < b), "{equal} equal bytes: {shape:?}");
        }
    }

    /// Whatever the shape was made from, and whatever key comes.
    #[test]
    fn abbreviations_never_contradict_any_keys() {
        let mut rng = 99u64;
        let mut next = |limit: u64| {
            rng = rng.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (rng >> 33) % limit
        };
        let mut shaped = 0;
        for round in 0..400 {
            // Few bytes that vary among many, too, as far as a shape looks and farther.
            let (len, one_in) = [(14, 4), (100, 20), (256, 60), (300, 60)][round % 4];
            let varies: Vec<bool> = (0..len).map(|_| next(one_in) == 0).collect();
            let own = |next: &mut dyn FnMut(u64) -> u64| -> Vec<u8> {
                varies.iter().map(|varies| if *varies { next(3) as u8 } else { 1 }).collect()
            };
            let keys: Vec<Vec<u8>> = (0..8).map(|_| own(&mut next)).collect();
            let prefix = vec![1u8; varies.iter().position(|varies| *varies).unwrap_or(3).min(3)];
            let mut all = keys.clone();
            for _ in 0..60 {
                let mut foreign = own(&mut next);
                let at = next(len) as usize;
                foreign[at] = [0, 2, 255][next(3) as usize];
                foreign.truncate(1 + next(len + 2) as usize);
                all.push(foreign);
            }
            all.sort();
            let mut template = [0; SPAN_MAX];
            let shape = shape_of(&keys, &prefix, &mut template);
            shaped += usize::from(!shape.template.is_empty());
            for pair in all.windows(2) {
                let (a, b) = (shape.abbreviate(&pair[0]), shape.abbreviate(&pair[1]));
                assert!(
                    a <= b,
                    "{:?} is {a:016x}, {:?} is {b:016x} in {shape:?}",
                    pair[0],
                    pair[1]
                );
            }
        }
        assert!(shaped > 100, "the test is about shapes: {shaped}");
    }
}

//! The dictionary of a column: texts as small numbers.
//!
//! It belongs to the runs of one fold. What leaves them is the texts, so it may be forgotten whenever no lane refers
//! to it.

use std::sync::Arc;

use hashbrown::HashMap;

/// Different texts after which the dictionary is forgotten: it stays in the second cache.
#[cfg(not(test))]
const TEXTS_MAX: usize = 16_384;
#[cfg(test)]
const TEXTS_MAX: usize = 24;

/// Bytes of the texts that it takes. An object with a longer one goes by itself.
#[cfg(not(test))]
const BYTES_MAX: usize = 128;
#[cfg(test)]
const BYTES_MAX: usize = 12;

#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    numbers: HashMap<Arc<[u8]>, u32>,
    texts: Vec<Arc<[u8]>>,
    /// The number that was last asked for: neighbours in the order of keys share texts.
    last: usize,
}

impl Dictionary {
    /// The number of a text that is there.
    #[inline]
    pub(crate) fn find(&mut self, text: &[u8]) -> Option<u64> {
        if self.texts.get(self.last).is_none_or(|last| **last != *text) {
            self.last = *self.numbers.get(text)? as usize;
        }
        Some(self.last as u64)
    }

    /// The number of a text, which is below [`MISSING`](crate::columns::kernels::MISSING). None if it is too long.
    pub(crate) fn number(&mut self, text: &[u8]) -> Option<u64> {
        let known = self.find(text);
        if known.is_some() || text.len() > BYTES_MAX {
            return known;
        }
        let (text, number) = (Arc::<[u8]>::from(text), self.texts.len());
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number as u32);
        self.last = number;
        Some(number as u64)
    }

    pub(crate) fn text(&self, number: u64) -> &[u8] {
        &self.texts[number as usize]
    }

    pub(crate) fn is_full(&self) -> bool {
        self.texts.len() >= TEXTS_MAX
    }

    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
        self.texts.clear();
        self.last = 0;
    }
}

//! The dictionary of a fold: texts as small numbers.
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
    /// The number of a text, which is below [`MISSING`](crate::columns::kernels::MISSING). None if it is too long.
    #[inline]
    pub(crate) fn number(&mut self, text: &[u8]) -> Option<u64> {
        match self.texts.get(self.last) {
            Some(last) if **last == *text => Some(self.last as u64),
            _ => self.number_slow(text),
        }
    }

    fn number_slow(&mut self, text: &[u8]) -> Option<u64> {
        let number = match self.numbers.get(text) {
            Some(number) => *number,
            None if text.len() > BYTES_MAX => return None,
            None => {
                let (text, number) = (Arc::<[u8]>::from(text), self.texts.len() as u32);
                self.texts.push(Arc::clone(&text));
                self.numbers.insert(text, number);
                number
            }
        };
        self.last = number as usize;
        Some(number.into())
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

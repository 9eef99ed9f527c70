//! Sinks: what takes the objects of a run in.

use sapwood_aggregate::{Block, Collector, Fold, Live, Places, QueryError, Strided};
use sapwood_hashlog::{Place, Run};

/// What takes objects in.
pub trait Sink: Send {
    /// An object that may be selected.
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError>;
    /// An object that is.
    fn push_selected(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError>;
    /// Objects of 8-byte keys and values, by columns.
    fn push_words(&mut self, words: &Words<'_>) -> Result<(), QueryError>;
}

/// Objects of 8-byte keys and values, by columns.
pub struct Words<'a> {
    /// Empty if nothing asks for them; then all are selected.
    pub(crate) keys: &'a [[u8; 8]],
    pub(crate) values: &'a [[u8; 8]],
    /// Empty if they are not known.
    pub(crate) places: &'a [Place],
    pub(crate) are_selected: bool,
}

impl<'a> Words<'a> {
    fn block(&self) -> Result<Block<'a>, QueryError> {
        let column = |items: &'a [[u8; 8]]| Strided::new(items.as_flattened(), 0, 8, 8);
        let keys = if self.keys.is_empty() { Strided::NOTHING } else { column(self.keys)? };
        Block::new(self.values.len(), keys, column(self.values)?, Live::All)
    }
}

impl Sink for Fold<'_> {
    #[inline]
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Fold::push(self, key, value)
    }

    #[inline]
    fn push_selected(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Fold::push_selected(self, key, value)
    }

    fn push_words(&mut self, words: &Words<'_>) -> Result<(), QueryError> {
        match words.are_selected {
            true => self.push_block_selected(&words.block()?),
            false => self.push_block(&words.block()?),
        }
    }
}

impl Sink for Collector<'_> {
    #[inline]
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Collector::push(self, key, value);
        Ok(())
    }

    #[inline]
    fn push_selected(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Collector::push_selected(self, key, value, None);
        Ok(())
    }

    fn push_words(&mut self, words: &Words<'_>) -> Result<(), QueryError> {
        let mut list = [0; Run::LEN_MAX];
        let list = &mut list[..words.places.len()];
        for (word, place) in list.iter_mut().zip(words.places) {
            *word = place.word();
        }
        let places = match stepped(list) {
            Some(stepped) => stepped,
            None if list.is_empty() => Places::None,
            None => Places::Each(list),
        };
        match words.are_selected {
            true => self.push_block_selected(&words.block()?, places),
            false => self.push_block(&words.block()?, places),
        }
        Ok(())
    }
}

/// Places that are at one distance from each to the next, which those of a page are where all its
/// entries are live.
fn stepped(places: &[u64]) -> Option<Places<'static>> {
    let [first, second, ..] = *places else { return None };
    let step = second.wrapping_sub(first);
    let is_step = |(place, next): (&u64, &u64)| next.wrapping_sub(*place) == step;
    let all = places.iter().zip(&places[1..]).fold(true, |all, pair| all & is_step(pair));
    all.then_some(Places::Stepped { first, step })
}

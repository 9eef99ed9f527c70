//! The choice of the next key.

use crate::keys::near;
use crate::{Bytes, Rng};
use rand::RngExt as _;
use rand::distr::Distribution as _;

/// In which order writes come to the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// Any key, all alike.
    Uniform,
    /// Few keys most of the time.
    Zipf,
    /// From the least key up, over and over.
    Ascending,
    /// From the greatest key down, over and over.
    Descending,
    /// Ascending, and the oldest go first.
    Fifo,
}

impl KeyOrder {
    /// Every order.
    pub const ALL: [KeyOrder; 5] = [
        KeyOrder::Uniform,
        KeyOrder::Zipf,
        KeyOrder::Ascending,
        KeyOrder::Descending,
        KeyOrder::Fifo,
    ];
}

/// Picks keys of a stream.
pub(crate) struct Picker {
    keys: Vec<Bytes>,
    order: KeyOrder,
    zipf: rand_distr::Zipf<f64>,
    /// Number of keys put so far, where the order counts them.
    newest: usize,
    /// Number of keys removed so far, where the order counts them.
    oldest: usize,
}

impl Picker {
    /// Of at least one key.
    pub(crate) fn new(keys: Vec<Bytes>, order: KeyOrder) -> Self {
        let zipf = rand_distr::Zipf::new(keys.len() as f64, 1.1).expect("at least one key");
        Picker { keys, order, zipf, newest: 0, oldest: 0 }
    }

    /// Any key, all alike.
    pub(crate) fn uniform(&self, rng: &mut Rng) -> Bytes {
        self.keys[rng.random_range(0..self.keys.len())].clone()
    }

    /// A key to read: at times one that is likely absent.
    pub(crate) fn any(&self, rng: &mut Rng) -> Bytes {
        match rng.random_range(0..8) {
            0 => self.near(rng),
            _ => self.picked(rng),
        }
    }

    /// A key, or one beside it.
    pub(crate) fn near(&self, rng: &mut Rng) -> Bytes {
        let key = self.picked(rng);
        match rng.random_range(0..2) {
            0 => near(&key, rng),
            _ => key,
        }
    }

    /// The next key to write.
    pub(crate) fn next_to_put(&mut self, rng: &mut Rng) -> Bytes {
        let count = self.keys.len();
        match self.order {
            KeyOrder::Uniform | KeyOrder::Zipf => self.picked(rng),
            KeyOrder::Ascending | KeyOrder::Fifo => {
                self.newest += 1;
                self.keys[(self.newest - 1) % count].clone()
            }
            KeyOrder::Descending => {
                self.newest += 1;
                self.keys[count - 1 - (self.newest - 1) % count].clone()
            }
        }
    }

    /// The next key to remove.
    pub(crate) fn next_to_remove(&mut self, rng: &mut Rng) -> Bytes {
        if self.order != KeyOrder::Fifo {
            return self.picked(rng);
        }
        self.oldest = (self.oldest + 1).min(self.newest);
        self.keys[self.oldest % self.keys.len()].clone()
    }

    fn picked(&self, rng: &mut Rng) -> Bytes {
        let index = match self.order {
            KeyOrder::Zipf => self.zipf.sample(rng) as usize - 1,
            _ => rng.random_range(0..self.keys.len()),
        };
        // Zipf's favourites stand all over the range, not at its begin.
        self.keys[index.wrapping_mul(7_919) % self.keys.len()].clone()
    }
}

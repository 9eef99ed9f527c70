//! The objects: their keys, their places, and their sums.
//!
//! Objects are numbered from 0. A key is its number with the most significant byte first, so that a
//! range of keys is a range of numbers. Tables are loaded in a random order, so that neither a
//! range nor a list of keys lies together in a log.

use crate::harness::*;

pub(crate) const BYTES_EXPECTED: u64 = 4 + 8;

#[inline]
pub(crate) fn key(number: u32) -> [u8; 8] {
    u64::from(number).to_be_bytes()
}

/// The integer of object `number`: any of 32 bits, so that no sum of a bench leaves 64 bits.
#[inline]
pub(crate) fn amount(number: u32) -> i64 {
    i64::from((Random::new(u64::from(number)).next() >> 32) as i32)
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) number: u32,
    pub(crate) place: u32,
}

impl Placed {
    #[inline]
    pub(crate) fn key_word(&self) -> u64 {
        u64::from_ne_bytes(key(self.number))
    }
}

pub(crate) struct Objects {
    pub(crate) in_load_order: Vec<u32>,
    pub(crate) placed: Vec<Placed>,
}

impl Objects {
    pub(crate) fn new(count: u32) -> Objects {
        let mut in_load_order: Vec<u32> = (0..count).collect();
        Random::new(u64::from(count)).shuffle(&mut in_load_order);
        let mut placed: Vec<Placed> =
            (0..count).map(|number| Placed { number, place: 0 }).collect();
        for (place, &number) in (0..).zip(&in_load_order) {
            placed[number as usize].place = place;
        }
        Objects { in_load_order, placed }
    }

    pub(crate) fn count(&self) -> u32 {
        self.placed.len() as u32
    }

    pub(crate) fn draw(&self, count: u32) -> Vec<Placed> {
        let mut random = Random::new(!u64::from(count));
        let mut wanted = count;
        let mut drawn = Vec::with_capacity(count as usize);
        // Knuth's algorithm S: each is taken with the chance that the rest of the draw leaves it.
        for (object, left) in self.placed.iter().zip((1..=self.count()).rev()) {
            if random.below(left) < wanted {
                drawn.push(*object);
                wanted -= 1;
            }
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_has_one_place() {
        let objects = Objects::new(1_000);
        for object in &objects.placed {
            assert_eq!(objects.in_load_order[object.place as usize], object.number);
        }
        let at_home = objects.placed.iter().filter(|object| object.number == object.place);
        assert!(at_home.count() < 20, "the order is not random");
    }

    #[test]
    fn a_draw_has_as_many_as_wanted_each_once() {
        let objects = Objects::new(1_000);
        for count in [0, 1, 5, 100, 1_000] {
            let drawn = objects.draw(count);
            assert_eq!(drawn.len(), count as usize);
            assert!(drawn.is_sorted_by(|left, right| left.number < right.number));
        }
        let in_the_first_half = objects.draw(100).iter().filter(|drawn| drawn.number < 500).count();
        assert!((30..70).contains(&in_the_first_half), "{in_the_first_half} of 100");
    }
}

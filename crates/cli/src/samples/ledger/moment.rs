//! The moments at which the process that books is killed, drawn from a seed.

use std::time::Duration;

use fastrand::Rng;

/// How often the process is killed.
pub(super) const KILLS: usize = 7;

/// A moment of a process that books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// A while after it began to open the database.
    Opening { after: Duration },
    /// A while after it said that it had booked so many.
    Booking { flights: usize, after: Duration },
}

/// Draws the moments.
pub(super) struct Moments {
    random: Rng,
    /// Which process is killed while it opens the database.
    opening: usize,
    rows: usize,
}

impl Moments {
    pub(super) fn new(seed: u64, rows: usize) -> Self {
        let mut random = Rng::with_seed(seed);
        // Not the first, which finds nothing to recover.
        let opening = random.usize(1..KILLS);
        Self { random, opening, rows }
    }

    /// The moment of kill number `kill`, of a process that begins with so many booked; and where
    /// that process waits to be killed, so that there is always something left to book.
    pub(super) fn draw(&mut self, kill: usize, booked: usize) -> (Moment, usize) {
        let left = self.rows.saturating_sub(booked);
        let share = (left / (KILLS - kill + 1)).max(1);
        let limit = (booked + 2 * share).min(self.rows.saturating_sub(1));
        let moment = if kill == self.opening {
            Moment::Opening { after: Duration::from_micros(self.random.u64(0..5000)) }
        } else {
            let after = Duration::from_micros(self.random.u64(0..2000));
            Moment::Booking { flights: booked + self.random.usize(0..share), after }
        };
        (moment, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_something_left_whatever_is_drawn() {
        for seed in 0..200 {
            let (mut moments, mut again) = (Moments::new(seed, 10_000), Moments::new(seed, 10_000));
            let mut booked = 0;
            let mut openings = 0;
            for kill in 0..KILLS {
                let (moment, limit) = moments.draw(kill, booked);
                assert_eq!(again.draw(kill, booked), (moment, limit));
                assert!(booked <= limit && limit < 10_000, "{booked} {limit}");
                match moment {
                    Moment::Opening { .. } => openings += 1,
                    Moment::Booking { flights, .. } => {
                        assert!(booked <= flights && flights < limit)
                    }
                }
                // The kill came as late as it could.
                booked = limit;
            }
            assert_eq!(openings, 1);
        }
    }
}

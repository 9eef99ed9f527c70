//! Connections of HTTP at a time.
//!
//! At the limit a new connection takes the place of the one that has waited longest for the head of
//! a request: heads that never come keep no place, and a probe of the server's health is answered.
//! Where all are being answered, some more are let in, whose requests about roll-ups are refused. Such a
//! refusal ends the connection, which would be one of those beyond the limit for as long as it stays.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Connections at a time, at most ...
const MOST: usize = 1_024;
/// ... and those beyond them while all others are being answered.
const SPARE: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Connections {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: usize,
    /// Connections that wait for a head, the oldest first.
    waiting: BTreeMap<u64, CancellationToken>,
    next: u64,
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    connections: Arc<Connections>,
    /// Cancelled when another connection has taken the place.
    pub(super) taken: CancellationToken,
    /// The number under which it waits.
    number: Mutex<Option<u64>>,
    /// True for a connection beyond the limit.
    pub(super) is_spare: bool,
}

impl Connections {
    /// Lets a connection in; `None` if there are as many as may be, all of which are being
    /// answered.
    pub(super) fn enter(self: &Arc<Connections>) -> Option<Place> {
        let mut state = self.state();
        let mut is_spare = false;
        if state.open >= MOST {
            match state.waiting.pop_first() {
                Some((_, longest)) => {
                    longest.cancel();
                    state.open -= 1;
                }
                None if state.open < MOST + SPARE => is_spare = true,
                None => return None,
            }
        }
        state.open += 1;
        drop(state);
        let (connections, taken) = (Arc::clone(self), CancellationToken::new());
        let place = Place { connections, taken, number: Mutex::default(), is_spare };
        place.wait();
        Some(place)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Notes that the connection waits for a head, unless another has taken its place.
    pub(super) fn wait(&self) {
        let mut state = self.connections.state();
        // It is cancelled under this lock, and its place is given back: it must not be taken twice.
        if self.taken.is_cancelled() {
            return;
        }
        let number = state.next;
        state.next += 1;
        state.waiting.insert(number, self.taken.clone());
        *self.number() = Some(number);
    }

    /// Notes that a head has come, which is being answered.
    pub(super) fn answer(&self) {
        let number = self.number().take();
        if let Some(number) = number {
            self.connections.state().waiting.remove(&number);
        }
    }

    fn number(&self) -> MutexGuard<'_, Option<u64>> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.answer();
        if !self.taken.is_cancelled() {
            self.connections.state().open -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_takes_the_place_of_the_one_that_has_waited_longest_for_a_head() {
        let connections = Arc::new(Connections::default());
        let mut places: Vec<Place> = (0..MOST).filter_map(|_| connections.enter()).collect();
        assert_eq!(places.len(), MOST);
        // The first is being answered, and the second has been.
        places[0].answer();
        places[1].answer();
        places[1].wait();
        let probe = connections.enter().expect("heads that do not come keep no place");
        assert!(!probe.is_spare);
        let taken = |places: &[Place]| places.iter().filter(|it| it.taken.is_cancelled()).count();
        assert!(places[2].taken.is_cancelled() && taken(&places) == 1);
        drop((probe, places.remove(2)));
        // All are being answered.
        places.extend(connections.enter());
        places.iter().for_each(Place::answer);
        assert_eq!((places.len(), taken(&places)), (MOST, 0));
        let spare: Vec<Place> = std::iter::from_fn(|| {
            let place = connections.enter()?;
            place.answer();
            Some(place)
        })
        .collect();
        assert!(spare.len() == SPARE && spare.iter().all(|place| place.is_spare));
        drop(spare);
        places.pop();
        assert!(connections.enter().is_some_and(|place| !place.is_spare));
    }

    #[test]
    fn a_place_that_is_taken_while_its_answer_ends_is_not_taken_again() {
        let connections = Arc::new(Connections::default());
        let places: Vec<Place> = (0..MOST).filter_map(|_| connections.enter()).collect();
        let next = connections.enter().expect("the first one waits for a head");
        assert!(places[0].taken.is_cancelled());
        // Its head had come, and its task goes on to the next one before it is dropped.
        places[0].answer();
        places[0].wait();
        places[1..].iter().for_each(Place::answer);
        next.answer();
        let spare = connections.enter().expect("some more are let in");
        assert!(spare.is_spare, "there is no other place to be taken");
        drop((places, next, spare));
        assert_eq!(connections.state().open, 0);
    }
}

//! The check that a concurrent history is linearizable.
//!
//! A history is if each operation can be given one moment between its begin and its end so that,
//! in the order of those moments, every answer is right. Operations on single keys compose
//! (Herlihy and Wing, 1990, section 3: linearizability is local), so each key is checked alone.
//! Where operations see many keys at once, all keys are one object ([`check_object`]).
//!
//! The search is that of Wing and Gong (1993) with Lowe's memory of configurations (2017): take
//! any operation that may come next, and go back when no order of the rest explains the answers.
//! One shortcut makes it fast: a legal operation whose answer says that it changed nothing may be
//! taken at once and for good, since any order that has it later is as legal with it now. (That it
//! happens to leave this state alone is not enough: it might change the later one.)

use crate::Shown;
use crate::history::{Call, Event, History, Specified, State};
use std::collections::HashSet;
use std::fmt;

/// No order of an object's operations explains their answers.
pub struct NotLinearizable<C: Specified = Call> {
    object: String,
    /// The most events in a legal order that the search came to, then what it could not explain.
    explained: Vec<Event<C>>,
    state: C::State,
    stuck: Vec<Event<C>>,
}

impl<C: Specified> fmt::Display for NotLinearizable<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = &self.object;
        writeln!(f, "{object}: no order of these operations explains every answer.")?;
        let skipped = self.explained.len().saturating_sub(20);
        writeln!(f, "the longest legal order ({skipped} earlier ones left out):")?;
        for event in &self.explained[skipped..] {
            writeln!(f, "  {event:?}")?;
        }
        writeln!(f, "leaves {}; none of these can come next:", C::show(&self.state))?;
        self.stuck.iter().try_for_each(|event| writeln!(f, "  {event:?}"))
    }
}

impl<C: Specified> fmt::Debug for NotLinearizable<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks each key of `history`, all of them absent at its begin.
pub fn check(history: &History) -> Result<(), NotLinearizable> {
    for (key, events) in &history.by_key {
        check_key(key, None, events)?;
    }
    Ok(())
}

/// Checks the events of one key that begins in `initial`.
pub fn check_key(key: &[u8], initial: State, events: &[Event]) -> Result<(), NotLinearizable> {
    check_object(&format!("key {}", Shown(key)), initial, events)
}

/// Checks the events of one object that begins in `initial`; `object` is what an error calls it.
pub fn check_object<C: Specified>(
    object: &str,
    initial: C::State,
    events: &[Event<C>],
) -> Result<(), NotLinearizable<C>> {
    let mut events = events.to_vec();
    events.sort_unstable_by_key(|event| event.begin);
    let mut search = Search::new(&events, initial);
    if search.succeeds() {
        return Ok(());
    }
    let (explained, state) = search.longest;
    let taken: HashSet<usize> = explained.iter().copied().collect();
    let rest = (0..events.len()).filter(|index| !taken.contains(index));
    let first_end = rest.clone().map(|index| events[index].end).min();
    let next = |index: &usize| Some(events[*index].begin) < first_end;
    Err(NotLinearizable {
        object: object.to_owned(),
        stuck: rest.filter(next).map(|index| events[index].clone()).collect(),
        explained: explained.iter().map(|index| events[*index].clone()).collect(),
        state,
    })
}

/// The other events that could have come at a choice.
#[derive(Clone, Copy, PartialEq)]
enum Alternatives {
    /// They are tried when the choice fails.
    Untried,
    /// They need no try.
    Needless,
}

/// A choice made: which event, and the state before it.
struct Choice<S> {
    event: usize,
    before: S,
    alternatives: Alternatives,
}

struct Search<'a, C: Specified> {
    /// By begin.
    events: &'a [Event<C>],
    /// Which events the order so far holds.
    taken: Vec<u64>,
    /// Every event before this one is taken.
    first_left: usize,
    state: C::State,
    order: Vec<Choice<C::State>>,
    /// Configurations that lead nowhere, or are being tried.
    seen: HashSet<(Vec<u64>, C::State)>,
    longest: (Vec<usize>, C::State),
}

impl<'a, C: Specified> Search<'a, C> {
    fn new(events: &'a [Event<C>], initial: C::State) -> Self {
        Search {
            events,
            taken: vec![0; events.len().div_ceil(64)],
            first_left: 0,
            state: initial.clone(),
            order: Vec::new(),
            seen: HashSet::new(),
            longest: (Vec::new(), initial),
        }
    }

    fn succeeds(&mut self) -> bool {
        // The first candidate that this configuration has not tried yet.
        let mut from = 0;
        loop {
            if self.order.len() > self.longest.0.len() {
                let order = self.order.iter().map(|choice| choice.event).collect();
                self.longest = (order, self.state.clone());
            }
            if self.order.len() == self.events.len() {
                return true;
            }
            match self.advance(from) {
                true => from = 0,
                false => match self.back() {
                    Some(event) => from = event + 1,
                    None => return false,
                },
            }
        }
    }

    /// Takes a legal next event: a pure one, or else the first from `from` on not seen to fail.
    fn advance(&mut self, from: usize) -> bool {
        let candidates = self.candidates();
        if from == 0 {
            let pure = |event: &&usize| {
                let call = &self.events[**event].call;
                call.changed_nothing() && call.step(&self.state).is_some()
            };
            if let Some(&event) = candidates.iter().find(pure) {
                let state = self.state.clone();
                self.take(event, state, Alternatives::Needless);
                return true;
            }
        }
        for event in candidates.into_iter().filter(|event| *event >= from) {
            let Some(after) = self.events[event].call.step(&self.state) else {
                continue;
            };
            let mut taken = self.taken.clone();
            taken[event / 64] |= 1 << (event % 64);
            if self.seen.insert((taken, after.clone())) {
                self.take(event, after, Alternatives::Untried);
                return true;
            }
        }
        false
    }

    /// Events left that began before any event left had ended, and before which nothing of their
    /// thread is left.
    fn candidates(&self) -> Vec<usize> {
        let mut candidates = Vec::new();
        // The first begin of an event left, by thread.
        let mut first_begins: Vec<(usize, u64)> = Vec::new();
        let mut first_end = u64::MAX;
        for index in self.first_left..self.events.len() {
            let event = &self.events[index];
            if event.begin > first_end {
                break;
            }
            if !self.is_taken(index) {
                first_end = first_end.min(event.end);
                match first_begins.iter().find(|(thread, _)| *thread == event.thread) {
                    Some((_, begin)) if *begin < event.begin => continue,
                    Some(_) => {}
                    None => first_begins.push((event.thread, event.begin)),
                }
                candidates.push(index);
            }
        }
        candidates
    }

    fn take(&mut self, event: usize, after: C::State, alternatives: Alternatives) {
        self.taken[event / 64] |= 1 << (event % 64);
        while self.first_left < self.events.len() && self.is_taken(self.first_left) {
            self.first_left += 1;
        }
        let before = std::mem::replace(&mut self.state, after);
        self.order.push(Choice { event, before, alternatives });
    }

    /// Undoes choices up to one with alternatives; answers its event.
    fn back(&mut self) -> Option<usize> {
        loop {
            let choice = self.order.pop()?;
            self.taken[choice.event / 64] &= !(1 << (choice.event % 64));
            self.first_left = self.first_left.min(choice.event);
            self.state = choice.before;
            if choice.alternatives == Alternatives::Untried {
                return Some(choice.event);
            }
        }
    }

    fn is_taken(&self, event: usize) -> bool {
        self.taken[event / 64] >> (event % 64) & 1 == 1
    }
}

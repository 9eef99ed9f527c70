//! Commands that took long, and spikes of latency.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Arguments of a slow command that are kept, and bytes of each.
const ARGUMENTS_MAX: usize = 32;
const ARGUMENT_BYTES_MAX: usize = 128;
/// Spikes of an event that are kept.
const SPIKES_MAX: usize = 160;

/// A command that took long.
#[derive(Debug, Clone)]
pub(crate) struct Slow {
    pub(crate) id: u64,
    /// Seconds since 1970.
    pub(crate) at: u64,
    pub(crate) micros: u64,
    /// Cut short; those that are secrets are left out.
    pub(crate) args: Vec<Vec<u8>>,
    /// The address of its client, and the name that the client gave itself.
    pub(crate) client: String,
    pub(crate) name: String,
}

/// The last commands that took long.
#[derive(Debug, Default)]
pub(crate) struct SlowLog {
    kept: Mutex<(u64, VecDeque<Slow>)>,
}

impl SlowLog {
    fn lock(&self) -> MutexGuard<'_, (u64, VecDeque<Slow>)> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a command and its client's address and name; the oldest goes when there are more than
    /// `len`.
    pub(crate) fn add(
        &self,
        len: u64,
        at: u64,
        micros: u64,
        args: &[&[u8]],
        (client, name): (String, String),
    ) {
        let mut kept = self.lock();
        let id = kept.0;
        kept.0 += 1;
        let args = shortened(args);
        kept.1.push_front(Slow { id, at, micros, args, client, name });
        kept.1.truncate(usize::try_from(len).unwrap_or(usize::MAX));
    }

    /// The newest first.
    pub(crate) fn newest(&self, count: usize) -> Vec<Slow> {
        self.lock().1.iter().take(count).cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().1.len()
    }

    pub(crate) fn reset(&self) {
        self.lock().1.clear();
    }
}

fn shortened(args: &[&[u8]]) -> Vec<Vec<u8>> {
    let most = if args.len() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { args.len() };
    let cut = |arg: &&[u8]| match arg.get(ARGUMENT_BYTES_MAX..) {
        Some(rest) if !rest.is_empty() => {
            let more = format!("... ({} more bytes)", rest.len());
            [&arg[..ARGUMENT_BYTES_MAX], more.as_bytes()].concat()
        }
        _ => arg.to_vec(),
    };
    let mut shortened: Vec<_> = args[..most].iter().map(cut).collect();
    if most < args.len() {
        shortened.push(format!("... ({} more arguments)", args.len() - most).into_bytes());
    }
    shortened
}

/// The spikes of one event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Event {
    /// Seconds since 1970, and the longest milliseconds in that second.
    pub(crate) spikes: VecDeque<(u64, u64)>,
    pub(crate) millis_max: u64,
}

/// Spikes by event.
#[derive(Debug, Default)]
pub(crate) struct Spikes {
    events: Mutex<BTreeMap<&'static str, Event>>,
}

impl Spikes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, event: &'static str, at: u64, millis: u64) {
        let mut events = self.lock();
        let event = events.entry(event).or_default();
        event.millis_max = event.millis_max.max(millis);
        match event.spikes.back_mut() {
            Some((second, longest)) if *second == at => *longest = millis.max(*longest),
            _ => event.spikes.push_back((at, millis)),
        }
        if event.spikes.len() > SPIKES_MAX {
            event.spikes.pop_front();
        }
    }

    pub(crate) fn events(&self) -> BTreeMap<&'static str, Event> {
        self.lock().clone()
    }

    /// Forgets the events of some names, or all; answers how many.
    pub(crate) fn reset(&self, names: &[&[u8]]) -> usize {
        let mut events = self.lock();
        let before = events.len();
        events.retain(|event, _| {
            !names.is_empty()
                && !names.iter().any(|name| name.eq_ignore_ascii_case(event.as_bytes()))
        });
        before - events.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_are_kept_short() {
        let long = [b'x'; 200];
        let many: Vec<&[u8]> = std::iter::repeat_n(&long[..], 40).collect();
        let log = SlowLog::default();
        for _ in 0..3 {
            log.add(2, 1, 20, &many, ("::1:7".to_owned(), "named".to_owned()));
        }
        let kept = log.newest(9);
        assert_eq!(kept.iter().map(|slow| slow.id).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((&*kept[0].client, &*kept[0].name), ("::1:7", "named"));
        assert_eq!(kept[0].args.len(), 32);
        assert!(kept[0].args[0].ends_with(b"... (72 more bytes)"));
        assert_eq!(kept[0].args[31], b"... (9 more arguments)");
    }

    #[test]
    fn the_longest_of_a_second_is_a_spike() {
        let spikes = Spikes::default();
        for (at, millis) in [(1, 5), (1, 9), (1, 2), (3, 4)] {
            spikes.add("command", at, millis);
        }
        let event = &spikes.events()["command"];
        assert_eq!((Vec::from(event.spikes.clone()), event.millis_max), (vec![(1, 9), (3, 4)], 9));
        assert_eq!(spikes.reset(&[b"other"]), 0);
        assert_eq!(spikes.reset(&[]), 1);
    }
}

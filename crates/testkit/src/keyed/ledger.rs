//! The check that a walk saw one moment.
//!
//! Each writer goes over keys of its own in a fixed order, round after round, and leaves at each
//! of them the number of the round; in some rounds it removes them. So at any one moment a first
//! part of its keys is in one round and the rest in the round before. After each round it puts one
//! key that stays, and moves 1 from one shared account to another, taking it away first. What a
//! walk saw is one moment only if every writer's keys have such a border, somewhere between the
//! rounds that had ended before the walk and those that had begun after it, and if all accounts
//! together lack at most 1 for each writer.

use super::{KeyedEngine, Lengths};
use crate::engine::{Edit, Pair, Result};
use crate::{Bytes, interleave};
use rand::RngExt as _;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// The balance of each account at the begin.
const OPENING: i64 = 1_000;

/// The writers' books.
pub struct Ledger {
    keys_per_writer: u32,
    accounts: u32,
    /// Values repeat their round up to so many times.
    repeats_max: usize,
    writers: Vec<Rounds>,
}

/// Rounds of one writer.
#[derive(Default)]
struct Rounds {
    begun: AtomicU32,
    ended: AtomicU32,
}

/// The last round of each writer that had ended before a walk.
pub struct Before(Vec<u32>);

impl Ledger {
    /// For so many writers of so many keys each, on an engine of such lengths: 8 bytes must fit.
    pub fn new(writers: u8, keys_per_writer: u32, lengths: &Lengths) -> Self {
        Ledger {
            keys_per_writer,
            accounts: 7,
            repeats_max: (lengths.value_of(8).end() / 8).min(4),
            writers: (0..writers).map(|_| Rounds::default()).collect(),
        }
    }

    /// Opens the accounts.
    pub fn fill(&self, engine: &impl KeyedEngine) -> Result<()> {
        (0..self.accounts)
            .try_for_each(|account| engine.put(&key(b'a', 0, account), &OPENING.to_le_bytes()))
    }

    /// Runs rounds up to number `last` as writer `writer`.
    pub fn write(&self, engine: &impl KeyedEngine, writer: u8, last: u32, seed: u64) -> Result<()> {
        interleave::seed_thread(seed.rotate_left(32) ^ u64::from(writer));
        let mut rng = crate::rng(seed.wrapping_mul(1_000) + u64::from(writer));
        let rounds = &self.writers[usize::from(writer)];
        for round in rounds.ended.load(Ordering::SeqCst) + 1..=last {
            rounds.begun.store(round, Ordering::SeqCst);
            for index in 0..self.keys_per_writer {
                self.change(engine, writer, index, round)?;
                interleave::pause();
            }
            engine.put(&key(b's', writer, round), &7u64.to_le_bytes())?;
            let mut account = || key(b'a', 0, rng.random_range(0..self.accounts));
            let (from, to) = (account(), account());
            engine.add(&from, -1)?;
            interleave::pause();
            engine.add(&to, 1)?;
            rounds.ended.store(round, Ordering::SeqCst);
        }
        Ok(())
    }

    fn change(&self, engine: &impl KeyedEngine, writer: u8, index: u32, round: u32) -> Result<()> {
        let key = key(b'k', writer, index);
        let (old, new) = (self.value(round - 1), self.value(round));
        let right = match (old, new) {
            (None, None) => true,
            (Some(_), None) => engine.remove(&key)?,
            (None, Some(new)) => engine.put_if_absent(&key, &new)?,
            (Some(old), Some(new)) => {
                let set = [Edit::Set(new.clone())];
                match (round + index) % 4 {
                    0 => engine.put(&key, &new).map(|()| true)?,
                    1 => engine.update(&key, &set)?.is_some(),
                    2 => engine.compare_and_put(&key, &old, &new)?,
                    _ => engine.upsert(&key, &old, &set).map(|_| true)?,
                }
            }
        };
        assert!(right, "writer {writer} lost key {index} before round {round}");
        Ok(())
    }

    /// The value of every key of a writer after `round`; before the first it has none.
    fn value(&self, round: u32) -> Option<Bytes> {
        let present = !matches!((round, round % 4), (0, _) | (_, 3));
        let times = 1 + round as usize % self.repeats_max;
        present.then(|| u64::from(round).to_le_bytes().repeat(times).into())
    }

    /// To be asked before a walk.
    pub fn before(&self) -> Before {
        Before(self.writers.iter().map(|rounds| rounds.ended.load(Ordering::SeqCst)).collect())
    }

    /// To be asked after the moment of a walk has come: whether what it saw was one moment.
    pub fn after(&self) -> After<'_> {
        let begun = |rounds: &Rounds| rounds.begun.load(Ordering::SeqCst);
        After { ledger: self, begun: self.writers.iter().map(begun).collect() }
    }
}

/// The last round of each writer that had begun after the moment of a walk.
pub struct After<'a> {
    ledger: &'a Ledger,
    begun: Vec<u32>,
}

impl After<'_> {
    /// Whether `seen` was there at one moment between `before` and this.
    pub fn check(&self, before: &Before, seen: &[Pair]) -> std::result::Result<(), String> {
        let mut pairs: HashMap<&[u8], &[u8]> = HashMap::new();
        for (key, value) in seen {
            if pairs.insert(key, value).is_some() {
                return Err(format!("saw {key:?} twice"));
            }
        }
        let mut missing = i64::from(self.ledger.accounts) * OPENING;
        for account in 0..self.ledger.accounts {
            let value = pairs.remove(&key(b'a', 0, account)[..]);
            let counter = value.and_then(|value| value.try_into().ok()).map(i64::from_le_bytes);
            missing -= counter.ok_or_else(|| format!("account {account} has {value:?}"))?;
        }
        let writing = before.0.iter().zip(&self.begun).filter(|(ended, begun)| ended < begun);
        if !(0..=writing.count() as i64).contains(&missing) {
            return Err(format!("{missing} of all accounts are missing"));
        }
        for writer in 0..self.begun.len() {
            self.check_writer(writer as u8, before.0[writer], self.begun[writer], &mut pairs)?;
        }
        match pairs.into_keys().next() {
            Some(key) => Err(format!("saw {key:?}, which nobody put")),
            None => Ok(()),
        }
    }

    fn check_writer(
        &self,
        writer: u8,
        ended: u32,
        begun: u32,
        pairs: &mut HashMap<&[u8], &[u8]>,
    ) -> std::result::Result<(), String> {
        let Ledger { keys_per_writer, .. } = *self.ledger;
        let keys: Vec<Option<&[u8]>> =
            (0..keys_per_writer).map(|index| pairs.remove(&key(b'k', writer, index)[..])).collect();
        let stays: Vec<bool> = (1..=begun)
            .map(|round| pairs.remove(&key(b's', writer, round)[..]).is_some())
            .collect();
        let last = stays.iter().take_while(|there| **there).count() as u32;
        let of = |round: u32| self.ledger.value(round);
        // In `round`, the first `border` keys are done; the key that stays comes after the last.
        let fits = |round: u32, border: usize| {
            let done = keys.iter().enumerate().all(|(index, seen)| {
                *seen == of(if index < border { round } else { round - 1 }).as_deref()
            });
            done && (last == round - 1 || border == keys.len() && last == round)
        };
        let is_moment = stays[last as usize..].iter().all(|there| !there)
            && last >= ended
            && (begun == 0 && keys.iter().all(Option::is_none)
                || (ended.max(1)..=begun)
                    .any(|round| (0..=keys.len()).any(|border| fits(round, border))));
        if is_moment {
            return Ok(());
        }
        let round = |value: &Option<&[u8]>| {
            let word = value.and_then(|value| value.first_chunk::<8>());
            word.map_or("-".to_owned(), |word| u64::from_le_bytes(*word).to_string())
        };
        let keys: Vec<String> = keys.iter().map(round).collect();
        let keys = keys.join(" ");
        Err(format!(
            "no moment between round {ended} and {begun} of writer {writer}: \
             its keys are in rounds {keys}, {last} rounds have left the key that stays"
        ))
    }
}

fn key(kind: u8, writer: u8, index: u32) -> [u8; 8] {
    let [a, b, c, d] = index.to_be_bytes();
    [kind, writer, 0, 0, a, b, c, d]
}

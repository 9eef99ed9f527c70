//! Chains of workers on one database, each ended before it is done, and the database compared with
//! the oracle between them: killed from outside, or by losses of power.

use std::path::PathBuf;
use std::time::Duration;

use rand::RngExt as _;
use sapwood_shim::{Call, Failure, Fate, PowerLoss, Repeat, Since, SystemError};
use sapwood_testkit::Rng;

use crate::message::Message;
use crate::oracle::{Compared, Oracle};
use crate::report::Outcome;
use crate::runs::{DatabaseFolder, Kill, Run, watched};
use crate::worker::Work;

/// How the workers of a chain end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// `kill -9`.
    Kills,
    /// Bytes that were not synced are taken back; before that a call may have failed.
    Losses,
}

/// A chain: all of it follows from the seed, but for the moment of a kill and for the order in
/// which threads get on.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub(crate) ends: Ends,
    pub(crate) seed: u64,
    pub(crate) links: u64,
    pub(crate) within: Option<PathBuf>,
}

impl Chain {
    pub(crate) fn run(&self) -> Outcome {
        Outcome::of(
            self.within.as_deref(),
            || self.repeat(),
            |place, outcome| self.torture(place, outcome),
        )
    }

    fn repeat(&self) -> String {
        let name = match self.ends {
            Ends::Kills => "kills",
            Ends::Losses => "losses",
        };
        format!("{name} --seed {} --chains 1 --links {}", self.seed, self.links)
    }

    fn torture(&self, place: &DatabaseFolder, outcome: &mut Outcome) -> Result<(), String> {
        let mut rng = sapwood_testkit::rng(self.seed);
        let work = Work {
            dir: place.database.clone(),
            seed: self.seed,
            threads: 2,
            rounds: 6,
            in_order: self.ends == Ends::Losses && self.seed.is_multiple_of(3),
            removed: None,
            fail: None,
            lose: None,
            full: false,
            unlogged: self.ends == Ends::Kills && self.seed.is_multiple_of(4),
        };
        let mut oracle = Oracle::new(self.seed, work.threads);
        let mut leftovers = Vec::new();
        for link in 0..self.links {
            let at = |what| format!("link {link}: {what}");
            let run = match self.ends {
                Ends::Kills => Run::of(&work, Some(kill(&mut rng))),
                Ends::Losses => self.lose(&work, place, &mut rng, outcome),
            };
            let run = run.map_err(at)?;
            self.count(&work, &run, outcome);
            oracle.hear(&run.messages).and_then(|()| run.expect_ended()).map_err(at)?;
            let compared = look(&mut oracle, place).map_err(at)?;
            compared.count(outcome);
            // They harm no later link.
            if leftovers.is_empty() {
                leftovers = compared.leftovers;
            }
        }
        expect_no_leftovers(&leftovers)
    }

    fn lose(
        &self,
        work: &Work,
        place: &DatabaseFolder,
        rng: &mut Rng,
        outcome: &mut Outcome,
    ) -> Result<Run, String> {
        place.clear_removed()?;
        let nth = rng.random_range(1..=CHANGES);
        let fate = [Fate::Lost, Fate::Some, Fate::Kept][rng.random_range(0..3)];
        let lose = Some(PowerLoss { seed: rng.random(), nth, since: Since::Armed, fate });
        let fail = (rng.random_range(0..3) == 0).then(|| {
            let call = [
                Call::Write,
                Call::SyncData,
                Call::SyncNames,
                Call::SyncNames,
                Call::Rename,
                Call::Remove,
            ][rng.random_range(0..6)];
            let error = if rng.random() { SystemError::Io } else { SystemError::NoSpace };
            let nth = rng.random_range(1..=CHANGES / 8);
            Failure { call, nth, error, repeat: Repeat::Once }
        });
        outcome.add("failing calls planned", u64::from(fail.is_some()));
        let work = Work { removed: Some(place.removed.clone()), lose, fail, ..work.clone() };
        Run::of(&work, None)
    }

    fn count(&self, work: &Work, run: &Run, outcome: &mut Outcome) {
        let ended = match (self.ends, run.was_killed()) {
            (Ends::Kills, true) => "kills",
            (Ends::Losses, true) => "losses of power",
            (_, false) => "workers that came to their end",
        };
        outcome.add(ended, 1);
        outcome.add("workers without a log", u64::from(work.unlogged));
        let checkpoints = run.count(|message| matches!(message, Message::Checkpoint(..)));
        outcome.add("checkpoints told of", checkpoints);
        let opened = run.messages.contains(&Message::Opened);
        outcome.add("ended before the database was open", u64::from(!opened));
        let refused = run.count(|message| matches!(message, Message::Refused(_)));
        outcome.add("operations refused", refused);
    }
}

/// Calls of a worker that change something, or nearly so many: a loss later than the last of them
/// does not happen.
const CHANGES: u64 = 260;

/// Lines that a worker tells, or nearly so many.
const LINES: usize = 30;

/// By lines: at some point of the work. By time: anywhere, and while the database opens.
fn kill(rng: &mut Rng) -> Kill {
    let (lines, delay_max) = match rng.random_range(0..4) {
        0 => (0, 30_000),
        _ => (rng.random_range(0..LINES), 8_000),
    };
    Kill { lines, delay: Duration::from_micros(rng.random_range(0..delay_max)) }
}

/// A process that ended left files that an opening should have removed.
pub(crate) fn expect_no_leftovers(leftovers: &[String]) -> Result<(), String> {
    match leftovers {
        [] => Ok(()),
        _ => Err(format!("an open table keeps files that no manifest names: {leftovers:?}")),
    }
}

impl Compared {
    pub(crate) fn count(&self, outcome: &mut Outcome) {
        outcome.add("tables compared", self.tables);
        outcome.add("entries compared", self.entries);
        outcome.add("operations that lasted", self.operations);
    }
}

/// Looks at a database here, in this process: a panic is a failure, and a hang ends it aloud.
pub(crate) fn look(oracle: &mut Oracle, place: &DatabaseFolder) -> Result<Compared, String> {
    watched(&place.database, || oracle.look(&place.database))
}

/// The same on a disk without room.
pub(crate) fn look_without_room(
    oracle: &mut Oracle,
    place: &DatabaseFolder,
) -> Result<Compared, String> {
    watched(&place.database, || oracle.look_without_room(&place.database))
}

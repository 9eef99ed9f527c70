//! Failing calls: every call that a run of a worker makes fails once, and so do all from it on;
//! and after a failure the power goes while the worker does what comes next.
//!
//! Every run begins with a copy of one database and does the same work in the same order, so that
//! the n-th call of a kind is the same one in each. Refusals are right while calls fail. Wrong
//! answers are not, and neither is a database that does not come back when calls succeed again.

use std::path::PathBuf;

use sapwood_shim::{Call, Failure, Fate, PowerLoss, Repeat, Since, SystemError};

use crate::chains::{expect_no_leftovers, look};
use crate::message::Message;
use crate::oracle::Oracle;
use crate::report::{self, Outcome};
use crate::runs::{DatabaseFolder, Run, copy};
use crate::worker::Work;

/// Changes after a failure at which the power goes: all near ones, then ever fewer.
const LOST_AFTER: [u64; 10] = [1, 2, 3, 4, 5, 6, 8, 11, 16, 24];

/// The runs to try.
#[derive(Debug, Clone)]
pub(crate) struct Sweep {
    pub(crate) seed: u64,
    pub(crate) within: Option<PathBuf>,
    /// Kinds of calls; all where there are none.
    pub(crate) only: Vec<Call>,
    /// Every so many of the calls of a kind fail; 1: each.
    pub(crate) stride: u64,
}

/// A database to begin with, and how many calls a run on it makes.
struct Template {
    place: DatabaseFolder,
    oracle: Oracle,
    calls: Vec<u64>,
}

/// One run: what fails, and what comes of it.
#[derive(Debug, Clone, Copy)]
struct Point {
    failure: Failure,
    loss: Option<PowerLoss>,
}

impl Sweep {
    /// Every call fails, once and from then on.
    pub(crate) fn failing_calls(&self, jobs: usize) -> Result<(), String> {
        let template = self.template()?;
        let mut points = Vec::new();
        for (call, nth) in self.calls(&template) {
            // A full disk can be read.
            let errors: &[_] = match call {
                Call::Read => &[SystemError::Io],
                _ => &[SystemError::Io, SystemError::NoSpace],
            };
            for &error in errors {
                for repeat in [Repeat::Once, Repeat::FromThenOn] {
                    points
                        .push(Point { failure: Failure { call, nth, error, repeat }, loss: None });
                }
            }
        }
        report::run("failing calls", points.len(), jobs, |at| self.run(&template, points[at]))
    }

    /// A call that makes something last, or takes names away, fails; then the power goes.
    pub(crate) fn lost_after_failing(&self, jobs: usize) -> Result<(), String> {
        let template = self.template()?;
        let changes = [Call::SyncNames, Call::SyncData, Call::Rename, Call::Remove];
        let mut points = Vec::new();
        for (call, nth) in self.calls(&template).filter(|(call, _)| changes.contains(call)) {
            let failure = Failure { call, nth, error: SystemError::Io, repeat: Repeat::Once };
            for after in LOST_AFTER {
                for fate in [Fate::Kept, Fate::Some] {
                    let seed = nth * 100 + after;
                    let loss = PowerLoss { seed, nth: after, since: Since::Failure, fate };
                    points.push(Point { failure, loss: Some(loss) });
                }
            }
        }
        report::run("losses after failing calls", points.len(), jobs, |at| {
            self.run(&template, points[at])
        })
    }

    /// One run alone.
    pub(crate) fn one(&self, failure: Failure, loss: Option<PowerLoss>) -> Result<(), String> {
        let template = self.template()?;
        report::run("failing call", 1, 1, |_| self.run(&template, Point { failure, loss }))
    }

    fn calls<'a>(&'a self, template: &'a Template) -> impl Iterator<Item = (Call, u64)> + 'a {
        let kinds = Call::ALL.into_iter().zip(&template.calls);
        let kinds = kinds.filter(|(call, _)| self.only.is_empty() || self.only.contains(call));
        // Not always the first, where many are passed over.
        let points = |(call, count): (Call, &u64)| {
            let first = 1 + (self.seed + call as u64) % self.stride;
            (first..=*count).step_by(self.stride as usize).map(move |nth| (call, nth))
        };
        kinds.flat_map(points)
    }

    fn work(&self, place: &DatabaseFolder) -> Work {
        Work {
            dir: place.database.clone(),
            seed: self.seed,
            threads: 1,
            rounds: 4,
            in_order: true,
            removed: Some(place.removed.clone()),
            fail: None,
            lose: None,
            full: false,
            unlogged: false,
        }
    }

    fn template(&self) -> Result<Template, String> {
        let place = DatabaseFolder::make(self.within.as_deref())?;
        let mut oracle = Oracle::new(self.seed, 1);
        let clean = |place: &DatabaseFolder, oracle: &mut Oracle| -> Result<Vec<u64>, String> {
            let run = Run::of(&self.work(place), None)?;
            run.expect_ended()?;
            oracle.hear(&run.messages)?;
            look(oracle, place)?;
            Ok(run.calls().ok_or("the worker counted no calls")?.to_vec())
        };
        clean(&place, &mut oracle)?;
        let probe = self.copy(&place)?;
        let calls = clean(&probe, &mut oracle.clone())?;
        Ok(Template { place, oracle, calls })
    }

    fn copy(&self, of: &DatabaseFolder) -> Result<DatabaseFolder, String> {
        let place = DatabaseFolder::make(self.within.as_deref())?;
        copy(&of.database, &place.database).map_err(|e| format!("cannot copy a database: {e}"))?;
        Ok(place)
    }

    fn run(&self, template: &Template, point: Point) -> Outcome {
        let mut outcome = Outcome::default();
        let loss = point.loss.map_or(String::new(), |loss| format!(" --lose {loss}"));
        let repeat = format!("faults --seed {} --fail {}{loss}", self.seed, point.failure);
        match self.copy(&template.place) {
            Err(what) => outcome.fail(what, repeat, None),
            Ok(place) => match self.torture(template, &place, point, &mut outcome) {
                Ok(()) => {}
                Err(what) => outcome.fail(what, repeat, Some(place.leave())),
            },
        }
        outcome
    }

    fn torture(
        &self,
        template: &Template,
        place: &DatabaseFolder,
        point: Point,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let mut oracle = template.oracle.clone();
        let work = Work { fail: Some(point.failure), lose: point.loss, ..self.work(place) };
        let run = Run::of(&work, None)?;
        outcome.add("runs", 1);
        outcome.add("losses of power", u64::from(run.was_killed()));
        let refused = run.count(|message| matches!(message, Message::Refused(_)));
        outcome.add("runs in which something was refused", u64::from(refused > 0));
        oracle.hear(&run.messages)?;
        run.expect_ended()?;
        let compared = look(&mut oracle, place)?;
        compared.count(outcome);
        // Once calls succeed again, work goes on.
        let after = Work { removed: None, rounds: 1, ..self.work(place) };
        let run = Run::of(&after, None)?;
        oracle.hear(&run.messages)?;
        run.expect_ended()?;
        look(&mut oracle, place)?.count(outcome);
        expect_no_leftovers(&compared.leftovers)
    }
}

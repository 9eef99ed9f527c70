//! The plan of a query: its candidates, and the executor that is taken.

use std::fmt;
use std::time::Duration;

use crate::{Error, Execution, Executor, Result};

/// What the planner knows of a way to answer a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The way.
    pub executor: Executor,
    /// What it would visit: keys, entries or records.
    pub visits: u64,
    /// Bytes that it would read back into memory first, of a table that was opened.
    pub read_back_bytes: u64,
    /// How long all that is expected to take.
    pub estimate: Duration,
}

/// What was measured of the executor that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// How long it took.
    pub elapsed: Duration,
    /// What it visited: keys, entries or records.
    pub visited: u64,
    /// Objects that were selected.
    pub selected: u64,
}

/// How a query is answered: the executor, what was expected of it and of the others, and what was
/// measured. Its text is the answer to `EXPLAIN`.
///
/// ```
/// use sapwood::aggregate::{Aggregate, Execution, Executor, Query, Selection};
/// use sapwood::{Db, HashTableOptions};
///
/// let db = Db::in_memory();
/// let hits = db.create_hash_table("hits", HashTableOptions::default())?;
/// for page in 0..10_000 {
///     hits.add(format!("/{page}").as_bytes(), 1)?;
/// }
/// let query = Query::new("hits:i64le".parse()?).aggregates(Aggregate::list("sum(hits)")?);
/// let few = query.clone().select(Selection::keys(["/7", "/8"]));
/// assert_eq!(hits.explain(&few.compile()?, &Execution::new())?.executor, Executor::LookUp);
///
/// let query = query.compile()?;
/// let run = hits.aggregate_with(&query, &Execution::new())?;
/// assert_eq!(run.plan.executor, Executor::Log);
/// println!("{}", run.plan);
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The executor that is taken.
    pub executor: Executor,
    /// Every executor that can answer the query, the fastest first.
    pub candidates: Vec<Candidate>,
    /// Whether the caller chose.
    pub is_forced: bool,
    /// Threads.
    pub threads: usize,
    /// What was measured, if it ran.
    pub measured: Option<Measured>,
}

impl Plan {
    /// Chooses among the candidates, of which there is at least one; `shows_one_moment` says which of
    /// them can.
    pub(crate) fn choose(
        mut candidates: Vec<Candidate>,
        shows_one_moment: impl Fn(Executor) -> bool,
        execution: &Execution<'_>,
    ) -> Result<Plan> {
        let refuse =
            |executor: Option<Executor>, why: String| Err(Error::Executor { executor, why });
        let known = |candidates: &[Candidate]| {
            let names: Vec<_> = candidates.iter().map(|known| known.executor.name()).collect();
            names.join(", ")
        };
        candidates.sort_by_key(|candidate| candidate.estimate);
        if let Some(executor) = execution.executor
            && !candidates.iter().any(|candidate| candidate.executor == executor)
        {
            let why = format!("cannot answer the query here; choose of: {}", known(&candidates));
            return refuse(Some(executor), why);
        }
        if execution.at_one_moment {
            candidates.retain(|candidate| shows_one_moment(candidate.executor));
            match execution.executor {
                Some(executor) if !shows_one_moment(executor) => {
                    let why = "does not see one moment; `log` does, in a hash table, and each \
                               executor of a tree table";
                    return refuse(Some(executor), why.to_owned());
                }
                None if candidates.is_empty() => {
                    let why = "an ordered table cannot be read as of one moment: keep what must \
                               be in a hash table or a tree table, or ask without";
                    return refuse(None, why.to_owned());
                }
                _ => {}
            }
        }
        let is_forced = execution.executor.is_some();
        let executor = execution.executor.unwrap_or(candidates[0].executor);
        Ok(Plan { executor, candidates, is_forced, threads: execution.threads, measured: None })
    }

    /// What was expected of the executor that is taken.
    ///
    /// ```
    /// # use sapwood::aggregate::{Aggregate, Cancel, Execution, Executor, Query};
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// # let query = Query::new("hits:i64le".parse()?).aggregates(Aggregate::list("sum(hits)")?).compile()?;
    /// let plan = table.explain(&query, &Execution::new())?;
    /// assert_eq!(plan.expected().executor, plan.executor);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn expected(&self) -> &Candidate {
        let taken = |candidate: &&Candidate| candidate.executor == self.executor;
        self.candidates.iter().find(taken).expect("chosen among them")
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match (self.is_forced, self.candidates.len()) {
            (true, _) => "as told",
            (false, 1) => "the only way",
            (false, _) => "expected to be the fastest",
        };
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        writeln!(f, "{}, {why}, by {} {threads}", self.executor, self.threads)?;
        for Candidate { executor, visits, read_back_bytes, estimate } in &self.candidates {
            let mark = if *executor == self.executor { '>' } else { ' ' };
            write!(f, "{mark} {executor:<8} would ")?;
            if *read_back_bytes > 0 {
                write!(f, "read {read_back_bytes} bytes back and ")?;
            }
            writeln!(f, "visit {visits}, about {}", Time(*estimate))?;
        }
        if let Some(Measured { elapsed, visited, selected }) = self.measured {
            let time = Time(elapsed);
            write!(f, "  measured: visited {visited}, selected {selected}, in {time}")?;
            let estimate = self.expected().estimate.as_secs_f64();
            if estimate > 0.0 && !elapsed.is_zero() {
                write!(f, ", {:.2} of the estimate", elapsed.as_secs_f64() / estimate)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A time with three digits.
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos() as f64;
        let (number, unit) = match ns {
            _ if ns < 1e3 => (ns, "ns"),
            _ if ns < 1e6 => (ns / 1e3, "us"),
            _ if ns < 1e9 => (ns / 1e6, "ms"),
            _ => (ns / 1e9, "s"),
        };
        let digits = if number < 10.0 {
            2
        } else if number < 100.0 {
            1
        } else {
            0
        };
        write!(f, "{number:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(executor: Executor, visits: u64, us: u64) -> Candidate {
        Candidate { executor, visits, read_back_bytes: 0, estimate: Duration::from_micros(us) }
    }

    #[test]
    fn the_fastest_is_taken_unless_told_otherwise() {
        let candidates =
            || vec![candidate(Executor::Log, 1_000, 900), candidate(Executor::LookUp, 10, 7)];
        let of_log = |executor| executor == Executor::Log;
        let choose = |execution: Execution<'_>| Plan::choose(candidates(), of_log, &execution);
        let plan = choose(Execution::new()).expect("a plan");
        assert_eq!((plan.executor, plan.is_forced), (Executor::LookUp, false));
        assert_eq!(plan.expected().visits, 10);
        let plan = choose(Execution::new().executor(Executor::Log)).expect("a plan");
        assert_eq!((plan.executor, plan.is_forced), (Executor::Log, true));
        let plan = choose(Execution::new().at_one_moment()).expect("a plan");
        assert_eq!((plan.executor, plan.candidates.len()), (Executor::Log, 1));

        for (execution, what) in [
            (Execution::new().executor(Executor::Range), "choose of: look-up, log"),
            (Execution::new().executor(Executor::LookUp).at_one_moment(), "`log` does"),
        ] {
            let refused = choose(execution).expect_err("refused").to_string();
            assert!(refused.contains(what), "{refused}");
        }
        let ordered = vec![candidate(Executor::Range, 1, 1)];
        let refused = Plan::choose(ordered, |_| false, &Execution::new().at_one_moment());
        assert!(refused.expect_err("refused").to_string().contains("one moment"));
    }

    #[test]
    fn a_plan_explains_itself() {
        let plan = Plan {
            executor: Executor::Log,
            candidates: vec![
                candidate(Executor::LookUp, 10, 7),
                Candidate { read_back_bytes: 24_000, ..candidate(Executor::Log, 1_000, 900) },
            ],
            is_forced: true,
            threads: 2,
            measured: Some(Measured {
                elapsed: Duration::from_micros(450),
                visited: 990,
                selected: 9,
            }),
        };
        assert_eq!(
            plan.to_string(),
            "log, as told, by 2 threads\n  look-up  would visit 10, about 7.00 us\n\
             > log      would read 24000 bytes back and visit 1000, about 900 us\n  \
             measured: visited 990, selected 9, in 450 us, 0.50 of the estimate\n"
        );
    }
}

//! The comparison of an engine's answers to a stream of operations with the oracle's.

use crate::engine::{Direction, OrderedEngine, ScanForm};
use crate::op::{Op, OwnedBounds, borrowed};
use crate::oracle::Oracle;
use crate::{Bytes, shrink};
use std::fmt;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An operation that is asked of an engine `E` beside a model that knows the right answer.
pub trait Step<E>: Clone + fmt::Debug {
    /// The source of the right answers.
    type Model;

    /// The model of `engine`, which is fresh.
    fn model(engine: &E) -> Self::Model;

    /// Asks the engine and compares its answer with the model's, which follows.
    fn take(&self, engine: &mut E, model: &mut Self::Model) -> Result<(), String>;

    /// Compares everything the engine holds with the model, and asks it to check itself.
    fn verify(engine: &E, model: &Self::Model) -> Result<(), String>;
}

impl<E: OrderedEngine> Step<E> for Op {
    type Model = Oracle;

    fn model(_: &E) -> Oracle {
        Oracle::default()
    }

    fn take(&self, engine: &mut E, oracle: &mut Oracle) -> Result<(), String> {
        oracle.judge(self, &self.run(engine))?;
        match self {
            Op::Verify => verify(engine, oracle),
            _ => Ok(()),
        }
    }

    fn verify(engine: &E, oracle: &Oracle) -> Result<(), String> {
        verify(engine, oracle)
    }
}

/// An engine differs from the oracle.
pub struct Divergence<O = Op> {
    /// The mistake at the last of the operations.
    pub what: String,
    /// A short stream that shows it on a fresh engine.
    pub ops: Vec<O>,
}

impl<O: fmt::Debug> fmt::Display for Divergence<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\nafter these operations on a fresh engine:", self.what)?;
        self.ops.iter().try_for_each(|op| writeln!(f, "  {op:?}"))
    }
}

impl<O: fmt::Debug> fmt::Debug for Divergence<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Runs `ops` on a fresh engine beside the oracle and compares every answer, then everything the
/// engine holds. A failure, a panic included, comes back shrunk to few operations.
pub fn check_against_oracle<E, O: Step<E>>(
    make: impl Fn() -> E,
    ops: &[O],
) -> Result<(), Divergence<O>> {
    let Err((failed_at, what)) = run(&make, ops) else {
        return Ok(());
    };
    let fails = |ops: &[O]| run(&make, ops).is_err();
    // The comparison at the end may need operations after the one that failed first.
    let upto = &ops[..(failed_at + 1).min(ops.len())];
    let Some(failing) = [upto, ops].into_iter().find(|ops| fails(ops)) else {
        let what = format!("{what}\n(by chance: the same operations passed when they ran again)");
        return Err(Divergence { what, ops: upto.to_vec() });
    };
    let mut minimal = shrink::minimal(failing, fails);
    let what = match run(&make, &minimal) {
        Err((failed_at, what)) => {
            minimal.truncate(failed_at + 1);
            what
        }
        Ok(()) => format!("{what}\n(at times: the operations below failed, then passed)"),
    };
    Err(Divergence { what, ops: minimal })
}

/// The index of the operation that failed (the number of them if the end did), and what.
fn run<E, O: Step<E>>(make: &impl Fn() -> E, ops: &[O]) -> Result<(), (usize, String)> {
    let at = std::cell::Cell::new(0);
    let steps = || {
        let mut engine = make();
        let mut model = O::model(&engine);
        for (index, op) in ops.iter().enumerate() {
            at.set(index);
            op.take(&mut engine, &mut model)?;
        }
        at.set(ops.len());
        O::verify(&engine, &model)
    };
    let outcome = catch_unwind(AssertUnwindSafe(steps)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        let what = text.unwrap_or("a panic without text");
        let op = ops.get(at.get());
        Err(format!("{op:?} panicked: {what}"))
    });
    outcome.map_err(|what| (at.get(), what))
}

/// Compares everything the engine holds with the oracle, and asks it to check itself.
pub fn verify(engine: &impl OrderedEngine, oracle: &Oracle) -> Result<(), String> {
    engine.check().map_err(|what| format!("check: {what}"))?;
    if (engine.len(), engine.len_exact()) != (oracle.len(), oracle.len()) {
        let (len, exact) = (engine.len(), engine.len_exact());
        let right = oracle.len();
        return Err(format!("len {len}, len_exact {exact}, right is {right}"));
    }
    if let Some(accounting) = engine.accounting()
        && accounting != oracle.accounting()
    {
        let right = oracle.accounting();
        return Err(format!("{accounting:?}\n  right is {right:?}"));
    }
    let keys: Vec<Bytes> = oracle.keys().map(|key| Bytes::from(&key[..])).collect();
    let mut oracle = oracle.clone();
    for op in comparisons(&keys) {
        oracle.judge(&op, &op.run(engine))?;
    }
    Ok(())
}

/// Whole scans of every form both ways, and ranges that begin and end around keys.
fn comparisons(keys: &[Bytes]) -> Vec<Op> {
    let mut ranges: Vec<OwnedBounds> = vec![(Bound::Unbounded, Bound::Unbounded)];
    for share in 1..4 {
        let Some(key) = keys.get(keys.len() * share / 4) else {
            continue;
        };
        ranges.push((Bound::Included(key.clone()), Bound::Unbounded));
        ranges.push((Bound::Unbounded, Bound::Excluded(key.clone())));
        ranges.push((Bound::Excluded(keys[0].clone()), Bound::Included(key.clone())));
    }
    let mut ops = Vec::new();
    for range in ranges {
        for direction in [Direction::Ascending, Direction::Descending] {
            for form in ScanForm::ALL {
                ops.push(Op::Scan(form, range.clone(), direction, usize::MAX));
            }
        }
        ops.push(Op::BothEnds(range, 0x5A3C_F00F_1234_8001));
    }
    ops.push(Op::GetMany(keys.to_vec()));
    ops
}

/// Everything an engine holds, ascending.
pub fn contents(engine: &impl OrderedEngine) -> Vec<crate::engine::Pair> {
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let bounds = borrowed(&everything);
    let scan = engine.scan(ScanForm::Stream, bounds, Direction::Ascending, usize::MAX);
    scan.expect("a scan of everything needs nothing")
}

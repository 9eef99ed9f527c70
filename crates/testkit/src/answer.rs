//! Answers of operations.

use crate::Shown;
use crate::engine::{Computed, Edited, Pair, Refusal, Result, Upserted};
use std::fmt;

/// The answer of an operation.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants name their types")]
pub enum Answer {
    Done,
    Bool(bool),
    Value(Option<Vec<u8>>),
    Values(Vec<Option<Vec<u8>>>),
    Edited(Option<Edited>),
    Upserted(Upserted),
    Computed(Computed),
    Pair(Option<Pair>),
    Pairs(Vec<Pair>),
    Replaced(usize),
    Removed(usize),
    /// The value that each key of a batch was left with.
    EditedMany(Vec<Option<Edited>>),
    Sum(i64),
    /// The batch stopped after so many pairs.
    Stopped(usize, Refusal),
    Refused(Refusal),
}

impl Answer {
    /// Of a batch: `answer` of what it did, or where it stopped and why.
    pub(crate) fn of_batch<T>(
        done: std::result::Result<T, (usize, Refusal)>,
        answer: impl FnOnce(T) -> Answer,
    ) -> Answer {
        match done {
            Ok(done) => answer(done),
            Err((count, refusal)) => Answer::Stopped(count, refusal),
        }
    }

    /// The step of a change in place that was refused, and why.
    pub(crate) fn step_refused(&self) -> Option<&(usize, Refusal)> {
        match self {
            Answer::Edited(Some(edited)) | Answer::Upserted(Upserted::Updated(edited)) => {
                edited.refused.as_ref()
            }
            _ => None,
        }
    }

    /// Whether it is a refusal for want of memory, of the whole or of a part.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        let out = |left: &Option<Edited>| {
            let refused = left.as_ref().and_then(|left| left.refused.as_ref());
            refused.is_some_and(|(_, refusal)| *refusal == Refusal::OutOfMemory)
        };
        let refusal = match self {
            Answer::Refused(refusal) | Answer::Stopped(_, refusal) => Some(refusal),
            Answer::EditedMany(left) => return left.iter().any(out),
            _ => self.step_refused().map(|(_, refusal)| refusal),
        };
        refusal == Some(&Refusal::OutOfMemory)
    }

    /// The refusal, where an engine made of an oracle has no other answer to give.
    pub(crate) fn into_refusal(self) -> Refusal {
        match self {
            Answer::Refused(refusal) => refusal,
            other => Refusal::Other(format!("{other:?}")),
        }
    }

    pub(crate) fn into_bool(self) -> Result<bool> {
        match self {
            Answer::Bool(yes) => Ok(yes),
            other => Err(other.into_refusal()),
        }
    }

    pub(crate) fn into_value(self) -> Result<Option<Vec<u8>>> {
        match self {
            Answer::Value(value) => Ok(value),
            other => Err(other.into_refusal()),
        }
    }

    pub(crate) fn into_edited(self) -> Result<Option<Edited>> {
        match self {
            Answer::Edited(edited) => Ok(edited),
            other => Err(other.into_refusal()),
        }
    }

    pub(crate) fn into_upserted(self) -> Result<Upserted> {
        match self {
            Answer::Upserted(upserted) => Ok(upserted),
            other => Err(other.into_refusal()),
        }
    }

    pub(crate) fn into_pairs(self) -> Result<Vec<Pair>> {
        match self {
            Answer::Pairs(pairs) => Ok(pairs),
            other => Err(other.into_refusal()),
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<Vec<u8>>| match value {
            Some(value) => Shown(value).to_string(),
            None => "none".to_owned(),
        };
        let pair = |(key, value): &Pair| format!("({}, {})", Shown(key), Shown(value));
        let edited = |edited: &Edited| match &edited.refused {
            None => Shown(&edited.after).to_string(),
            Some((step, why)) => format!("{}, step {step} refused: {why:?}", Shown(&edited.after)),
        };
        match self {
            Answer::Done => write!(f, "done"),
            Answer::Bool(yes) => write!(f, "{yes}"),
            Answer::Value(found) => write!(f, "{}", value(found)),
            Answer::Values(found) => {
                let values: Vec<String> = found.iter().map(value).collect();
                write!(f, "[{}]", values.join(", "))
            }
            Answer::Edited(None) => write!(f, "absent"),
            Answer::Edited(Some(left)) => write!(f, "now {}", edited(left)),
            Answer::Upserted(Upserted::Inserted) => write!(f, "inserted"),
            Answer::Upserted(Upserted::Updated(left)) => write!(f, "now {}", edited(left)),
            Answer::Computed(computed) => write!(f, "{computed:?}"),
            Answer::Pair(None) => write!(f, "none"),
            Answer::Pair(Some(found)) => write!(f, "{}", pair(found)),
            Answer::Pairs(pairs) => {
                let shown: Vec<String> = pairs.iter().map(pair).collect();
                write!(f, "{} pairs [{}]", pairs.len(), shown.join(", "))
            }
            Answer::EditedMany(left) => {
                let shown =
                    |left: &Option<Edited>| left.as_ref().map_or("absent".to_owned(), edited);
                let shown: Vec<String> = left.iter().map(shown).collect();
                write!(f, "now [{}]", shown.join(", "))
            }
            Answer::Sum(sum) => write!(f, "{sum}"),
            Answer::Replaced(count) => write!(f, "{count} replaced"),
            Answer::Removed(count) => write!(f, "{count} removed"),
            Answer::Stopped(done, why) => write!(f, "stopped after {done}: {why:?}"),
            Answer::Refused(why) => write!(f, "refused: {why:?}"),
        }
    }
}

//! The sums of the shares whose outcome is recorded.

use super::field::Refusal;
use crate::error::{Example, Result};
use crate::state::Sum;
use crate::value::Value;
use crate::value::stored::{Corrupt, Reader};

/// What the shares that are recorded add up to.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorded {
    pub(super) changed: u64,
    pub(super) vanished: u64,
    pub(super) refused: u64,
    pub(super) first_refusal: Option<Example>,
    pub(super) given: i128,
    pub(super) not_given: i128,
    pub(super) before: Sum,
    pub(super) after: Sum,
}

impl Recorded {
    #[cold]
    pub(super) fn add_example(&mut self, key: &[u8], refusal: Refusal) {
        let key = &key[..key.len().min(Example::KEY_BYTES_MAX)];
        if self.first_refusal.as_ref().is_none_or(|first| key < &first.key[..]) {
            let what = format!("the field {refusal}");
            self.first_refusal = Some(Example { key: key.to_vec(), what });
        }
    }

    /// Counts are of objects that were collected, and parts of one total: neither overflows.
    pub(super) fn merge(&mut self, other: &Recorded) {
        self.changed += other.changed;
        self.vanished += other.vanished;
        self.refused += other.refused;
        self.given += other.given;
        self.not_given += other.not_given;
        let examples = [self.first_refusal.take(), other.first_refusal.clone()];
        self.first_refusal = examples.into_iter().flatten().min();
        for (sum, other) in [(&mut self.before, &other.before), (&mut self.after, &other.after)] {
            sum.merge(other).expect("fewer than 2^64 objects");
        }
    }

    pub(super) fn count(&self) -> Option<u64> {
        self.changed.checked_add(self.vanished)?.checked_add(self.refused)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for count in [self.changed, self.vanished, self.refused] {
            out.extend(count.to_le_bytes());
        }
        for parts in [self.given, self.not_given] {
            out.extend(parts.to_le_bytes());
        }
        if let Some(example) = &self.first_refusal {
            example.encode(out);
        }
        self.before.encode(out);
        self.after.encode(out);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> std::result::Result<Recorded, Corrupt> {
        let mut recorded = Recorded {
            changed: reader.u64("a count")?,
            vanished: reader.u64("a count")?,
            refused: reader.u64("a count")?,
            given: reader.i128("a sum of parts")?,
            not_given: reader.i128("a sum of parts")?,
            ..Recorded::default()
        };
        if recorded.refused > 0 {
            recorded.first_refusal = Some(Example::decode(reader)?);
        }
        recorded.before = Sum::decode(reader)?;
        recorded.after = Sum::decode(reader)?;
        let counts = recorded.before.count().max(recorded.after.count());
        if counts > recorded.changed {
            return Err(reader.corrupt("more fields are summed than were changed"));
        }
        Ok(recorded)
    }
}

/// The sum, for people and for reports.
pub(super) fn value_of(sum: &Sum) -> Result<Value<'static>> {
    sum.sum().map_err(|what| crate::QueryError::Overflow {
        column: "the sum of the fields before".into(),
        what,
    })
}

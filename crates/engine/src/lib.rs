//! Types that all engines share.
//!
//! A [`ColumnBatch`] carries entries from an engine's walk to the kernels of a query without a copy;
//! a [`RecordAddress`] is the hint by which an engine finds an entry again. A [`RecordRun`] names records that stay where
//! they are, whose keys are read there ([`HeldKeys`]). [`Compute`], [`Computed`] and
//! [`Upsert`] are what closures decide, and what came of it. A [`KeyRange`] bounds a walk in order, which has a [`Direction`].
//! A [`Journal`] hears of each change's [`Effect`].
//!
//! **Absent:** algorithms, engines, unsafe code.
#![forbid(unsafe_code)]

mod address;
mod batch;
mod buffer;
mod flow;
mod held;
mod journal;
mod outcome;
mod range;

pub use address::RecordAddress;
pub use batch::{Addresses, Column, ColumnBatch, InvalidBatch, Validity};
pub use buffer::{ColumnBuffer, Columns};
pub use flow::{broken_off, keep_break};
pub use held::{HeldKeys, RecordRun};
pub use journal::{Claim, Effect, Journal, Refused};
pub use outcome::{Compute, Computed, Upsert};
pub use range::{Direction, KeyRange, is_empty_range};

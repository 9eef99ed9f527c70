//! Types that all engines share.
//!
//! A [`ColumnBatch`] carries entries from an engine's walk to the kernels of a query without a copy;
//! a [`RecordAddress`] is the hint by which an engine finds an entry again.
//!
//! *Useful for* engines, and for what reads and changes many of their entries at once. *Not useful
//! for* single entries. **Absent:** algorithms, engines, unsafe code.
#![forbid(unsafe_code)]

mod address;
mod batch;
mod buffer;

pub use address::RecordAddress;
pub use batch::{Addresses, Column, ColumnBatch, InvalidBatch, Validity};
pub use buffer::{ColumnBuffer, Columns};

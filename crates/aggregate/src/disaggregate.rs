//! Disaggregation: a total, spread over objects.
//!
//! The way back from a figure to the objects. A [`Disaggregation`] says which field of which objects
//! gets a part of a total, and [`Disaggregator`], what it is compiled to, does it in two phases that
//! the executor that reaches the objects drives:
//!
//! 1. *Collect.* Each thread hands the objects to a [`Collector`], which keeps their keys, and their
//!    weights where parts depend on them. Of all that was [`Collected`] the parts are computed at
//!    once: [`Shares`]. So far nothing is changed, and what cannot succeed is refused here.
//! 2. *Apply.* The shares come in batches, in the order in which the objects were collected. Each
//!    object is changed by [`Disaggregator::change`], inside whatever makes an engine's update
//!    atomic, and its [`Outcome`] goes into a [`DisaggregationProgress`]. What is not done yet can be saved at any
//!    moment as [`Pending`], and gone on with, here or elsewhere.
//!
//! *Not for* atomicity of the whole: others may see some objects changed and some not yet.

mod apportion;
mod chunk;
mod collect;
mod disaggregation;
mod disaggregator;
mod edit;
mod field;
mod pending;
mod progress;
mod recorded;
mod select;
mod shares;

pub use collect::{Collected, Collector};
pub use disaggregation::Disaggregation;
pub use disaggregator::Disaggregator;
pub use edit::{EditAction, FieldEdit};
pub use field::{Action, Amount, Change, Refusal};
pub use pending::Pending;
pub use progress::{Disaggregated, DisaggregationProgress, Outcome};
pub use select::Guess;
pub use shares::{EqualParts, HeldBatch, Share, ShareBatch, Shares, WordParts, WordSums};

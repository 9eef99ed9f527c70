//! Aggregation over keyed bytes.
#![forbid(unsafe_code)]

mod aggregate;
mod answer;
mod block;
mod columns;
mod compiled;
mod error;
mod exact;
mod fold;
mod group;
mod kernels;
mod layout;
mod partial;
mod predicate;
mod query;
mod selection;
mod state;
mod stored;
mod syntax;
mod value;

pub use aggregate::{Aggregate, Function, Spread};
pub use answer::{Accuracy, Answer, Cell, Column};
pub use block::{Block, Live, Strided};
pub use compiled::Compiled;
pub use error::{Error, Example, Result, SyntaxError};
pub use fold::Fold;
pub use group::{Group, GroupBy, Input};
pub use layout::{
    Component, ComponentForm, Field, Form, Layout, Number, Order, Part, Path, Place, Read, Step,
};
pub use partial::{Partial, Tally};
pub use predicate::{Comparison, Operand, Predicate};
pub use query::{Direction, Mismatches, Missing, OrderBy, Query};
pub use selection::Selection;
pub use state::TopEntry;
pub use value::{Float, Kind, Value};

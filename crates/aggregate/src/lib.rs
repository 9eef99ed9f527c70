//! Aggregation over keyed bytes.
#![forbid(unsafe_code)]

mod error;
mod exact;
mod layout;
mod predicate;
mod selection;
mod stored;
mod syntax;
mod value;

pub use error::{Error, Example, Result, SyntaxError};
pub use layout::{
    Component, ComponentForm, Field, Form, Layout, Number, Order, Part, Path, Place, Read, Step,
};
pub use predicate::{Comparison, Operand, Predicate};
pub use selection::Selection;
pub use value::{Float, Kind, Value};

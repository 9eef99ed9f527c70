//! Aggregation over keyed bytes.
#![forbid(unsafe_code)]

mod error;
mod layout;
mod syntax;
mod value;

pub use error::{Error, Example, Result, SyntaxError};
pub use layout::{
    Component, ComponentForm, Field, Form, Layout, Number, Order, Part, Path, Place, Read, Step,
};
pub use value::{Float, Kind, Value};

//! Rows as they come in: columns, the parsers that make them, and their stored form.

#[cfg(feature = "arrow")]
mod arrow;
pub(crate) mod batch;
mod budget;
pub(crate) mod builder;
pub(crate) mod csv;
pub(crate) mod json_lines;
pub(crate) mod message_pack;
mod names;
mod stored;

//! Rows as they come in: columns, and the parsers that make them.

pub(crate) mod batch;
pub(crate) mod builder;
pub(crate) mod csv;
pub(crate) mod json_lines;
pub(crate) mod message_pack;

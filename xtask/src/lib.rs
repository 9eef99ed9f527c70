//! Looks at the sources of the workspace: their words, their sizes, and the arrows between them.
#![forbid(unsafe_code)]

pub mod census;
pub mod rust;

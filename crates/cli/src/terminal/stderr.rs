//! Standard error: warnings, errors and notices.
//!
//! A reader that has gone, or a full disk, does not change what a command does: its exit code says
//! how it ended. So what cannot be written is left out. Lints keep other ways out of this crate.

use std::fmt::Display;
use std::io::{self, Write};

/// Says something on a line of its own, or on several, at once.
pub(crate) fn line(text: impl Display) {
    let text = format!("{text}\n");
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

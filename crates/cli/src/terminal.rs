//! The terminal: answers, notices and errors, and the way a command ends. Knows no command.
//!
//! | module | holds |
//! |---|---|
//! | `ui` | answers on standard output, notices and progress |
//! | `format` | counts, bytes, times and rates, as text for people |
//! | `stderr` | the one way to standard error |
//! | `exit` | failures, their words and their exit codes |
//! | `interrupt` | Ctrl-C, as a flag |

pub(crate) mod exit;
pub(crate) mod format;
pub(crate) mod interrupt;
pub(crate) mod stderr;
pub(crate) mod ui;

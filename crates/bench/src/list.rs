//! The table of benches: their workloads and engines.

use std::io::Write;

use crate::report::table;
use crate::{Error, aggregate, durability, hash, ordered, rollup, server, sql, trees};

/// The names that a bench knows.
pub(crate) struct Names {
    pub(crate) workloads: Vec<String>,
    pub(crate) engines: Vec<String>,
}

impl Names {
    pub(crate) fn new<W: Into<String>, E: Into<String>>(
        workloads: impl IntoIterator<Item = W>,
        engines: impl IntoIterator<Item = E>,
    ) -> Names {
        Names {
            workloads: workloads.into_iter().map(Into::into).collect(),
            engines: engines.into_iter().map(Into::into).collect(),
        }
    }
}

/// Prints the benches with their workloads and engines.
///
/// # Errors
///
/// `out` refuses what is written.
pub fn list(out: &mut dyn Write) -> Result<(), Error> {
    let mut benches = table(&["bench", "workloads", "engines"], 3);
    for (name, names) in [
        ("ordered", ordered::names()),
        ("hash", hash::names()),
        ("aggregate", aggregate::names()),
        ("rollup", rollup::names()),
        ("sql", sql::names()),
        ("server", server::names()),
        ("trees", trees::names()),
        ("durability", durability::names()),
    ] {
        benches.add_row([name, &names.workloads.join("\n"), &names.engines.join("\n")]);
    }
    Ok(writeln!(out, "{benches}")?)
}

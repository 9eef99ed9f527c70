//! Instructions of each operation of a hash table, counted by single steps of a process that does
//! them: the same on each run, with neither performance counters nor a quiet machine. Beyond the
//! cache the rate of single operations is the processor's look-ahead, which is counted in
//! instructions, over this number.
//!
//! Without arguments the program starts itself as the process that is counted, prints a table of
//! figures and budgets, and fails where a figure exceeds its budget.
#![forbid(unsafe_code)]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod budget;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod count;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod work;

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> ExitCode {
    let done = match std::env::args().nth(1).as_deref() {
        None => count::figures().and_then(|figures| budget::judge(&figures)),
        Some(work::ARGUMENT) => work::work(),
        Some(other) => Err(format!("{other}: the program takes no arguments")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() -> ExitCode {
    eprintln!("error: instructions are counted on Linux on x86-64 alone");
    ExitCode::FAILURE
}

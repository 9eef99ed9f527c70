//! The command that repeats a run: its engines and thread counts.

use std::path::PathBuf;

use crate::Error;

/// The command line as it was given, with the program's name alone in front.
pub(crate) fn command() -> String {
    let mut words = std::env::args();
    let program = PathBuf::from(words.next().unwrap_or_default());
    let program = program.file_name().map_or("sapwood-bench".into(), |name| name.to_string_lossy());
    let quoted = words.map(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=,./:".contains(c);
        if word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    std::iter::once(program.into_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// 1, 2, 4 ... and all cores.
pub(crate) fn thread_counts() -> Vec<usize> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |count| Some(count * 2))
        .take_while(|&count| count < cores)
        .collect();
    counts.push(cores);
    counts
}

/// Refuses a name that is not known.
pub(crate) fn check_engines(wanted: &[String], known: &[&str]) -> Result<(), Error> {
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            Err(format!("no engine is called {name}: choose from {}", known.join(", ")).into())
        }
    }
}

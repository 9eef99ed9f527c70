//! The formats of files, as commands are told them.

use std::path::Path;

use sapwood::files::{Error, Format, Packing};

use crate::args::exchange::FileFormat;
use crate::terminal::exit::{Failure, Outcome};

/// The format and packing of a file: the format that was said, or the one that its name tells.
pub(crate) fn of_name(path: &Path, said: Option<FileFormat>) -> Outcome<(Format, Packing)> {
    Format::of_name(path, said.map(Into::into)).map_err(|error| match (error, said) {
        (Error::Format(what), None) if what.ends_with(')') => {
            Failure::Usage(format!("{what}: add --format"))
        }
        (error, _) => error.into(),
    })
}

/// Refuses a format that does not have every entry back byte for byte.
pub(crate) fn expect_exact(format: Format) -> Outcome {
    match format {
        Format::MessagePack => Err(Failure::Usage(
            "MessagePack is for rows of typed columns (`sapwood load`, `sapwood sql`): entries without types come \
             back from csv, jsonl, parquet and arrow"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// The failure of a program without the libraries of a format.
#[cfg(not(feature = "columnar"))]
pub(crate) fn not_built(format: &str) -> Failure {
    Failure::Usage(format!(
        "{format} cannot be read or written: this program was built without Parquet and Arrow; next: \
         `cargo install --profile dist --features columnar --path crates/cli`"
    ))
}

//! The directory of a sample's database.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::terminal::exit::{Failure, Outcome};

/// Where the database of a sample lies.
pub(super) enum DatabaseFolder {
    /// Removed at the end.
    Temporary(TempDir),
    Named(PathBuf),
}

impl DatabaseFolder {
    /// The directory that was named, which must be empty or not there yet, or a temporary one.
    pub(super) fn new(sample: &str, directory: Option<&Path>) -> Outcome<Self> {
        let Some(directory) = directory else {
            let prefix = format!("sapwood-{sample}-");
            return match tempfile::Builder::new().prefix(&prefix).tempdir() {
                Ok(directory) => Ok(Self::Temporary(directory)),
                Err(error) => Err(Failure::Failed(format!(
                    "no temporary directory can be made ({error}): name one with --dir"
                ))),
            };
        };
        let is_empty = match directory.read_dir() {
            Ok(mut files) => files.next().is_none(),
            // Not there yet: the database makes it.
            Err(_) => !directory.exists(),
        };
        match is_empty {
            true => Ok(Self::Named(directory.to_owned())),
            false => Err(Failure::Usage(format!(
                "{} is there and not an empty directory: the sample needs one of its own",
                directory.display()
            ))),
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Temporary(directory) => directory.path(),
            Self::Named(path) => path,
        }
    }
}

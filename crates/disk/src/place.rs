//! The place of a folder: the path that it was opened by, and the folder itself.
//!
//! Files are opened, renamed and removed by the path. Another folder may have that path since, as that of a database which
//! was made where this one was: so a path is used only as long as it leads to this folder.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A folder that is open, and where it was then.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// The folder itself, wherever it is by now.
    folder: fs::File,
}

impl Place {
    /// Opens a folder that is there. Its path does not depend on the directory of the process.
    pub(crate) fn open(path: &Path) -> io::Result<Place> {
        let path = fs::canonicalize(path)?;
        let folder = fs::File::open(&path)?;
        Ok(Place { path, folder })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a name in the folder, to be used at once.
    ///
    /// # Errors
    /// Errors of [`expect_there`](Self::expect_there).
    pub(crate) fn path_of(&self, name: &str) -> io::Result<PathBuf> {
        self.expect_there().map(|path| path.join(name))
    }

    /// The path, if it leads to the folder.
    ///
    /// # Errors
    /// `StaleNetworkFileHandle` where it leads to another, or nowhere; else what the system answers.
    pub(crate) fn expect_there(&self) -> io::Result<&Path> {
        match self.is_there()? {
            true => Ok(&self.path),
            false => Err(self.moved()),
        }
    }

    /// Refuses a folder that its path is known to have lost, for a caller that uses no path. An error of the system
    /// proves no loss.
    ///
    /// # Errors
    /// `StaleNetworkFileHandle`.
    pub(crate) fn expect_not_lost(&self) -> io::Result<()> {
        match self.is_there() {
            Ok(false) => Err(self.moved()),
            Ok(true) | Err(_) => Ok(()),
        }
    }

    /// Makes the set of names last.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.folder.sync_all()?;
        self.expect_not_lost()
    }

    fn is_there(&self) -> io::Result<bool> {
        let own = self.folder.metadata()?;
        match fs::metadata(&self.path) {
            Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
            Err(cause)
                if matches!(
                    cause.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(false)
            }
            Err(cause) => {
                let what = format!("look at folder {}: {cause}", self.path.display());
                Err(io::Error::new(cause.kind(), what))
            }
        }
    }

    /// Not `NotFound`, which would say of a file that there is none.
    fn moved(&self) -> io::Error {
        let what = format!(
            "folder {} was moved or removed while it was open, and nothing is done at its old path, where another may be \
             by now: move it back, or end this process and open it where it is",
            self.path.display()
        );
        io::Error::new(io::ErrorKind::StaleNetworkFileHandle, what)
    }
}

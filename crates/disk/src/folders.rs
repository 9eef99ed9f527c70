//! Folders in a directory, of which each is a disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;
use std::{fmt, fs};

use crate::place::Place;
use crate::{Disk, DiskReads, FileDisk};

/// A directory with folders in it. A path has its names from the directory on, with a `/` between; an empty
/// one is that of the directory itself.
pub trait Folders: Send + Sync + fmt::Debug {
    /// Opens a folder, made where it is missing; its name lasts then.
    ///
    /// # Errors
    /// `WouldBlock` where it is open already; else what the system answers.
    fn open(&self, path: &str) -> io::Result<Arc<dyn Disk>>;
    /// Opens a folder that is there, to read it.
    ///
    /// # Errors
    /// `WouldBlock` where it is open to be written; else what the system answers.
    fn open_read_only(&self, path: &str) -> io::Result<Arc<dyn Disk>>;
    /// The same while another process may write there: nothing is locked, and files may go.
    ///
    /// # Errors
    /// What the system answers.
    fn open_unlocked(&self, path: &str) -> io::Result<Arc<dyn Disk>>;
    /// Makes a folder where it is missing. Its name lasts after a [`Disk::sync`] of the folder around it.
    ///
    /// # Errors
    /// What the system answers.
    fn make(&self, path: &str) -> io::Result<()>;
    /// Whether there is such a folder.
    ///
    /// # Errors
    /// The system's answer where it cannot tell: the folder may be there.
    fn is_there(&self, path: &str) -> io::Result<bool>;
    /// Whether a folder has such a file.
    ///
    /// # Errors
    /// The system's answer where it cannot tell: the file may be there.
    fn has_file(&self, path: &str, file: &str) -> io::Result<bool>;
    /// The names of the folders in a folder.
    ///
    /// # Errors
    /// The system's answer, also where it does not tell that a name is a folder's.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// Takes a folder away with all that is in it. No handle of it is open.
    ///
    /// # Errors
    /// `NotFound` where it is not there; else what the system answers, and some of it may be gone.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// When a file of a folder was written last, where the system knows.
    fn written(&self, path: &str, file: &str) -> Option<SystemTime>;
}

/// Folders in a real directory.
#[derive(Debug)]
pub struct FileFolders {
    directory: PathBuf,
    /// The directory, from when it was opened first.
    opened: OnceLock<Arc<Place>>,
    reads: DiskReads,
}

impl FileFolders {
    /// Folders of a directory that need not be there. Once it was opened as a folder itself, all others are those of
    /// this directory, and none of another that has its path later.
    pub fn new(directory: impl AsRef<Path>) -> FileFolders {
        let directory = directory.as_ref().to_owned();
        FileFolders { directory, opened: OnceLock::new(), reads: DiskReads::default() }
    }

    /// The way of reads that are in flight together, of each folder that is opened.
    #[must_use]
    pub fn with_reads(self, reads: DiskReads) -> FileFolders {
        FileFolders { reads, ..self }
    }

    fn opened(
        &self,
        path: &str,
        open: impl FnOnce(PathBuf) -> io::Result<FileDisk>,
    ) -> io::Result<Arc<dyn Disk>> {
        let disk = open(self.path(path)?)?;
        if path.is_empty() {
            self.opened.get_or_init(|| Arc::clone(disk.at()));
        }
        Ok(Arc::new(match self.reads {
            // It is tried when it is first needed.
            DiskReads::Auto => disk,
            reads => disk.with_reads(reads)?,
        }))
    }

    /// The path of a folder, to be used at once.
    fn path(&self, path: &str) -> io::Result<PathBuf> {
        let directory = match self.opened.get() {
            Some(opened) => opened.expect_there()?,
            None => &self.directory,
        };
        // An empty name would end the path with a slash.
        Ok(match path.is_empty() {
            true => directory.to_owned(),
            false => directory.join(path),
        })
    }
}

impl Folders for FileFolders {
    fn open(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        self.opened(path, FileDisk::open)
    }

    fn open_read_only(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        self.opened(path, FileDisk::open_read_only)
    }

    fn open_unlocked(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        self.opened(path, FileDisk::open_unlocked)
    }

    fn make(&self, path: &str) -> io::Result<()> {
        fs::create_dir_all(self.path(path)?)
    }

    fn is_there(&self, path: &str) -> io::Result<bool> {
        Ok(kind_of(&self.path(path)?)?.is_some_and(|kind| kind.is_dir()))
    }

    fn has_file(&self, path: &str, file: &str) -> io::Result<bool> {
        Ok(kind_of(&self.path(path)?.join(file))?.is_some_and(|kind| kind.is_file()))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(path)?)? {
            let entry = entry?;
            // Names that are no text were not made here.
            if let Ok(name) = entry.file_name().into_string()
                && kind_of(&entry.path())?.is_some_and(|kind| kind.is_dir())
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_dir_all(self.path(path)?)
    }

    fn written(&self, path: &str, file: &str) -> Option<SystemTime> {
        let about = self.path(path).and_then(|path| fs::metadata(path.join(file)));
        about.and_then(|about| about.modified()).ok()
    }
}

/// The kind of what a path leads to; `None` where nothing is there. A table whose files cannot be looked at has not ended:
/// any other answer of the system is an error, and so is a link that leads nowhere, as to a disk that is not mounted.
fn kind_of(path: &Path) -> io::Result<Option<fs::FileType>> {
    let is_absent = |cause: &io::Error| {
        matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    };
    let named = |cause: io::Error| {
        io::Error::new(cause.kind(), format!("look at {}: {cause}", path.display()))
    };
    match fs::metadata(path) {
        Ok(about) => Ok(Some(about.file_type())),
        Err(cause) if is_absent(&cause) => match fs::symlink_metadata(path) {
            Ok(about) if about.is_symlink() => {
                let what = format!("look at {}: the link leads nowhere", path.display());
                Err(io::Error::other(what))
            }
            // It has come meanwhile.
            Ok(about) => Ok(Some(about.file_type())),
            Err(cause) if is_absent(&cause) => Ok(None),
            Err(cause) => Err(named(cause)),
        },
        Err(cause) => Err(named(cause)),
    }
}

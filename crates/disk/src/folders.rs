//! Folders in a directory, of which each is a disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fmt, fs};

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
    reads: DiskReads,
}

impl FileFolders {
    /// Those of a directory, which need not be there.
    pub fn new(directory: impl AsRef<Path>) -> FileFolders {
        FileFolders {
            directory: directory.as_ref().to_owned(),
            reads: DiskReads::default(),
        }
    }

    /// The way of reads that are in flight together, of each folder that is opened.
    #[must_use]
    pub fn with_reads(self, reads: DiskReads) -> FileFolders {
        FileFolders { reads, ..self }
    }

    fn reading(&self, disk: FileDisk) -> io::Result<FileDisk> {
        match self.reads {
            // It is tried when it is first needed.
            DiskReads::Auto => Ok(disk),
            reads => disk.with_reads(reads),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        // An empty name would end the path with a slash.
        match path.is_empty() {
            true => self.directory.clone(),
            false => self.directory.join(path),
        }
    }
}

impl Folders for FileFolders {
    fn open(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(self.reading(FileDisk::open(self.path(path))?)?))
    }

    fn open_read_only(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(
            self.reading(FileDisk::open_read_only(self.path(path))?)?,
        ))
    }

    fn open_unlocked(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(
            self.reading(FileDisk::open_unlocked(self.path(path))?)?,
        ))
    }

    fn make(&self, path: &str) -> io::Result<()> {
        fs::create_dir_all(self.path(path))
    }

    fn is_there(&self, path: &str) -> io::Result<bool> {
        Ok(kind_of(&self.path(path))?.is_some_and(|kind| kind.is_dir()))
    }

    fn has_file(&self, path: &str, file: &str) -> io::Result<bool> {
        Ok(kind_of(&self.path(path).join(file))?.is_some_and(|kind| kind.is_file()))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(path))? {
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
        fs::remove_dir_all(self.path(path))
    }

    fn written(&self, path: &str, file: &str) -> Option<SystemTime> {
        fs::metadata(self.path(path).join(file))
            .and_then(|data| data.modified())
            .ok()
    }
}

/// The kind of what a path leads to; `None` where nothing is there. A table whose files cannot be looked at has not ended:
/// any other answer of the system is an error, and so is a link that leads nowhere, as to a disk that is not mounted.
fn kind_of(path: &Path) -> io::Result<Option<fs::FileType>> {
    let is_absent = |cause: &io::Error| {
        matches!(
            cause.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
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

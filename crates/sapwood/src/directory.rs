//! The directory of a database: which tables lie in it, and with which options.
//!
//! ```text
//! <directory>/                       locked while a Db or a hash table of it is in use
//! <directory>/tables/<name>/options  the table's options; with it the table exists
//! <directory>/tables/<name>/...      the files of the table's engine
//! ```
//!
//! A table comes into being when its `options` are there, as the last step of making it, and ends
//! when they are gone, as the first step of dropping it. A folder without them is what a crash
//! between those steps left, and is cleared when a table of that name is made.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, FileDisk};

use crate::stored_options;
use crate::{Error, HashTableOptions, Result};

/// The file whose being there makes a folder a table.
const OPTIONS: &str = "options";
/// The same, while it is written.
const OPTIONS_NEW: &str = "options.new";

/// A directory that this database alone has open.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Locked; the lock ends with the process, however that ends.
    disk: FileDisk,
}

/// The folder of a table in it.
pub(crate) struct Folder {
    pub(crate) disk: Arc<dyn Disk>,
    path: PathBuf,
}

/// A number for a table that is made, by which its files are told from those of others. It decides
/// nothing else, so that the hasher's keys, which the system's source of randomness seeds, serve.
pub(crate) fn new_table_id() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}

impl Directory {
    /// Opens a directory, after making it if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let disk = FileDisk::open(path).map_err(|cause| match cause.kind() {
            io::ErrorKind::WouldBlock => Error::DirectoryInUse { path: path.to_owned() },
            _ => Error::directory(path, "opened", &cause),
        })?;
        let tables = path.join("tables");
        fs::create_dir_all(&tables)
            .and_then(|()| disk.sync())
            .map_err(|cause| Error::directory(&tables, "made", &cause))?;
        Ok(Self { path: path.to_owned(), disk })
    }

    /// Opens a directory that holds a database, to read it.
    pub(crate) fn open_read_only(path: &Path) -> Result<Self> {
        let disk = FileDisk::open_read_only(path).map_err(|cause| match cause.kind() {
            io::ErrorKind::WouldBlock => Error::DirectoryInUse { path: path.to_owned() },
            _ => Error::directory(path, "opened", &cause),
        })?;
        Ok(Self { path: path.to_owned(), disk })
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.disk.is_read_only()
    }

    /// Refuses what would change something of a directory that is open to be read.
    pub(crate) fn expect_writable(&self) -> Result<()> {
        match self.is_read_only() {
            true => Err(Error::ReadOnly { path: self.path.clone() }),
            false => Ok(()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The names of the tables that are there.
    pub(crate) fn table_names(&self) -> Result<Vec<String>> {
        let tables = self.path.join("tables");
        let unlisted = |cause| Error::directory(&tables, "listed", &cause);
        let mut names = Vec::new();
        for folder in fs::read_dir(&tables).map_err(unlisted)? {
            let folder = folder.map_err(unlisted)?;
            // Names that are no text were not made here.
            if let Ok(name) = folder.file_name().into_string()
                && folder.path().join(OPTIONS).is_file()
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// An empty folder for a table that is being made.
    pub(crate) fn make(&self, name: &str) -> Result<Folder> {
        self.expect_writable()?;
        self.clear(name)?;
        self.folder(name)
    }

    /// The folder of a table.
    pub(crate) fn folder(&self, name: &str) -> Result<Folder> {
        let path = self.folder_path(name);
        let opened = match self.is_read_only() {
            true => FileDisk::open_read_only(&path),
            false => FileDisk::open(&path),
        };
        match opened {
            Ok(disk) => Ok(Folder { disk: Arc::new(disk), path }),
            Err(cause) => Err(Error::directory(&path, "opened", &cause)),
        }
    }

    /// Ends a table that is not open, and removes what lies in its folder.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        self.expect_writable()?;
        let Folder { disk, path } = self.folder(name)?;
        let removed = match disk.remove(OPTIONS) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        removed
            .and_then(|()| disk.sync())
            .map_err(|cause| Error::directory(&path.join(OPTIONS), "removed", &cause))?;
        self.clear(name)
    }

    /// When a file of a table's folder was written last, where the system knows.
    pub(crate) fn written(&self, name: &str, file: &str) -> Option<SystemTime> {
        fs::metadata(self.folder_path(name).join(file)).and_then(|data| data.modified()).ok()
    }

    fn clear(&self, name: &str) -> Result<()> {
        let path = self.folder_path(name);
        match fs::remove_dir_all(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(Error::directory(&path, "removed", &cause))
            }
            _ => Ok(()),
        }
    }

    fn folder_path(&self, name: &str) -> PathBuf {
        self.path.join("tables").join(name)
    }
}

impl Folder {
    /// Writes the table's options, all or none of them. The first time, this is what makes the
    /// table exist.
    pub(crate) fn write_options(&self, options: &HashTableOptions) -> Result<()> {
        let text = stored_options::encode(options);
        let mut block = Blocks::new(text.len());
        block.bytes_mut()[..text.len()].copy_from_slice(text.as_bytes());
        let write = || -> io::Result<()> {
            if self.disk.list()?.iter().any(|file| file == OPTIONS_NEW) {
                self.disk.remove(OPTIONS_NEW)?;
            }
            let file = self.disk.create(OPTIONS_NEW)?;
            file.write_at(0, &block)?;
            file.sync()?;
            self.disk.rename(OPTIONS_NEW, OPTIONS)?;
            self.disk.sync()
        };
        write().map_err(|cause| Error::directory(&self.path.join(OPTIONS), "written", &cause))
    }

    /// The options that the table was made with, or opened with last.
    pub(crate) fn read_options(&self) -> Result<HashTableOptions> {
        let path = self.path.join(OPTIONS);
        let mut block = Blocks::new(1);
        let read = |block: &mut Blocks| -> io::Result<u64> {
            let file = self.disk.open(OPTIONS)?;
            let bytes = file.bytes()?;
            match bytes < BLOCK_BYTES as u64 {
                true => Ok(bytes),
                false => file.read_at(0, block).map(|()| bytes),
            }
        };
        let bytes = read(&mut block).map_err(|cause| Error::directory(&path, "read", &cause))?;
        if bytes < BLOCK_BYTES as u64 {
            let what = format!("the file is cut off, it should have {BLOCK_BYTES} bytes");
            return Err(Error::StoredOptions { path, offset: bytes, what });
        }
        stored_options::decode(block.bytes()).map_err(|unreadable| Error::StoredOptions {
            path,
            offset: unreadable.offset,
            what: unreadable.what,
        })
    }
}

//! The directory of a database: which tables lie in it, and with which options.
//!
//! ```text
//! <directory>/                       locked while a Db, or a hash table of it, may change it
//! <directory>/tables/<name>/options  the table's options; with it the table exists
//! <directory>/tables/<name>/...      the files of the table's engine
//! <directory>/trees/...              the pool of all tree tables, from the first one on
//! <directory>/rollups/<number>/...   the segments of a roll-up table, by its number in the log
//! <directory>/log/...                the log, with the entries of ordered tables
//! ```
//!
//! A directory that is a pool itself, with its files beside each other, is a database of the trees
//! in it. That of another database is not: its commits are in the log of that.
//!
//! A table comes into being when its `options` are there, as the last step of making it, and ends
//! when they have another name, as the first step of dropping it. A folder without them is what a crash
//! between those steps left, and is cleared when a table of that name is made.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use sapwood_disk::{
    BLOCK_BYTES, Blocks, Disk, DiskReads, FileFolders, Folders, HeldFiles, checksum,
};
use sapwood_occ::Versions;
use sapwood_ptree::Pool;

use crate::stored_options;
use crate::{Error, HashTableOptions, Result};

/// The file whose being there makes a folder a table.
const OPTIONS: &str = "options";
/// The same, while it is written.
const OPTIONS_NEW: &str = "options.new";
/// The same, of a table that ends: all its files are there as long as this is.
const OPTIONS_DROPPED: &str = "options.dropped";

/// The folder of the log.
pub(crate) const LOG: &str = "log";

/// The folder of the pool.
const TREES: &str = "trees";

/// Files that say which others count: the manifest of the log, and the superblocks of the pool.
const WRITTEN_ANEW: [&str; 2] = ["manifest", "heap"];

/// The folder of the folders of roll-up tables.
const ROLLUPS: &str = "rollups";

/// The folder of the folders of hash tables.
const TABLES: &str = "tables";

/// A directory that this database alone has open, or that it reads, alone or beside a writer.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    folders: Arc<dyn Folders>,
    /// Locked, but beside a writer; the lock ends with the process, however that ends.
    disk: Arc<dyn Disk>,
    /// Beside a writer, the folders of hash tables by name, with the files that they had at one moment.
    held: Option<Mutex<BTreeMap<String, Arc<dyn Disk>>>>,
    /// Whether the pool lies in the directory itself.
    is_pool: bool,
    /// Those of the keys of all its tables.
    versions: Arc<Versions>,
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
    pub(crate) fn open(path: &Path, reads: DiskReads) -> Result<Self> {
        Self::open_in(path, Arc::new(FileFolders::new(path).with_reads(reads)))
    }

    /// Opens a directory that lies in these folders.
    pub(crate) fn open_in(path: &Path, folders: Arc<dyn Folders>) -> Result<Self> {
        let disk = folders.open("").map_err(|cause| unopened(path, &cause))?;
        let directory = Self::new(path, folders, disk, None)?;
        if !directory.is_pool {
            directory.make_tables()?;
        }
        Ok(directory)
    }

    /// Opens a directory that holds a database, to read it while none writes there.
    pub(crate) fn open_read_only(path: &Path) -> Result<Self> {
        let folders = FileFolders::new(path);
        let disk = folders.open_read_only("").map_err(|cause| unopened(path, &cause))?;
        Self::new(path, Arc::new(folders), disk, None)
    }

    /// Opens a directory that holds a database, to read it beside a writer, if there is one.
    pub(crate) fn open_beside(path: &Path, reads: DiskReads) -> Result<Self> {
        Self::open_beside_in(path, Arc::new(FileFolders::new(path).with_reads(reads)))
    }

    /// The same of one that lies in these folders.
    pub(crate) fn open_beside_in(path: &Path, folders: Arc<dyn Folders>) -> Result<Self> {
        let disk = folders.open_unlocked("").map_err(|cause| unopened(path, &cause))?;
        Self::new(path, folders, disk, Some(Mutex::default()))
    }

    fn new(
        path: &Path,
        folders: Arc<dyn Folders>,
        disk: Arc<dyn Disk>,
        held: Option<Mutex<BTreeMap<String, Arc<dyn Disk>>>>,
    ) -> Result<Self> {
        let is_pool = Pool::is_on(&*disk)
            .map_err(|cause| Error::Trees { path: Some(path.to_owned()), cause })?;
        let versions = Arc::default();
        Ok(Self { path: path.to_owned(), folders, disk, held, is_pool, versions })
    }

    /// Whether a writer may be beside it.
    pub(crate) fn is_beside_writer(&self) -> bool {
        self.held.is_some()
    }

    /// The files of a hash table, as they are now; `None` where there is no such table.
    pub(crate) fn files_of_table(&self, name: &str) -> Result<Option<Arc<dyn Disk>>> {
        let folder = of_table(name);
        let hold = || {
            let files = HeldFiles::of(self.folders.open_unlocked(&folder)?)?;
            // Taking it away is the first step of a drop.
            let is_whole = files.has(OPTIONS) && self.folders.has_file(&folder, OPTIONS)?;
            io::Result::Ok(is_whole.then(|| Arc::new(files) as Arc<dyn Disk>))
        };
        match hold() {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            held => held.map_err(|cause| {
                Error::directory(&self.path.join(TABLES).join(name), "opened", &cause)
            }),
        }
    }

    /// From now on a table has these files, and no others.
    pub(crate) fn hold_table(&self, name: &str, files: Arc<dyn Disk>) {
        if let Some(mut held) = self.held() {
            held.insert(name.to_owned(), files);
        }
    }

    /// Forgets the files of all tables.
    pub(crate) fn hold_no_table(&self) {
        if let Some(mut held) = self.held() {
            held.clear();
        }
    }

    fn held(&self) -> Option<MutexGuard<'_, BTreeMap<String, Arc<dyn Disk>>>> {
        let held = self.held.as_ref()?;
        Some(held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The names of the files that there are, and how those begin that say what counts: a writer that takes away what a
    /// reader looks for makes them others.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut folders = vec![String::new(), LOG.to_owned(), TREES.to_owned()];
        for around in [TABLES, ROLLUPS] {
            let names = self.folders.list(around).unwrap_or_default();
            folders.extend(names.into_iter().map(|name| format!("{around}/{name}")));
        }
        folders.sort();
        let mut names = Vec::new();
        for folder in folders {
            let Ok(disk) = self.folders.open_unlocked(&folder) else { continue };
            names.extend(disk.list().unwrap_or_default());
            names.push(folder);
            for file in WRITTEN_ANEW {
                let Ok(view) = disk.view(file) else { continue };
                let begin = &view.bytes()[..view.bytes().len().min(2 * BLOCK_BYTES)];
                names.push(format!("{file} {}", checksum(begin)));
            }
        }
        names
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

    /// The path that leads to the directory now, whatever that of the process is.
    ///
    /// # Errors
    /// [`Error::Directory`] where it was moved or removed since.
    pub(crate) fn files_path(&self) -> Result<PathBuf> {
        let path =
            self.disk.path().map_err(|cause| Error::directory(&self.path, "used", &cause))?;
        Ok(path.unwrap_or_else(|| self.path.clone()))
    }

    /// The folder of the log.
    pub(crate) fn log_path(&self) -> PathBuf {
        self.path.join(LOG)
    }

    /// The folder of the log, made if it is not there.
    pub(crate) fn log_disk(&self) -> Result<Arc<dyn Disk>> {
        let disk = self.folders.open(LOG).and_then(|disk| self.disk.sync().map(|()| disk));
        disk.map_err(|cause| unopened(&self.log_path(), &cause))
    }

    /// The folder of the log, if it is there, of a directory that is read.
    pub(crate) fn log_disk_to_read(&self) -> Result<Option<Arc<dyn Disk>>> {
        if !self.has_folder(LOG)? {
            return Ok(None);
        }
        let disk = self.open_folder(LOG);
        disk.map(Some).map_err(|cause| unopened(&self.log_path(), &cause))
    }

    /// The versions of the keys of all its tables.
    pub(crate) fn versions(&self) -> &Arc<Versions> {
        &self.versions
    }

    /// Whether the pool lies in the directory itself.
    pub(crate) fn is_pool(&self) -> bool {
        self.is_pool
    }

    /// The folder of the pool.
    pub(crate) fn pool_path(&self) -> PathBuf {
        if self.is_pool { self.path.clone() } else { self.path.join(TREES) }
    }

    /// The pool's folder, if there is a pool in it.
    pub(crate) fn pool_disk(&self) -> Result<Option<Arc<dyn Disk>>> {
        if self.is_pool {
            return Ok(Some(self.disk.clone()));
        }
        if !self.has_folder(TREES)? {
            return Ok(None);
        }
        let path = self.pool_path();
        let disk = self.open_folder(TREES).map_err(|cause| unopened(&path, &cause))?;
        let is_there = Pool::is_on(&*disk);
        let is_there = is_there.map_err(|cause| Error::Trees { path: Some(path), cause })?;
        // A folder without one is what a crash left that came while a pool was made.
        Ok(is_there.then_some(disk))
    }

    /// An empty folder for a pool that is made.
    pub(crate) fn make_pool(&self) -> Result<Arc<dyn Disk>> {
        self.expect_writable()?;
        let path = self.pool_path();
        self.clear(TREES)?;
        let disk = self.folders.open(TREES).and_then(|disk| self.disk.sync().map(|()| disk));
        disk.map_err(|cause| Error::directory(&path, "made", &cause))
    }

    /// The folder of a roll-up table.
    pub(crate) fn rollup_path(&self, number: u64) -> PathBuf {
        self.path.join(ROLLUPS).join(number.to_string())
    }

    /// An empty folder for a roll-up table that is made.
    #[cfg(feature = "rollup")]
    pub(crate) fn make_rollup(&self, number: u64) -> Result<Arc<dyn Disk>> {
        self.expect_writable()?;
        let path = self.rollup_path(number);
        self.clear(&of_rollup(number))?;
        let is_first = !self.has_folder(ROLLUPS)?;
        let around = self.folders.make(ROLLUPS).and_then(|()| self.disk.sync());
        if around.is_err() && is_first {
            // After a sync that failed, a later one says nothing about this name: the next attempt makes it anew.
            let _left = self.folders.remove(ROLLUPS);
        }
        around
            .and_then(|()| self.folders.open(&of_rollup(number)))
            .map_err(|cause| Error::directory(&path, "made", &cause))
    }

    /// The folder of a roll-up table that the log knows, which had so many batches in segments at the last checkpoint.
    /// With none there, the log has all of them: a folder that is missing is made again, or left out of a directory
    /// that is only read. A copy of files alone has no empty folders.
    #[cfg(feature = "rollup")]
    pub(crate) fn rollup_disk(&self, number: u64, sealed: u64) -> Result<Option<Arc<dyn Disk>>> {
        let path = self.rollup_path(number);
        match (self.has_folder(&of_rollup(number))?, sealed, self.is_read_only()) {
            (true, ..) => {
                let disk = self.open_folder(&of_rollup(number));
                disk.map(Some).map_err(|cause| unopened(&path, &cause))
            }
            (false, 0, false) => self.make_rollup(number).map(Some),
            (false, 0, true) => Ok(None),
            (false, ..) => {
                let missing = io::Error::new(
                    io::ErrorKind::NotFound,
                    "the log knows it, and it is not there",
                );
                Err(Error::directory(&path, "opened", &missing))
            }
        }
    }

    /// Takes the folder of a roll-up table away that is no more in the log.
    pub(crate) fn remove_rollup(&self, number: u64) -> Result<()> {
        self.clear(&of_rollup(number))
    }

    /// Takes the folders of roll-up tables away that a crash left which came while they were made or dropped.
    pub(crate) fn keep_rollups(&self, is_known: impl Fn(u64) -> bool) -> Result<()> {
        if !self.has_folder(ROLLUPS)? {
            return Ok(());
        }
        let path = self.path.join(ROLLUPS);
        let names = self.folders.list(ROLLUPS);
        let names = names.map_err(|cause| Error::directory(&path, "listed", &cause))?;
        let numbers = names.iter().filter_map(|name| name.parse().ok());
        numbers
            .filter(|number| !is_known(*number))
            .try_for_each(|number| self.remove_rollup(number))
    }

    /// The names of the hash tables that are there.
    pub(crate) fn table_names(&self) -> Result<Vec<String>> {
        match self.held() {
            Some(held) => Ok(held.keys().cloned().collect()),
            None => self.listed_tables(),
        }
    }

    /// The same by what is there now, whatever is held.
    pub(crate) fn listed_tables(&self) -> Result<Vec<String>> {
        // A directory that is a pool, and one that was restored without hash tables, has no folder of them.
        if !self.has_folder(TABLES)? {
            return Ok(Vec::new());
        }
        let listed = self.folders.list(TABLES);
        let mut names = Vec::new();
        for name in listed.map_err(|cause| unseen(&self.path.join(TABLES), &cause))? {
            if self.has_file(&of_table(&name), OPTIONS)? {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// True where there is a folder. One that cannot be looked at is not taken for one that is not there.
    fn has_folder(&self, folder: &str) -> Result<bool> {
        let found = self.folders.is_there(folder);
        found.map_err(|cause| unseen(&self.path.join(folder), &cause))
    }

    /// True where there is a file in a folder; an error where it cannot be looked at.
    fn has_file(&self, folder: &str, file: &str) -> Result<bool> {
        let found = self.folders.has_file(folder, file);
        found.map_err(|cause| unseen(&self.path.join(folder).join(file), &cause))
    }

    /// An empty folder for a table that is being made.
    pub(crate) fn make(&self, name: &str) -> Result<Folder> {
        self.expect_writable()?;
        self.clear(&of_table(name))?;
        if self.is_pool {
            self.make_tables()?;
        }
        self.folder(name)
    }

    /// Makes the folder of the tables' folders.
    fn make_tables(&self) -> Result<()> {
        self.folders
            .make(TABLES)
            .and_then(|()| self.disk.sync())
            .map_err(|cause| Error::directory(&self.path.join(TABLES), "made", &cause))
    }

    /// The folder of a table.
    pub(crate) fn folder(&self, name: &str) -> Result<Folder> {
        let path = self.path.join(TABLES).join(name);
        let opened = match self.held() {
            Some(held) => held.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()),
            None => self.open_folder(&of_table(name)),
        };
        match opened {
            Ok(disk) => Ok(Folder { disk, path }),
            Err(cause) => Err(Error::directory(&path, "opened", &cause)),
        }
    }

    /// A folder of the directory, to be used as the directory is.
    fn open_folder(&self, folder: &str) -> io::Result<Arc<dyn Disk>> {
        match (self.is_read_only(), self.is_beside_writer()) {
            (true, true) => self.folders.open_unlocked(folder),
            (true, false) => self.folders.open_read_only(folder),
            (false, _) => self.folders.open(folder),
        }
    }

    /// Ends a table that is not open, and removes what lies in its folder: once it is sure that the table has ended.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        self.expect_writable()?;
        let Folder { disk, path } = self.folder(name)?;
        let or_gone = |done: io::Result<()>| match done {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        or_gone(disk.rename(OPTIONS, OPTIONS_DROPPED))
            .and_then(|()| disk.sync())
            .and_then(|()| or_gone(disk.remove(OPTIONS_DROPPED)))
            .and_then(|()| disk.sync())
            .map_err(|cause| Error::directory(&path.join(OPTIONS), "removed", &cause))?;
        self.clear(&of_table(name))
    }

    /// Lets the name of a table last that a crash, or a sync that failed, may have left in doubt: a later sync alone says
    /// nothing about it.
    pub(crate) fn settle_name(&self, name: &str) -> Result<()> {
        let folder = self.folder(name)?;
        match folder.read_options() {
            Ok(options) => folder.write_options(&options),
            // What is wrong with them is told when the table is opened.
            Err(_) => Ok(()),
        }
    }

    /// Lets the end of a table last that a crash, or a sync that failed, may have left in doubt. Its files stay: the table
    /// may be there again if a crash comes meanwhile.
    pub(crate) fn settle_removal(&self, name: &str) -> Result<()> {
        if !self.has_file(&of_table(name), OPTIONS_DROPPED)? {
            return Ok(());
        }
        let Folder { disk, path } = self.folder(name)?;
        disk.rename(OPTIONS_DROPPED, OPTIONS)
            .and_then(|()| disk.rename(OPTIONS, OPTIONS_DROPPED))
            .and_then(|()| disk.sync())
            .map_err(|cause| Error::directory(&path.join(OPTIONS), "removed", &cause))
    }

    /// When a file of a table's folder was written last, where the system knows.
    pub(crate) fn written(&self, name: &str, file: &str) -> Option<SystemTime> {
        self.folders.written(&of_table(name), file)
    }

    /// Takes a folder away, if it is there.
    fn clear(&self, folder: &str) -> Result<()> {
        match self.folders.remove(folder) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(Error::directory(&self.path.join(folder), "removed", &cause))
            }
            _ => Ok(()),
        }
    }
}

/// Of a directory, or of a folder in it.
fn unopened(path: &Path, cause: &io::Error) -> Error {
    match cause.kind() {
        io::ErrorKind::WouldBlock => Error::DirectoryInUse { path: path.to_owned() },
        _ => Error::directory(path, "opened", cause),
    }
}

/// The error about a file or folder that may be there, and cannot be looked at.
fn unseen(path: &Path, cause: &io::Error) -> Error {
    let why = format!(
        "{cause}; it may be there, and nothing was changed: let this user read it, and open the directory again"
    );
    Error::directory(path, "looked at", &io::Error::new(cause.kind(), why))
}

/// The folder of a roll-up table, in the directory.
fn of_rollup(number: u64) -> String {
    format!("{ROLLUPS}/{number}")
}

/// The folder of a table, in the directory.
fn of_table(name: &str) -> String {
    format!("{TABLES}/{name}")
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

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
        if let Some(found) = stored_options::later_version(block.bytes()) {
            return Err(Error::NewerFormat { path, found, known: stored_options::VERSION });
        }
        stored_options::decode(block.bytes()).map_err(|unreadable| Error::StoredOptions {
            path,
            offset: unreadable.offset,
            what: unreadable.what,
        })
    }
}

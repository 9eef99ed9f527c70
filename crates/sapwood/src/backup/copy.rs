//! Files of a directory into a store, and out of it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::info::{BackupInfo, BackupProgress};
use super::store::{List, Listed, Piece, Store, failed, sync_folder};
use super::stored::StoredFolders;
use crate::directory::{Directory, LOG};
use crate::{Db, Error, Result};

/// Bytes of a piece: what changes in a file is written anew by as many.
const PIECE_BYTES: usize = 1 << 20;

/// How far something is; its caller may end it.
struct Progress<'s, P> {
    store: &'s Store,
    tell: P,
    now: BackupProgress,
}

impl<P: FnMut(BackupProgress) -> bool> Progress<'_, P> {
    fn add(&mut self, bytes: u64) -> Result<()> {
        self.now.done += bytes;
        self.now.all = self.now.all.max(self.now.done);
        match (self.tell)(self.now) {
            true => Ok(()),
            false => Err(self
                .store
                .refused("it was ended before it was done, and nothing is left of it")),
        }
    }
}

/// Takes a backup of a directory in which no file goes away that counts, and no table comes as long as `tables`
/// lives: until the log is copied, which would tell of it.
pub(super) fn add<T>(
    store: &Store,
    of: &Directory,
    tables: T,
    progress: impl FnMut(BackupProgress) -> bool,
) -> Result<BackupInfo> {
    let directory = &*of.files_path()?;
    let mut paths = Vec::new();
    find_files(directory, &mut paths)?;
    let is_log = |path: &PathBuf| path.starts_with(directory.join(LOG));
    paths.sort_by_cached_key(|path| (!is_log(path), path.clone()));
    let mut tables = Some(tables);
    let sizes = paths.iter().map(|path| path.metadata().map_or(0, |file| file.len()));
    let now = BackupProgress { done: 0, all: sizes.sum() };
    let mut progress = Progress { store, tell: progress, now };
    let mut list = List {
        number: store.next_number()?,
        taken: SystemTime::now(),
        of: of.path().display().to_string(),
        files: Vec::new(),
    };
    let mut own_bytes = 0;
    let mut buffer = Vec::with_capacity(PIECE_BYTES);
    for path in paths {
        if !is_log(&path) {
            drop(tables.take());
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            // One that the log has used for another part, or that was written under another name.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
            Err(cause) => return Err(failed(&path, "opened", &cause)),
        };
        let mut pieces = Vec::new();
        loop {
            buffer.clear();
            let read = (&file).take(PIECE_BYTES as u64).read_to_end(&mut buffer);
            if read.map_err(|cause| failed(&path, "read", &cause))? == 0 {
                break;
            }
            let piece = Piece::of(&buffer);
            if store.put(piece, &buffer)? {
                own_bytes += piece.bytes;
            }
            pieces.push(piece);
            progress.add(piece.bytes)?;
        }
        let inside = path.strip_prefix(directory).expect("it was found there");
        let names: Option<Vec<&str>> = inside.iter().map(|name| name.to_str()).collect();
        let names = names.ok_or_else(|| Error::Backup {
            path: path.clone(),
            what: "its name is no text, so that it is none of a database: take it away".to_owned(),
        })?;
        list.files.push(Listed { path: names.join("/"), pieces });
    }
    store.sync()?;
    // Another may have got the path meanwhile, and its files are none of this one.
    of.files_path()?;
    store.add(&list)?;
    Ok(list.info(own_bytes))
}

/// The files of a folder and of those in it, but hidden ones, as locks are.
fn find_files(folder: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    let unread = |cause: io::Error| failed(folder, "read", &cause);
    for entry in fs::read_dir(folder).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        match entry.file_type().map_err(unread)?.is_dir() {
            true => find_files(&entry.path(), into)?,
            false => into.push(entry.path()),
        }
    }
    Ok(())
}

pub(super) fn verify(
    store: &Store,
    number: Option<u64>,
    progress: impl FnMut(BackupProgress) -> bool,
) -> Result<()> {
    let lists = match number {
        Some(number) => vec![store.list(Some(number))?],
        None => store.lists()?,
    };
    let mut seen = HashSet::new();
    let all: HashSet<Piece> = lists.iter().flat_map(List::pieces).collect();
    let all = all.iter().map(|piece| piece.bytes).sum();
    let mut progress = Progress { store, tell: progress, now: BackupProgress { done: 0, all } };
    for file in lists.iter().flat_map(|list| &list.files) {
        for piece in &file.pieces {
            if seen.insert(*piece) {
                store.pieces.get(*piece, &file.path)?;
                progress.add(piece.bytes)?;
            }
        }
    }
    lists.iter().try_for_each(|list| expect_database(store, list))
}

/// Opens the database that would be restored.
fn expect_database(store: &Store, list: &List) -> Result<()> {
    let path = store.list_path(list.number);
    let folders = Arc::new(StoredFolders::of(list, &store.pieces));
    Db::expect_opens(&path, folders).map_err(|error| {
        let what = format!(
            "its files are as they were copied, and the database does not open: {error}; use another backup"
        );
        Error::Backup { path, what }
    })
}

pub(super) fn restore(
    store: &Store,
    number: Option<u64>,
    to: &Path,
    progress: impl FnMut(BackupProgress) -> bool,
) -> Result<BackupInfo> {
    let list = store.list(number)?;
    match to.read_dir().map(|mut files| files.next().is_none()) {
        Ok(true) => {}
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Ok(false) => {
            let what = "the directory is not empty: choose another".to_owned();
            return Err(Error::Backup { path: to.to_owned(), what });
        }
        Err(cause) => return Err(failed(to, "read", &cause)),
    }
    let unfinished = to.with_added_extension("unfinished");
    remove_folder(&unfinished)?;
    let restored = write_files(store, &list, &unfinished, progress).and_then(|()| {
        // An empty one gives way.
        fs::rename(&unfinished, to).map_err(|cause| failed(to, "made", &cause))?;
        sync_folder(around(to))
    });
    if let Err(error) = restored {
        // What is left says by its name what it is.
        let _left = remove_folder(&unfinished);
        return Err(error);
    }
    Ok(list.info(0))
}

fn around(path: &Path) -> &Path {
    match path.parent() {
        Some(around) if !around.as_os_str().is_empty() => around,
        _ => Path::new("."),
    }
}

fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(failed(folder, "removed", &cause))
        }
        _ => Ok(()),
    }
}

/// Writes all files of a backup, so that they last.
fn write_files(
    store: &Store,
    list: &List,
    to: &Path,
    progress: impl FnMut(BackupProgress) -> bool,
) -> Result<()> {
    let now = BackupProgress { done: 0, all: list.bytes() };
    let mut progress = Progress { store, tell: progress, now };
    let mut folders = HashSet::from([to.to_owned()]);
    fs::create_dir_all(to).map_err(|cause| failed(to, "made", &cause))?;
    for listed in &list.files {
        let path = to.join(&listed.path);
        let folder = path.parent().expect("it is in the directory");
        fs::create_dir_all(folder).map_err(|cause| failed(folder, "made", &cause))?;
        folders.extend(folder.ancestors().take_while(|folder| *folder != to).map(Path::to_owned));
        let unwritten = |cause: io::Error| failed(&path, "written", &cause);
        let mut file = File::create_new(&path).map_err(unwritten)?;
        for piece in &listed.pieces {
            file.write_all(&store.pieces.get(*piece, &listed.path)?).map_err(unwritten)?;
            progress.add(piece.bytes)?;
        }
        file.sync_all().map_err(unwritten)?;
    }
    folders.iter().try_for_each(|folder| sync_folder(folder))
}

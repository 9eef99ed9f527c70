//! Pieces of files, by what is in them, and lists of files.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use sapwood_disk::{Disk, FileDisk, FileFolders, Folders};
use xxhash_rust::xxh3::xxh3_128;

use super::info::BackupInfo;
use crate::{Error, Result};

const PIECES: &str = "pieces";
/// What the name of a list ends with.
const LIST: &str = ".backup";
const FORMAT: &str = "sapwood backup 1";
const FORMAT_OF_ANY_VERSION: &str = "sapwood backup ";

/// Some bytes of a file: what they are, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    hash: u128,
    pub(super) bytes: u64,
}

impl Piece {
    pub(super) fn of(bytes: &[u8]) -> Piece {
        Piece { hash: xxh3_128(bytes), bytes: bytes.len() as u64 }
    }

    fn name(self) -> String {
        format!("{:032x}-{}", self.hash, self.bytes)
    }

    fn parse(name: &str) -> Option<Piece> {
        let (hash, bytes) = name.split_once('-')?;
        Some(Piece { hash: u128::from_str_radix(hash, 16).ok()?, bytes: bytes.parse().ok()? })
    }
}

/// A file of a backup.
#[derive(Debug)]
pub(super) struct Listed {
    /// From the directory on, with a `/` between names.
    pub(super) path: String,
    pub(super) pieces: Vec<Piece>,
}

/// The files of a backup.
#[derive(Debug)]
pub(super) struct List {
    pub(super) number: u64,
    pub(super) taken: SystemTime,
    pub(super) of: String,
    pub(super) files: Vec<Listed>,
}

impl List {
    pub(super) fn bytes(&self) -> u64 {
        self.pieces().map(|piece| piece.bytes).sum()
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.files.iter().flat_map(|file| file.pieces.iter().copied())
    }

    pub(super) fn info(&self, own_bytes: u64) -> BackupInfo {
        BackupInfo {
            number: self.number,
            taken: self.taken,
            of: self.of.clone(),
            files: self.files.len() as u64,
            bytes: self.bytes(),
            own_bytes,
        }
    }

    fn encode(&self) -> String {
        let since = self.taken.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut text = format!("{FORMAT}\ntaken {}\nof {:?}\n", since.as_secs(), self.of);
        for file in &self.files {
            text.push_str(&format!("file {:?}", file.path));
            for piece in &file.pieces {
                text.push(' ');
                text.push_str(&piece.name());
            }
            text.push('\n');
        }
        let checksum = xxh3_128(text.as_bytes());
        text.push_str(&format!("checksum {checksum:032x}\n"));
        text
    }

    /// # Errors
    /// What is wrong.
    fn decode(number: u64, text: &str) -> Result<List, String> {
        let first = text.lines().next().unwrap_or_default();
        if first != FORMAT && first.starts_with(FORMAT_OF_ANY_VERSION) {
            return Err(format!(
                "it is a {first}, and this program reads a {FORMAT}: upgrade to the version of Sapwood that wrote it, or a \
                 later one"
            ));
        }
        let (body, checksum) = text.rsplit_once("checksum ").ok_or("it has no checksum")?;
        if checksum != format!("{:032x}\n", xxh3_128(body.as_bytes())) {
            return Err("its checksum is another".to_owned());
        }
        let mut lines = body.lines();
        if lines.next() != Some(FORMAT) {
            return Err("it does not begin as the list of a backup does".to_owned());
        }
        let mut list =
            List { number, taken: SystemTime::UNIX_EPOCH, of: String::new(), files: Vec::new() };
        for line in lines {
            let wrong = || format!("a line of it cannot be read: {line:?}");
            let (what, rest) = line.split_once(' ').ok_or_else(wrong)?;
            match what {
                "taken" => {
                    let seconds = rest.parse().map_err(|_| wrong())?;
                    list.taken += Duration::from_secs(seconds);
                }
                "of" => list.of = unquoted(rest).ok_or_else(wrong)?.0,
                "file" => {
                    let (path, rest) = unquoted(rest).ok_or_else(wrong)?;
                    let pieces = rest.split_ascii_whitespace().map(Piece::parse);
                    let pieces = pieces.collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
                    let is_inside = Path::new(&path)
                        .components()
                        .all(|part| matches!(part, Component::Normal(_)));
                    if !is_inside || path.is_empty() {
                        return Err(wrong());
                    }
                    list.files.push(Listed { path, pieces });
                }
                _ => return Err(wrong()),
            }
        }
        Ok(list)
    }
}

/// Takes a text in quotes, as `Debug` shows it, from the beginning of a line; what is behind it.
fn unquoted(line: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut left = line.strip_prefix('"')?.chars();
    loop {
        match left.next()? {
            '"' => return Some((text, left.as_str())),
            '\\' => match left.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                '0' => text.push('\0'),
                'u' => {
                    let (digits, behind) = left.as_str().strip_prefix('{')?.split_once('}')?;
                    text.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                    left = behind.chars();
                }
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
}

/// Pieces in a folder, by what is in them.
#[derive(Debug, Clone)]
pub(super) struct Pieces {
    folder: PathBuf,
}

impl Pieces {
    fn folder_of(&self, piece: Piece) -> PathBuf {
        self.folder.join(format!("{:02x}", piece.hash >> 120))
    }

    /// Reads a piece, as it was put in.
    pub(super) fn get(&self, piece: Piece, file: &str) -> Result<Vec<u8>> {
        let path = self.folder_of(piece).join(piece.name());
        let damaged = |why: &str| Error::Backup {
            path: path.clone(),
            what: format!(
                "a piece of `{file}` {why}: bring it back from a copy, or use another backup"
            ),
        };
        match fs::read(&path) {
            Ok(bytes) if Piece::of(&bytes) == piece => Ok(bytes),
            Ok(_) => Err(damaged("is damaged")),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Err(damaged("is missing")),
            Err(cause) => Err(failed(&path, "read", &cause)),
        }
    }
}

/// A folder of pieces and lists, locked.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    pub(super) pieces: Pieces,
    /// Folders with names that may not last yet.
    unsynced: Mutex<BTreeSet<PathBuf>>,
    /// Locked.
    disk: FileDisk,
}

impl Store {
    pub(super) fn open_or_create(path: &Path) -> Result<Store> {
        let disk = FileDisk::open(path).map_err(|cause| failed(path, "opened", &cause))?;
        let pieces = Pieces { folder: path.join(PIECES) };
        let store = Store { path: path.to_owned(), pieces, unsynced: Mutex::default(), disk };
        store.make(&store.pieces.folder)?;
        Ok(store)
    }

    pub(super) fn open(path: &Path) -> Result<Store> {
        let is_there = FileFolders::new(path).is_there(PIECES);
        if !is_there.map_err(|cause| failed(path, "opened", &cause))? {
            let what = "there are no backups: name the folder that `backup` was given".to_owned();
            return Err(Error::Backup { path: path.to_owned(), what });
        }
        Store::open_or_create(path)
    }

    pub(super) fn refused(&self, what: impl Into<String>) -> Error {
        Error::Backup { path: self.path.clone(), what: what.into() }
    }

    fn make(&self, folder: &Path) -> Result<()> {
        if !folder.is_dir() {
            fs::create_dir_all(folder).map_err(|cause| failed(folder, "made", &cause))?;
            self.note_unsynced(folder.parent().expect("it is in the store"));
        }
        Ok(())
    }

    fn note_unsynced(&self, folder: &Path) {
        let mut unsynced = self.unsynced.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        unsynced.insert(folder.to_owned());
    }

    /// Puts a piece in, if it is not there; whether it was not. It lasts once [`sync`](Self::sync) returns.
    pub(super) fn put(&self, piece: Piece, bytes: &[u8]) -> Result<bool> {
        let folder = self.pieces.folder_of(piece);
        let path = folder.join(piece.name());
        // It has its name only once it is whole.
        if path.metadata().is_ok_and(|there| there.len() == piece.bytes) {
            return Ok(false);
        }
        self.make(&folder)?;
        write_new(&path, bytes)?;
        self.note_unsynced(&folder);
        Ok(true)
    }

    /// Lets the names of all pieces last.
    pub(super) fn sync(&self) -> Result<()> {
        let mut unsynced = self.unsynced.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for folder in std::mem::take(&mut *unsynced) {
            sync_folder(&folder)?;
        }
        Ok(())
    }

    fn numbers(&self) -> Result<Vec<u64>> {
        let unread = |cause: io::Error| failed(&self.path, "read", &cause);
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(unread)? {
            let name = entry.map_err(unread)?.file_name();
            let number: Option<u64> =
                name.to_str().and_then(|name| name.strip_suffix(LIST)?.parse().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    pub(super) fn next_number(&self) -> Result<u64> {
        Ok(self.numbers()?.last().map_or(1, |last| last + 1))
    }

    pub(super) fn list_path(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number}{LIST}"))
    }

    /// The list of a backup, the newest where none is named.
    pub(super) fn list(&self, number: Option<u64>) -> Result<List> {
        let numbers = self.numbers()?;
        let number = match number {
            Some(number) if numbers.contains(&number) => number,
            Some(number) => {
                let there: Vec<_> = numbers.iter().map(u64::to_string).collect();
                let there = there.join(", ");
                return Err(self.refused(format!("there is no backup {number}, but {there}")));
            }
            None => *numbers.last().ok_or_else(|| self.refused("there is no backup yet"))?,
        };
        let path = self.list_path(number);
        let text = fs::read_to_string(&path).map_err(|cause| failed(&path, "read", &cause))?;
        List::decode(number, &text).map_err(|why| Error::Backup {
            path,
            what: format!("the list of its files is damaged: {why}; use another backup"),
        })
    }

    pub(super) fn lists(&self) -> Result<Vec<List>> {
        self.numbers()?.into_iter().map(|number| self.list(Some(number))).collect()
    }

    pub(super) fn infos(&self) -> Result<Vec<BackupInfo>> {
        let lists = self.lists()?;
        let mut backups_of: HashMap<Piece, u32> = HashMap::new();
        for list in &lists {
            for piece in list.pieces().collect::<HashSet<_>>() {
                *backups_of.entry(piece).or_default() += 1;
            }
        }
        let infos = lists.iter().map(|list| {
            let distinct: HashSet<Piece> = list.pieces().collect();
            let own = distinct.iter().filter(|piece| backups_of[piece] == 1);
            list.info(own.map(|piece| piece.bytes).sum())
        });
        Ok(infos.collect())
    }

    /// Lets a backup be there: all its pieces are in, and last.
    pub(super) fn add(&self, list: &List) -> Result<()> {
        self.expect_there()?;
        write_new(&self.list_path(list.number), list.encode().as_bytes())?;
        sync_folder(&self.path)
    }

    /// Refuses where the folder was moved since it was opened: another may be there by now.
    fn expect_there(&self) -> Result<()> {
        self.disk.path().map(drop).map_err(|cause| failed(&self.path, "used", &cause))
    }

    pub(super) fn keep(&self, count: usize) -> Result<Vec<u64>> {
        self.expect_there()?;
        let numbers = self.numbers()?;
        let gone = numbers[..numbers.len().saturating_sub(count)].to_vec();
        for number in &gone {
            let path = self.list_path(*number);
            fs::remove_file(&path).map_err(|cause| failed(&path, "removed", &cause))?;
        }
        // Before their pieces go, no list may come back that names them.
        sync_folder(&self.path)?;
        self.sweep()?;
        Ok(gone)
    }

    /// Removes the pieces that no backup names, and what was cut off.
    fn sweep(&self) -> Result<()> {
        let lists = self.lists()?;
        let named: HashSet<String> = lists.iter().flat_map(List::pieces).map(Piece::name).collect();
        let pieces = &self.pieces.folder;
        let unread = |cause: io::Error| failed(pieces, "read", &cause);
        for folder in fs::read_dir(pieces).map_err(unread)? {
            for piece in fs::read_dir(folder.map_err(unread)?.path()).map_err(unread)? {
                let piece = piece.map_err(unread)?;
                if !piece.file_name().to_str().is_some_and(|name| named.contains(name)) {
                    let path = piece.path();
                    fs::remove_file(&path).map_err(|cause| failed(&path, "removed", &cause))?;
                }
            }
        }
        Ok(())
    }
}

pub(super) fn failed(path: &Path, what: &'static str, cause: &io::Error) -> Error {
    Error::directory(path, what, cause)
}

pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|cause| failed(folder, "synced", &cause))
}

/// Writes a file that has its name only once it is whole and lasts. The name lasts later.
fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = path.with_added_extension("unfinished");
    let write = || {
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    write().map_err(|cause| failed(path, "written", &cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_they_were_written_and_damage_is_noticed() {
        let pieces = vec![Piece::of(b"one"), Piece::of(b"other")];
        let files = vec![
            Listed { path: "log/wal-1".to_owned(), pieces },
            Listed { path: "a \"quoted\" name".to_owned(), pieces: Vec::new() },
        ];
        let taken = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let of = "/a path\n\u{1f332}/\\".to_owned();
        let list = List { number: 7, taken, of, files };
        let text = list.encode();
        let read = List::decode(7, &text).expect("as it was written");
        assert_eq!(read.info(0), list.info(0));
        assert_eq!(read.encode(), text);
        for at in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[at] ^= 1;
            // Else it is no text.
            if let Ok(damaged) = String::from_utf8(damaged) {
                assert!(List::decode(7, &damaged).is_err(), "byte {at}");
            }
        }
        let outside = List { files: vec![Listed { path: "../x".into(), pieces: vec![] }], ..list };
        assert!(List::decode(7, &outside.encode()).is_err());
    }
}

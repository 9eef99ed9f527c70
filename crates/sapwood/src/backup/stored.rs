//! A backup as the directory that it was: its files are read where their pieces lie.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use sapwood_disk::{Blocks, CachedFile, Disk, File, Folders, Mapped, Presence, Read};

use super::store::{List, Piece, Pieces};

type Files = BTreeMap<String, Arc<StoredFile>>;

/// The folders of a backup.
#[derive(Debug)]
pub(super) struct StoredFolders {
    files: Arc<Files>,
}

/// One of them.
#[derive(Debug)]
struct StoredFolder {
    files: Arc<Files>,
    /// The beginning of the paths of its files: nothing, or a name and a `/`.
    prefix: String,
}

#[derive(Debug)]
struct StoredFile {
    path: String,
    pieces: Vec<Piece>,
    from: Pieces,
    /// The piece that was read last, by its number.
    last: Mutex<Option<(usize, Arc<Vec<u8>>)>>,
}

impl StoredFolders {
    pub(super) fn of(list: &List, pieces: &Pieces) -> StoredFolders {
        let files = list.files.iter().map(|listed| {
            let file = StoredFile {
                path: listed.path.clone(),
                pieces: listed.pieces.clone(),
                from: pieces.clone(),
                last: Mutex::default(),
            };
            (listed.path.clone(), Arc::new(file))
        });
        StoredFolders { files: Arc::new(files.collect()) }
    }

    fn prefix(path: &str) -> String {
        if path.is_empty() { String::new() } else { format!("{path}/") }
    }

    /// The paths of all files in a folder, from there on.
    fn inside<'f>(&'f self, prefix: &'f str) -> impl Iterator<Item = &'f str> {
        self.files.keys().filter_map(move |path| path.strip_prefix(prefix))
    }
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a backup is read alone")
}

fn absent(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path} is not in the backup"))
}

impl Folders for StoredFolders {
    fn open(&self, _path: &str) -> io::Result<Arc<dyn Disk>> {
        Err(refused())
    }

    fn open_read_only(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        match self.is_there(path)? {
            true => {
                let (files, prefix) = (Arc::clone(&self.files), Self::prefix(path));
                Ok(Arc::new(StoredFolder { files, prefix }))
            }
            false => Err(absent(path)),
        }
    }

    fn open_unlocked(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        self.open_read_only(path)
    }

    fn make(&self, _path: &str) -> io::Result<()> {
        Err(refused())
    }

    fn is_there(&self, path: &str) -> io::Result<bool> {
        Ok(path.is_empty() || self.inside(&Self::prefix(path)).next().is_some())
    }

    fn has_file(&self, path: &str, file: &str) -> io::Result<bool> {
        Ok(self.files.contains_key(&(Self::prefix(path) + file)))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let prefix = Self::prefix(path);
        let names = self.inside(&prefix).filter_map(|path| Some(path.split_once('/')?.0));
        let names: BTreeSet<&str> = names.collect();
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    fn remove(&self, _path: &str) -> io::Result<()> {
        Err(refused())
    }

    fn written(&self, _path: &str, _file: &str) -> Option<SystemTime> {
        None
    }
}

impl StoredFolder {
    fn file(&self, name: &str) -> io::Result<Arc<StoredFile>> {
        let path = format!("{}{name}", self.prefix);
        self.files.get(&path).cloned().ok_or_else(|| absent(&path))
    }
}

impl Disk for StoredFolder {
    fn create(&self, _name: &str) -> io::Result<Arc<dyn File>> {
        Err(refused())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(name)?)
    }

    fn cached(&self, name: &str, presence: Presence) -> io::Result<Arc<dyn CachedFile>> {
        match presence {
            Presence::There => Ok(self.file(name)?),
            Presence::New => Err(refused()),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = self.files.keys().filter_map(|path| path.strip_prefix(&self.prefix));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(refused())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(refused())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn read_many(&self, reads: &mut [Read<'_>]) {
        for read in reads {
            read.result = read.file.read_at(read.offset, read.into);
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn place(&self) -> String {
        format!("a backup in {}", self.prefix)
    }
}

impl StoredFile {
    fn len(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }

    /// The bytes of a piece.
    fn piece(&self, number: usize) -> io::Result<Arc<Vec<u8>>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, bytes)) if *known == number => Ok(Arc::clone(bytes)),
            _ => {
                let bytes = self.from.get(self.pieces[number], &self.path);
                let bytes = Arc::new(bytes.map_err(io::Error::other)?);
                *last = Some((number, Arc::clone(&bytes)));
                Ok(bytes)
            }
        }
    }

    /// Fills `into`, whole.
    fn fill(&self, mut offset: u64, mut into: &mut [u8]) -> io::Result<()> {
        for (number, piece) in self.pieces.iter().enumerate() {
            if into.is_empty() {
                break;
            }
            if offset >= piece.bytes {
                offset -= piece.bytes;
                continue;
            }
            let bytes = self.piece(number)?;
            let bytes = &bytes[offset as usize..];
            let (here, behind) = into.split_at_mut(bytes.len().min(into.len()));
            here.copy_from_slice(&bytes[..here.len()]);
            (into, offset) = (behind, 0);
        }
        match into.is_empty() {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl File for StoredFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len())
    }

    fn read_at(&self, offset: u64, into: &mut Blocks) -> io::Result<()> {
        self.fill(offset, into.bytes_mut())
    }

    fn write_at(&self, _offset: u64, _from: &Blocks) -> io::Result<()> {
        Err(refused())
    }

    fn cut(&self, _bytes: u64) -> io::Result<()> {
        Err(refused())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl CachedFile for StoredFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len())
    }

    fn reserve(&self, _bytes: u64) -> io::Result<()> {
        Err(refused())
    }

    fn lengthen(&self, _bytes: u64) -> io::Result<()> {
        Err(refused())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.fill(offset, into)
    }

    fn write_at(&self, _offset: u64, _from: &[u8]) -> io::Result<()> {
        Err(refused())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn map(&self, _bytes: usize) -> io::Result<Box<dyn Mapped>> {
        Err(refused())
    }
}

//! The files of a folder that there were at one moment, held open.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{
    BLOCK_BYTES, BegunRead, Blocks, CachedFile, Disk, File, OwnedRead, Presence, Read, Reading,
    ReadsBy, Work,
};

/// Most bytes of a file that is read into memory: it may be written in place, as one that says by turns which of
/// others is the newest.
const COPIED_BYTES: u64 = 2 * BLOCK_BYTES as u64;

/// A folder as it was at one moment, to be read while another process goes on writing there: its names are those of
/// that moment, and a file that is removed meanwhile can be read on. A short file has the bytes of that moment; a
/// longer one has what is written to it in place. As long as this lives, the folder [is being
/// read](Disk::is_being_read): its writer knows by that what it may not write in place.
#[derive(Debug)]
pub struct HeldFiles {
    disk: Arc<dyn Disk>,
    files: BTreeMap<String, Arc<dyn File>>,
    _reading: Option<Reading>,
}

impl HeldFiles {
    /// Opens all files of a folder. Where names change meanwhile, it begins again.
    ///
    /// # Errors
    /// What the disk answers, but for a file that is gone.
    pub fn of(disk: Arc<dyn Disk>) -> io::Result<HeldFiles> {
        let reading = disk.begin_reading()?;
        loop {
            let names = disk.list()?;
            let opened = names.iter().map(|name| Ok((name.clone(), held(&*disk, name)?)));
            let files = match opened.collect::<io::Result<BTreeMap<_, _>>>() {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
                files => files?,
            };
            if disk.list()? == names {
                return Ok(HeldFiles { disk, files, _reading: reading });
            }
        }
    }

    /// Whether there was such a file.
    pub fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    fn refused(&self, what: &str, name: &str) -> io::Error {
        let place = self.disk.place();
        let why = format!("{what} {name}: folder {place} is open to be read only");
        io::Error::new(io::ErrorKind::ReadOnlyFilesystem, why)
    }
}

/// A file, or its bytes where it is short.
fn held(disk: &dyn Disk, name: &str) -> io::Result<Arc<dyn File>> {
    let file = disk.open(name)?;
    let bytes = file.bytes()?;
    if bytes > COPIED_BYTES || !bytes.is_multiple_of(BLOCK_BYTES as u64) {
        return Ok(file);
    }
    let mut blocks = Blocks::new(bytes as usize);
    match file.read_at(0, &mut blocks) {
        Ok(()) => Ok(Arc::new(Copied(blocks))),
        // What cannot be read says so when it is asked for.
        Err(_) => Ok(file),
    }
}

impl Disk for HeldFiles {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Err(self.refused("make", name))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("{name} is not there"));
        self.files.get(name).cloned().ok_or_else(missing)
    }

    fn cached(&self, name: &str, _presence: Presence) -> io::Result<Arc<dyn CachedFile>> {
        Err(self.refused("open through the page cache", name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.keys().cloned().collect())
    }

    fn rename(&self, from: &str, _to: &str) -> io::Result<()> {
        Err(self.refused("rename", from))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Err(self.refused("remove", name))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn read_many(&self, reads: &mut [Read<'_>]) {
        self.disk.read_many(reads);
    }

    fn begin_reads(&self, reads: Vec<OwnedRead>) -> Vec<BegunRead> {
        self.disk.begin_reads(reads)
    }

    fn reads_by(&self) -> ReadsBy {
        self.disk.reads_by()
    }

    fn ring_reads(&self) -> u64 {
        self.disk.ring_reads()
    }

    fn spawn(&self, works: Vec<Work>) {
        self.disk.spawn(works);
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn place(&self) -> String {
        self.disk.place()
    }

    fn path(&self) -> io::Result<Option<PathBuf>> {
        self.disk.path()
    }
}

/// The bytes that a file had.
#[derive(Debug)]
struct Copied(Blocks);

impl File for Copied {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.bytes().len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut Blocks) -> io::Result<()> {
        let begin = usize::try_from(offset).map_err(io::Error::other)?;
        let wanted = into.bytes_mut();
        match self.0.bytes().get(begin..begin.saturating_add(wanted.len())) {
            Some(bytes) => {
                wanted.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn write_at(&self, _offset: u64, _from: &Blocks) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn cut(&self, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

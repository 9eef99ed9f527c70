//! A folder of files in memory that fails and crashes as told.
//!
//! *Assumptions about the media*, which the engines are written against and tested with:
//!
//! - A write lasts when a [`File::sync`] that began after it has succeeded. Until then a crash may
//!   keep it whole, lose it, or tear it: each sector of [`SECTOR_BYTES`] is written whole or not at
//!   all, and which ones are is unknown. Unsynced writes reach the media in any order.
//! - A file that a lost write would have made longer is as long as before, or has the new length
//!   and zeros there.
//! - A file that was cut off is so, or as it was, until it is synced.
//! - A name that was created, renamed or removed lasts when a later [`Disk::sync`] has succeeded.
//!   Until then a crash may keep or lose each such change, each on its own; one change is never
//!   done by half. Syncing a file does not make its name last, and syncing names makes no bytes
//!   last.
//! - The same holds in each folder of the disk ([`Folders`]), whose own name is in the folder around it:
//!   where it is lost, so is all that lies in it.
//! - After a sync that failed, the writes that it was to make last may be lost, and no later sync
//!   brings them back, though it succeeds: a system marks what it failed to write as clean.
//!   Only writing the bytes again and syncing does.
//! - Synced bytes are not lost, and other bytes are not touched. That is what the simulation
//!   assumes; engines notice it by checksums where it does not hold (see [`ReadFault::Flip`]).
//!
//! Persistent memory ([`SimDisk::with_dax`]) differs in what is stored to mapped bytes: each cache line
//! of 64 bytes gets there by itself, any words of 8 bytes of it, in any order with others, until the
//! line was written back ([`Mapped::persist`]).
//!
//! *Not modelled*: bytes of other files showing up in new ones, and media that lie about syncing.
//!
//! Its clock stands still, but when a test lets time pass ([`SimDisk::advance`]).
//!
//! *Thread safety*: one lock around everything. What happens is a function of the order of calls,
//! the faults and the seed, so a test with one thread repeats exactly.

mod clock;
mod crash;
mod faults;
mod folders;
mod state;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use crash::CrashImages;
pub use faults::{Faults, ReadFault, SyncFault, WriteFault};
pub use state::SECTOR_BYTES;

use crate::{
    BLOCK_BYTES, Blocks, CachedFile, Clock, Disk, File, Folders, Mapped, Presence, Read, Reading,
    name,
};
use clock::SimClock;
use state::{FileId, Name, NameChange, ROOT, State, Watch};

/// A folder of files in memory, with folders in it ([`SimDisk::folders`]); clones are the same folder. A crash is one
/// moment of all of them, and so are faults and the count of changes.
#[derive(Debug, Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    clock: Arc<SimClock>,
    folder: FileId,
    is_read_only: bool,
    /// How many readers it has.
    readers: Arc<AtomicUsize>,
}

/// Of one of them.
struct SimReading(Arc<AtomicUsize>);

impl Drop for SimReading {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Default for SimDisk {
    fn default() -> SimDisk {
        SimDisk::with(State::default())
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    id: FileId,
    name: String,
}

impl SimDisk {
    /// An empty folder without faults.
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    /// An empty folder in persistent memory.
    pub fn with_dax() -> SimDisk {
        SimDisk::with(State::empty(true))
    }

    /// Sets what is to fail from now on, in place of what was to fail before; numbers count from
    /// this call.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().set_faults(faults);
    }

    /// Changes so far: creates, renames, removes, writes and syncs of both kinds, failed ones too.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Reads, writes, syncs, changes of names and looks at them since the faults were set.
    pub fn calls(&self) -> [u64; 5] {
        let state = self.lock();
        [state.reads, state.writes, state.syncs, state.renames, state.looks]
    }

    /// Cuts the power after `count` more changes (as [`SimDisk::operations`] counts them): every
    /// call after the last of them fails and does nothing. Follow with [`SimDisk::crash`].
    pub fn stop_after(&self, count: u64) {
        let mut state = self.lock();
        state.stop_at = Some(state.operations + count);
    }

    /// Lets time pass. A thread that slept until now is awake afterwards.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Waits until so many threads sleep by the clock of the disk, with nothing to do.
    pub fn wait_for_sleepers(&self, count: usize) {
        self.clock.wait_for_sleepers(count);
    }

    /// An image that a crash at this moment could leave, one of many, picked by `seed`. The image
    /// is a disk of its own, with everything on it synced and no faults; this one stays as it is.
    pub fn crash(&self, seed: u64) -> SimDisk {
        SimDisk::with(crash::random_image(&self.lock(), seed))
    }

    /// The images that a crash at this moment could leave: every combination of unsynced changes
    /// kept or lost (writes also lost but longer, and torn in the middle, either half), in the
    /// order they were made; or where these are more than `limit`, all lost, all kept, and `limit -
    /// 2` random ones.
    pub fn crash_images(&self, limit: usize) -> CrashImages {
        CrashImages::new(self.lock().clone(), limit)
    }

    /// From now on takes an image before one of `every` changes, picked by `seed`; each eighth with all
    /// unsynced changes lost, and as many with all of them kept. [`SimDisk::taken`] gives them.
    ///
    /// # Panics
    /// Where `every` is 0.
    pub fn take_images(&self, seed: u64, every: u64) {
        assert!(every > 0, "one of some changes");
        self.lock().watch = Some(Watch { seed, every, taken: Vec::new() });
    }

    /// The images that were [taken](SimDisk::take_images) since the last call, in the order of the changes.
    pub fn taken(&self) -> Vec<SimDisk> {
        let taken = self.lock().watch.as_mut().map(|watch| std::mem::take(&mut watch.taken));
        taken.unwrap_or_default().into_iter().map(SimDisk::with).collect()
    }

    /// Itself, with the folders in it.
    pub fn folders(&self) -> Arc<dyn Folders> {
        Arc::new(folders::SimFolders(self.clone()))
    }

    /// A folder in it that is there.
    ///
    /// # Errors
    /// `NotFound` without such a folder.
    pub fn folder(&self, path: &str) -> io::Result<SimDisk> {
        let folder = self.lock().find_folder(path)?;
        Ok(SimDisk { folder, ..self.clone() })
    }

    /// Bytes of all files, those without a name but with an open handle not counted.
    pub fn file_bytes(&self) -> u64 {
        self.lock().named_bytes()
    }

    /// Flips the bits of `mask` in the byte at `offset` of a file, synced or not: damage to notice.
    ///
    /// # Errors
    /// `NotFound` without such a file, `UnexpectedEof` beyond its end.
    pub fn damage(&self, name: &str, offset: u64, mask: u8) -> io::Result<()> {
        let mut state = self.lock();
        let id = state.find(self.folder, name)?;
        state.damage(id, offset, mask)
    }

    /// Cuts a file to `bytes`, lastingly: damage to notice.
    ///
    /// # Errors
    /// `NotFound` without such a file.
    pub fn truncate(&self, name: &str, bytes: u64) -> io::Result<()> {
        let mut state = self.lock();
        let id = state.find(self.folder, name)?;
        state.truncate(id, bytes);
        Ok(())
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// `NotFound` without such a file.
    pub fn contents(&self, name: &str) -> io::Result<Vec<u8>> {
        let state = self.lock();
        let id = state.find(self.folder, name)?;
        Ok(state.bytes_of(id).to_vec())
    }

    /// Replaces or makes a file, lastingly, with bytes of any length.
    ///
    /// # Errors
    /// `InvalidInput` for a name that no file may have.
    pub fn plant(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        name::check(name)?;
        self.lock().plant(self.folder, name, Arc::new(bytes.to_vec()));
        Ok(())
    }

    fn with(state: State) -> SimDisk {
        let state = Arc::new(Mutex::new(state));
        let (clock, readers) = (Arc::default(), Arc::default());
        SimDisk { state, clock, folder: ROOT, is_read_only: false, readers }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, id: FileId, name: &str) -> Arc<dyn File> {
        Arc::new(SimFile { disk: self.clone(), id, name: name.to_owned() })
    }
}

impl Iterator for CrashImages {
    type Item = SimDisk;

    fn next(&mut self) -> Option<SimDisk> {
        self.next_state().map(SimDisk::with)
    }
}

impl Disk for SimDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        name::check(name)?;
        let mut state = self.lock();
        state.begin_rename()?;
        if state.names.contains_key(&Name::new(self.folder, name)) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{name} is there already"),
            ));
        }
        let id = state.new_file();
        state.change_names(NameChange::Put { name: Name::new(self.folder, name), id });
        drop(state);
        Ok(self.handle(id, name))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        name::check(name)?;
        let mut state = self.lock();
        state.look()?;
        let id = state.find(self.folder, name)?;
        drop(state);
        Ok(self.handle(id, name))
    }

    fn cached(&self, name: &str, presence: Presence) -> io::Result<Arc<dyn CachedFile>> {
        match presence {
            Presence::New => self.create(name)?,
            Presence::There => self.open(name)?,
        };
        let id = self.lock().find(self.folder, name)?;
        Ok(Arc::new(SimFile { disk: self.clone(), id, name: name.to_owned() }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.lock();
        state.look()?;
        Ok(state.list(self.folder, false))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        name::check(from)?;
        name::check(to)?;
        let mut state = self.lock();
        state.begin_rename()?;
        let id = state.find(self.folder, from)?;
        if from != to {
            let (from, to) = (Name::new(self.folder, from), Name::new(self.folder, to));
            state.change_names(NameChange::Rename { from, to, id });
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        name::check(name)?;
        let mut state = self.lock();
        state.begin_rename()?;
        let id = state.find(self.folder, name)?;
        state.change_names(NameChange::Remove { name: Name::new(self.folder, name), id });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.lock().sync_names(self.folder)
    }

    fn read_many(&self, reads: &mut [Read<'_>]) {
        for read in reads {
            read.result = read.file.read_at(read.offset, read.into);
        }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn begin_reading(&self) -> io::Result<Option<Reading>> {
        self.lock().check_power()?;
        self.readers.fetch_add(1, Ordering::SeqCst);
        Ok(Some(Reading::new(SimReading(Arc::clone(&self.readers)))))
    }

    fn is_being_read(&self) -> bool {
        self.readers.load(Ordering::SeqCst) > 0
    }

    fn place(&self) -> String {
        "a simulated disk".to_owned()
    }
}

impl File for SimFile {
    fn bytes(&self) -> io::Result<u64> {
        let state = self.disk.lock();
        state.check_power()?;
        Ok(state.bytes_of(self.id).len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut Blocks) -> io::Result<()> {
        self.check_aligned(offset)?;
        self.disk.lock().read(self.id, offset, into.bytes_mut())
    }

    fn write_at(&self, offset: u64, from: &Blocks) -> io::Result<()> {
        self.check_aligned(offset)?;
        self.disk.lock().write(self.id, offset, from.bytes())
    }

    fn write_some_at(&self, offset: u64, from: &Blocks, blocks: Range<usize>) -> io::Result<()> {
        let range = blocks.start * BLOCK_BYTES..blocks.end * BLOCK_BYTES;
        self.check_aligned(offset)?;
        self.disk.lock().write(self.id, offset, &from.bytes()[range])
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.check_aligned(bytes)?;
        self.disk.lock().cut(self.id, bytes)
    }

    /// Writes zeros, of which a crash leaves any.
    fn discard(&self, range: Range<u64>) -> io::Result<()> {
        self.check_aligned(range.start)?;
        self.check_aligned(range.end)?;
        let mut state = self.disk.lock();
        let end = range.end.min(state.bytes_of(self.id).len() as u64);
        let zeros = vec![0; end.saturating_sub(range.start) as usize];
        state.write(self.id, range.start, &zeros)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.lock().sync_file(self.id)
    }
}

impl CachedFile for SimFile {
    fn bytes(&self) -> io::Result<u64> {
        File::bytes(self)
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.lengthen(bytes)
    }

    fn lengthen(&self, bytes: u64) -> io::Result<()> {
        let have = File::bytes(self)?;
        if have >= bytes {
            return Ok(());
        }
        let zeros = vec![0; (bytes - have) as usize];
        self.disk.lock().write(self.id, have, &zeros)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.lock().read(self.id, offset, into)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.disk.lock().write(self.id, offset, from)
    }

    fn sync(&self) -> io::Result<()> {
        File::sync(self)
    }

    fn map(&self, bytes: usize) -> io::Result<Box<dyn Mapped>> {
        let mapping = SimMapping { disk: self.disk.clone(), id: self.id, bytes };
        let have = File::bytes(self)?;
        if have < bytes as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is shorter"));
        }
        Ok(Box::new(mapping))
    }
}

/// Stores go into the file as unsynced writes do: a system writes the pages of a mapping when it
/// likes. Without power they go nowhere. They meet no faults: the room was reserved.
#[derive(Debug)]
struct SimMapping {
    disk: SimDisk,
    id: FileId,
    bytes: usize,
}

impl Mapped for SimMapping {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.bytes, "inside the mapping");
        self.disk.lock().store(self.id, offset, bytes);
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        assert!(offset + into.len() <= self.bytes, "inside the mapping");
        into.copy_from_slice(&self.disk.lock().bytes_of(self.id)[offset..offset + into.len()]);
    }

    fn is_dax(&self) -> bool {
        self.disk.lock().is_dax
    }

    fn persist(&self, offset: usize, bytes: usize) -> io::Result<()> {
        assert!(offset + bytes <= self.bytes, "inside the mapping");
        self.disk.lock().persist(self.id, offset, bytes)
    }
}

impl SimFile {
    /// Refuses calls that direct I/O on a real disk would refuse.
    fn check_aligned(&self, offset: u64) -> io::Result<()> {
        if offset.is_multiple_of(BLOCK_BYTES as u64) {
            return Ok(());
        }
        let why = format!("{}: offset {offset} is not at a block border", self.name);
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }
}

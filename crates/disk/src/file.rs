//! A folder of real files.
//!
//! *Thread safety*: every method may be called by any number of threads at once; reads and writes
//! are positional. The folder is locked against other processes, and against a second opening by
//! this one, until the disk and all its files are dropped; disks that only read share the lock.

use std::any::Any;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::pool::{Job, Pool};
use sapwood_mem::shared::{Dax, SharedMapping};
use sapwood_mem::view::FileView;

use crate::place::Place;
use crate::{
    BLOCK_BYTES, BegunRead, Blocks, CachedFile, Disk, DiskReads, File, Mapped, OwnedRead, Presence,
    Read, Reading, ReadsBy, View, Work, is_full, name, ring,
};

/// Holds the lock. It is hidden, so it is neither listed nor a name that [`Disk::create`] takes.
const LOCK_NAME: &str = ".lock";
/// Locked by readers beside the writer as long as they open a folder. It is made by the writer, and hidden, too.
const READERS_NAME: &str = ".readers";
/// Shows whether the filesystem takes direct I/O, where there is no file that could.
const PROBE_NAME: &str = ".probe";
/// Where it is 1, mapped files are taken to lie in persistent memory: for tests, and for memory that is
/// persistent though the system does not know.
const FORCE_DAX: &str = "SAPWOOD_FORCE_DAX";

/// A folder of real files, read and written past the page cache where the filesystem allows.
#[derive(Debug)]
pub struct FileDisk {
    folder: Arc<Folder>,
    pool: Pool,
    /// Chosen when it is first asked for.
    reads_by: OnceLock<ReadsBy>,
    /// Reads that rings were given.
    ring_reads: AtomicU64,
}

#[derive(Debug)]
struct Folder {
    place: Arc<Place>,
    /// Held as long as anything of the disk is open.
    _lock: Option<Lock>,
    /// The file that readers lock. None of a folder that is read.
    readers: Option<fs::File>,
    cache: PageCache,
    access: Access,
    dax: Dax,
}

/// How blocks are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageCache {
    /// Past it.
    Bypassed,
    /// Through it: the filesystem takes no direct I/O.
    Needed,
    /// Through it: what another process has read or written is there.
    Shared,
}

impl PageCache {
    fn bypassed_if(direct: bool) -> PageCache {
        if direct { PageCache::Bypassed } else { PageCache::Needed }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadWrite,
    ReadOnly,
}

/// A locked file. The lock is the open file's, which a process that is being started shares until it
/// runs its program: closing one's own descriptor would leave the folder locked so long.
#[derive(Debug)]
struct Lock(fs::File);

impl Drop for Lock {
    fn drop(&mut self) {
        // A file that cannot be unlocked is closed next, which does the same for all but such copies.
        let _ = self.0.unlock();
    }
}

#[derive(Debug)]
struct RealFile {
    file: Arc<fs::File>,
    folder: Arc<Folder>,
}

impl FileDisk {
    /// Opens the folder at `path`, made if it is missing, and locks it.
    ///
    /// # Errors
    /// `WouldBlock`, naming the folder, when it is open already, here or in another process; else
    /// what the system answers.
    pub fn open(path: impl AsRef<Path>) -> io::Result<FileDisk> {
        let path = path.as_ref();
        let named = |cause: io::Error| about(&format!("open folder {}", path.display()), &cause);
        fs::create_dir_all(path).map_err(named)?;
        let place = Place::open(path).map_err(named)?;
        let path = place.path();
        let lock = Some(lock(path)?);
        let readers = Some(make_shared(&path.join(READERS_NAME)).map_err(named)?);
        let cache = PageCache::bypassed_if(probe_direct(path).map_err(named)?);
        // The folder's own name may be new.
        if let Some(parent) = path.parent() {
            fs::File::open(parent).and_then(|parent| parent.sync_all()).map_err(named)?;
        }
        // The lock is that of this folder.
        place.expect_there()?;
        let (place, access) = (Arc::new(place), Access::ReadWrite);
        let folder = Folder { place, _lock: lock, readers, cache, access, dax: dax() };
        Ok(FileDisk::of(folder))
    }

    /// Opens the folder at `path`, which must be there, to read it: nothing in it is made, written
    /// or removed, so that leave to read is enough. It is locked against [`FileDisk::open`], and
    /// shared with others that only read.
    ///
    /// A folder without a lock file was never opened to be written, or is a copy. It is not locked.
    ///
    /// # Errors
    /// `WouldBlock`, naming the folder, when it is open to be written, here or in another process;
    /// else what the system answers.
    pub fn open_read_only(path: impl AsRef<Path>) -> io::Result<FileDisk> {
        let mut folder = Folder::to_read(path.as_ref(), lock_shared)?;
        let direct = folder.reads_directly();
        let path = folder.place.path().display();
        let direct = direct.map_err(|cause| about(&format!("open folder {path}"), &cause))?;
        folder.cache = PageCache::bypassed_if(direct);
        Ok(FileDisk::of(folder))
    }

    /// Opens the folder at `path` to read it while another process may write there: it is not locked, and
    /// files may go. For formats that say by themselves what is whole.
    ///
    /// Reads go through the page cache, so that a process which reads a little finds there what others have read.
    /// The system takes what a writer writes past the cache out of it.
    ///
    /// # Errors
    /// What the system answers.
    pub fn open_unlocked(path: impl AsRef<Path>) -> io::Result<FileDisk> {
        let folder = Folder::to_read(path.as_ref(), |_| Ok(None))?;
        Ok(FileDisk::of(folder))
    }

    fn of(folder: Folder) -> FileDisk {
        let (reads_by, ring_reads) = (OnceLock::new(), AtomicU64::new(0));
        FileDisk { folder: Arc::new(folder), pool: Pool::default(), reads_by, ring_reads }
    }

    /// Another way of reads that are in flight together; by default [`DiskReads::Auto`], which is tried
    /// as soon as [`Disk::reads_by`] is asked, or reads are begun.
    ///
    /// # Errors
    /// Where io_uring is demanded, what the system answers.
    pub fn with_reads(self, reads: DiskReads) -> io::Result<FileDisk> {
        Ok(FileDisk { reads_by: OnceLock::from(reads.choose()?), ..self })
    }

    /// Whether the calling thread reads by a ring of its own. A thread that gets none reads by others.
    fn has_ring(&self) -> bool {
        self.reads_by() == ReadsBy::IoUring && ring::prepare().is_ok()
    }

    /// Begins reads by the calling thread's ring.
    fn begin_by_ring(&self, jobs: Vec<Job>) -> Vec<ring::RingRead> {
        // Relaxed: a figure.
        self.ring_reads.fetch_add(jobs.len() as u64, Ordering::Relaxed);
        ring::begin(jobs)
    }

    /// The folder, with the path that led to it.
    pub(crate) fn at(&self) -> &Arc<Place> {
        &self.folder.place
    }

    /// Whether reads and writes go past the page cache.
    pub fn direct(&self) -> bool {
        self.folder.cache == PageCache::Bypassed
    }

    fn open_with(&self, name: &str, options: &mut fs::OpenOptions) -> io::Result<Arc<dyn File>> {
        name::check(name)?;
        if self.direct() {
            options.custom_flags(direct_flag());
        }
        let is_written = self.folder.access == Access::ReadWrite;
        let path = self.folder.place.path_of(name)?;
        let file = Arc::new(options.read(true).write(is_written).open(path)?);
        Ok(Arc::new(RealFile { file, folder: Arc::clone(&self.folder) }))
    }
}

fn dax() -> Dax {
    match std::env::var_os(FORCE_DAX).is_some_and(|value| value == "1") {
        true => Dax::Assumed,
        false => Dax::Detected,
    }
}

fn lock(folder: &Path) -> io::Result<Lock> {
    let path = folder.join(LOCK_NAME);
    let what = format!("lock {}", path.display());
    let file = make_shared(&path).map_err(|cause| about(&what, &cause))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(fs::TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            format!(
                "folder {} is in use, by another process or opened twice by this one: close it there, or give another folder",
                folder.display()
            ),
        )),
        Err(fs::TryLockError::Error(cause)) => Err(about(&what, &cause)),
    }
}

/// Opens a file that locks are taken on, made if it is missing.
fn make_shared(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true).open(path)
}

/// `None` where no lock file is.
fn lock_shared(folder: &Path) -> io::Result<Option<Lock>> {
    let path = folder.join(LOCK_NAME);
    let what = format!("lock {}", path.display());
    let file = match fs::File::open(&path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|cause| about(&what, &cause))?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(Lock(file))),
        Err(fs::TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            format!(
                "folder {} is open to be written, in another process or in this one: close it there, or read it later",
                folder.display()
            ),
        )),
        Err(fs::TryLockError::Error(cause)) => Err(about(&what, &cause)),
    }
}

impl Folder {
    /// A folder that is there.
    fn to_read(
        path: &Path,
        lock: impl FnOnce(&Path) -> io::Result<Option<Lock>>,
    ) -> io::Result<Folder> {
        let named = |cause: io::Error| about(&format!("open folder {}", path.display()), &cause);
        let place = Arc::new(Place::open(path).map_err(named)?);
        let _lock = lock(place.path())?;
        let (cache, access) = (PageCache::Shared, Access::ReadOnly);
        Ok(Folder { place, _lock, readers: None, cache, access, dax: dax() })
    }

    /// Refuses to change a folder that is open to be read.
    fn expect_writable(&self, what: &str, name: &str) -> io::Result<()> {
        match self.access {
            Access::ReadWrite => Ok(()),
            Access::ReadOnly => Err(io::Error::new(
                io::ErrorKind::ReadOnlyFilesystem,
                format!(
                    "{what} {name}: folder {} is open to be read only",
                    self.place.path().display()
                ),
            )),
        }
    }

    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.place.expect_there()?)? {
            let entry = entry?;
            let is_ours = |name: &String| name::check(name).is_ok();
            if entry.file_type()?.is_file()
                && let Some(name) = entry.file_name().into_string().ok().filter(is_ours)
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Whether a file that is there can be read directly; false where none has a block.
    fn reads_directly(&self) -> io::Result<bool> {
        if direct_flag() == 0 {
            return Ok(false);
        }
        let mut block = Blocks::new(BLOCK_BYTES);
        for name in self.list()? {
            let mut options = fs::OpenOptions::new();
            let opened =
                options.read(true).custom_flags(direct_flag()).open(self.place.path_of(&name)?);
            match opened.and_then(|file| file.read_exact_at(block.bytes_mut(), 0)) {
                Ok(()) => return Ok(true),
                Err(cause) if cause.kind() == io::ErrorKind::InvalidInput => return Ok(false),
                // Too short to tell. What cannot be read says so when it is asked for.
                Err(_) => {}
            }
        }
        Ok(false)
    }
}

fn about(what: &str, cause: &io::Error) -> io::Error {
    io::Error::new(cause.kind(), format!("{what}: {cause}"))
}

/// Whether the filesystem takes direct I/O. Filesystems that cannot do it refuse the flag or the
/// first transfer, and some only the size, so all of it is tried: by a read, where there is a file
/// to read, since a full disk must open.
fn probe_direct(folder: &Path) -> io::Result<bool> {
    if direct_flag() == 0 {
        return Ok(false);
    }
    let tried = match probe_by_read(folder)? {
        Some(tried) => {
            // A probe that was cut off by a crash, in a folder that was empty then. It holds
            // nothing: where it cannot go now, it goes another time.
            let _left = fs::remove_file(folder.join(PROBE_NAME));
            tried
        }
        None => probe_by_write(folder),
    };
    match tried {
        Ok(()) => Ok(true),
        // Nothing lies here, and nothing more fits: the page cache serves in any case.
        Err(cause) if cause.kind() == NOT_DIRECT || is_full(cause.kind()) => Ok(false),
        Err(cause) => Err(cause),
    }
}

const NOT_DIRECT: io::ErrorKind = io::ErrorKind::InvalidInput;

/// Reads a block of whatever file has one; `None` without such a file.
fn probe_by_read(folder: &Path) -> io::Result<Option<io::Result<()>>> {
    let mut block = Blocks::new(BLOCK_BYTES);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_ours = entry.file_name().to_str().is_some_and(|name| name::check(name).is_ok());
        let is_long = || Ok::<bool, io::Error>(entry.metadata()?.len() >= BLOCK_BYTES as u64);
        if !is_ours || !entry.file_type()?.is_file() || !is_long()? {
            continue;
        }
        let opened =
            fs::OpenOptions::new().read(true).custom_flags(direct_flag()).open(entry.path());
        match opened.and_then(|file| file.read_exact_at(block.bytes_mut(), 0)) {
            // Of another user: it says nothing.
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {}
            tried => return Ok(Some(tried)),
        }
    }
    Ok(None)
}

fn probe_by_write(folder: &Path) -> io::Result<()> {
    let path = folder.join(PROBE_NAME);
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(true).read(true).write(true).custom_flags(direct_flag());
    let mut block = Blocks::new(BLOCK_BYTES);
    let tried = options.open(&path).and_then(|file| {
        file.write_all_at(block.bytes(), 0)?;
        file.read_exact_at(block.bytes_mut(), 0)
    });
    match fs::remove_file(&path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => tried,
    }
}

/// Zero where the system has no such flag.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn direct_flag() -> i32 {
    rustix::fs::OFlags::DIRECT.bits().cast_signed()
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn direct_flag() -> i32 {
    0
}

impl Disk for FileDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.folder.expect_writable("make", name)?;
        self.open_with(name, fs::OpenOptions::new().create_new(true))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.open_with(name, &mut fs::OpenOptions::new())
    }

    fn view(&self, name: &str) -> io::Result<Arc<dyn View>> {
        name::check(name)?;
        let file = fs::File::open(self.folder.place.path_of(name)?)?;
        match usize::try_from(file.metadata()?.len()).map_err(io::Error::other)? {
            0 => Ok(Arc::new(Vec::new())),
            bytes => Ok(Arc::new(FileView::map(file.as_fd(), bytes)?)),
        }
    }

    fn cached(&self, name: &str, presence: Presence) -> io::Result<Arc<dyn CachedFile>> {
        name::check(name)?;
        let mut options = fs::OpenOptions::new();
        if presence == Presence::New {
            self.folder.expect_writable("make", name)?;
            options.create_new(true);
        }
        options.read(true).write(self.folder.access == Access::ReadWrite);
        let file = options.open(self.folder.place.path_of(name)?)?;
        Ok(Arc::new(RealCachedFile { file, folder: Arc::clone(&self.folder) }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.expect_writable("rename", from)?;
        name::check(from)?;
        name::check(to)?;
        fs::rename(self.folder.place.path_of(from)?, self.folder.place.path_of(to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.expect_writable("remove", name)?;
        name::check(name)?;
        fs::remove_file(self.folder.place.path_of(name)?)
    }

    fn sync(&self) -> io::Result<()> {
        self.folder.place.sync()
    }

    fn read_many(&self, reads: &mut [Read<'_>]) {
        if let [read] = reads {
            read.result = read.file.read_at(read.offset, read.into);
            return;
        }
        let mut jobs = Vec::with_capacity(reads.len());
        let mut ours = Vec::with_capacity(reads.len());
        for read in reads {
            let any: &dyn Any = read.file;
            match any.downcast_ref::<RealFile>() {
                Some(file) => {
                    expect_aligned(read.offset);
                    let (file, into) = (Arc::clone(&file.file), std::mem::take(read.into));
                    jobs.push(Job { file, offset: read.offset, into });
                    ours.push(read);
                }
                None => read.result = read.file.read_at(read.offset, read.into),
            }
        }
        let done = self.pool.read(jobs);
        debug_assert_eq!(done.len(), ours.len(), "each read has its answer");
        for (read, (into, result)) in ours.into_iter().zip(done) {
            *read.into = into;
            read.result = result;
        }
    }

    fn begin_reads(&self, reads: Vec<OwnedRead>) -> Vec<BegunRead> {
        // A read of another disk goes its own way, and all with it.
        let jobs = match self.has_ring() {
            true => reads.iter().map(job_of).collect::<Option<Vec<_>>>(),
            false => None,
        };
        match jobs {
            Some(mut jobs) => {
                for (job, read) in jobs.iter_mut().zip(reads) {
                    job.into = read.into;
                }
                self.begin_by_ring(jobs).into_iter().map(BegunRead::by_ring).collect()
            }
            None => {
                let (begun, works) = reads.into_iter().map(OwnedRead::split).unzip();
                self.pool.spawn(works);
                begun
            }
        }
    }

    fn reads_by(&self) -> ReadsBy {
        *self.reads_by.get_or_init(|| DiskReads::Auto.choose().unwrap_or(ReadsBy::Threads))
    }

    fn ring_reads(&self) -> u64 {
        self.ring_reads.load(Ordering::Relaxed)
    }

    fn spawn(&self, works: Vec<Work>) {
        self.pool.spawn(works);
    }

    fn is_read_only(&self) -> bool {
        self.folder.access == Access::ReadOnly
    }

    fn begin_reading(&self) -> io::Result<Option<Reading>> {
        let path = self.folder.place.path_of(READERS_NAME)?;
        let about = |cause: io::Error| about(&format!("lock {}", path.display()), &cause);
        let file = match fs::File::open(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(about)?,
        };
        // It waits for nothing but the question below.
        file.lock_shared().map_err(about)?;
        Ok(Some(Reading::new(Lock(file))))
    }

    fn is_being_read(&self) -> bool {
        let Some(readers) = &self.folder.readers else { return false };
        match readers.try_lock() {
            // A lock that cannot be given back is a file that no reader can lock, and none needs.
            Ok(()) => readers.unlock().is_err(),
            Err(_) => true,
        }
    }

    fn place(&self) -> String {
        let how = match self.folder.cache {
            PageCache::Bypassed | PageCache::Shared => "",
            PageCache::Needed => " (through the page cache)",
        };
        format!("{}{how}", self.folder.place.path().display())
    }

    fn path(&self) -> io::Result<Option<PathBuf>> {
        self.folder.place.expect_there().map(|path| Some(path.to_owned()))
    }
}

/// A read of a file of a folder like this, without its buffer.
fn job_of(read: &OwnedRead) -> Option<Job> {
    let any: &dyn Any = &*read.file;
    let file = any.downcast_ref::<RealFile>()?;
    expect_aligned(read.offset);
    Some(Job { file: Arc::clone(&file.file), offset: read.offset, into: Blocks::default() })
}

/// What callers promise, since direct I/O refuses anything else, and the page cache does not.
fn expect_aligned(offset: u64) {
    debug_assert!(offset.is_multiple_of(BLOCK_BYTES as u64), "{offset} is at no block border");
}

impl File for RealFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, into: &mut Blocks) -> io::Result<()> {
        expect_aligned(offset);
        self.file.read_exact_at(into.bytes_mut(), offset)
    }

    fn write_at(&self, offset: u64, from: &Blocks) -> io::Result<()> {
        expect_aligned(offset);
        self.file.write_all_at(from.bytes(), offset)
    }

    fn write_some_at(&self, offset: u64, from: &Blocks, blocks: Range<usize>) -> io::Result<()> {
        let range = blocks.start * BLOCK_BYTES..blocks.end * BLOCK_BYTES;
        expect_aligned(offset);
        self.file.write_all_at(&from.bytes()[range], offset)
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        expect_aligned(bytes);
        if self.bytes()? > bytes { self.file.set_len(bytes) } else { Ok(()) }
    }

    fn discard(&self, range: Range<u64>) -> io::Result<()> {
        expect_aligned(range.start);
        expect_aligned(range.end);
        discard(&self.file, range)
    }

    fn sync(&self) -> io::Result<()> {
        // Also makes a new length last, which is all of the metadata that reading needs.
        self.file.sync_data()?;
        self.folder.place.expect_not_lost()
    }
}

#[derive(Debug)]
struct RealCachedFile {
    file: fs::File,
    folder: Arc<Folder>,
}

impl CachedFile for RealCachedFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        let have = self.bytes()?;
        if have >= bytes {
            return Ok(());
        }
        match allocate(&self.file, have, bytes - have) {
            Some(done) => done,
            // A filesystem that cannot keep room: zeros do.
            None => {
                let zeros = vec![0; 1 << 16];
                let mut at = have;
                while at < bytes {
                    let some = zeros.len().min((bytes - at) as usize);
                    self.file.write_all_at(&zeros[..some], at)?;
                    at += some as u64;
                }
                Ok(())
            }
        }
    }

    fn lengthen(&self, bytes: u64) -> io::Result<()> {
        if self.bytes()? < bytes { self.file.set_len(bytes) } else { Ok(()) }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    fn is_in_memory(&self, offset: u64) -> bool {
        is_in_memory(&self.file, offset)
    }

    fn read_ahead(&self, offset: u64, bytes: u64) {
        let end = offset + bytes;
        for begin in (offset..end).step_by(READ_AHEAD_BYTES) {
            advise(&self.file, begin, (end - begin).min(READ_AHEAD_BYTES as u64));
        }
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.file.write_all_at(from, offset)
    }

    fn sync(&self) -> io::Result<()> {
        // As of `RealFile`.
        self.file.sync_data()?;
        // A commit in a file that no name leads to any more would be lost.
        self.folder.place.expect_not_lost()
    }

    fn map(&self, bytes: usize) -> io::Result<Box<dyn Mapped>> {
        Ok(Box::new(SharedMapping::map(self.file.as_fd(), bytes, self.folder.dax)?))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

/// Keeps room for a range of a file; `None` where the filesystem or the system cannot.
#[cfg(target_os = "linux")]
fn allocate(file: &fs::File, offset: u64, bytes: u64) -> Option<io::Result<()>> {
    use rustix::io::Errno;
    let flags = rustix::fs::FallocateFlags::empty();
    match rustix::fs::fallocate(file, flags, offset, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => None,
        done => Some(done.map_err(io::Error::from)),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_file: &fs::File, _offset: u64, _bytes: u64) -> Option<io::Result<()>> {
    None
}

/// Gives the room of a range back, where the filesystem and the system can.
#[cfg(target_os = "linux")]
fn discard(file: &fs::File, range: Range<u64>) -> io::Result<()> {
    use rustix::fs::FallocateFlags;
    use rustix::io::Errno;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(file, flags, range.start, range.end - range.start) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        done => done.map_err(io::Error::from),
    }
}

#[cfg(not(target_os = "linux"))]
fn discard(_file: &fs::File, _range: Range<u64>) -> io::Result<()> {
    Ok(())
}

/// Linux reads no more than that for one advice, unless it is set to.
const READ_AHEAD_BYTES: usize = 128 << 10;

#[cfg(target_os = "linux")]
fn is_in_memory(file: &fs::File, offset: u64) -> bool {
    use rustix::io::{Errno, ReadWriteFlags};
    let mut byte = [0];
    let into = &mut [io::IoSliceMut::new(&mut byte)];
    rustix::io::preadv2(file, into, offset, ReadWriteFlags::NOWAIT) != Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_file: &fs::File, _offset: u64) -> bool {
    true
}

#[cfg(target_os = "linux")]
fn advise(file: &fs::File, offset: u64, bytes: u64) {
    let Some(bytes) = std::num::NonZero::new(bytes) else { return };
    let _a_hint = rustix::fs::fadvise(file, offset, Some(bytes), rustix::fs::Advice::WillNeed);
}

#[cfg(not(target_os = "linux"))]
fn advise(_file: &fs::File, _offset: u64, _bytes: u64) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_direct_io_the_page_cache_serves() {
        let parent = tempfile::tempdir().expect("a folder");
        let mut disk = FileDisk::open(parent.path()).expect("opened");
        Arc::get_mut(&mut disk.folder).expect("no file is open").cache = PageCache::Needed;
        assert!(!disk.direct() && disk.place().ends_with("(through the page cache)"));
        let file = disk.create("a").expect("made");
        let mut block = Blocks::new(BLOCK_BYTES);
        block.bytes_mut().fill(7);
        file.write_at(BLOCK_BYTES as u64, &block).expect("written");
        file.sync().expect("synced");
        let mut both = Blocks::new(2 * BLOCK_BYTES);
        file.read_at(0, &mut both).expect("read");
        assert_eq!(both.bytes()[BLOCK_BYTES - 1..=BLOCK_BYTES], [0, 7]);
    }

    #[test]
    fn reading_ahead_changes_nothing() {
        let parent = tempfile::tempdir().expect("a folder");
        let disk = FileDisk::open(parent.path()).expect("opened");
        let file = disk.cached("a", Presence::New).expect("made");
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        file.write_at(0, &bytes).expect("written");
        for (offset, len) in [(0, 1_000_000), (0, 0), (999_999, 1), (5, 300_000), (1 << 40, 5)] {
            file.read_ahead(offset, len);
        }
        let mut read = vec![0; bytes.len()];
        file.read_at(0, &mut read).expect("read");
        assert!(read == bytes);
        // No disk is asked for what lies behind the end.
        assert!(file.is_in_memory(1 << 40));
    }

    /// The flushes are real, whatever the files lie on.
    #[test]
    fn a_log_in_persistent_memory_is_read_as_it_was_appended() {
        use crate::log::{Log, LogOptions, LogStart};
        let parent = tempfile::tempdir().expect("a folder");
        let disk = || {
            let mut disk = FileDisk::open(parent.path()).expect("opened");
            Arc::get_mut(&mut disk.folder).expect("no file is open").dax = Dax::Assumed;
            Arc::new(disk)
        };
        let options = LogOptions { part_bytes_min: 16 << 10, ..LogOptions::default() };
        let log = Log::create(disk(), 7, options.clone(), 0).expect("made");
        assert_eq!(log.is_dax(), cfg!(target_arch = "x86_64"));
        for number in 0..100u64 {
            let lsn = log.append(&[number as u8; 1000][..500 + number as usize]).expect("appended");
            if number % 3 == 0 {
                log.sync(lsn).expect("synced");
                assert!(log.durable() >= lsn);
            }
        }
        drop(log);
        let start = LogStart { lsn: 0, part: 1, durable: 0 };
        let mut seen = 0;
        Log::open(disk(), 7, options, start, &mut |_, record| {
            assert_eq!(record, &[seen as u8; 1000][..500 + seen]);
            seen += 1;
            Ok::<(), io::Error>(())
        })
        .expect("opened");
        assert_eq!(seen, 100);
    }

    /// A process that is being started has a copy of every descriptor of its parent, until it runs
    /// its program.
    #[test]
    fn a_copy_of_the_descriptor_keeps_no_folder_locked() {
        let parent = tempfile::tempdir().expect("a folder");
        for open in [FileDisk::open, FileDisk::open_read_only] {
            let disk = open(parent.path()).expect("no disk is open");
            let lock = disk.folder._lock.as_ref().expect("it is locked");
            let copy = lock.0.try_clone().expect("a second descriptor");
            assert!(FileDisk::open(parent.path()).is_err(), "the disk is open");
            drop(disk);
            drop(FileDisk::open(parent.path()).expect("the disk is closed"));
            drop(copy);
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "at no block border")]
    fn a_write_between_blocks_is_noticed() {
        let parent = tempfile::tempdir().expect("a folder");
        let disk = FileDisk::open(parent.path()).expect("a folder of our own");
        let file = disk.create("a").expect("it is new");
        let _refused = file.write_at(512, &Blocks::new(BLOCK_BYTES));
    }
}

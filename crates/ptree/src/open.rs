//! Making and opening pools.

use std::sync::{Arc, Mutex};

use sapwood_disk::log::{Damage, Log, LogStart};
use sapwood_disk::{CachedFile, Disk, Presence};
use sapwood_mem::arena::prefetch_line;
use sapwood_mem::sync::Ordering;
use sapwood_mem::words::{Reads, Words};

use crate::dirty::DirtyPages;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::heap::layout::{
    CHUNK_WORDS, PAGE_WORDS, RESERVED_CHUNKS, ROOT, ROOT_CHUNKS, ROOT_WORDS,
};
use crate::options::PoolOptions;
use crate::pool::{Files, Pool, apply};
use crate::redo;
use crate::superblock::{HEAP_FILE, NAME_BYTES_MAX, Superblock};

/// The heap's file before it is whole.
const NEW_HEAP_FILE: &str = "heap.new";
const LOG_PREFIX: &str = "redo";
/// The position at which the first log begins.
const FIRST_LSN: u64 = 0;
/// Address space that a pool needs at least.
const LEAST_BYTES: usize = 64 << 20;

/// How a pool is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadWrite,
    ReadOnly,
}

impl Pool {
    /// A pool in memory alone.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn in_memory(options: PoolOptions) -> Result<Pool> {
        let space = empty_space(&options)?;
        let limit = limit_words(&options, &space);
        let heap = Heap::open(&space, limit)?;
        Ok(Pool::over(space, heap, DirtyPages::default(), None, options))
    }

    /// Makes a pool on a disk that has none.
    ///
    /// # Errors
    /// [`Error::Options`] where there is one, or the layout's name is too long; [`Error::Io`].
    pub fn create(disk: Arc<dyn Disk>, options: PoolOptions) -> Result<Pool> {
        if options.layout_name.len() > NAME_BYTES_MAX {
            return Err(Error::Options(format!(
                "the layout's name has {} bytes: at most {NAME_BYTES_MAX} fit",
                options.layout_name.len()
            )));
        }
        let io = |cause: std::io::Error| Error::io("make a pool", &cause);
        let names = disk.list().map_err(io)?;
        if names.iter().any(|name| name == HEAP_FILE) {
            return Err(Error::Options(format!("{} holds a pool already", disk.place())));
        }
        if names.iter().any(|name| name == NEW_HEAP_FILE) {
            disk.remove(NEW_HEAP_FILE).map_err(io)?;
        }
        let space = empty_space(&options)?;
        let log =
            Log::create(Arc::clone(&disk), options.id, options.log(), FIRST_LSN).map_err(io)?;
        let heap = disk.cached(NEW_HEAP_FILE, Presence::New).map_err(io)?;
        heap.lengthen((RESERVED_CHUNKS * CHUNK_WORDS * 8) as u64).map_err(io)?;
        let at = (ROOT.index() + ROOT_CHUNKS) * 8;
        heap.write_at(at as u64, &(RESERVED_CHUNKS as u64).to_le_bytes()).map_err(io)?;
        let (lsn, part) = log.position();
        let superblock = Superblock {
            pool: options.id,
            generation: 1,
            log: LogStart { lsn, part, durable: log.durable() },
            heap_words: (RESERVED_CHUNKS * CHUNK_WORDS) as u64,
            layout_name: options.layout_name.clone(),
        };
        superblock.write(&*heap).map_err(io)?;
        disk.rename(NEW_HEAP_FILE, HEAP_FILE).map_err(io)?;
        disk.sync().map_err(io)?;
        let limit = limit_words(&options, &space);
        let files = Files {
            heap,
            log: Some(Arc::new(log)),
            end_at_opening: lsn,
            superblock: Mutex::new(superblock),
        };
        let heap = Heap::open(&space, limit)?;
        Ok(Pool::over(space, heap, DirtyPages::default(), Some(files), options))
    }

    /// Whether a disk holds a pool.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_on(disk: &dyn Disk) -> Result<bool> {
        let names = disk.list().map_err(|cause| Error::io("look for a pool", &cause))?;
        Ok(names.iter().any(|name| name == HEAP_FILE))
    }

    /// Opens the pool on a disk. The heap is read when it is used, so that this takes as long as
    /// the log since the last checkpoint is, whatever the size of the heap.
    ///
    /// The pool holds a prefix of all commits: each that lasts, each that was made before the process
    /// ended, if the machine did not, and none by half.
    ///
    /// # Errors
    /// [`Error::CorruptFile`] and [`Error::Corrupt`] where files are not what was written,
    /// [`Error::Options`] where the layout has another name, [`Error::Io`].
    pub fn open(disk: Arc<dyn Disk>, options: PoolOptions) -> Result<Pool> {
        open(disk, options, Access::ReadWrite)
    }

    /// Opens the pool on a disk to be read: nothing on the disk changes.
    ///
    /// # Errors
    /// As of [`Pool::open`].
    pub fn open_read_only(disk: Arc<dyn Disk>, options: PoolOptions) -> Result<Pool> {
        open(disk, options, Access::ReadOnly)
    }
}

fn open(disk: Arc<dyn Disk>, mut options: PoolOptions, access: Access) -> Result<Pool> {
    let io = |cause: std::io::Error| Error::io(format!("open {HEAP_FILE}"), &cause);
    let heap = disk.cached(HEAP_FILE, Presence::There).map_err(io)?;
    let superblock = Superblock::read(&*heap)?;
    if !options.layout_name.is_empty() && options.layout_name != superblock.layout_name {
        return Err(Error::Options(format!(
            "the pool's layout is {:?}, and not {:?}",
            superblock.layout_name, options.layout_name
        )));
    }
    if access == Access::ReadWrite {
        // After a sync that failed it may be in the page cache alone, where the one before it needs parts of the
        // log that go below.
        let io = |cause: std::io::Error| Error::io(format!("write {HEAP_FILE}"), &cause);
        superblock.write(&*heap).map_err(io)?;
    }
    options.id = superblock.pool;
    options.layout_name.clone_from(&superblock.layout_name);
    let space = new_space(&options)?;
    let limit = limit_words(&options, &space);
    read_heap(&*heap, &superblock, &space, limit, &options)?;
    let mut dirty = DirtyPages::default();
    let mut replay = Replay { space: &space, limit, dirty: &mut dirty, ahead: Vec::new() };
    let mut take = |_lsn: u64, record: &[u8]| replay.take(record).map_err(Refused::from);
    let log = match access {
        Access::ReadWrite => {
            Log::open(Arc::clone(&disk), superblock.pool, options.log(), superblock.log, &mut take)
                .map(|log| (log.position().0, Some(Arc::new(log))))
        }
        Access::ReadOnly => {
            Log::view(&*disk, superblock.pool, LOG_PREFIX, superblock.log, &mut take)
                .map(|(end, _)| (end, None))
        }
    };
    let (end_at_opening, log) = log.map_err(|Refused(error)| error)?;
    replay.finish()?;
    let opened = Heap::open(&space, limit)?;
    let files = Files { heap, log, end_at_opening, superblock: Mutex::new(superblock) };
    Ok(Pool::over(space, opened, dirty, Some(files), options))
}

/// Reads the words of a pool as far as they can be read, and says what is wrong with the files. The
/// disk is not written.
///
/// # Errors
/// [`Error::CorruptFile`] where neither superblock can be read, [`Error::Io`],
/// [`Error::OutOfMemory`].
pub(crate) fn open_damaged(
    disk: &dyn Disk,
    options: &PoolOptions,
    problems: &mut Vec<String>,
) -> Result<Words> {
    let io = |cause: std::io::Error| Error::io(format!("open {HEAP_FILE}"), &cause);
    let heap = disk.cached(HEAP_FILE, Presence::There).map_err(io)?;
    let mut superblock = Superblock::read(&*heap)?;
    let space = new_space(options)?;
    let limit = limit_words(options, &space);
    let have = heap.bytes().map_err(io)? / 8;
    if have < superblock.heap_words {
        problems.push(format!(
            "{HEAP_FILE} is cut off: it has {have} words of 8 bytes and should have {}",
            superblock.heap_words
        ));
        superblock.heap_words = have;
    }
    read_heap(&*heap, &superblock, &space, limit, options)?;
    let mut dirty = DirtyPages::default();
    let mut replay = Replay { space: &space, limit, dirty: &mut dirty, ahead: Vec::new() };
    let mut take = |_lsn: u64, record: &[u8]| replay.take(record).map_err(Refused::from);
    let read = Log::view(disk, superblock.pool, LOG_PREFIX, superblock.log, &mut take);
    let read = read.map(drop).map_err(|Refused(error)| error);
    if let Err(error) = read.and(replay.finish()) {
        problems.push(format!(
            "what was committed since the last checkpoint is there in part: {error}"
        ));
    }
    // Words at the end of the last object that were never set, as of any pool.
    if let Err(error) = Heap::open(&space, limit) {
        problems.push(error.to_string());
    }
    Ok(space)
}

/// Bytes of records that are looked at before they are done.
const AHEAD_BYTES: usize = 16 << 10;

/// Records on their way to the heap. Their words are fetched some time before they are stored to, so
/// that the waits for memory overlap.
struct Replay<'a> {
    space: &'a Words,
    limit: usize,
    dirty: &'a mut DirtyPages,
    ahead: Vec<u8>,
}

impl Replay<'_> {
    fn take(&mut self, record: &[u8]) -> Result<()> {
        let mut changes = record;
        while let Some(change) = redo::next(&mut changes)? {
            if let Some(word) = self.space.get(change.at(), 1) {
                prefetch_line(std::ptr::from_ref(&word[0]).cast());
            }
        }
        self.ahead.extend_from_slice(record);
        if self.ahead.len() < AHEAD_BYTES { Ok(()) } else { self.finish() }
    }

    fn finish(&mut self) -> Result<()> {
        let mut changes = &self.ahead[..];
        while let Some(change) = redo::next(&mut changes)? {
            apply(&change, self.space, self.limit, self.dirty)?;
        }
        self.ahead.clear();
        Ok(())
    }
}

/// Why a log was not replayed.
struct Refused(Error);

impl From<std::io::Error> for Refused {
    fn from(cause: std::io::Error) -> Refused {
        let damage = cause.get_ref().and_then(|inner| inner.downcast_ref::<Damage>());
        Refused(match (damage, cause.kind()) {
            (Some(Damage { file, offset, what, .. }), _) => {
                Error::CorruptFile { file: file.clone(), offset: *offset, what: what.clone() }
            }
            (None, std::io::ErrorKind::InvalidData) => Error::CorruptFile {
                file: "the log".to_owned(),
                offset: 0,
                what: cause.to_string(),
            },
            (None, _) => Error::io("read the log", &cause),
        })
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused(error)
    }
}

/// Makes the words of the file those of the heap.
fn read_heap(
    file: &dyn CachedFile,
    superblock: &Superblock,
    space: &Words,
    limit: usize,
    options: &PoolOptions,
) -> Result<()> {
    let io = |cause: std::io::Error| Error::io(format!("read {HEAP_FILE}"), &cause);
    let words = superblock.heap_words as usize;
    let have = file.bytes().map_err(io)? / 8;
    if superblock.heap_words > limit as u64 || have < superblock.heap_words {
        let what = match have < superblock.heap_words {
            true => format!("it has {have} words of 8 bytes and should have {words}"),
            false => format!("its {words} words of 8 bytes are more than the limit of {limit}"),
        };
        return Err(Error::CorruptFile { file: HEAP_FILE.to_owned(), offset: 0, what });
    }
    let words = words / PAGE_WORDS * PAGE_WORDS;
    if let Some(descriptor) = file.descriptor() {
        let reads = match words as u64 * 8 > options.memory_bytes {
            true => Reads::Scattered,
            false => Reads::Ahead,
        };
        return space.map_file(descriptor, words * 8, reads).map_err(io);
    }
    space.grow(words).map_err(io)?;
    let mut bytes = vec![0; 1 << 20];
    let mut at = 0;
    while at < words {
        let some = (bytes.len() / 8).min(words - at);
        let bytes = &mut bytes[..some * 8];
        file.read_at(at as u64 * 8, bytes).map_err(io)?;
        for (word, bytes) in space.get(at, some).unwrap_or(&[]).iter().zip(bytes.chunks_exact(8)) {
            let value = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            word.store(value, Ordering::Relaxed);
        }
        at += some;
    }
    Ok(())
}

/// The words of a new heap.
fn empty_space(options: &PoolOptions) -> Result<Words> {
    let space = new_space(options)?;
    let words = RESERVED_CHUNKS * CHUNK_WORDS;
    let refused = |why: &str| redo::out_of_memory(0, words, why);
    space.grow(words).map_err(|cause| refused(&cause.to_string()))?;
    let root = space.get(ROOT.index(), ROOT_WORDS).ok_or_else(|| refused("no words came"))?;
    root[ROOT_CHUNKS].store(RESERVED_CHUNKS as u64, Ordering::Relaxed);
    Ok(space)
}

fn new_space(options: &PoolOptions) -> Result<Words> {
    let most = usize::try_from(options.limit_bytes).unwrap_or(usize::MAX >> 8);
    let most = most.clamp(LEAST_BYTES, 1 << 44).next_power_of_two();
    Words::new(most, LEAST_BYTES)
        .map_err(|cause| redo::out_of_memory(0, most / 8, &cause.to_string()))
}

/// Words that the heap may have at most.
fn limit_words(options: &PoolOptions, space: &Words) -> usize {
    space.most().min(usize::try_from(options.limit_bytes / 8).unwrap_or(usize::MAX))
}

//! Making and opening pools.

use std::sync::{Arc, Mutex};

use sapwood_disk::log::{Damage, Log, LogStart, Lsn, SharedLog};
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
use crate::log::PoolLog;
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
    /// Another process may write meanwhile.
    Beside,
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
        make(&*disk, &options, || {
            let log = Log::create(Arc::clone(&disk), options.id, options.log(), FIRST_LSN);
            log.map(|log| PoolLog::Own(Arc::new(log)))
        })
    }

    /// As [`create`](Self::create), of a pool whose commits go to a log that it shares. Whatever gives that log up
    /// writes a [checkpoint](Self::checkpoint) of the pool before.
    ///
    /// # Errors
    /// As of [`create`](Self::create).
    pub fn create_in_log(
        disk: &dyn Disk,
        options: &PoolOptions,
        log: Arc<dyn SharedLog>,
    ) -> Result<Pool> {
        make(disk, options, || Ok(PoolLog::Shared(log)))
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
    /// [`Error::Options`] where the layout has another name, or the pool shares a log ([`OpeningPool`]);
    /// [`Error::Io`].
    pub fn open(disk: Arc<dyn Disk>, options: PoolOptions) -> Result<Pool> {
        OpeningPool::begin(disk, options)?.finish_alone()
    }

    /// Opens the pool on a disk to be read: nothing on the disk changes.
    ///
    /// # Errors
    /// As of [`Pool::open`].
    pub fn open_read_only(disk: Arc<dyn Disk>, options: PoolOptions) -> Result<Pool> {
        OpeningPool::begin_read_only(disk, options)?.finish_alone()
    }

    /// The same while another process may have the pool open and change it: all of the heap is read into memory.
    ///
    /// # Errors
    /// As of [`Pool::open`].
    pub fn open_beside(disk: Arc<dyn Disk>, options: PoolOptions) -> Result<Pool> {
        OpeningPool::begin_beside(disk, options)?.finish_alone()
    }

    /// Lets the pool on a disk share a log from now on: all that its own log has is in its pages then, and its
    /// own log goes. A crash on the way loses nothing, and leaves the pool with one of the two.
    ///
    /// # Errors
    /// As of [`Pool::open`] and [`Pool::checkpoint`].
    pub fn move_to_log(
        disk: Arc<dyn Disk>,
        options: PoolOptions,
        log: &dyn SharedLog,
    ) -> Result<()> {
        Pool::open(Arc::clone(&disk), options)?.close()?;
        let io = |cause: std::io::Error| Error::io(format!("write {HEAP_FILE}"), &cause);
        let heap = disk.cached(HEAP_FILE, Presence::There).map_err(io)?;
        let last = Superblock::read(&*heap)?;
        let next = Superblock {
            generation: last.generation + 1,
            log: end_of(log.log()),
            shared_log: Some(log.id()),
            ..last
        };
        next.write(&*heap).map_err(io)?;
        remove_own_log(&*disk)
    }
}

/// Makes a pool on a disk that has none, and its log before.
fn make(
    disk: &dyn Disk,
    options: &PoolOptions,
    log: impl FnOnce() -> std::io::Result<PoolLog>,
) -> Result<Pool> {
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
    let space = empty_space(options)?;
    let log = log().map_err(io)?;
    let heap = disk.cached(NEW_HEAP_FILE, Presence::New).map_err(io)?;
    heap.lengthen((RESERVED_CHUNKS * CHUNK_WORDS * 8) as u64).map_err(io)?;
    let at = (ROOT.index() + ROOT_CHUNKS) * 8;
    heap.write_at(at as u64, &(RESERVED_CHUNKS as u64).to_le_bytes()).map_err(io)?;
    let start = end_of(log.log());
    let superblock = Superblock {
        pool: options.id,
        generation: 1,
        log: start,
        heap_words: (RESERVED_CHUNKS * CHUNK_WORDS) as u64,
        layout_name: options.layout_name.clone(),
        shared_log: match &log {
            PoolLog::Own(_) => None,
            PoolLog::Shared(shared) => Some(shared.id()),
        },
    };
    superblock.write(&*heap).map_err(io)?;
    disk.rename(NEW_HEAP_FILE, HEAP_FILE).map_err(io)?;
    disk.sync().map_err(io)?;
    let limit = limit_words(options, &space);
    let files = Files {
        heap,
        log: Some(log),
        end_at_opening: start.lsn,
        superblock: Mutex::new(superblock),
    };
    let heap = Heap::open(&space, limit)?;
    Ok(Pool::over(space, heap, DirtyPages::default(), Some(files), options.clone()))
}

/// What is appended from now on.
fn end_of(log: &Log) -> LogStart {
    let (lsn, part) = log.position();
    LogStart { lsn, part, durable: log.durable() }
}

/// Removes the log of a pool that shares one.
fn remove_own_log(disk: &dyn Disk) -> Result<()> {
    let remove = || {
        let is_part =
            |name: &String| name.starts_with(&format!("{LOG_PREFIX}-")) && name.ends_with(".log");
        for name in disk.list()?.iter().filter(|name| is_part(name)) {
            disk.remove(name)?;
        }
        Ok(())
    };
    remove().map_err(|cause| Error::io("remove the pool's own log", &cause))
}

/// A pool that is being opened. If it [shares a log](Self::shared_log), its [records](Self::redo) of that are told
/// by whatever reads the log: all since the log's last checkpoint, in order.
#[derive(Debug)]
pub struct OpeningPool {
    disk: Arc<dyn Disk>,
    access: Access,
    heap: Arc<dyn CachedFile>,
    superblock: Superblock,
    options: PoolOptions,
    replay: Replay,
}

impl OpeningPool {
    /// Reads the heap.
    ///
    /// # Errors
    /// As of [`Pool::open`].
    pub fn begin(disk: Arc<dyn Disk>, options: PoolOptions) -> Result<OpeningPool> {
        begin(disk, options, Access::ReadWrite)
    }

    /// As [`begin`](Self::begin), of a pool that is opened to be read.
    ///
    /// # Errors
    /// As of [`Pool::open`].
    pub fn begin_read_only(disk: Arc<dyn Disk>, options: PoolOptions) -> Result<OpeningPool> {
        begin(disk, options, Access::ReadOnly)
    }

    /// As [`begin_read_only`](Self::begin_read_only), of a pool that another process may have open and change: all of
    /// the heap is read into memory. The log that is told afterwards, from its last checkpoint to an end that is
    /// looked for now or later, has all changes that are in pages by now; so that pages of different moments do no
    /// harm.
    ///
    /// # Errors
    /// As of [`Pool::open`].
    pub fn begin_beside(disk: Arc<dyn Disk>, options: PoolOptions) -> Result<OpeningPool> {
        begin(disk, options, Access::Beside)
    }

    /// The number of the log that the pool shares, if it does.
    pub fn shared_log(&self) -> Option<u64> {
        self.superblock.shared_log
    }

    /// The number of its last checkpoint; 1 of a pool that was made and has none.
    pub fn generation(&self) -> u64 {
        self.superblock.generation
    }

    /// Does a record of the log again.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where it is none of a pool, [`Error::OutOfMemory`].
    pub fn redo(&mut self, record: &[u8]) -> Result<()> {
        self.replay.take(record)
    }

    /// Opens a pool that shares a log, of which all records were told.
    ///
    /// # Errors
    /// [`Error::Options`] where it is another log than the pool's; [`Error::CorruptFile`] where the log ends before
    /// what pages have; else as of [`Pool::open`].
    pub fn finish(self, log: Arc<dyn SharedLog>) -> Result<Pool> {
        self.expect_log(log.id(), log.log().position().0)?;
        if self.access == Access::ReadWrite {
            remove_own_log(&*self.disk)?;
        }
        self.over(Some(PoolLog::Shared(log)), None)
    }

    /// Opens a pool to be read that shares the log of this number, all records of which were told up to its end.
    ///
    /// # Errors
    /// As of [`finish`](Self::finish).
    pub fn finish_read_only(self, log: u64, end: Lsn) -> Result<Pool> {
        self.expect_log(log, end)?;
        self.over(None, Some(end))
    }

    fn expect_log(&self, id: u64, end: Lsn) -> Result<()> {
        let Superblock { shared_log, log: LogStart { durable, .. }, .. } = self.superblock;
        if shared_log != Some(id) {
            let its = shared_log.map_or_else(|| "none".to_owned(), |number| number.to_string());
            return Err(Error::Options(format!(
                "the heap belongs to the log of number {its}, and this is number {id}: put \
                 the log back that it was used with"
            )));
        }
        if end < durable {
            let what = format!(
                "it ends at position {end}, and the heap needs what it had up to {durable}"
            );
            return Err(Error::CorruptFile { file: "the log".to_owned(), offset: 0, what });
        }
        Ok(())
    }

    /// Opens a pool that has a log of its own.
    fn finish_alone(mut self) -> Result<Pool> {
        if let Some(log) = self.superblock.shared_log {
            return Err(Error::Options(format!(
                "the pool has its commits in the log of a database, number {log}: open the database"
            )));
        }
        let OpeningPool { disk, access, superblock, options, replay, .. } = &mut self;
        let (id, start) = (superblock.pool, superblock.log);
        let mut take = |_lsn: u64, record: &[u8]| replay.take(record).map_err(Refused::from);
        let opened = match access {
            Access::ReadWrite => Log::open(Arc::clone(disk), id, options.log(), start, &mut take)
                .map(|log| (Some(PoolLog::Own(Arc::new(log))), None)),
            Access::ReadOnly | Access::Beside => {
                Log::view(&**disk, id, LOG_PREFIX, start, &mut take)
                    .map(|(end, _)| (None, Some(end)))
            }
        };
        let (log, end) = opened.map_err(|Refused(error)| error)?;
        self.over(log, end)
    }

    /// The pool, as all records have left it. Without a log it has the end of one.
    fn over(self, log: Option<PoolLog>, end: Option<Lsn>) -> Result<Pool> {
        let OpeningPool { heap, superblock, options, mut replay, .. } = self;
        replay.finish()?;
        let Replay { space, limit, dirty, .. } = replay;
        let opened = Heap::open(&space, limit)?;
        let end_of_log = log.as_ref().map(|log| log.log().position().0);
        let end_at_opening = end.or(end_of_log).unwrap_or(superblock.log.lsn);
        let files = Files { heap, log, end_at_opening, superblock: Mutex::new(superblock) };
        Ok(Pool::over(space, opened, dirty, Some(files), options))
    }
}

fn begin(disk: Arc<dyn Disk>, mut options: PoolOptions, access: Access) -> Result<OpeningPool> {
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
        // log that go when that is opened.
        let io = |cause: std::io::Error| Error::io(format!("write {HEAP_FILE}"), &cause);
        superblock.write(&*heap).map_err(io)?;
    }
    options.id = superblock.pool;
    options.layout_name.clone_from(&superblock.layout_name);
    let space = new_space(&options)?;
    let limit = limit_words(&options, &space);
    match access {
        Access::ReadWrite | Access::ReadOnly => {
            read_heap(&*heap, &superblock, &space, limit, &options)?;
        }
        Access::Beside => copy_heap(&*heap, heap_words(&*heap, &superblock, limit)?, &space)?,
    }
    let replay = Replay { space, limit, dirty: DirtyPages::default(), ahead: Vec::new() };
    Ok(OpeningPool { disk, access, heap, superblock, options, replay })
}

/// A pool that may be damaged, and what is wrong with its files, one sentence each. If it
/// [shares a log](Self::shared_log), its [records](Self::redo) of that may be told. The disk is not written.
#[derive(Debug)]
pub struct DamagedPool {
    superblock: Superblock,
    replay: Replay,
    pub(crate) problems: Vec<String>,
    /// Whether the log has told something that is no record.
    is_redo_damaged: bool,
}

impl DamagedPool {
    /// Reads the words of a pool as far as they can be read.
    ///
    /// # Errors
    /// [`Error::CorruptFile`] where neither superblock can be read, so that nothing says where to begin;
    /// [`Error::Io`], [`Error::OutOfMemory`].
    pub fn open(disk: &dyn Disk, options: &PoolOptions) -> Result<DamagedPool> {
        let io = |cause: std::io::Error| Error::io(format!("open {HEAP_FILE}"), &cause);
        let heap = disk.cached(HEAP_FILE, Presence::There).map_err(io)?;
        let mut superblock = Superblock::read(&*heap)?;
        let space = new_space(options)?;
        let limit = limit_words(options, &space);
        let mut problems = Vec::new();
        let have = heap.bytes().map_err(io)? / 8;
        if have < superblock.heap_words {
            problems.push(format!(
                "{HEAP_FILE} is cut off: it has {have} words of 8 bytes and should have {}",
                superblock.heap_words
            ));
            superblock.heap_words = have;
        }
        read_heap(&*heap, &superblock, &space, limit, options)?;
        let replay = Replay { space, limit, dirty: DirtyPages::default(), ahead: Vec::new() };
        let mut damaged = DamagedPool { superblock, replay, problems, is_redo_damaged: false };
        if damaged.superblock.shared_log.is_none() {
            let Superblock { pool, log: start, .. } = damaged.superblock;
            let mut take =
                |_lsn: u64, record: &[u8]| damaged.replay.take(record).map_err(Refused::from);
            let read = Log::view(disk, pool, LOG_PREFIX, start, &mut take);
            if let Err(Refused(error)) = read.map(drop) {
                damaged.lacks_commits(&error);
            }
        }
        Ok(damaged)
    }

    /// The number of the log that the pool shares, if it does.
    pub fn shared_log(&self) -> Option<u64> {
        self.superblock.shared_log
    }

    /// Does a record of the log again, unless one before it was none.
    pub fn redo(&mut self, record: &[u8]) {
        if !self.is_redo_damaged
            && let Err(error) = self.replay.take(record)
        {
            self.lacks_commits(&error);
        }
    }

    /// The words, as far as they are there, and what is wrong with them.
    pub(crate) fn finish(mut self) -> (Words, Vec<String>) {
        if !self.is_redo_damaged
            && let Err(error) = self.replay.finish()
        {
            self.lacks_commits(&error);
        }
        let DamagedPool { replay: Replay { space, limit, .. }, mut problems, .. } = self;
        // Words at the end of the last object that were never set, as of any pool.
        if let Err(error) = Heap::open(&space, limit) {
            problems.push(error.to_string());
        }
        (space, problems)
    }

    fn lacks_commits(&mut self, error: &Error) {
        self.is_redo_damaged = true;
        self.problems.push(format!(
            "what was committed since the last checkpoint is there in part: {error}"
        ));
    }
}

/// Bytes of records that are looked at before they are done.
const AHEAD_BYTES: usize = 16 << 10;

/// Records on their way to the heap. Their words are fetched some time before they are stored to, so
/// that the waits for memory overlap.
#[derive(Debug)]
struct Replay {
    space: Words,
    limit: usize,
    dirty: DirtyPages,
    ahead: Vec<u8>,
}

impl Replay {
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
            apply(&change, &self.space, self.limit, &mut self.dirty)?;
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
    let words = heap_words(file, superblock, limit)?;
    if let Some(descriptor) = file.descriptor() {
        let reads = match words as u64 * 8 > options.memory_bytes {
            true => Reads::Scattered,
            false => Reads::Ahead,
        };
        return space.map_file(descriptor, words * 8, reads).map_err(unread);
    }
    copy_heap(file, words, space)
}

fn unread(cause: std::io::Error) -> Error {
    Error::io(format!("read {HEAP_FILE}"), &cause)
}

/// How many words of the file are those of the heap.
fn heap_words(file: &dyn CachedFile, superblock: &Superblock, limit: usize) -> Result<usize> {
    let words = superblock.heap_words as usize;
    let have = file.bytes().map_err(unread)? / 8;
    if superblock.heap_words > limit as u64 || have < superblock.heap_words {
        let what = match have < superblock.heap_words {
            true => format!("it has {have} words of 8 bytes and should have {words}"),
            false => format!("its {words} words of 8 bytes are more than the limit of {limit}"),
        };
        return Err(Error::CorruptFile { file: HEAP_FILE.to_owned(), offset: 0, what });
    }
    Ok(words / PAGE_WORDS * PAGE_WORDS)
}

/// Reads the words of the file into memory.
fn copy_heap(file: &dyn CachedFile, words: usize, space: &Words) -> Result<()> {
    space.grow(words).map_err(unread)?;
    let mut bytes = vec![0; 1 << 20];
    let mut at = 0;
    while at < words {
        let some = (bytes.len() / 8).min(words - at);
        let bytes = &mut bytes[..some * 8];
        file.read_at(at as u64 * 8, bytes).map_err(unread)?;
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

//! The functions of `cpp/shim.cc`, safe to call.

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use sapwood_bench::Error;
use sapwood_bench::hash::spill::{VALUE_BYTES, SpillValue};

/// One operation on a store in memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Call {
    pub key: u64,
    pub value: u64,
    /// One of [`READ`], [`UPSERT`] and [`INCREMENT`].
    pub kind: u64,
}

pub const READ: u64 = 0;
pub const UPSERT: u64 = 1;
pub const INCREMENT: u64 = 2;

/// Operations between two refreshes of a thread's epoch, as in FASTER's benchmark.
pub const REFRESHED_TOGETHER: usize = 64;

const REFUSED: &str = "FASTER does what it is asked for";
/// Room for what an exception says.
const ERROR_BYTES: usize = 256;

unsafe extern "C" {
    fn bench_memory_open(
        buckets: u64,
        log_bytes: u64,
        error: *mut c_char,
        error_bytes: usize,
    ) -> *mut c_void;
    fn bench_memory_close(store: *mut c_void);
    fn bench_memory_enter(store: *mut c_void);
    fn bench_memory_leave(store: *mut c_void);
    fn bench_memory_run(
        store: *mut c_void,
        calls: *const Call,
        count: usize,
        complete: bool,
        found: *mut u64,
    ) -> i64;

    fn bench_spill_open(
        folder: *const c_char,
        buckets: u64,
        log_bytes: u64,
        mutable_fraction: f64,
        error: *mut c_char,
        error_bytes: usize,
    ) -> *mut c_void;
    fn bench_spill_close(store: *mut c_void);
    fn bench_spill_enter(store: *mut c_void);
    fn bench_spill_leave(store: *mut c_void);
    fn bench_spill_log_bytes(store: *const c_void) -> u64;
    fn bench_spill_read(
        store: *mut c_void,
        keys: *const u64,
        count: usize,
        values: *mut u8,
        are_found: *mut bool,
    ) -> i64;
    fn bench_spill_upsert(store: *mut c_void, key: u64, value: *const u8) -> bool;
    fn bench_spill_increment(store: *mut c_void, keys: *const u64, count: usize) -> i64;
}

/// A store, or what the exception said that came instead.
fn opened(open: impl FnOnce(*mut c_char, usize) -> *mut c_void) -> Result<NonNull<c_void>, Error> {
    let mut error: [c_char; ERROR_BYTES] = [0; ERROR_BYTES];
    let store = open(error.as_mut_ptr(), ERROR_BYTES);
    NonNull::new(store).ok_or_else(|| {
        // SAFETY: the array outlives the reference, and the shim ends what it writes with a zero.
        let said = unsafe { CStr::from_ptr(error.as_ptr()) };
        format!("FASTER: {}", said.to_string_lossy()).into()
    })
}

/// FASTER in memory. A thread calls `enter` before its other calls and `leave` after them.
pub struct Memory(NonNull<c_void>);

// SAFETY: a FASTER store is made for many threads, each of which enters and leaves.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn open(buckets: u64, log_bytes: u64) -> Result<Memory, Error> {
        // SAFETY: the pointer and the length are those of one array.
        let store =
            opened(|error, room| unsafe { bench_memory_open(buckets, log_bytes, error, room) })?;
        Ok(Memory(store))
    }

    pub fn enter(&self) {
        // SAFETY: the store is open.
        unsafe { bench_memory_enter(self.0.as_ptr()) }
    }

    pub fn leave(&self) {
        // SAFETY: the store is open, and this thread has entered it.
        unsafe { bench_memory_leave(self.0.as_ptr()) }
    }

    /// Refreshes the thread's epoch, then does the calls one after the other; what reads found.
    #[inline]
    pub fn run<'f>(
        &self,
        calls: &[Call],
        complete: bool,
        found: &'f mut [u64; REFRESHED_TOGETHER],
    ) -> &'f [u64] {
        assert!(calls.len() <= found.len());
        // SAFETY: the store is open and this thread has entered it; `calls` are as many as said, and
        // a word of `found` is there for each.
        let count = unsafe {
            let found = found.as_mut_ptr();
            bench_memory_run(self.0.as_ptr(), calls.as_ptr(), calls.len(), complete, found)
        };
        &found[..usize::try_from(count).expect(REFUSED)]
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was opened once, and nothing else can call it any more.
        unsafe { bench_memory_close(self.0.as_ptr()) }
    }
}

/// FASTER on a file system. A thread calls `enter` before its other calls and `leave` after them.
pub struct Spill(NonNull<c_void>);

// SAFETY: a FASTER store is made for many threads, each of which enters and leaves.
unsafe impl Send for Spill {}
// SAFETY: as above.
unsafe impl Sync for Spill {}

impl Spill {
    pub fn open(
        folder: &Path,
        buckets: u64,
        log_bytes: u64,
        mutable_fraction: f64,
    ) -> Result<Spill, Error> {
        let folder = CString::new(folder.as_os_str().as_bytes())?;
        // SAFETY: the folder ends with a zero; the pointer and the length are those of one array.
        let store = opened(|error, room| unsafe {
            bench_spill_open(folder.as_ptr(), buckets, log_bytes, mutable_fraction, error, room)
        })?;
        Ok(Spill(store))
    }

    pub fn enter(&self) {
        // SAFETY: the store is open.
        unsafe { bench_spill_enter(self.0.as_ptr()) }
    }

    pub fn leave(&self) {
        // SAFETY: the store is open, and this thread has entered it.
        unsafe { bench_spill_leave(self.0.as_ptr()) }
    }

    pub fn log_bytes(&self) -> u64 {
        // SAFETY: the store is open.
        unsafe { bench_spill_log_bytes(self.0.as_ptr()) }
    }

    /// Reads all keys together; how many came from the disk.
    pub fn read(&self, keys: &[u64], values: &mut [SpillValue], are_found: &mut [bool]) -> u64 {
        assert!(keys.len() <= values.len() && keys.len() <= are_found.len());
        // SAFETY: the store is open and this thread has entered it; for each key there is room for
        // a value, and a flag. The call ends when all reads have.
        let fetched = unsafe {
            bench_spill_read(
                self.0.as_ptr(),
                keys.as_ptr(),
                keys.len(),
                values.as_mut_ptr().cast(),
                are_found.as_mut_ptr(),
            )
        };
        u64::try_from(fetched).expect(REFUSED)
    }

    pub fn upsert(&self, key: u64, value: &SpillValue) {
        const { assert!(VALUE_BYTES == 100, "as the shim has it") };
        // SAFETY: the store is open and this thread has entered it; the value is as long as the shim
        // takes it to be.
        let is_done = unsafe { bench_spill_upsert(self.0.as_ptr(), key, value.as_ptr()) };
        assert!(is_done, "{REFUSED}");
    }

    /// Adds one to the numbers of all keys; how many came from the disk.
    pub fn increment(&self, keys: &[u64]) -> u64 {
        // SAFETY: the store is open and this thread has entered it; the keys are as many as said.
        let fetched = unsafe { bench_spill_increment(self.0.as_ptr(), keys.as_ptr(), keys.len()) };
        u64::try_from(fetched).expect(REFUSED)
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        // SAFETY: it was opened once, and nothing else can call it any more.
        unsafe { bench_spill_close(self.0.as_ptr()) }
    }
}

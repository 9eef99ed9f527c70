//! The system calls under their names in the C library: each asks the journal, which counts it,
//! lets it fail, or does it by the closure that it is given.
//!
//! The standard library for Linux with the GNU C library reaches files by these names and no
//! others: `open64`, `openat64`, `close`, `pread64`, `pwrite64`, `ftruncate64`, `fdatasync`,
//! `fsync`, `rename`, `unlink`, `unlinkat`, `rmdir`, `mkdir`. By `write` it could change a file
//! too; the journal refuses that. They are wrapped by hand-made system calls, so that nothing here
//! depends on the functions that it replaces.
//!
//! I-CALLER: a caller keeps the contract of the C function of that name: pointers are valid for as
//! many bytes as said, paths end with a zero byte.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use libc::{AT_FDCWD, AT_REMOVEDIR, c_char, c_int, c_long, c_void, mode_t, off64_t};

use crate::journal;

/// Whether the calls of the standard library come here: it opens a file, and that is noticed.
pub(crate) fn expect_linked() -> io::Result<()> {
    std::hint::black_box((open64 as *const (), unlinkat as *const ()));
    let before = journal::opened();
    drop(std::fs::File::open("/dev/null")?);
    if journal::opened() == before {
        let why = "the calls of the standard library do not come to the shim: it needs Linux with the GNU C library";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    Ok(())
}

/// Answers that a call failed.
pub(crate) fn refuse(errno: c_int) -> c_long {
    // SAFETY: the address of this thread's own error number is always valid.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// # Safety
/// I-CALLER.
unsafe fn path<'a>(text: *const c_char) -> &'a Path {
    // SAFETY: I-CALLER.
    Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()))
}

/// Variadic in C. On the machines that Linux runs on here, an integer beyond the named ones lies
/// where a named one would.
#[unsafe(no_mangle)]
unsafe extern "C" fn open64(name: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: I-CALLER.
    unsafe { openat64(AT_FDCWD, name, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(
    folder: c_int,
    name: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: I-CALLER; the kernel checks the rest.
    let raw = || unsafe { libc::syscall(libc::SYS_openat, folder, name, flags, mode) };
    // SAFETY: I-CALLER.
    journal::open(folder, unsafe { path(name) }, flags, raw) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close(file: c_int) -> c_int {
    journal::close(file);
    // SAFETY: I-CALLER: the descriptor is the caller's to close.
    unsafe { libc::syscall(libc::SYS_close, file) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pread64(
    file: c_int,
    into: *mut c_void,
    bytes: usize,
    offset: off64_t,
) -> isize {
    // SAFETY: I-CALLER.
    let raw = || unsafe { libc::syscall(libc::SYS_pread64, file, into, bytes, offset) };
    journal::read(file, raw) as isize
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(
    file: c_int,
    from: *const c_void,
    bytes: usize,
    offset: off64_t,
) -> isize {
    // SAFETY: I-CALLER; it is called with no more bytes than there are.
    let raw =
        |bytes: usize| unsafe { libc::syscall(libc::SYS_pwrite64, file, from, bytes, offset) };
    let seen = match bytes {
        0 => &[],
        // SAFETY: I-CALLER.
        _ => unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) },
    };
    journal::write(file, seen, offset as u64, raw) as isize
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(file: c_int, from: *const c_void, bytes: usize) -> isize {
    journal::expect_not_ours(file, "write");
    // SAFETY: I-CALLER.
    unsafe { libc::syscall(libc::SYS_write, file, from, bytes) as isize }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate64(file: c_int, bytes: off64_t) -> c_int {
    // SAFETY: no pointers.
    let raw = || unsafe { libc::syscall(libc::SYS_ftruncate, file, bytes) };
    journal::cut(file, bytes as u64, raw) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(file: c_int) -> c_int {
    // SAFETY: no pointers.
    journal::sync(file, || unsafe { libc::syscall(libc::SYS_fdatasync, file) }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(file: c_int) -> c_int {
    // SAFETY: no pointers.
    journal::sync(file, || unsafe { libc::syscall(libc::SYS_fsync, file) }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: I-CALLER.
    let raw = || unsafe { libc::syscall(libc::SYS_renameat, AT_FDCWD, from, AT_FDCWD, to) };
    // SAFETY: I-CALLER.
    journal::rename(unsafe { path(from) }, unsafe { path(to) }, raw) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(name: *const c_char) -> c_int {
    // SAFETY: I-CALLER.
    unsafe { unlinkat(AT_FDCWD, name, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rmdir(name: *const c_char) -> c_int {
    // SAFETY: I-CALLER.
    unsafe { unlinkat(AT_FDCWD, name, AT_REMOVEDIR) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlinkat(folder: c_int, name: *const c_char, flags: c_int) -> c_int {
    // SAFETY: I-CALLER.
    let raw = || unsafe { libc::syscall(libc::SYS_unlinkat, folder, name, flags) };
    // SAFETY: I-CALLER.
    journal::remove(folder, unsafe { path(name) }, flags & AT_REMOVEDIR != 0, raw) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkdir(name: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: I-CALLER.
    let raw = || unsafe { libc::syscall(libc::SYS_mkdirat, AT_FDCWD, name, mode) };
    // SAFETY: I-CALLER.
    journal::make_folder(unsafe { path(name) }, raw) as c_int
}

/// Ends this process as a loss of power would: nothing runs any more, no destructor, no thread.
pub(crate) fn die() -> ! {
    loop {
        // SAFETY: no pointers; the signal cannot be caught.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}

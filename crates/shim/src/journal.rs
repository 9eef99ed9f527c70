//! What the armed process has changed and not yet made last, in the order in which it did.
//!
//! *Thread safety*: all is under one lock, [`STATE`]. A thread inside is marked, so that file
//! operations of the journal itself pass [`crate::calls`] unchanged.
//!
//! I-UNDO: a change is noted under the lock under which it was made, with what undoes it. So at any
//! moment under the lock, undoing all notes in reverse order leads to what was made to last.
//!
//! Names that begin with a dot (a lock, a probe) are no data: their calls count and fail like
//! others, and are not taken back.

use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::{AT_FDCWD, EIO, ENOSPC, O_CREAT, O_TRUNC, c_int, c_long};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

use crate::calls::{die, refuse};
use crate::plan::{Call, Fate, Plan, PowerLoss, Repeat, Since, SystemError};

/// The bytes that a disk writes whole.
const SECTOR_BYTES: usize = 512;

static ARMED: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<Option<State>> = Mutex::new(None);
/// Calls of `open64` by any caller, armed or not: shows that calls come here at all.
static OPENED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

struct State {
    root: PathBuf,
    removed: PathBuf,
    plan: Plan,
    counts: [u64; Call::ALL.len()],
    failed: bool,
    /// Calls that changed something: all, and those since the planned failure.
    changes: u64,
    changes_since_failure: u64,
    /// The files that descriptors of the armed folder stand for.
    handles: HashMap<c_int, Handle>,
    /// By device and number.
    files: HashMap<(u64, u64), File>,
    /// The same, in the order in which they were first opened.
    file_order: Vec<(u64, u64)>,
    names: Vec<NameChange>,
    removed_count: u64,
}

#[derive(Clone)]
enum Handle {
    Folder(PathBuf),
    Data((u64, u64)),
    /// Of a name that begins with a dot.
    Hidden,
}

/// A file that was opened for data.
struct File {
    /// The journal's own way to its bytes, through the page cache.
    own: fs::File,
    /// Its length as far as that lasts.
    lasting_bytes: u64,
    /// Since its last sync.
    writes: Vec<Write>,
}

struct Write {
    offset: u64,
    /// The bytes before; shorter where the file ended.
    old: Vec<u8>,
    /// The bytes since; `None`: the file ends there.
    new: Option<Vec<u8>>,
}

struct NameChange {
    folder: PathBuf,
    what: Change,
}

enum Change {
    Made(PathBuf),
    MadeFolder(PathBuf),
    /// The file that had the name lies under another until this lasts.
    Renamed {
        from: PathBuf,
        to: PathBuf,
        replaced: Option<PathBuf>,
    },
    Removed {
        name: PathBuf,
        kept: PathBuf,
    },
    RemovedFolder(PathBuf),
}

/// A thread that looks at the journal.
struct Inside {
    state: MutexGuard<'static, Option<State>>,
}

impl Inside {
    /// `None`: not armed, or the journal's own call.
    fn enter() -> Option<Inside> {
        // Acquire: pairs with Release in `arm`; what is behind it is under the lock anyway.
        if !ARMED.load(Ordering::Acquire) || INSIDE.get() {
            return None;
        }
        INSIDE.set(true);
        Some(Inside { state: STATE.lock().unwrap_or_else(PoisonError::into_inner) })
    }

    fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("armed")
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

pub(crate) fn arm(root: &Path, removed: &Path, plan: Plan) {
    let state = State {
        root: root.to_owned(),
        removed: removed.to_owned(),
        plan,
        counts: [0; Call::ALL.len()],
        failed: false,
        changes: 0,
        changes_since_failure: 0,
        handles: HashMap::new(),
        files: HashMap::new(),
        file_order: Vec::new(),
        names: Vec::new(),
        removed_count: 0,
    };
    // An older state closes its files when it is dropped, which is the journal's own call.
    INSIDE.set(true);
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    INSIDE.set(false);
    // Release: pairs with Acquire in `Inside::enter`.
    ARMED.store(true, Ordering::Release);
}

pub(crate) fn opened() -> u64 {
    OPENED.load(Ordering::SeqCst)
}

pub(crate) fn counts() -> [u64; Call::ALL.len()] {
    Inside::enter().map_or([0; Call::ALL.len()], |mut inside| inside.state().counts)
}

pub(crate) fn has_failed() -> bool {
    Inside::enter().is_some_and(|mut inside| inside.state().failed)
}

pub(crate) fn open(
    folder: c_int,
    name: &Path,
    flags: c_int,
    raw: impl FnOnce() -> c_long,
) -> c_long {
    OPENED.fetch_add(1, Ordering::SeqCst);
    let Some(mut inside) = Inside::enter() else { return raw() };
    let state = inside.state();
    let Some(path) = state.ours(folder, name) else {
        let file = raw();
        state.handles.remove(&(file as c_int));
        return file;
    };
    if let Some(errno) = state.failure_of(Call::Open) {
        return refuse(errno);
    }
    let there = fs::symlink_metadata(&path).is_ok();
    let hidden = is_hidden(&path);
    expect(hidden || !there || flags & O_TRUNC == 0, "open of a file that is there, to cut it");
    let file = raw();
    if file < 0 {
        return file;
    }
    state.note_handle(file as c_int, &path, hidden);
    if flags & O_CREAT != 0 && !there {
        if !hidden {
            state.note_name(&path, Change::Made(path.clone()));
        }
        state.changed();
    }
    file
}

pub(crate) fn close(file: c_int) {
    if let Some(mut inside) = Inside::enter() {
        inside.state().handles.remove(&file);
    }
}

pub(crate) fn read(file: c_int, raw: impl FnOnce() -> c_long) -> c_long {
    let refused = Inside::enter().and_then(|mut inside| {
        let state = inside.state();
        state.handles.contains_key(&file).then(|| state.failure_of(Call::Read)).flatten()
    });
    refused.map_or_else(raw, refuse)
}

pub(crate) fn write(
    file: c_int,
    bytes: &[u8],
    offset: u64,
    raw: impl FnOnce(usize) -> c_long,
) -> c_long {
    let Some(mut inside) = Inside::enter() else { return raw(bytes.len()) };
    let state = inside.state();
    let Some(handle) = state.handles.get(&file).cloned() else { return raw(bytes.len()) };
    let failure = state.failure_of(Call::Write);
    let count = match failure {
        None => bytes.len(),
        // What a full disk takes before it is full.
        Some(ENOSPC) => bytes.len() / 2 / SECTOR_BYTES * SECTOR_BYTES,
        Some(_) => 0,
    };
    let written = match (&handle, count) {
        (_, 0) => 0,
        (Handle::Data(key), _) => {
            let data = state.files.get_mut(key).expect("opened");
            data.write(&bytes[..count], offset, || raw(count))
        }
        _ => raw(count),
    };
    match failure {
        Some(errno) => refuse(errno),
        None => {
            if written > 0 {
                state.changed();
            }
            written
        }
    }
}

pub(crate) fn cut(file: c_int, bytes: u64, raw: impl FnOnce() -> c_long) -> c_long {
    let Some(mut inside) = Inside::enter() else { return raw() };
    let state = inside.state();
    let Some(Handle::Data(key)) = state.handles.get(&file).cloned() else { return raw() };
    if let Some(errno) = state.failure_of(Call::Cut) {
        return refuse(errno);
    }
    let answer = state.files.get_mut(&key).expect("opened").cut(bytes, raw);
    if answer == 0 {
        state.changed();
    }
    answer
}

pub(crate) fn sync(file: c_int, raw: impl FnOnce() -> c_long) -> c_long {
    let Some(mut inside) = Inside::enter() else { return raw() };
    let state = inside.state();
    match state.handles.get(&file).cloned() {
        Some(Handle::Data(key)) => {
            if let Some(errno) = state.failure_of(Call::SyncData) {
                if errno == EIO {
                    state.files.get_mut(&key).expect("opened").take_back();
                }
                return refuse(errno);
            }
            state.changed();
            state.files.get_mut(&key).expect("opened").make_last();
        }
        Some(Handle::Folder(path)) => {
            if let Some(errno) = state.failure_of(Call::SyncNames) {
                return refuse(errno);
            }
            state.changed();
            state.make_names_last(&path);
        }
        // A folder above the armed one, which was there before.
        Some(Handle::Hidden) | None => {}
    }
    0
}

pub(crate) fn rename(from: &Path, to: &Path, raw: impl FnOnce() -> c_long) -> c_long {
    let Some(mut inside) = Inside::enter() else { return raw() };
    let state = inside.state();
    let (Some(from), Some(to)) = (state.ours(AT_FDCWD, from), state.ours(AT_FDCWD, to)) else {
        return raw();
    };
    expect(from.parent() == to.parent(), "rename into another folder");
    if let Some(errno) = state.failure_of(Call::Rename) {
        return refuse(errno);
    }
    let replaced = state.keep(&to);
    let answer = raw();
    if answer == 0 {
        state.note_name(&to.clone(), Change::Renamed { from, to, replaced });
        state.changed();
    }
    answer
}

pub(crate) fn remove(
    folder: c_int,
    name: &Path,
    is_folder: bool,
    raw: impl FnOnce() -> c_long,
) -> c_long {
    let Some(mut inside) = Inside::enter() else { return raw() };
    let state = inside.state();
    let Some(path) = state.ours(folder, name) else { return raw() };
    if let Some(errno) = state.failure_of(Call::Remove) {
        return refuse(errno);
    }
    if is_hidden(&path) {
        return raw();
    }
    let kept = if is_folder { None } else { state.keep(&path) };
    let answer = raw();
    if answer == 0 {
        let what = match kept {
            Some(kept) => Change::Removed { name: path.clone(), kept },
            None => Change::RemovedFolder(path.clone()),
        };
        state.note_name(&path, what);
        state.changed();
    }
    answer
}

pub(crate) fn make_folder(name: &Path, raw: impl FnOnce() -> c_long) -> c_long {
    let Some(mut inside) = Inside::enter() else { return raw() };
    let state = inside.state();
    let Some(path) = state.ours(AT_FDCWD, name) else { return raw() };
    if let Some(errno) = state.failure_of(Call::MakeFolder) {
        return refuse(errno);
    }
    let answer = raw();
    if answer == 0 {
        state.note_name(&path, Change::MadeFolder(path.clone()));
        state.changed();
    }
    answer
}

/// Refuses, aloud, a call on data that the journal has no note for.
pub(crate) fn expect_not_ours(file: c_int, what: &str) {
    if let Some(mut inside) = Inside::enter() {
        let ours = matches!(inside.state().handles.get(&file), Some(Handle::Data(_)));
        drop(inside);
        expect(!ours, what);
    }
}

fn expect(known: bool, what: &str) {
    if !known {
        INSIDE.set(true);
        eprintln!("the shim does not know what {what} of an armed file does: teach it");
        std::process::abort();
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().first() == Some(&b'.'))
}

impl State {
    /// The whole path, if it lies in the armed folder, or is that folder.
    fn ours(&self, folder: c_int, name: &Path) -> Option<PathBuf> {
        let path = match (name.is_absolute(), folder) {
            (true, _) => name.to_owned(),
            (false, AT_FDCWD) => return None,
            (false, folder) => fs::read_link(format!("/proc/self/fd/{folder}")).ok()?.join(name),
        };
        path.starts_with(&self.root).then_some(path)
    }

    /// Counts a call, and says how it fails if it is to.
    fn failure_of(&mut self, call: Call) -> Option<c_int> {
        let count = &mut self.counts[call as usize];
        *count += 1;
        let failure = self.plan.failure.filter(|failure| failure.call == call)?;
        let fails = match failure.repeat {
            Repeat::Once => *count == failure.nth,
            Repeat::FromThenOn => *count >= failure.nth,
        };
        self.failed |= fails;
        fails.then_some(match failure.error {
            SystemError::Io => EIO,
            SystemError::NoSpace => ENOSPC,
        })
    }

    fn note_handle(&mut self, file: c_int, path: &Path, hidden: bool) {
        let about = fs::metadata(format!("/proc/self/fd/{file}")).expect("an open file");
        let handle = if about.is_dir() {
            Handle::Folder(path.to_owned())
        } else if hidden {
            Handle::Hidden
        } else {
            let key = (about.dev(), about.ino());
            if let Entry::Vacant(entry) = self.files.entry(key) {
                let mut options = fs::OpenOptions::new();
                let own = options.read(true).write(true).open(format!("/proc/self/fd/{file}"));
                let own = own.expect("a file that was just opened");
                entry.insert(File { own, lasting_bytes: about.len(), writes: Vec::new() });
                self.file_order.push(key);
            }
            Handle::Data(key)
        };
        self.handles.insert(file, handle);
    }

    /// I-UNDO: called under the lock under which it was done.
    fn note_name(&mut self, path: &Path, what: Change) {
        let folder = path.parent().expect("below the armed folder").to_owned();
        self.names.push(NameChange { folder, what });
    }

    /// Gives a file that is about to lose its name another, outside.
    fn keep(&mut self, path: &Path) -> Option<PathBuf> {
        self.removed_count += 1;
        let kept = self.removed.join(self.removed_count.to_string());
        fs::hard_link(path, &kept).is_ok().then_some(kept)
    }

    /// Counts a change, and ends the process if it was the last.
    fn changed(&mut self) {
        self.changes += 1;
        self.changes_since_failure += u64::from(self.failed);
        let due = |loss: &PowerLoss| match loss.since {
            Since::Armed => loss.nth == self.changes,
            Since::Failure => loss.nth == self.changes_since_failure,
        };
        if let Some(loss) = self.plan.power_loss.filter(due) {
            self.lose(loss);
            die();
        }
    }

    fn make_names_last(&mut self, folder: &Path) {
        let mut lasting: HashSet<PathBuf> = HashSet::from([folder.to_owned()]);
        // A folder that is gone for good takes along what was changed in it before.
        for at in (0..self.names.len()).rev() {
            if lasting.contains(&self.names[at].folder) {
                let change = self.names.remove(at);
                match change.what {
                    Change::Removed { kept, .. } | Change::Renamed { replaced: Some(kept), .. } => {
                        fs::remove_file(kept).expect("a file of the journal");
                    }
                    Change::RemovedFolder(path) => drop(lasting.insert(path)),
                    _ => {}
                }
            }
        }
    }

    /// Takes back what does not last.
    fn lose(&mut self, loss: PowerLoss) {
        if loss.fate == Fate::Kept {
            return;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(loss.seed);
        for key in &self.file_order {
            let file = self.files.get_mut(key).expect("in order");
            let writes = std::mem::take(&mut file.writes);
            file.undo(&writes);
            if loss.fate == Fate::Some {
                writes.iter().for_each(|write| file.keep_some(write, &mut rng));
            }
        }
        // How many changes each folder keeps.
        let mut counts: Vec<(PathBuf, usize)> = Vec::new();
        for change in &self.names {
            match counts.iter_mut().find(|(folder, _)| *folder == change.folder) {
                Some((_, count)) => *count += 1,
                None => counts.push((change.folder.clone(), 1)),
            }
        }
        let kept: HashMap<PathBuf, usize> = counts
            .iter()
            .map(|(folder, count)| match loss.fate {
                Fate::Some => (folder.clone(), rng.random_range(0..=*count)),
                _ => (folder.clone(), 0),
            })
            .collect();
        let mut left: HashMap<PathBuf, usize> = counts.into_iter().collect();
        let mut gone: HashSet<PathBuf> = HashSet::new();
        for change in std::mem::take(&mut self.names).into_iter().rev() {
            let left = left.get_mut(&change.folder).expect("counted");
            *left -= 1;
            if *left >= kept[&change.folder] {
                if !gone.contains(&change.folder) {
                    change.undo();
                }
            } else if let Change::RemovedFolder(path) = change.what {
                gone.insert(path);
            }
        }
    }
}

impl File {
    /// I-UNDO: called under the lock; notes what it wrote.
    fn write(&mut self, new: &[u8], offset: u64, raw: impl FnOnce() -> c_long) -> c_long {
        let mut old = self.read(offset, new.len());
        let written = raw();
        if written > 0 {
            let new = new[..written as usize].to_vec();
            old.truncate(new.len());
            self.writes.push(Write { offset, old, new: Some(new) });
        }
        written
    }

    /// I-UNDO: called under the lock; notes what it cut off.
    fn cut(&mut self, offset: u64, raw: impl FnOnce() -> c_long) -> c_long {
        let bytes = self.own.metadata().expect("an open file").len();
        expect(bytes >= offset, "an `ftruncate` to more than the length");
        let old = self.read(offset, (bytes - offset) as usize);
        let answer = raw();
        if answer == 0 {
            self.writes.push(Write { offset, old, new: None });
        }
        answer
    }

    /// As many bytes as there are, up to a number.
    fn read(&self, offset: u64, bytes_max: usize) -> Vec<u8> {
        let mut bytes = vec![0; bytes_max];
        let mut there = 0;
        while there < bytes.len() {
            match self.own.read_at(&mut bytes[there..], offset + there as u64) {
                Ok(0) => break,
                Ok(more) => there += more,
                Err(cause) => panic!("the shim cannot read what a call replaces: {cause}"),
            }
        }
        bytes.truncate(there);
        bytes
    }

    fn make_last(&mut self) {
        self.writes.clear();
        self.lasting_bytes = self.own.metadata().expect("an open file").len();
    }

    fn take_back(&mut self) {
        let writes = std::mem::take(&mut self.writes);
        self.undo(&writes);
    }

    fn undo(&self, writes: &[Write]) {
        if writes.is_empty() {
            return;
        }
        for write in writes.iter().rev() {
            self.own.write_all_at(&write.old, write.offset).expect("old bytes have room");
        }
        self.own.set_len(self.lasting_bytes).expect("a file can be cut");
    }

    fn keep_some(&self, write: &Write, rng: &mut ChaCha8Rng) {
        let whole = rng.random_range(0..4);
        let Some(new) = &write.new else {
            let bytes = self.own.metadata().expect("an open file").len();
            if whole > 1 && bytes > write.offset {
                self.own.set_len(write.offset).expect("a file can be cut");
            }
            return;
        };
        for (at, sector) in new.chunks(SECTOR_BYTES).enumerate() {
            let kept = match whole {
                0 => false,
                1 => rng.random(),
                _ => true,
            };
            if kept {
                let offset = write.offset + (at * SECTOR_BYTES) as u64;
                self.own.write_all_at(sector, offset).expect("bytes that were there have room");
            }
        }
    }
}

impl NameChange {
    fn undo(self) {
        let undone = match self.what {
            Change::Made(path) => fs::remove_file(path),
            Change::MadeFolder(path) => fs::remove_dir_all(path),
            Change::Renamed { from, to, replaced } => fs::rename(&to, from)
                .and_then(|()| replaced.map_or(Ok(()), |kept| fs::hard_link(kept, to))),
            Change::Removed { name, kept } => fs::hard_link(kept, name),
            Change::RemovedFolder(path) => fs::create_dir(path),
        };
        if let Err(cause) = undone {
            eprintln!("the shim cannot take back a change in {}: {cause}", self.folder.display());
            std::process::abort();
        }
    }
}

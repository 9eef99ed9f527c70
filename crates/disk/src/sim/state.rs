//! The contents of a simulated disk: now, lastingly, and in between.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::crash;
use super::faults::{Faults, ReadFault, SyncFault, WriteFault};

/// Bytes that the media write whole or not at all.
pub const SECTOR_BYTES: usize = 512;

/// Bytes of a cache line, in which persistent memory gets what is stored to it.
const LINE_BYTES: usize = 64;
/// Bytes that a line gets there whole.
const WORD_BYTES: usize = 8;

/// Which file, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(usize);

/// The folder in which all others lie.
pub(super) const ROOT: FileId = FileId(0);

/// A name in a folder. It ends with its folder, whatever of it lasts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) folder: FileId,
    pub(super) name: String,
}

impl Name {
    pub(super) fn new(folder: FileId, name: &str) -> Name {
        Name { folder, name: name.to_owned() }
    }
}

/// A change of names, done at once or not at all.
#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Put { name: Name, id: FileId },
    Rename { from: Name, to: Name, id: FileId },
    Remove { name: Name, id: FileId },
}

/// A change of names that does not last for sure.
#[derive(Debug, Clone)]
pub(super) struct PendingName {
    pub(super) change: NameChange,
    /// After a sync that failed: no later sync makes it last.
    is_doubtful: bool,
}

pub(super) type Names = BTreeMap<Name, FileId>;

impl NameChange {
    /// All names of a change are in one folder.
    fn folder(&self) -> FileId {
        self.touched()[0].folder
    }

    fn touched(&self) -> [&Name; 2] {
        match self {
            NameChange::Put { name, .. } | NameChange::Remove { name, .. } => [name, name],
            NameChange::Rename { from, to, .. } => [from, to],
        }
    }

    fn touches(&self, other: &NameChange) -> bool {
        self.touched().iter().any(|name| other.touched().contains(name))
    }

    /// Does it to `names`, in which earlier changes may have been lost.
    pub(super) fn apply(&self, names: &mut Names) {
        match self {
            NameChange::Put { name, id } => {
                names.insert(name.clone(), *id);
            }
            NameChange::Rename { from, to, id } => {
                if names.get(from) == Some(id) {
                    names.remove(from);
                }
                names.insert(to.clone(), *id);
            }
            NameChange::Remove { name, id } => {
                if names.get(name) == Some(id) {
                    names.remove(name);
                }
            }
        }
    }
}

/// A write that does not last for sure.
#[derive(Debug, Clone)]
pub(super) struct Write {
    pub(super) offset: usize,
    /// Empty: the file is cut off at `offset`.
    pub(super) bytes: Vec<u8>,
    /// Pieces of so many bytes get there whole or not at all.
    pub(super) unit: usize,
}

impl Write {
    /// A write by a call, or of a page of a mapping.
    fn of_sectors(offset: usize, bytes: Vec<u8>) -> Write {
        Write { offset, bytes, unit: SECTOR_BYTES }
    }

    pub(super) fn limit(&self) -> usize {
        self.offset + self.bytes.len()
    }

    pub(super) fn is_cut(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Does it to `file`, whole.
    pub(super) fn apply(&self, file: &mut Vec<u8>) {
        match self.is_cut() {
            true => file.truncate(self.offset),
            false => overlay(file, self.offset, &self.bytes),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct FileState {
    /// Then it has no bytes, but names.
    is_folder: bool,
    /// The bytes that reads see; images share them.
    pub(super) now: Arc<Vec<u8>>,
    /// The bytes that are there for sure after a crash, where no doubtful write lies above it.
    pub(super) lasting: Arc<Vec<u8>>,
    /// Writes that a failed sync was to make last, where no lasting write lies above them.
    pub(super) doubtful: Vec<Write>,
    /// Writes since the last sync.
    pub(super) unsynced: Vec<Write>,
}

impl FileState {
    /// Makes unsynced writes last. A doubtful write comes before all of them, so where they
    /// overlap nothing of it can show any more.
    fn settle(&mut self) {
        for write in std::mem::take(&mut self.unsynced) {
            let doubtful = std::mem::take(&mut self.doubtful);
            self.doubtful = doubtful.into_iter().flat_map(|older| cut(older, &write)).collect();
            write.apply(Arc::make_mut(&mut self.lasting));
        }
    }

    /// The bytes that reads see when unsynced writes are gone.
    fn forget_unsynced(&mut self) {
        self.unsynced.clear();
        self.now = Arc::clone(&self.lasting);
        for write in &self.doubtful {
            write.apply(Arc::make_mut(&mut self.now));
        }
    }
}

/// The rest of `older` outside of `newer`.
fn cut(older: Write, newer: &Write) -> Vec<Write> {
    match (older.is_cut(), newer.is_cut()) {
        (false, false) => {}
        // Nothing of the older one is left beyond.
        (_, true) if older.offset >= newer.offset => return Vec::new(),
        (true, true) => return vec![older],
        (false, true) => {
            let kept = older.bytes.len().min(newer.offset - older.offset);
            return vec![Write { bytes: older.bytes[..kept].to_vec(), ..older }];
        }
        // The file is longer again: at most there are zeros up to the newer one.
        (true, false) if older.offset >= newer.limit() => return vec![older],
        (true, false) if older.offset >= newer.offset => return Vec::new(),
        (true, false) => {
            let bytes = vec![0; newer.offset - older.offset];
            return vec![Write { bytes, ..older }];
        }
    }
    if newer.limit() <= older.offset || older.limit() <= newer.offset {
        return vec![older];
    }
    let mut left = Vec::new();
    if older.offset < newer.offset {
        let bytes = older.bytes[..newer.offset - older.offset].to_vec();
        left.push(Write { bytes, ..older });
    }
    if newer.limit() < older.limit() {
        let bytes = older.bytes[newer.limit() - older.offset..].to_vec();
        left.push(Write { offset: newer.limit(), bytes, unit: older.unit });
    }
    left
}

/// Writes into `file`, with zeros up to `offset` where it is shorter.
pub(super) fn overlay(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let limit = offset + bytes.len();
    if file.len() < limit {
        file.resize(limit, 0);
    }
    file[offset..limit].copy_from_slice(bytes);
}

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) names: Names,
    pub(super) lasting_names: Names,
    /// Changes of names since they last lasted, in order.
    pub(super) name_changes: Vec<PendingName>,
    files: Vec<FileState>,
    faults: Faults,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) syncs: u64,
    /// Changes of names.
    pub(super) renames: u64,
    /// Looks at names.
    pub(super) looks: u64,
    pub(super) operations: u64,
    pub(super) stop_at: Option<u64>,
    /// Whether files lie in persistent memory.
    pub(super) is_dax: bool,
    pub(super) watch: Option<Watch>,
}

/// Images that are taken as changes come.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    pub(super) seed: u64,
    /// Of how many changes one comes with an image before it.
    pub(super) every: u64,
    pub(super) taken: Vec<State>,
}

impl Default for State {
    fn default() -> State {
        State {
            names: Names::new(),
            lasting_names: Names::new(),
            name_changes: Vec::new(),
            files: vec![FileState { is_folder: true, ..FileState::default() }],
            faults: Faults::default(),
            reads: 0,
            writes: 0,
            syncs: 0,
            renames: 0,
            looks: 0,
            operations: 0,
            stop_at: None,
            is_dax: false,
            watch: None,
        }
    }
}

impl State {
    pub(super) fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
        (self.reads, self.writes, self.syncs, self.renames, self.looks) = (0, 0, 0, 0, 0);
    }

    /// An empty disk.
    pub(super) fn empty(is_dax: bool) -> State {
        State { is_dax, ..State::default() }
    }

    pub(super) fn check_power(&self) -> io::Result<()> {
        match self.stop_at {
            Some(stop_at) if self.operations >= stop_at => {
                Err(io::Error::other("the simulated disk has no power"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn begin_change(&mut self) -> io::Result<()> {
        self.check_power()?;
        if let Some(mut watch) = self.watch.take() {
            if self.operations.is_multiple_of(watch.every) {
                watch.taken.push(crash::image_of(self, watch.seed.wrapping_add(self.operations)));
            }
            self.watch = Some(watch);
        }
        self.operations += 1;
        Ok(())
    }

    /// Of a change of names.
    pub(super) fn begin_rename(&mut self) -> io::Result<()> {
        self.begin_change()?;
        let fault = self.faults.of_name(self.renames);
        self.renames += 1;
        fault.map_or(Ok(()), |kind| Err(injected(kind, "change of names")))
    }

    /// Begins a look at names.
    pub(super) fn look(&mut self) -> io::Result<()> {
        self.check_power()?;
        let fault = self.faults.of_look(self.looks);
        self.looks += 1;
        fault.map_or(Ok(()), |kind| Err(injected(kind, "look at names")))
    }

    /// A file of a folder.
    pub(super) fn find(&self, folder: FileId, name: &str) -> io::Result<FileId> {
        match self.entry(folder, name) {
            Some(id) if !self.files[id.0].is_folder => Ok(id),
            _ => Err(absent(name)),
        }
    }

    fn entry(&self, folder: FileId, name: &str) -> Option<FileId> {
        self.names.get(&Name::new(folder, name)).copied()
    }

    /// A folder by its path, from the root on.
    pub(super) fn find_folder(&self, path: &str) -> io::Result<FileId> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(ROOT, |folder, name| match self.entry(folder, name) {
            Some(id) if self.files[id.0].is_folder => Ok(id),
            _ => Err(absent(path)),
        })
    }

    /// The folder of a path, made where it is not there.
    pub(super) fn make_folder(&mut self, path: &str) -> io::Result<FileId> {
        let mut folder = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            folder = match self.entry(folder, name) {
                Some(id) if self.files[id.0].is_folder => id,
                Some(_) => return Err(io::Error::new(io::ErrorKind::NotADirectory, name)),
                None => {
                    self.begin_rename()?;
                    let id = self.new_folder();
                    self.change_names(NameChange::Put { name: Name::new(folder, name), id });
                    id
                }
            };
        }
        Ok(folder)
    }

    /// Takes a folder away, after all that is in it, one name after the other.
    pub(super) fn remove_folder(&mut self, path: &str) -> io::Result<()> {
        let id = self.find_folder(path)?;
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        for (inner, of) in self.names_in(id) {
            if self.files[of.0].is_folder {
                self.remove_folder(&format!("{path}/{inner}"))?;
                continue;
            }
            self.begin_rename()?;
            self.change_names(NameChange::Remove { name: Name::new(id, &inner), id: of });
        }
        let parent = self.find_folder(parent)?;
        self.begin_rename()?;
        self.change_names(NameChange::Remove { name: Name::new(parent, name), id });
        Ok(())
    }

    fn names_in(&self, folder: FileId) -> Vec<(String, FileId)> {
        let names = self.names.range(Name::new(folder, "")..);
        let names = names.take_while(|(name, _)| name.folder == folder);
        names.map(|(name, id)| (name.name.clone(), *id)).collect()
    }

    /// The names of the files of a folder, or of its folders.
    pub(super) fn list(&self, folder: FileId, of_folders: bool) -> Vec<String> {
        let names = self.names_in(folder).into_iter();
        let names = names.filter(|(_, id)| self.files[id.0].is_folder == of_folders);
        names.map(|(name, _)| name).collect()
    }

    pub(super) fn is_folder(&self, id: FileId) -> bool {
        self.files[id.0].is_folder
    }

    pub(super) fn new_file(&mut self) -> FileId {
        self.files.push(FileState::default());
        FileId(self.files.len() - 1)
    }

    fn new_folder(&mut self) -> FileId {
        let id = self.new_file();
        self.files[id.0].is_folder = true;
        id
    }

    pub(super) fn plant(&mut self, folder: FileId, name: &str, bytes: Arc<Vec<u8>>) {
        let id = self.new_file();
        let file = &mut self.files[id.0];
        (file.now, file.lasting) = (Arc::clone(&bytes), bytes);
        self.plant_name(folder, name, id);
    }

    pub(super) fn plant_folder(&mut self, folder: FileId, name: &str) -> FileId {
        let id = self.new_folder();
        self.plant_name(folder, name, id);
        id
    }

    fn plant_name(&mut self, folder: FileId, name: &str, id: FileId) {
        self.names.insert(Name::new(folder, name), id);
        self.lasting_names.insert(Name::new(folder, name), id);
    }

    pub(super) fn file(&self, id: FileId) -> &FileState {
        &self.files[id.0]
    }

    /// Files that have a name now, or would have one after some crash.
    pub(super) fn files_in_reach(&self) -> Vec<FileId> {
        let changed = self.name_changes.iter().map(|pending| match &pending.change {
            NameChange::Put { id, .. }
            | NameChange::Rename { id, .. }
            | NameChange::Remove { id, .. } => *id,
        });
        let mut ids: Vec<_> = self.lasting_names.values().copied().chain(changed).collect();
        ids.sort();
        ids.dedup();
        ids
    }

    pub(super) fn bytes_of(&self, id: FileId) -> &[u8] {
        &self.files[id.0].now
    }

    pub(super) fn named_bytes(&self) -> u64 {
        self.names.values().map(|id| self.bytes_of(*id).len() as u64).sum()
    }

    pub(super) fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(PendingName { change, is_doubtful: false });
    }

    pub(super) fn read(&mut self, id: FileId, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.check_power()?;
        let fault = self.faults.of_read(self.reads);
        self.reads += 1;
        let file = &self.files[id.0].now;
        let rest = usize::try_from(offset).ok().and_then(|offset| file.get(offset..));
        let mut available = rest.unwrap_or_default();
        match fault {
            Some(ReadFault::Error(kind)) => return Err(injected(kind, "read")),
            Some(ReadFault::Short) => available = &available[..available.len().min(into.len() / 2)],
            Some(ReadFault::Flip(_)) | None => {}
        }
        let Some(whole) = available.get(..into.len()) else {
            into[..available.len()].copy_from_slice(available);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends in the read"));
        };
        into.copy_from_slice(whole);
        if let Some(ReadFault::Flip(at)) = fault
            && !into.is_empty()
        {
            into[at % whole.len()] ^= 1;
        }
        Ok(())
    }

    pub(super) fn write(&mut self, id: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.begin_change()?;
        let fault = self.faults.of_write(self.writes);
        self.writes += 1;
        let (kept, answer) = match fault {
            Some(WriteFault::Error(kind)) => return Err(injected(kind, "write")),
            Some(WriteFault::Torn(kind)) => {
                let sectors = bytes.len() / SECTOR_BYTES;
                (&bytes[..sectors / 2 * SECTOR_BYTES], Err(injected(kind, "write")))
            }
            None => (bytes, Ok(())),
        };
        let total = self.named_bytes();
        let file = &mut self.files[id.0];
        let too_far = || io::Error::new(io::ErrorKind::FileTooLarge, "offset beyond memory");
        let offset = usize::try_from(offset).map_err(|_| too_far())?;
        let limit = offset.checked_add(kept.len()).ok_or_else(too_far)?;
        let growth = limit.saturating_sub(file.now.len()) as u64;
        if growth > 0 && total.saturating_add(growth) > self.faults.bytes_max() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the simulated disk is full"));
        }
        if !kept.is_empty() {
            overlay(Arc::make_mut(&mut file.now), offset, kept);
            file.unsynced.push(Write::of_sectors(offset, kept.to_vec()));
        }
        answer
    }

    /// A store to mapped bytes of the file.
    pub(super) fn store(&mut self, id: FileId, offset: usize, bytes: &[u8]) {
        if self.begin_change().is_err() || bytes.is_empty() {
            return;
        }
        let file = &mut self.files[id.0];
        overlay(Arc::make_mut(&mut file.now), offset, bytes);
        if !self.is_dax {
            file.unsynced.push(Write::of_sectors(offset, bytes.to_vec()));
            return;
        }
        // Each line leaves the cache by itself, before the next store to it or after.
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let (line, behind) = rest.split_at(rest.len().min(LINE_BYTES - at % LINE_BYTES));
            file.unsynced.push(Write { offset: at, bytes: line.to_vec(), unit: WORD_BYTES });
            at += line.len();
            rest = behind;
        }
    }

    /// Writes the lines of a range of mapped bytes back.
    pub(super) fn persist(&mut self, id: FileId, offset: usize, bytes: usize) -> io::Result<()> {
        self.begin_change()?;
        if !self.is_dax || bytes == 0 {
            return Ok(());
        }
        let first = offset / LINE_BYTES * LINE_BYTES;
        let limit = (offset + bytes).next_multiple_of(LINE_BYTES);
        let file = &mut self.files[id.0];
        let limit = limit.min(file.now.len());
        let lines =
            Write { offset: first, bytes: file.now[first..limit].to_vec(), unit: WORD_BYTES };
        // What else these lines held is gone, and nothing of it can show any more.
        for writes in [&mut file.doubtful, &mut file.unsynced] {
            let older = std::mem::take(writes);
            *writes = older.into_iter().flat_map(|older| cut(older, &lines)).collect();
        }
        lines.apply(Arc::make_mut(&mut file.lasting));
        Ok(())
    }

    pub(super) fn cut(&mut self, id: FileId, bytes: u64) -> io::Result<()> {
        self.begin_change()?;
        let file = &mut self.files[id.0];
        let offset = usize::try_from(bytes).unwrap_or(usize::MAX);
        if offset < file.now.len() {
            Arc::make_mut(&mut file.now).truncate(offset);
            file.unsynced.push(Write::of_sectors(offset, Vec::new()));
        }
        Ok(())
    }

    fn next_sync(&mut self) -> io::Result<Option<SyncFault>> {
        self.begin_change()?;
        let fault = self.faults.of_sync(self.syncs);
        self.syncs += 1;
        Ok(fault)
    }

    pub(super) fn sync_file(&mut self, id: FileId) -> io::Result<()> {
        let fault = self.next_sync()?;
        let file = &mut self.files[id.0];
        match fault {
            None => {
                file.settle();
                Ok(())
            }
            Some(SyncFault::Doubtful(kind)) => {
                file.doubtful.append(&mut file.unsynced);
                Err(injected(kind, "sync"))
            }
            Some(SyncFault::Lost(kind)) => {
                file.forget_unsynced();
                Err(injected(kind, "sync"))
            }
        }
    }

    pub(super) fn sync_names(&mut self, folder: FileId) -> io::Result<()> {
        match self.next_sync()? {
            None => {
                // What is doubtful stays so, but for names that a lasting change has decided.
                let (settled, kept) = std::mem::take(&mut self.name_changes)
                    .into_iter()
                    .partition(|pending| pending.change.folder() == folder && !pending.is_doubtful);
                self.name_changes = kept;
                let settled: Vec<PendingName> = settled;
                for PendingName { change, .. } in settled {
                    self.name_changes.retain(|older| !older.change.touches(&change));
                    change.apply(&mut self.lasting_names);
                }
                Ok(())
            }
            Some(SyncFault::Doubtful(kind) | SyncFault::Lost(kind)) => {
                let of_folder = |pending: &&mut PendingName| pending.change.folder() == folder;
                for pending in self.name_changes.iter_mut().filter(of_folder) {
                    pending.is_doubtful = true;
                }
                Err(injected(kind, "sync of names"))
            }
        }
    }

    pub(super) fn damage(&mut self, id: FileId, offset: u64, mask: u8) -> io::Result<()> {
        let file = &mut self.files[id.0];
        let end = || io::Error::new(io::ErrorKind::UnexpectedEof, "offset beyond the end");
        let offset = usize::try_from(offset).map_err(|_| end())?;
        *Arc::make_mut(&mut file.now).get_mut(offset).ok_or_else(end)? ^= mask;
        if let Some(byte) = Arc::make_mut(&mut file.lasting).get_mut(offset) {
            *byte ^= mask;
        }
        for write in file.doubtful.iter_mut().chain(&mut file.unsynced) {
            if let Some(byte) =
                offset.checked_sub(write.offset).and_then(|at| write.bytes.get_mut(at))
            {
                *byte ^= mask;
            }
        }
        Ok(())
    }

    pub(super) fn truncate(&mut self, id: FileId, bytes: u64) {
        let file = &mut self.files[id.0];
        Arc::make_mut(&mut file.now).truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        *file = FileState {
            lasting: Arc::clone(&file.now),
            now: std::mem::take(&mut file.now),
            ..FileState::default()
        };
    }
}

fn absent(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{name} is not there"))
}

fn injected(kind: io::ErrorKind, what: &str) -> io::Error {
    io::Error::new(kind, format!("the {what} fails as planned"))
}

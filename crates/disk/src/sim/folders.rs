//! Folders on the simulated disk.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use super::SimDisk;
use crate::{Disk, Folders};

/// Nothing is locked, and what is open to be read only says so, and refuses nothing: a test looks at
/// [`SimDisk::operations`].
#[derive(Debug)]
pub(super) struct SimFolders(pub(super) SimDisk);

impl Folders for SimFolders {
    fn open(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        let mut state = self.0.lock();
        state.look()?;
        let folder = state.make_folder(path)?;
        // As of real ones: the folder's own name may be new.
        if let Some((parent, _)) = path.rsplit_once('/').or((!path.is_empty()).then_some(("", "")))
        {
            let parent = state.find_folder(parent)?;
            state.sync_names(parent)?;
        }
        drop(state);
        Ok(Arc::new(SimDisk { folder, ..self.0.clone() }))
    }

    fn open_read_only(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        self.0.lock().look()?;
        Ok(Arc::new(SimDisk { is_read_only: true, ..self.0.folder(path)? }))
    }

    fn open_unlocked(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        self.open_read_only(path)
    }

    fn make(&self, path: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.check_power()?;
        state.make_folder(path).map(drop)
    }

    fn is_there(&self, path: &str) -> io::Result<bool> {
        let mut state = self.0.lock();
        state.look()?;
        Ok(state.find_folder(path).is_ok())
    }

    fn has_file(&self, path: &str, file: &str) -> io::Result<bool> {
        let mut state = self.0.lock();
        state.look()?;
        Ok(state.find_folder(path).and_then(|folder| state.find(folder, file)).is_ok())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut state = self.0.lock();
        state.look()?;
        Ok(state.list(state.find_folder(path)?, true))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.check_power()?;
        state.remove_folder(path)
    }

    fn written(&self, _path: &str, _file: &str) -> Option<SystemTime> {
        None
    }
}

//! The folders that engines work in.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Error;

/// A fresh folder, which goes with all that is in it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes it, or takes one of that name which an earlier run of this process left.
    pub(crate) fn new(parent: &Path, name: &str) -> Result<Folder, Error> {
        let path = parent.join(format!("sapwood-bench-{}-{name}", std::process::id()));
        fs::create_dir_all(&path)
            .map_err(|error| format!("{}: {error}: choose a folder with --dir", path.display()))?;
        Ok(Folder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Bytes that its files take of the disk; none without files.
    pub(crate) fn bytes(&self) -> Result<Option<u64>, Error> {
        let bytes = bytes_below(&self.0)?;
        Ok((bytes > 0).then_some(bytes))
    }

    /// Syncs all its files, so that what comes next finds the disk idle.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        sync_below(&self.0)
    }
}

fn sync_below(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => sync_below(&path)?,
            false => fs::File::open(&path)?.sync_data()?,
        }
    }
    Ok(())
}

fn bytes_below(folder: &Path) -> Result<u64, Error> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += match metadata.is_dir() {
            true => bytes_below(&entry.path())?,
            // `st_blocks` counts 512 bytes, whatever the file system's blocks are.
            false => metadata.blocks() * 512,
        };
    }
    Ok(bytes)
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is no reason to lose the figures.
        let _ = fs::remove_dir_all(&self.0);
    }
}

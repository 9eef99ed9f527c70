//! A simulated disk whose works in the background go another way.

use sapwood_disk::{CachedFile, Disk, File, Presence, Read, SimDisk, Work};
use std::io;
use std::sync::Arc;

/// The disk, and what it does with works.
pub(crate) struct BackgroundDisk<S> {
    disk: SimDisk,
    spawn: S,
}

impl<S: Fn(Vec<Work>) + Send + Sync + 'static> BackgroundDisk<S> {
    pub(crate) fn over(disk: &SimDisk, spawn: S) -> Arc<dyn Disk> {
        Arc::new(BackgroundDisk { disk: disk.clone(), spawn })
    }
}

impl<S> std::fmt::Debug for BackgroundDisk<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.disk.fmt(f)
    }
}

impl<S: Fn(Vec<Work>) + Send + Sync> Disk for BackgroundDisk<S> {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.disk.create(name)
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.disk.open(name)
    }
    fn cached(&self, name: &str, presence: Presence) -> io::Result<Arc<dyn CachedFile>> {
        self.disk.cached(name, presence)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }
    fn read_many(&self, reads: &mut [Read<'_>]) {
        self.disk.read_many(reads);
    }
    fn spawn(&self, works: Vec<Work>) {
        (self.spawn)(works);
    }
    fn place(&self) -> String {
        self.disk.place()
    }
}

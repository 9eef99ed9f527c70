//! Where segments lie: in memory, or in files of a folder, with a manifest that says which of them count.
//!
//! A segment is a file of its own, which is written, synced and named before a manifest has it. The manifest is
//! replaced as a whole, by one rename; files that it does not have are left by a crash, or by a merge, and are
//! removed. So a segment is there whole or not at all, and what replaces others is there instead of them.
//!
//! The manifest is a line that says what it is, a line with the checksum of what follows, and JSON. A copy of it is
//! written before files go that it does not have, so that a damaged manifest does not cost all segments
//! ([`salvage`](crate::salvage)); opening does not read it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sapwood_disk::{Disk, Presence, checksum, is_full};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::live::state::StateLayout;
use crate::log::Order;
use crate::schema::{Dimension, DimensionKind};
use crate::segment::Segment;

const MANIFEST: &str = "manifest";
const MANIFEST_NEW: &str = "manifest.new";
const MANIFEST_COPY: &str = "manifest.copy";
const TITLE: &str = "sapwood rollup manifest 2";
const TITLE_OF_ANY_VERSION: &str = "sapwood rollup manifest ";
const VERSION: u32 = 2;
/// Without the checks of segments. Still read.
const TITLE_1: &str = "sapwood rollup manifest 1";
const SEGMENT: &str = "segment-";

/// Segments, and what they have of the batches. One thread at a time changes it.
#[derive(Debug)]
pub(crate) struct Store {
    disk: Option<Arc<dyn Disk>>,
    manifest: Manifest,
    /// A number that no file has or had.
    next: u64,
    /// The first write or sync that failed: what a later sync says about its files is not to be believed.
    failed: Option<Error>,
}

/// Which segments count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// All batches up to this number are in the segments.
    pub(crate) batches: u64,
    /// How far each source is in the segments.
    pub(crate) offsets: BTreeMap<String, u64>,
    dimensions: Vec<KnownDimension>,
    pub(crate) segments: Vec<KnownSegment>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownDimension {
    name: String,
    kind: KnownKind,
}

/// Stored: do not rename.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KnownKind {
    Text,
    Long,
    Double,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownSegment {
    pub(crate) file: String,
    pub(crate) rows: u64,
    bytes: u64,
    /// The [check](Segment::check_of_file) of its file. None of a manifest of the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<u32>,
}

impl KnownSegment {
    /// Opens its file.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is another, or damaged; [`Error::Io`].
    pub(crate) fn open(&self, disk: &dyn Disk, layout: &StateLayout) -> Result<Segment> {
        let view = disk.view(&self.file);
        let view = view.map_err(|cause| Error::io(format!("open {}", self.file), &cause))?;
        let segment = Segment::open(self.file.as_str(), view, layout)?;
        if (segment.rows() as u64, segment.bytes()) != (self.rows, self.bytes) {
            let what = format!("{} rows in {} bytes are expected", self.rows, self.bytes);
            return Err(Error::corrupt(0, what).in_file(&self.file));
        }
        if self.check.is_some_and(|check| check != segment.check_of_file()) {
            let what = "it is another segment, under the name of this one";
            return Err(Error::corrupt(0, what).in_file(&self.file));
        }
        Ok(segment)
    }
}

impl Manifest {
    /// What a manifest says of these segments, dimensions, and batches.
    pub(crate) fn new(
        order: &Order,
        dimensions: &[Dimension],
        segments: &[Arc<Segment>],
    ) -> Manifest {
        let kind = |kind| match kind {
            DimensionKind::Text => KnownKind::Text,
            DimensionKind::Long => KnownKind::Long,
            DimensionKind::Double => KnownKind::Double,
        };
        let dimension =
            |known: &Dimension| KnownDimension { name: known.name.clone(), kind: kind(known.kind) };
        let segment = |known: &Arc<Segment>| KnownSegment {
            file: known.name().to_owned(),
            rows: known.rows() as u64,
            bytes: known.bytes(),
            check: Some(known.check_of_file()),
        };
        Manifest {
            batches: order.number,
            offsets: order.offsets.clone(),
            dimensions: dimensions.iter().map(dimension).collect(),
            segments: segments.iter().map(segment).collect(),
        }
    }

    /// The dimensions, with those that were discovered.
    pub(crate) fn dimensions(&self) -> impl Iterator<Item = Dimension> {
        self.dimensions.iter().map(|known| Dimension {
            name: known.name.clone(),
            kind: match known.kind {
                KnownKind::Text => DimensionKind::Text,
                KnownKind::Long => DimensionKind::Long,
                KnownKind::Double => DimensionKind::Double,
            },
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_string(self).expect("names and numbers are JSON");
        format!("{TITLE}\n{:08x}\n{json}\n", checksum(json.as_bytes())).into_bytes()
    }

    fn read(disk: &dyn Disk, name: &str) -> Result<Manifest> {
        let view = disk.view(name).map_err(|cause| Error::io(format!("read {name}"), &cause))?;
        Manifest::decode(view.bytes()).map_err(|error| error.in_file(name))
    }

    /// The newest of a folder that can be read, and what is wrong with the one that should count. `sealed` is the
    /// number of a batch that it is known to have, if there was one.
    ///
    /// # Errors
    /// [`Error::Io`] where the folder cannot be listed, [`Error::Newer`].
    pub(crate) fn newest(
        disk: &dyn Disk,
        sealed: u64,
    ) -> Result<(Option<Manifest>, Option<Error>)> {
        let list = disk.list().map_err(|cause| Error::io("list the segments", &cause))?;
        let is_there = |name: &str| list.iter().any(|there| there == name);
        let damage = match is_there(MANIFEST) {
            true => match Manifest::read(disk, MANIFEST) {
                Ok(manifest) => return Ok((Some(manifest), None)),
                // An older one is not what counts then.
                Err(newer @ Error::Newer { .. }) => return Err(newer),
                Err(error) => error,
            },
            // None was written yet, and the log has all batches.
            false if sealed == 0 && !is_there(MANIFEST_COPY) => {
                return Ok((Some(Manifest::default()), None));
            }
            false => Error::corrupt(0, "it is missing").in_file(MANIFEST),
        };
        // The new one is written when its segments and the log last, and is gone once it has the other's name. The
        // copy may be that of the manifest before: then its files are there, and the log has all batches behind it.
        let others = [MANIFEST_NEW, MANIFEST_COPY].into_iter().filter(|name| is_there(name));
        let found = others.filter_map(|name| Manifest::read(disk, name).ok()).next();
        Ok((found, Some(damage)))
    }

    /// Reads what [`encode`](Self::encode) wrote. Any bytes may be given.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Manifest> {
        let corrupt = |offset: usize, what: &str| Error::corrupt(offset as u64, what);
        let text = std::str::from_utf8(bytes).map_err(|_| corrupt(0, "text is expected"))?;
        let version = text.lines().next().and_then(|line| line.strip_prefix(TITLE_OF_ANY_VERSION));
        if let Some(found) = version.and_then(|version| version.parse().ok()) {
            Error::expect_known(found, VERSION)?;
        }
        let titled = [TITLE, TITLE_1].iter().find_map(|title| text.strip_prefix(title));
        let Some(rest) = titled.and_then(|rest| rest.strip_prefix('\n')) else {
            return Err(corrupt(0, &format!("`{TITLE}` is expected")));
        };
        let at = TITLE.len() + 1;
        let parts =
            rest.split_once('\n').and_then(|(sum, json)| Some((sum, json.strip_suffix('\n')?)));
        let Some((sum, json)) = parts else {
            return Err(corrupt(at, "a checksum and a line of JSON are expected"));
        };
        if sum != format!("{:08x}", checksum(json.as_bytes())) {
            return Err(corrupt(at, "the checksum does not match"));
        }
        serde_json::from_str(json).map_err(|error| corrupt(at + sum.len() + 1, &error.to_string()))
    }
}

impl Store {
    /// Without files.
    pub(crate) fn in_memory() -> Store {
        Store { disk: None, manifest: Manifest::default(), next: 1, failed: None }
    }

    /// Opens the segments of a folder, if it has any, and removes what a crash left.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        layout: &StateLayout,
    ) -> Result<(Store, Vec<Arc<Segment>>)> {
        let list = disk.list().map_err(|cause| Error::io("list the segments", &cause))?;
        let manifest = match list.iter().any(|name| name == MANIFEST) {
            true => Manifest::read(&*disk, MANIFEST)?,
            false => Manifest::default(),
        };
        let mut segments = Vec::with_capacity(manifest.segments.len());
        let mut manifest = manifest;
        for known in &mut manifest.segments {
            let segment = known.open(&*disk, layout)?;
            known.check = Some(segment.check_of_file());
            segments.push(Arc::new(segment));
        }
        let numbers = list.iter().filter_map(|name| number_of(name));
        let next = numbers.max().unwrap_or(0) + 1;
        let is_written = manifest != Manifest::default() && !disk.is_read_only();
        let mut store = Store { disk: Some(disk), manifest, next, failed: None };
        if is_written {
            // The page cache may have one of which a sync failed: others go only once it lasts.
            store.publish(store.manifest.clone(), || Ok(()))?;
        }
        Ok((store, segments))
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Writes a segment, which does not count yet.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Failed`] after one that failed.
    pub(crate) fn write(&mut self, bytes: Vec<u8>, layout: &StateLayout) -> Result<Arc<Segment>> {
        let name = format!("{SEGMENT}{:08}", self.next);
        // Whatever becomes of it, a file of that name may be there.
        self.next += 1;
        let Some(disk) = self.expect_sound()? else {
            return Ok(Arc::new(Segment::open(name, Arc::new(bytes), layout)?));
        };
        let write = || {
            let file = disk.cached(&name, Presence::New)?;
            file.write_at(0, &bytes)?;
            file.sync()?;
            disk.view(&name)
        };
        let view = write().map_err(|cause| Error::io(format!("write {name}"), &cause));
        Ok(Arc::new(Segment::open(name, self.noted(view)?, layout)?))
    }

    /// Lets the segments of a manifest count, and no others. `before` runs once they last, and before they count.
    ///
    /// # Errors
    /// [`Error::Io`], and those of `before`: the manifest before counts, or this one. [`Error::Failed`] after one
    /// that failed.
    pub(crate) fn publish(
        &mut self,
        manifest: Manifest,
        before: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some(disk) = self.expect_sound()? else {
            self.manifest = manifest;
            return Ok(());
        };
        let write = || {
            let refused = |cause| Error::io("write the manifest of segments", &cause);
            disk.sync().map_err(refused)?;
            before()?;
            replace_manifest(&*disk, &manifest).map_err(refused)
        };
        let written = write();
        self.noted(written)?;
        self.manifest = manifest;
        // What cannot go now goes another time: it does not count.
        let _left = self.remove_others(&*disk);
        Ok(())
    }

    /// The disk, if there is one that takes something.
    fn expect_sound(&self) -> Result<Option<Arc<dyn Disk>>> {
        match &self.failed {
            Some(error) => Err(Error::Failed(error.to_string())),
            None => Ok(self.disk.clone()),
        }
    }

    fn noted<T>(&mut self, done: Result<T>) -> Result<T> {
        // A full disk has refused a write, and all syncs are what they were.
        if let Err(error) = &done
            && !matches!(error, Error::Io { kind, .. } if is_full(*kind))
        {
            self.failed.get_or_insert(error.clone());
        }
        done
    }

    /// Removes segments that do not count.
    fn remove_others(&self, disk: &dyn Disk) -> std::io::Result<()> {
        let counts = |name: &String| self.manifest.segments.iter().any(|known| known.file == *name);
        for name in disk.list()? {
            if number_of(&name).is_some() && !counts(&name) {
                disk.remove(&name)?;
            }
        }
        Ok(())
    }
}

fn replace_manifest(disk: &dyn Disk, manifest: &Manifest) -> std::io::Result<()> {
    let bytes = manifest.encode();
    let write = |name: &str| {
        if disk.list()?.iter().any(|there| there == name) {
            disk.remove(name)?;
        }
        let file = disk.cached(name, Presence::New)?;
        file.write_at(0, &bytes)?;
        file.sync()
    };
    write(MANIFEST_NEW)?;
    disk.rename(MANIFEST_NEW, MANIFEST)?;
    disk.sync()?;
    write(MANIFEST_COPY)?;
    disk.sync()
}

/// The number of a segment, by the name of its file.
fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix(SEGMENT)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_read_back_and_damage_is_told() {
        let manifest = Manifest {
            batches: 7,
            offsets: BTreeMap::from([("topic \"a\"\n".to_owned(), u64::MAX)]),
            dimensions: vec![KnownDimension { name: "é".to_owned(), kind: KnownKind::Double }],
            segments: vec![KnownSegment {
                file: "segment-00000001".to_owned(),
                rows: 3,
                bytes: 99,
                check: Some(7),
            }],
        };
        let bytes = manifest.encode();
        let first = String::from_utf8(bytes.clone()).expect("text").replace(TITLE, TITLE_1);
        assert_eq!(Manifest::decode(first.as_bytes()), Ok(manifest.clone()));
        assert_eq!(Manifest::decode(&bytes), Ok(manifest));
        for at in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..at]).is_err());
            let mut other = bytes.clone();
            other[at] ^= 4;
            assert!(Manifest::decode(&other).is_err(), "byte {at}");
        }
    }
}

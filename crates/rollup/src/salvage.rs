//! What can be read of segments whose files may be damaged, copied into another folder.
//!
//! A segment goes over whole or not at all: without one of its columns its facts would be others. What is made of the
//! others, bitmaps and the times of blocks, is made again. The manifest of the copy has the batches and the offsets of
//! the one that was read, so that the log goes on behind it, and no row is counted twice.

use std::sync::Arc;

use jiff::tz::TimeZone;
use sapwood_disk::Disk;

use crate::contents::merged;
use crate::error::{Error, Result};
use crate::live::state::StateLayout;
use crate::log::Order;
use crate::schema::{Dimension, Schema};
use crate::segment::Segment;
use crate::store::{KnownSegment, Manifest, Store};
use crate::time::interval::Interval;
use crate::time::iso;

/// Copies the segments of a folder that can be read into an empty one, which
/// [`Rollup::on_disk`](crate::Rollup::on_disk) opens then: what is wrong, and what is not copied. `sealed` is the number
/// of a batch up to which the segments are known to have all, 0 if none is.
///
/// # Errors
/// [`Error::Schema`]; [`Error::Io`] where a folder cannot be listed, or the copy not be written.
pub fn salvage(
    schema: &Schema,
    damaged: &dyn Disk,
    sealed: u64,
    new: Arc<dyn Disk>,
) -> Result<Vec<Error>> {
    schema.check()?;
    let layout = StateLayout::new(&schema.metrics);
    let (manifest, damage) = Manifest::newest(damaged, sealed)?;
    let mut problems = Vec::new();
    let Some(manifest) = manifest else {
        let lost = match sealed {
            0 => "nothing else says which segments count, and none is copied".to_owned(),
            _ => format!(
                "nothing else says which segments count, and none is copied: rows of the batches up to number \
                 {sealed} are lost, but of those that the log still has"
            ),
        };
        problems.extend(damage.map(|error| told(error, "manifest", &lost)));
        return Ok(problems);
    };
    if let Some(damage) = damage {
        let done =
            format!("another one counts, which has the batches up to number {}", manifest.batches);
        problems.push(told(damage, "manifest", &done));
    }
    if manifest.batches < sealed {
        let what = format!(
            "it is of a moment before the log begins: rows of the batches from number {} to number {sealed} are lost",
            manifest.batches + 1
        );
        problems.push(Error::corrupt(0, what).in_file("manifest"));
    }
    let dimensions: Vec<Dimension> = manifest.dimensions().collect();
    let (mut store, _none) = Store::open(new, &layout)?;
    let mut copied = Vec::with_capacity(manifest.segments.len());
    let from = Damaged { schema, layout: &layout, disk: damaged, dimensions: &dimensions };
    for known in &manifest.segments {
        if let Some(bytes) = from.read(known, &mut problems) {
            copied.push(store.write(bytes, &layout)?);
        }
    }
    if manifest != Manifest::default() {
        let order = Order { number: manifest.batches, offsets: manifest.offsets };
        store.publish(Manifest::new(&order, &dimensions, &copied), || Ok(()))?;
    }
    Ok(problems)
}

/// Segments that may be damaged.
struct Damaged<'d> {
    schema: &'d Schema,
    layout: &'d StateLayout,
    disk: &'d dyn Disk,
    dimensions: &'d [Dimension],
}

impl Damaged<'_> {
    /// The bytes of a segment with all facts; none if some of them are lost.
    fn read(&self, known: &KnownSegment, problems: &mut Vec<Error>) -> Option<Vec<u8>> {
        let rows = known.rows;
        let lost = |error, what: &str| told(error, &known.file, &format!("{what} are not copied"));
        let segment = match known.open(self.disk, self.layout) {
            Ok(segment) => Arc::new(segment),
            Err(error) => {
                problems.push(lost(error, &format!("its {rows} facts")));
                return None;
            }
        };
        let error = match segment.check(self.layout) {
            Ok(()) => return Some(segment.file_bytes().to_vec()),
            Err(error) => error,
        };
        let columns = segment.damaged_columns(self.schema);
        if columns.is_empty()
            && let Some(bytes) = self.rebuilt(&segment)
        {
            let made = "its columns can be read: all of its facts are copied";
            problems.push(told(error, &known.file, made));
            return Some(bytes);
        }
        let damaged = match columns.as_slice() {
            [] => String::new(),
            [column] => format!("the column `{column}` is damaged: "),
            _ => format!("the columns `{}` are damaged: ", columns.join("`, `")),
        };
        let Interval { start, end } = segment.interval();
        let [start, end] = [start, end].map(|time| iso(time, &TimeZone::UTC));
        problems.push(lost(error, &format!("{damaged}its {rows} facts of {start}/{end}")));
        None
    }

    /// The same segment, made of its columns, if they fit each other.
    fn rebuilt(&self, segment: &Arc<Segment>) -> Option<Vec<u8>> {
        let of = std::slice::from_ref(segment);
        let bytes = Arc::new(merged(self.schema, self.layout, self.dimensions, of).ok()?);
        let again = Segment::open(segment.name(), Arc::clone(&bytes) as _, self.layout).ok()?;
        let is_whole = again.rows() == segment.rows() && again.check(self.layout).is_ok();
        is_whole.then(|| bytes.to_vec())
    }
}

/// What is wrong, and what comes of it.
fn told(error: Error, file: &str, comes: &str) -> Error {
    match error {
        Error::Corrupt { file, offset, what } => {
            Error::Corrupt { file, offset, what: format!("{what}; {comes}") }
        }
        other => Error::corrupt(0, format!("{other}; {comes}")).in_file(file),
    }
}

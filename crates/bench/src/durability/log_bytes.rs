//! Bytes of the log for a change, and for a byte that its user changed.

use indicatif::ProgressBar;

use super::Plan;
use super::measure::Figures;
use super::ours::{Kind, Ours};
use super::store::Store;
use super::workload::{Data, Entry, Level};
use super::writers::load;
use crate::Error;
use crate::folder::Folder;

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Put(Data),
    /// To a counter of 8 bytes.
    Add,
    /// Of 8 bytes amid a value of 1,000.
    Update,
}

/// What a change comes to.
pub(crate) struct LogBytes {
    pub(crate) engine: &'static str,
    pub(crate) change: String,
    pub(crate) data: Data,
    /// Of the key, and of what changes.
    pub(crate) user_bytes: usize,
    pub(crate) log_bytes: f64,
    pub(crate) changes: u32,
}

/// Changes of each kind at most.
const CHANGES: u32 = 10_000;
/// Bytes that a counter has, and that an update changes.
const CHANGED_BYTES: usize = 8;

impl Change {
    const ALL: [Change; 4] =
        [Change::Put(Data::Small), Change::Put(Data::Large), Change::Add, Change::Update];

    fn name(self) -> String {
        match self {
            Change::Put(data) => format!("put {}", data.name()),
            Change::Add => "add".to_owned(),
            Change::Update => "update 8 B of 1 KB".to_owned(),
        }
    }

    fn data(self) -> Data {
        match self {
            Change::Put(data) => data,
            Change::Add => Data::Small,
            Change::Update => Data::Large,
        }
    }

    fn user_bytes(self) -> usize {
        let [key, value] = self.data().lengths();
        match self {
            Change::Put(_) => key + value,
            Change::Add | Change::Update => key + CHANGED_BYTES,
        }
    }

    fn make(self, ours: &Ours, entry: &Entry) -> Result<(), Error> {
        match self {
            Change::Put(_) => ours.put(&entry.key, &entry.value),
            Change::Add => Ok(ours.table.add(&entry.key, 1).map(drop)?),
            Change::Update => {
                let middle = entry.value.len() / 2;
                let found = ours.table.update(&entry.key, |value| {
                    let changed = &mut value[middle..middle + CHANGED_BYTES];
                    changed.iter_mut().for_each(|byte| *byte = !*byte);
                })?;
                found.ok_or_else(|| "a key is lost".into())
            }
        }
    }
}

pub(crate) fn turns(_: &Plan) -> usize {
    Kind::ALL.len() * Change::ALL.len()
}

pub(crate) fn measure(plan: &Plan, figures: &mut Figures, bar: &ProgressBar) -> Result<(), Error> {
    for kind in Kind::ALL.into_iter().filter(|kind| plan.takes(kind.name())) {
        for change in Change::ALL {
            bar.set_message(format!("{}: log bytes of {}", kind.name(), change.name()));
            figures.log_bytes.push(measure_one(plan, kind, change)?);
            bar.inc(1);
        }
    }
    Ok(())
}

fn measure_one(plan: &Plan, kind: Kind, change: Change) -> Result<LogBytes, Error> {
    let data = change.data();
    let changes = plan.keys(data).clamp(1, CHANGES);
    let folder = Folder::new(&plan.dir, kind.name())?;
    let ours = Ours::create(folder.path(), kind, Level::Buffered, data, changes)?;
    if change == Change::Add {
        let zeros = (0..changes).map(|number| (Entry::of(data, number, 0).key, vec![0; 8]));
        ours.load(&zeros.collect::<Vec<_>>())?;
    } else {
        load(&ours, data, changes)?;
    }
    ours.checkpoint()?;
    let position = || ours.log_bytes().ok_or("a table in a directory has a log");
    let begin = position()?;
    for number in 0..changes {
        change.make(&ours, &Entry::of(data, number, 1))?;
    }
    let log_bytes = (position()? - begin) as f64 / f64::from(changes);
    Ok(LogBytes {
        engine: kind.name(),
        change: change.name(),
        data,
        user_bytes: change.user_bytes(),
        log_bytes,
        changes,
    })
}

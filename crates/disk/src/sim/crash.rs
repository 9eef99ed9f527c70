//! Images that a crash could leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::state::{FileId, FileState, Names, ROOT, State, Write, overlay};

/// One image of many, more often than by chance that of which all is lost, or all kept.
pub(super) fn image_of(state: &State, seed: u64) -> State {
    let all = |way| {
        let files = state.files_in_reach();
        image_by_ways(state, &files, &mut |_| way)
    };
    match seed % 8 {
        0 => all(0),
        1 => all(1),
        _ => random_image(state, seed),
    }
}

/// One image of many.
pub(super) fn random_image(state: &State, seed: u64) -> State {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut names = state.lasting_names.clone();
    for pending in &state.name_changes {
        if rng.random() {
            pending.change.apply(&mut names);
        }
    }
    // All files in the same order for the same seed, whichever names were kept.
    let files = state.files_in_reach().into_iter();
    let files = files.map(|id| (id, random_file(state.file(id), &mut rng))).collect();
    image(state, &names, files)
}

fn random_file(file: &FileState, rng: &mut ChaCha8Rng) -> Arc<Vec<u8>> {
    let mut bytes = Arc::clone(&file.lasting);
    // Doubtful writes come before later ones that were synced, which were cut out of them; among
    // themselves all of these reach the media in any order.
    let mut writes: Vec<&Write> = file.doubtful.iter().chain(&file.unsynced).collect();
    writes.shuffle(rng);
    for write in writes {
        match rng.random_range(0..4) {
            way if write.is_cut() => {
                if way > 1 {
                    write.apply(Arc::make_mut(&mut bytes));
                }
            }
            0 => {}
            1 => lengthen(&mut bytes, write.limit()),
            2 => overlay(Arc::make_mut(&mut bytes), write.offset, &write.bytes),
            _ => {
                if rng.random() {
                    lengthen(&mut bytes, write.limit());
                }
                for (number, piece) in write.bytes.chunks(write.unit).enumerate() {
                    if rng.random() {
                        overlay(
                            Arc::make_mut(&mut bytes),
                            write.offset + number * write.unit,
                            piece,
                        );
                    }
                }
            }
        }
    }
    bytes
}

fn lengthen(file: &mut Arc<Vec<u8>>, limit: usize) {
    if file.len() < limit {
        Arc::make_mut(file).resize(limit, 0);
    }
}

fn image(of: &State, names: &Names, mut files: BTreeMap<FileId, Arc<Vec<u8>>>) -> State {
    let mut image = State::empty(of.is_dax);
    // What lies in a folder without a name is gone with it.
    let mut folders = vec![(ROOT, ROOT)];
    while let Some((old, new)) = folders.pop() {
        for (name, id) in names.iter().filter(|(name, _)| name.folder == old) {
            if of.is_folder(*id) {
                folders.push((*id, image.plant_folder(new, &name.name)));
                continue;
            }
            // Each file has one name at most: renaming takes the old one away. Where a crash keeps
            // both, both get the bytes.
            let is_last = names.values().filter(|other| *other == id).count() == 1;
            let bytes = if is_last { files.remove(id) } else { files.get(id).cloned() };
            image.plant(new, &name.name, bytes.unwrap_or_default());
        }
    }
    image
}

/// The images that [`SimDisk::crash_images`](super::SimDisk::crash_images) gives.
#[derive(Debug)]
pub struct CrashImages {
    state: State,
    files: Vec<FileId>,
    /// How many ways each unsynced change can go: names first, then the writes of each file.
    ways: Vec<u8>,
    next: usize,
    limit: usize,
    /// Whether `limit` holds every combination.
    exhaustive: bool,
}

/// Ways of a change of names: lost, kept.
const NAME_WAYS: u8 = 2;
/// Ways of a write: lost, kept, lost but longer, first half, second half.
const WRITE_WAYS: u8 = 5;

impl CrashImages {
    pub(super) fn new(state: State, limit: usize) -> CrashImages {
        let files = state.files_in_reach();
        let mut ways = vec![NAME_WAYS; state.name_changes.len()];
        for id in &files {
            let file = state.file(*id);
            ways.extend(vec![WRITE_WAYS; file.doubtful.len() + file.unsynced.len()]);
        }
        let count = ways.iter().try_fold(1usize, |count, ways| count.checked_mul(*ways as usize));
        let exhaustive = count.is_some_and(|count| count <= limit);
        let limit = count.map_or(limit, |count| count.min(limit));
        CrashImages { state, files, ways, next: 0, limit, exhaustive }
    }

    /// Whether every combination is among the images.
    pub fn exhaustive(&self) -> bool {
        self.exhaustive
    }

    /// The next image.
    pub(super) fn next_state(&mut self) -> Option<State> {
        if self.next == self.limit {
            return None;
        }
        let number = self.next;
        self.next += 1;
        Some(match number {
            // Digits of the number, in a base for each change.
            _ if self.exhaustive => {
                let mut rest = number;
                self.image(|ways| {
                    let way = rest % ways as usize;
                    rest /= ways as usize;
                    way as u8
                })
            }
            0 => self.image(|_| 0),
            1 => self.image(|_| 1),
            _ => random_image(&self.state, number as u64),
        })
    }

    /// The image in which the changes go these ways.
    fn image(&self, mut way: impl FnMut(u8) -> u8) -> State {
        let mut ways = self.ways.iter().map(|ways| way(*ways));
        image_by_ways(&self.state, &self.files, &mut |_| {
            ways.next().expect("a way for each change")
        })
    }
}

/// The image in which each change goes its way, of so many: names first, then the writes of each file.
fn image_by_ways(state: &State, reached: &[FileId], way: &mut dyn FnMut(u8) -> u8) -> State {
    let mut names = state.lasting_names.clone();
    for pending in &state.name_changes {
        if way(NAME_WAYS) == 1 {
            pending.change.apply(&mut names);
        }
    }
    let mut files = BTreeMap::new();
    for id in reached {
        let file = state.file(*id);
        let mut bytes = Arc::clone(&file.lasting);
        for write in file.doubtful.iter().chain(&file.unsynced) {
            let middle = write.bytes.len() / write.unit / 2 * write.unit;
            match way(WRITE_WAYS) {
                way if write.is_cut() => {
                    if way == 1 {
                        write.apply(Arc::make_mut(&mut bytes));
                    }
                }
                0 => {}
                1 => overlay(Arc::make_mut(&mut bytes), write.offset, &write.bytes),
                2 => lengthen(&mut bytes, write.limit()),
                3 => overlay(Arc::make_mut(&mut bytes), write.offset, &write.bytes[..middle]),
                _ => overlay(
                    Arc::make_mut(&mut bytes),
                    write.offset + middle,
                    &write.bytes[middle..],
                ),
            }
        }
        files.insert(*id, bytes);
    }
    image(state, &names, files)
}

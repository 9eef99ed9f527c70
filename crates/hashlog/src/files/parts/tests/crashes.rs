//! Parts after a crash.

use super::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Power goes at every operation of `act`, after `prepare`; every image is given to `check`, with
/// whether `act` was done.
fn at_every_operation(
    shape: PartShape,
    prepare: impl Fn(&Parts),
    act: impl Fn(&Parts) -> Result<()>,
    check: impl Fn(&Parts, Option<()>),
    pages: u64,
) {
    for stop in 0.. {
        let disk = SimDisk::new();
        let parts = Parts::with(Arc::new(disk.clone()), shape);
        prepare(&parts);
        disk.stop_after(stop);
        let done = act(&parts).ok();
        for image in disk.crash_images(200) {
            let opened = open(Arc::new(image), shape, 0..pages);
            check(&opened.expect("what lasted is there"), done);
        }
        if done.is_some() {
            assert!(stop > 0, "there was something to interrupt");
            return;
        }
    }
}

fn used(parts: &Parts, page: u64) -> usize {
    let used =
        parts.read_page(PageNumber::from(page), &mut Blocks::default()).expect("it can be read");
    check_page(parts, page, used);
    used
}

#[test]
fn a_page_that_grows_keeps_what_lasted() {
    for shape in [shape(64, 2), shape(16 << 10, 2)] {
        let full = shape.page_bytes as usize;
        for (before, between, after) in [
            (10, None, full),
            (10, None, 11),
            (0, None, 5),
            (full / 2, None, full),
            (full / 2, Some(full / 2 + 1), full),
            (full - 1, Some(full), full),
            (full, None, full),
        ] {
            at_every_operation(
                shape,
                |parts| {
                    write(parts, 0, before).expect("written");
                    parts.sync().expect("synced");
                    if let Some(between) = between {
                        write(parts, 0, between).expect("written, not synced");
                    }
                },
                |parts| {
                    write(parts, 0, after)?;
                    parts.sync()
                },
                |parts, done| {
                    let found = used(parts, 0);
                    let allowed = [Some(before), between, Some(after)];
                    assert!(allowed.contains(&Some(found)), "{found}");
                    assert!(found == after || done.is_none());
                },
                1,
            );
        }
    }
}

#[test]
fn a_page_beside_others_that_grow_keeps_what_lasted() {
    at_every_operation(
        shape(64, 2),
        |parts| {
            write(parts, 0, 64).expect("written");
            parts.sync().expect("synced");
        },
        |parts| {
            // The second page of the part, the next part, and names.
            write(parts, 1, 64)?;
            write(parts, 2, 64)?;
            parts.sync()
        },
        |parts, _| assert_eq!(used(parts, 0), 64),
        1,
    );
}

#[test]
fn another_course_harms_nothing_of_the_one_before() {
    let shape = shape(16 << 10, 2);
    let full = shape.page_bytes as usize;
    let mut other = page_of(shape, 1);
    other.bytes_mut().fill(0xee);
    at_every_operation(
        shape,
        |parts| {
            write(parts, 0, 5000).expect("written");
            parts.sync().expect("synced, and a checkpoint ends here");
            write(parts, 0, full).expect("written");
            write(parts, 1, full).expect("written");
            write(parts, 2, full).expect("written");
            parts.sync().expect("synced, and no checkpoint came of it");
        },
        |parts| {
            parts.remove_from(PageNumber::from(1))?;
            parts.write_page(1, full, &other)?;
            parts.sync()
        },
        |parts, _| assert_eq!(used(parts, 0), full),
        1,
    );
}

/// A log as an engine writes it: pages grow at the end, syncs make checkpoints, writes and syncs
/// fail now and then, power goes at any time, and recovery takes another course in the page behind
/// the last checkpoint.
struct Course {
    rng: ChaCha8Rng,
    shape: PartShape,
    disk: SimDisk,
    parts: Parts,
    pages: Vec<Vec<u8>>,
    /// Bytes of each page that were written.
    written: Vec<usize>,
    /// Bytes of each page that a checkpoint vouches for.
    lasting: Vec<usize>,
}

impl Course {
    fn new(seed: u64) -> Course {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let shape = [shape(64, 2), shape(4096, 3), shape(16 << 10, 2)][rng.random_range(0..3)];
        let disk = SimDisk::new();
        let parts = Parts::with(Arc::new(disk.clone()), shape);
        let (pages, written, lasting) = Default::default();
        Course { rng, shape, disk, parts, pages, written, lasting }
    }

    fn append(&mut self) {
        let page_bytes = self.shape.page_bytes as usize;
        for _ in 0..self.rng.random_range(1..3) {
            if self.pages.last().is_none_or(|page| page.len() == page_bytes) {
                self.pages.push(Vec::new());
            }
            let page = self.pages.last_mut().expect("pushed");
            let count = self.rng.random_range(0..=page_bytes - page.len());
            page.extend((0..count).map(|_| self.rng.random::<u8>()));
        }
    }

    fn write(&mut self) {
        if self.rng.random_range(0..8) == 0 {
            let number = self.rng.random_range(0..3);
            let kind = ErrorKind::Other;
            let fault = match self.rng.random() {
                true => WriteFault::Error(kind),
                false => WriteFault::Torn(kind),
            };
            self.disk.set_faults(Faults::new().writes(number..=number, fault));
        }
        self.written.resize(self.pages.len(), 0);
        for (number, page) in self.pages.iter().enumerate() {
            if self.written[number] < page.len() {
                let mut blocks = Blocks::new(self.shape.page_bytes as usize);
                blocks.bytes_mut()[..page.len()].copy_from_slice(page);
                // What fails is tried again the next time.
                if self.parts.write_page(number as u64, page.len(), &blocks).is_ok() {
                    self.written[number] = page.len();
                }
            }
        }
        self.disk.set_faults(Faults::new());
    }

    fn checkpoint(&mut self) {
        if self.rng.random_range(0..6) == 0 {
            let kind = ErrorKind::Other;
            let fault = match self.rng.random() {
                true => SyncFault::Doubtful(kind),
                false => SyncFault::Lost(kind),
            };
            self.disk.set_faults(Faults::new().syncs(0..1, fault));
        }
        match self.parts.sync() {
            // Pages behind one that could not be written are not part of the checkpoint.
            Ok(()) => {
                self.lasting = self.written.iter().copied().take_while(|used| *used > 0).collect()
            }
            // All that no checkpoint vouches for is written again.
            Err(_) => {
                for (number, written) in self.written.iter_mut().enumerate() {
                    *written = self.lasting.get(number).copied().unwrap_or(0);
                }
            }
        }
        self.disk.set_faults(Faults::new());
    }

    fn crash(&mut self, context: &str) {
        self.disk = self.disk.crash(self.rng.random());
        let limit = self.lasting.len() as u64;
        let opened = open(Arc::new(self.disk.clone()), self.shape, 0..limit);
        self.parts = opened.unwrap_or_else(|refused| panic!("{context}: {refused}"));
        for (page, lasting) in self.lasting.iter().enumerate() {
            let mut into = Blocks::default();
            let used = self.parts.read_page(PageNumber::from(page as u64), &mut into);
            let used = used.unwrap_or_else(|refused| panic!("{context}: {refused}"));
            assert!(used >= *lasting, "{context}");
            assert_eq!(into.bytes()[..*lasting], self.pages[page][..*lasting], "{context}");
            // The page ends here: the log goes on in another.
            self.pages[page] = into.bytes()[..used].to_vec();
        }
        self.parts
            .remove_from(PageNumber::from(limit))
            .unwrap_or_else(|refused| panic!("{context}: {refused}"));
        self.pages.truncate(self.lasting.len());
        self.written.clone_from(&self.lasting);
        let ended = self.pages.iter().map(Vec::len);
        self.written.iter_mut().zip(ended).for_each(|(written, used)| *written = used);
        self.pages.push(Vec::new());
    }
}

#[test]
fn a_log_survives_many_crashes() {
    let mut crashes = 0;
    for seed in 0..u64::from(rounds(150)) {
        let mut course = Course::new(seed);
        for step in 0..60 {
            match course.rng.random_range(0..10) {
                0..=5 => {
                    course.append();
                    course.write();
                }
                6..=7 => course.checkpoint(),
                _ => {
                    let context = format!("SEEDS={} reaches seed {seed}, step {step}", seed + 1);
                    course.crash(&context);
                    crashes += course.lasting.len().min(1);
                }
            }
        }
    }
    assert!(crashes > 100, "{crashes} crashes with something to recover");
}

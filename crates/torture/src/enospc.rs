//! A full disk: a small one of memory, filled until only so many bytes are free, on which a worker
//! goes on. What it was refused is not there, what lasted is; with nothing free at all the database
//! opens and can be read, and with room again work goes on.

use std::fs;
use std::path::Path;

use rand::RngExt as _;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::chains::{expect_no_leftovers, look, look_without_room};
use crate::message::Message;
use crate::oracle::Oracle;
use crate::report::{self, Outcome};
use crate::runs::{DatabaseFolder, Run};
use crate::worker::Work;

/// Room for a database of a worker several times over.
const DISK_BYTES: u64 = 16 << 20;
/// The bytes that a worker adds to a database at most, more or less: with more free it is refused
/// nothing.
const FREE_BYTES_MAX: u64 = 1_200 << 10;
/// The bytes that a disk of memory gives at a time.
const PAGE_BYTES: u64 = 4 << 10;
/// Takes the room that is not to be free.
const BALLAST: &str = "ballast";

/// A disk that is taken away with its guard.
struct SmallDisk {
    place: DatabaseFolder,
}

impl SmallDisk {
    fn mount() -> Result<SmallDisk, String> {
        let folder = tempfile::Builder::new().prefix("sapwood-torture-disk-").tempdir();
        let folder = folder.map_err(|e| e.to_string())?.keep();
        let data = std::ffi::CString::new(format!("size={DISK_BYTES}")).expect("no zero byte");
        if let Err(cause) = mount("tmpfs", &folder, "tmpfs", MountFlags::empty(), &*data) {
            fs::remove_dir(&folder).map_err(|e| e.to_string())?;
            return Err(format!("a disk of memory cannot be mounted: {cause}"));
        }
        Ok(SmallDisk { place: DatabaseFolder::at(&folder)? })
    }

    fn root(&self) -> &Path {
        self.place.database.parent().expect("within the disk")
    }

    /// Leaves so many bytes free.
    fn leave_free(&self, bytes: u64) -> Result<(), String> {
        let ballast = self.root().join(BALLAST);
        let failed = |e: &dyn std::fmt::Display| format!("the disk cannot be filled: {e}");
        if ballast.exists() {
            fs::remove_file(&ballast).map_err(|e| failed(&e))?;
        }
        let about = rustix::fs::statvfs(self.root()).map_err(|e| failed(&e))?;
        let free = about.f_bavail * about.f_frsize;
        let fill = free.saturating_sub(bytes) / PAGE_BYTES * PAGE_BYTES;
        fs::write(ballast, vec![1; fill as usize]).map_err(|e| failed(&e))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let root = self.root().to_owned();
        // Both fail only where the disk is looked at; then it stays for that.
        let _ = unmount(&root, UnmountFlags::DETACH);
        let _ = fs::remove_dir(root);
    }
}

/// So many disks, each filled to another point.
pub(crate) fn run(seed: u64, count: usize, jobs: usize) -> Result<(), String> {
    if let Err(why) = SmallDisk::mount() {
        println!("full disks: skipped: {why}");
        return Ok(());
    }
    report::run("full disks", count, jobs, |at| {
        let mut outcome = Outcome::default();
        let seed = seed + at as u64;
        if let Err(what) = fill_one(seed, &mut outcome) {
            outcome.fail(what, format!("enospc --seed {seed} --count 1"), None);
        }
        outcome
    })
}

fn fill_one(seed: u64, outcome: &mut Outcome) -> Result<(), String> {
    let disk = SmallDisk::mount()?;
    let mut rng = sapwood_testkit::rng(seed);
    let mut oracle = Oracle::new(seed, 2);
    let work = Work {
        dir: disk.place.database.clone(),
        seed,
        threads: 2,
        rounds: 5,
        in_order: seed.is_multiple_of(3),
        removed: None,
        fail: None,
        lose: None,
        full: false,
        unlogged: false,
    };
    let run = |work: &Work, oracle: &mut Oracle, outcome: &mut Outcome| -> Result<(), String> {
        let run = Run::of(work, None)?;
        oracle.hear(&run.messages)?;
        run.expect_ended()?;
        let refused = run.count(|message| matches!(message, Message::Refused(_)));
        outcome.add("workers that were refused something", u64::from(refused > 0));
        outcome.add("operations refused", refused);
        Ok(())
    };
    run(&work, &mut oracle, outcome)?;
    look(&mut oracle, &disk.place)?;

    // Small rooms more often: everything but the first page fails in them.
    let free = rng.random_range(0..FREE_BYTES_MAX) * rng.random_range(0..=4) / 4;
    let at = |when: &str, what: String| format!("{when}, {free} bytes free before: {what}");
    disk.leave_free(free)?;
    run(&Work { full: true, ..work.clone() }, &mut oracle, outcome)
        .map_err(|what| at("while the disk fills", what))?;
    outcome.add("disks", 1);

    disk.leave_free(PAGE_BYTES)?;
    look_without_room(&mut oracle, &disk.place).map_err(|what| at("with a page free", what))?;
    disk.leave_free(0)?;
    let nothing_free = look_without_room(&mut oracle, &disk.place);

    fs::remove_file(disk.root().join(BALLAST)).map_err(|e| e.to_string())?;
    let compared = look(&mut oracle, &disk.place).map_err(|what| at("with room again", what))?;
    compared.count(outcome);
    run(&work, &mut oracle, outcome).map_err(|what| at("with room again", what))?;
    look(&mut oracle, &disk.place).map_err(|what| at("with room again", what))?.count(outcome);
    nothing_free.map_err(|what| at("with nothing free", what))?.count(outcome);
    expect_no_leftovers(&compared.leftovers)
}

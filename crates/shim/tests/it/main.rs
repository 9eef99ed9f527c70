//! The effects of the shim on the files of a process. Each case runs in a process of its own, this
//! program started again: the shim is armed once, and a loss of power ends it.
#![forbid(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use sapwood_shim::{Call, Failure, Fate, Plan, PowerLoss, Repeat, Since, SystemError};

/// Names the folder of a child, and so that a process is one.
const FOLDER: &str = "SAPWOOD_SHIM_FOLDER";

/// Runs `child` in a process of its own, on files `kept` and `old` that last; then looks.
fn case(test: &str, child: impl FnOnce(&Path), look: impl FnOnce(&Path, ExitStatus)) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return child(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (data, removed) = (folder.path().join("data"), folder.path().join("removed"));
    fs::create_dir(&data).and_then(|()| fs::create_dir(&removed)).expect("made");
    fs::write(data.join("kept"), "before").expect("written");
    fs::write(data.join("old"), "old").expect("written");
    let program = std::env::current_exe().expect("a test knows its program");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(FOLDER, folder.path());
    look(&data, command.output().expect("a test program runs").status);
}

fn arm(folder: &Path, plan: Plan) {
    sapwood_shim::arm(&folder.join("data"), &folder.join("removed"), plan).expect("armed");
}

fn loss(nth: u64, fate: Fate) -> Plan {
    let loss = PowerLoss { seed: 1, nth, since: Since::Armed, fate };
    Plan { power_loss: Some(loss), ..Plan::default() }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| e.to_string())
}

/// Thirteen changes: the ninth removes `old`, the tenth makes names last, the last cuts a file.
fn change_all(data: &Path) -> std::io::Result<()> {
    let data = fs::canonicalize(data)?;
    let kept = OpenOptions::new().read(true).write(true).open(data.join("kept"))?;
    kept.write_all_at(b"synced", 0)?;
    kept.sync_data()?;
    kept.write_all_at(b"lost and longer", 0)?;
    let made = File::create_new(data.join("made"))?;
    made.write_all_at(b"made", 0)?;
    made.sync_all()?;
    fs::rename(data.join("made"), data.join("renamed"))?;
    fs::create_dir(data.join("folder"))?;
    fs::remove_file(data.join("old"))?;
    File::open(&data)?.sync_all()?;
    fs::remove_file(data.join("renamed"))?;
    kept.write_all_at(b"last", 0)?;
    kept.set_len(3)
}

fn lose_all(folder: &Path, nth: u64, fate: Fate) {
    arm(folder, loss(nth, fate));
    let _ = change_all(&folder.join("data"));
}

#[test]
fn what_was_not_synced_is_lost() {
    let look = |data: &Path, status: ExitStatus| {
        assert_eq!(status.signal(), Some(9), "the power went: {status}");
        assert_eq!(text(&data.join("kept")), "synced");
        assert_eq!(text(&data.join("old")), "old", "its removal was not synced");
        assert!(!data.join("renamed").exists() && !data.join("made").exists());
        assert!(!data.join("folder").exists());
    };
    case("what_was_not_synced_is_lost", |folder| lose_all(folder, 9, Fate::Lost), look);
}

#[test]
fn names_last_once_their_folder_is_synced() {
    let look = |data: &Path, status: ExitStatus| {
        assert_eq!(status.signal(), Some(9), "the power went: {status}");
        assert_eq!(text(&data.join("kept")), "synced", "a sync of names is none of bytes");
        assert!(!data.join("old").exists());
        assert_eq!(text(&data.join("renamed")), "made", "its removal was not synced");
        assert!(data.join("folder").is_dir());
    };
    case("names_last_once_their_folder_is_synced", |folder| lose_all(folder, 12, Fate::Lost), look);
}

#[test]
fn all_is_kept_when_only_the_process_ends() {
    let look = |data: &Path, status: ExitStatus| {
        assert_eq!(status.signal(), Some(9), "the power went: {status}");
        assert_eq!(text(&data.join("kept")), "last and longer");
        assert!(!data.join("old").exists() && !data.join("renamed").exists());
    };
    case("all_is_kept_when_only_the_process_ends", |folder| lose_all(folder, 12, Fate::Kept), look);
}

#[test]
fn a_cut_that_was_not_synced_is_taken_back() {
    let look = |data: &Path, status: ExitStatus| {
        assert_eq!(status.signal(), Some(9), "the power went: {status}");
        assert_eq!(text(&data.join("kept")), "synced");
    };
    let test = "a_cut_that_was_not_synced_is_taken_back";
    case(test, |folder| lose_all(folder, 13, Fate::Lost), look);
}

#[test]
fn a_failed_sync_of_bytes_loses_them() {
    let child = |folder: &Path| {
        let failure =
            Failure { call: Call::SyncData, nth: 2, error: SystemError::Io, repeat: Repeat::Once };
        arm(folder, Plan { failure: Some(failure), ..Plan::default() });
        let path = fs::canonicalize(folder.join("data/kept")).expect("there");
        let kept = OpenOptions::new().read(true).write(true).open(path).expect("opened");
        kept.write_all_at(b"synced", 0)
            .and_then(|()| kept.sync_data())
            .expect("the first succeeds");
        kept.write_all_at(b"lost and longer", 0).expect("written");
        let error = kept.sync_data().expect_err("the second fails");
        assert_eq!(error.raw_os_error(), Some(5), "EIO");
        assert!(sapwood_shim::has_failed());
        kept.sync_data().expect("the third succeeds");
        assert_eq!(sapwood_shim::counts()[Call::SyncData as usize], 3);
    };
    let look = |data: &Path, status: ExitStatus| {
        assert!(status.success(), "{status}");
        assert_eq!(text(&data.join("kept")), "synced");
    };
    case("a_failed_sync_of_bytes_loses_them", child, look);
}

#[test]
fn every_kind_of_call_fails_as_it_is_told() {
    let child = |folder: &Path| {
        // One kind a process would be eight tests: the plan is replaced instead.
        for call in Call::ALL {
            for error in [SystemError::Io, SystemError::NoSpace] {
                let failure = Failure { call, nth: 1, error, repeat: Repeat::FromThenOn };
                arm(folder, Plan { failure: Some(failure), ..Plan::default() });
                let data = fs::canonicalize(folder.join("data")).expect("there");
                let read = |data: &Path| {
                    let file = File::open(data.join("kept"))?;
                    file.read_exact_at(&mut [0; 3], 0)
                };
                let told = change_all(&data).and_then(|()| read(&data)).expect_err("one fails");
                let code = if error == SystemError::Io { 5 } else { 28 };
                assert_eq!(told.raw_os_error(), Some(code), "{call:?}");
                assert!(sapwood_shim::has_failed(), "{call:?}");
                arm(folder, Plan::default());
                for name in ["made", "renamed"] {
                    let _ = fs::remove_file(data.join(name));
                }
                let _ = fs::remove_dir(data.join("folder"));
                drop(File::create(folder.join("old")));
                fs::rename(folder.join("old"), data.join("old")).expect("as before");
            }
        }
    };
    let look = |_: &Path, status: ExitStatus| assert!(status.success(), "{status}");
    case("every_kind_of_call_fails_as_it_is_told", child, look);
}

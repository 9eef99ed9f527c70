//! Runs of workers: started, heard, and ended.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sapwood_testkit::case::Watchdog;
use tempfile::TempDir;

use crate::message::Message;
use crate::worker::Work;

/// A time that a worker that works takes a hundredth of.
pub(crate) const HANG_LIMIT: Duration = Duration::from_secs(60);

/// A database in a folder of its own, and beside it what the shim and copies need.
pub(crate) struct DatabaseFolder {
    folder: Option<TempDir>,
    pub(crate) database: PathBuf,
    pub(crate) removed: PathBuf,
}

impl DatabaseFolder {
    /// In the folder for temporary files, or where `within` says.
    pub(crate) fn make(within: Option<&Path>) -> Result<DatabaseFolder, String> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("sapwood-torture-");
        let folder = match within {
            Some(within) => builder.tempdir_in(within),
            None => builder.tempdir(),
        };
        let folder = folder.map_err(|cause| format!("cannot make a folder: {cause}"))?;
        let DatabaseFolder { database, removed, .. } = DatabaseFolder::at(folder.path())?;
        Ok(DatabaseFolder { folder: Some(folder), database, removed })
    }

    /// In a folder that is there.
    pub(crate) fn at(folder: &Path) -> Result<DatabaseFolder, String> {
        // As the system will name it in calls.
        let path = fs::canonicalize(folder).map_err(|cause| cause.to_string())?;
        let (database, removed) = (path.join("database"), path.join("removed"));
        for path in [&database, &removed] {
            fs::create_dir(path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        }
        Ok(DatabaseFolder { folder: None, database, removed })
    }

    /// Forgets what the shim kept for a loss of power that is over.
    pub(crate) fn clear_removed(&self) -> Result<(), String> {
        fs::remove_dir_all(&self.removed)
            .and_then(|()| fs::create_dir(&self.removed))
            .map_err(|e| format!("cannot clear {}: {e}", self.removed.display()))
    }

    /// Leaves the folder for a look, and says where it is.
    pub(crate) fn leave(mut self) -> PathBuf {
        let folder = self.folder.take().expect("left once");
        folder.keep()
    }
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Looks at a database here, in this process: a panic is a failure, and a hang ends it aloud.
pub(crate) fn watched<T>(
    path: &Path,
    look: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let _watchdog = Watchdog::arm(HANG_LIMIT, format!("looking at {} hangs", path.display()));
    let looked = catch_unwind(AssertUnwindSafe(look));
    wait_for_starting();
    looked.unwrap_or_else(|_| Err("opening or reading it panics; standard error says how".into()))
}

/// When a worker is killed from outside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kill {
    /// After so many lines of it.
    pub(crate) lines: usize,
    /// And so long.
    pub(crate) delay: Duration,
}

/// How a worker went.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) messages: Vec<Message>,
    pub(crate) status: ExitStatus,
    errors: String,
}

impl Run {
    /// Lets a worker run to its end, or kills it.
    pub(crate) fn of(work: &Work, kill: Option<Kill>) -> Result<Run, String> {
        Run::of_line(&work.arguments(), &[], kill, || Ok(()))
    }

    /// Runs a worker with any arguments and some variables of its environment; does something
    /// before it is killed, or when it has come to its end.
    pub(crate) fn of_line(
        arguments: &[String],
        variables: &[(&str, &str)],
        kill: Option<Kill>,
        before_kill: impl FnOnce() -> Result<(), String>,
    ) -> Result<Run, String> {
        let program = std::env::current_exe().map_err(|e| format!("which program is this: {e}"))?;
        let mut command = Command::new(program);
        command.args(arguments).envs(variables.iter().copied()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(&mut command)?;
        let lines = listen(&mut child);
        let errors = child.stderr.take().expect("piped");
        let errors = thread::spawn(move || {
            let mut text = String::new();
            // What is no text is of no use here.
            let _ = BufReader::new(errors).read_to_string(&mut text);
            text
        });
        let limit = Instant::now() + HANG_LIMIT;
        let mut messages = Vec::new();
        let mut open = true;
        while open && kill.is_none_or(|kill| messages.len() < kill.lines) {
            match lines.recv_timeout(limit.saturating_duration_since(Instant::now())) {
                Ok(line) => messages.extend(Message::parse(&line)),
                Err(mpsc::RecvTimeoutError::Disconnected) => open = false,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    end(&mut child);
                    let seconds = HANG_LIMIT.as_secs();
                    return Err(format!("a worker hangs: no end after {seconds} s"));
                }
            }
        }
        if let Some(kill) = kill.filter(|_| open) {
            thread::sleep(kill.delay);
        }
        let done = before_kill();
        if kill.is_some() {
            end(&mut child);
        }
        messages.extend(lines.iter().filter_map(|line| Message::parse(&line)));
        let status = child.wait().map_err(|e| e.to_string())?;
        let errors = errors.join().expect("a reader of text");
        done?;
        Ok(Run { messages, status, errors })
    }

    /// Whether the worker was ended by signal 9: from outside, or by its loss of power.
    pub(crate) fn was_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }

    /// Whether it ended as it should: by itself, or killed.
    pub(crate) fn expect_ended(&self) -> Result<(), String> {
        let ended = self.messages.last() == Some(&Message::Ended) && self.status.success();
        match ended || self.was_killed() {
            true => Ok(()),
            false => {
                Err(format!("the worker ended with {}: {}", self.status, last_words(&self.errors)))
            }
        }
    }

    /// Calls of each kind, if the worker counted them.
    pub(crate) fn calls(&self) -> Option<&[u64]> {
        self.messages.iter().find_map(|message| match message {
            Message::Calls(counts) => Some(&counts[..]),
            _ => None,
        })
    }

    pub(crate) fn count(&self, which: impl Fn(&Message) -> bool) -> u64 {
        self.messages.iter().filter(|message| which(message)).count() as u64
    }
}

/// Held while a process starts.
static STARTING: Mutex<()> = Mutex::new(());

/// Starts a process.
pub(crate) fn spawn(command: &mut Command) -> Result<Child, String> {
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn().map_err(|e| format!("this program does not start again: {e}"))
}

/// Waits until no process is half started: between the two halves it has all of this one's files
/// open, and so holds the locks of databases that were closed meanwhile.
fn wait_for_starting() {
    drop(STARTING.lock().unwrap_or_else(PoisonError::into_inner));
}

/// The end of what a process said on standard error, on one line.
pub(crate) fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(6)..].join(" | ")
}

fn listen(child: &mut Child) -> mpsc::Receiver<String> {
    let stdout = BufReader::new(child.stdout.take().expect("piped"));
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn end(child: &mut Child) {
    // It may have ended by itself, which is as good.
    let _ = child.kill();
}

//! Ctrl-C stops the command that runs; a signal to end keeps what there is, and ends.

use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sapwood::Db;
use sapwood::aggregate::Cancel;
use tokio::signal::unix::{SignalKind, signal};

use crate::terminal::stderr;

/// How long a run may take to notice that it is to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// What Ctrl-C stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The command that runs: another may follow.
    Command,
    /// All commands, since they come from a program.
    Run,
}

/// The command that runs, as signals stop it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    running: Arc<Mutex<Cancel>>,
}

impl Signals {
    /// Listens from now on. A signal to end closes the database first, so that its tables last.
    pub(crate) fn listen(stopped: Stopped, db: Option<Db>) -> std::io::Result<Signals> {
        let signals = Signals::default();
        let heard = signals.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut interrupted, mut terminated, mut hung_up) = {
            let _context = runtime.enter();
            (
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            )
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = interrupted.recv() => {
                            heard.cancel();
                            if stopped == Stopped::Run {
                                // It may be waiting for a line that does not come.
                                tokio::time::sleep(PATIENCE).await;
                                break;
                            }
                        }
                        _ = terminated.recv() => break,
                        _ = hung_up.recv() => break,
                    }
                }
            });
            heard.cancel();
            if let Some(Err(error)) = db.map(Db::close) {
                stderr::line(format_args!("error: {}", crate::terminal::exit::words(&error)));
                process::exit(1);
            }
            process::exit(130);
        })?;
        Ok(signals)
    }

    fn cancel(&self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    /// What stops the command that begins now.
    pub(crate) fn begin(&self) -> Cancel {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = Cancel::new();
        running.clone()
    }

    /// What stops all commands of a run without a person, whose first Ctrl-C is the end.
    pub(crate) fn whole(&self) -> Cancel {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

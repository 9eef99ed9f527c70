//! Ctrl-C: a flag that loops look at between rows, and runs inside a table too.

use std::process;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use sapwood::aggregate::Cancel;

/// How long a command may take to notice, before the process ends without its summary: it may
/// be waiting for input or output that never comes.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the user asked to stop. The second time ends the process at once.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    asked: Cancel,
}

impl Interrupt {
    /// Starts listening, once for the process; without a handler Ctrl-C ends it at once.
    pub(crate) fn listen() -> Self {
        static LISTENER: OnceLock<Interrupt> = OnceLock::new();
        LISTENER
            .get_or_init(|| {
                let asked = Cancel::new();
                let flag = asked.clone();
                let handler = move || {
                    if flag.is_cancelled() {
                        process::exit(130);
                    }
                    flag.cancel();
                    thread::spawn(|| {
                        thread::sleep(PATIENCE);
                        eprintln!("interrupted");
                        process::exit(130);
                    });
                };
                if let Err(error) = ctrlc::set_handler(handler) {
                    eprintln!("warning: Ctrl-C will end the command without a summary: {error}");
                }
                Interrupt { asked }
            })
            .clone()
    }

    pub(crate) fn asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    /// What stops a run inside a table when the user asks.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.asked
    }

    /// One that nobody else hears of.
    #[cfg(test)]
    pub(crate) fn of(asked: Cancel) -> Self {
        Interrupt { asked }
    }
}

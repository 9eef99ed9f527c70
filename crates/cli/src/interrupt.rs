//! Ctrl-C: a flag that loops look at between rows.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// How long a command may take to notice, before the process ends without its summary: it may
/// be waiting for input or output that never comes.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the user asked to stop. The second time ends the process at once.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Starts listening, once for the process; without a handler Ctrl-C ends it at once.
    pub(crate) fn listen() -> Self {
        static LISTENER: OnceLock<Interrupt> = OnceLock::new();
        LISTENER
            .get_or_init(|| {
                let asked = Arc::new(AtomicBool::new(false));
                let flag = Arc::clone(&asked);
                let handler = move || {
                    // Relaxed: the flag carries no other data.
                    if flag.swap(true, Ordering::Relaxed) {
                        process::exit(130);
                    }
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
        self.asked.load(Ordering::Relaxed)
    }
}

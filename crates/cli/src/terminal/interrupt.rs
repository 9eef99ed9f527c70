//! Ctrl-C: a flag that loops look at between rows, and runs inside a table too.

use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use sapwood::aggregate::Cancel;

use crate::terminal::stderr;

/// How long a command may take to notice, before the process ends without its summary: it may
/// be waiting for input or output that never comes.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the user asked to stop. The second time ends the process at once, but not while a
/// command has promised to end by itself.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    asked: Cancel,
    promises: Arc<AtomicUsize>,
}

/// While it lives, the process is not ended from outside: the command looks at [`Interrupt::asked`]
/// often, and has something to tidy up before it ends.
#[derive(Debug)]
pub(crate) struct Promise {
    promises: Arc<AtomicUsize>,
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.promises.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Interrupt {
    /// Starts listening, once for the process; without a handler Ctrl-C ends it at once.
    pub(crate) fn listen() -> Self {
        static LISTENER: OnceLock<Interrupt> = OnceLock::new();
        LISTENER
            .get_or_init(|| {
                let interrupt = Interrupt::of(Cancel::new());
                let heard = interrupt.clone();
                let handler = move || {
                    if heard.asked() {
                        if !heard.is_promised() {
                            process::exit(130);
                        }
                        return;
                    }
                    heard.asked.cancel();
                    let waiting = heard.clone();
                    thread::spawn(move || {
                        thread::sleep(PATIENCE);
                        while waiting.is_promised() {
                            thread::sleep(PATIENCE);
                        }
                        stderr::line("interrupted");
                        process::exit(130);
                    });
                };
                if let Err(error) = ctrlc::set_handler(handler) {
                    stderr::line(format_args!(
                        "warning: Ctrl-C will end the command without a summary: {error}"
                    ));
                }
                interrupt
            })
            .clone()
    }

    /// From now on the command ends by itself, soon after it was asked to.
    pub(crate) fn promise(&self) -> Promise {
        self.promises.fetch_add(1, Ordering::SeqCst);
        Promise { promises: Arc::clone(&self.promises) }
    }

    fn is_promised(&self) -> bool {
        self.promises.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    /// What stops a run inside a table when the user asks.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.asked
    }

    /// One that no signal reaches by itself.
    pub(crate) fn of(asked: Cancel) -> Self {
        Interrupt { asked, promises: Arc::default() }
    }
}

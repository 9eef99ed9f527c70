//! Work by time: keys end, memory is looked at and given back, idle clients are closed.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Service;

/// The pause between two rounds.
const PAUSE: Duration = Duration::from_millis(100);
/// The time of a round that goes to giving memory back: a third of a core while there is some.
const TIDYING: Duration = Duration::from_millis(50);

/// A thread that keeps a service in order until it is dropped.
#[derive(Debug)]
pub struct Housekeeping {
    /// Dropped to end the thread.
    running: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeping {
    /// Starts the thread.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(service: Arc<Service>) -> std::io::Result<Housekeeping> {
        let (running, ended) = mpsc::channel();
        let thread =
            std::thread::Builder::new().name("housekeeping".to_owned()).spawn(move || {
                while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                    // An error of a table is the next command's answer, too.
                    while service.expire().unwrap_or(false) {}
                    let _ = service.sweep();
                    service.check_memory();
                    let begun = Instant::now();
                    let _ = service.tidy(|| begun.elapsed() < TIDYING);
                    service.close_idle_clients();
                    service.close_full_clients();
                    service.sample();
                    if service.is_save_due() {
                        save(&service);
                    }
                }
            })?;
        Ok(Housekeeping { running: Some(running), thread: Some(thread) })
    }
}

/// Takes a checkpoint on a thread of its own: keys end meanwhile.
fn save(service: &Arc<Service>) {
    let service = Arc::clone(service);
    let saving = move || {
        tracing::info!("a checkpoint begins");
        match service.save() {
            Ok(()) => tracing::info!("the checkpoint is complete"),
            Err(error) => tracing::error!(%error, "the checkpoint failed, and is tried again"),
        }
    };
    let started = std::thread::Builder::new().name("checkpoint".to_owned()).spawn(saving);
    if let Err(error) = started {
        tracing::error!(%error, "no thread can be started for a checkpoint");
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to hand over, not even a panic.
            let _ = thread.join();
        }
    }
}

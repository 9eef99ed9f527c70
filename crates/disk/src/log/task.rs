//! Tasks that wait until a log lasts.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Log;
use super::format::Lsn;
use super::group::Task;

/// A log that is to last up to some record: a future, for [`Log::synced`]. It needs no runtime. One
/// that is dropped waits for nothing, and nothing is left of it.
#[derive(Debug)]
#[must_use = "a future does nothing before it is polled"]
pub struct Synced {
    log: Arc<Log>,
    lsn: Lsn,
    /// What the group knows it by.
    task: Option<Task>,
}

impl Synced {
    pub(super) fn new(log: Arc<Log>, lsn: Lsn) -> Synced {
        Synced { log, lsn, task: None }
    }
}

impl Future for Synced {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Synced { log, lsn, task } = self.get_mut();
        log.shared.poll_sync(*lsn, task, context.waker())
    }
}

impl Drop for Synced {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.log.shared.group.forget(task);
        }
    }
}

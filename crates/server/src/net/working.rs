//! A job while a thread that serves no clients does it, or is waited for.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use sapwood::Db;
use tokio::task::JoinHandle;
use tokio::time::Sleep;

use crate::jobs::Job;

/// The replies of a job, to be waited for. If no thread has begun it when its time is over, it is run by the thread
/// that waits, and refuses.
pub(super) struct Working {
    /// Taken by the thread that does it.
    job: Arc<Mutex<Option<Job>>>,
    work: JoinHandle<io::Result<Vec<u8>>>,
    late: Option<Pin<Box<Sleep>>>,
}

impl Working {
    /// Gives a job to a thread. Its changes are in `synced`, if they are to last before it ends; `kept` is dropped
    /// when the thread has done with it.
    pub(super) fn begin(job: Job, synced: Option<Db>, kept: impl Send + 'static) -> Working {
        let late = job.deadline().map(|at| Box::pin(tokio::time::sleep_until(at.into())));
        let job = Arc::new(Mutex::new(Some(job)));
        let waiting = Arc::clone(&job);
        let work = tokio::task::spawn_blocking(move || {
            let _kept = kept;
            let mut replies = Vec::new();
            if let Some(job) = take(&waiting) {
                job.run(&mut replies);
                synced.map_or(Ok(()), |db| db.changes().wait()).map_err(io::Error::other)?;
            }
            Ok(replies)
        });
        Working { job, work, late }
    }
}

fn take(job: &Mutex<Option<Job>>) -> Option<Job> {
    job.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Future for Working {
    type Output = io::Result<Vec<u8>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(done) = Pin::new(&mut self.work).poll(context) {
            return Poll::Ready(done.map_err(io::Error::other).flatten());
        }
        let Some(late) = &mut self.late else { return Poll::Pending };
        std::task::ready!(late.as_mut().poll(context));
        self.late = None;
        match take(&self.job) {
            None => Poll::Pending,
            Some(job) => {
                let mut replies = Vec::new();
                job.run(&mut replies);
                Poll::Ready(Ok(replies))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    use super::*;

    /// With one thread for jobs.
    fn run<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .enable_all()
            .build();
        runtime.expect("a thread").block_on(test)
    }

    /// A job that says in which thread it is run.
    fn job() -> Job {
        Job::new(|out| {
            let name = format!("{:?}", std::thread::current().id());
            out.extend_from_slice(name.as_bytes());
        })
    }

    #[test]
    fn a_job_that_waits_too_long_is_run_where_it_waits() {
        let here = format!("{:?}", std::thread::current().id());
        run(async {
            let (release, until) = channel::<()>();
            let holding = Job::new(move |_| {
                let _released = until.recv();
            });
            let held = Working::begin(holding, None, ());
            let soon = Instant::now() + Duration::from_millis(1);
            let late = Working::begin(job().with_deadline(Some(soon)), None, ());
            assert_eq!(late.await.expect("it is run"), here.as_bytes());
            drop(release);
            assert_eq!(held.await.expect("it is run"), b"");
            let patient = Working::begin(job(), None, ());
            assert_ne!(patient.await.expect("it is run"), here.as_bytes());
        });
    }

    #[test]
    fn a_job_that_has_begun_goes_on_beyond_its_time() {
        run(async {
            let (begin, begun) = channel();
            let (release, until) = channel::<()>();
            let job = Job::new(move |out: &mut Vec<u8>| {
                begin.send(()).expect("it is waited for");
                let _released = until.recv();
                out.extend_from_slice(b"done");
            });
            let soon = Instant::now() + Duration::from_millis(20);
            let mut working = Working::begin(job.with_deadline(Some(soon)), None, ());
            begun.recv().expect("the thread is free");
            let waited = tokio::time::timeout(Duration::from_millis(60), &mut working).await;
            assert!(waited.is_err(), "it goes on");
            drop(release);
            assert_eq!(working.await.expect("it is run"), b"done");
        });
    }
}

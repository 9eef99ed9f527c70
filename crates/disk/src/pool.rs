//! How do many reads overlap, with nothing but `pread`?
//!
//! A [`Pool`] keeps threads that read. They start when a batch first needs them, as many as it
//! has reads up to [`THREADS_MAX`]; they wait without using the processor between batches and end
//! when the pool is dropped. Whoever asks reads too, so that a batch ends even where no thread can
//! be had. Buffers travel to the threads and back: nothing is borrowed across threads.
//!
//! *Thread safety*: any number of threads may call [`Pool::read`] at once; their reads share the
//! threads, first come, first served. Lock order: queue, then batch.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::Blocks;

/// Reads in flight at most: each keeps a thread waiting. `docs/design/disk.md` has the rates.
const THREADS_MAX: usize = 64;
/// A thread of the pool calls `pread` and little else.
const STACK_BYTES: usize = 64 << 10;

/// A read that owns what it needs.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) file: Arc<fs::File>,
    pub(crate) offset: u64,
    pub(crate) into: Blocks,
}

/// A job's buffer, and what became of it.
pub(crate) type Done = (Blocks, io::Result<()>);

impl Job {
    fn read(mut self) -> Done {
        let result = self.file.read_exact_at(self.into.bytes_mut(), self.offset);
        (self.into, result)
    }
}

/// Threads that read.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signalled for each task while a thread waits, and to all at the end.
    more: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    tasks: VecDeque<Task>,
    waiting: usize,
    ended: bool,
}

#[derive(Debug)]
struct Task {
    job: Job,
    index: usize,
    batch: Arc<Batch>,
}

#[derive(Debug)]
struct Batch {
    progress: Mutex<Progress>,
    /// Signalled when the last task of the batch is done.
    finished: Condvar,
}

#[derive(Debug)]
struct Progress {
    done: Vec<Option<Done>>,
    left: usize,
}

impl Task {
    fn run(self) {
        let done = self.job.read();
        let mut progress = locked(&self.batch.progress);
        progress.done[self.index] = Some(done);
        progress.left -= 1;
        if progress.left == 0 {
            self.batch.finished.notify_all();
        }
    }
}

impl Pool {
    /// Does all jobs and answers in their order.
    pub(crate) fn read(&self, jobs: Vec<Job>) -> Vec<Done> {
        let count = jobs.len();
        if count <= 1 {
            return jobs.into_iter().map(Job::read).collect();
        }
        let progress = Progress { done: (0..count).map(|_| None).collect(), left: count };
        let batch = Arc::new(Batch { progress: Mutex::new(progress), finished: Condvar::new() });
        let mut queue = locked(&self.shared.queue);
        for (index, job) in jobs.into_iter().enumerate() {
            queue.tasks.push_back(Task { job, index, batch: Arc::clone(&batch) });
        }
        let wanted = queue.tasks.len();
        let waiting = queue.waiting;
        drop(queue);
        for _ in 0..wanted.min(waiting) {
            self.shared.more.notify_one();
        }
        self.start_threads(wanted);
        while let Some(task) = self.shared.try_take() {
            task.run();
        }
        let mut progress = locked(&batch.progress);
        while progress.left > 0 {
            progress = batch.finished.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        let done = std::mem::take(&mut progress.done);
        done.into_iter().map(|done| done.expect("nothing of the batch is left")).collect()
    }

    /// Starts threads until there are `wanted` or [`THREADS_MAX`]. Fewer are slower, no less
    /// right, so a refusal of the system is not passed on.
    fn start_threads(&self, wanted: usize) {
        let mut running = locked(&self.running);
        while running.len() < wanted.min(THREADS_MAX) {
            let shared = Arc::clone(&self.shared);
            let builder = std::thread::Builder::new().name("sapwood-read".to_owned());
            match builder.stack_size(STACK_BYTES).spawn(move || shared.serve()) {
                Ok(handle) => running.push(handle),
                Err(_) => return,
            }
        }
    }
}

impl Shared {
    fn try_take(&self) -> Option<Task> {
        locked(&self.queue).tasks.pop_front()
    }

    fn serve(&self) {
        let mut queue = locked(&self.queue);
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                drop(queue);
                task.run();
                queue = locked(&self.queue);
            } else if queue.ended {
                return;
            } else {
                queue.waiting += 1;
                queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.waiting -= 1;
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        locked(&self.shared.queue).ended = true;
        self.shared.more.notify_all();
        for thread in std::mem::take(&mut *locked(&self.running)) {
            // A thread that panicked has already said so.
            let _ = thread.join();
        }
    }
}

/// Locks; every critical section here leaves its data whole, even if it were to panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BLOCK_BYTES;

    #[test]
    fn threads_start_with_the_first_batch_and_end_with_the_pool() {
        let file = Arc::new(tempfile::tempfile().expect("a file"));
        file.write_all_at(&[7; 3 * BLOCK_BYTES], 0).expect("written");
        let jobs = |count: usize| -> Vec<Job> {
            let offset = |at| (at % 3 * BLOCK_BYTES) as u64;
            let job = |at| (Arc::clone(&file), offset(at), Blocks::new(BLOCK_BYTES));
            (0..count).map(job).map(|(file, offset, into)| Job { file, offset, into }).collect()
        };
        let pool = Pool::default();
        let shared = Arc::clone(&pool.shared);
        assert_eq!(pool.read(jobs(1)).len(), 1);
        assert_eq!(locked(&pool.running).len(), 0, "one read needs no thread");
        for (count, most) in [(3, 3), (200, THREADS_MAX), (5, THREADS_MAX)] {
            for (into, result) in pool.read(jobs(count)) {
                assert!(result.is_ok());
                assert_eq!(into.bytes(), [7; BLOCK_BYTES]);
            }
            assert!((1..=most).contains(&locked(&pool.running).len()));
        }
        drop(pool);
        assert_eq!(Arc::strong_count(&shared), 1, "no thread holds it any more");
    }
}

//! The pool of threads that wait for the disk: many reads overlap, with nothing but `pread`.
//!
//! A [`Pool`] keeps threads that do what waits for the disk, [`THREADS_MAX`] at most. They start
//! one after another: a work that no thread waits for starts one, and a thread that takes a work
//! and leaves others behind starts the next. So a fast disk has few, before which the queue is
//! empty, and a slow one soon has as many as there are works. They wait without using the processor
//! between works and end when the pool is dropped, once all is done that was begun. Where no thread
//! can be had, the caller does the work. Buffers travel to the threads and back: nothing is
//! borrowed across threads.
//!
//! *Thread safety*: any number of threads may call the pool at once; their works share the
//! threads, first come, first served. Works take turns in any order and may wait for each other's
//! locks, but not for each other's answers.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::{Blocks, Pending, Work};

/// Works in flight at most: each keeps a thread waiting. `docs/design/disk.md` has the rates.
const THREADS_MAX: usize = 64;
/// A thread of the pool reads or writes, and checks what it read; no frame of that is large.
const STACK_BYTES: usize = 128 << 10;

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

/// Threads that wait for the disk.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Taken after the lock of the queue.
    running: Mutex<Vec<JoinHandle<()>>>,
    /// Signalled for each work while a thread waits, and to all at the end.
    more: Condvar,
}

#[derive(Default)]
struct Queue {
    works: VecDeque<Work>,
    waiting: usize,
    /// Threads that were started and have not looked for a work yet.
    starting: usize,
    ended: bool,
}

impl Queue {
    fn wants_thread(&self) -> bool {
        self.works.len() > self.waiting + self.starting
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("works", &self.works.len()).finish_non_exhaustive()
    }
}

impl Pool {
    /// Does all jobs and answers in their order.
    pub(crate) fn read(&self, jobs: Vec<Job>) -> Vec<Done> {
        if jobs.len() <= 1 {
            return jobs.into_iter().map(Job::read).collect();
        }
        let halves = jobs.into_iter().map(|job| Pending::new(move || job.read()));
        let (done, works): (Vec<_>, Vec<_>) = halves.unzip();
        self.spawn(works);
        // Rather than wait, read too.
        while let Some(work) = self.shared.try_take() {
            work();
        }
        done.into_iter().map(Pending::wait).collect()
    }

    /// Does all works some time.
    pub(crate) fn spawn(&self, works: Vec<Work>) {
        let mut queue = locked(&self.shared.queue);
        queue.works.extend(works);
        let woken = queue.works.len().min(queue.waiting);
        let is_served = !queue.wants_thread() || self.shared.start_thread(&mut queue);
        drop(queue);
        for _ in 0..woken {
            self.shared.more.notify_one();
        }
        if !is_served {
            while let Some(work) = self.shared.try_take() {
                work();
            }
        }
    }
}

impl Shared {
    fn try_take(&self) -> Option<Work> {
        locked(&self.queue).works.pop_front()
    }

    /// Starts one more thread if there may be one; false if there is none at all. Fewer are slower,
    /// no less right, so a refusal of the system is not passed on.
    fn start_thread(self: &Arc<Self>, queue: &mut Queue) -> bool {
        let mut running = locked(&self.running);
        if running.len() < THREADS_MAX {
            let shared = Arc::clone(self);
            let builder = std::thread::Builder::new().name("sapwood-disk".to_owned());
            if let Ok(handle) = builder.stack_size(STACK_BYTES).spawn(move || shared.serve()) {
                running.push(handle);
                queue.starting += 1;
                debug_assert!(running.len() <= THREADS_MAX);
            }
        }
        !running.is_empty()
    }

    fn serve(self: Arc<Self>) {
        let mut queue = locked(&self.queue);
        debug_assert!(queue.starting > 0, "the thread was counted when it was started");
        queue.starting -= 1;
        loop {
            if let Some(work) = queue.works.pop_front() {
                if queue.wants_thread() {
                    self.start_thread(&mut queue);
                }
                drop(queue);
                work();
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
        // A thread may have started another before it ends.
        while let Some(thread) = { locked(&self.shared.running).pop() } {
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
        assert_eq!(locked(&shared.running).len(), 0, "one read needs no thread");
        for (count, most) in [(3, 3), (200, THREADS_MAX), (5, THREADS_MAX)] {
            for (into, result) in pool.read(jobs(count)) {
                assert!(result.is_ok());
                assert_eq!(into.bytes(), [7; BLOCK_BYTES]);
            }
            assert!((1..=most).contains(&locked(&shared.running).len()));
        }
        let (done, works): (Vec<_>, Vec<_>) = (0..300).map(|at| Pending::new(move || at)).unzip();
        pool.spawn(works);
        drop(pool);
        assert!(done.iter().all(Pending::is_done), "what was begun is done before the pool ends");
        assert_eq!(Arc::strong_count(&shared), 1, "no thread holds it any more");
    }

    /// As many as works that wait at once, and not as many as there ever were.
    #[test]
    fn threads_are_as_many_as_works_that_wait() {
        const AT_ONCE: usize = 10;
        let pool = Pool::default();
        let threads = || locked(&pool.shared.running).len();
        for at in 0..100 {
            let (done, work) = Pending::new(move || at);
            pool.spawn(vec![work]);
            assert_eq!(done.wait(), at);
            // The thread is about to wait for the next.
            while locked(&pool.shared.queue).waiting == 0 {
                std::thread::yield_now();
            }
        }
        assert_eq!(threads(), 1, "one after another needs one");
        // None is done before all have begun.
        let all = Arc::new(std::sync::Barrier::new(AT_ONCE));
        let wait = |_| {
            let all = Arc::clone(&all);
            Pending::new(move || {
                all.wait();
            })
        };
        let (done, works): (Vec<_>, Vec<_>) = (0..AT_ONCE).map(wait).unzip();
        pool.spawn(works);
        done.into_iter().for_each(Pending::wait);
        assert_eq!(threads(), AT_ONCE);
    }
}

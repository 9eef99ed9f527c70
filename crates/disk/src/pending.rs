//! Answers of works in the background.
//!
//! *Thread safety*: the two halves of a [`Pending`] may be on any threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

/// Something to do, on whatever thread.
pub type Work = Box<dyn FnOnce() + Send>;

/// An answer that is on its way.
#[derive(Debug)]
pub struct Pending<T>(Arc<Slot<T>>);

#[derive(Debug)]
struct Slot<T> {
    /// The answer of the work, or its panic.
    answer: Mutex<Option<thread::Result<T>>>,
    there: Condvar,
}

impl<T: Send + 'static> Pending<T> {
    /// Splits `work` into what is to be done, by [`Disk::spawn`](crate::Disk::spawn), and its
    /// answer.
    pub fn new(work: impl FnOnce() -> T + Send + 'static) -> (Pending<T>, Work) {
        let slot = Arc::new(Slot { answer: Mutex::new(None), there: Condvar::new() });
        let answers = Arc::clone(&slot);
        let work = move || {
            // The panic resumes in the waiting thread; no other effect of the work is visible to
            // it.
            let answer = catch_unwind(AssertUnwindSafe(work));
            let before =
                answers.answer.lock().unwrap_or_else(PoisonError::into_inner).replace(answer);
            debug_assert!(before.is_none(), "a work is done once");
            answers.there.notify_all();
        };
        (Pending(slot), Box::new(work))
    }

    /// An answer that is there.
    pub fn ready(answer: T) -> Pending<T> {
        Pending(Arc::new(Slot { answer: Mutex::new(Some(Ok(answer))), there: Condvar::new() }))
    }

    /// Whether the answer is there.
    pub fn is_done(&self) -> bool {
        self.0.answer.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits until the answer is there.
    pub fn wait_until_done(&self) {
        let mut answer = self.0.answer.lock().unwrap_or_else(PoisonError::into_inner);
        while answer.is_none() {
            answer = self.0.there.wait(answer).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the answer.
    ///
    /// # Panics
    /// If the work did, as it did.
    pub fn wait(self) -> T {
        let mut answer = self.0.answer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match answer.take() {
                Some(Ok(answer)) => return answer,
                Some(Err(panic)) => resume_unwind(panic),
                None => {
                    answer = self.0.there.wait(answer).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_when_the_work_is_done() {
        let (pending, work) = Pending::new(|| 7);
        assert!(!pending.is_done());
        work();
        pending.wait_until_done();
        assert!(pending.is_done());
        assert_eq!(pending.wait(), 7);
        assert_eq!(Pending::ready(8).wait(), 8);
    }

    #[test]
    fn who_waits_first_is_woken() {
        let (pending, work) = Pending::new(|| "done");
        let waiting = thread::spawn(move || pending.wait());
        work();
        assert_eq!(waiting.join().expect("no panic"), "done");
    }

    #[test]
    fn a_panic_reaches_who_waits_and_nobody_else() {
        let (pending, work) = Pending::new(|| -> u8 { panic!("at work") });
        work();
        let waiting = thread::spawn(move || pending.wait());
        let panic = waiting.join().expect_err("the work's panic");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"at work"));
    }
}

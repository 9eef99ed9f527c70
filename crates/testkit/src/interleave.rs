//! Pauses where they hurt, as a seed says, so that threads get in each other's way.
//!
//! Adapters call [`pause`] inside their closures (under a value's lock, in the middle of a scan);
//! stress rounds call it between operations. It does nothing on a thread that has not called
//! [`seed_thread`], so that streams on one thread run at full speed.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

thread_local! {
    /// State of this thread's xorshift; zero means that it does not pause.
    static PAUSES: Cell<u64> = const { Cell::new(0) };
}

/// Makes this thread pause here and there, at places that follow from `seed`.
pub fn seed_thread(seed: u64) {
    PAUSES.set(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
}

/// Maybe gives way to another thread: mostly not, at times a yield, a short spin, rarely a nap.
pub fn pause() {
    let mut state = PAUSES.get();
    if state == 0 {
        return;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    PAUSES.set(state);
    match (state >> 32) % 64 {
        0..12 => std::thread::yield_now(),
        12..20 => (0..state >> 57).for_each(|_| std::hint::spin_loop()),
        // Long enough for the scheduler to run another thread, even on one core.
        20 => std::thread::sleep(Duration::from_micros(20)),
        _ => {}
    }
}

/// Lets threads go at once: they spin, so that none begins a time slice behind another.
pub struct StartLine {
    missing: AtomicUsize,
}

impl StartLine {
    /// For `count` threads.
    pub fn new(count: usize) -> Self {
        StartLine { missing: AtomicUsize::new(count) }
    }

    /// Returns when every thread has come.
    pub fn wait(&self) {
        self.missing.fetch_sub(1, Ordering::AcqRel);
        while self.missing.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
    }
}

/// Tells threads that go on until others have ended, whether these returned or panicked.
pub struct Running {
    left: AtomicUsize,
}

impl Running {
    /// While `count` guards are alive.
    pub fn new(count: usize) -> Self {
        Running { left: AtomicUsize::new(count) }
    }

    /// Whether any of them is.
    pub fn any(&self) -> bool {
        self.left.load(Ordering::Acquire) > 0
    }

    /// One of them: ends where it is dropped.
    #[must_use = "dropping it ends it"]
    pub fn guard(&self) -> RunningGuard<'_> {
        RunningGuard(self)
    }
}

/// Ends its share of a [`Running`] when it is dropped.
pub struct RunningGuard<'a>(&'a Running);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.0.left.fetch_sub(1, Ordering::AcqRel);
    }
}

//! Wall time, or each thread's processor time where the machine is busy with other work.

use std::time::{Duration, Instant};

/// The clock of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Clock {
    /// From the first thread's start to the last one's end
    Wall,
    /// The processor time of the thread that took most: hides waiting for locks, so it is for
    /// development on a busy machine alone
    Cpu,
}

/// One thread's start or end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    wall: Instant,
    cpu: Duration,
}

impl Moment {
    pub(crate) fn now() -> Moment {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Moment {
            wall: Instant::now(),
            cpu: Duration::new(cpu.tv_sec.unsigned_abs(), cpu.tv_nsec.unsigned_abs() as u32),
        }
    }
}

impl Clock {
    /// The time of a run, from the starts and ends of its threads.
    pub(crate) fn elapsed(
        self,
        threads: impl Iterator<Item = (Moment, Moment)> + Clone,
    ) -> Duration {
        let elapsed = match self {
            Clock::Wall => {
                let begin = threads.clone().map(|thread| thread.0.wall).min();
                let end = threads.map(|thread| thread.1.wall).max();
                begin.zip(end).map(|(begin, end)| end - begin)
            }
            Clock::Cpu => threads.map(|(begin, end)| end.cpu - begin.cpu).max(),
        };
        elapsed.expect("at least one thread")
    }
}

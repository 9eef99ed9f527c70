//! A log is synced after its interval, and for tasks that wait, by a thread of its own.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use sapwood_disk::log::{Log, LogOptions, LogStart};
use sapwood_disk::{Disk, Faults, SimDisk, SyncFault};

const INTERVAL: Duration = Duration::from_millis(50);
const TICK: Duration = Duration::from_millis(1);

fn made(disk: &Arc<SimDisk>, sync_interval: Option<Duration>) -> Log {
    let options = LogOptions { sync_interval, part_bytes_min: 64 << 10, ..LogOptions::default() };
    Log::create(Arc::clone(disk) as Arc<dyn Disk>, 7, options, 0).expect("made")
}

/// Wakes the thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Does something once when it is woken.
struct OnWake(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl OnWake {
    fn waker(work: impl FnOnce() + Send + 'static) -> Waker {
        Waker::from(Arc::new(OnWake(Mutex::new(Some(Box::new(work))))))
    }
}

impl Wake for OnWake {
    fn wake(self: Arc<Self>) {
        let work = self.0.lock().expect("no panic").take();
        if let Some(work) = work {
            work();
        }
    }
}

fn poll(future: &mut (impl Future<Output = io::Result<()>> + Unpin), waker: &Waker) -> bool {
    Pin::new(future).poll(&mut Context::from_waker(waker)).is_ready()
}

#[test]
fn what_is_appended_lasts_after_the_interval_and_no_thread_works_without_need() {
    let disk = Arc::new(SimDisk::new());
    let log = made(&disk, Some(INTERVAL));
    for round in 0..5 {
        let before = log.durable();
        let lsn = log.append(b"acorn").expect("appended");
        disk.wait_for_sleepers(1);
        disk.advance(INTERVAL - TICK);
        let later = log.append(b"oak").expect("appended");
        disk.wait_for_sleepers(1);
        assert_eq!(log.durable(), before, "round {round}: it is not time yet");
        disk.advance(TICK);
        disk.wait_for_sleepers(1);
        assert!(log.durable() >= later && later > lsn, "round {round}");
        let operations = disk.operations();
        disk.advance(3 * INTERVAL);
        disk.wait_for_sleepers(1);
        assert_eq!(disk.operations(), operations, "round {round}: nothing is to be done");
    }
}

#[test]
fn a_sync_that_a_caller_wanted_counts() {
    let disk = Arc::new(SimDisk::new());
    let log = made(&disk, Some(INTERVAL));
    let lsn = log.append(b"acorn").expect("appended");
    disk.advance(INTERVAL / 2);
    log.sync(lsn).expect("synced");
    let operations = disk.operations();
    disk.wait_for_sleepers(1);
    disk.advance(INTERVAL);
    disk.wait_for_sleepers(1);
    assert_eq!(disk.operations(), operations, "all lasts already");
    // Arranged for anew.
    let lsn = log.append(b"oak").expect("appended");
    disk.wait_for_sleepers(1);
    disk.advance(INTERVAL);
    disk.wait_for_sleepers(1);
    assert!(log.durable() >= lsn);
}

#[test]
fn a_log_that_goes_syncs_what_is_arranged_and_ends_its_thread() {
    let disk = Arc::new(SimDisk::new());
    for wait in [false, true] {
        let log = made(&disk, Some(INTERVAL));
        for _ in 0..3 {
            log.append(b"acorn").expect("appended");
        }
        if wait {
            disk.wait_for_sleepers(1);
        }
        drop(log);
        assert_eq!(Arc::strong_count(&disk), 1, "no thread has the disk");
        disk.wait_for_sleepers(0);
        for seed in 0..10 {
            let mut count = 0;
            let start = LogStart { lsn: 0, part: 1, durable: 0 };
            Log::view(&disk.crash(seed), 7, "redo", start, &mut |_, _| {
                count += 1;
                Ok::<(), io::Error>(())
            })
            .expect("read");
            assert_eq!(count, 3, "seed {seed}");
        }
    }
}

#[test]
fn without_an_interval_there_is_no_thread() {
    let disk = Arc::new(SimDisk::new());
    let log = made(&disk, None);
    let owners = Arc::strong_count(&disk);
    let lsn = log.append(b"acorn").expect("appended");
    disk.advance(10 * INTERVAL);
    assert!(log.durable() < lsn);
    assert_eq!(Arc::strong_count(&disk), owners);
}

#[test]
fn an_interval_may_come_later_and_change() {
    let disk = Arc::new(SimDisk::new());
    let log = made(&disk, None);
    log.append(b"acorn").expect("appended");
    log.set_sync_interval(Some(2 * INTERVAL));
    let lsn = log.append(b"oak").expect("appended");
    disk.wait_for_sleepers(1);
    disk.advance(INTERVAL);
    disk.wait_for_sleepers(1);
    assert!(log.durable() < lsn, "it is not time yet");
    disk.advance(INTERVAL);
    disk.wait_for_sleepers(1);
    assert!(log.durable() >= lsn);
    log.set_sync_interval(None);
    let lsn = log.append(b"elm").expect("appended");
    disk.wait_for_sleepers(1);
    disk.advance(10 * INTERVAL);
    assert!(log.durable() < lsn);
}

#[test]
fn a_sync_that_fails_in_the_background_is_told() {
    let disk = Arc::new(SimDisk::new());
    let log = Arc::new(made(&disk, Some(INTERVAL)));
    let lsn = log.append(b"acorn").expect("appended");
    assert!(log.failed_sync().is_none());
    disk.set_faults(Faults::new().syncs(.., SyncFault::Lost(io::ErrorKind::StorageFull)));
    disk.wait_for_sleepers(1);
    disk.advance(INTERVAL);
    disk.wait_for_sleepers(1);
    disk.set_faults(Faults::new());
    let told = log.failed_sync().expect("it failed");
    assert_eq!(told.kind(), io::ErrorKind::StorageFull);
    let told = log.append(b"oak").expect_err("nothing more is taken");
    assert!(told.to_string().contains("fails as planned"), "{told}");
    assert_eq!(log.sync(lsn).expect_err("lost").kind(), io::ErrorKind::StorageFull);
    block_on(log.synced(lsn)).expect_err("lost");
    // It is not tried again.
    let operations = disk.operations();
    disk.advance(INTERVAL);
    disk.wait_for_sleepers(1);
    drop(log);
    assert_eq!(disk.operations(), operations);
}

#[test]
fn a_future_makes_its_record_last_with_no_other_thread() {
    let disk = Arc::new(SimDisk::new());
    let log = Arc::new(made(&disk, None));
    for _ in 0..20 {
        let lsn = log.append(b"acorn").expect("appended");
        let synced = log.synced(lsn);
        assert!(log.durable() < lsn, "a future that is not polled does nothing");
        block_on(synced).expect("synced");
        assert!(log.durable() >= lsn);
        block_on(log.synced(lsn)).expect("it lasts already");
    }
    block_on(log.synced(u64::MAX)).expect("as far as the log goes");
}

#[test]
fn futures_and_callers_of_many_threads_all_last() {
    let disk = Arc::new(SimDisk::new());
    let log = Arc::new(made(&disk, Some(INTERVAL)));
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let log = Arc::clone(&log);
            scope.spawn(move || {
                for round in 0..100 {
                    let lsn = log.append(b"acorn").expect("appended");
                    match (thread + round) % 3 {
                        0 => log.sync(lsn).expect("synced"),
                        1 => block_on(log.synced(lsn)).expect("synced"),
                        // One that is given up.
                        _ => {
                            let mut synced = log.synced(lsn);
                            poll(&mut synced, Waker::noop());
                            continue;
                        }
                    }
                    assert!(log.durable() >= lsn);
                }
            });
        }
    });
    drop(log);
    assert_eq!(Arc::strong_count(&disk), 1);
}

#[test]
fn a_future_that_is_dropped_leaves_nothing_behind() {
    let disk = Arc::new(SimDisk::new());
    let log = Arc::new(made(&disk, None));
    // Holds the log's thread up, so that nothing is synced for others.
    let (hold, held) = mpsc::channel::<()>();
    let (at_work, is_at_work) = mpsc::channel();
    let mut first = log.synced(log.append(b"acorn").expect("appended"));
    let blocks = OnWake::waker(move || {
        at_work.send(()).expect("the test waits");
        let _released = held.recv();
    });
    assert!(!poll(&mut first, &blocks));
    is_at_work.recv().expect("the thread wakes it");
    let lsn = log.append(b"oak").expect("appended");
    let waker = Arc::new(Unpark(std::thread::current()));
    let mut second = log.synced(lsn);
    for _ in 0..3 {
        assert!(!poll(&mut second, &Waker::from(Arc::clone(&waker))));
        assert_eq!(Arc::strong_count(&waker), 2, "one waker, however often it is polled");
    }
    // Another task takes the future over.
    assert!(!poll(&mut second, Waker::noop()));
    assert_eq!(Arc::strong_count(&waker), 1);
    assert!(!poll(&mut second, &Waker::from(Arc::clone(&waker))));
    drop(second);
    assert_eq!(Arc::strong_count(&waker), 1);
    drop(hold);
    disk.wait_for_sleepers(1);
    assert!(log.durable() < lsn, "no task wants it");
}

#[test]
fn a_sync_that_fails_wakes_all_tasks() {
    let disk = Arc::new(SimDisk::new());
    let log = Arc::new(made(&disk, None));
    let lsn = log.append(b"acorn").expect("appended");
    disk.set_faults(Faults::new().syncs(.., SyncFault::Lost(io::ErrorKind::Other)));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| block_on(log.synced(lsn)).expect_err("the sync fails"));
        }
    });
}

/// The thread of the log does not wait for itself.
#[test]
fn a_task_that_is_woken_may_drop_the_log() {
    let disk = Arc::new(SimDisk::new());
    let log = Arc::new(made(&disk, None));
    let lsn = log.append(b"acorn").expect("appended");
    let last = Arc::new(Mutex::new(None));
    let was_dropped = Arc::new(AtomicBool::new(false));
    let (done, is_done) = mpsc::channel();
    let waker = {
        let (last, was_dropped) = (Arc::clone(&last), Arc::clone(&was_dropped));
        OnWake::waker(move || {
            drop(last.lock().expect("no panic").take());
            was_dropped.store(true, Ordering::Release);
            done.send(()).expect("the test waits");
        })
    };
    let mut synced = log.synced(lsn);
    // The future, and the log with it.
    let mut place = last.lock().expect("no panic");
    assert!(!poll(&mut synced, &waker));
    *place = Some(synced);
    drop((place, log));
    is_done.recv().expect("it was woken");
    assert!(was_dropped.load(Ordering::Acquire));
    disk.wait_for_sleepers(0);
}

//! Rings before real files and pipes: a pipe answers when the test writes to it.

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::{Read, Ring, Ticket};

/// None where the kernel refuses: then there is nothing to test.
fn ring() -> Option<Ring<u8>> {
    match Ring::new() {
        Ok(ring) => Some(ring),
        Err(cause) => {
            println!("skipped: the system refuses a ring: {cause}");
            None
        }
    }
}

const PIECE: usize = 100;
const PIECES: usize = 1000;

/// Pieces that are told by their bytes.
fn pieces() -> Arc<fs::File> {
    let file = tempfile::tempfile().expect("a file");
    for number in 0..PIECES {
        file.write_all_at(&[number as u8; PIECE], (number * PIECE) as u64).expect("written");
    }
    Arc::new(file)
}

fn piece(file: &Arc<fs::File>, number: usize) -> Read<u8> {
    Read { file: Arc::clone(file), offset: (number * PIECE) as u64, into: vec![0; PIECE] }
}

fn pipe() -> (Arc<fs::File>, PipeWriter) {
    let (reader, writer): (PipeReader, PipeWriter) = io::pipe().expect("a pipe");
    (Arc::new(fs::File::from(OwnedFd::from(reader))), writer)
}

fn from_pipe(pipe: &Arc<fs::File>) -> Read<u8> {
    Read { file: Arc::clone(pipe), offset: 0, into: vec![0; PIECE] }
}

fn expect_piece(ring: &mut Ring<u8>, ticket: Ticket, number: usize) {
    let (read, answer) = ring.wait(ticket);
    assert_eq!(answer.expect("read"), PIECE);
    assert_eq!(read.into, [number as u8; PIECE], "piece {number}");
    assert_eq!(read.offset, (number * PIECE) as u64);
}

#[test]
fn more_reads_than_are_in_flight_are_answered_in_any_order() {
    let Some(mut ring) = ring() else { return };
    let file = pieces();
    for round in 0..3 {
        let mut tickets: Vec<_> =
            (0..PIECES).map(|number| (number, ring.begin(piece(&file, number)))).collect();
        if round > 0 {
            ring.submit();
        }
        if round == 2 {
            tickets.reverse();
        }
        for (number, ticket) in tickets {
            expect_piece(&mut ring, ticket, number);
        }
        assert_eq!(Arc::strong_count(&file), 1, "no slot keeps it");
    }
}

#[test]
fn a_wait_for_some_needs_not_all() {
    let Some(mut ring) = ring() else { return };
    let (file, (pipe, mut writer)) = (pieces(), pipe());
    let slow = ring.begin(from_pipe(&pipe));
    let quick: Vec<_> = (0..7).map(|number| ring.begin(piece(&file, number))).collect();
    ring.wait_for(7);
    assert!(quick.iter().all(|ticket| ring.is_done(ticket)), "seven answers, and seven are quick");
    assert!(!ring.is_done(&slow));
    writer.write_all(&[9; 30]).expect("written");
    // More than there are: all of them.
    ring.wait_for(1000);
    let (read, answer) = ring.wait(slow);
    assert_eq!(answer.expect("read"), 30, "as many as there were");
    assert_eq!(read.into[..31], [&[9; 30][..], &[0]].concat());
    ring.wait_for(1);
    for (number, ticket) in quick.into_iter().enumerate() {
        expect_piece(&mut ring, ticket, number);
    }
}

#[test]
fn refusals_and_ends_come_as_the_system_says_them() {
    let Some(mut ring) = ring() else { return };
    let file = pieces();
    let (_reader, writer) = io::pipe().expect("a pipe");
    let written_alone = Arc::new(fs::File::from(OwnedFd::from(writer)));
    let refused = ring.begin(Read { file: written_alone, offset: 0, into: vec![0; 8] });
    let near_end = (PIECES * PIECE - 3) as u64;
    let short = ring.begin(Read { file: Arc::clone(&file), offset: near_end, into: vec![0; 8] });
    let beyond = ring.begin(Read { file: Arc::clone(&file), offset: 1 << 40, into: vec![0; 8] });
    let empty = ring.begin(Read { file: Arc::clone(&file), offset: 0, into: Vec::new() });
    let sound = ring.begin(piece(&file, 5));
    let cause = ring.wait(refused).1.expect_err("it is not open to be read");
    assert_eq!(cause.raw_os_error(), Some(libc::EBADF));
    assert_eq!(ring.wait(short).1.expect("read"), 3);
    assert_eq!(ring.wait(beyond).1.expect("read"), 0);
    assert_eq!(ring.wait(empty).1.expect("read"), 0);
    expect_piece(&mut ring, sound, 5);
}

/// I-LENT: the kernel is about to write there.
#[test]
fn a_buffer_that_is_abandoned_stays_until_the_answer() {
    let Some(mut ring) = ring() else { return };
    let (file, (pipe, mut writer)) = (pieces(), pipe());
    let abandoned = ring.begin(from_pipe(&pipe));
    ring.submit();
    ring.abandon(abandoned);
    assert_eq!(Arc::strong_count(&pipe), 2, "the ring keeps the read");
    // Its place is not given to another one.
    let other = ring.begin(piece(&file, 3));
    expect_piece(&mut ring, other, 3);
    writer.write_all(&[1]).expect("written");
    ring.wait_for(1);
    assert_eq!(Arc::strong_count(&pipe), 1, "the ring has let go");
    // One that is done, and one that was never handed over.
    let (done, begun) = (ring.begin(piece(&file, 1)), ring.begin(piece(&file, 2)));
    ring.abandon(begun);
    ring.wait_for(2);
    ring.abandon(done);
    assert_eq!(Arc::strong_count(&file), 1);
}

#[test]
fn an_answer_that_is_there_is_taken_without_a_wait() {
    let Some(mut ring) = ring() else { return };
    let (file, (pipe, mut writer)) = (pieces(), pipe());
    let (quick, slow) = (ring.begin(piece(&file, 4)), ring.begin(from_pipe(&pipe)));
    let slow = ring.take(slow).expect_err("nothing was handed over");
    ring.wait_for(1);
    let (read, answer) = ring.take(quick).expect("one answer, and one is quick");
    assert_eq!((answer.expect("read"), read.into), (PIECE, vec![4; PIECE]));
    let slow = ring.take(slow).expect_err("nothing was written");
    writer.write_all(&[9]).expect("written");
    assert_eq!(ring.wait(slow).1.expect("read"), 1);
    assert!(ring.is_idle() && !ring.is_left());
}

/// I-LENT: it waits for what the kernel has.
#[test]
fn a_ring_that_settles_has_no_buffer_that_was_abandoned() {
    let Some(mut ring) = ring() else { return };
    let (file, (pipe, mut writer)) = (pieces(), pipe());
    let taken = ring.begin(from_pipe(&pipe));
    ring.submit();
    // The kernel never hears of this one, which no byte comes for.
    let unheard = ring.begin(from_pipe(&pipe));
    let wanted = ring.begin(piece(&file, 3));
    ring.abandon(taken);
    ring.abandon(unheard);
    assert!(!ring.is_left());
    ring.settle();
    assert_eq!(Arc::strong_count(&pipe), 3, "one read is wanted: nothing is waited for");
    expect_piece(&mut ring, wanted, 3);
    assert_eq!(Arc::strong_count(&pipe), 2, "what was not handed over is gone");
    assert!(ring.is_left() && !ring.is_idle());
    let is_written = Arc::new(AtomicBool::new(false));
    let writing = thread::spawn({
        let is_written = Arc::clone(&is_written);
        move || {
            thread::sleep(Duration::from_millis(50));
            is_written.store(true, Ordering::SeqCst);
            writer.write_all(&[1]).expect("written");
        }
    });
    ring.settle();
    assert!(is_written.load(Ordering::SeqCst) && ring.is_idle() && !ring.is_left());
    assert_eq!(Arc::strong_count(&pipe), 1);
    writing.join().expect("no panic");
    // As many as are handed over by several calls.
    for number in (0..PIECES).map(|number| ring.begin(piece(&file, number))).collect::<Vec<_>>() {
        ring.abandon(number);
    }
    ring.settle();
    assert!(ring.is_idle());
    assert_eq!(Arc::strong_count(&file), 1);
}

/// A wait for more answers than are to come, of reads that were abandoned before they were handed over.
#[test]
fn a_wait_does_not_count_what_is_never_handed_over() {
    let Some(mut ring) = ring() else { return };
    let file = pieces();
    let mut tickets: Vec<_> = (0..100).map(|number| ring.begin(piece(&file, number))).collect();
    for ticket in tickets.drain(1..) {
        ring.abandon(ticket);
    }
    ring.wait_for(100);
    expect_piece(&mut ring, tickets.remove(0), 0);
    assert!(ring.is_idle());
}

/// I-LENT, of a thread that ends.
#[test]
fn a_ring_that_goes_waits_for_what_is_in_flight() {
    let Some(mut ring) = ring() else { return };
    let (file, (pipe, mut writer)) = (pieces(), pipe());
    let (mut tickets, is_written) = (Vec::new(), Arc::new(AtomicBool::new(false)));
    tickets.push(ring.begin(from_pipe(&pipe)));
    tickets.extend((0..20).map(|number| ring.begin(piece(&file, number))));
    ring.submit();
    // Begun, and never handed over: the kernel knows nothing of it.
    tickets.push(ring.begin(from_pipe(&pipe)));
    let writing = thread::spawn({
        let is_written = Arc::clone(&is_written);
        move || {
            thread::sleep(Duration::from_millis(100));
            is_written.store(true, Ordering::SeqCst);
            writer.write_all(&[1]).expect("written");
        }
    });
    drop(ring);
    assert!(is_written.load(Ordering::SeqCst), "the kernel had not answered yet");
    assert_eq!((Arc::strong_count(&pipe), Arc::strong_count(&file)), (1, 1));
    writing.join().expect("no panic");
}

/// As if the kernel had refused a call.
#[test]
fn a_broken_ring_answers_what_it_has_taken_and_refuses_the_rest() {
    let Some(mut ring) = ring() else { return };
    let (file, (pipe, mut writer)) = (pieces(), pipe());
    let taken = ring.begin(from_pipe(&pipe));
    ring.submit();
    let begun = ring.begin(piece(&file, 1));
    let abandoned = ring.begin(piece(&file, 2));
    ring.abandon(abandoned);
    assert_eq!(ring.refused(&io::Error::from_raw_os_error(libc::EINTR)), 0);
    assert!(!ring.is_broken(), "a signal breaks nothing");
    assert_eq!(ring.refused(&io::Error::from_raw_os_error(libc::EBADFD)), 2);
    assert!(ring.is_broken());
    let later = ring.begin(piece(&file, 3));
    for ticket in [begun, later] {
        assert!(ring.is_done(&ticket));
        let (read, answer) = ring.wait(ticket);
        assert_eq!(answer.expect_err("not handed over").kind(), io::ErrorKind::WouldBlock);
        assert_eq!(read.into, [0; PIECE]);
    }
    assert_eq!(Arc::strong_count(&file), 1);
    assert!(!ring.is_done(&taken));
    writer.write_all(&[1]).expect("written");
    assert_eq!(ring.wait(taken).1.expect("read"), 1);
    drop(ring);
}

/// As if the kernel had refused twice: it does not tell any more of what it has.
#[test]
fn a_lost_ring_answers_all_and_leaves_buffers_to_the_kernel() {
    let Some(mut ring) = ring() else { return };
    let (file, (pipe, mut writer)) = (pieces(), pipe());
    let (taken, abandoned) = (ring.begin(from_pipe(&pipe)), ring.begin(from_pipe(&pipe)));
    ring.submit();
    ring.abandon(abandoned);
    assert_eq!(ring.refused(&io::Error::from_raw_os_error(libc::EPERM)), 0);
    assert!(!ring.is_done(&taken) && !ring.is_idle());
    assert_eq!(ring.refused(&io::Error::from_raw_os_error(libc::EPERM)), 2);
    // The kernel writes to buffers that no one has any more.
    writer.write_all(&[1; 64]).expect("written");
    let (read, answer) = ring.wait(taken);
    assert_eq!(answer.expect_err("nothing is known of it").kind(), io::ErrorKind::WouldBlock);
    assert!(read.into.iter().all(|byte| *byte == 0), "another buffer of as many bytes");
    assert_eq!(read.into.len(), from_pipe(&pipe).into.len());
    assert!(ring.is_idle() && ring.is_broken());
    let later = ring.begin(piece(&file, 3));
    ring.wait_for(1);
    assert!(ring.wait(later).1.is_err());
}

/// The kernel has no memory for more, until some reads are done.
#[test]
fn a_refusal_for_lack_of_memory_waits_for_what_is_in_flight() {
    let Some(mut ring) = ring() else { return };
    let (file, (pipe, mut writer)) = (pieces(), pipe());
    let first = ring.begin(from_pipe(&pipe));
    ring.submit();
    let second = ring.begin(piece(&file, 2));
    let writing = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        writer.write_all(&[1]).expect("written");
    });
    for cause in [libc::EAGAIN, libc::EBUSY] {
        assert_eq!(ring.refused(&io::Error::from_raw_os_error(cause)), 0);
    }
    assert!(!ring.is_broken());
    assert_eq!(ring.wait(first).1.expect("read"), 1);
    expect_piece(&mut ring, second, 2);
    writing.join().expect("no panic");
    let _begun = ring.begin(piece(&file, 3));
    assert_eq!(ring.refused(&io::Error::from_raw_os_error(libc::EAGAIN)), 1, "none is in flight");
    assert!(ring.is_broken());
}

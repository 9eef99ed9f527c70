//! The ring of Linux.

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsRawFd;

use io_uring::{EnterFlags, IoUring, opcode, types};
use zerocopy::FromBytes;

use super::{Read, Ticket};

/// Reads that one call hands over at most. A batch of the usual size is one call.
const SUBMITTED_MAX: u32 = 128;
/// Reads in flight at most. Disks do no more at once, and what the kernel cannot hand to the disk at once
/// it gives to threads of its own, which cost more than a read that waits here.
const IN_FLIGHT_MAX: usize = 128;

/// A thread's ring, and the reads that were begun by it.
///
/// # Consistency
/// A buffer has what the file had at some time between the begin of its read and its answer.
pub struct Ring<T> {
    ring: IoUring,
    /// By the numbers of tickets.
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// Begun, and not in the ring yet; oldest first.
    begun: VecDeque<u32>,
    /// They lie in the ring, and the kernel has not taken them; oldest first.
    pushed: VecDeque<u32>,
    /// The kernel has them.
    in_flight: usize,
    /// Reads whose tickets callers have.
    wanted: usize,
    state: State,
    /// It stays with its thread.
    _thread: PhantomData<*mut ()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Sound,
    /// The kernel takes no more reads.
    Broken,
    /// Nor does it tell of those that it has.
    Lost,
}

enum Slot<T> {
    Free,
    /// The kernel has it, or will.
    Waiting(Read<T>, Interest),
    Done(Read<T>, io::Result<usize>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interest {
    Wanted,
    /// The caller has lost interest.
    Abandoned,
}

impl<T> std::fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("begun", &(self.begun.len() + self.pushed.len()))
            .field("in_flight", &self.in_flight)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl<T: FromBytes + 'static> Ring<T> {
    /// Makes a ring of the calling thread.
    ///
    /// # Errors
    /// What the system answers where it has no io_uring, an older one, or forbids it.
    pub fn new() -> io::Result<Ring<T>> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            // A read that is refused does not keep those behind it.
            .setup_submit_all()
            // I-ROOM.
            .setup_cqsize((IN_FLIGHT_MAX as u32).max(2 * SUBMITTED_MAX))
            // A child has no use for it, and would change what the parent's kernel reads.
            .dontfork()
            .build(SUBMITTED_MAX)?;
        Ok(Ring {
            ring,
            slots: Vec::new(),
            free: Vec::new(),
            begun: VecDeque::new(),
            pushed: VecDeque::new(),
            in_flight: 0,
            wanted: 0,
            state: State::Sound,
            _thread: PhantomData,
        })
    }

    /// Whether the kernel has refused to take reads. Those that are begun all the same are answered by
    /// `WouldBlock`, and so are those that it had not taken.
    pub fn is_broken(&self) -> bool {
        self.state != State::Sound
    }

    /// Whether no read is begun whose answer was not taken.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Begins a read of as many bytes as `into` has. The kernel hears of it by the next call that submits
    /// or waits.
    pub fn begin(&mut self, read: Read<T>) -> Ticket {
        let slot = match self.state {
            State::Sound => Slot::Waiting(read, Interest::Wanted),
            State::Broken | State::Lost => Slot::Done(read, Err(io::ErrorKind::WouldBlock.into())),
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).expect("buffers of fewer reads fill memory")
            }
        };
        if self.state == State::Sound {
            self.begun.push_back(number);
        }
        self.wanted += 1;
        Ticket(number)
    }

    /// Hands over what was begun, as far as there is room.
    pub fn submit(&mut self) {
        self.enter(0);
    }

    /// Whether a read has its answer.
    pub fn is_done(&self, ticket: &Ticket) -> bool {
        matches!(self.slots[ticket.0 as usize], Slot::Done(..))
    }

    /// Waits until so many reads more have their answers, or all that were begun.
    pub fn wait_for(&mut self, count: usize) {
        let mut left = count.min(self.unanswered());
        while left > 0 && self.unanswered() > 0 {
            // While some wait here for room, the disk must not run dry.
            let has_room = self.unanswered() <= IN_FLIGHT_MAX;
            let most = if has_room { left } else { left.min(IN_FLIGHT_MAX / 2) };
            left = left.saturating_sub(self.enter(most));
        }
        if self.to_hand_over() > 0 {
            self.submit();
        }
    }

    /// Reads that the kernel has not taken.
    fn to_hand_over(&self) -> usize {
        self.begun.len() + self.pushed.len()
    }

    /// Reads without an answer.
    fn unanswered(&self) -> usize {
        self.in_flight + self.to_hand_over()
    }

    /// Waits for a read; answers how many bytes were read, from the beginning of its buffer.
    pub fn wait(&mut self, ticket: Ticket) -> (Read<T>, io::Result<usize>) {
        while !self.is_done(&ticket) {
            self.wait_for(1);
        }
        self.take_done(&ticket)
    }

    /// Takes the answer of a read that [has it](Ring::is_done). The kernel is not asked.
    pub fn take(&mut self, ticket: Ticket) -> Result<(Read<T>, io::Result<usize>), Ticket> {
        if self.is_done(&ticket) { Ok(self.take_done(&ticket)) } else { Err(ticket) }
    }

    fn take_done(&mut self, ticket: &Ticket) -> (Read<T>, io::Result<usize>) {
        self.wanted -= 1;
        match self.release(ticket.0) {
            Slot::Done(read, answer) => (read, answer),
            Slot::Free | Slot::Waiting(..) => unreachable!("it is done"),
        }
    }

    /// Leaves a read to the ring, which frees its buffer when the answer has come, or [`Ring::settle`] is
    /// called. The kernel is not asked.
    pub fn abandon(&mut self, ticket: Ticket) {
        self.wanted -= 1;
        match &mut self.slots[ticket.0 as usize] {
            Slot::Waiting(_, interest) => *interest = Interest::Abandoned,
            Slot::Done(..) => drop(self.release(ticket.0)),
            Slot::Free => unreachable!("a ticket is given up once"),
        }
    }

    /// Whether the ring has reads, and callers want none of them.
    pub fn is_left(&self) -> bool {
        self.wanted == 0 && !self.is_idle()
    }

    /// Waits for the reads that were abandoned, if no others are there: then the ring has no buffer any
    /// more. Those that the kernel has not heard of, it never does.
    pub fn settle(&mut self) {
        while self.is_left() {
            self.enter(self.in_flight);
        }
    }

    fn release(&mut self, number: u32) -> Slot<T> {
        self.free.push(number);
        std::mem::replace(&mut self.slots[number as usize], Slot::Free)
    }

    /// Hands over what was begun, waits until so many reads have their answers, and takes all answers
    /// that are there. Answers how many these are.
    fn enter(&mut self, wanted: usize) -> usize {
        self.push();
        let submitted = self.pushed.len();
        // Of those that were to come, some may just have been freed.
        let wanted = wanted.min(self.in_flight + submitted);
        let flags = if wanted > 0 { EnterFlags::GETEVENTS } else { EnterFlags::empty() };
        let mut done = 0;
        if submitted > 0 || wanted > 0 {
            // SAFETY: no argument is passed. The entries of reads are right by `push`.
            let entered = unsafe {
                self.ring.submitter().enter::<libc::sigset_t>(
                    submitted as u32,
                    wanted as u32,
                    flags.bits(),
                    None,
                )
            };
            match entered {
                Ok(taken) => self.count_taken(taken.min(submitted)),
                Err(cause) => done += self.refused(&cause),
            }
        }
        done + self.reap()
    }

    /// Puts what was begun into the ring, as far as there is room, and frees what was abandoned before.
    fn push(&mut self) {
        let room = IN_FLIGHT_MAX - self.in_flight;
        let limit = room.min(SUBMITTED_MAX as usize);
        let mut entries = self.ring.submission();
        while self.pushed.len() < limit
            && let Some(number) = self.begun.pop_front()
        {
            let slot = &mut self.slots[number as usize];
            let read = match slot {
                Slot::Waiting(read, Interest::Wanted) => read,
                Slot::Waiting(_, Interest::Abandoned) => {
                    *slot = Slot::Free;
                    self.free.push(number);
                    continue;
                }
                Slot::Free | Slot::Done(..) => unreachable!("it was begun, and not handed over"),
            };
            let bytes = size_of_val(read.into.as_slice());
            let bytes = u32::try_from(bytes).expect("a buffer is smaller than 4 GiB");
            let into = read.into.as_mut_ptr().cast();
            let entry = opcode::Read::new(types::Fd(read.file.as_raw_fd()), into, bytes)
                .offset(read.offset)
                .build()
                .user_data(u64::from(number));
            // SAFETY: the slot keeps file and buffer until the answer, by I-LENT; the buffer has so many
            // bytes, and any bytes are a `T`.
            let pushed = unsafe { entries.push(&entry) };
            pushed.expect("the ring has room for what one call hands over");
            self.pushed.push_back(number);
        }
    }

    /// The kernel has taken so many.
    fn count_taken(&mut self, taken: usize) {
        self.pushed.drain(..taken);
        self.in_flight += taken;
        debug_assert!(self.in_flight <= IN_FLIGHT_MAX, "I-ROOM");
    }

    /// The kernel has refused a call, and taken nothing.
    pub(super) fn refused(&mut self, cause: &io::Error) -> usize {
        match cause.raw_os_error() {
            // A signal came. The caller looks again.
            Some(libc::EINTR) => 0,
            // It lacks memory until some reads are done. Those that are in flight come first.
            Some(libc::EAGAIN | libc::EBUSY) if self.in_flight > 0 => {
                // SAFETY: no argument is passed, and no entry.
                let waited = unsafe {
                    self.ring.submitter().enter::<libc::sigset_t>(
                        0,
                        1,
                        EnterFlags::GETEVENTS.bits(),
                        None,
                    )
                };
                match waited.map_err(|cause| cause.raw_os_error()) {
                    Ok(_) | Err(Some(libc::EINTR)) => 0,
                    Err(_) => self.give_up(),
                }
            }
            _ => self.give_up(),
        }
    }

    /// Answers what was never handed over; if the kernel refuses once more, the rest, too.
    fn give_up(&mut self) -> usize {
        if self.state != State::Sound {
            return self.lose();
        }
        // Entries that lie in the ring are never taken: no call hands over any.
        self.state = State::Broken;
        let pushed = std::mem::take(&mut self.pushed);
        let begun = std::mem::take(&mut self.begun);
        for number in pushed.iter().chain(&begun) {
            self.answer(*number, Err(io::ErrorKind::WouldBlock.into()));
        }
        pushed.len() + begun.len()
    }

    /// Answers what the kernel has and will not tell of. I-LENT: it may still write to the buffers, which stay for ever.
    fn lose(&mut self) -> usize {
        let before = std::mem::take(&mut self.in_flight);
        self.state = State::Lost;
        let mut count = 0;
        for number in 0..self.slots.len() {
            let Slot::Waiting(read, _) = &mut self.slots[number] else { continue };
            let instead = read.into.iter().map(|_| T::new_zeroed()).collect();
            std::mem::forget(std::mem::replace(&mut read.into, instead));
            self.answer(number as u32, Err(io::ErrorKind::WouldBlock.into()));
            count += 1;
        }
        debug_assert_eq!(count, before);
        count
    }

    /// Takes the answers that are there.
    fn reap(&mut self) -> usize {
        if self.state == State::Lost {
            return 0;
        }
        let mut answers = [(0, 0); IN_FLIGHT_MAX];
        let mut count = 0;
        for (at, entry) in answers.iter_mut().zip(self.ring.completion()) {
            *at = (entry.user_data() as u32, entry.result());
            count += 1;
        }
        self.in_flight -= count;
        for (number, result) in &answers[..count] {
            let answer = usize::try_from(*result);
            self.answer(*number, answer.map_err(|_| io::Error::from_raw_os_error(-result)));
        }
        count
    }

    fn answer(&mut self, number: u32, answer: io::Result<usize>) {
        match self.release_waiting(number) {
            (read, Interest::Wanted) => {
                self.slots[number as usize] = Slot::Done(read, answer);
            }
            (_, Interest::Abandoned) => self.free.push(number),
        }
    }

    fn release_waiting(&mut self, number: u32) -> (Read<T>, Interest) {
        match std::mem::replace(&mut self.slots[number as usize], Slot::Free) {
            Slot::Waiting(read, interest) => (read, interest),
            Slot::Free | Slot::Done(..) => unreachable!("the kernel answers each read once"),
        }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        while self.in_flight > 0 {
            // SAFETY: no argument is passed, and no entry.
            let entered = unsafe {
                self.ring.submitter().enter::<libc::sigset_t>(
                    0,
                    self.in_flight as u32,
                    EnterFlags::GETEVENTS.bits(),
                    None,
                )
            };
            self.in_flight -= self.ring.completion().count().min(self.in_flight);
            match entered {
                Err(cause) if cause.raw_os_error() != Some(libc::EINTR) => {
                    // I-LENT: the kernel may still write there.
                    std::mem::forget(std::mem::take(&mut self.slots));
                    return;
                }
                _ => {}
            }
        }
    }
}

//! Room of the last part that is kept for records to come.
//!
//! - I-ROOM: the last part has room for all claims that were granted. `free` is that room without
//!   them, and is below zero only while a claim is looked at that is not granted yet, or a part begins.
//!
//! | word | written | read |
//! |---|---|---|
//! | `free` | claims, by any thread; appends, sync and new parts, under the tail's lock; all Relaxed: a claim counts by its place among the changes of this one word | as it is written |

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};

use super::format::{FRAGMENT_MAX, HEADER_BYTES};
use super::tail::Tail;
use super::{Shared, lock};

/// The room that no claim has.
#[derive(Debug)]
pub(super) struct Claims {
    free: AtomicI64,
}

/// Taken while a part is begun, beyond all room that there is.
const CLOSED: u64 = 1 << 60;

/// Bytes that some records take which have so many bytes together, each by itself or all as one.
pub(super) fn claimed_bytes(payload: usize, records: usize) -> u64 {
    // A record has a header, which may be followed by one in another part, and is rounded up.
    let fragments = payload / FRAGMENT_MAX + records;
    payload as u64 + fragments as u64 * 4 * HEADER_BYTES
}

impl Claims {
    pub(super) fn new(room: u64) -> Claims {
        Claims { free: AtomicI64::new(room as i64) }
    }

    /// Takes bytes if they are free.
    pub(super) fn try_take(&self, bytes: u64) -> bool {
        let bytes = bytes as i64;
        let is_free = self.free.fetch_sub(bytes, Ordering::Relaxed) >= bytes;
        if !is_free {
            self.add(bytes);
        }
        is_free
    }

    pub(super) fn give_back(&self, bytes: u64) {
        self.add(bytes as i64);
    }

    /// Takes bytes, free or not.
    pub(super) fn take(&self, bytes: u64) {
        self.add(-(bytes as i64));
    }

    /// Notes that another part is the last one. The caller has the tail's lock.
    pub(super) fn moved(&self, room_before: u64, room: u64) {
        self.add(room as i64 - room_before as i64);
    }

    /// Bytes of all claims, where the last part has so much room; those that are looked at count.
    /// The caller has the tail's lock.
    pub(super) fn claimed(&self, room: u64) -> u64 {
        (room as i64 - self.free.load(Ordering::Relaxed)).max(0) as u64
    }

    fn add(&self, bytes: i64) {
        self.free.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Shared {
    pub(super) fn claim(&self, bytes: u64) -> io::Result<u64> {
        self.group.check()?;
        if !self.claims.try_take(bytes) {
            self.claim_slow(bytes)?;
        }
        Ok(bytes)
    }

    /// Claims room in another part.
    #[cold]
    fn claim_slow(&self, bytes: u64) -> io::Result<()> {
        let mut tail = lock(&self.tail);
        self.claims.take(bytes);
        if self.claims.claimed(tail.room()) <= tail.room() {
            return Ok(());
        }
        self.begin_part(&mut tail).inspect_err(|_| self.claims.give_back(bytes))
    }

    /// Goes on in another part, which has room for all claims.
    pub(super) fn begin_part(&self, tail: &mut Tail) -> io::Result<()> {
        let room = tail.room();
        // No claim is granted from room that is about to go.
        self.claims.take(CLOSED);
        let wanted = self.claims.claimed(room).saturating_sub(CLOSED);
        let Shared { disk, id, options, .. } = self;
        let begun = tail.begin_part(&**disk, *id, options, self.group.durable(), wanted);
        if begun.is_ok() {
            self.claims.moved(room, tail.room());
        }
        self.claims.give_back(CLOSED);
        begun
    }
}

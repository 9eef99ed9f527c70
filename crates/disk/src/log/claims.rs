//! Room of the last part that is kept for records to come.
//!
//! - I-ROOM: the last part has room for all claims that were granted. `free` is that room without
//!   them, and is below zero only while a claim is looked at that is not granted yet, or a part begins.
//!
//! | word | written | read |
//! |---|---|---|
//! | `free` | claims, by any thread; appends, sync and new parts, under the tail's lock; all Relaxed: a claim counts by its place among the changes of this one word | as it is written |

use std::sync::atomic::{AtomicI64, Ordering};

use super::format::{FRAGMENT_MAX, HEADER_BYTES};

/// The room that no claim has.
#[derive(Debug)]
pub(super) struct Claims {
    free: AtomicI64,
}

/// Taken while a part is begun, beyond all room that there is.
pub(super) const CLOSED: u64 = 1 << 60;

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

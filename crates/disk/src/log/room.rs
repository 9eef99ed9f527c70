//! Claims of room, in the last part or in another that is begun for them.

use std::io;

use super::claims::CLOSED;
use super::tail::Tail;
use super::{Shared, lock};

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

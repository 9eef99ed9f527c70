//! Tickets: what a count of a subtree leaves in the chunks that it has counted.
//!
//! Inner nodes keep sums of the entries below them, where such a sum was asked for. An insert or a removal makes sums
//! above it unknown again, but only in a chunk with a ticket, and takes the ticket back: so of all writes to a chunk
//! between two counts one goes to the nodes above.
//!
//! | step of a count | step of a write |
//! |---|---|
//! | 1 the node is being counted, by this ticket | 1 the entry changes: CAS of a delta word, or `tombstones` grows |
//! | 2 each chunk gets the ticket | 2 the chunk's ticket is read |
//! | 3 its entries are counted, behind an exchange of the first empty delta word | 3 each node above forgets its sum, from the bottom up, until the way down is the same twice |
//! | 4 the node has the sum, if it is still being counted by this ticket | 4 the ticket goes, if it is the same |
//!
//! *Invariants*
//! - I-TICKET: where a node has a sum, each chunk below it has a ticket, or a write that read the chunk's ticket has
//!   not done its step 3 yet. A chunk has the ticket of those in whose place it came; a count that begins after
//!   these were frozen keeps no sum.
//! - I-SUM: a sum has every write whose call has returned. If a write's step 1 comes before step 3 of the count in the
//!   order of the word that both exchange, it is counted. Else it reads the ticket, and step 1 of the count came before
//!   its step 3, so that step 4 of the count fails, or what that left is forgotten. A node that became reachable
//!   meanwhile has no sum before it is counted itself; a write looks for it by its second way down.

use crate::layout::{TICKET_BITS, TICKET_SHIFT};

/// The number of a count, not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl Ticket {
    /// The ticket of a new chunk in the place of one that has a ticket.
    pub(crate) const INHERITED: Ticket = Ticket(1);

    /// The ticket of a count by its number. It comes again after a billion counts; no write waits for as many.
    pub(crate) fn new(count: u64) -> Ticket {
        Ticket(2 + count % ((1 << TICKET_BITS) - 2))
    }

    /// In the word of a chunk's tombstones.
    #[inline]
    pub(crate) fn of(word: u64) -> Option<Ticket> {
        let ticket = word >> TICKET_SHIFT & ((1 << TICKET_BITS) - 1);
        (ticket != 0).then_some(Ticket(ticket))
    }

    /// The bits of that word.
    pub(crate) fn word(ticket: Option<Ticket>) -> u64 {
        ticket.map_or(0, |ticket| ticket.0 << TICKET_SHIFT)
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

//! The number of a chunk's entries. The protocol stands in `ticket`.

use sapwood_mem::sync::Ordering;

use super::Chunk;
use crate::layout::{EntryState, FROZEN, REPLACING, TOMBSTONES};
use crate::node::ticket::Ticket;

/// The meaning of a tombstone's count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tombstone {
    /// A rebalance pays.
    pub(crate) pays: bool,
    pub(crate) ticket: Option<Ticket>,
}

/// The entries of a chunk, for a sum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) entries: u64,
    /// Set where later writes forget a sum with this count.
    pub(crate) is_kept: bool,
}

impl<'g> Chunk<'g> {
    /// The ticket of a chunk that comes in the place of these, which are frozen.
    pub(crate) fn inherited_ticket<'c>(old: impl Iterator<Item = &'c Chunk<'g>>) -> Option<Ticket>
    where
        'g: 'c,
    {
        let mut tickets = old.map(Chunk::ticket);
        tickets.any(|ticket| ticket.is_some()).then_some(Ticket::INHERITED)
    }

    /// The ticket of the last count. After a CAS of a delta word it is none before that count's.
    #[inline]
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        // Relaxed: the CAS of the delta word has acquired what came before it in that word's order.
        Ticket::of(self.head().tombstones.load(Ordering::Relaxed))
    }

    /// Takes a ticket back, unless there is another one since.
    pub(crate) fn take_back(&self, ticket: Ticket) {
        let word = &self.head().tombstones;
        let mut now = word.load(Ordering::Relaxed);
        while Ticket::of(now) == Some(ticket) {
            let without = now & !Ticket::word(Some(ticket));
            // AcqRel: the sums above were forgotten before; pairs with the exchange in `count_for`.
            match word.compare_exchange(now, without, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
    }

    /// Leaves a ticket, and counts.
    pub(crate) fn count_for(&self, ticket: Ticket) -> Counted {
        let word = &self.head().tombstones;
        let mut now = word.load(Ordering::Relaxed);
        loop {
            let given = now & !Ticket::word(Ticket::of(now)) | Ticket::word(Some(ticket));
            // AcqRel: pairs with the adds of removers, and with `freeze`.
            match word.compare_exchange(now, given, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => now = other,
            }
        }
        let mut len = self.filled_len();
        let mut is_frozen = now & REPLACING != 0;
        while let Some(word) = self.delta_words().get(len) {
            // INVARIANT: I-SUM: an insert that is not counted comes behind this in the order of the word. AcqRel: gives
            // the ticket to the CAS in `append`, and takes its entry from that.
            match word.compare_exchange(0, 0, Ordering::AcqRel, Ordering::Acquire) {
                Err(other) if EntryState::of(other) != EntryState::Empty => len += 1,
                Err(other) => {
                    is_frozen |= other & FROZEN != 0;
                    break;
                }
                Ok(_) => break,
            }
        }
        Counted { entries: self.without_tombstones(len, now), is_kept: !is_frozen }
    }

    /// Counts, for this once.
    pub(crate) fn live_len(&self) -> u64 {
        // Acquire: pairs with the adds of removers, whose entries are in the delta.
        let tombstones = self.head().tombstones.load(Ordering::Acquire);
        self.without_tombstones(self.filled_len(), tombstones)
    }

    fn without_tombstones(&self, delta_len: usize, tombstones: u64) -> u64 {
        let all = (self.sorted_len() + delta_len) as u64;
        all.saturating_sub(tombstones & TOMBSTONES)
    }

    /// Delta words that are not empty.
    fn filled_len(&self) -> usize {
        // I-APPEND. Acquire: pairs with the CAS in `append`.
        self.delta_words().partition_point(|word| {
            EntryState::of(word.load(Ordering::Acquire)) != EntryState::Empty
        })
    }
}

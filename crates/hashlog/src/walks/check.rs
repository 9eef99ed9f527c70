//! A check of every invariant of index and log, and the counts of what is in them.

use std::collections::{HashMap, HashSet};

use crate::files::parts::Parts;
use crate::index::bucket::Link;
use crate::index::depth_of;
use crate::ops::store::Store;
use crate::record::Form;
use crate::record::address::Address;
use crate::record::layout::{bucket, slot};
use crate::stats::HashStats;

impl Store {
    pub(crate) fn stats(&self) -> HashStats {
        let parts = self.log.parts.as_ref();
        let beside = self.bytes_beside();
        let (begin, tail) = self.log.ends();
        // Others move meanwhile; they are told in their order.
        let within = |address: Address| address.clamp(begin, tail).bytes();
        let (reads_by, ring_reads) =
            parts.map(Parts::reads_by).map_or(("", 0), |(by, ring_reads)| (by.name(), ring_reads));
        HashStats {
            entries_estimate: self.entries.sum(),
            buckets: self.index.count(),
            overflow_buckets: self.index.overflow_in_use(),
            slots: self.index.slots.sum(),
            index_bytes: self.index.bytes(),
            log_bytes: self.log.mapped_bytes(),
            reserved_bytes: self.log.mapped_bytes() + beside,
            budget_bytes: self.options.memory_budget,
            begin: begin.bytes(),
            head: within(self.log.head()),
            returning_bytes: self.log.bytes_to_come(),
            read_back_bytes: self.log.used_bytes_to_come(),
            safe_read_only: within(self.log.safe_read_only()),
            tail: tail.bytes(),
            garbage_bytes: self.garbage_bytes(),
            file_bytes: parts.map_or(0, |parts| parts.file_bytes()),
            held_bytes: self.held_bytes(),
            compactions: self.compactor.done.sum(),
            compacted_bytes: self.compactor.bytes_freed.sum(),
            moved_bytes: self.compactor.bytes_moved.sum(),
            compaction_error: self.compactor.error(),
            cold_reads: self.cold_reads.sum(),
            cached_reads: self.cached_reads.sum(),
            read_cache_bytes: self.read_cache_bytes(),
            reads_by,
            ring_reads,
            chains_asked: self.chains_asked.sum(),
            pages: self.log.pages().describe(),
        }
    }

    pub(crate) fn check<F: Form>(&self) -> Result<(), String> {
        // The log's own compaction would change the index between its buckets and their count.
        let _begin_lock = self.share_begin().map_err(|error| error.to_string())?;
        let pin = self.log.epochs.pin();
        let bounds =
            [self.log.begin(), self.log.head(), self.log.safe_read_only(), self.log.read_only()];
        if !bounds.is_sorted() {
            return Err(format!("boundaries are out of order: {bounds:?}"));
        }
        // I-FLUSHED.
        let (head, flushed) = (self.log.head(), self.log.flushed());
        if self.log.parts.is_some() && head > flushed {
            return Err(format!("head {head:?} lies above {flushed:?}, what is on the disk"));
        }
        let count = self.index.count();
        let mut slots = 0;
        let mut overflow = HashSet::new();
        let mut owned = HashMap::new();
        for number in 0..count {
            let first = self.index.bucket(number);
            let link = first.link();
            if link.is_frozen() || link.depth() != depth_of(number, count) {
                return Err(format!("bucket {number} of {count} has the link {link:?}"));
            }
            for (step, bucket) in self.index.chain(first).enumerate() {
                if let Some(next) = Link::overflow(bucket.link())
                    && !overflow.insert(next)
                {
                    return Err(format!("overflow bucket {next} is in two chains"));
                }
                for at in 0..bucket::SLOTS {
                    // Acquire: pairs with the Release of the thread that filled the slot.
                    let word = bucket.slot(at).load(sapwood_mem::sync::Ordering::Acquire);
                    if word == 0 {
                        continue;
                    }
                    slots += 1;
                    let place = format!("slot {at} of bucket {step} of chain {number}");
                    if !slot::is_whole(word) || word & slot::PARITY != slot::parity(link.depth()) {
                        return Err(format!("{place} holds the word {word:#x}"));
                    }
                    let address = slot::address(word);
                    if address >= self.log.tail() {
                        return Err(format!("{place} names {address:?}, above the tail"));
                    }
                    let hashes = self
                        .check_chain::<F>(&pin, word, number, link.depth())
                        .map_err(|what| format!("{place}: {what}"))?;
                    for hash in hashes {
                        if let Some(other) = owned.insert(hash, (number, step, at))
                            && other != (number, step, at)
                        {
                            return Err(format!("{place}: a key is in the chain of {other:?} too"));
                        }
                    }
                }
            }
        }
        let counted = self.index.slots.sum();
        if counted != slots {
            return Err(format!("{slots} slots are in use, and {counted} are counted"));
        }
        if self.index.overflow_in_use() != overflow.len() as u64 {
            let used = self.index.overflow_in_use();
            return Err(format!(
                "{} overflow buckets are linked, and {used} are counted",
                overflow.len()
            ));
        }
        Ok(())
    }

    /// Follows a chain in memory; answers the hashes of the keys that are looked for in it.
    fn check_chain<F: Form>(
        &self,
        pin: &sapwood_mem::epoch::Pin<'_>,
        word: u64,
        number: u64,
        depth: u32,
    ) -> Result<Vec<u64>, String> {
        let mut hashes = Vec::new();
        let mut address = slot::address(word);
        while address >= self.log.head() {
            let record = self.log.record(pin, address);
            let previous = record.previous();
            let hash = F::hash_of(record);
            let is_ours = hash & ((1 << depth) - 1) == number;
            // I-OWN-HEAD.
            if address == slot::address(word) && word & slot::SHARED == 0 && !is_ours {
                return Err(format!("the record at {address:?} is of another bucket"));
            }
            if is_ours && slot::agrees(word, slot::tag_of(hash, depth)) {
                hashes.push(hash);
            }
            if previous >= address {
                return Err(format!("the record at {address:?} comes after {previous:?}"));
            }
            address = previous;
        }
        Ok(hashes)
    }
}

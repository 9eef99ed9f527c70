//! The executors of the hash engine.

use std::ops::{Bound, Range};
use std::time::Duration;

use sapwood_aggregate::{KeyList, Selection};
use sapwood_engine::Columns;
use sapwood_hashlog::{HashLog, HashStats, KEY_BYTES_MAX, Layout};

use crate::objects::{Reach, Request, batch, check_ns};
use crate::pool::{Chosen, Filled, GetMany, Pool};
use crate::sink::Sink;
use crate::{Candidate, Executor, Result};

/// Keys that are looked up together.
const BATCH: usize = 1_024;

/// Where a range has more keys than this for each entry, they are not looked up one by one.
const KEYS_AN_ENTRY_MAX: u64 = 16;

/// Bytes of a record of 8-byte keys and values.
const FIXED_RECORD_BYTES: u64 = 24;

impl Reach for HashLog {
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Candidate>> {
        let selection = request.selection;
        let stats = self.stats();
        // The estimate may be far too low, and each slot in use costs a walk a record at least.
        let entries = stats.entries_estimate.max(stats.slots);
        let keys = Keys::of(selection, self.layout());
        let reached = match &keys {
            Some(keys) => entries.min(keys.len()),
            None => entries,
        };
        let log_bytes = stats.tail.saturating_sub(stats.begin);
        let costs = Costs::of_table(self.layout(), &stats);
        let mean_bytes = match self.layout() {
            Layout::Fixed8 => FIXED_RECORD_BYTES,
            Layout::Variable => {
                (log_bytes.saturating_sub(stats.garbage_bytes) / entries.max(1)).max(24)
            }
        };
        let records = entries + stats.garbage_bytes.min(log_bytes) / mean_bytes;
        let checks_ns = entries as f64 * check_ns(selection);
        let candidate = |executor, visits: u64, visit_ns: f64, object_ns: f64| {
            let (checks_ns, return_ns, read_back_bytes) = match executor {
                Executor::LookUp => (0.0, 0.0, 0),
                _ => (checks_ns, costs.return_ns, stats.read_back_bytes),
            };
            let ns = visits as f64 * visit_ns + reached as f64 * object_ns + checks_ns;
            // One thread brings pages back.
            let ns = ns / request.threads as f64 + return_ns;
            let estimate = Duration::from_nanos(ns as u64);
            Candidate { executor, visits, read_back_bytes, estimate }
        };
        let in_log_ns = match self.layout() {
            Layout::Fixed8 => request.run_object_ns,
            Layout::Variable => request.object_ns,
        };
        let mut candidates = vec![
            candidate(Executor::Log, records, costs.record_ns, in_log_ns),
            candidate(Executor::Walk, entries, costs.entry_ns, request.object_ns),
        ];
        let keys_max = entries.saturating_mul(KEYS_AN_ENTRY_MAX) + BATCH as u64;
        if let Some(keys) = keys
            && (selection.as_keys().is_some() || keys.len() <= keys_max)
        {
            let look_up =
                candidate(Executor::LookUp, keys.len(), costs.look_up_ns, request.object_ns);
            candidates.push(look_up);
        }
        Ok(candidates)
    }

    fn shows_one_moment(&self, executor: Executor) -> bool {
        executor == Executor::Log
    }

    fn reach<S: Sink>(
        &self,
        executor: Executor,
        request: &Request<'_>,
        pool: &Pool<'_>,
        make: &(impl Fn() -> S + Sync),
    ) -> Result<Filled<S>> {
        match (executor, Keys::of(request.selection, self.layout())) {
            (Executor::LookUp, Some(keys)) => look_up(self, &keys, request, pool, make),
            (Executor::Log, _) => scan_log(self, request, pool, make),
            _ => pool.in_parts(pool.threads(), make, |part, worker| {
                let visit =
                    |key: &[u8], value: &[u8]| worker.push_word(key, value, Chosen::Perhaps);
                let flow = self.for_each_part(part, pool.threads(), visit)?;
                Ok(if flow.is_continue() { worker.flush(Chosen::Perhaps) } else { flow })
            }),
        }
    }
}

/// As of one moment, if that is asked for; else by a live scan, for which no writer copies.
fn scan_log<S: Sink>(
    log: &HashLog,
    request: &Request<'_>,
    pool: &Pool<'_>,
    make: &(impl Fn() -> S + Sync),
) -> Result<Filled<S>> {
    // More parts than threads, so that no thread waits long for the last.
    let parts = if pool.threads() == 1 { 1 } else { pool.threads() * 8 };
    if request.at_one_moment {
        let mut taken = None;
        let mut take = || {
            taken.get_or_insert_with(|| log.snapshot());
        };
        match request.within {
            Some(within) => within(&mut take),
            None => take(),
        }
        let snapshot = taken.unwrap_or_else(|| log.snapshot())?;
        return pool.in_parts(parts, make, |part, worker| {
            Ok(match snapshot.by_columns(request.columns) {
                Some(walk) => walk.scan_part(part, parts, |batch| worker.push_batch(batch)),
                None => snapshot.scan_part(part, parts, |key, value| worker.push(key, value)),
            }?)
        });
    }
    let sweep = log.sweep()?;
    pool.in_parts(parts, make, |part, worker| {
        Ok(match sweep.by_columns(request.columns) {
            Some(walk) => walk.scan_part(part, parts, |batch| worker.push_batch(batch)),
            None => sweep.scan_part(part, parts, |key, value| worker.push(key, value)),
        }?)
    })
}

fn look_up<S: Sink>(
    log: &HashLog,
    keys: &Keys<'_>,
    request: &Request<'_>,
    pool: &Pool<'_>,
    make: &(impl Fn() -> S + Sync),
) -> Result<Filled<S>> {
    let columns = match request.columns {
        Columns::Addresses => Columns::Addresses,
        Columns::Values | Columns::Entries => Columns::Entries,
    };
    pool.in_parts(keys.len().div_ceil(BATCH as u64) as usize, make, |part, worker| {
        let keys = match keys {
            Keys::Listed(keys) if log.layout() == Layout::Variable => {
                // A key that the table cannot hold has no object.
                let can_hold = |key: &&[u8]| (1..=KEY_BYTES_MAX).contains(&key.len());
                let keys = batch(keys, part, BATCH).filter(can_hold);
                let flow = worker.look_up(log, keys, |worker, key, value| {
                    worker.push_word(key, value, Chosen::All)
                })?;
                return Ok(if flow.is_continue() { worker.flush(Chosen::All) } else { flow });
            }
            Keys::Listed(keys) => match keys.words() {
                Some(words) => {
                    let from = part * BATCH;
                    let words = &words[from..words.len().min(from + BATCH)];
                    return worker.look_up_words(log, words, columns);
                }
                None => batch(keys, part, BATCH).filter_map(|key| key.try_into().ok()).collect(),
            },
            Keys::Numbered(numbers) => {
                let from = numbers.start + (part * BATCH) as u64;
                let to = from.saturating_add(BATCH as u64).min(numbers.end);
                (from..to).map(u64::to_be_bytes).collect::<Vec<_>>()
            }
        };
        worker.look_up_words(log, &keys, columns)
    })
}

impl GetMany for HashLog {
    fn get_many(&self, keys: &[&[u8]], read: impl FnMut(usize, Option<&[u8]>)) -> Result<()> {
        Ok(HashLog::get_many(self, keys, read)?)
    }
}

/// Keys that can be looked up.
enum Keys<'a> {
    Listed(&'a KeyList),
    /// Every key of 8 bytes of a range, as big-endian numbers.
    Numbered(Range<u64>),
}

impl Keys<'_> {
    fn of(selection: &Selection, layout: Layout) -> Option<Keys<'_>> {
        match selection.as_keys() {
            Some(keys) => Some(Keys::Listed(keys)),
            None if layout == Layout::Fixed8 => {
                numbers_between(selection.bounds()).map(Keys::Numbered)
            }
            None => None,
        }
    }

    fn len(&self) -> u64 {
        match self {
            Keys::Listed(keys) => keys.len() as u64,
            Keys::Numbered(numbers) => numbers.end - numbers.start,
        }
    }
}

/// The keys of 8 bytes between two bounds, as big-endian numbers; `None` if that is every one.
fn numbers_between((begin, limit): (Bound<&[u8]>, Bound<&[u8]>)) -> Option<Range<u64>> {
    let word = |bytes: &[u8]| {
        let mut first = [0; 8];
        let len = bytes.len().min(8);
        first[..len].copy_from_slice(&bytes[..len]);
        u128::from(u64::from_be_bytes(first))
    };
    // The least key of 8 bytes that is not below these bytes, and the least that is above them.
    let at_least = |bytes: &[u8]| word(bytes) + u128::from(bytes.len() > 8);
    let above = |bytes: &[u8]| word(bytes) + u128::from(bytes.len() >= 8);
    let from = match begin {
        Bound::Included(begin) => at_least(begin),
        Bound::Excluded(begin) => above(begin),
        Bound::Unbounded => 0,
    };
    let to = match limit {
        Bound::Excluded(limit) => at_least(limit),
        Bound::Included(limit) => above(limit),
        Bound::Unbounded => 1 << 64,
    };
    let to = to.max(from);
    Some(u64::try_from(from).ok()?..u64::try_from(to).ok()?)
}

/// What reaching objects costs here, in ns each.
struct Costs {
    look_up_ns: f64,
    entry_ns: f64,
    record_ns: f64,
    /// Once, of whatever walk is the first after opening.
    return_ns: f64,
}

impl Costs {
    /// Of a table, by what of its log lies in memory, lies on the disk, or comes back from it.
    fn of_table(layout: Layout, stats: &HashStats) -> Costs {
        const READ_NS: f64 = 10_000.0;
        const ASK_NS: f64 = 150.0;
        /// Reading a page, or copying it while the disk reads the next ones.
        const RETURN_BYTE_NS: f64 = 1.2;
        let log_bytes = stats.tail.saturating_sub(stats.begin).max(1) as f64;
        let below_head = stats.head.saturating_sub(stats.begin);
        let not_in_memory = below_head as f64 / log_bytes;
        // Each walk reads these, and one of the log asks the index about their records.
        let stays_cold = below_head.saturating_sub(stats.returning_bytes) as f64 / log_bytes;
        // About these the index is asked as they come back, where it is known how many there are.
        let named = match layout {
            Layout::Fixed8 => {
                (stats.read_back_bytes / FIXED_RECORD_BYTES).saturating_sub(stats.slots)
            }
            Layout::Variable => 0,
        };
        let memory = Costs::of(layout, stats.index_bytes + stats.log_bytes + stats.returning_bytes);
        Costs {
            look_up_ns: memory.look_up_ns + not_in_memory * READ_NS,
            entry_ns: memory.entry_ns + stays_cold * READ_NS,
            record_ns: memory.record_ns + stays_cold * ASK_NS,
            return_ns: stats.read_back_bytes as f64 * RETURN_BYTE_NS + named as f64 * ASK_NS,
        }
    }

    /// Of a table with so many bytes in memory, by the logarithm: through what was measured within the
    /// second cache and at 256 MiB. What is reached at random costs more beyond that too, since fewer
    /// of its pages' addresses are at hand.
    fn of(layout: Layout, bytes: u64) -> Costs {
        const NEAR_BYTES: f64 = (1 << 20) as f64;
        const FAR_BYTES: f64 = (1 << 28) as f64;
        let far = (bytes as f64 / NEAR_BYTES).max(1.0).log2() / (FAR_BYTES / NEAR_BYTES).log2();
        let at_random = |near: f64, beyond: f64| near + (beyond - near) * far;
        let in_order = |near: f64, beyond: f64| near + (beyond - near) * far.min(1.0);
        match layout {
            Layout::Fixed8 => Costs {
                look_up_ns: at_random(14.0, 28.0),
                entry_ns: at_random(8.0, 14.0),
                record_ns: in_order(0.7, 1.5),
                return_ns: 0.0,
            },
            Layout::Variable => Costs {
                look_up_ns: at_random(20.0, 50.0),
                entry_ns: at_random(12.0, 25.0),
                record_ns: in_order(5.0, 8.0),
                return_ns: 0.0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_aggregate::{Aggregate, Query};

    use super::*;
    use crate::{Execution, aggregate};

    #[test]
    fn a_moment_lies_inside_of_what_it_is_taken_within() {
        let log = HashLog::in_memory(sapwood_hashlog::Options::default()).expect("memory");
        let put = |key: &[u8]| log.put(key, b"v").expect("room");
        put(b"before");
        let query = Query::new("n:u8".parse().expect("a layout"));
        let query = query.aggregates(vec![Aggregate::count()]).compile().expect("a query");
        let count = |within: &(dyn Fn(&mut dyn FnMut()) + Sync)| {
            let execution = Execution::new().at_one_moment_within(within).threads(2);
            let (partial, _) = aggregate(&log, &query, &execution).expect("a count");
            partial.tally().matched
        };
        let counted = count(&|moment| {
            put(b"inside");
            moment();
            put(b"too late");
            // The first is the one that counts.
            moment();
        });
        assert_eq!(counted, 2);
        // Without a call the moment comes behind.
        assert_eq!(count(&|_| put(b"last")), 4);
    }

    /// Every bound of up to 10 bytes of a small alphabet against the order of bytes.
    #[test]
    fn numbers_between_bounds_are_the_keys_between_them() {
        let base = u64::from_be_bytes(*b"abcdefg\0");
        let texts: [&[u8]; 9] = [
            b"",
            b"abcdefg",
            b"abcdefg\0",
            b"abcdefg\0\0",
            b"abcdefg\x05",
            b"abcdefg\x05\x01",
            b"abcdefg\x09",
            b"abcdefh",
            b"b",
        ];
        let bounds = |text| [Bound::Included(text), Bound::Excluded(text), Bound::Unbounded];
        for begin in texts.into_iter().flat_map(bounds) {
            for limit in texts.into_iter().flat_map(bounds) {
                let Some(numbers) = numbers_between((begin, limit)) else {
                    assert_eq!(limit, Bound::Unbounded);
                    continue;
                };
                for number in base..base + 12 {
                    let key = number.to_be_bytes();
                    let within = std::ops::RangeBounds::<[u8]>::contains(&(begin, limit), &key[..]);
                    assert_eq!(numbers.contains(&number), within, "{number:x} {begin:?} {limit:?}");
                }
            }
        }
    }
}

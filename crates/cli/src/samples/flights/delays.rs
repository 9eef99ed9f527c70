//! Delay totals, added up in place by several threads while another reads them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Instant;

use comfy_table::CellAlignment;
use sapwood::{Direction, OrderedTable, key};
use serde_json::json;

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::count;
use crate::terminal::ui::Ui;

use super::expected;
use super::tables::{DEPARTURE_MINUTE_BYTES, Tables};
use super::totals::{Pair, Totals};
use crate::samples::answer::{Answer, Effort, equal, listing};
use crate::samples::flight::{Code, Details, FlightId};

/// Days on which flights left: the year, and the night after it.
const DAYS: i32 = 367;

impl Tables {
    pub(super) fn delay_totals(&self, threads: u16, ui: &Ui) -> Outcome {
        let started = Instant::now();
        let readings = self.add_up(threads, ui)?;
        let elapsed = started.elapsed();
        if ui.interrupt.asked() {
            return Err(Failure::Interrupted("delays were being added up".to_owned()));
        }
        let totals = read_all(&self.delays)?;
        equal("delay totals", &totals, &expected::delay_totals(&self.source.rows))?;
        equal("totals read half changed", readings.torn, 0)?;

        let mut worst: Vec<_> = totals.iter().collect();
        worst.sort_by_key(|(_, totals)| Reverse(totals.departure_minutes));
        let mut listing =
            listing(&["carrier", "to", "flights", "late", "minutes late, leaving", "arriving"]);
        for ((carrier, dest), totals) in worst.iter().take(5) {
            listing.add_row([
                carrier.to_string(),
                dest.to_string(),
                count(totals.flights.into()),
                count(totals.late.into()),
                totals.departure_minutes.to_string(),
                totals.arrival_minutes.to_string(),
            ]);
        }
        for column in listing.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let updates: u64 = totals.values().map(|totals| u64::from(totals.flights)).sum();
        let each = |((carrier, dest), totals): (&Pair, &Totals)| {
            json!({
                "carrier": carrier.as_str(),
                "dest": dest.as_str(),
                "flights": totals.flights,
                "early": totals.early,
                "on_the_minute": totals.on_the_minute,
                "late": totals.late,
                "departure_minutes": totals.departure_minutes,
                "arrival_minutes": totals.arrival_minutes,
            })
        };
        let writers =
            if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        Answer {
            name: "delay_totals",
            question: "Where do delays add up, by carrier and destination?".to_owned(),
            text: format!(
                "{listing}\n{} pairs updated in place by {writers}, while another read all of them {} times: \
                 {} totals, none half changed",
                count(totals.len() as u64),
                count(readings.scans),
                count(readings.entries),
            ),
            json: json!({
                "threads": threads,
                "pairs": totals.len(),
                "reader_scans": readings.scans,
                "reader_entries": readings.entries,
                "reader_torn": readings.torn,
                "totals": totals.iter().map(each).collect::<Vec<_>>(),
            }),
            effort: Effort {
                work: updates,
                unit: "updates",
                elapsed,
            },
            verified: "the totals of all pairs over the rows are the same",
        }
        .print(ui)
    }
}

/// Observations of the reading thread beside the writers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Readings {
    scans: u64,
    entries: u64,
    /// Totals that were caught half changed, or that ran backwards: must stay zero.
    torn: u64,
}

impl Tables {
    /// Adds every departure to the totals of its pair, by `threads` threads that take one day
    /// after the other, so that all of them meet at the busy pairs.
    fn add_up(&self, threads: u16, ui: &Ui) -> Outcome<Readings> {
        let next_day = AtomicI32::new(0);
        let written = AtomicBool::new(false);
        thread::scope(|scope| {
            let reader = scope.spawn(|| self.read_until(&written));
            let writers: Vec<_> =
                (0..threads).map(|_| scope.spawn(|| self.add_days(&next_day, ui))).collect();
            let joined: Vec<_> = writers.into_iter().map(|writer| join(writer.join())).collect();
            // Release: pairs with Acquire in read_until, which then scans a last time.
            written.store(true, Ordering::Release);
            let readings = join(reader.join());
            joined.into_iter().collect::<Outcome<Vec<()>>>()?;
            readings
        })
    }

    fn add_days(&self, next_day: &AtomicI32, ui: &Ui) -> Outcome {
        let mut pair_key = Vec::new();
        loop {
            // Relaxed: the counter hands out days and guards nothing else.
            let day = next_day.fetch_add(1, Ordering::Relaxed);
            if day >= DAYS || ui.interrupt.asked() {
                return Ok(());
            }
            let (begin, limit) = (key::encode(&(day * 1440)), key::encode(&((day + 1) * 1440)));
            // What left before the first midnight belongs to the first day.
            let begin = if day == 0 { Bound::Unbounded } else { Bound::Included(&begin[..]) };
            let bounds = (begin, Bound::Excluded(&limit[..]));
            let end =
                self.departures.scan_keys(bounds, Direction::Ascending, |departure| match self
                    .add(&departure[DEPARTURE_MINUTE_BYTES..], &mut pair_key)
                {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(failure) => ControlFlow::Break(failure),
                })?;
            if let ControlFlow::Break(failure) = end {
                return Err(failure);
            }
        }
    }

    fn add(&self, flight_key: &[u8], pair_key: &mut Vec<u8>) -> Outcome {
        let not_a_flight = || Failure::Failed("a departure leads to no flight".to_owned());
        let details = self.flights.get_with(flight_key, Details::decode)?.flatten();
        let details = details.ok_or_else(not_a_flight)?;
        let one = Totals::of(&details).ok_or_else(not_a_flight)?;
        let id = FlightId::decode(flight_key).map_err(|_| not_a_flight())?;
        key::encode_into(&(id.carrier.as_str(), details.dest.as_str()), pair_key);
        self.delays.put_if_absent_or_update(pair_key, one.encode(), |value| {
            let mut totals = Totals::decode(value).expect("every value of this table is a Totals");
            totals.add(&one);
            value.copy_from_slice(&totals.encode());
        })?;
        Ok(())
    }

    fn read_until(&self, written: &AtomicBool) -> Outcome<Readings> {
        let mut readings = Readings::default();
        let mut flights_before: HashMap<Vec<u8>, u32> = HashMap::new();
        loop {
            let last = written.load(Ordering::Acquire);
            let _ = self.delays.scan(.., Direction::Ascending, |key, value| {
                readings.entries += 1;
                let flights = match Totals::decode(value) {
                    Some(totals) if totals.is_whole() => totals.flights,
                    _ => {
                        readings.torn += 1;
                        return ControlFlow::<()>::Continue(());
                    }
                };
                match flights_before.get_mut(key) {
                    Some(before) if flights < *before => readings.torn += 1,
                    Some(before) => *before = flights,
                    None => {
                        flights_before.insert(key.to_vec(), flights);
                    }
                }
                ControlFlow::Continue(())
            })?;
            readings.scans += 1;
            if last {
                return Ok(readings);
            }
        }
    }
}

/// All totals, read from their table.
fn read_all(delays: &OrderedTable) -> Outcome<BTreeMap<Pair, Totals>> {
    let mut all = BTreeMap::new();
    for entry in delays.range(..) {
        let entry = entry?;
        let pair = key::decode::<(String, String)>(entry.key()).ok();
        let pair = pair.and_then(|(carrier, dest)| Some((Code::new(&carrier)?, Code::new(&dest)?)));
        match (pair, Totals::decode(entry.value())) {
            (Some(pair), Some(totals)) => all.insert(pair, totals),
            _ => {
                return Err(Failure::Failed("the table of delays holds something else".to_owned()));
            }
        };
    }
    Ok(all)
}

fn join<T>(joined: thread::Result<T>) -> T {
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

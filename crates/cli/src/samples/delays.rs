//! `sapwood sample delays`: flights rolled up as they come in, by hour, carrier, origin and destination.
//!
//! Each question is one query over the facts, timed, and compared with what plain loops over the rows
//! find; the comparison is not timed.

mod chart;
mod questions;

use std::sync::Arc;
use std::time::Instant;

use sapwood::rollup::{
    Column, Dimension, Filter, Granularity, Metric, Rollup, RowBatch, Schema, Writer,
};
use serde_json::json;

use super::answer::{Answer, Effort, equal};
use super::flight::Flight;
use super::unpack::unpack;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{bytes, count};
use crate::terminal::ui::Ui;

/// Whose clocks the days and months are those of.
const ZONE: &str = "America/New_York";

/// Rows that come in together.
const BATCH_ROWS: usize = 8_192;

/// The flights, rolled up, and the rows they came from.
struct Delays {
    rollup: Arc<Rollup>,
    rows: Vec<Flight>,
    threads: usize,
}

pub(super) fn run(threads: u16, ui: &Ui) -> Outcome {
    let delays = Delays::load(usize::from(threads), ui)?;
    delays.year(ui)?;
    delays.worst_days(ui)?;
    delays.carriers(ui)?;
    delays.destinations(ui)?;
    delays.planes(ui)?;
    ui.notice(
        "every answer was compared with one found by plain loops over the rows, and all agree",
    );
    Ok(())
}

fn schema() -> Result<Schema, sapwood::rollup::Error> {
    let cancelled = Filter::IsNull { column: "dep_delay".to_owned() };
    Ok(Schema::new("time_hour")
        .dimension(Dimension::text("carrier"))
        .dimension(Dimension::text("origin"))
        .dimension(Dimension::text("dest"))
        .metric(Metric::count("flights"))
        .metric(Metric::count("cancelled").where_(cancelled))
        .metric(Metric::long_sum("minutes", "dep_delay"))
        .metric(Metric::long_max("worst", "dep_delay"))
        .metric(Metric::quantiles("delays", "dep_delay"))
        .metric(Metric::distinct("planes", "tailnum"))
        .query_granularity(Granularity::parse("hour")?))
}

/// The columns that the schema reads.
fn batch(rows: &[Flight]) -> Result<RowBatch, sapwood::rollup::Error> {
    let delays = rows.iter().map(|row| row.details.dep_delay.map(i64::from));
    let plane = |row: &Flight| row.details.tailnum;
    let planes: Vec<_> = rows.iter().map(plane).collect();
    let planes = planes.iter().map(|plane| Some(plane.as_str()).filter(|plane| !plane.is_empty()));
    RowBatch::new(rows.len())
        .column("time_hour", Column::longs(rows.iter().map(Flight::hour_start)))?
        .column("carrier", Column::texts(rows.iter().map(|row| row.id.carrier.to_string())))?
        .column("origin", Column::texts(rows.iter().map(|row| row.details.origin.to_string())))?
        .column("dest", Column::texts(rows.iter().map(|row| row.details.dest.to_string())))?
        .column("dep_delay", Column::optional_longs(delays))?
        .column("tailnum", Column::optional_texts(planes))
}

impl Delays {
    fn load(threads: usize, ui: &Ui) -> Outcome<Delays> {
        let flights = unpack(ui)?;
        let rows = flights.rows;
        let rollup = Arc::new(Rollup::new(schema()?)?);
        let batches = rows.chunks(BATCH_ROWS).map(batch).collect::<Result<Vec<_>, _>>()?;
        let progress = ui.progress("rolling up", rows.len() as u64);
        let begin = Instant::now();
        let mut writer = Writer::new(&rollup);
        let mut processed = 0;
        for batch in &batches {
            if ui.interrupt.asked() {
                progress.finish_and_clear();
                let done = count(processed);
                return Err(Failure::Interrupted(format!("{done} flights had been rolled up")));
            }
            processed += writer.ingest(batch)?.processed;
            progress.inc(batch.rows() as u64);
        }
        let elapsed = begin.elapsed();
        progress.finish_and_clear();
        equal("rows", processed, rows.len() as u64)?;
        let stats = rollup.stats();
        let size = stats.fact_bytes + stats.dictionary_bytes;
        let answer = Answer {
            name: "load",
            question: "The flights, rolled up by hour, carrier, origin and destination".to_owned(),
            text: format!(
                "{} flights are {} facts, in {}; the rows as CSV have {}",
                count(processed),
                count(stats.facts),
                bytes(size),
                bytes(flights.csv_bytes)
            ),
            json: json!({
                "flights": processed,
                "facts": stats.facts,
                "bytes": size,
                "csv_bytes": flights.csv_bytes,
            }),
            effort: Effort { work: processed, unit: "rows", elapsed },
            verified: "no row was refused",
        };
        let delays = Delays { rollup, rows, threads };
        equal("facts", stats.facts, delays.expected_facts())?;
        answer.print_as("delays", ui)?;
        Ok(delays)
    }

    fn print(&self, answer: Answer, ui: &Ui) -> Outcome {
        answer.print_as("delays", ui)
    }
}

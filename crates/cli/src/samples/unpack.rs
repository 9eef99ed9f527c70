//! The flights that are built into the binary.

use std::io::Read;

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::count;
use crate::terminal::ui::Ui;

use super::flight::{COLUMNS, Flight};

/// The file as it is.
pub(super) static PACKED: &[u8] = include_bytes!("../../../../datasets/flights-2013.csv.zst");

/// The number of rows, for the progress bar and for the check at the end.
pub(super) const ROWS: usize = 336_776;

/// The data and what it measures.
pub(super) struct Flights {
    /// In the order of the data, which is by day.
    pub(super) rows: Vec<Flight>,
    /// Of the text of the rows, with line ends, without the header.
    pub(super) csv_bytes: u64,
}

/// Reads the bundled CSV.
pub(super) fn reader() -> std::io::Result<csv::Reader<impl Read>> {
    Ok(csv::Reader::from_reader(zstd::stream::read::Decoder::new(PACKED)?))
}

/// Unpacks and parses every row.
pub(super) fn unpack(ui: &Ui) -> Outcome<Flights> {
    let damaged = |what: &dyn std::fmt::Display| {
        Failure::Failed(format!("the bundled flights are damaged ({what}); build sapwood again"))
    };
    let mut reader = reader().map_err(|error| damaged(&error))?;
    if reader.headers().map_err(|error| damaged(&error))? != COLUMNS[..] {
        return Err(damaged(&"another header"));
    }
    let header_bytes = reader.position().byte();
    let progress = ui.progress("unpacking", ROWS as u64);
    let mut rows = Vec::with_capacity(ROWS);
    let mut row = csv::StringRecord::new();
    while reader.read_record(&mut row).map_err(|error| damaged(&error))? {
        if ui.interrupt.asked() {
            progress.finish_and_clear();
            let rows = count(rows.len() as u64);
            return Err(Failure::Interrupted(format!("{rows} flights had been unpacked")));
        }
        let flight = Flight::parse(&row).map_err(|column| {
            let line = reader.position().line();
            damaged(&format_args!("line {line}, column {column}"))
        })?;
        rows.push(flight);
        progress.inc(1);
    }
    progress.finish_and_clear();
    if rows.len() != ROWS {
        return Err(damaged(&format_args!("{} rows", rows.len())));
    }
    Ok(Flights { csv_bytes: reader.position().byte() - header_bytes, rows })
}

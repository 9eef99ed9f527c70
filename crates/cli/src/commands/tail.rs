//! `sapwood tail`: changes of tables as the log of a directory has them.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use sapwood::{LogChange, LogReader, LogRecord};
use serde_json::json;

use crate::args::directories::Tail;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{escaped, escaped_bytes};
use crate::terminal::ui::{Answers, Ui};

/// The time between two looks at the log.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &Tail, ui: &Ui) -> Outcome {
    let mut reader = match args.from {
        Some(position) => LogReader::open_at(&args.directory, position)?,
        None => LogReader::open(&args.directory)?,
    };
    loop {
        ui.print(|out| {
            let mut written = Ok(());
            let read = reader.read(|record| {
                if written.is_ok() {
                    written = write_record(&record, args.table.as_deref(), ui.answers, out);
                }
                Ok(())
            });
            written?;
            Ok(read.map_err(Failure::from))
        })??;
        if !args.follow || ui.interrupt.asked() {
            ui.notice(format_args!("go on with --from {}", reader.position()));
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
}

fn write_record(
    record: &LogRecord<'_>,
    wanted: Option<&str>,
    answers: Answers,
    out: &mut impl Write,
) -> io::Result<()> {
    for change in record.changes {
        let Some(line) = Line::of(change) else { continue };
        if wanted.is_none_or(|wanted| wanted == line.table) {
            match answers {
                Answers::Json => line.write_json(record.position, out)?,
                Answers::Text => line.write(record.position, out)?,
            }
        }
    }
    Ok(())
}

/// A change, in words.
struct Line<'a> {
    table: &'a str,
    what: &'static str,
    key: Option<&'a [u8]>,
    offset: Option<usize>,
    value: Option<&'a [u8]>,
}

impl<'a> Line<'a> {
    fn of(change: &LogChange<'a>) -> Option<Self> {
        let line = |table, what| Line { table, what, key: None, offset: None, value: None };
        Some(match *change {
            LogChange::Put { table, key, value } => {
                Line { key: Some(key), value: Some(value), ..line(table, "put") }
            }
            LogChange::Write { table, key, offset, bytes } => {
                let offset = Some(offset);
                Line { key: Some(key), offset, value: Some(bytes), ..line(table, "write") }
            }
            LogChange::Remove { table, key } => Line { key: Some(key), ..line(table, "remove") },
            LogChange::Create { table } => line(table, "create"),
            LogChange::Drop { table } => line(table, "drop"),
            // Of a later version of the library.
            _ => return None,
        })
    }

    fn write(&self, position: u64, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{position}\t{}\t{}", escaped(self.table), self.what)?;
        if let Some(key) = self.key {
            write!(out, "\t{}", escaped_bytes(key))?;
        }
        if let Some(offset) = self.offset {
            write!(out, "\tat {offset}")?;
        }
        if let Some(value) = self.value {
            write!(out, "\t{}", escaped_bytes(value))?;
        }
        writeln!(out)
    }

    fn write_json(&self, position: u64, out: &mut impl Write) -> io::Result<()> {
        let mut object = json!({ "position": position, "table": self.table, "change": self.what });
        if let Some(key) = self.key {
            object["key"] = escaped_bytes(key).into();
        }
        if let Some(offset) = self.offset {
            object["offset"] = offset.into();
        }
        if let Some(value) = self.value {
            object["value"] = escaped_bytes(value).into();
        }
        writeln!(out, "{object}")
    }
}

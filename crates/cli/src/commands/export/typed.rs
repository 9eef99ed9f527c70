//! Rows of a schema, by their columns.

use std::time::Instant;

use sapwood::AnyTable;
use sapwood::schema::{RowFormat, Schema};

use super::{Answer, engine_name, file_word, quoted_word, sink, target, walk};
use sapwood::files::Format;

use crate::args::exchange::Export;
use crate::rows::stored::as_shown;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::ui::Ui;
use sapwood::files::FileWriter;

pub(super) fn export(table: &AnyTable, row: &RowFormat, args: &Export, ui: &Ui) -> Outcome {
    let (to, format, packing) = target(args)?;
    let started = Instant::now();
    // A file that has been begun is taken away before the command ends.
    let _promise = to.map(|_| ui.interrupt.promise());
    let schema = row.schema();
    let columns = schema.columns().iter().map(|column| (&column.name[..], &column.kind));
    let mut writer = FileWriter::new(format, columns, sink(args, to, packing)?)?;
    let rows = walk(table, table.len_estimate() as u64, to, ui, |key, value| {
        let values = row.decode(key, value).map_err(|error| {
            Failure::Failed(format!(
                "table {}: {error}; `--raw` writes entries as bytes",
                quoted_word(&args.table)
            ))
        })?;
        Ok(writer.write(&as_shown(values, schema))?)
    })?;
    writer.finish()?;
    let names = schema.columns().iter().map(|column| column.name.as_str());
    let answer = Answer {
        args,
        format,
        form: "typed columns",
        columns: names.collect(),
        import: load_command(args, format, table, schema),
    };
    answer.tell(to, rows, started, ui)
}

/// The command that makes a table like it of the file.
fn load_command(args: &Export, format: Format, table: &AnyTable, schema: &Schema) -> String {
    let mut command = format!(
        "sapwood load {} --dir DIR --table {} --engine {}",
        file_word(args),
        quoted_word(&args.table),
        engine_name(table)
    );
    let columns = schema.columns();
    let key = schema.key_columns().iter().map(|at| listed(&columns[*at].name));
    let key = key.collect::<Vec<_>>().join(",");
    if !key.is_empty() {
        command += &format!(" --key {}", quoted_word(&key));
        if schema.is_numbered() {
            command += " --duplicates all";
        }
    }
    // Text says nothing of types, and what is found may be narrower.
    if matches!(format, Format::Csv | Format::Jsonl) {
        let text = schema.to_string();
        let end = text.rfind(", key(").unwrap_or(text.len());
        command += &format!(" --types {}", quoted_word(&text[..end]));
    }
    command
}

/// A name in a list of `--key`.
fn listed(name: &str) -> String {
    match name.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}

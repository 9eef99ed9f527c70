//! Damaged files, in every format: an error or rows, and never a panic.

use std::fs;

use tempfile::TempDir;

use sapwood::aggregate::Cancel;

use crate::rows::exchange::cell::Cell;
use crate::rows::exchange::form::Form;
use crate::rows::exchange::origin::Origin;
use crate::rows::exchange::reader::RowFile;
use crate::rows::exchange::writer::RowWriter;
use crate::rows::kept::Description;
use crate::terminal::exit::Outcome;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::ui::Ui;
use sapwood::files::Format;
use sapwood::files::{Existing, FileSink, Packing};

const ROWS: usize = 12;

fn formats() -> Vec<Format> {
    let text = vec![Format::Csv, Format::Jsonl];
    match cfg!(feature = "columnar") {
        true => [text, vec![Format::Parquet, Format::Arrow]].concat(),
        false => text,
    }
}

/// Columns of several types, some of whose values are missing.
fn form() -> Form {
    let layout =
        "key(shop:str, day:u16), pieces:u32le?0, euros:f64le@4, code:bytes3@12, note:text@15";
    Form::fields(&layout.parse().expect("a layout")).expect("no byte is left out")
}

struct Files {
    directory: TempDir,
    ui: Ui,
}

impl Files {
    fn new() -> Self {
        let ui = Ui::quiet(Interrupt::of(Cancel::new()));
        Files { directory: TempDir::new().expect("a directory for the test"), ui }
    }

    /// A good file, and its rows.
    fn write(&self, format: Format) -> (Vec<u8>, Vec<String>) {
        let form = form();
        let path = self.directory.path().join("whole");
        let sink = FileSink::file(&path, Packing::Plain, Existing::Replace).expect("made");
        let origin = Origin::new(sapwood::Engine::Hash, &form, &Description::entries(), None);
        let mut writer = RowWriter::new(format, &form, &origin, sink).expect("begun");
        let mut rows = Vec::new();
        for number in 0..ROWS {
            let text = format!("shop \"{number}\",\n\\");
            let cells = [
                Cell::text(&text),
                Cell::Int(number as i128),
                if number % 3 == 0 { Cell::Null } else { Cell::Int(7) },
                Cell::Float64(number as f64 / 3.0),
                Cell::bytes(b"\x00\xFFa"),
                Cell::text(if number % 2 == 0 { "" } else { "note" }),
            ];
            writer.write(&cells).expect("written");
            rows.push(format!("{cells:?}"));
        }
        writer.finish().expect("ended");
        (fs::read(path).expect("there"), rows)
    }

    fn read(&self, format: Format, bytes: &[u8]) -> Outcome<Vec<String>> {
        let path = self.directory.path().join("damaged");
        fs::write(&path, bytes).expect("a file for the test");
        let form = form();
        let file = RowFile::open(&path, format, &self.ui)?;
        file.expect_columns(&form)?;
        let mut rows = Vec::new();
        file.read(&form, &self.ui, &mut |_, cells| {
            rows.push(format!("{cells:?}"));
            Ok(())
        })?;
        Ok(rows)
    }
}

#[test]
fn a_whole_file_is_read_as_it_was_written() {
    let files = Files::new();
    for format in formats() {
        let (bytes, rows) = files.write(format);
        assert_eq!(files.read(format, &bytes).expect("whole"), rows, "{format:?}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_an_error_or_has_fewer_rows() {
    let files = Files::new();
    for format in formats() {
        let (bytes, rows) = files.write(format);
        for end in 0..bytes.len() {
            match files.read(format, &bytes[..end]) {
                Err(_) => {}
                Ok(read) => {
                    assert!(!format.is_columnar(), "{format:?} up to {end}");
                    // The last value of CSV may be shorter, and the last line may lack its end.
                    let whole = read.len().saturating_sub(1);
                    assert_eq!(read[..whole], rows[..whole], "{format:?} up to {end}");
                }
            }
        }
    }
}

#[test]
fn changed_bytes_do_no_harm() {
    let files = Files::new();
    for format in formats() {
        let (bytes, rows) = files.write(format);
        let mut refused = 0;
        for at in 0..bytes.len() {
            // One way for each byte, by turns: lengths of damaged pages can take much memory and time.
            let ways = [bytes[at] ^ 1, bytes[at] ^ 0x80, 0, 0xFF];
            let mut damaged = bytes.clone();
            damaged[at] = ways[at % ways.len()];
            match files.read(format, &damaged) {
                Ok(read) => assert!(read.len() <= 2 * rows.len(), "{format:?} at {at}"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 0, "{format:?}");
    }
}

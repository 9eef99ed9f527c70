//! CSV: its header, the types of its columns, and its rows.

use std::thread;

use sapwood_schema::{BATCH_ROWS, Batch, Scan, Sink, Strings, Type};

use crate::blocks::{Blocks, Place, batch_number};
use crate::cuts::Cuts;
use crate::habits;
use crate::input::Input;
use crate::looks::Look;
use crate::names::distinct_names;
use crate::options::ReadOptions;
use crate::records::{Fields, Refused, Splitter, line_at};
use crate::text::{Known, TextFile};
use crate::words::plural;

/// The header, and what the first rows say: as many as the options have.
pub(crate) fn sample(input: &Input, options: &ReadOptions, delimiter: u8) -> Result<Known, String> {
    let blocks = TextFile::blocks(input, options, Cuts::csv(delimiter))?;
    let mut block = Vec::new();
    let place = blocks.next(&mut block).map_err(|error| input.unread(&error))?;
    let place = place.expect("a first block");
    let Some((names, behind)) = header(input, delimiter, &block, place)? else {
        return Err(format!(
            "{} is empty: a header line with the names of the columns is expected",
            input.name
        ));
    };
    let names = names.into_iter().enumerate().map(|(at, name)| match name.is_empty() {
        true => format!("column{}", at + 1),
        false => name,
    });
    let (names, renamed) = distinct_names(names.collect());
    let mut notices: Vec<String> = renamed.iter().map(ToString::to_string).collect();
    let all: Vec<usize> = (0..names.len()).collect();
    let looks = look(input, options, delimiter, names.len(), &all, options.sample_rows)?;
    if names.len() == 1 && habits::has_blank_line(&block[behind..]) {
        notices.push("blank lines are no rows: a row without a value is written \"\"".to_owned());
    }
    let splitter = Splitter::new(delimiter, names.len(), &all, true);
    let mut fields = Fields::default();
    if splitter.split(&block, behind, &mut fields).is_ok() {
        let texts = fields.texts(&block);
        let some = 0..fields.len().min(habits::ROWS);
        for (column, (name, look)) in names.iter().zip(&looks).enumerate() {
            if look.kind(true) == Type::Text {
                notices.extend(habits::notice(name, texts.column(column, some.clone())));
            }
        }
    }
    Ok(Known { names, looks, notices })
}

/// What the values of some columns are, in the first rows: so many. Records that are none tell nothing.
fn look(
    input: &Input,
    options: &ReadOptions,
    delimiter: u8,
    width: usize,
    columns: &[usize],
    rows_max: usize,
) -> Result<Vec<Look>, String> {
    let blocks = TextFile::blocks(input, options, Cuts::csv(delimiter))?;
    let splitter = Splitter::new(delimiter, width, columns, true);
    let mut looks = vec![Look::default(); columns.len()];
    look_at(input, options, delimiter, &blocks, &splitter, rows_max, &mut looks)?;
    Ok(looks)
}

/// What the values of some columns are, in all rows. Threads share the blocks: in which order values are seen does
/// not matter.
pub(crate) fn look_at_all(
    input: &Input,
    options: &ReadOptions,
    delimiter: u8,
    width: usize,
    columns: &[usize],
) -> Result<Vec<Look>, String> {
    let blocks = TextFile::blocks(input, options, Cuts::csv(delimiter))?;
    let splitter = Splitter::new(delimiter, width, columns, true);
    let one = || {
        let mut looks = vec![Look::default(); columns.len()];
        let all = usize::MAX;
        look_at(input, options, delimiter, &blocks, &splitter, all, &mut looks).map(|()| looks)
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(one)).collect();
        let mut looks = one()?;
        for other in others {
            let other = other.join().expect("a look does not panic")?;
            looks.iter_mut().zip(&other).for_each(|(look, other)| look.merge(other));
        }
        Ok(looks)
    })
}

/// Bytes of days and moments, which take longer to parse than to compare, and often stand in several rows.
const LONG: usize = 10;

/// Looks at blocks until there are no more, or so many rows were seen.
fn look_at(
    input: &Input,
    options: &ReadOptions,
    delimiter: u8,
    blocks: &Blocks,
    splitter: &Splitter,
    rows_max: usize,
    looks: &mut [Look],
) -> Result<(), String> {
    let (mut block, mut fields) = (Vec::new(), Fields::default());
    let mut rows = 0;
    while rows < rows_max {
        input.expect_wanted()?;
        let next = blocks.next(&mut block).map_err(|error| input.unread(&error))?;
        let Some(place) = next else { break };
        let from = begin(input, delimiter, &block, place)?;
        let split = splitter.split(&block, from, &mut fields);
        split.map_err(|refused| said(input, &block, place, 0, &refused))?;
        let wanted = fields.len().min(rows_max - rows);
        let texts = fields.texts(&block);
        for (slot, look) in looks.iter_mut().enumerate() {
            let mut last = "";
            for text in texts.column(slot, 0..wanted) {
                // The same text again tells nothing new. Of short ones that is not asked: a look takes less time.
                if text.len() < LONG || text != last {
                    look.field(text, options.na.as_deref());
                    last = text;
                }
            }
        }
        rows += wanted;
    }
    Ok(())
}

/// Where the rows of a block begin: in the first one, behind the header.
fn begin(input: &Input, delimiter: u8, block: &[u8], place: Place) -> Result<usize, String> {
    match place.number {
        0 => Ok(header(input, delimiter, block, place)?.map_or(block.len(), |(_, behind)| behind)),
        _ => Ok(0),
    }
}

/// The names of the columns and where the rows begin; none in blank lines.
fn header(
    input: &Input,
    delimiter: u8,
    block: &[u8],
    place: Place,
) -> Result<Option<(Vec<String>, usize)>, String> {
    let from = habits::delimiter_line(block).map_or(0, |(_, behind)| behind);
    let first = Splitter::first(delimiter, &block[from..])
        .map_err(|refused| said(input, &block[from..], place, 0, &refused))?;
    let Some((names, behind)) = first else { return Ok(None) };
    let behind = from + behind;
    let names = names.into_iter().map(String::from_utf8).collect::<Result<Vec<_>, _>>();
    let names = names.map_err(|_| {
        let line = place.line + line_at(block, behind.saturating_sub(1));
        format!("{}, line {line}: the header {}", input.name, habits::NOT_UTF8)
    })?;
    Ok(Some((names, behind)))
}

/// Words for a record that is none.
fn said(input: &Input, block: &[u8], place: Place, width: usize, refused: &Refused) -> String {
    let (line, what) = explained(block, place, width, refused);
    format!("{}, line {line}: {what}", input.name)
}

/// The line of a record that is none, and why it is none.
fn explained(block: &[u8], place: Place, width: usize, refused: &Refused) -> (u64, String) {
    let (offset, what) = match refused {
        Refused::Width(offset, found) => {
            (*offset, format!("{}, the header has {width}", plural(*found, "field")))
        }
        Refused::Utf8(offset) => (*offset, format!("it {}", habits::NOT_UTF8)),
        Refused::Unclosed(offset) => (
            *offset,
            "a quote opens a value there, and none closes it; close it, or write \"\" for a quote \
             that belongs to the value"
                .to_owned(),
        ),
    };
    (place.line + line_at(block, offset), what)
}

/// Rows of CSV that are being read.
pub(crate) struct CsvScan<'a> {
    file: &'a TextFile,
    delimiter: u8,
    blocks: Blocks,
    splitter: Splitter,
    /// The columns that are wanted, and for each the place of its field among those.
    columns: Vec<(usize, usize)>,
    /// Whether rows are named by their lines.
    with_lines: bool,
}

impl<'a> CsvScan<'a> {
    pub(crate) fn new(
        file: &'a TextFile,
        delimiter: u8,
        columns: &[usize],
        with_lines: bool,
    ) -> Result<Self, String> {
        let mut wanted = columns.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let width = file.known.names.len();
        let splitter = Splitter::new(delimiter, width, &wanted, file.leaves_out());
        let slot = |column| wanted.binary_search(column).expect("it is one of them");
        let columns = columns.iter().map(|column| (*column, slot(column))).collect();
        let blocks = TextFile::blocks(&file.input, &file.options, Cuts::csv(delimiter))?;
        Ok(CsvScan { file, delimiter, blocks, splitter, columns, with_lines })
    }

    fn read(&self, sink: &mut Sink<'_>) -> Result<(), String> {
        let file = self.file;
        let (mut block, mut fields) = (Vec::new(), Fields::default());
        loop {
            file.input.expect_wanted()?;
            let next = self.blocks.next(&mut block);
            let next = next.map_err(|error| file.input.unread(&error))?;
            let Some(place) = next else { return Ok(()) };
            let from = begin(&file.input, self.delimiter, &block, place)?;
            let width = file.known.names.len();
            self.splitter
                .split(&block, from, &mut fields)
                .map_err(|refused| said(&file.input, &block, place, width, &refused))?;
            for refused in &fields.refused {
                let (line, what) = explained(&block, place, width, refused);
                file.leave_out(line, what);
            }
            if file.leaves_out() {
                self.leave_out_misfits(&block, place, &mut fields);
            }
            let lines = self.with_lines.then(|| fields.lines(&block));
            for (number, begin) in (0..fields.len()).step_by(BATCH_ROWS).enumerate() {
                let records = begin..fields.len().min(begin + BATCH_ROWS);
                let len = records.len();
                let mut columns = Vec::with_capacity(self.columns.len());
                for (column, slot) in &self.columns {
                    let texts = fields.column(&block, *slot, records.clone());
                    let vector = file.reading(*column).vector(texts);
                    columns.push(vector.map_err(|at| {
                        self.misfit(*column, *slot, &block, &fields, place, begin + at)
                    })?);
                }
                let ids = lines.as_ref().map(|lines| {
                    let mut ids = Strings::new();
                    lines[records]
                        .iter()
                        .for_each(|line| ids.push(&(place.line + line).to_le_bytes()));
                    ids
                });
                let batch = Batch { len, columns, ids };
                if sink(batch_number(place.number, number), &batch).is_break() {
                    return Ok(());
                }
            }
        }
    }

    /// Leaves out records with a value that is none of the type that was said for its column.
    fn leave_out_misfits(&self, block: &[u8], place: Place, fields: &mut Fields) {
        for (column, slot) in &self.columns {
            if !self.file.typed.is_said[*column] || *self.file.kind(*column) == Type::Text {
                continue;
            }
            let all = 0..fields.len();
            let misfits = self.file.reading(*column).misfits(fields.column(block, *slot, all));
            for record in &misfits {
                let mut texts = fields.column(block, *slot, *record..record + 1);
                let text = String::from_utf8_lossy(texts.next().expect("a field"));
                let line = place.line + fields.line(block, *record);
                self.file.leave_out(line, self.file.unlike(*column, &text));
            }
            if !misfits.is_empty() {
                fields.remove(&misfits);
            }
        }
    }

    fn misfit(
        &self,
        column: usize,
        slot: usize,
        block: &[u8],
        fields: &Fields,
        place: Place,
        record: usize,
    ) -> String {
        let mut texts = fields.column(block, slot, record..record + 1);
        let text = String::from_utf8_lossy(texts.next().expect("a field")).into_owned();
        let line = place.line + fields.line(block, record);
        let scanned: Vec<usize> = self.columns.iter().map(|(column, _)| *column).collect();
        self.file.misfit(column, &text, line, &scanned)
    }
}

impl Scan for CsvScan<'_> {
    fn work(&self, sink: &mut Sink<'_>) -> Result<(), String> {
        let read = self.read(sink);
        if read.is_err() {
            self.blocks.stop();
        }
        read
    }
}

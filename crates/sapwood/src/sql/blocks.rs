//! Columns of the rows of a block, as it has them.

use sapwood_wal::{Block, Piece, Values};
use std::ops::Range;
use std::sync::Arc;

use super::scan::Wanted;
use crate::schema::{self, ColumnPiece, Data, Strings, Vector};
use crate::{Error, OrderedTable, Result};

/// Values that a code of one byte can name.
const CODES: usize = Strings::DICTIONARY_MAX;

/// The wanted columns of a block whose rows are all of one version.
pub(super) struct BlockColumns<'b> {
    table: &'b OrderedTable,
    columns: Vec<BlockColumn<'b>>,
}

struct BlockColumn<'b> {
    described: ColumnPiece,
    values: Option<&'b Piece>,
    nulls: Option<&'b Piece>,
    /// Where few values differ, those.
    dictionary: Option<Dictionary>,
}

/// The values of a piece that differ.
enum Dictionary {
    Texts(Arc<Strings>),
    /// As many as there are codes: those behind the last value have any.
    Others(Data),
}

/// The texts of each column that differed in the block before. Where they are the same again, so is what was learned
/// of them.
pub(super) type LastTexts = Vec<Option<Arc<Strings>>>;

impl<'b> BlockColumns<'b> {
    /// Reads the columns of a block; `None` of one whose entries are not cut.
    pub(super) fn of(
        wanted: &Wanted,
        table: &'b OrderedTable,
        block: &'b Block,
        last_texts: &mut LastTexts,
    ) -> Result<Option<BlockColumns<'b>>> {
        let Ok(version @ 1..) = u8::try_from(block.layout()) else { return Ok(None) };
        let stored = table.stored_entries().expect("the table has blocks");
        let piece = |number: Option<usize>| -> Result<Option<&'b Piece>> {
            match number {
                None => Ok(None),
                Some(number) if number < block.pieces() => {
                    stored.named(block.piece(number)).map(Some)
                }
                Some(_) => Err(not_as_described(table)),
            }
        };
        last_texts.resize(wanted.columns.len(), None);
        let column = |(&column, last_texts): (&usize, &mut Option<Arc<Strings>>)| {
            let described = wanted.format.piece_of(version, column);
            let described = described.ok_or_else(|| not_as_described(table))?;
            let values = piece(described.piece())?;
            let nulls = piece(described.null_piece())?;
            let dictionary = match values {
                Some(values) if values.codes().is_some() => {
                    let kind = &wanted.format.schema().columns()[column].kind;
                    let read =
                        Dictionary::of(&described, values, Vector::of_type(kind), last_texts);
                    read.map_err(|cause| Error::Schema { table: table.name().into(), cause })?
                }
                _ => None,
            };
            Ok(BlockColumn { described, values, nulls, dictionary })
        };
        let columns = wanted.columns.iter().zip(last_texts).map(column).collect::<Result<_>>()?;
        Ok(Some(BlockColumns { table, columns }))
    }

    /// Puts the file's place to an error of the log.
    pub(super) fn named<T>(&self, result: sapwood_wal::Result<T>) -> Result<T> {
        self.table.stored_entries().expect("the table has blocks").named(result)
    }

    /// Appends some rows to vectors of these columns.
    pub(super) fn push(&self, rows: Range<usize>, vectors: &mut [Vector]) -> Result<()> {
        for (vector, column) in vectors.iter_mut().zip(&self.columns) {
            let is_pushed = column.push_coded(&rows, vector)
                || column.push_numbers(&rows, vector)
                || column.push_texts(&rows, vector);
            let pushed = match is_pushed {
                true => Ok(()),
                false => column.push_cells(rows.clone(), vector),
            };
            let table = || Arc::from(self.table.name());
            pushed.map_err(|cause| Error::Schema { table: table(), cause })?;
        }
        Ok(())
    }
}

impl Dictionary {
    /// Reads the values of a piece into an empty vector; `None` if nulls are among them.
    fn of(
        described: &ColumnPiece,
        piece: &Piece,
        mut vector: Vector,
        last_texts: &mut Option<Arc<Strings>>,
    ) -> schema::Result<Option<Dictionary>> {
        let values = piece.values();
        for at in 0..values.len() {
            // Which rows are null their null bits say, and not what they have in place of a value.
            vector.push_cell(&described.cell(values.get(at), &[])?);
        }
        if vector.nulls.is_some() {
            return Ok(None);
        }
        let mut data = vector.data;
        match &mut data {
            Data::Bool(values) => values.resize(CODES, false),
            Data::Int(values) => values.resize(CODES, 0),
            Data::Big(values) => values.resize(CODES, 0),
            Data::Huge(values) => values.resize(CODES, 0),
            Data::Float(values) => values.resize(CODES, 0.0),
            Data::Bytes(texts) => {
                let texts = match last_texts.take() {
                    Some(last) if *last == *texts => last,
                    _ => Arc::new(std::mem::take(texts)),
                };
                *last_texts = Some(Arc::clone(&texts));
                return Ok(Some(Dictionary::Texts(texts)));
            }
        }
        Ok(Some(Dictionary::Others(data)))
    }
}

impl BlockColumn<'_> {
    /// The values of all rows, unless they are those of a dictionary.
    fn values_of_each(&self) -> Option<&Values> {
        self.values.filter(|piece| piece.codes().is_none()).map(Piece::values)
    }

    fn nulls_of(&self, row: usize) -> &[u8] {
        self.nulls.map_or(&b""[..], |piece| piece.get(row))
    }

    /// Appends values of a dictionary; false if there is none.
    fn push_coded(&self, rows: &Range<usize>, vector: &mut Vector) -> bool {
        fn extend<T: Copy>(values: &mut Vec<T>, dictionary: &[T], codes: &[u8]) {
            let dictionary: &[T; CODES] = dictionary.try_into().expect("a value for each code");
            values.extend(codes.iter().map(|code| dictionary[usize::from(*code)]));
        }
        let (Some(dictionary), Some(codes)) =
            (&self.dictionary, self.values.and_then(Piece::codes))
        else {
            return false;
        };
        let codes = &codes[rows.clone()];
        match (&mut vector.data, dictionary) {
            (Data::Bytes(texts), Dictionary::Texts(dictionary)) => {
                texts.extend_from_dictionary(dictionary, codes);
            }
            (Data::Bool(values), Dictionary::Others(Data::Bool(own))) => extend(values, own, codes),
            (Data::Int(values), Dictionary::Others(Data::Int(own))) => extend(values, own, codes),
            (Data::Big(values), Dictionary::Others(Data::Big(own))) => extend(values, own, codes),
            (Data::Huge(values), Dictionary::Others(Data::Huge(own))) => extend(values, own, codes),
            (Data::Float(values), Dictionary::Others(Data::Float(own))) => {
                extend(values, own, codes);
            }
            _ => return false,
        }
        self.push_nulls(rows, vector);
        true
    }

    /// Appends numbers of one width; false if the column has others.
    fn push_numbers(&self, rows: &Range<usize>, vector: &mut Vector) -> bool {
        let described = &self.described;
        let (Some(width), Some(values)) = (described.width(), self.values_of_each()) else {
            return false;
        };
        if values.width() != Some(width) {
            return false;
        }
        let (pieces, _) = values.run(rows.clone());
        let pushed = match &mut vector.data {
            Data::Int(numbers) => described.push_ints(pieces, numbers),
            Data::Float(numbers) => described.push_floats(pieces, numbers),
            _ => false,
        };
        if pushed {
            self.push_nulls(rows, vector);
        }
        pushed
    }

    /// Appends texts that lie in their pieces as they are; false, and none, if the column has others.
    fn push_texts(&self, rows: &Range<usize>, vector: &mut Vector) -> bool {
        let (Data::Bytes(texts), Some(values)) = (&mut vector.data, self.values_of_each()) else {
            return false;
        };
        if self.described.is_text() {
            let (bytes, ends) = values.run(rows.clone());
            texts.extend_from(bytes, ends);
            self.push_nulls(rows, vector);
            return true;
        }
        if !self.described.is_key_text() {
            return false;
        }
        let (bytes, ends) = values.run(rows.clone());
        let (before, mut begin) = (texts.len(), 0);
        for end in ends {
            match ColumnPiece::key_text(&bytes[begin..end]) {
                Some(text) => texts.push(text),
                None => {
                    texts.truncate(before);
                    return false;
                }
            }
            begin = end;
        }
        self.push_nulls(rows, vector);
        true
    }

    /// Notes which of the rows that were appended to the data are null.
    fn push_nulls(&self, rows: &Range<usize>, vector: &mut Vector) {
        let (Some(piece), Some(bit)) = (self.nulls, self.described.null_bit()) else {
            return note_nulls(vector, rows.len(), |_| false);
        };
        let (byte, mask) = (bit / 8, 1 << (bit % 8));
        match (piece.codes(), piece.values().width()) {
            (Some(codes), _) => {
                let values = piece.values();
                let mut is_null = [false; CODES];
                for (at, is_null) in is_null[..values.len()].iter_mut().enumerate() {
                    *is_null = self.described.is_null(values.get(at));
                }
                let codes = &codes[rows.clone()];
                note_nulls(vector, rows.len(), |at| is_null[usize::from(codes[at])]);
            }
            (None, Some(width)) if byte < width => {
                let (bytes, _) = piece.values().run(rows.clone());
                note_nulls(vector, rows.len(), |at| bytes[at * width + byte] & mask != 0);
            }
            _ => note_nulls(vector, rows.len(), |at| {
                self.described.is_null(piece.get(rows.start + at))
            }),
        }
    }

    fn push_cells(&self, rows: Range<usize>, vector: &mut Vector) -> schema::Result<()> {
        for row in rows {
            let value = self.values.map_or(&b""[..], |piece| piece.get(row));
            vector.push_cell(&self.described.cell(value, self.nulls_of(row))?);
        }
        Ok(())
    }
}

/// Notes which of the last so many values are null.
#[inline]
fn note_nulls(vector: &mut Vector, len: usize, is_null: impl Fn(usize) -> bool) {
    if vector.nulls.is_some() || (0..len).any(&is_null) {
        let before = vector.data.len() - len;
        vector.nulls.get_or_insert_with(|| vec![false; before]).extend((0..len).map(is_null));
    }
}

fn not_as_described(table: &OrderedTable) -> Error {
    let what = "a block of its snapshot has rows that its schema does not describe".to_owned();
    Error::Corrupt { table: Arc::from(table.name()), what }
}

//! Columns of the rows of a block, as it has them.

use std::ops::Range;
use std::sync::Arc;

use sapwood_sql::{Data, Vector};
use sapwood_wal::{Block, Piece};

use super::scan::Wanted;
use crate::schema::{self, ColumnPiece};
use crate::{Error, OrderedTable, Result};

/// The wanted columns of a block whose rows are all of one version.
pub(super) struct BlockColumns<'b> {
    table: &'b OrderedTable,
    columns: Vec<BlockColumn<'b>>,
}

struct BlockColumn<'b> {
    described: ColumnPiece,
    values: Option<&'b Piece>,
    nulls: Option<&'b Piece>,
}

impl<'b> BlockColumns<'b> {
    /// Reads the columns of a block; `None` of one whose entries are not cut.
    pub(super) fn of(
        wanted: &Wanted,
        table: &'b OrderedTable,
        block: &'b Block,
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
        let column = |&column: &usize| {
            let described = wanted.format.piece_of(version, column);
            let described = described.ok_or_else(|| not_as_described(table))?;
            let values = piece(described.piece())?;
            let nulls = piece(described.null_piece())?;
            Ok(BlockColumn { described, values, nulls })
        };
        let columns = wanted.columns.iter().map(column).collect::<Result<_>>()?;
        Ok(Some(BlockColumns { table, columns }))
    }

    /// Puts the file's place to an error of the log.
    pub(super) fn named<T>(&self, result: sapwood_wal::Result<T>) -> Result<T> {
        self.table.stored_entries().expect("the table has blocks").named(result)
    }

    /// Appends some rows to vectors of these columns.
    pub(super) fn push(&self, rows: Range<usize>, vectors: &mut [Vector]) -> Result<()> {
        for (vector, column) in vectors.iter_mut().zip(&self.columns) {
            let pushed =
                match column.push_numbers(&rows, vector) || column.push_texts(&rows, vector) {
                    true => Ok(()),
                    false => column.push_cells(rows.clone(), vector),
                };
            let table = || Arc::from(self.table.name());
            pushed.map_err(|cause| Error::Schema { table: table(), cause })?;
        }
        Ok(())
    }
}

impl BlockColumn<'_> {
    fn nulls_of(&self, row: usize) -> &[u8] {
        self.nulls.map_or(&b""[..], |piece| piece.get(row))
    }

    /// Appends numbers of one width; false if the column has others.
    fn push_numbers(&self, rows: &Range<usize>, vector: &mut Vector) -> bool {
        let described = &self.described;
        let (Some(width), Some(values)) = (described.width(), self.values) else { return false };
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
        let (Data::Bytes(texts), Some(values)) = (&mut vector.data, self.values) else {
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
        match piece.width() {
            Some(width) if byte < width => {
                let (bytes, _) = piece.run(rows.clone());
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

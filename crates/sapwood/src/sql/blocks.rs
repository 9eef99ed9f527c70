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
            let pushed = match column.push_ints(rows.clone(), vector) {
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

    /// Appends whole numbers of one width; false if the column has others.
    fn push_ints(&self, rows: Range<usize>, vector: &mut Vector) -> bool {
        let described = &self.described;
        let (Data::Int(numbers), Some(width)) = (&mut vector.data, described.width()) else {
            return false;
        };
        let pieces = self.values.and_then(|values| values.of_width(width));
        let pieces = pieces.and_then(|pieces| pieces.get(rows.start * width..rows.end * width));
        let before = numbers.len();
        if !pieces.is_some_and(|pieces| described.push_ints(pieces, numbers)) {
            return false;
        }
        let mut is_null = rows.map(|row| described.is_null(self.nulls_of(row)));
        if self.nulls.is_some() && (vector.nulls.is_some() || is_null.clone().any(|it| it)) {
            let nulls = vector.nulls.get_or_insert_with(|| vec![false; before]);
            nulls.extend(&mut is_null);
        } else if let Some(nulls) = &mut vector.nulls {
            nulls.resize(numbers.len(), false);
        }
        true
    }

    fn push_cells(&self, rows: Range<usize>, vector: &mut Vector) -> schema::Result<()> {
        for row in rows {
            let value = self.values.map_or(&b""[..], |piece| piece.get(row));
            vector.push_cell(&self.described.cell(value, self.nulls_of(row))?);
        }
        Ok(())
    }
}

fn not_as_described(table: &OrderedTable) -> Error {
    let what = "a block of its snapshot has rows that its schema does not describe".to_owned();
    Error::Corrupt { table: Arc::from(table.name()), what }
}

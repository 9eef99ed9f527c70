//! Columns of the rows of a block, as it has them.

use std::ops::Range;
use std::sync::Arc;

use sapwood_sql::Vector;
use sapwood_wal::{Block, Piece};

use super::scan::Wanted;
use crate::schema::ColumnPiece;
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

    /// Appends some rows to vectors of these columns.
    pub(super) fn push(&self, rows: Range<usize>, vectors: &mut [Vector]) -> Result<()> {
        for (vector, column) in vectors.iter_mut().zip(&self.columns) {
            let BlockColumn { described, values, nulls } = column;
            for row in rows.clone() {
                let values = values.map_or(&b""[..], |piece| piece.get(row));
                let nulls = nulls.map_or(&b""[..], |piece| piece.get(row));
                let cell = described.cell(values, nulls).map_err(|cause| Error::Schema {
                    table: Arc::from(self.table.name()),
                    cause,
                })?;
                vector.push_cell(&cell);
            }
        }
        Ok(())
    }
}

fn not_as_described(table: &OrderedTable) -> Error {
    let what = "a block of its snapshot has rows that its schema does not describe".to_owned();
    Error::Corrupt { table: Arc::from(table.name()), what }
}

//! Rows cut into pieces, so that those of one column can lie together.
//!
//! ```text
//! of the key      each column, the number
//! of the value    the first byte, null bits, each column of fixed width, ends, each text
//! ```
//!
//! The pieces of a row, one behind the other, are its key and its value.

use std::borrow::Cow;

use super::{Cell, Place, RowFormat, Texts, fixed, key_cell, version_of};
use crate::{Column, Result, Type};

/// How a row was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCut {
    /// The version of the schema that the row was written in. Rows of one have the same pieces.
    pub version: u8,
    /// How many pieces make up its key.
    pub key_pieces: usize,
}

/// Where rows of one version have a column, and what its piece is.
#[derive(Debug, Clone)]
pub struct ColumnPiece {
    kind: Type,
    form: Form,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    /// The version has no such column.
    Absent,
    Key {
        piece: usize,
        nullable: bool,
    },
    Fixed {
        piece: usize,
        null: Option<Null>,
    },
    Text {
        piece: usize,
        null: Option<Null>,
    },
}

/// The piece that has null bits, and which bit it is.
#[derive(Debug, Clone, Copy)]
struct Null {
    piece: usize,
    bit: usize,
}

impl RowFormat {
    /// Cuts a row: appends the length of each piece to `lens`. `None` if the two are no row of the schema; then
    /// `lens` may have some.
    pub fn cut(&self, key: &[u8], value: &[u8], lens: &mut Vec<u32>) -> Option<RowCut> {
        let columns = self.schema.columns();
        let mut rest = key;
        for &column in self.schema.key_columns() {
            let before = rest.len();
            let Column { kind, nullable, .. } = &columns[column];
            match kind.width() {
                // Any bytes of such a width are a value.
                Some(width) if !nullable && *kind != Type::Bool => rest = rest.get(width..)?,
                _ => drop(key_cell(kind, *nullable, &mut rest).ok()?),
            }
            lens.push((before - rest.len()) as u32);
        }
        if self.schema.is_numbered() {
            lens.push(8);
        }
        if rest.len() != if self.schema.is_numbered() { 8 } else { 0 } {
            return None;
        }
        let version = version_of(value, self.versions.len()).ok()?;
        let format = &self.versions[version];
        let texts = Texts::of(value, format.ends, format.texts).ok()?;
        lens.extend([1, format.nulls as u32]);
        lens.extend_from_slice(&format.widths);
        lens.push((texts.begin - format.ends) as u32);
        let mut begin = 0;
        for text in 0..format.texts {
            let end = match text + 1 == format.texts {
                true => value.len() - texts.begin,
                false => texts.end(text, value),
            };
            lens.push(u32::try_from(end.checked_sub(begin)?).ok()?);
            begin = end;
        }
        if begin != value.len() - texts.begin {
            return None;
        }
        Some(RowCut { version: version as u8 + 1, key_pieces: self.key_pieces() })
    }

    fn key_pieces(&self) -> usize {
        self.schema.key_columns().len() + usize::from(self.schema.is_numbered())
    }

    /// Where rows of a version have a column; `None` if there is no such version.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn piece_of(&self, version: u8, column: usize) -> Option<ColumnPiece> {
        let format = self.versions.get(usize::from(version).checked_sub(1)?)?;
        let described = &self.schema.columns()[column];
        let in_key = self.schema.key_columns().iter().position(|&it| it == column);
        if let Some(piece) = in_key {
            let form = Form::Key { piece, nullable: described.nullable };
            return Some(ColumnPiece { kind: described.kind.clone(), form });
        }
        // Behind the pieces of the key come the first byte and the null bits.
        let nulls = self.key_pieces() + 1;
        let null = |bit: Option<usize>| bit.map(|bit| Null { piece: nulls, bit });
        let before =
            |is: fn(&Place) -> bool| format.places[..column].iter().filter(|it| is(it)).count();
        let all_fixed = format.places.iter().filter(|place| is_fixed(place)).count();
        let form = match format.places[column] {
            Place::Absent => Form::Absent,
            Place::Fixed { null_bit, .. } => {
                Form::Fixed { piece: nulls + 1 + before(is_fixed), null: null(null_bit) }
            }
            Place::Text { index, null_bit } => {
                Form::Text { piece: nulls + 2 + all_fixed + index, null: null(null_bit) }
            }
        };
        Some(ColumnPiece { kind: format.kinds[column].clone(), form })
    }
}

fn is_fixed(place: &Place) -> bool {
    matches!(place, Place::Fixed { .. })
}

impl ColumnPiece {
    /// The piece that has the column; `None` where the version has no such column: it is null.
    pub fn piece(&self) -> Option<usize> {
        match self.form {
            Form::Absent => None,
            Form::Key { piece, .. } | Form::Fixed { piece, .. } | Form::Text { piece, .. } => {
                Some(piece)
            }
        }
    }

    /// The piece that has null bits, which [`cell`](Self::cell) needs beside it; `None` where it needs none.
    pub fn null_piece(&self) -> Option<usize> {
        match self.form {
            Form::Fixed { null, .. } | Form::Text { null, .. } => null.map(|null| null.piece),
            Form::Absent | Form::Key { .. } => None,
        }
    }

    /// The width of its piece in every row, if that is one and the column is not null by a mark in it.
    pub fn width(&self) -> Option<usize> {
        match self.form {
            Form::Fixed { .. } | Form::Key { nullable: false, .. } => self.kind.width(),
            Form::Absent | Form::Key { .. } | Form::Text { .. } => None,
        }
    }

    /// The bit of the null bits that says whether the column is null; `None` where none does.
    pub fn null_bit(&self) -> Option<usize> {
        match self.form {
            Form::Fixed { null, .. } | Form::Text { null, .. } => null.map(|null| null.bit),
            Form::Absent | Form::Key { .. } => None,
        }
    }

    /// Whether pieces of the column are its texts.
    pub fn is_text(&self) -> bool {
        matches!(self.form, Form::Text { .. })
    }

    /// Whether pieces of the column are texts of a key, with what ends them: [`key_text`](Self::key_text).
    pub fn is_key_text(&self) -> bool {
        matches!(self.form, Form::Key { nullable: false, .. }) && self.kind.width().is_none()
    }

    /// The text of a key's piece, where it lies in that as it is: unless it has a zero byte.
    #[inline]
    pub fn key_text(piece: &[u8]) -> Option<&[u8]> {
        piece.strip_suffix(&[0, 1]).filter(|text| text.iter().all(|byte| *byte != 0))
    }

    /// Whether the column is null in a row with these null bits.
    #[inline]
    pub fn is_null(&self, nulls: &[u8]) -> bool {
        match self.form {
            Form::Fixed { null: Some(Null { bit, .. }), .. }
            | Form::Text { null: Some(Null { bit, .. }), .. } => {
                nulls.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
            }
            _ => false,
        }
    }

    /// Appends the whole numbers of some rows, whose pieces lie one behind the other; what null rows have is zero.
    /// Answers false, and appends none, where cells of the column are no [`Cell::Int`] of fixed width.
    pub fn push_ints(&self, pieces: &[u8], numbers: &mut Vec<i64>) -> bool {
        fn all<const W: usize>(pieces: &[u8], numbers: &mut Vec<i64>, of: impl Fn([u8; W]) -> i64) {
            let (pieces, _) = pieces.as_chunks::<W>();
            numbers.extend(pieces.iter().map(|piece| of(*piece)));
        }
        let is_key = match self.form {
            Form::Fixed { .. } => false,
            Form::Key { nullable: false, .. } => true,
            Form::Absent | Form::Key { .. } | Form::Text { .. } => return false,
        };
        // Keys have the most significant byte first, and the sign flipped.
        match (&self.kind, is_key) {
            (Type::Int(8), false) => all(pieces, numbers, |it| i8::from_le_bytes(it).into()),
            (Type::Int(8), true) => all(pieces, numbers, |[it]| i64::from((it ^ 0x80) as i8)),
            (Type::UInt(8) | Type::Bool, _) => all(pieces, numbers, |[it]| it.into()),
            (Type::Int(16), false) => all(pieces, numbers, |it| i16::from_le_bytes(it).into()),
            (Type::Int(16), true) => {
                all(pieces, numbers, |it| (i16::from_be_bytes(it) ^ i16::MIN).into());
            }
            (Type::UInt(16), false) => all(pieces, numbers, |it| u16::from_le_bytes(it).into()),
            (Type::UInt(16), true) => all(pieces, numbers, |it| u16::from_be_bytes(it).into()),
            (Type::Int(32) | Type::Date, false) => {
                all(pieces, numbers, |it| i32::from_le_bytes(it).into());
            }
            (Type::Int(32) | Type::Date, true) => {
                all(pieces, numbers, |it| (i32::from_be_bytes(it) ^ i32::MIN).into());
            }
            (Type::UInt(32), false) => all(pieces, numbers, |it| u32::from_le_bytes(it).into()),
            (Type::UInt(32), true) => all(pieces, numbers, |it| u32::from_be_bytes(it).into()),
            (Type::Int(64) | Type::Timestamp(_), false) => {
                all(pieces, numbers, i64::from_le_bytes);
            }
            (Type::Decimal { digits: ..=18, .. }, false) => {
                all(pieces, numbers, i64::from_le_bytes)
            }
            (Type::Int(64) | Type::Timestamp(_), true) => {
                all(pieces, numbers, |it| i64::from_be_bytes(it) ^ i64::MIN);
            }
            (Type::Decimal { digits: ..=18, .. }, true) => {
                all(pieces, numbers, |it| i64::from_be_bytes(it) ^ i64::MIN);
            }
            _ => return false,
        }
        true
    }

    /// As [`push_ints`](Self::push_ints), of floats that are not in the key.
    pub fn push_floats(&self, pieces: &[u8], numbers: &mut Vec<f64>) -> bool {
        match (&self.form, &self.kind) {
            (Form::Fixed { .. }, Type::F64) => {
                let (pieces, _) = pieces.as_chunks();
                numbers.extend(pieces.iter().map(|piece| f64::from_le_bytes(*piece)));
            }
            (Form::Fixed { .. }, Type::F32) => {
                let (pieces, _) = pieces.as_chunks();
                numbers.extend(pieces.iter().map(|piece| f64::from(f32::from_le_bytes(*piece))));
            }
            _ => return false,
        }
        true
    }

    /// The column of a row, from its piece and the row's null bits.
    ///
    /// # Errors
    /// [`Error::Bytes`](crate::Error::Bytes) if they are no pieces of a row.
    #[inline]
    pub fn cell<'a>(&self, piece: &'a [u8], nulls: &[u8]) -> Result<Cell<'a>> {
        match self.form {
            Form::Absent => Ok(Cell::Null),
            Form::Fixed { .. } | Form::Text { .. } if self.is_null(nulls) => Ok(Cell::Null),
            Form::Key { nullable, .. } => key_cell(&self.kind, nullable, &mut &*piece),
            Form::Fixed { .. } if Some(piece.len()) != self.kind.width() => {
                Err(crate::Error::value("a piece is not as wide as its column"))
            }
            Form::Fixed { .. } => Ok(fixed(&self.kind, piece)),
            Form::Text { .. } => Ok(Cell::Bytes(Cow::Borrowed(piece))),
        }
    }
}

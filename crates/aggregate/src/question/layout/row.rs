//! Columns of rows whose types a schema has.
//!
//! A column that lies at one offset in every row, and is never null, is a number of fixed width as any other. Others
//! are read by the row's format, which knows versions, null marks and where texts end.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use sapwood_schema::{Cell, POWERS_OF_TEN, Projection, RowFormat, Type};

use super::{Field, Layout, Part, Place, Read};
use crate::error::Why;
use crate::value::number::{Form, Number, Order};
use crate::value::{Kind, Value};

/// A column of rows of a schema.
///
/// Whole numbers and truth are what they are, but `u128` from 2^127 on, which is a mismatch; floats too, but NaN, which is a mismatch; decimals are the nearest
/// float, unless they have no digits behind the point; days and moments are text (ISO 8601), which sorts as they do.
/// Arrays are mismatches.
#[derive(Debug, Clone)]
pub struct RowColumn {
    format: Arc<RowFormat>,
    column: usize,
    projection: Arc<Projection>,
}

impl PartialEq for RowColumn {
    fn eq(&self, other: &RowColumn) -> bool {
        self.column == other.column && self.format == other.format
    }
}

impl Eq for RowColumn {}

/// The column's type; it is not read back.
impl fmt::Display for RowColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = &self.format.schema().columns()[self.column];
        write!(f, "row.{}{}", column.kind, if column.nullable { "?" } else { "" })
    }
}

impl RowColumn {
    fn new(format: &Arc<RowFormat>, column: usize) -> RowColumn {
        let projection = Arc::new(format.project(&[column]));
        RowColumn { format: Arc::clone(format), column, projection }
    }

    /// Its type.
    pub(crate) fn column_type(&self) -> &Type {
        &self.format.schema().columns()[self.column].kind
    }

    /// Of which kind its values are; none of arrays.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self.column_type() {
            Type::Bool => Some(Kind::Bool),
            Type::Array(..) => None,
            kind if kind.is_number() => Some(Kind::Number),
            _ => Some(Kind::Bytes),
        }
    }

    pub(super) fn is_float(&self) -> bool {
        matches!(self.column_type(), Type::F32 | Type::F64 | Type::Decimal { scale: 1.., .. })
    }

    /// Reads the column of a row; `None` if it is null.
    pub(super) fn read<'a>(
        &self,
        key: &'a [u8],
        value: &'a [u8],
    ) -> std::result::Result<Option<Value<'a>>, Why> {
        let mut found = Ok(None);
        let read = self.projection.read(key, value, &mut |_, cell| found = self.value(cell));
        read.map_err(|_| Why::NotRow).and(found)
    }

    /// Whether some rows have no value of it.
    pub(crate) fn is_nullable(&self) -> bool {
        self.format.schema().columns()[self.column].nullable
    }

    /// Reads some columns of a row at once; none if they are of rows of different formats.
    pub(crate) fn project<'r>(rows: impl Iterator<Item = &'r RowColumn>) -> Option<Projection> {
        let rows: Vec<&RowColumn> = rows.collect();
        let format = &rows.first()?.format;
        let are_alike =
            rows.iter().all(|row| Arc::ptr_eq(&row.format, format) || row.format == *format);
        let columns: Vec<usize> = rows.iter().map(|row| row.column).collect();
        are_alike.then(|| format.project(&columns))
    }

    /// The value of a cell before it becomes a lane: as it is read, but days and ticks are numbers. None if the object
    /// must go by itself.
    #[inline]
    pub(crate) fn plain<'a>(&self, cell: Cell<'a>) -> Option<Option<Value<'a>>> {
        /// Whole numbers up to here are floats.
        const FLOAT_MAX: u64 = 1 << f64::MANTISSA_DIGITS;
        /// Powers of ten up to here are floats.
        const SCALE_MAX: u8 = 22;
        match (cell, self.column_type()) {
            (Cell::Int(number), Type::Date | Type::Timestamp(_)) => {
                Some(Some(Value::Int(number.into())))
            }
            // One division of two floats is rounded once, as the text of the number is.
            (Cell::Int(units), Type::Decimal { scale: scale @ 1..=SCALE_MAX, .. })
                if units.unsigned_abs() <= FLOAT_MAX =>
            {
                let power = POWERS_OF_TEN[usize::from(*scale)] as f64;
                Value::float(units as f64 / power).ok().map(Some)
            }
            (cell, _) => self.value(cell).ok(),
        }
    }

    fn value<'a>(&self, cell: Cell<'a>) -> std::result::Result<Option<Value<'a>>, Why> {
        let number = |number: f64| Value::float(number).map_err(|_| Why::Nan);
        let value = match (cell, self.column_type()) {
            (Cell::Null, _) => return Ok(None),
            (Cell::Int(value), Type::Bool) => Value::Bool(value != 0),
            (Cell::Int(value), Type::Int(_) | Type::UInt(_) | Type::Decimal { scale: 0, .. }) => {
                Value::Int(value.into())
            }
            (Cell::Big(value), Type::Int(_) | Type::UInt(_) | Type::Decimal { scale: 0, .. }) => {
                Value::Int(value)
            }
            // As numbers of fixed width: those above are mismatches.
            (Cell::Huge(value), _) => Value::Int(i128::try_from(value).map_err(|_| Why::Wide)?),
            (Cell::Float(value), _) => number(value)?,
            (Cell::Bytes(bytes), Type::Bytes) => Value::Bytes(bytes),
            (Cell::Bytes(text), _) => match std::str::from_utf8(&text) {
                Ok(_) => Value::Bytes(text),
                Err(_) => return Err(Why::NotUtf8),
            },
            (Cell::Array(_), _) => return Err(Why::Compound),
            (cell, Type::Decimal { .. }) => {
                let decimal = self.format.value_of(self.column, cell).map_err(|_| Why::NotRow)?;
                number(decimal.to_string().parse().map_err(|_| Why::NotRow)?)?
            }
            (cell, _) => {
                let moment = self.format.value_of(self.column, cell).map_err(|_| Why::NotRow)?;
                Value::Bytes(Cow::Owned(moment.to_string().into_bytes()))
            }
        };
        Ok(Some(value))
    }
}

impl Layout {
    /// The columns of rows as fields. Columns whose names have a backquote have none: no question can name them.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use sapwood::aggregate::Layout;
    /// use sapwood::schema::RowFormat;
    ///
    /// let schema = "carrier:text, flight:u16, seats:u16, delay:i16?, key(carrier, flight)".parse()?;
    /// let layout = Layout::of_rows(&Arc::new(RowFormat::new(schema)));
    /// assert_eq!(
    ///     layout.to_string(),
    ///     "carrier:row.text, flight:row.u16, seats:u16le@2, delay:row.i16?"
    /// );
    /// # Ok::<(), sapwood::schema::Error>(())
    /// ```
    pub fn of_rows(format: &Arc<RowFormat>) -> Layout {
        let columns = format.schema().columns().iter().enumerate();
        let columns = columns.filter(|(_, column)| !column.name.contains('`'));
        let fields = columns.map(|(at, column)| {
            let number = format.offset_of(at).zip(number_of(&column.kind));
            match number {
                Some((offset, number)) => Field::number(&column.name, number, offset),
                None => Field {
                    name: column.name.clone(),
                    place: Place::Value,
                    part: Part::From(0),
                    read: Read::Row(RowColumn::new(format, at)),
                    absent: None,
                },
            }
        });
        Layout { fields: fields.collect() }
    }
}

/// How a column of a type is read as a number of fixed width, if it is one.
fn number_of(kind: &Type) -> Option<Number> {
    let (form, bits) = match kind {
        Type::Int(bits) => (Form::Signed, *bits),
        Type::UInt(bits) => (Form::Unsigned, *bits),
        Type::F32 => (Form::Float, 32),
        Type::F64 => (Form::Float, 64),
        _ => return None,
    };
    Number::new(form, bits / 8, Order::Little)
}

#[cfg(test)]
mod tests {
    use sapwood_schema::{RowFormat, Value as Typed};

    use super::*;

    fn format(schema: &str) -> Arc<RowFormat> {
        Arc::new(RowFormat::new(schema.parse().expect("a schema")))
    }

    /// The values of a row, as its fields read them.
    fn read(
        format: &Arc<RowFormat>,
        row: &[Typed<'_>],
    ) -> Vec<std::result::Result<Option<Value<'static>>, Why>> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        format.encode(row, Some(7), &mut key, &mut value).expect("a row");
        let layout = Layout::of_rows(format);
        let fields = layout.fields().iter();
        let owned =
            |field: &Field| field.read(&key, &value).map(|value| value.map(Value::into_owned));
        fields.map(owned).collect()
    }

    #[test]
    fn every_type_is_read() {
        let format = format(
            "k:text, a:bool, b:i8, c:u64, d:i128, e:f32, f:f64, g:decimal(10,2), h:decimal(30,0), i:date, \
             j:timestamp(ms), l:text, m:bytes, n:[u8; 2], o:u128, p:u128?, q:u128?, key(k)",
        );
        let texts = [
            "x\\0y",
            "true",
            "-5",
            "18446744073709551615",
            "-9",
            "0.5",
            "-2.25",
            "12.50",
            "123456789012345678901234567890",
            "2013-01-31",
            "2013-01-31 10:00:00.250",
            "plane",
            "a\\xFF",
            "[1, 2]",
            "170141183460469231731687303715884105727",
            "7",
            "170141183460469231731687303715884105728",
        ];
        let kinds = format.schema().columns().iter().map(|column| &column.kind);
        let row: Vec<Typed<'_>> = texts
            .iter()
            .zip(kinds)
            .map(|(text, kind)| Typed::of_text(text, kind).expect("a value"))
            .collect();
        let float = |value| Value::float(value).expect("a number");
        let expected: Vec<std::result::Result<Option<Value<'static>>, Why>> = vec![
            Ok(Some("x\\0y".into())),
            Ok(Some(true.into())),
            Ok(Some((-5).into())),
            Ok(Some(Value::Int(u64::MAX.into()))),
            Ok(Some((-9).into())),
            Ok(Some(float(0.5))),
            Ok(Some(float(-2.25))),
            Ok(Some(float(12.5))),
            Ok(Some(Value::Int(123_456_789_012_345_678_901_234_567_890))),
            Ok(Some("2013-01-31".into())),
            Ok(Some(Value::from(row[10].to_string().as_str()).into_owned())),
            Ok(Some("plane".into())),
            Ok(Some(Value::Bytes(Cow::Owned(b"a\xFF".to_vec())))),
            Err(Why::Compound),
            Ok(Some(Value::Int(i128::MAX))),
            Ok(Some(7.into())),
            Err(Why::Wide),
        ];
        assert_eq!(read(&format, &row), expected);
    }

    #[test]
    fn null_is_missing_and_nan_a_mismatch() {
        let format = format("a:i32?, b:f64?, c:text?");
        let nulls = [Typed::Null, Typed::Null, Typed::Null];
        assert_eq!(read(&format, &nulls), [Ok(None), Ok(None), Ok(None)]);
        let row = [1.into(), Typed::Float(f64::NAN), Typed::text("")];
        assert_eq!(read(&format, &row), [Ok(Some(1.into())), Err(Why::Nan), Ok(Some("".into()))]);
    }

    #[test]
    fn rows_of_all_versions_are_read() {
        let old = format("k:u8, a:u16, key(k)");
        let (mut key, mut value) = (Vec::new(), Vec::new());
        old.encode(&[1.into(), 7.into()], None, &mut key, &mut value).expect("a row");
        let new = old.schema().with_column("b", Type::Int(32)).expect("a column");
        let layout = Layout::of_rows(&Arc::new(RowFormat::new(new)));
        // Their places differ between versions.
        assert_eq!(layout.to_string(), "k:row.u8, a:row.u16, b:row.i32?");
        let read: Vec<_> = layout.fields().iter().map(|field| field.read(&key, &value)).collect();
        assert_eq!(read, [Ok(Some(1.into())), Ok(Some(7.into())), Ok(None)]);
    }

    #[test]
    fn other_bytes_are_mismatches() {
        let layout = Layout::of_rows(&format("k:text, a:text, b:i8?, key(k)"));
        for (key, value) in [(&b"x"[..], &b""[..]), (b"", b"\x01"), (b"x", b"\x09\0\0\0")] {
            for field in layout.fields() {
                let read = field.read(key, value);
                assert!(read == Err(Why::NotRow) || field.name == "k", "{read:?}");
            }
        }
    }
}

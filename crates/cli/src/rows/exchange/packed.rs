//! Keys and values whose fields lie one behind the other, as cells.
//!
//! A [`Side`] is a key or a value. Fields that a table declares may leave bytes out, or overlap, or
//! read a part of a document: then the side is one cell with all its bytes.

use std::borrow::Cow;

use sapwood::aggregate::{
    Component, ComponentForm, Field, Form, Number, Order, Part, Place, Read, Value,
};
use sapwood::key::{Decoder, KeyDecode, KeyEncode};

use crate::rows::exchange::cell::{Cell, Column, Kind};
use crate::terminal::format::quoted;

/// A key or a value as cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Side {
    /// All its bytes.
    Whole,
    /// Fields one behind the other, without a gap.
    Packed(Vec<Slot>),
    /// Components of an ordered key, without one that is left out.
    Tuple(Vec<Component>),
}

/// A field of a packed side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slot {
    read: SlotRead,
    /// The bytes that stand for "missing".
    absent: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq)]
enum SlotRead {
    Number(Number),
    /// So many bytes, or all that are left.
    Bytes(Option<usize>),
    /// The same of UTF-8, filled up with zeros.
    Text(Option<usize>),
}

/// Bytes that are not of the form.
pub(crate) type Misfit = &'static str;

impl Side {
    /// The side of fields, with its columns; those of a side that is one cell have the name `whole`.
    pub(crate) fn of(fields: &[Field], place: Place, whole: &str) -> (Self, Vec<Column>) {
        let fields: Vec<&Field> = fields.iter().filter(|field| field.place == place).collect();
        packed(&fields)
            .or_else(|| tuple(&fields))
            .unwrap_or_else(|| (Side::Whole, vec![Column::new(whole, Kind::Bytes)]))
    }

    /// Appends the cells of a key or value.
    pub(crate) fn split<'a>(
        &self,
        bytes: &'a [u8],
        cells: &mut Vec<Cell<'a>>,
    ) -> Result<(), Misfit> {
        match self {
            Side::Whole => cells.push(Cell::bytes(bytes)),
            Side::Packed(slots) => {
                let mut rest = bytes;
                for slot in slots {
                    let (own, behind) = slot.take(rest)?;
                    cells.push(slot.cell(own)?);
                    rest = behind;
                }
                if !rest.is_empty() {
                    return Err("has bytes behind its fields");
                }
            }
            Side::Tuple(components) => {
                let mut decoder = Decoder::new(bytes);
                for component in components {
                    cells.push(component_cell(component, &mut decoder)?);
                }
                if !decoder.rest().is_empty() {
                    return Err("has bytes behind its components");
                }
            }
        }
        Ok(())
    }

    /// Appends the bytes of cells, which are as many as the side has columns.
    pub(crate) fn join(
        &self,
        columns: &[Column],
        cells: &[Cell<'_>],
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        match self {
            Side::Whole => match &cells[0] {
                Cell::Bytes(bytes) => out.extend_from_slice(bytes),
                Cell::Text(text) => out.extend_from_slice(text.as_bytes()),
                other => return Err(columns[0].refusal(other.name())),
            },
            Side::Packed(slots) => {
                for ((slot, column), cell) in slots.iter().zip(columns).zip(cells) {
                    slot.write(column, cell, out)?;
                }
            }
            Side::Tuple(components) => {
                for ((component, column), cell) in components.iter().zip(columns).zip(cells) {
                    write_component(component, column, cell, out)?;
                }
            }
        }
        Ok(())
    }
}

/// Fields without a gap, of which only the last may have any length.
fn packed(fields: &[&Field]) -> Option<(Side, Vec<Column>)> {
    let mut fields = fields.to_vec();
    fields.sort_by_key(|field| match field.part {
        Part::From(offset) => offset,
        _ => usize::MAX,
    });
    let mut end = Some(0);
    let mut slots = Vec::new();
    let mut columns = Vec::new();
    for field in fields {
        let (read, kind, length) = match field.read {
            Read::Number(number) => {
                (SlotRead::Number(number), kind_of(number), Some(number.bytes()))
            }
            Read::Bytes(length) => (SlotRead::Bytes(length), Kind::Bytes, length),
            Read::Text(length) => (SlotRead::Text(length), Kind::Text, length),
            _ => return None,
        };
        // Behind one of any length there is none.
        if field.part != Part::From(end?) {
            return None;
        }
        end = length.and_then(|length| end?.checked_add(length));
        let absent = match &field.absent {
            None => None,
            Some(value) => Some(absent_bytes(&read, value)?),
        };
        let optional = absent.is_some();
        columns.push(Column { name: field.name.clone(), kind, optional });
        slots.push(Slot { read, absent });
    }
    (!slots.is_empty()).then_some((Side::Packed(slots), columns))
}

fn absent_bytes(read: &SlotRead, value: &Value<'_>) -> Option<Vec<u8>> {
    let cell = match value {
        Value::Bool(_) => return None,
        Value::Int(number) => match read {
            SlotRead::Number(to) if to.form() == Form::Float => Cell::Float64(*number as f64),
            _ => Cell::Int(*number),
        },
        Value::Float(number) => Cell::Float64(number.get()),
        Value::Bytes(bytes) => Cell::Bytes(bytes.clone()),
    };
    let (cell, kind) = match (read, cell) {
        (SlotRead::Number(number), Cell::Float64(float)) if number.bytes() == 4 => {
            (Cell::Float32(float as f32), kind_of(*number))
        }
        (SlotRead::Number(number), cell) => (cell, kind_of(*number)),
        (SlotRead::Text(_), Cell::Bytes(bytes)) => {
            (Cell::Text(String::from_utf8(bytes.into_owned()).ok()?.into()), Kind::Text)
        }
        (_, cell) => (cell, Kind::Bytes),
    };
    let mut bytes = Vec::new();
    let slot = Slot { read: read.clone(), absent: None };
    slot.write(&Column::new("", kind), &cell, &mut bytes).ok()?;
    Some(bytes)
}

/// Components of one tuple, each of which is a field, in their order.
fn tuple(fields: &[&Field]) -> Option<(Side, Vec<Column>)> {
    let mut components: Option<&[Component]> = None;
    let mut columns = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let Read::Tuple(tuple) = &field.read else { return None };
        let all = *components.get_or_insert(tuple.components());
        // Fields do not say which component they read, but in their text.
        let in_order = sapwood::aggregate::Tuple::new(all, index).is_ok_and(|own| own == *tuple);
        if !in_order || field.part != Part::From(0) || field.absent.is_some() {
            return None;
        }
        let component = tuple.component();
        let kind = match component.form {
            ComponentForm::Number(number) => kind_of(number),
            ComponentForm::Bool => Kind::Bool,
            ComponentForm::Text => Kind::Text,
        };
        columns.push(Column { name: field.name.clone(), kind, optional: component.optional });
    }
    let components = components?;
    (components.len() == fields.len()).then(|| (Side::Tuple(components.to_vec()), columns))
}

fn kind_of(number: Number) -> Kind {
    match (number.form(), number.bytes()) {
        (Form::Float, 4) => Kind::Float32,
        (Form::Float, _) => Kind::Float64,
        (form, bytes) => Kind::Int { bits: bytes as u8 * 8, signed: form == Form::Signed },
    }
}

impl Slot {
    fn take<'a>(&self, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), Misfit> {
        let length = match &self.read {
            SlotRead::Number(number) => number.bytes(),
            SlotRead::Bytes(length) | SlotRead::Text(length) => length.unwrap_or(bytes.len()),
        };
        bytes.split_at_checked(length).ok_or("is shorter than its fields")
    }

    fn cell<'a>(&self, own: &'a [u8]) -> Result<Cell<'a>, Misfit> {
        if self.absent.as_deref() == Some(own) {
            return Ok(Cell::Null);
        }
        match &self.read {
            SlotRead::Number(number) => read_number(*number, own),
            SlotRead::Bytes(_) => Ok(Cell::bytes(own)),
            SlotRead::Text(length) => {
                let end = match length {
                    Some(_) => own.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1),
                    None => own.len(),
                };
                std::str::from_utf8(&own[..end]).map(Cell::text).map_err(|_| "is not UTF-8")
            }
        }
    }

    fn write(&self, column: &Column, cell: &Cell<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        let bytes: &[u8] = match (&self.read, cell, &self.absent) {
            (_, Cell::Null, Some(absent)) => absent,
            (SlotRead::Number(number), cell, _) => return write_number(*number, column, cell, out),
            (SlotRead::Bytes(_), Cell::Bytes(bytes), _) => bytes,
            (SlotRead::Text(_) | SlotRead::Bytes(_), Cell::Text(text), _) => text.as_bytes(),
            (_, other, _) => return Err(column.refusal(other.name())),
        };
        let length = match (&self.read, cell) {
            (_, Cell::Null) => None,
            (SlotRead::Bytes(Some(length)), _) if bytes.len() != *length => {
                let name = quoted(&column.name);
                return Err(format!("column {name} has {} bytes, not {length}", bytes.len()));
            }
            (SlotRead::Text(Some(length)), _) if bytes.len() > *length => {
                let name = quoted(&column.name);
                return Err(format!(
                    "column {name} has {} bytes, the most is {length}",
                    bytes.len()
                ));
            }
            (SlotRead::Text(length), _) => *length,
            _ => None,
        };
        out.extend_from_slice(bytes);
        if let Some(length) = length {
            out.extend(std::iter::repeat_n(0, length - bytes.len()));
        }
        Ok(())
    }
}

/// Reads the bits of a number, as they are: floats keep theirs whatever they mean.
fn read_number(number: Number, bytes: &[u8]) -> Result<Cell<'static>, Misfit> {
    let width = u32::from(number.bytes() as u8) * 8;
    let mut wide = [0; 16];
    match number.order() {
        Order::Little => wide[..bytes.len()].copy_from_slice(bytes),
        Order::Big | Order::Ordered => {
            wide[..bytes.len()].copy_from_slice(bytes);
            wide[..bytes.len()].reverse();
        }
    }
    let raw = u128::from_le_bytes(wide);
    let sign = 1_u128 << (width - 1);
    let is_ordered = number.order() == Order::Ordered;
    match number.form() {
        Form::Unsigned => {
            i128::try_from(raw).map(Cell::Int).map_err(|_| "has a number of 2^127 or more")
        }
        Form::Signed => {
            let raw = if is_ordered { raw ^ sign } else { raw };
            let unused = 128 - width;
            Ok(Cell::Int((raw << unused).cast_signed() >> unused))
        }
        Form::Float => {
            let raw = match is_ordered {
                true if raw & sign != 0 => raw ^ sign,
                true => !raw,
                false => raw,
            };
            Ok(match width {
                32 => Cell::Float32(f32::from_bits(raw as u32)),
                _ => Cell::Float64(f64::from_bits(raw as u64)),
            })
        }
    }
}

/// Appends what [`read_number`] reads.
fn write_number(
    number: Number,
    column: &Column,
    cell: &Cell<'_>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let width = u32::from(number.bytes() as u8) * 8;
    let sign = 1_u128 << (width - 1);
    let is_ordered = number.order() == Order::Ordered;
    let raw = match (column.kind, cell) {
        (Kind::Int { signed, .. }, Cell::Int(value)) if column.kind.holds(*value) => {
            let raw = value.cast_unsigned();
            if is_ordered && signed { raw ^ sign } else { raw }
        }
        (Kind::Int { .. }, Cell::Int(value)) => {
            return Err(column.refusal(&format!("is {value}")));
        }
        (Kind::Float32, Cell::Float32(value)) => {
            ordered_float(value.to_bits().into(), sign, is_ordered)
        }
        (Kind::Float64, Cell::Float64(value)) => {
            ordered_float(value.to_bits().into(), sign, is_ordered)
        }
        (Kind::Float64, Cell::Float32(value)) => {
            ordered_float(f64::from(*value).to_bits().into(), sign, is_ordered)
        }
        (_, other) => return Err(column.refusal(other.name())),
    };
    let mut bytes = raw.to_le_bytes();
    let own = &mut bytes[..number.bytes()];
    if number.order() != Order::Little {
        own.reverse();
    }
    out.extend_from_slice(own);
    Ok(())
}

fn ordered_float(bits: u128, sign: u128, is_ordered: bool) -> u128 {
    match is_ordered {
        true if bits & sign != 0 => !bits,
        true => bits | sign,
        false => bits,
    }
}

fn component_cell<'a>(
    component: &Component,
    decoder: &mut Decoder<'a>,
) -> Result<Cell<'a>, Misfit> {
    const NOT: Misfit = "has not the components that are declared";
    if component.optional {
        // The mark of an option is a byte of its own.
        match u8::decode_from(decoder).map_err(|_| NOT)? {
            1 => return Ok(Cell::Null),
            2 => {}
            _ => return Err(NOT),
        }
    }
    match component.form {
        ComponentForm::Number(number) => {
            let mut bytes = [0; 16];
            for byte in &mut bytes[..number.bytes()] {
                *byte = u8::decode_from(decoder).map_err(|_| NOT)?;
            }
            read_number(number, &bytes[..number.bytes()])
        }
        ComponentForm::Bool => bool::decode_from(decoder).map(Cell::Bool).map_err(|_| NOT),
        ComponentForm::Text => {
            let text = String::decode_from(decoder).map_err(|_| NOT)?;
            Ok(Cell::Text(Cow::Owned(text)))
        }
    }
}

fn write_component(
    component: &Component,
    column: &Column,
    cell: &Cell<'_>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    match (component.optional, cell) {
        (true, Cell::Null) => {
            out.push(1);
            return Ok(());
        }
        (true, _) => out.push(2),
        (false, _) => {}
    }
    match (component.form, cell) {
        (ComponentForm::Number(number), cell) => return write_number(number, column, cell, out),
        (ComponentForm::Bool, Cell::Bool(value)) => value.encode_to(out),
        (ComponentForm::Text, Cell::Text(text)) => text.encode_to(out),
        (_, other) => return Err(column.refusal(other.name())),
    }
    Ok(())
}

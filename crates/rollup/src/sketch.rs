//! Sketches: the states of metrics that are no cells.
//!
//! Some are those of [`sapwood_aggregate`]. The others are of Apache DataSketches: their bytes are those that Druid
//! and the libraries of other languages write and read.

mod apache;

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use sapwood_aggregate::{Accumulator, Function};

pub(crate) use apache::ThetaUnion;
use apache::{HllUnion, KllSketch};

use crate::error::{Error, Result};
use crate::schema::Utf;
use crate::value::Value;

/// Which sketch, and how large.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SketchKind {
    Own(Function),
    Hll { lg_k: u8, texts: Utf },
    Theta { lg_k: u8 },
    Kll { k: u16 },
}

/// A sketch that grows.
#[derive(Debug)]
pub(crate) enum Sketch {
    Own(Accumulator),
    Hll(HllUnion, Utf),
    Theta(ThetaUnion),
    Kll(KllSketch),
}

/// What a figure says of a sketch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reading {
    /// As a function of [`sapwood_aggregate`] has it.
    Own(Function),
    /// How many different values.
    Estimate { rounded: bool },
    /// How many values.
    Count,
    /// The number with this share of the others at or below it.
    Quantile(f64),
    /// Its bytes, in base64.
    Bytes,
}

impl SketchKind {
    /// A sketch of nothing.
    ///
    /// # Errors
    /// If there is no sketch of that size.
    pub(crate) fn sketch(&self) -> Result<Sketch> {
        Ok(match self {
            SketchKind::Own(function) => Sketch::Own(Accumulator::new(function.clone())?),
            SketchKind::Hll { lg_k, texts } => Sketch::Hll(HllUnion::new(*lg_k)?, *texts),
            SketchKind::Theta { lg_k } => Sketch::Theta(ThetaUnion::new(*lg_k)?),
            SketchKind::Kll { k } => Sketch::Kll(KllSketch::new(*k)?),
        })
    }

    /// Reads a sketch. Any bytes may be given.
    ///
    /// # Errors
    /// If they are none of this kind.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Result<Sketch> {
        Ok(match self {
            SketchKind::Own(function) => Sketch::Own(Accumulator::decode(function.clone(), bytes)?),
            SketchKind::Hll { lg_k, texts } => Sketch::Hll(HllUnion::decode(*lg_k, bytes)?, *texts),
            SketchKind::Theta { lg_k } => Sketch::Theta(ThetaUnion::decode(*lg_k, bytes)?),
            SketchKind::Kll { k } => Sketch::Kll(KllSketch::decode(*k, bytes)?),
        })
    }

    /// Reads a sketch that a row brings: its bytes in base64.
    ///
    /// # Errors
    /// If it is none of this kind.
    pub(crate) fn decode_text(&self, text: &str) -> Result<Sketch> {
        let bytes = BASE64.decode(text.trim());
        let bytes = bytes.map_err(|error| Error::Input(format!("it is no base64: {error}")))?;
        self.decode(&bytes)
    }

    /// What a message calls it.
    pub(crate) fn name(&self) -> String {
        match self {
            SketchKind::Own(function) => function.to_string(),
            SketchKind::Hll { .. } => "an HLL sketch".to_owned(),
            SketchKind::Theta { .. } => "a theta sketch".to_owned(),
            SketchKind::Kll { .. } => "a KLL sketch".to_owned(),
        }
    }

    /// Whether it is a sketch of numbers, which takes no other values.
    pub(crate) fn takes_numbers(&self) -> bool {
        match self {
            SketchKind::Own(Function::Distinct { .. }) => false,
            SketchKind::Hll { .. } | SketchKind::Theta { .. } => false,
            SketchKind::Own(_) | SketchKind::Kll { .. } => true,
        }
    }

    /// What a scan shows of a sketch: a figure of ours, and the bytes of what other programs read.
    pub(crate) fn shown(&self) -> Reading {
        match self {
            SketchKind::Own(function) => Reading::Own(function.clone()),
            _ => Reading::Bytes,
        }
    }

    /// Adds a value to a sketch, which is made for the first one. Of a list each value counts; a sketch of numbers
    /// takes those of texts, and nothing of lists.
    ///
    /// # Errors
    /// If a counter passes its range.
    pub(crate) fn push(&self, sketch: &mut Option<Sketch>, value: &Value<'_>) -> Result<()> {
        let value = match (self.takes_numbers(), value) {
            (true, Value::List(_)) => return Ok(()),
            (false, Value::List(values)) => {
                return values.iter().try_for_each(|value| self.push(sketch, value));
            }
            (true, Value::Text(_)) => match value.to_double() {
                Ok(Some(number)) => Cow::Owned(Value::Double(number)),
                _ => return Ok(()),
            },
            _ => Cow::Borrowed(value),
        };
        if value.is_null() {
            return Ok(());
        }
        let sketch = match sketch {
            Some(sketch) => sketch,
            none => none.insert(self.sketch()?),
        };
        sketch.push(&value)
    }
}

impl Sketch {
    fn push(&mut self, value: &Value<'_>) -> Result<()> {
        match self {
            Sketch::Own(own) => {
                if let Some(value) = value.to_aggregate() {
                    own.push(&value)?;
                }
            }
            Sketch::Hll(union, texts) => union.push(value, *texts),
            Sketch::Theta(union) => union.push(value),
            Sketch::Kll(sketch) => sketch.push(value)?,
        }
        Ok(())
    }

    /// Merges another of the same metric.
    ///
    /// # Errors
    /// If a counter passes its range.
    pub(crate) fn merge(&mut self, other: Sketch) -> Result<()> {
        match (self, other) {
            (Sketch::Own(own), Sketch::Own(other)) => Ok(own.merge(other)?),
            (sketch, other) => sketch.merge_from(&other),
        }
    }

    /// As [`merge`](Self::merge), leaving the other as it is.
    ///
    /// # Errors
    /// If a counter passes its range.
    pub(crate) fn merge_from(&mut self, other: &Sketch) -> Result<()> {
        match (self, other) {
            (Sketch::Own(own), Sketch::Own(other)) => own.merge(other.clone())?,
            (Sketch::Hll(union, _), Sketch::Hll(other, _)) => union.merge(other),
            (Sketch::Theta(union), Sketch::Theta(other)) => union.merge(other),
            (Sketch::Kll(sketch), Sketch::Kll(other)) => sketch.merge(other)?,
            _ => unreachable!("the sketches of a metric are of one kind"),
        }
        Ok(())
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Sketch::Own(own) => own.encode(out),
            Sketch::Hll(union, _) => out.extend(union.bytes()),
            Sketch::Theta(union) => out.extend(union.bytes()),
            Sketch::Kll(sketch) => out.extend(sketch.bytes()),
        }
    }

    /// A figure of it.
    ///
    /// # Errors
    /// If it leaves its type.
    pub(crate) fn value(&self, reading: &Reading) -> Result<Value<'static>> {
        Ok(match (self, reading) {
            (_, Reading::Bytes) => {
                let mut bytes = Vec::new();
                self.encode(&mut bytes);
                Value::Text(BASE64.encode(bytes).into())
            }
            (Sketch::Own(own), Reading::Own(function)) => of_cell(&own.cell_as(function)?),
            (Sketch::Hll(union, _), reading) => reading.of_estimate(union.estimate()),
            (Sketch::Theta(union), reading) => reading.of_estimate(union.estimate()),
            (Sketch::Kll(sketch), Reading::Quantile(share)) => {
                sketch.quantile(*share).map_or(Value::Null, Value::Double)
            }
            (Sketch::Kll(sketch), _) => {
                Value::Long(i64::try_from(sketch.count()).unwrap_or(i64::MAX))
            }
            (Sketch::Own(_), _) => unreachable!("a figure reads sketches of its kind"),
        })
    }
}

impl Reading {
    /// The figure of a sketch that has seen nothing.
    pub(crate) fn of_nothing(&self) -> Value<'static> {
        match self {
            Reading::Own(Function::Distinct { .. }) | Reading::Count => Value::Long(0),
            Reading::Estimate { .. } => self.of_estimate(0.0),
            Reading::Own(_) | Reading::Quantile(_) | Reading::Bytes => Value::Null,
        }
    }

    pub(crate) fn of_estimate(&self, estimate: f64) -> Value<'static> {
        match self {
            Reading::Estimate { rounded: true } => Value::Long(estimate.round() as i64),
            _ => Value::Double(estimate),
        }
    }
}

/// A figure of a sketch as a value.
fn of_cell(cell: &sapwood_aggregate::Cell) -> Value<'static> {
    match cell.value() {
        Some(sapwood_aggregate::Value::Int(number)) => match i64::try_from(*number) {
            Ok(number) => Value::Long(number),
            Err(_) => Value::Double(*number as f64),
        },
        Some(sapwood_aggregate::Value::Float(number)) if number.get().is_finite() => {
            Value::Double(number.get())
        }
        _ => Value::Null,
    }
}

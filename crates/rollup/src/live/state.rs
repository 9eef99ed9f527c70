//! States of metrics: the values of facts.
//!
//! | part | bytes |
//! |---|---|
//! | which cells have a value | a bit a metric, 8 to a byte, the least first |
//! | cell of a count, sum, least or greatest | 8, little endian |
//! | cell of a first or last | 8 of the time, 8 of the value |
//! | each sketch, in the order of the metrics | 4 of its length, then its state; length 0 of nothing |
//!
//! A row, a batch of rows with one key, and a fact all have such a state, and merge by one rule.

use sapwood_aggregate::Function;

use crate::schema::{Metric, MetricKind, Number};
use crate::sketch::{Sketch, SketchKind};

/// Where the states of metrics lie in the value of a fact.
#[derive(Debug, Clone)]
pub(crate) struct StateLayout {
    pub(crate) slots: Vec<Slot>,
    /// Bytes before the sketches.
    pub(crate) fixed_bytes: usize,
    /// Which the sketches are, in their order.
    pub(crate) sketches: Vec<SketchKind>,
}

/// Where the state of a metric lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) place: Place,
    bit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A cell that begins at this byte.
    Cell(CellKind, usize),
    /// The sketch of this number.
    Sketch(usize),
}

/// How two cells become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellKind {
    SumLong,
    MinLong,
    MaxLong,
    SumDouble,
    MinDouble,
    MaxDouble,
    FirstLong,
    LastLong,
    FirstDouble,
    LastDouble,
}

impl CellKind {
    /// Whether its values are floating point numbers.
    pub(crate) fn is_double(self) -> bool {
        match self {
            CellKind::SumLong
            | CellKind::MinLong
            | CellKind::MaxLong
            | CellKind::FirstLong
            | CellKind::LastLong => false,
            CellKind::SumDouble
            | CellKind::MinDouble
            | CellKind::MaxDouble
            | CellKind::FirstDouble
            | CellKind::LastDouble => true,
        }
    }
}

/// A figure would leave the range of its type. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overflow {
    /// Which of the metrics.
    pub(crate) metric: usize,
}

/// A rule to merge cells, so that loops over many are made for each.
pub(crate) trait Cell {
    const BYTES: usize;

    /// Merges a cell into another; false if the figure leaves its type, and then nothing has changed.
    fn merge(into: &mut [u8], from: &[u8]) -> bool;
}

pub(crate) fn long(cell: &[u8]) -> i64 {
    i64::from_le_bytes(cell[..8].try_into().expect("a cell has 8 bytes"))
}

pub(crate) fn double(cell: &[u8]) -> f64 {
    f64::from_le_bytes(cell[..8].try_into().expect("a cell has 8 bytes"))
}

macro_rules! cells {
    ($($name:ident $bytes:literal |$into:ident, $from:ident| $merge:expr;)*) => {
        $(
            pub(crate) struct $name;

            impl Cell for $name {
                const BYTES: usize = $bytes;

                #[inline(always)]
                fn merge($into: &mut [u8], $from: &[u8]) -> bool {
                    $merge
                }
            }
        )*

        impl CellKind {
            pub(crate) fn bytes(self) -> usize {
                match self {
                    $(CellKind::$name => $name::BYTES,)*
                }
            }

            #[inline]
            pub(crate) fn merge(self, into: &mut [u8], from: &[u8]) -> bool {
                match self {
                    $(CellKind::$name => $name::merge(into, from),)*
                }
            }
        }

        /// Runs an expression with the rule of a kind of cell.
        macro_rules! with_cell {
            ($kind:expr, $cell:ident => $run:expr) => {
                match $kind {
                    $($crate::live::state::CellKind::$name => {
                        type $cell = $crate::live::state::$name;
                        $run
                    })*
                }
            };
        }
        pub(crate) use with_cell;
    };
}

cells! {
    SumLong 8 |into, from| match long(into).checked_add(long(from)) {
        Some(sum) => set(into, sum.to_le_bytes()),
        None => false,
    };
    MinLong 8 |into, from| set(into, long(into).min(long(from)).to_le_bytes());
    MaxLong 8 |into, from| set(into, long(into).max(long(from)).to_le_bytes());
    SumDouble 8 |into, from| {
        let sum = double(into) + double(from);
        sum.is_finite() && set(into, sum.to_le_bytes())
    };
    MinDouble 8 |into, from| set(into, double(into).min(double(from)).to_le_bytes());
    MaxDouble 8 |into, from| set(into, double(into).max(double(from)).to_le_bytes());
    FirstLong 16 |into, from| {
        let (old, new) = ((long(into), long(&into[8..])), (long(from), long(&from[8..])));
        if new < old { into[..16].copy_from_slice(&from[..16]) }
        true
    };
    LastLong 16 |into, from| {
        let (old, new) = ((long(into), long(&into[8..])), (long(from), long(&from[8..])));
        if new > old { into[..16].copy_from_slice(&from[..16]) }
        true
    };
    FirstDouble 16 |into, from| {
        let (old, new) = ((long(into), double(&into[8..])), (long(from), double(&from[8..])));
        if new < old { into[..16].copy_from_slice(&from[..16]) }
        true
    };
    LastDouble 16 |into, from| {
        let (old, new) = ((long(into), double(&into[8..])), (long(from), double(&from[8..])));
        if new > old { into[..16].copy_from_slice(&from[..16]) }
        true
    };
}

#[inline(always)]
fn set(into: &mut [u8], bytes: [u8; 8]) -> bool {
    into[..8].copy_from_slice(&bytes);
    true
}

/// The sketch of a metric, if it has one.
pub(crate) fn sketch_kind(metric: &Metric) -> Option<SketchKind> {
    let input = || metric.field.as_deref().unwrap_or_default().into();
    let own = match metric.kind {
        MetricKind::Distinct { precision } => Function::Distinct { input: input(), precision },
        MetricKind::Quantiles { accuracy } => {
            Function::Quantile { input: input(), share: 0.5, accuracy }
        }
        MetricKind::Variance => Function::Variance(input(), sapwood_aggregate::Spread::Population),
        MetricKind::Hll { lg_k, texts, .. } => return Some(SketchKind::Hll { lg_k, texts }),
        MetricKind::Theta { lg_k, .. } => return Some(SketchKind::Theta { lg_k }),
        MetricKind::Kll { k, .. } => return Some(SketchKind::Kll { k }),
        _ => return None,
    };
    Some(SketchKind::Own(own))
}

impl StateLayout {
    pub(crate) fn new(metrics: &[Metric]) -> StateLayout {
        let mut layout = StateLayout {
            slots: Vec::with_capacity(metrics.len()),
            fixed_bytes: metrics.len().div_ceil(8),
            sketches: Vec::new(),
        };
        for (bit, metric) in metrics.iter().enumerate() {
            let kind = match metric.kind {
                MetricKind::Count | MetricKind::Sum(Number::Long) => CellKind::SumLong,
                MetricKind::Sum(Number::Double) => CellKind::SumDouble,
                MetricKind::Min(Number::Long) => CellKind::MinLong,
                MetricKind::Min(Number::Double) => CellKind::MinDouble,
                MetricKind::Max(Number::Long) => CellKind::MaxLong,
                MetricKind::Max(Number::Double) => CellKind::MaxDouble,
                MetricKind::First(Number::Long) => CellKind::FirstLong,
                MetricKind::First(Number::Double) => CellKind::FirstDouble,
                MetricKind::Last(Number::Long) => CellKind::LastLong,
                MetricKind::Last(Number::Double) => CellKind::LastDouble,
                MetricKind::Distinct { .. }
                | MetricKind::Quantiles { .. }
                | MetricKind::Variance
                | MetricKind::Hll { .. }
                | MetricKind::Theta { .. }
                | MetricKind::Kll { .. } => {
                    let kind = sketch_kind(metric).expect("it is a sketch");
                    layout.slots.push(Slot { place: Place::Sketch(layout.sketches.len()), bit });
                    layout.sketches.push(kind);
                    continue;
                }
            };
            layout.slots.push(Slot { place: Place::Cell(kind, layout.fixed_bytes), bit });
            layout.fixed_bytes += kind.bytes();
        }
        layout
    }

    /// The cell of a metric, if it has a value.
    #[inline]
    pub(crate) fn cell<'v>(&self, metric: usize, state: &'v [u8]) -> Option<&'v [u8]> {
        let slot = &self.slots[metric];
        let Place::Cell(kind, at) = slot.place else { return None };
        slot.is_set(state).then(|| &state[at..at + kind.bytes()])
    }

    /// The bytes of each sketch, in their order; empty of nothing.
    pub(crate) fn sketch_bytes<'v>(&self, state: &'v [u8]) -> impl Iterator<Item = &'v [u8]> {
        let mut rest = &state[self.fixed_bytes..];
        (0..self.sketches.len()).map(move |_| {
            let (len, behind) = rest.split_at(4);
            let len = u32::from_le_bytes(len.try_into().expect("4 bytes were taken")) as usize;
            let (bytes, behind) = behind.split_at(len);
            rest = behind;
            bytes
        })
    }

    /// Merges the cells of a state into those of another.
    ///
    /// # Errors
    /// Which metric would leave its type; the cells may be changed then.
    pub(crate) fn merge_cells(
        &self,
        into: &mut [u8],
        from: &[u8],
    ) -> std::result::Result<(), Overflow> {
        for (metric, slot) in self.slots.iter().enumerate() {
            let Place::Cell(kind, at) = slot.place else { continue };
            if !slot.is_set(from) {
                continue;
            }
            let (bytes, from) = (kind.bytes(), &from[at..]);
            if slot.is_set(into) {
                if !kind.merge(&mut into[at..at + bytes], &from[..bytes]) {
                    return Err(Overflow { metric });
                }
            } else {
                slot.set(into);
                into[at..at + bytes].copy_from_slice(&from[..bytes]);
            }
        }
        Ok(())
    }

    /// The state of two: cells, then sketches.
    ///
    /// # Errors
    /// Which metric would leave its type.
    pub(crate) fn merged(
        &self,
        left: &[u8],
        right: &[u8],
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), Overflow> {
        out.clear();
        out.extend_from_slice(&left[..self.fixed_bytes]);
        self.merge_cells(out, right)?;
        let pairs = self.sketch_bytes(left).zip(self.sketch_bytes(right));
        for (number, ((left, right), kind)) in pairs.zip(&self.sketches).enumerate() {
            match (left, right) {
                ([], one) | (one, []) => push_sketch(out, |out| out.extend_from_slice(one)),
                (left, right) => {
                    let mut merged = sound(kind, left);
                    // Only where rows bring sketches that lie about how many values they have.
                    if merged.merge(sound(kind, right)).is_err() {
                        let is_it = |slot: &Slot| slot.place == Place::Sketch(number);
                        let metric = self.slots.iter().position(is_it);
                        return Err(Overflow { metric: metric.expect("it is that of a metric") });
                    }
                    push_sketch(out, |out| merged.encode(out));
                }
            }
        }
        Ok(())
    }
}

/// Reads a sketch that was looked at before, or that this process wrote.
fn sound(kind: &SketchKind, bytes: &[u8]) -> Sketch {
    kind.decode(bytes).expect("a fact has what was written into it")
}

/// Appends a sketch behind its length.
pub(crate) fn push_sketch(out: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    encode(out);
    let len = u32::try_from(out.len() - start - 4).expect("a sketch is below 4 GiB");
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

impl Slot {
    #[inline]
    pub(crate) fn is_set(&self, state: &[u8]) -> bool {
        state[self.bit / 8] >> (self.bit % 8) & 1 == 1
    }

    #[inline]
    pub(crate) fn set(&self, state: &mut [u8]) {
        state[self.bit / 8] |= 1 << (self.bit % 8);
    }
}

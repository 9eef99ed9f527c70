//! Facts as a table in memory: what a segment is made of.

use crate::live::dictionary::{Entries, NULL};
use crate::live::key::Parts;
use crate::live::state::StateLayout;
use crate::schema::{Dimension, DimensionKind};

/// Facts in any order.
#[derive(Debug)]
pub(crate) struct FactTable {
    pub(super) times: Vec<i64>,
    pub(super) dimensions: Vec<TableDimension>,
    /// The states of the metrics, behind each other.
    states: Vec<u8>,
    state_ends: Vec<usize>,
}

/// The values of a dimension.
#[derive(Debug)]
pub(super) struct TableDimension {
    pub(super) dimension: Dimension,
    pub(super) values: TableValues,
}

#[derive(Debug)]
pub(super) enum TableValues {
    /// Numbers of a dictionary, which is kept elsewhere.
    Ids(Vec<u32>),
    Longs(Vec<Option<i64>>),
    Doubles(Vec<Option<f64>>),
}

impl TableValues {
    /// Appends a value in another form: the bits of a number, or the number of a text.
    fn push_null(&mut self) {
        match self {
            TableValues::Ids(ids) => ids.push(NULL),
            TableValues::Longs(values) => values.push(None),
            TableValues::Doubles(values) => values.push(None),
        }
    }
}

impl FactTable {
    pub(crate) fn new(dimensions: impl Iterator<Item = Dimension>) -> FactTable {
        let dimensions = dimensions.map(|dimension| {
            let values = match dimension.kind {
                DimensionKind::Text => TableValues::Ids(Vec::new()),
                DimensionKind::Long => TableValues::Longs(Vec::new()),
                DimensionKind::Double => TableValues::Doubles(Vec::new()),
            };
            TableDimension { dimension, values }
        });
        FactTable {
            times: Vec::new(),
            dimensions: dimensions.collect(),
            states: Vec::new(),
            state_ends: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// About the bytes that it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.states.len() + self.len() * (16 + 16 * self.dimensions.len())
    }

    pub(super) fn state(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.state_ends[row - 1] };
        &self.states[start..self.state_ends[row]]
    }

    /// Appends a live fact. Its numbers of texts are those of the live dictionaries.
    pub(crate) fn push_live(&mut self, key: &[u8], numbered: Numbered, state: &[u8]) {
        let (time, mut parts) = Parts::new(key);
        self.times.push(time);
        if numbered == Numbered::Yes {
            let _ = parts.long();
        }
        for dimension in &mut self.dimensions {
            match &mut dimension.values {
                TableValues::Ids(ids) => ids.push(parts.id()),
                TableValues::Longs(values) => values.push(parts.long()),
                TableValues::Doubles(values) => values.push(parts.double()),
            }
        }
        self.push_state(state);
    }

    pub(super) fn push_state(&mut self, state: &[u8]) {
        self.states.extend_from_slice(state);
        self.state_ends.push(self.states.len());
    }

    /// Makes the values that dimensions lack null, after rows of a segment that does not have them.
    pub(super) fn fill(&mut self) {
        let rows = self.times.len();
        for TableDimension { values, .. } in &mut self.dimensions {
            let len = |values: &TableValues| match values {
                TableValues::Ids(ids) => ids.len(),
                TableValues::Longs(values) => values.len(),
                TableValues::Doubles(values) => values.len(),
            };
            while len(values) < rows {
                values.push_null();
            }
        }
    }

    /// Brings the rows into the order of times and values, where numbers of texts have that of the texts. With
    /// roll-up, rows of the same are one then, unless a figure would leave its type.
    pub(super) fn sorted(self, layout: &StateLayout, folding: Folding) -> FactTable {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_by(|&left, &right| self.compare(left as usize, right as usize));
        let dimensions = self.dimensions.iter().map(|known| known.dimension.clone());
        let mut table = FactTable::new(dimensions);
        let mut state = Vec::new();
        let mut rows = order.into_iter().map(|row| row as usize).peekable();
        let mut merged = Vec::new();
        while let Some(row) = rows.next() {
            table.times.push(self.times[row]);
            for (into, from) in table.dimensions.iter_mut().zip(&self.dimensions) {
                match (&mut into.values, &from.values) {
                    (TableValues::Ids(into), TableValues::Ids(from)) => into.push(from[row]),
                    (TableValues::Longs(into), TableValues::Longs(from)) => into.push(from[row]),
                    (TableValues::Doubles(into), TableValues::Doubles(from)) => {
                        into.push(from[row])
                    }
                    _ => unreachable!("both have the same dimensions"),
                }
            }
            state.clear();
            state.extend_from_slice(self.state(row));
            while folding == Folding::Yes
                && let Some(&next) = rows.peek()
                && self.compare(row, next).is_eq()
                && layout.merged(&state, self.state(next), &mut merged).is_ok()
            {
                std::mem::swap(&mut state, &mut merged);
                rows.next();
            }
            table.push_state(&state);
        }
        table
    }

    fn compare(&self, left: usize, right: usize) -> std::cmp::Ordering {
        let by_value = |dimension: &TableDimension| match &dimension.values {
            TableValues::Ids(ids) => ids[left].cmp(&ids[right]),
            TableValues::Longs(values) => values[left].cmp(&values[right]),
            TableValues::Doubles(values) => match (values[left], values[right]) {
                (Some(left), Some(right)) => left.total_cmp(&right),
                (left, right) => left.is_some().cmp(&right.is_some()),
            },
        };
        let by_values = self.dimensions.iter().map(by_value).find(|order| order.is_ne());
        self.times[left]
            .cmp(&self.times[right])
            .then_with(|| by_values.unwrap_or(std::cmp::Ordering::Equal))
    }

    /// The dimension of a name, and its values.
    pub(super) fn values_mut(&mut self, name: &str) -> Option<&mut TableValues> {
        let found = self.dimensions.iter_mut().find(|known| known.dimension.name == name);
        found.map(|found| &mut found.values)
    }
}

/// Whether keys of facts have a row number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbered {
    Yes,
    No,
}

/// Whether rows of the same time and dimensions become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folding {
    Yes,
    No,
}

/// The dictionaries of the dimensions of a table, by dimension; those of numbers have none.
pub(crate) type Dictionaries<'d> = [Option<&'d Entries>];

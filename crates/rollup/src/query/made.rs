//! Virtual columns: those that an expression makes of others, fact by fact.

use super::VirtualColumn;
use super::batch::{FactBatch, FactColumn, Texts};
use super::columns::Source;
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::live::dictionary::{Dictionary, number_of};
use crate::live::state::StateLayout;
use crate::schema::DimensionKind;
use crate::value::{Value, canonical};

/// A virtual column that a query reads.
#[derive(Debug)]
pub(crate) struct Made<'r> {
    name: &'r str,
    expression: &'r Expression,
    kind: DimensionKind,
    /// Among the virtual columns.
    number: usize,
    /// Among the columns that are read.
    at: usize,
    /// The columns that it is made of.
    inputs: Vec<(String, usize, Source)>,
    /// The texts that it has made.
    dictionary: Dictionary,
}

impl<'r> Made<'r> {
    pub(crate) fn new(
        column: &'r VirtualColumn,
        number: usize,
        at: usize,
        inputs: Vec<(String, usize, Source)>,
    ) -> Made<'r> {
        let VirtualColumn { name, expression, kind } = column;
        let dictionary = Dictionary::default();
        Made { name, expression, kind: *kind, number, at, inputs, dictionary }
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The values of a batch whose other columns, and virtual ones before this, are read.
    ///
    /// # Errors
    /// [`Error::Query`] if the expression has no value for a fact.
    pub(crate) fn values(
        &self,
        batch: &FactBatch,
        texts: &Texts<'_>,
        layout: &StateLayout,
    ) -> Result<Vec<Value<'static>>> {
        let value = |row: usize| {
            let input = |name: &str| {
                let found = self.inputs.iter().find(|(known, ..)| known == name);
                found.map_or(Value::Null, |(_, at, source)| {
                    texts.value_of(batch, *at, row, layout, *source)
                })
            };
            let value = self.expression.evaluate(&input).map(Value::into_owned);
            value.map_err(|why| Error::Query(format!("`{}`: {why}", self.name)))
        };
        (0..batch.len()).map(value).collect()
    }

    /// Puts values into the column. No texts of the query may be held: new ones are added. What is no number of the
    /// column's type is null.
    ///
    /// # Errors
    /// If there are too many different texts.
    pub(crate) fn fill(&self, batch: &mut FactBatch, values: &[Value<'static>]) -> Result<()> {
        match &mut batch.columns[self.at] {
            FactColumn::Ids(ids) => {
                ids.clear();
                let mut intern = |bytes: &[u8]| self.dictionary.intern(bytes);
                for value in values {
                    ids.push(number_of(value, &mut intern)?);
                }
            }
            FactColumn::Longs { values: longs, present } => {
                let all = values.iter().map(|value| value.to_long().ok().flatten());
                present.clear();
                longs.clear();
                for value in all {
                    longs.push(value.unwrap_or_default());
                    present.push(value.is_some());
                }
            }
            FactColumn::Doubles { values: doubles, present } => {
                let all = values.iter().map(|value| value.to_double().ok().flatten());
                present.clear();
                doubles.clear();
                for value in all {
                    doubles.push(canonical(value.unwrap_or_default()));
                    present.push(value.is_some());
                }
            }
            _ => unreachable!("a virtual column is of {:?}", self.kind),
        }
        Ok(())
    }
}

//! Changes of the rows of a table.

use sapwood_sql::{Batch, Change, ChangeError, Changed, Error, SourceColumn, SourceResult, Vector};

use super::table::{Form, TableSource};
use crate::schema::{Type, Value};
use crate::{Compute, Computed, Rows};

impl Change for TableSource {
    fn insert(&self, rows: &mut dyn Iterator<Item = Vec<Value<'static>>>) -> SourceResult<u64> {
        let mut count = 0;
        let typed = match &self.form {
            Form::Rows(_) => {
                Some(Rows::new(self.table.clone()).map_err(|error| error.to_string())?)
            }
            Form::Bytes => None,
        };
        for row in rows {
            let is_new = match (&typed, &row[..]) {
                (Some(rows), row) => rows.insert(row),
                (None, [Value::Bytes(key), Value::Bytes(value)]) => {
                    self.table.put_if_absent(key, value)
                }
                (None, row) => unreachable!("{row:?} are no bytes"),
            };
            match is_new {
                Ok(true) => count += 1,
                Ok(false) => {
                    return Err(format!(
                        "the key ({}) is there already; {count} rows are inserted",
                        self.shown_key(&row)
                    ));
                }
                Err(error) => return Err(format!("{error}; {count} rows are inserted")),
            }
        }
        Ok(count)
    }

    fn insert_batch(&self, batch: &Batch, columns: &[SourceColumn]) -> SourceResult<u64> {
        let rows = match &self.form {
            Form::Rows(_) => Rows::new(self.table.clone()).map_err(|error| error.to_string())?,
            Form::Bytes => {
                let value = |vector: &Vector, row| match vector.value(row, &Type::Bytes) {
                    Ok(value) => value.into_owned(),
                    Err(error) => unreachable!("bytes are bytes: {error}"),
                };
                let mut rows = (0..batch.len)
                    .map(|row| batch.columns.iter().map(|vector| value(vector, row)).collect());
                return self.insert(&mut rows);
            }
        };
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for row in 0..batch.len {
            let cell = |column: usize| batch.columns[column].cell(row, &columns[column].kind);
            match rows.insert_cells(&cell, &mut key, &mut value) {
                Ok(true) => {}
                Ok(false) => {
                    let values = batch.columns.iter().zip(columns);
                    let values = values.map(|(vector, column)| vector.value(row, &column.kind));
                    let values = values.collect::<Result<Vec<_>, _>>();
                    let shown = values.map(|values| self.shown_key(&values)).unwrap_or_default();
                    return Err(format!("the key ({shown}) is there already"));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(batch.len as u64)
    }

    fn update(
        &self,
        id: &[u8],
        change: &mut dyn FnMut(&[Value<'_>]) -> Changed,
    ) -> Result<bool, ChangeError> {
        self.decide(id, &mut |row| Ok(change(row)?.map(New::Row)))
    }

    fn remove(
        &self,
        id: &[u8],
        wanted: &mut dyn FnMut(&[Value<'_>]) -> Result<bool, Error>,
    ) -> Result<bool, ChangeError> {
        self.decide(id, &mut |row| Ok(wanted(row)?.then_some(New::Nothing)))
    }
}

/// What takes the place of a row.
enum New {
    Row(Vec<Value<'static>>),
    Nothing,
}

impl TableSource {
    /// Changes the row of a key as `decide` says, atomically: false if it stays, or is not there.
    fn decide(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(&[Value<'_>]) -> Result<Option<New>, Error>,
    ) -> Result<bool, ChangeError> {
        let mut refused = None;
        let computed = self.table.compute(key, |value| {
            refused = None;
            let Some(value) = value else { return Compute::Keep };
            match self.new_value(key, value, decide) {
                Ok(Some(Some(value))) => Compute::Replace(value),
                Ok(Some(None)) => Compute::Remove,
                Ok(None) => Compute::Keep,
                Err(error) => {
                    refused = Some(error);
                    Compute::Keep
                }
            }
        });
        match (refused, computed) {
            (Some(refused), _) => Err(refused),
            (None, Ok(computed)) => Ok(matches!(computed, Computed::Replaced | Computed::Removed)),
            (None, Err(error)) => Err(ChangeError::Source(error.to_string())),
        }
    }

    /// The value that takes the place of another: none if that stays, and none within if it is removed.
    fn new_value(
        &self,
        key: &[u8],
        value: &[u8],
        decide: &mut dyn FnMut(&[Value<'_>]) -> Result<Option<New>, Error>,
    ) -> Result<Option<Option<Vec<u8>>>, ChangeError> {
        let source = |error: crate::schema::Error| ChangeError::Source(error.to_string());
        let row = match &self.form {
            Form::Rows(format) => format.decode(key, value).map_err(source)?,
            Form::Bytes => vec![Value::from(key), Value::from(value)],
        };
        let new = match decide(&row).map_err(ChangeError::Statement)? {
            None => return Ok(None),
            Some(New::Nothing) => return Ok(Some(None)),
            Some(New::Row(new)) => new,
        };
        match (&self.form, &new[..]) {
            (Form::Rows(format), new) => {
                let (mut new_key, mut new_value) = (Vec::new(), Vec::new());
                let number = format.number_of(key);
                format.encode(new, number, &mut new_key, &mut new_value).map_err(source)?;
                debug_assert_eq!(new_key, key, "a statement does not change keys");
                Ok(Some(Some(new_value)))
            }
            (Form::Bytes, [_, Value::Bytes(value)]) => Ok(Some(Some(value.to_vec()))),
            (Form::Bytes, new) => unreachable!("{new:?} are no bytes"),
        }
    }

    /// The key of a row, for people.
    fn shown_key(&self, row: &[Value<'_>]) -> String {
        let columns = match &self.form {
            Form::Rows(format) => format.schema().key_columns(),
            Form::Bytes => &[0],
        };
        let values = columns.iter().map(|&column| row[column].to_string());
        values.collect::<Vec<_>>().join(", ")
    }
}

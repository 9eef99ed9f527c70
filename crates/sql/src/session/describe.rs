//! `describe`, `show tables` and `summarize`.

use sapwood_schema::{Type, Value};
use sqlparser::ast::{ObjectName, Query};

use super::{Session, columns_of};
use crate::answer::Answer;
use crate::error::{Error, Result};
use crate::execute::{Counts, execute};
use crate::kind::Kind;
use crate::plan::table_name;
use crate::source::{Catalog, Source};

impl<C: Catalog + ?Sized> Session<'_, C> {
    pub(super) fn describe(&self, name: &ObjectName) -> Result<Answer> {
        let source = self.open(&table_name(name)?)?;
        let key = source.key_columns();
        let rows = source.columns().iter().enumerate().map(|(at, column)| {
            vec![
                Value::from(column.name.as_str()),
                Value::from(column.kind.to_string()),
                Value::from(column.nullable),
                Value::from(key.iter().position(|&column| column == at).map(|at| at as u64 + 1)),
            ]
        });
        let columns = [
            ("column", Type::Text),
            ("type", Type::Text),
            ("nullable", Type::Bool),
            ("key", Type::Int(64)),
        ];
        Ok(Answer::of_values(&columns, &rows.collect::<Vec<_>>()))
    }

    pub(super) fn show_tables(&self) -> Result<Answer> {
        let tables = self.catalog.tables().map_err(Error::source)?;
        let rows = tables.iter().map(|table| {
            vec![
                Value::from(table.name.as_str()),
                Value::from(table.kind.as_str()),
                Value::from(table.rows),
                Value::from(table.columns.as_str()),
            ]
        });
        let columns = [
            ("table", Type::Text),
            ("kind", Type::Text),
            ("rows", Type::UInt(64)),
            ("columns", Type::Text),
        ];
        Ok(Answer::of_values(&columns, &rows.collect::<Vec<_>>()))
    }

    /// Figures of each column: what it has, how much of it, and between which values.
    pub(super) fn summarize(&self, query: &Query) -> Result<Answer> {
        let (plan, source) = self.plan(query)?;
        let answered;
        // Of a table as it lies; of a statement, its answer.
        let is_table = plan.filter.is_none()
            && plan.grouping.is_none()
            && plan.limit.is_none()
            && plan.offset == 0;
        let source: &dyn Source = match is_table {
            true => &*source,
            false => {
                let (rows, vectors) = execute(&plan, &*source, &self.options, &Counts::default())?;
                answered = Answer::new(columns_of(&plan), rows, vectors);
                &answered
            }
        };
        let mut rows = Vec::new();
        for column in source.columns() {
            rows.push(self.summary_of(source, &column.name, &column.kind)?);
        }
        let columns = [
            ("column", Type::Text),
            ("type", Type::Text),
            ("min", Type::Text),
            ("max", Type::Text),
            ("distinct", Type::Int(64)),
            ("mean", Type::F64),
            ("deviation", Type::F64),
            ("q25", Type::F64),
            ("median", Type::F64),
            ("q75", Type::F64),
            ("rows", Type::Int(64)),
            ("nulls", Type::Int(64)),
        ];
        Ok(Answer::of_values(&columns, &rows))
    }

    fn summary_of(
        &self,
        source: &dyn Source,
        name: &str,
        kind: &Type,
    ) -> Result<Vec<Value<'static>>> {
        let column = format!("\"{}\"", name.replace('"', "\"\""));
        let of_kind = Kind::of_type(kind);
        let number = match of_kind.is_number() {
            true => format!("cast({column} as double)"),
            false => "cast(null as double)".to_owned(),
        };
        let ordered = match of_kind.is_ordered() {
            true => format!("cast(min({column}) as text), cast(max({column}) as text)"),
            false => "cast(null as text), cast(null as text)".to_owned(),
        };
        let sql = format!(
            "select {ordered}, approx_count_distinct({column}), avg({number}), stddev({number}), \
             approx_quantile({number}, 0.25), approx_quantile({number}, 0.5), \
             approx_quantile({number}, 0.75), count(*), count(*) - count({column}) from t"
        );
        let statement = &super::parse(&sql)?[0];
        let super::Parsed::Sql(statement) = &statement.parsed else {
            unreachable!("it is a select")
        };
        let sqlparser::ast::Statement::Query(query) = &**statement else {
            unreachable!("it is a select")
        };
        let (select, _) = crate::plan::scope_of(query)?;
        let plan =
            crate::plan::bind_select(query, select, source, vec!["t".to_owned()], self.moment())?;
        let (rows, vectors) = execute(&plan, source, &self.options, &Counts::default())?;
        let answer = Answer::new(columns_of(&plan), rows, vectors);
        let mut row = vec![Value::from(name.to_owned()), Value::from(kind.to_string())];
        row.extend(answer.row(0)?.into_iter().map(Value::into_owned));
        Ok(row)
    }
}

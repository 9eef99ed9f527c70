//! `create table`, `alter table` and `drop table`.

use sapwood_schema::Schema;
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnOption, CreateTable,
    CreateTableOptions, Expr, ObjectName, Spanned, SqlOption, TableConstraint,
};

use super::{Outcome, Session};
use crate::bind::type_of;
use crate::error::{Error, Result};
use crate::plan::table_name;
use crate::source::{Catalog, Source, TableName};

impl<C: Catalog + ?Sized> Session<'_, C> {
    pub(super) fn create(&self, create: &CreateTable) -> Result<Outcome> {
        let plain = CreateTableBuilder::new(create.name.clone())
            .columns(create.columns.clone())
            .constraints(create.constraints.clone())
            .if_not_exists(create.if_not_exists)
            .table_options(create.table_options.clone())
            .query(create.query.clone())
            .build();
        if plain.to_string() != create.to_string() {
            return Err(Error::unsupported(
                "create table is written as: create table t (a bigint, b text, primary key (a))",
            ));
        }
        let name = table_name(&create.name)?;
        let engine = engine(&create.table_options)?;
        if create.if_not_exists && self.catalog.open(&name).is_ok() {
            return Ok(Outcome::Done(format!("table {name} is there")));
        }
        let Some(query) = &create.query else {
            let schema = schema(create)?;
            self.catalog.create(&name, schema, engine.as_deref()).map_err(Error::source)?;
            return Ok(Outcome::Done(format!("table {name} is made")));
        };
        if !create.columns.is_empty() {
            return Err(Error::unsupported(
                "a table gets its columns from a list or from a select, and not from both",
            ));
        }
        let open = |name: &TableName| self.catalog.open_settled(name).map_err(Error::source);
        let (plan, _) = self.plan_over(query, open)?;
        let builder = plan.outputs.iter().fold(Schema::builder(), |builder, output| {
            builder.nullable(&output.name, output.kind())
        });
        let schema = builder.build().map_err(|error| Error::meaning(error.to_string()))?;
        let targets: Vec<usize> = (0..plan.outputs.len()).collect();
        let mut put = None;
        let mut fill =
            |into: &dyn Source| put.insert(self.put_query(into, query, &targets)).is_ok();
        // All of it, or nothing.
        let made = self.catalog.create_filled(&name, schema, engine.as_deref(), &mut fill);
        made.map_err(Error::source)?;
        put.expect("a table that was made was filled")
    }

    pub(super) fn alter(&self, alter: &AlterTable) -> Result<Outcome> {
        let name = table_name(&alter.name)?;
        match &alter.operations[..] {
            [
                AlterTableOperation::AddColumn {
                    if_not_exists: false,
                    column_def,
                    column_position: None,
                    ..
                },
            ] => {
                for option in &column_def.options {
                    if option.option != ColumnOption::Null {
                        return Err(Error::unsupported(
                            "a new column is null in the rows that are there: it has no other options",
                        )
                        .at(option.span()));
                    }
                }
                let kind = type_of(&column_def.data_type)?;
                let column = &column_def.name.value;
                self.catalog.add_column(&name, column, kind).map_err(Error::source)?;
                Ok(Outcome::Done(format!("table {name} has column {column}")))
            }
            [
                AlterTableOperation::AlterColumn {
                    column_name,
                    op: AlterColumnOperation::SetDataType { data_type, using: None, .. },
                },
            ] => {
                let (kind, column) = (type_of(data_type)?, &column_name.value);
                let done = format!("column {column} of table {name} is of type {kind}");
                let widened = self.catalog.widen_column(&name, column, kind);
                widened.map_err(|what| Error::source(what).at(column_name.span))?;
                Ok(Outcome::Done(done))
            }
            _ => Err(Error::unsupported(
                "tables change by one new column at a time, `alter table t add column b text`, or by a wider \
                 type of one, `alter table t alter column b type bigint`",
            )),
        }
    }

    pub(super) fn drop_tables(&self, names: &[ObjectName], if_exists: bool) -> Result<Outcome> {
        let mut dropped = Vec::new();
        for name in names {
            let table = table_name(name)?;
            if if_exists && self.catalog.open(&table).is_err() {
                continue;
            }
            let dropping = self.catalog.drop_table(&table);
            dropping.map_err(|what| Error::source(what).at(name.span()))?;
            dropped.push(table.to_string());
        }
        Ok(Outcome::Done(match &dropped[..] {
            [] => "no table is removed".to_owned(),
            [name] => format!("table {name} is removed"),
            names => format!("tables {} are removed", names.join(", ")),
        }))
    }
}

/// The engine that `with (engine = 'hash')` names.
fn engine(options: &CreateTableOptions) -> Result<Option<String>> {
    let options = match options {
        CreateTableOptions::None => return Ok(None),
        CreateTableOptions::With(options) => options,
        _ => return Err(Error::unsupported("options stand in `with (engine = 'hash')`")),
    };
    let mut engine = None;
    for option in options {
        match option {
            SqlOption::KeyValue { key, value: Expr::Value(value) }
                if key.to_string().eq_ignore_ascii_case("engine") =>
            {
                engine = Some(value.to_string().trim_matches('\'').to_lowercase());
            }
            other => {
                return Err(Error::unsupported(format!(
                    "the option `{other}` is not known: there is engine = 'ordered', 'hash' or 'tree'"
                )));
            }
        }
    }
    Ok(engine)
}

/// The schema that the columns and the key of a statement are.
fn schema(create: &CreateTable) -> Result<Schema> {
    let mut key: Vec<String> = Vec::new();
    let mut set_key = |names: Vec<String>, at| match key.is_empty() {
        true => {
            key = names;
            Ok(())
        }
        false => Err(Error::meaning("a table has one primary key").at(at)),
    };
    let mut needed = Vec::new();
    for column in &create.columns {
        for option in &column.options {
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => needed.push(&column.name.value),
                ColumnOption::PrimaryKey(_) => {
                    set_key(vec![column.name.value.clone()], option.span())?;
                }
                other => {
                    return Err(Error::unsupported(format!(
                        "`{other}` is not supported: a column is null, not null or primary key"
                    ))
                    .at(option.span()));
                }
            }
        }
    }
    for constraint in &create.constraints {
        match constraint {
            TableConstraint::PrimaryKey(primary) => {
                let names = primary.columns.iter().map(|column| match &column.column.expr {
                    Expr::Identifier(name) => Ok(name.value.clone()),
                    other => Err(Error::meaning("a key names columns").at(other.span())),
                });
                set_key(names.collect::<Result<_>>()?, constraint.span())?;
            }
            other => {
                return Err(
                    Error::unsupported(format!("`{other}` is not supported")).at(other.span())
                );
            }
        }
    }
    let mut builder = Schema::builder();
    for column in &create.columns {
        let kind = type_of(&column.data_type).map_err(|error| error.at(column.span()))?;
        let name = &column.name.value;
        builder = match needed.contains(&name) || key.contains(name) {
            true => builder.column(name, kind),
            false => builder.nullable(name, kind),
        };
    }
    builder.key(key).build().map_err(|error| Error::meaning(error.to_string()))
}

//! `insert`, `update`, `delete` and `copy`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sapwood_schema::{Batch, Data, SourceColumn, Strings, Type, Value, Vector};
use sqlparser::ast::{
    AssignmentTarget, CopySource, CopyTarget, Delete, Expr, FromTable, Insert, ObjectName,
    ObjectNamePart, Query, SetExpr, Spanned, TableObject, TableWithJoins, Truncate,
    TruncateTableTarget, Update,
};

use super::{Outcome, Session};
use crate::answer::Answer;
use crate::bind::{Binder, Scope, find_column};
use crate::error::{Error, ErrorKind, Result};
use crate::evaluate::{evaluate, rows_where};
use crate::execute::{Options, stream, threads_for};
use crate::node::Node;
use crate::plan::{Plan, key_filter, table_name, table_of};
use crate::source::{Catalog, Change, ChangeError, Insertion, Room, Source, TableName};

const UPDATE_FORM: &str = "update is written as: update t set a = a + 1 where b = 2";
const DELETE_FORM: &str = "delete is written as: delete from t where a = 1";

/// Bytes that a row takes beside its name and its values, from when it is found until all are changed.
const ROW_BYTES: usize = 128;

impl<C: Catalog + ?Sized> Session<'_, C> {
    pub(super) fn insert(&self, insert: &Insert) -> Result<Outcome> {
        let refuse = |what: &str| Err(Error::unsupported(what));
        if insert.on.is_some() || insert.or.is_some() || insert.ignore || insert.replace_into {
            return refuse(
                "`on conflict` is not supported: a key that is there is an error; use update",
            );
        }
        if insert.returning.is_some() || insert.output.is_some() {
            return refuse("`returning` is not supported: select the rows");
        }
        if insert.overwrite
            || insert.by_name
            || !insert.assignments.is_empty()
            || insert.partitioned.is_some()
            || insert.table_alias.is_some()
            || !insert.after_columns.is_empty()
            || insert.overriding.is_some()
            || insert.priority.is_some()
            || insert.insert_alias.is_some()
            || insert.settings.is_some()
            || insert.format_clause.is_some()
            || insert.multi_table_insert_type.is_some()
        {
            return refuse("insert is written as: insert into t (a, b) values (1, 'x')");
        }
        let TableObject::TableName(name) = &insert.table else {
            return refuse("insert names a table");
        };
        let Some(query) = &insert.source else {
            return refuse("`values` or a `select` is expected");
        };
        let name = table_name(name)?;
        let source = self.open(&name).map_err(|error| error.at(insert.table.span()))?;
        let targets = targets(&insert.columns, source.columns())?;
        match &*query.body {
            SetExpr::Values(values) => {
                if query.to_string() != values.to_string() {
                    return refuse(super::VALUES_ALONE);
                }
                let rows = values.rows.iter().map(|row| row.content.as_slice());
                let mut rows =
                    rows.map(|row| constants(row, &targets, source.columns(), self.moment()));
                self.put(&*source, &mut rows)
            }
            _ => self.put_query(&*source, query, &targets),
        }
    }

    /// Puts the rows that a query answers, each column into its target: as they are found, if that makes no difference.
    pub(super) fn put_query(
        &self,
        into: &dyn Source,
        query: &Query,
        targets: &[usize],
    ) -> Result<Outcome> {
        let open = |name: &TableName| self.catalog.open_settled(name).map_err(Error::source);
        let (plan, from) = self.plan_over(query, open)?;
        // A table that rows are put into while it is read would show them.
        if !(plan.is_stream() && from.is_fixed()) {
            let counts = crate::execute::Counts::default();
            let (rows, vectors) = crate::execute::execute(&plan, &*from, &self.options, &counts)?;
            let answer = Answer::new(super::columns_of(&plan), rows, vectors);
            return self.put_answer(into, &answer, targets);
        }
        self.put_stream(into, &plan, &*from, targets)
    }

    /// Puts the rows of a plan as they are found: by one thread in their order, where they get numbers.
    pub(super) fn put_stream(
        &self,
        into: &dyn Source,
        plan: &crate::plan::Plan,
        from: &dyn Source,
        targets: &[usize],
    ) -> Result<Outcome> {
        let columns = super::columns_of(plan);
        expect_as_many(targets, columns.len())?;
        let insertion = into.change().and_then(Change::insert).map_err(Error::source)?;
        let options = &self.options;
        let take_batch = |_, batch: Batch| -> Result<()> {
            let len = batch.len;
            let mut vectors: Vec<Option<Vector>> = vec![None; into.columns().len()];
            for ((vector, (_, kind)), &target) in
                batch.columns.into_iter().zip(&columns).zip(targets)
            {
                vectors[target] = Some(fitted(vector, kind, &into.columns()[target])?);
            }
            let vectors = vectors.into_iter().zip(into.columns()).map(|(vector, column)| {
                vector.unwrap_or_else(|| {
                    let mut nulls = Vector::of_type(&column.kind);
                    (0..len).for_each(|_| nulls.push_null());
                    nulls
                })
            });
            let batch = Batch { len, columns: vectors.collect(), ids: None };
            insertion.batch(&batch, into.columns()).map_err(Error::source)?;
            expect_room(options, &*insertion)
        };
        let threads = if into.is_numbered() { 1 } else { self.options.threads };
        crate::execute::stream(plan, from, &self.options, threads, &take_batch)?;
        let rows = insertion.finish().map_err(Error::source)?;
        Ok(Outcome::Changed { what: "inserted", rows })
    }

    /// Puts the rows of an answer, each column into its target.
    pub(super) fn put_answer(
        &self,
        source: &dyn Source,
        answer: &Answer,
        targets: &[usize],
    ) -> Result<Outcome> {
        expect_as_many(targets, answer.columns().len())?;
        let mut rows = (0..answer.len()).map(|row| filled(answer, row, targets, source.columns()));
        self.put(source, &mut rows)
    }

    /// Puts rows: all of them, or none.
    fn put(
        &self,
        source: &dyn Source,
        rows: &mut dyn Iterator<Item = Result<Vec<Value<'static>>>>,
    ) -> Result<Outcome> {
        let insertion = source.change().and_then(Change::insert).map_err(Error::source)?;
        for row in rows {
            self.expect_wanted()?;
            insertion.row(&row?).map_err(Error::source)?;
            expect_room(&self.options, &*insertion)?;
        }
        let rows = insertion.finish().map_err(Error::source)?;
        Ok(Outcome::Changed { what: "inserted", rows })
    }

    fn expect_wanted(&self) -> Result<()> {
        match self.options.is_cancelled() {
            false => Ok(()),
            true => Err(Error::new(
                ErrorKind::Cancelled,
                "the statement was cancelled: nothing is changed",
            )),
        }
    }

    pub(super) fn update(&self, update: &Update) -> Result<Outcome> {
        let Update {
            update_token: _,
            optimizer_hints: _,
            table,
            on_cluster: None,
            assignments,
            from: None,
            selection,
            returning: None,
            output: None,
            or: None,
            order_by,
            limit: None,
            settings: None,
        } = update
        else {
            return Err(Error::unsupported(UPDATE_FORM));
        };
        if !order_by.is_empty() {
            return Err(Error::unsupported(UPDATE_FORM));
        }
        let (name, names) = one_table(table)?;
        let source = self.open(&name).map_err(|error| error.at(table.span()))?;
        let columns = source.columns();
        let scope = Scope { columns, tables: names, aliases: Vec::new(), moment: self.moment() };
        let mut sets: Vec<(usize, Node)> = Vec::new();
        for assignment in assignments {
            let AssignmentTarget::ColumnName(target) = &assignment.target else {
                return Err(Error::unsupported("each column is set by its own `=`"));
            };
            let column = target_of(target, columns)?;
            if source.key_columns().contains(&column) {
                return Err(Error::unsupported(format!(
                    "`{}` is part of the key, which does not change: insert the row anew and delete the old \
                     one",
                    columns[column].name
                ))
                .at(target.span()));
            }
            if sets.iter().any(|(set, _)| *set == column) {
                let what = format!("`{}` is set twice", columns[column].name);
                return Err(Error::meaning(what).at(target.span()));
            }
            sets.push((column, Binder::of_rows(&scope).bind(&assignment.value)?));
        }
        let filter = condition(selection.as_ref(), &scope)?;
        let change = |row: &[Value<'_>]| {
            let batch = batch_of(row, columns);
            if let Some(filter) = &filter
                && rows_where(filter, &batch)?.is_empty()
            {
                return Ok(None);
            }
            let mut changed: Vec<Value<'static>> =
                row.iter().map(|value| value.clone().into_owned()).collect();
            for (column, node) in &sets {
                let vector = evaluate(node, &batch)?;
                let value = vector.value(0, &node.kind.to_type());
                let value = value.map_err(|error| Error::value(error.to_string()))?;
                let from = node.kind.to_type();
                let value = fitting(value.into_owned(), &from, &columns[*column]);
                changed[*column] = value.map_err(|error| error.at(node.at))?;
            }
            Ok(Some(changed))
        };
        let rows = self.with_ids(&*source, filter.as_ref(), |target, ids, room| {
            target.update(ids, &mut |row| self.expect_wanted().and_then(|()| change(row)), room)
        })?;
        Ok(Outcome::Changed { what: "updated", rows })
    }

    pub(super) fn delete(&self, delete: &Delete) -> Result<Outcome> {
        let Delete {
            delete_token: _,
            optimizer_hints: _,
            tables,
            from: FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from),
            on_cluster: None,
            using: None,
            selection,
            returning: None,
            output: None,
            order_by,
            limit: None,
            settings: None,
        } = delete
        else {
            return Err(Error::unsupported(DELETE_FORM));
        };
        let ([table], true, true) = (&from[..], tables.is_empty(), order_by.is_empty()) else {
            return Err(Error::unsupported(DELETE_FORM));
        };
        let (name, names) = one_table(table)?;
        let source = self.open(&name).map_err(|error| error.at(table.span()))?;
        let columns = source.columns();
        let scope = Scope { columns, tables: names, aliases: Vec::new(), moment: self.moment() };
        let filter = condition(selection.as_ref(), &scope)?;
        let is_wanted = |row: &[Value<'_>]| match &filter {
            None => Ok(true),
            Some(filter) => Ok(!rows_where(filter, &batch_of(row, columns))?.is_empty()),
        };
        let rows = self.with_ids(&*source, filter.as_ref(), |target, ids, room| {
            target.remove(ids, &mut |row| self.expect_wanted().and_then(|()| is_wanted(row)), room)
        })?;
        Ok(Outcome::Changed { what: "deleted", rows })
    }

    /// Removes all rows.
    pub(super) fn truncate(&self, truncate: &Truncate) -> Result<Outcome> {
        let refused = || Error::unsupported("truncate is written as: truncate t");
        let Truncate {
            table_names,
            partitions: None,
            table: _,
            if_exists: false,
            identity: None,
            cascade: None,
            on_cluster: None,
        } = truncate
        else {
            return Err(refused());
        };
        let [TruncateTableTarget { name, only: false, has_asterisk: false }] = &table_names[..]
        else {
            return Err(refused());
        };
        let source = self.open(&table_name(name)?).map_err(|error| error.at(name.span()))?;
        let rows = self.with_ids(&*source, None, |target, ids, room| {
            target.remove(ids, &mut |_| self.expect_wanted().map(|()| true), room)
        })?;
        Ok(Outcome::Changed { what: "deleted", rows })
    }

    /// Calls `change` with what names the rows for which a filter is true. The filter is over all
    /// columns. Rows are looked up first, so that a change does not meet itself. All that is kept of
    /// them until they are changed has room in the memory of the statement, or nothing is changed.
    fn with_ids(
        &self,
        source: &dyn Source,
        filter: Option<&Node>,
        change: impl FnOnce(&dyn Change, &[&[u8]], &mut Room<'_>) -> Result<u64, ChangeError>,
    ) -> Result<u64> {
        let target = source.change().map_err(Error::source)?;
        let plan = Plan::names_where(filter.cloned(), key_filter(source, filter));
        let options = &self.options;
        let (found, names_bytes) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        let threads = threads_for(source, options);
        stream(&plan, source, options, threads, &|number, batch| {
            let ids = batch.ids.expect("names were asked for");
            let bytes: usize = ids.iter().map(|id| id.len() + ROW_BYTES).sum();
            // Relaxed: the count tells nothing of other memory.
            let before = names_bytes.fetch_add(bytes, Ordering::Relaxed);
            expect_room_for_changes(options, before + bytes)?;
            found.lock().expect("no thread panics").push((number, ids));
            Ok(())
        })?;
        let mut found: Vec<(u64, Strings)> = found.into_inner().expect("no thread panics");
        found.sort_unstable_by_key(|(number, _)| *number);
        let ids: Vec<&[u8]> = found.iter().flat_map(|(_, ids)| ids.iter()).collect();
        let names_bytes = names_bytes.into_inner();
        let mut room =
            |bytes: usize| expect_room_for_changes(options, names_bytes.saturating_add(bytes));
        change(target, &ids, &mut room).map_err(|error| match error {
            ChangeError::Statement(error) => error,
            ChangeError::Source(what) => Error::source(what),
        })
    }

    pub(super) fn copy(
        &self,
        source: &CopySource,
        to: bool,
        target: &CopyTarget,
    ) -> Result<Outcome> {
        let CopyTarget::File { filename } = target else {
            return Err(Error::unsupported("copy names a file: copy t to 't.parquet'"));
        };
        let file = TableName { parts: vec![filename.clone()], is_file: true };
        match (source, to) {
            (CopySource::Query(query), true) => {
                let answer = self.query(query)?;
                self.write(&answer, filename)
            }
            (CopySource::Query(_), false) => {
                Err(Error::meaning("rows are copied from a file into a table: copy t from 'f.csv'"))
            }
            (CopySource::Table { table_name: name, columns }, true) => {
                let columns: Vec<String> =
                    columns.iter().map(|column| format!("\"{}\"", column.value)).collect();
                let columns = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
                let answer = self.query(&*query_of(&format!("select {columns} from {name}"))?)?;
                self.write(&answer, filename)
            }
            (CopySource::Table { table_name: name, columns }, false) => {
                let name = table_name(name)?;
                let into = self.open(&name)?;
                let names = columns
                    .iter()
                    .map(|column| ObjectName(vec![ObjectNamePart::Identifier(column.clone())]));
                let targets = targets(&names.collect::<Vec<_>>(), into.columns())?;
                let from = self.catalog.open_settled(&file).map_err(Error::source)?;
                let query = query_of("select * from t")?;
                let (select, _) = crate::plan::scope_of(&query)?;
                let plan = crate::plan::bind_select(
                    &query,
                    select,
                    &*from,
                    vec!["t".to_owned()],
                    self.moment(),
                )?;
                self.put_stream(&*into, &plan, &*from, &targets)
            }
        }
    }

    fn write(&self, answer: &Answer, file: &str) -> Result<Outcome> {
        let rows = self.catalog.write(answer, file).map_err(Error::source)?;
        Ok(Outcome::Changed { what: "written", rows })
    }
}

/// Refuses rows that need more memory, until all are put, than a statement may take.
fn expect_room(options: &Options<'_>, rows: &dyn Insertion) -> Result<()> {
    match rows.memory() <= options.memory_bytes_max {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Memory,
            format!(
                "the new rows need more than {} MiB of memory until all are there, and none is inserted: \
                 insert them by several statements, or make a table of them (`create table t as select ...`)",
                options.memory_bytes_max >> 20
            ),
        )),
    }
}

/// Refuses changes of rows that need more memory, until all are made, than a statement may take.
fn expect_room_for_changes(options: &Options<'_>, bytes: usize) -> Result<()> {
    match bytes <= options.memory_bytes_max {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Memory,
            format!(
                "the rows and their changes need more than {} MiB of memory until all are changed, and none is: change \
                 them by several statements, each with another `where`",
                options.memory_bytes_max >> 20
            ),
        )),
    }
}

/// A `select` that this crate writes.
pub(super) fn query_of(sql: &str) -> Result<Box<Query>> {
    match crate::parse::statements(sql, &[])?.pop() {
        Some(crate::parse::Parsed::Sql(statement)) => match *statement {
            sqlparser::ast::Statement::Query(query) => Ok(query),
            _ => unreachable!("it is a select"),
        },
        _ => unreachable!("it is a select"),
    }
}

fn one_table(table: &TableWithJoins) -> Result<(TableName, Vec<String>)> {
    match table.joins.first() {
        Some(join) => Err(Error::unsupported("joins are not supported yet").at(join.span())),
        None => table_of(&table.relation),
    }
}

fn condition(selection: Option<&Expr>, scope: &Scope<'_>) -> Result<Option<Node>> {
    selection.map(|selection| Binder::of_rows(scope).condition(selection)).transpose()
}

fn target_of(name: &ObjectName, columns: &[SourceColumn]) -> Result<usize> {
    let Some(ObjectNamePart::Identifier(ident)) = name.0.last() else {
        return Err(Error::meaning("the name of a column is expected").at(name.span()));
    };
    find_column(columns, &ident.value)?.ok_or_else(|| {
        let names = columns.iter().map(|column| column.name.as_str());
        let hint = match sapwood_schema::nearest(&ident.value, names) {
            Some(near) => format!(": did you mean `{near}`?"),
            None => String::new(),
        };
        Error::meaning(format!("no column is called `{}`{hint}", ident.value)).at(name.span())
    })
}

fn expect_as_many(targets: &[usize], columns: usize) -> Result<()> {
    match targets.len() == columns {
        true => Ok(()),
        false => Err(Error::meaning(format!(
            "{} columns are to be filled, and the select has {columns}",
            targets.len()
        ))),
    }
}

/// The columns that values go to: those that are named, or all.
fn targets(names: &[ObjectName], columns: &[SourceColumn]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..columns.len()).collect());
    }
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        let column = target_of(name, columns)?;
        if targets.contains(&column) {
            let what = format!("`{}` is named twice", columns[column].name);
            return Err(Error::meaning(what).at(name.span()));
        }
        targets.push(column);
    }
    Ok(targets)
}

/// A row of constants, each in its column.
fn constants(
    row: &[Expr],
    targets: &[usize],
    columns: &[SourceColumn],
    moment: i64,
) -> Result<Vec<Value<'static>>> {
    if row.len() != targets.len() {
        let at = row.first().map(Spanned::span);
        let error = Error::meaning(format!(
            "{} columns are to be filled, and the row has {}",
            targets.len(),
            row.len()
        ));
        return Err(at.map_or(error.clone(), |at| error.at(at)));
    }
    let scope = Scope { columns: &[], tables: Vec::new(), aliases: Vec::new(), moment };
    let mut values = vec![Value::Null; columns.len()];
    for (expr, &column) in row.iter().zip(targets) {
        let node = Binder::of_rows(&scope).bind(expr)?;
        let batch = Batch { len: 1, columns: Vec::new(), ids: None };
        let vector = evaluate(&node, &batch)?;
        let value = vector.value(0, &node.kind.to_type());
        let value = value.map_err(|error| Error::value(error.to_string()))?.into_owned();
        let value = fitting(value, &node.kind.to_type(), &columns[column]);
        values[column] = value.map_err(|error| error.at(node.at))?;
    }
    missing(&values, columns)?;
    Ok(values)
}

/// A row of an answer, each value in its column.
fn filled(
    answer: &Answer,
    row: usize,
    targets: &[usize],
    columns: &[SourceColumn],
) -> Result<Vec<Value<'static>>> {
    let mut filled = vec![Value::Null; columns.len()];
    for (at, (from, &column)) in answer.columns().iter().zip(targets).enumerate() {
        let value = answer.stored(row, at)?.into_owned();
        filled[column] = fitting(value, &from.kind, &columns[column])?;
    }
    missing(&filled, columns)?;
    Ok(filled)
}

fn missing(row: &[Value<'_>], columns: &[SourceColumn]) -> Result<()> {
    for (value, column) in row.iter().zip(columns) {
        if value.is_null() && !column.nullable {
            return Err(Error::meaning(format!("`{}` needs a value", column.name)));
        }
    }
    Ok(())
}

/// A value of a type in that of a column; a text is read as one.
fn fitting(value: Value<'static>, from: &Type, column: &SourceColumn) -> Result<Value<'static>> {
    let named = |what: String| Error::value(format!("column `{}`: {what}", column.name));
    if value.is_null() && !column.nullable {
        return Err(named("a value is needed".to_owned()));
    }
    // A text and a decimal have the digits that it shows, as by a cast.
    let value = match column.kind {
        Type::Text | Type::Decimal { .. } => value.shown_as(from),
        _ => value,
    };
    match (value, &column.kind) {
        (Value::Text(text), kind) if *kind != Type::Text => {
            Value::of_text(&text, kind).map(Value::into_owned).map_err(named)
        }
        (value, Type::Text) if !value.is_null() && !matches!(value, Value::Text(_)) => {
            Ok(Value::from(crate::convert::text_of(&value)))
        }
        (value, kind) => {
            let is_long = matches!(value, Value::Int(number) if i64::try_from(number).is_ok());
            value.to_type(kind).map_err(|what| match kind {
                Type::Int(..64) if is_long => named(format!(
                    "{what}; `alter table ... alter column {} type bigint` gives it room",
                    column.name
                )),
                _ => named(what),
            })
        }
    }
}

/// The values of a vector in the representation of a column's type. Whether whole numbers fit is looked at when they are
/// put.
fn fitted(vector: Vector, from: &Type, column: &SourceColumn) -> Result<Vector> {
    let is_whole = |kind: &Type| matches!(kind, Type::Int(_) | Type::UInt(_));
    let is_same = match (from, &column.kind) {
        (from, to) if from == to => true,
        (from, to) if is_whole(from) && is_whole(to) => {
            std::mem::discriminant(&vector.data) == std::mem::discriminant(&Data::of_type(to))
        }
        (Type::F32, Type::F64) => true,
        _ => false,
    };
    if is_same {
        return Ok(vector);
    }
    let mut fitted = Vector::of_type(&column.kind);
    for row in 0..vector.len() {
        let value = vector.value(row, from).map_err(|error| Error::value(error.to_string()))?;
        match fitting(value.into_owned(), from, column)? {
            value @ Value::Array(_) => fitted.push_array(&value, &column.kind),
            value => fitted.push_value(&value),
        }
    }
    Ok(fitted)
}

/// A batch of one row.
fn batch_of(row: &[Value<'_>], columns: &[SourceColumn]) -> Batch {
    let vectors = row.iter().zip(columns).map(|(value, column)| {
        let mut vector = Vector::of_type(&column.kind);
        match (value, &column.kind) {
            (Value::Null, _) => vector.push_null(),
            // Arrays lie in rows as bytes.
            (Value::Array(_), Type::Array(..)) => vector.push_array(value, &column.kind),
            (value, _) => vector.push_value(value),
        }
        vector
    });
    Batch { len: 1, columns: vectors.collect(), ids: None }
}

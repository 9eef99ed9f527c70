//! Statements, executed one by one.

mod change;
mod define;
mod describe;

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime};

use sapwood_schema::{Batch, Scan, Sink, SourceColumn, Type, Value, Vector};
use sqlparser::ast::{self, Query, SetExpr, Spanned};

use crate::answer::Answer;
use crate::bind::{Binder, Scope};
use crate::error::{Error, ErrorKind, Result};
use crate::evaluate::evaluate;
use crate::execute::{Counts, Options, execute};
use crate::parse::{self, Parsed};
use crate::plan::{Plan, bind_select, scope_of};
use crate::source::{Catalog, Request, Source, SourceResult, TableName};

/// A statement that was read.
#[derive(Debug, Clone)]
pub struct Statement {
    pub(crate) parsed: Parsed,
    /// The text that it stands in, for messages.
    sql: std::sync::Arc<str>,
}

impl Statement {
    /// Whether it changes rows or tables, so that they must be open to be changed.
    pub fn changes_tables(&self) -> bool {
        use ast::Statement as S;
        match &self.parsed {
            Parsed::Summarize(_) => false,
            Parsed::Sql(statement) => match &**statement {
                S::Copy { to, .. } => !to,
                S::Query(_) | S::Explain { .. } | S::ExplainTable { .. } | S::ShowTables { .. } => {
                    false
                }
                _ => true,
            },
        }
    }
}

/// Reads statements, which stand between semicolons.
///
/// # Errors
/// [`Error`] at the first that cannot be read.
///
/// ```
/// let statements = sapwood::sql::parse("select 1; select 2")?;
/// assert_eq!(statements.len(), 2);
/// let error = sapwood::sql::parse("selec 1").unwrap_err();
/// assert_eq!(error.place(), Some((1, 1)));
/// # Ok::<(), sapwood::sql::Error>(())
/// ```
pub fn parse(sql: &str) -> Result<Vec<Statement>> {
    parse_with(sql, &[])
}

/// Reads statements with values in the places of parameters: `$1` is the first, or each `?` the
/// next one. A text in the place of a parameter is a text, whatever is in it.
///
/// # Errors
/// The errors of [`parse`]; a parameter without a value, or a value without a place.
///
/// ```
/// use sapwood::sql::parse_with;
///
/// let statements = parse_with("select $1 || $2 || $1", &["it's".into(), 7.into()])?;
/// assert_eq!(statements.len(), 1);
/// assert!(parse_with("select ?, ?", &[1.into()]).is_err());
/// # Ok::<(), sapwood::sql::Error>(())
/// ```
pub fn parse_with(sql: &str, parameters: &[Value<'_>]) -> Result<Vec<Statement>> {
    let text: std::sync::Arc<str> = sql.into();
    let statements = parse::statements(sql, parameters)?;
    let statement = |parsed| Statement { parsed, sql: text.clone() };
    Ok(statements.into_iter().map(statement).collect())
}

/// What a statement did.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It has an answer.
    Rows(Answer),
    /// It changed rows, or wrote them: what was done, as `inserted`, and with how many.
    Changed {
        /// `inserted`, `updated`, `deleted`, `written`.
        what: &'static str,
        /// How many rows.
        rows: u64,
    },
    /// It made, changed or removed a table: what was done, as `table t is made`.
    Done(String),
}

/// Executes statements over the tables of a catalog.
#[derive(Debug)]
pub struct Session<'a, C: Catalog + ?Sized> {
    catalog: &'a C,
    options: Options<'a>,
    /// The one of the statement that is executed: microseconds since 1970.
    moment: AtomicI64,
}

impl<'a, C: Catalog + ?Sized> Session<'a, C> {
    /// Over the tables of a catalog.
    pub fn new(catalog: &'a C, options: Options<'a>) -> Session<'a, C> {
        Session { catalog, options, moment: AtomicI64::new(0) }
    }

    /// Executes a statement.
    ///
    /// # Errors
    /// [`Error`] if it is not supported, has no meaning or no answer: nothing is changed then.
    pub fn execute(&self, statement: &Statement) -> Result<Outcome> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let moment = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        self.moment.store(moment, Ordering::Relaxed);
        loop {
            let done = match &statement.parsed {
                Parsed::Sql(parsed) => self.execute_parsed(parsed),
                Parsed::Summarize(query) => self.summarize(query).map(Outcome::Rows),
            };
            let error = match done {
                Err(error) if error.kind() == ErrorKind::Source => error,
                done => return done.map_err(|error| error.shown_in(&statement.sql)),
            };
            // A statement that fails has changed nothing.
            match self.catalog.widen() {
                Ok(true) => {}
                Ok(false) => return Err(error.shown_in(&statement.sql)),
                Err(what) => return Err(Error::source(what)),
            }
        }
    }

    fn execute_parsed(&self, statement: &ast::Statement) -> Result<Outcome> {
        use ast::Statement as S;
        match statement {
            S::Query(query) => self.query(query).map(Outcome::Rows),
            S::Explain {
                analyze,
                statement: inner,
                verbose: false,
                format: None,
                options: None,
                ..
            } => match &**inner {
                S::Query(query) => self.explain(query, *analyze).map(Outcome::Rows),
                other => Err(Error::unsupported("`explain` is of a select").at(other.span())),
            },
            S::ExplainTable { table_name, .. } => self.describe(table_name).map(Outcome::Rows),
            S::ShowTables { .. } if statement.to_string() == "SHOW TABLES" => {
                self.show_tables().map(Outcome::Rows)
            }
            S::ShowTables { .. } => Err(Error::unsupported("`show tables` shows all of them")),
            S::Insert(insert) => self.insert(insert),
            S::Update(update) => self.update(update),
            S::Delete(delete) => self.delete(delete),
            S::Copy { source, to, target, options, legacy_options, payload: None } => {
                if let Some(option) = options.first().map(ToString::to_string) {
                    return Err(no_option(&option));
                }
                if let Some(option) = legacy_options.first().map(ToString::to_string) {
                    return Err(no_option(&option));
                }
                self.copy(source, *to, target)
            }
            S::Truncate(truncate) => self.truncate(truncate),
            S::CreateTable(create) => self.create(create),
            S::AlterTable(alter) => self.alter(alter),
            S::Drop {
                object_type: ast::ObjectType::Table,
                names,
                if_exists,
                temporary: false,
                table: None,
                ..
            } => self.drop_tables(names, *if_exists),
            S::StartTransaction { .. } | S::Commit { .. } | S::Rollback { .. } => {
                Err(Error::unsupported(
                    "transactions of several statements are not supported: each statement is all or nothing by itself",
                ))
            }
            other => {
                let text = other.to_string();
                let words: Vec<&str> = text.split_whitespace().take(2).collect();
                Err(Error::unsupported(format!(
                    "`{}` is not supported: there are select, values, insert, update, delete, truncate, copy, \
                     create table, alter table, drop table, explain, describe, show tables and summarize",
                    words.join(" ").to_lowercase()
                ))
                .at(other.span()))
            }
        }
    }

    /// When the statement began.
    fn moment(&self) -> i64 {
        self.moment.load(Ordering::Relaxed)
    }

    /// The source of a table.
    fn open(&self, name: &TableName) -> Result<Box<dyn Source + '_>> {
        self.catalog.open(name).map_err(Error::source)
    }

    /// The plan of a query, and its source.
    fn plan(&self, query: &Query) -> Result<(Plan, Box<dyn Source + '_>)> {
        self.plan_over(query, |name| self.open(name))
    }

    /// The same, over a source that `open` opens.
    fn plan_over<'s>(
        &'s self,
        query: &Query,
        open: impl FnOnce(&TableName) -> Result<Box<dyn Source + 's>>,
    ) -> Result<(Plan, Box<dyn Source + 's>)> {
        let (select, table) = scope_of(query)?;
        let (source, names): (Box<dyn Source + 's>, _) = match table {
            None => (Box::new(OneRow), Vec::new()),
            Some((name, names)) => {
                let at = select.from[0].span();
                (open(&name).map_err(|error| error.at(at))?, names)
            }
        };
        let plan = bind_select(query, select, &*source, names, self.moment())?;
        Ok((plan, source))
    }

    fn query(&self, query: &Query) -> Result<Answer> {
        if let SetExpr::Values(values) = &*query.body {
            return self.values(query, values);
        }
        let (plan, source) = self.plan(query)?;
        let (rows, vectors) = execute(&plan, &*source, &self.options, &Counts::default())?;
        Ok(Answer::new(columns_of(&plan), rows, vectors))
    }

    /// The rows of `values (...), (...)`, whose columns have the types that all their values
    /// become.
    fn values(&self, query: &Query, values: &ast::Values) -> Result<Answer> {
        if query.to_string() != values.to_string() {
            return Err(Error::unsupported(VALUES_ALONE));
        }
        let scope =
            Scope { columns: &[], tables: Vec::new(), aliases: Vec::new(), moment: self.moment() };
        let mut binder = Binder::of_rows(&scope);
        let rows: Vec<&[ast::Expr]> = values.rows.iter().map(|row| &row.content[..]).collect();
        let width = rows.first().map_or(0, |row| row.len());
        if let Some(row) = rows.iter().find(|row| row.len() != width) {
            let what = format!("the first row has {width} values, and this one {}", row.len());
            let error = Error::meaning(what);
            return Err(row.first().map_or(error.clone(), |first| error.at(first.span())));
        }
        let (mut columns, mut vectors) = (Vec::new(), Vec::new());
        for column in 0..width {
            let nodes = rows.iter().map(|row| binder.bind(&row[column]));
            let nodes = nodes.collect::<Result<_>>()?;
            let (nodes, kind) = binder.unite(nodes)?;
            let mut vector = Vector::new(kind.data());
            for node in &nodes {
                let one = Batch { len: 1, columns: Vec::new(), ids: None };
                vector.push_from(&*evaluate(node, &one)?, 0);
            }
            columns.push((format!("col{column}"), kind.to_type()));
            vectors.push(vector);
        }
        Ok(Answer::new(columns, rows.len(), vectors))
    }

    fn explain(&self, query: &Query, analyze: bool) -> Result<Answer> {
        let (plan, source) = self.plan(query)?;
        let mut lines = vec![source.explain(&plan.request)];
        let counts = Counts::default();
        let mut rows = 0;
        let began = Instant::now();
        if analyze {
            rows = execute(&plan, &*source, &self.options, &counts)?.0;
        }
        let elapsed = began.elapsed();
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        // Rows, and the time of all threads.
        let mut line = |text: String, count: Option<(u64, &str, u64)>| {
            let mut text = text;
            if let Some((count, what, nanos)) = count.filter(|_| analyze) {
                let millis = nanos as f64 / 1e6;
                write!(text, " [{count} {what}, {millis:.1} ms]").expect("a string takes it");
            }
            lines.push(text);
        };
        let (filter_nanos, fold_nanos) = (read(&counts.filter_nanos), read(&counts.fold_nanos));
        if analyze {
            let nanos = read(&counts.work_nanos).saturating_sub(filter_nanos + fold_nanos);
            line(
                format!("read by {} thread(s)", read(&counts.threads)),
                Some((read(&counts.rows), "rows", nanos)),
            );
        }
        let words = &plan.words;
        if let Some(filter) = &words.filter {
            line(format!("filter: {filter}"), Some((read(&counts.matched), "rows", filter_nanos)));
        }
        if let Some(grouping) = &plan.grouping {
            let by = match (&words.groups[..], grouping.by.len()) {
                ([], 0) => "aggregate all rows".to_owned(),
                ([], _) => "rows that differ".to_owned(),
                (groups, _) => format!("group by: {}", groups.join(", ")),
            };
            line(by, Some((read(&counts.groups), "groups", fold_nanos)));
        }
        if let Some(having) = &words.having {
            line(format!("having: {having}"), None);
        }
        if !words.order.is_empty() {
            let order = format!("order by: {}", words.order.join(", "));
            line(order, Some((rows as u64, "rows", read(&counts.finish_nanos))));
        }
        if let Some(limit) = plan.limit {
            line(format!("limit: {limit}"), None);
        }
        if plan.offset > 0 {
            line(format!("offset: {}", plan.offset), None);
        }
        if analyze {
            line(format!("answer in {:.1} ms [{rows} rows]", elapsed.as_secs_f64() * 1e3), None);
        }
        let rows: Vec<Vec<_>> = lines.iter().map(|line| vec![line.as_str().into()]).collect();
        Ok(Answer::of_values(&[("plan", Type::Text)], &rows))
    }
}

const VALUES_ALONE: &str = "`values` stand alone: no clause comes before or behind them";

fn no_option(option: &str) -> Error {
    Error::unsupported(format!(
        "the option `{option}` is not supported: the ending of the file says its format"
    ))
}

/// Names and types of the columns of an answer.
fn columns_of(plan: &Plan) -> Vec<(String, Type)> {
    plan.outputs.iter().map(|output| (output.name.clone(), output.kind())).collect()
}

/// What a `select` without a table is of: one row without columns.
struct OneRow;

impl Source for OneRow {
    fn columns(&self) -> &[SourceColumn] {
        &[]
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn rows_estimate(&self) -> Option<u64> {
        Some(1)
    }

    fn explain(&self, _: &Request) -> String {
        "one row".to_owned()
    }

    fn scan<'a>(&'a self, _: &Request) -> SourceResult<Box<dyn Scan + 'a>> {
        Ok(Box::new(OneRow))
    }
}

impl Scan for OneRow {
    fn threads_max(&self) -> usize {
        1
    }

    fn work(&self, sink: &mut Sink<'_>) -> SourceResult<()> {
        let _ = sink(0, &Batch { len: 1, columns: Vec::new(), ids: None });
        Ok(())
    }
}

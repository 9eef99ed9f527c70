//! A `select` becomes a plan.

use sqlparser::ast::{
    self, Distinct, Expr, GroupByExpr, LimitClause, OrderByKind, Query, Select, SelectItem,
    SetExpr, Spanned, TableFactor,
};

use sapwood_schema::Value;

use super::{Grouping, OrderKey, Output, Plan, Words, key_filter};
use crate::bind::{Binder, Level, Scope, find_column};
use crate::error::{Error, Result};
use crate::node::Node;
use crate::order::order_of;
use crate::source::{KeyFilter, Request, Source, TableName};

/// The `select` of a query, and the table that it is of.
pub(crate) fn scope_of(query: &Query) -> Result<(&Select, Option<(TableName, Vec<String>)>)> {
    let refuse = |what: &str| Err(Error::unsupported(what));
    let Query {
        with, body, fetch, locks, for_clause, settings, format_clause, pipe_operators, ..
    } = query;
    if with.is_some() {
        return refuse("`with` is not supported: run the inner statement first");
    }
    if !locks.is_empty()
        || for_clause.is_some()
        || settings.is_some()
        || format_clause.is_some()
        || !pipe_operators.is_empty()
    {
        return refuse("clauses behind `limit` are not supported");
    }
    if let Some(fetch) = fetch
        && (fetch.with_ties || fetch.percent)
    {
        return refuse("`fetch` takes a number of rows only");
    }
    let select = match &**body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { op, .. } => {
            let op = op.to_string().to_lowercase();
            return Err(Error::unsupported(format!(
                "`{op}` is not supported: run the statements one by one"
            ))
            .at(body.span()));
        }
        SetExpr::Query(_) => return refuse("parentheses around a statement are not supported"),
        _ => return refuse("a `select` is expected"),
    };
    let table = match &select.from[..] {
        [] => None,
        [from] => {
            if let Some(join) = from.joins.first() {
                return Err(Error::unsupported(
                    "joins are not supported yet: a statement is of one table",
                )
                .at(join.span()));
            }
            Some(table_of(&from.relation)?)
        }
        [_, second, ..] => {
            return Err(Error::unsupported(
                "joins are not supported yet: a statement is of one table",
            )
            .at(second.span()));
        }
    };
    Ok((select, table))
}

/// The name of a table, and what may stand before the dot of its columns.
pub(crate) fn table_of(factor: &TableFactor) -> Result<(TableName, Vec<String>)> {
    match factor {
        TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_directives,
            inheritance: None,
        } if with_hints.is_empty() && partitions.is_empty() && index_directives.is_empty() => {
            let name = table_name(name)?;
            let names = match alias {
                Some(alias) if alias.columns.is_empty() => vec![alias.name.value.clone()],
                Some(_) => {
                    return Err(Error::unsupported("an alias of a table names no columns"));
                }
                None => name.parts.last().cloned().into_iter().collect(),
            };
            Ok((name, names))
        }
        TableFactor::Derived { .. } => Err(Error::unsupported(
            "subqueries are not supported: run the inner statement first, and `copy` its answer to a file",
        )
        .at(factor.span())),
        other => Err(Error::unsupported(
            "a table is its name, or the name of a file in quotes: from 'flights.csv'",
        )
        .at(other.span())),
    }
}

/// The parts of a name.
pub(crate) fn table_name(name: &ast::ObjectName) -> Result<TableName> {
    let part = |part: &ast::ObjectNamePart| match part {
        ast::ObjectNamePart::Identifier(ident) => Ok((ident.value.clone(), ident.quote_style)),
        ast::ObjectNamePart::Function(_) => Err(Error::unsupported("a table is its name")),
    };
    let parts = name.0.iter().map(part).collect::<Result<Vec<_>>>()?;
    let is_file = matches!(&parts[..], [(_, Some('\''))]);
    Ok(TableName { parts: parts.into_iter().map(|(part, _)| part).collect(), is_file })
}

/// Refuses what would have no effect.
fn expect_plain(select: &Select) -> Result<()> {
    let Select {
        top,
        exclude,
        into,
        lateral_views,
        prewhere,
        connect_by,
        cluster_by,
        distribute_by,
        sort_by,
        named_window,
        qualify,
        value_table_mode,
        select_modifiers,
        ..
    } = select;
    for (is_there, what) in [
        (top.is_some(), "`top` is not supported: use limit"),
        (exclude.is_some(), "`exclude` stands behind `*`"),
        (into.is_some(), "`into` is not supported: use insert"),
        (!lateral_views.is_empty(), "lateral views are not supported"),
        (prewhere.is_some(), "`prewhere` is not supported: use where"),
        (!connect_by.is_empty(), "`connect by` is not supported"),
        (!cluster_by.is_empty(), "`cluster by` is not supported"),
        (!distribute_by.is_empty(), "`distribute by` is not supported"),
        (!sort_by.is_empty(), "`sort by` is not supported: use order by"),
        (!named_window.is_empty(), "windows are not supported"),
        (qualify.is_some(), "`qualify` is not supported: use having"),
        (value_table_mode.is_some(), "`as struct` and `as value` are not supported"),
        (select_modifiers.is_some(), "modifiers behind `select` are not supported"),
    ] {
        if is_there {
            return Err(Error::unsupported(what).at(select.span()));
        }
    }
    Ok(())
}

/// A result: what it is called, and its expression.
type Named = (String, Expr);

/// The results of a `select`, with `*` written out.
fn results(select: &Select, source: &dyn Source, tables: &[String]) -> Result<Vec<Named>> {
    let mut named = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) => named.push((name_of(expr), expr.clone())),
            SelectItem::ExprWithAlias { expr, alias } => {
                named.push((alias.value.clone(), expr.clone()));
            }
            SelectItem::Wildcard(options) => named.extend(every_column(source, options)?),
            SelectItem::QualifiedWildcard(kind, options) => {
                let name = kind.to_string();
                if !tables.iter().any(|known| name.eq_ignore_ascii_case(&format!("{known}.*"))) {
                    return Err(
                        Error::meaning(format!("no table is called so: `{name}`")).at(item.span())
                    );
                }
                named.extend(every_column(source, options)?);
            }
            SelectItem::ExprWithAliases { .. } => {
                return Err(Error::unsupported("a result has one name").at(item.span()));
            }
        }
    }
    Ok(named)
}

/// The name of a result that has none of its own: as it was written.
fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => ident.value.clone(),
        Expr::CompoundIdentifier(parts) => {
            parts.last().map(|part| part.value.clone()).unwrap_or_default()
        }
        Expr::Nested(inner) => name_of(inner),
        other => other.to_string(),
    }
}

fn every_column(
    source: &dyn Source,
    options: &ast::WildcardAdditionalOptions,
) -> Result<Vec<Named>> {
    let ast::WildcardAdditionalOptions {
        opt_ilike: None,
        opt_exclude,
        opt_except: None,
        opt_replace: None,
        opt_rename: None,
        opt_alias: None,
        ..
    } = options
    else {
        return Err(Error::unsupported("behind `*` there is `exclude (a, b)` alone"));
    };
    let columns = source.columns();
    let mut is_left_out = vec![false; columns.len()];
    let excluded = match opt_exclude {
        None => Vec::new(),
        Some(ast::ExcludeSelectItem::Single(name)) => vec![name.clone()],
        Some(ast::ExcludeSelectItem::Multiple(names)) => names.clone(),
    };
    for name in excluded {
        let [ast::ObjectNamePart::Identifier(name)] = &name.0[..] else {
            return Err(Error::meaning("`exclude` names columns"));
        };
        match find_column(columns, &name.value)? {
            Some(column) => is_left_out[column] = true,
            None => {
                let what = format!("no column is called `{}`", name.value);
                return Err(Error::meaning(what).at(name.span));
            }
        }
    }
    if columns.is_empty() {
        return Err(Error::meaning("`*` stands for the columns of a table, and there is none"));
    }
    let kept = columns.iter().zip(is_left_out).filter(|(_, is_left_out)| !is_left_out);
    Ok(kept
        .map(|(column, _)| {
            let name = ast::Ident::with_quote('"', &column.name);
            (column.name.clone(), Expr::Identifier(name))
        })
        .collect())
}

/// The plan of a `select` over a source.
pub(crate) fn bind_select(
    query: &Query,
    select: &Select,
    source: &dyn Source,
    tables: Vec<String>,
    moment: i64,
) -> Result<Plan> {
    expect_plain(select)?;
    let named = results(select, source, &tables)?;
    let aliases = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } => Some((alias.value.clone(), expr.clone())),
        _ => None,
    });
    let aliases: Vec<Named> = aliases.collect();
    let columns = source.columns();
    let rows_scope = Scope { columns, tables: tables.clone(), aliases: Vec::new(), moment };
    let scope = Scope { columns, tables, aliases, moment };
    let mut words = Words::default();

    let filter = match &select.selection {
        None => None,
        Some(condition) => {
            words.filter = Some(condition.to_string());
            Some(Binder::of_rows(&rows_scope).condition(condition)?)
        }
    };
    let group_exprs = groups(select, &named, &scope)?;
    let order_exprs = order(query)?;
    let is_grouped = group_exprs.is_some()
        || select.having.is_some()
        || named.iter().any(|(_, expr)| has_aggregate(expr))
        || order_exprs.iter().any(|it| has_aggregate(&it.expr));
    words.groups = group_exprs.iter().flatten().map(ToString::to_string).collect();
    let by = group_exprs.unwrap_or_default();
    let by = by.iter().map(|expr| Binder::of_rows(&scope).bind(expr));
    let by: Vec<Node> = by.collect::<Result<_>>()?;
    if let Some(by) = by.iter().find(|by| !by.kind.is_ordered()) {
        return Err(Error::unsupported("rows are not grouped by arrays").at(by.at));
    }
    let mut binder = match is_grouped {
        true => Binder::of_groups(&scope, by.clone()),
        false => Binder::of_rows(&scope),
    };
    let mut outputs = Vec::with_capacity(named.len());
    for (name, expr) in &named {
        outputs.push(Output { name: name.clone(), node: binder.bind(expr)? });
    }
    let having = match &select.having {
        None => None,
        Some(having) => {
            words.having = Some(having.to_string());
            Some(binder.condition(having)?)
        }
    };
    let is_distinct = match &select.distinct {
        None | Some(Distinct::All) => false,
        Some(Distinct::Distinct) => true,
        Some(Distinct::On(_)) => {
            return Err(Error::unsupported(
                "`distinct on` is not supported: group by, and min or max",
            ));
        }
    };
    let mut keys = Vec::new();
    for item in &order_exprs {
        words.order.push(item.to_string());
        let node = order_node(item, &outputs, &mut binder)?;
        if !node.kind.is_ordered() {
            return Err(Error::meaning("an array has no order").at(node.at));
        }
        let (direction, nulls) = order_of(&item.options)?;
        keys.push(OrderKey { node, direction, nulls });
    }
    let grouping = match binder.level {
        Level::Rows => None,
        Level::Groups { calls, .. } => Some(Grouping { by, calls }),
    };
    let (limit, offset) = limits(query, &scope)?;
    let mut plan = Plan {
        request: Request { keys: key_filter(source, filter.as_ref()), ..Request::default() },
        filter,
        grouping,
        having,
        outputs,
        is_distinct,
        order: keys,
        limit,
        offset,
        words,
    };
    plan.settle_distinct()?;
    plan.settle_columns();
    Ok(plan)
}

impl Plan {
    /// Rows that are to differ are groups by all results; what is grouped already is looked through afterwards.
    fn settle_distinct(&mut self) -> Result<()> {
        if !self.is_distinct {
            return Ok(());
        }
        for key in &mut self.order {
            let Some(output) = self.outputs.iter().position(|it| it.node == key.node) else {
                return Err(Error::meaning(
                    "rows that differ are sorted by what is selected: add this to the select",
                )
                .at(key.node.at));
            };
            key.node = Node::column(output, key.node.kind.clone(), key.node.at);
        }
        if self.grouping.is_none() {
            let by: Vec<Node> = self.outputs.iter().map(|output| output.node.clone()).collect();
            for (group, output) in self.outputs.iter_mut().enumerate() {
                output.node = Node::column(group, output.node.kind.clone(), output.node.at);
            }
            self.grouping = Some(Grouping { by, calls: Vec::new() });
            self.is_distinct = false;
        }
        Ok(())
    }

    /// The names of the rows for which a filter is true, which is over all columns; of all rows, where there is none.
    pub(crate) fn names_where(filter: Option<Node>, keys: KeyFilter) -> Plan {
        let request = Request { columns: Vec::new(), keys, with_ids: true };
        let mut plan = Plan {
            request,
            filter,
            grouping: None,
            having: None,
            outputs: Vec::new(),
            is_distinct: false,
            order: Vec::new(),
            limit: None,
            offset: 0,
            words: Words::default(),
        };
        plan.settle_columns();
        plan
    }

    /// Asks the source for the columns that are read, and gives nodes their numbers among these.
    fn settle_columns(&mut self) {
        let mut read = std::collections::BTreeSet::new();
        self.of_rows(&mut |node| {
            node.columns(&mut |column| {
                read.insert(column);
            })
        });
        let columns: Vec<usize> = read.into_iter().collect();
        let number = |column: usize| columns.binary_search(&column).expect("it is read");
        self.of_rows(&mut |node| node.renumber(&number));
        self.request.columns = columns;
    }

    /// Calls `visit` with each node that is over columns of the source.
    fn of_rows(&mut self, visit: &mut dyn FnMut(&mut Node)) {
        self.filter.iter_mut().for_each(&mut *visit);
        match &mut self.grouping {
            Some(Grouping { by, calls }) => {
                by.iter_mut().for_each(&mut *visit);
                for call in calls {
                    let parts =
                        call.input.iter_mut().chain(&mut call.second).chain(&mut call.filter);
                    parts.for_each(&mut *visit);
                }
            }
            None => {
                self.outputs.iter_mut().for_each(|output| visit(&mut output.node));
                self.order.iter_mut().for_each(|key| visit(&mut key.node));
            }
        }
    }
}

/// The expressions that rows are grouped by; none if there is no `group by`.
fn groups(select: &Select, named: &[Named], scope: &Scope<'_>) -> Result<Option<Vec<Expr>>> {
    let exprs = match &select.group_by {
        GroupByExpr::Expressions(exprs, modifiers) if modifiers.is_empty() => exprs,
        GroupByExpr::All(modifiers) if modifiers.is_empty() => {
            // All results that are no aggregates.
            let plain = named.iter().filter(|(_, expr)| !has_aggregate(expr));
            return Ok(Some(plain.map(|(_, expr)| expr.clone()).collect()));
        }
        _ => return Err(Error::unsupported("modifiers of `group by` are not supported")),
    };
    if exprs.is_empty() {
        return Ok(None);
    }
    let expr = |expr: &Expr| match expr {
        Expr::Value(value) if matches!(value.value, ast::Value::Number(..)) => {
            Ok(numbered(expr, named)?.1.clone())
        }
        Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) => {
            Err(Error::unsupported("rollup, cube and grouping sets are not supported")
                .at(expr.span()))
        }
        // A result with this name, unless a column is called so.
        Expr::Identifier(name) if find_column(scope.columns, &name.value)?.is_none() => {
            let alias = scope.aliases.iter().find(|(it, _)| it.eq_ignore_ascii_case(&name.value));
            Ok(alias.map_or_else(|| expr.clone(), |(_, aliased)| aliased.clone()))
        }
        other => Ok(other.clone()),
    };
    Ok(Some(exprs.iter().map(expr).collect::<Result<_>>()?))
}

/// The result that a number stands for, from 1.
fn numbered<'n>(expr: &Expr, named: &'n [Named]) -> Result<&'n Named> {
    let number = expr.to_string().parse::<usize>().ok();
    let found = number.and_then(|number| named.get(number.checked_sub(1)?));
    found.ok_or_else(|| {
        let what = format!("there are results 1 to {}, and this is {expr}", named.len());
        Error::meaning(what).at(expr.span())
    })
}

fn order(query: &Query) -> Result<Vec<ast::OrderByExpr>> {
    let Some(order) = &query.order_by else { return Ok(Vec::new()) };
    if order.interpolate.is_some() {
        return Err(Error::unsupported("`interpolate` is not supported"));
    }
    match &order.kind {
        OrderByKind::Expressions(exprs) => {
            if let Some(expr) = exprs.iter().find(|expr| expr.with_fill.is_some()) {
                return Err(Error::unsupported("`with fill` is not supported").at(expr.span()));
            }
            Ok(exprs.clone())
        }
        OrderByKind::All(_) => {
            Err(Error::unsupported("`order by all` is not supported: 1, 2, ..."))
        }
    }
}

/// A number or a name of a result stands for that; others are expressions.
fn order_node(
    item: &ast::OrderByExpr,
    outputs: &[Output],
    binder: &mut Binder<'_>,
) -> Result<Node> {
    match &item.expr {
        Expr::Value(value) if matches!(value.value, ast::Value::Number(..)) => {
            let number = item.expr.to_string().parse::<usize>().ok();
            let found = number.and_then(|number| outputs.get(number.checked_sub(1)?));
            found.map(|output| output.node.clone()).ok_or_else(|| {
                let what =
                    format!("there are results 1 to {}, and this is {}", outputs.len(), item.expr);
                Error::meaning(what).at(item.expr.span())
            })
        }
        Expr::Identifier(name) => {
            let mut named = outputs.iter().filter(|it| it.name.eq_ignore_ascii_case(&name.value));
            match named.next() {
                Some(output) => Ok(output.node.clone()),
                None => binder.bind(&item.expr),
            }
        }
        expr => binder.bind(expr),
    }
}

fn limits(query: &Query, scope: &Scope<'_>) -> Result<(Option<u64>, u64)> {
    let mut count = |expr: &Expr| {
        let node = Binder::of_rows(scope).bind(expr)?;
        match node.as_constant() {
            Some(Value::Int(count)) if *count >= 0 => {
                Ok(Some(u64::try_from(*count).unwrap_or(u64::MAX)))
            }
            Some(Value::Null) => Ok(None),
            _ => Err(Error::meaning("a number of rows is expected").at(expr.span())),
        }
    };
    let (limit, offset) = match &query.limit_clause {
        None => (None, 0),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
            if !limit_by.is_empty() {
                return Err(Error::unsupported("`limit by` is not supported"));
            }
            let limit = limit.as_ref().map(&mut count).transpose()?.flatten();
            let offset = offset.as_ref().map(|offset| count(&offset.value)).transpose()?;
            (limit, offset.flatten().unwrap_or(0))
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
            (count(limit)?, count(offset)?.unwrap_or(0))
        }
    };
    match &query.fetch {
        Some(fetch) if limit.is_none() => {
            let rows = fetch.quantity.as_ref().map(&mut count).transpose()?.flatten();
            Ok((Some(rows.unwrap_or(1)), offset))
        }
        Some(_) => Err(Error::meaning("`limit` and `fetch` say the same: one of them is enough")),
        None => Ok((limit, offset)),
    }
}

/// Whether an expression has an aggregate in it.
fn has_aggregate(expr: &Expr) -> bool {
    crate::bind::has_aggregate(expr)
}

//! Names become columns, and expressions get types.

mod aggregate;
mod call;
mod operators;

use std::collections::HashSet;

use sapwood_schema::{
    Batch, Precision, SourceColumn, Type, Value, Vector, date_of_text, decimal_of_text, nearest,
    timestamp_of_text,
};
use sqlparser::ast::{self, CastKind, Expr, Spanned, UnaryOperator};
use sqlparser::tokenizer::Span;

use crate::convert::{can_convert, convert_value};
use crate::error::{Error, Result};
use crate::evaluate::evaluate;
use crate::functions::Function;
use crate::group::encode_value;
use crate::kind::Kind;
use crate::like::{Case, Pattern};
use crate::node::{Comparison, Members, Node, OnFailure, Op};
use crate::states::AggregateCall;
use crate::time::{Field, Interval, Unit};

/// The names of all functions and aggregates that statements may call, for completion.
///
/// ```
/// assert!(sapwood::sql::function_names().any(|name| name == "median"));
/// ```
pub fn function_names() -> impl Iterator<Item = &'static str> {
    call::NAMES.iter().chain(aggregate::NAMES).copied()
}

pub(crate) use aggregate::has_aggregate;

/// The columns that names stand for.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) columns: &'a [SourceColumn],
    /// What may stand before the dot of a column.
    pub(crate) tables: Vec<String>,
    /// Names of results, which stand for their expressions where no column is called so.
    pub(crate) aliases: Vec<(String, Expr)>,
    /// The moment of the statement, for `now()`: microseconds since 1970.
    pub(crate) moment: i64,
}

/// Whether expressions are of rows, or of groups of rows.
#[derive(Debug)]
pub(crate) enum Level {
    Rows,
    /// Groups by these expressions; aggregates are collected.
    Groups {
        by: Vec<Node>,
        calls: Vec<AggregateCall>,
    },
}

/// Binds expressions of one statement.
#[derive(Debug)]
pub(crate) struct Binder<'a> {
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) level: Level,
    /// Names of results that are being looked up: one does not stand for itself.
    open: Vec<String>,
}

impl<'a> Binder<'a> {
    pub(crate) fn of_rows(scope: &'a Scope<'a>) -> Binder<'a> {
        Binder { scope, level: Level::Rows, open: Vec::new() }
    }

    pub(crate) fn of_groups(scope: &'a Scope<'a>, by: Vec<Node>) -> Binder<'a> {
        Binder { scope, level: Level::Groups { by, calls: Vec::new() }, open: Vec::new() }
    }

    /// A condition, which is a truth value.
    pub(crate) fn condition(&mut self, expr: &Expr) -> Result<Node> {
        let node = self.bind(expr)?;
        self.expect_truth(node)
    }

    pub(crate) fn bind(&mut self, expr: &Expr) -> Result<Node> {
        if let Level::Groups { by, .. } = &self.level
            && !by.is_empty()
            && let Ok(node) = Binder::of_rows(self.scope).bind(expr)
            && let Some(group) = by.iter().position(|by| *by == node)
        {
            return Ok(Node::column(group, node.kind, expr.span()));
        }
        let at = expr.span();
        let node = self.bind_parts(expr, at).map_err(|error| error.at(at))?;
        Ok(folded(node))
    }

    fn bind_parts(&mut self, expr: &Expr, at: Span) -> Result<Node> {
        match expr {
            Expr::Identifier(name) => self.column(None, name, at),
            Expr::CompoundIdentifier(parts) => self.dotted(parts, at),
            Expr::Nested(inner) => self.bind(inner),
            Expr::Value(value) => literal(&value.value, at),
            Expr::TypedString(typed) => {
                let kind = Kind::of_type(&type_of(&typed.data_type)?);
                let text = Node::constant(Value::text(text_literal(&typed.value.value)?), at);
                self.cast(text, &kind, OnFailure::Refuse, at)
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => self.negate(expr, at),
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => {
                let node = self.bind(expr)?;
                self.expect_number(node, "+")
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
                let node = self.condition(expr)?;
                Ok(Node::truth(Op::Not(Box::new(node)), at))
            }
            Expr::UnaryOp { op, .. } => {
                Err(Error::unsupported(format!("the operator `{op}` is not supported")))
            }
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right, at),
            Expr::IsNull(inner) => self.is_null(inner, at),
            Expr::IsNotNull(inner) => {
                let is_null = self.is_null(inner, at)?;
                Ok(Node::truth(Op::Not(Box::new(is_null)), at))
            }
            Expr::IsTrue(inner) => self.is_truth(inner, true, at),
            Expr::IsFalse(inner) => self.is_truth(inner, false, at),
            Expr::IsNotTrue(inner) => {
                let is_true = self.is_truth(inner, true, at)?;
                Ok(Node::truth(Op::Not(Box::new(is_true)), at))
            }
            Expr::IsNotFalse(inner) => {
                let is_false = self.is_truth(inner, false, at)?;
                Ok(Node::truth(Op::Not(Box::new(is_false)), at))
            }
            Expr::IsUnknown(inner) => self.is_null(inner, at),
            Expr::IsNotUnknown(inner) => {
                let is_null = self.is_null(inner, at)?;
                Ok(Node::truth(Op::Not(Box::new(is_null)), at))
            }
            Expr::IsDistinctFrom(left, right) => {
                let same = self.same(left, right, at)?;
                Ok(Node::truth(Op::Not(Box::new(same)), at))
            }
            Expr::IsNotDistinctFrom(left, right) => self.same(left, right, at),
            Expr::Between { expr, negated, low, high } => {
                let value = self.bind(expr)?;
                let (low, high) = (self.bind(low)?, self.bind(high)?);
                let low = self.compare(Comparison::GreaterOrEqual, value.clone(), low, at)?;
                let high = self.compare(Comparison::LessOrEqual, value, high, at)?;
                Ok(negated_if(*negated, Node::truth(Op::And(vec![low, high]), at)))
            }
            Expr::In { expr, target: ast::InTarget::List(list), negated, global: false } => {
                let is_in = self.is_in(expr, list, at)?;
                Ok(negated_if(*negated, is_in))
            }
            Expr::In { .. } | Expr::Exists { .. } | Expr::Subquery(_) => Err(Error::unsupported(
                "subqueries are not supported: run the inner one first, and put what it answers into a \
                 list",
            )),
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                let like = self.like(expr, pattern, escape_char.as_deref(), Case::Sensitive, at)?;
                Ok(negated_if(*negated, like))
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char } => {
                let like =
                    self.like(expr, pattern, escape_char.as_deref(), Case::Insensitive, at)?;
                Ok(negated_if(*negated, like))
            }
            Expr::SimilarTo { .. } | Expr::RLike { .. } => {
                Err(Error::unsupported("regular expressions are not supported: use `like`"))
            }
            Expr::Cast { kind, expr, data_type, format: None } => {
                let on_failure = match kind {
                    CastKind::TryCast | CastKind::SafeCast => OnFailure::Null,
                    CastKind::Cast | CastKind::DoubleColon => OnFailure::Refuse,
                };
                let node = self.bind(expr)?;
                let wanted = type_of(data_type)?;
                let converted = self.cast(node, &Kind::of_type(&wanted), on_failure, at)?;
                Ok(narrowed(converted, wanted, on_failure, at))
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), at)
            }
            Expr::Extract { field, expr, .. } => {
                let value = self.bind(expr)?;
                self.extract(&field.to_string(), value, at)
            }
            Expr::Ceil { expr, field } => self.whole("ceil", expr, field, at),
            Expr::Floor { expr, field } => self.whole("floor", expr, field, at),
            Expr::Position { expr, r#in } => {
                let (part, whole) = (self.bind(expr)?, self.bind(r#in)?);
                self.call("strpos", vec![whole, part], at)
            }
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let whole = self.bind(expr)?;
                let from = match substring_from {
                    Some(from) => self.bind(from)?,
                    None => Node::constant(Value::Int(1), at),
                };
                let mut parts = vec![whole, from];
                if let Some(count) = substring_for {
                    parts.push(self.bind(count)?);
                }
                self.call("substring", parts, at)
            }
            Expr::Trim { expr, trim_where, trim_what, trim_characters } => {
                let mut parts = vec![self.bind(expr)?];
                if let Some(what) = trim_what {
                    parts.push(self.bind(what)?);
                }
                for letters in trim_characters.iter().flatten() {
                    parts.push(self.bind(letters)?);
                }
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                    Some(ast::TrimWhereField::Both) | None => "trim",
                };
                self.call(name, parts, at)
            }
            Expr::Interval(_) => Err(Error::unsupported(
                "an interval stands behind `+` or `-` and a date or a timestamp alone",
            )),
            Expr::Function(function) => self.function(function, at),
            Expr::CompoundFieldAccess { root, access_chain } => self.item(root, access_chain, at),
            Expr::Tuple(_) => {
                Err(Error::unsupported("tuples are not supported: compare each part"))
            }
            other => Err(Error::unsupported(format!("`{other}` is not supported"))),
        }
    }

    /// The column that names with dots between stand for: that of a table, or one with dots in its
    /// name.
    fn dotted(&mut self, parts: &[ast::Ident], at: Span) -> Result<Node> {
        let Scope { columns, tables, .. } = self.scope;
        let is_table = |name: &str| tables.iter().any(|known| known.eq_ignore_ascii_case(name));
        match parts {
            [name] => self.column(None, name, at),
            [table, name] if is_table(&table.value) => self.column(Some(&table.value), name, at),
            parts => {
                let of = |parts: &[ast::Ident]| {
                    let names: Vec<&str> = parts.iter().map(|part| &part.value[..]).collect();
                    ast::Ident::new(names.join("."))
                };
                let (all, behind) = (of(parts), of(&parts[1..]));
                let is_there = |name: &ast::Ident| {
                    find_column(columns, &name.value).map(|found| found.is_some())
                };
                let table = &parts[0].value;
                if is_there(&all)? {
                    return self.column(None, &all, at);
                }
                if is_table(table) && is_there(&behind)? {
                    return self.column(Some(table), &behind, at);
                }
                match parts {
                    [table, name] => self.column(Some(&table.value), name, at),
                    _ => Err(Error::meaning(format!(
                        "no column is called `{all}`: a column is named as `column` or `table.column`"
                    ))),
                }
            }
        }
    }

    /// The column that a name stands for, or the expression whose result is called so.
    fn column(&mut self, table: Option<&str>, name: &ast::Ident, at: Span) -> Result<Node> {
        let Scope { columns, tables, aliases, .. } = self.scope;
        if let Some(table) = table
            && !tables.iter().any(|known| known.eq_ignore_ascii_case(table))
        {
            let known: Vec<_> = tables.iter().map(|known| format!("`{known}`")).collect();
            return Err(Error::meaning(format!(
                "no table is called `{table}` here: there is {}",
                known.join(", ")
            )));
        }
        if let Some(column) = find_column(columns, &name.value)? {
            if let Level::Groups { by, .. } = &self.level {
                let name = &columns[column].name;
                let what = match by.is_empty() {
                    true => format!(
                        "`{name}` has a value for each row, and there is one result for all: group by \
                         it, or take an aggregate of it, such as min({name})"
                    ),
                    false => format!(
                        "`{name}` has a value for each row, and rows are grouped by other columns: \
                         group by it, too, or take an aggregate of it, such as min({name})"
                    ),
                };
                return Err(Error::meaning(what));
            }
            return Ok(Node::column(column, Kind::of_type(&columns[column].kind), at));
        }
        let alias = aliases.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(&name.value));
        if let Some((alias, expr)) = alias
            && table.is_none()
            && !self.open.contains(alias)
        {
            self.open.push(alias.clone());
            let bound = self.bind(expr);
            self.open.pop();
            return bound;
        }
        let names = columns.iter().map(|column| column.name.as_str());
        let names = names.chain(aliases.iter().map(|(alias, _)| alias.as_str()));
        let mut what = format!("no column is called `{}`", name.value);
        match nearest(&name.value, names) {
            Some(near) => what.push_str(&format!(": did you mean `{near}`?")),
            None if columns.is_empty() => {}
            None => {
                let shown: Vec<_> = columns.iter().take(20).map(|it| it.name.as_str()).collect();
                let more = if columns.len() > shown.len() { ", ..." } else { "" };
                what.push_str(&format!(": there are {}{more}", shown.join(", ")));
            }
        }
        if name.quote_style == Some('"') {
            what.push_str(&format!(" (a text stands in single quotes: '{}')", name.value));
        }
        Err(Error::meaning(what))
    }

    fn is_null(&mut self, inner: &Expr, at: Span) -> Result<Node> {
        let node = self.bind(inner)?;
        Ok(Node::truth(Op::IsNull(Box::new(node)), at))
    }

    fn is_truth(&mut self, inner: &Expr, truth: bool, at: Span) -> Result<Node> {
        let node = self.condition(inner)?;
        let wanted = Node::constant(Value::Bool(truth), at);
        Ok(Node::truth(Op::Same(Box::new(node), Box::new(wanted)), at))
    }

    fn same(&mut self, left: &Expr, right: &Expr, at: Span) -> Result<Node> {
        let (left, right) = (self.bind(left)?, self.bind(right)?);
        let (left, right, _) = self.meet_to_compare(left, right, at)?;
        Ok(Node::truth(Op::Same(Box::new(left), Box::new(right)), at))
    }

    fn is_in(&mut self, expr: &Expr, list: &[Expr], at: Span) -> Result<Node> {
        let value = self.bind(expr)?;
        let items = list.iter().map(|item| self.bind(item));
        let items: Vec<Node> = items.collect::<Result<_>>()?;
        // Whole numbers that no value of the other kind equals are no members.
        let is_possible = |item: &Node| match (&value.kind, item.as_constant()) {
            (Kind::Huge, Some(Value::Int(number))) => *number >= 0,
            (Kind::Int | Kind::Big, Some(Value::Huge(_))) => false,
            (Kind::Real, Some(number @ (Value::Int(_) | Value::Huge(_)))) => {
                let real = number.clone().to_type(&Type::F32);
                real.is_ok_and(|real| {
                    real.to_type(&Type::F64) == number.clone().to_type(&Type::F64)
                })
            }
            _ => true,
        };
        let items = items.into_iter().filter(is_possible).map(|item| {
            let is_real = value.kind == Kind::Real && item.as_constant().is_some();
            match item.kind {
                Kind::Int | Kind::Big | Kind::Huge if is_real => {
                    folded(converted(item, &Kind::Real))
                }
                _ => item,
            }
        });
        let items: Vec<Node> = items.collect();
        // All become one kind, in which the value may be compared with each of them.
        let mut kind = value.kind.clone();
        for item in &items {
            let (_, _, compared) = self.meet_to_compare(value.clone(), item.clone(), item.at)?;
            kind = match kind.common(&compared) {
                Some(kind) => kind,
                None => return Err(two_kinds(&kind, &item.kind).at(item.at)),
            };
        }
        let value = converted(value, &kind);
        let items = items.into_iter().map(|item| {
            let at = item.at;
            self.cast(item, &kind, OnFailure::Refuse, at).map(folded)
        });
        let items: Vec<Node> = items.collect::<Result<_>>()?;
        if items.iter().any(|item| item.as_constant().is_none()) {
            let compare = |item: Node| {
                let at = item.at;
                Node::truth(
                    Op::Compare(Comparison::Equal, Box::new(value.clone()), Box::new(item)),
                    at,
                )
            };
            return Ok(Node::truth(Op::Or(items.into_iter().map(compare).collect()), at));
        }
        let mut members = Members { values: Vec::new(), encoded: HashSet::new(), has_null: false };
        for item in items {
            match item.op {
                Op::Constant(Value::Null) => members.has_null = true,
                Op::Constant(value) => {
                    let mut vector = Vector::new(kind.data());
                    vector.push_value(&value);
                    let mut bytes = Vec::new();
                    encode_value(&vector, 0, &mut bytes);
                    members.encoded.insert(bytes);
                    members.values.push(value);
                }
                _ => unreachable!("all are constants"),
            }
        }
        Ok(Node::truth(Op::In(Box::new(value), members), at))
    }

    fn like(
        &mut self,
        expr: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
        case: Case,
        at: Span,
    ) -> Result<Node> {
        let value = self.bind(expr)?;
        let value = self.expect_text(value, "like")?;
        let pattern = self.bind(pattern)?;
        let escape = match escape.map(|escape| self.bind(escape)).transpose()? {
            None => None,
            Some(node) => match node.as_constant() {
                Some(Value::Text(text)) if text.chars().count() == 1 => text.chars().next(),
                _ => return Err(Error::meaning("`escape` takes one letter in quotes").at(node.at)),
            },
        };
        match pattern.as_constant() {
            Some(Value::Text(text)) => {
                let pattern = Pattern::new(text, escape, case);
                let pattern = pattern.map_err(|what| Error::meaning(what).at(at))?;
                Ok(Node::truth(Op::Like(Box::new(value), Box::new(pattern)), at))
            }
            Some(Value::Null) => Ok(Node { kind: Kind::Bool, ..Node::constant(Value::Null, at) }),
            _ => Err(Error::unsupported(
                "a pattern of `like` is a text in quotes: others use starts_with, ends_with or contains",
            )
            .at(pattern.at)),
        }
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&Expr>,
        at: Span,
    ) -> Result<Node> {
        let operand = operand.map(|operand| self.bind(operand)).transpose()?;
        let mut branches = Vec::with_capacity(conditions.len());
        for ast::CaseWhen { condition, result } in conditions {
            let condition = match &operand {
                None => self.condition(condition)?,
                Some(operand) => {
                    let value = self.bind(condition)?;
                    self.compare(Comparison::Equal, operand.clone(), value, condition.span())?
                }
            };
            branches.push((condition, self.bind(result)?));
        }
        let otherwise = match otherwise {
            Some(otherwise) => self.bind(otherwise)?,
            None => Node::constant(Value::Null, at),
        };
        self.case_of(branches, otherwise, at)
    }

    /// A case whose results become one kind.
    fn case_of(&mut self, branches: Vec<(Node, Node)>, otherwise: Node, at: Span) -> Result<Node> {
        let (conditions, mut results): (Vec<Node>, Vec<Node>) = branches.into_iter().unzip();
        results.push(otherwise);
        let (mut results, kind) = self.unite(results)?;
        let otherwise = results.pop().expect("it was pushed");
        let branches = conditions.into_iter().zip(results).collect();
        Ok(Node { op: Op::Case(branches, Box::new(otherwise)), kind, at })
    }

    /// Expressions that become one kind.
    pub(crate) fn unite(&mut self, nodes: Vec<Node>) -> Result<(Vec<Node>, Kind)> {
        let mut kind = Kind::Null;
        // Constants in quotes become what the others are.
        for node in nodes.iter().filter(|node| !node.is_quoted()) {
            kind = match kind.common(&node.kind) {
                Some(kind) => kind,
                None => return Err(two_kinds(&kind, &node.kind).at(node.at)),
            };
        }
        if kind == Kind::Null && nodes.iter().any(|node| node.kind == Kind::Text) {
            kind = Kind::Text;
        }
        let convert = nodes.into_iter().map(|node| {
            let at = node.at;
            self.cast(node, &kind, OnFailure::Refuse, at).map(folded)
        });
        Ok((convert.collect::<Result<_>>()?, kind))
    }

    /// `ceil(x)` or `floor(x)`, which the grammar lets have a unit or digits.
    fn whole(
        &mut self,
        name: &str,
        expr: &Expr,
        field: &ast::CeilFloorKind,
        at: Span,
    ) -> Result<Node> {
        match field {
            ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) => {
                let value = self.bind(expr)?;
                self.call(name, vec![value], at)
            }
            ast::CeilFloorKind::DateTimeField(_) => Err(Error::unsupported(format!(
                "{name} is of numbers: date_trunc('day', x) is of dates and timestamps"
            ))),
            ast::CeilFloorKind::Scale(_) => Err(Error::unsupported(format!(
                "{name} takes one argument: {name}(x * 100) / 100 keeps two digits"
            ))),
        }
    }

    fn extract(&mut self, field: &str, value: Node, at: Span) -> Result<Node> {
        let Some(field) = Field::of_name(field) else {
            return Err(Error::meaning(format!(
                "no part of a date is called `{}`: there are {}",
                field.to_lowercase(),
                Field::NAMES
            )));
        };
        let value = self.expect_time(value, "extract")?;
        let kind = if field == Field::Epoch { Kind::Float } else { Kind::Int };
        Ok(Node { op: Op::Function(Function::Extract(field), vec![value]), kind, at })
    }

    fn item(&mut self, root: &Expr, chain: &[ast::AccessExpr], at: Span) -> Result<Node> {
        let root = self.bind(root)?;
        match (&root.kind, chain) {
            (
                Kind::Array(Type::Array(item, count)),
                [ast::AccessExpr::Subscript(ast::Subscript::Index { index })],
            ) => {
                let index = self.bind(index)?;
                let index = self.cast(index, &Kind::Int, OnFailure::Refuse, at)?;
                let kind = Kind::of_type(item);
                let function = Function::Item((**item).clone(), *count);
                Ok(Node { op: Op::Function(function, vec![root, index]), kind, at })
            }
            (Kind::Array(_), _) => Err(Error::unsupported("an array has items: a[1] is the first")),
            (kind, _) => Err(Error::meaning(format!("a {kind} has no items"))),
        }
    }

    /// A value in a kind, as a cast or where it must be one.
    fn cast(&mut self, node: Node, kind: &Kind, on_failure: OnFailure, at: Span) -> Result<Node> {
        if node.kind == *kind {
            return Ok(node);
        }
        if !can_convert(&node.kind, kind) {
            return Err(
                Error::meaning(format!("a {} cannot become a {kind}", node.kind)).at(node.at)
            );
        }
        // A text in quotes is read now, and with all the digits that it has.
        if let Some(Value::Text(text)) = node.as_constant()
            && on_failure == OnFailure::Refuse
        {
            return match constant_of_text(text, kind) {
                Some(value) => {
                    Ok(Node { op: Op::Constant(value), kind: kind.clone(), at: node.at })
                }
                None => {
                    let what = format!("text '{}' cannot be a {kind}", text.escape_debug());
                    Err(Error::value(what).at(node.at))
                }
            };
        }
        Ok(Node { op: Op::Convert(Box::new(node), on_failure), kind: kind.clone(), at })
    }

    fn expect_truth(&self, node: Node) -> Result<Node> {
        match node.kind {
            Kind::Bool => Ok(node),
            Kind::Null => Ok(converted(node, &Kind::Bool)),
            kind => Err(Error::meaning(format!(
                "a condition is true or false, and this is a {kind}: compare it with something"
            ))
            .at(node.at)),
        }
    }

    fn expect_number(&self, node: Node, what: &str) -> Result<Node> {
        match node.kind {
            Kind::Null => Ok(converted(node, &Kind::Int)),
            _ if node.kind.is_number() => Ok(node),
            kind => Err(Error::meaning(format!("`{what}` needs a number, and this is a {kind}"))
                .at(node.at)),
        }
    }

    fn expect_text(&self, node: Node, what: &str) -> Result<Node> {
        match node.kind {
            Kind::Text => Ok(node),
            Kind::Null => Ok(converted(node, &Kind::Text)),
            kind => Err(Error::meaning(format!(
                "`{what}` needs a text, and this is a {kind}: cast(... as text)"
            ))
            .at(node.at)),
        }
    }

    fn expect_time(&self, node: Node, what: &str) -> Result<Node> {
        match node.kind {
            _ if node.kind.is_time() => Ok(node),
            Kind::Null => Ok(converted(node, &Kind::Date)),
            kind => Err(Error::meaning(format!(
                "`{what}` needs a date or a timestamp, and this is a {kind}: cast(... as timestamp)"
            ))
            .at(node.at)),
        }
    }
}

fn negated_if(is_negated: bool, node: Node) -> Node {
    let at = node.at;
    match is_negated {
        true => Node::truth(Op::Not(Box::new(node)), at),
        false => node,
    }
}

fn two_kinds(left: &Kind, right: &Kind) -> Error {
    Error::meaning(format!("a {left} and a {right} do not go together: cast one of them"))
}

/// A value in a kind that it goes into without a question.
pub(crate) fn converted(node: Node, kind: &Kind) -> Node {
    if node.kind == *kind {
        return node;
    }
    let at = node.at;
    folded(Node { op: Op::Convert(Box::new(node), OnFailure::Refuse), kind: kind.clone(), at })
}

/// Refuses what a type narrower than the kind cannot have.
fn narrowed(node: Node, wanted: Type, on_failure: OnFailure, at: Span) -> Node {
    let is_narrow = match &wanted {
        Type::Int(bits) => *bits < 64,
        Type::UInt(bits) => *bits < 128,
        Type::Decimal { digits, .. } => *digits < sapwood_schema::DECIMAL_DIGITS_MAX,
        _ => false,
    };
    if !is_narrow {
        return node;
    }
    let kind = node.kind.clone();
    Node { op: Op::Function(Function::Narrow(wanted, on_failure), vec![node]), kind, at }
}

/// The column with a name: the very one, or the only one but for the case of letters.
pub(crate) fn find_column(columns: &[SourceColumn], name: &str) -> Result<Option<usize>> {
    if let Some(column) = columns.iter().position(|column| column.name == name) {
        return Ok(Some(column));
    }
    let folded = name.to_lowercase();
    let mut found = columns.iter().enumerate().filter(|(_, it)| it.name.to_lowercase() == folded);
    match (found.next(), found.next()) {
        (Some((column, _)), None) => Ok(Some(column)),
        (Some((_, first)), Some((_, second))) => Err(Error::meaning(format!(
            "`{name}` may be `{}` or `{}`: write one of them in double quotes",
            first.name, second.name
        ))),
        (None, _) => Ok(None),
    }
}

/// The same, computed if it is the same for all rows and has a value.
pub(crate) fn folded(node: Node) -> Node {
    let mut reads_rows = false;
    node.columns(&mut |_| reads_rows = true);
    if reads_rows || node.as_constant().is_some() {
        return node;
    }
    let batch = Batch { len: 1, columns: Vec::new(), ids: None };
    let Ok(vector) = evaluate(&node, &batch) else { return node };
    match vector.value(0, &node.kind.to_type()) {
        Ok(value) => Node { op: Op::Constant(value.into_owned()), kind: node.kind, at: node.at },
        Err(_) => node,
    }
}

/// A text in quotes as a value of a kind.
fn constant_of_text(text: &str, kind: &Kind) -> Option<Value<'static>> {
    let value = Value::text(text.to_owned());
    convert_value(&value, kind).map(Value::into_owned)
}

fn literal(value: &ast::Value, at: Span) -> Result<Node> {
    let value = match value {
        ast::Value::Number(digits, _) => number(digits)?,
        ast::Value::Boolean(value) => Value::Bool(*value),
        ast::Value::Null => Value::Null,
        ast::Value::HexStringLiteral(digits) => {
            let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
            let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
            let wrong = || Error::meaning("bytes are written as x'00ff': two digits each");
            Value::Bytes(bytes.ok_or_else(wrong)?.into())
        }
        text => Value::text(text_literal(text)?),
    };
    Ok(Node::constant(value, at))
}

fn text_literal(value: &ast::Value) -> Result<String> {
    match value {
        ast::Value::SingleQuotedString(text)
        | ast::Value::EscapedStringLiteral(text)
        | ast::Value::UnicodeStringLiteral(text)
        | ast::Value::NationalStringLiteral(text) => Ok(text.clone()),
        ast::Value::DollarQuotedString(text) => Ok(text.value.clone()),
        ast::Value::DoubleQuotedString(text) => {
            Err(Error::meaning(format!("a text stands in single quotes: '{text}'")))
        }
        other => Err(Error::unsupported(format!("{other} is not supported"))),
    }
}

/// Whole numbers, decimals with a point, and floats with an exponent.
fn number(digits: &str) -> Result<Value<'static>> {
    let digits = digits.replace('_', "");
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(rest) = digits.to_ascii_lowercase().strip_prefix(prefix) {
            let whole = u128::from_str_radix(rest, radix);
            let too_large = |_| Error::value(format!("{digits} is too large for uhugeint"));
            return whole.map(Value::from).map_err(too_large);
        }
    }
    if digits.contains(['e', 'E']) {
        return match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Value::Float(value)),
            _ => Err(Error::value(format!("{digits} is too large for double"))),
        };
    }
    match decimal_of_text(&digits) {
        Some((units, 0)) if !digits.contains('.') => Ok(Value::Int(units)),
        Some((units, scale)) => Ok(Value::Decimal { units, scale }),
        None if let Ok(whole) = digits.parse::<u128>() => Ok(Value::from(whole)),
        None => {
            Err(Error::value(format!("{digits} has more than 38 digits: write it as {digits}e0")))
        }
    }
}

/// The type of columns that SQL's name of a type stands for.
pub(crate) fn type_of(data_type: &ast::DataType) -> Result<Type> {
    let text = data_type.to_string().to_lowercase();
    let (word, arguments) = match text.split_once('(') {
        Some((word, rest)) => (word.trim(), rest.trim_end_matches(')')),
        None => (text.as_str(), ""),
    };
    let precision = |default| match arguments.trim() {
        "" => Some(default),
        "0" => Some(Precision::Seconds),
        "3" => Some(Precision::Millis),
        "6" => Some(Precision::Micros),
        "9" => Some(Precision::Nanos),
        _ => None,
    };
    let found = match word {
        "bool" | "boolean" | "logical" => Type::Bool,
        "tinyint" | "int1" => Type::Int(8),
        "smallint" | "int2" | "short" => Type::Int(16),
        "int" | "integer" | "int4" | "signed" => Type::Int(32),
        "bigint" | "int8" | "long" => Type::Int(64),
        "hugeint" | "int128" => Type::Int(128),
        "uhugeint" | "uint128" => Type::UInt(128),
        "utinyint" | "uint1" | "tinyint unsigned" => Type::UInt(8),
        "usmallint" | "uint2" | "smallint unsigned" => Type::UInt(16),
        "uinteger" | "uint4" | "int unsigned" | "integer unsigned" => Type::UInt(32),
        "ubigint" | "uint8" | "bigint unsigned" => Type::UInt(64),
        "real" | "float4" => Type::F32,
        "double" | "double precision" | "float8" | "float" => Type::F64,
        "decimal" | "numeric" | "dec" => {
            let mut digits = arguments.split(',').map(|digits| digits.trim().parse());
            match (digits.next(), digits.next()) {
                (Some(Ok(digits)), None) => Type::Decimal { digits, scale: 0 },
                (Some(Ok(digits)), Some(Ok(scale))) => Type::Decimal { digits, scale },
                // As DuckDB has it.
                _ if arguments.is_empty() => Type::Decimal { digits: 18, scale: 3 },
                _ => return Err(no_type(&text)),
            }
        }
        "date" => Type::Date,
        "timestamp" | "datetime" | "timestamp without time zone" => {
            Type::Timestamp(precision(Precision::Micros).ok_or_else(|| no_type(&text))?)
        }
        "timestamp_s" => Type::Timestamp(Precision::Seconds),
        "timestamp_ms" => Type::Timestamp(Precision::Millis),
        "timestamp_us" => Type::Timestamp(Precision::Micros),
        "timestamp_ns" => Type::Timestamp(Precision::Nanos),
        "text" | "varchar" | "char" | "string" | "character varying" | "bpchar" | "character" => {
            Type::Text
        }
        "blob" | "bytea" | "bytes" | "binary" | "varbinary" => Type::Bytes,
        _ => text.parse().map_err(|_| no_type(&text))?,
    };
    // Widths and digits are checked where the text of a type is read.
    found
        .to_string()
        .parse()
        .map_err(|error: sapwood_schema::Error| Error::meaning(error.to_string()))
}

fn no_type(text: &str) -> Error {
    Error::meaning(format!(
        "no type is called `{text}`: boolean, tinyint to hugeint, real, double, decimal(10,2), date, \
         timestamp, text, blob"
    ))
}

/// An interval behind a sign.
fn interval(interval: &ast::Interval) -> Result<Interval> {
    let ast::Interval {
        value,
        leading_field,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    } = interval
    else {
        return Err(Error::unsupported(
            "an interval has one unit, without a precision: interval 3 day",
        ));
    };
    let unit = match leading_field {
        None => None,
        Some(field) => Some(Unit::of_name(&field.to_string()).ok_or_else(|| {
            Error::meaning(format!("`{field}` is no unit of time: there are {}", Unit::NAMES))
        })?),
    };
    Interval::of_text(&interval_text(value)?, unit).map_err(Error::meaning)
}

/// The text in an interval, or its number, perhaps with a sign.
fn interval_text(value: &Expr) -> Result<String> {
    match value {
        Expr::Nested(inner) => interval_text(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if is_number(expr) => {
            let digits = interval_text(expr)?;
            Ok(match digits.strip_prefix('-') {
                Some(positive) => positive.to_owned(),
                None => format!("-{digits}"),
            })
        }
        Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => Ok(digits.clone()),
            value => text_literal(value),
        },
        other => Err(Error::unsupported(format!(
            "an interval is written as interval '3 days', and not with `{other}` inside"
        ))),
    }
}

/// True of a number, perhaps with signs and in parentheses.
fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_number(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_number(expr),
        Expr::Value(value) => matches!(value.value, ast::Value::Number(..)),
        _ => false,
    }
}

/// The precision of a timestamp that a text in quotes has.
fn precision_of(text: &str) -> Precision {
    match timestamp_of_text(text, Precision::Micros) {
        None if date_of_text(text).is_none() => Precision::Nanos,
        _ => Precision::Micros,
    }
}

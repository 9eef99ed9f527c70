//! Aggregates in expressions of groups.

use sapwood_schema::Value;
use sqlparser::ast::{
    self, DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments,
};
use sqlparser::tokenizer::Span;

use super::call::values;
use super::{Binder, Level, converted};
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::node::Node;
use crate::order::{Direction, Nulls, order_of};
use crate::states::{Aggregate, AggregateCall, Root, Spread};

/// Aggregates, for messages.
pub(super) const NAMES: &[&str] = &[
    "any_value",
    "approx_count_distinct",
    "approx_quantile",
    "arg_max",
    "arg_min",
    "argmax",
    "argmin",
    "avg",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "group_concat",
    "listagg",
    "max",
    "max_by",
    "mean",
    "median",
    "min",
    "min_by",
    "mode",
    "percentile_cont",
    "percentile_disc",
    "quantile_cont",
    "quantile_disc",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// Aggregates of other databases, and what to use.
const OTHERS: &[(&str, &str)] = &[("array_agg", "select the rows"), ("list", "select the rows")];

impl Binder<'_> {
    /// The aggregate that a name is of, if it is one.
    pub(super) fn aggregate(
        &mut self,
        name: &str,
        function: &ast::Function,
        at: Span,
    ) -> Result<Option<Node>> {
        if let Some((_, instead)) = OTHERS.iter().find(|(other, _)| *other == name) {
            return Err(Error::unsupported(format!("`{name}` is not supported: {instead}")));
        }
        if !NAMES.contains(&name) {
            return Ok(None);
        }
        let scope = self.scope;
        let Level::Groups { by, .. } = &self.level else {
            return Err(Error::meaning(format!(
                "`{name}` is of several rows, and each row is looked at alone here: `having` filters \
                 groups, `where` rows"
            )));
        };
        let groups = by.len();
        let mut of_rows = Binder::of_rows(scope);
        let filter =
            function.filter.as_deref().map(|filter| of_rows.condition(filter)).transpose()?;
        let is_distinct = is_distinct(function)?;
        let call = match name {
            "count" if is_star(function) => {
                if is_distinct {
                    return Err(Error::meaning("count(distinct *) has no meaning: name a column"));
                }
                if !function.within_group.is_empty() {
                    return Err(Error::meaning("count(*) has no order"));
                }
                AggregateCall {
                    aggregate: Aggregate::CountRows,
                    input: None,
                    second: None,
                    separator: None,
                    filter,
                    is_distinct: false,
                    kind: Kind::Int,
                }
            }
            _ => {
                let inputs = inputs(name, function)?;
                let input = of_rows.bind(inputs.value)?;
                let share =
                    inputs.share.map(|share| share_of(&of_rows.bind(share)?)).transpose()?;
                let second = inputs.second.map(|second| of_rows.bind(second)).transpose()?;
                let separator =
                    inputs.separator.map(|text| separator_of(&of_rows.bind(text)?)).transpose()?;
                let (aggregate, input, second, kind) = match second {
                    Some(second) => typed_pair(name, input, second)?,
                    None => {
                        let (aggregate, input, kind) = typed(name, input, share)?;
                        (aggregate, input, None, kind)
                    }
                };
                let (aggregate, separator) = match aggregate {
                    Aggregate::Join { .. } => (
                        Aggregate::Join { direction: inputs.direction, nulls: inputs.nulls },
                        separator.or_else(|| Some(",".to_owned())),
                    ),
                    other => (other, separator),
                };
                if is_distinct && second.is_some() {
                    return Err(Error::unsupported(format!(
                        "{name}(distinct ...) is sorted by the values themselves"
                    )));
                }
                // The least of some values is the least of those that differ.
                let is_distinct = is_distinct
                    && !matches!(
                        aggregate,
                        Aggregate::Min
                            | Aggregate::Max
                            | Aggregate::First
                            | Aggregate::BoolAnd
                            | Aggregate::BoolOr
                            | Aggregate::ApproximateDistinct
                    );
                let input = Some(input);
                AggregateCall { aggregate, input, second, separator, filter, is_distinct, kind }
            }
        };
        let Level::Groups { calls, .. } = &mut self.level else { unreachable!("it was looked at") };
        let kind = call.kind.clone();
        let number = match calls.iter().position(|other| *other == call) {
            Some(number) => number,
            None => {
                calls.push(call);
                calls.len() - 1
            }
        };
        Ok(Some(Node::column(groups + number, kind, at)))
    }
}

fn is_star(function: &ast::Function) -> bool {
    match &function.args {
        FunctionArguments::List(list) => {
            matches!(&list.args[..], [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] | [])
        }
        _ => false,
    }
}

fn is_distinct(function: &ast::Function) -> Result<bool> {
    let FunctionArguments::List(list) = &function.args else { return Ok(false) };
    let is_order =
        |clause: &&FunctionArgumentClause| matches!(clause, FunctionArgumentClause::OrderBy(_));
    let is_joined = JOINS.contains(&&function.name.to_string().to_lowercase()[..]);
    if let Some(clause) = list.clauses.iter().find(|clause| !(is_joined && is_order(clause))) {
        return Err(Error::unsupported(format!("`{clause}` is not supported within a call")));
    }
    Ok(list.duplicate_treatment == Some(DuplicateTreatment::Distinct))
}

struct Inputs<'e> {
    value: &'e Expr,
    /// Of a quantile.
    share: Option<&'e Expr>,
    /// The value beside it, or what texts are sorted by.
    second: Option<&'e Expr>,
    separator: Option<&'e Expr>,
    /// The order of texts that are joined.
    direction: Direction,
    nulls: Nulls,
}

impl<'e> Inputs<'e> {
    fn of(value: &'e Expr) -> Inputs<'e> {
        Inputs {
            value,
            share: None,
            second: None,
            separator: None,
            direction: Direction::Ascending,
            nulls: Nulls::Last,
        }
    }
}

/// Aggregates that join texts.
const JOINS: &[&str] = &["group_concat", "listagg", "string_agg"];

/// Aggregates of two values a row.
const PAIRS: &[&str] = &[
    "arg_max",
    "arg_min",
    "argmax",
    "argmin",
    "corr",
    "covar_pop",
    "covar_samp",
    "max_by",
    "min_by",
];

fn inputs<'e>(name: &str, function: &'e ast::Function) -> Result<Inputs<'e>> {
    let arguments = values(function, name)?;
    let wants = |what: &str| Err(Error::meaning(format!("write {what}")));
    match (name, &arguments[..], &function.within_group[..]) {
        ("percentile_cont" | "percentile_disc", [share], [order]) => {
            if order.options.sort == Some(ast::OrderBySort::Desc) {
                return Err(Error::unsupported(
                    "quantiles are of ascending values: take 1 - the share",
                ));
            }
            Ok(Inputs { share: Some(share), ..Inputs::of(&order.expr) })
        }
        ("percentile_cont" | "percentile_disc", ..) => {
            wants(&format!("{name}(0.5) within group (order by x)"))
        }
        ("quantile_cont" | "quantile_disc" | "approx_quantile", [value, share], []) => {
            Ok(Inputs { share: Some(share), ..Inputs::of(value) })
        }
        ("quantile_cont" | "quantile_disc" | "approx_quantile", ..) => {
            wants(&format!("{name}(x, 0.5)"))
        }
        (name, [value, second], []) if PAIRS.contains(&name) => {
            Ok(Inputs { second: Some(second), ..Inputs::of(value) })
        }
        (name, ..) if PAIRS.contains(&name) => {
            Err(Error::meaning(format!("{name} takes 2 arguments")))
        }
        (name, [value, rest @ ..], []) if JOINS.contains(&name) && rest.len() <= 1 => {
            let separator = rest.first().copied();
            joined(Inputs { separator, ..Inputs::of(value) }, function)
        }
        (name, ..) if JOINS.contains(&name) => wants(&format!("{name}(x, ', ')")),
        (_, [value], []) => Ok(Inputs::of(value)),
        _ => Err(Error::meaning(format!("{name} takes one argument"))),
    }
}

/// Texts that are joined, in the order of the call.
fn joined<'e>(inputs: Inputs<'e>, function: &'e ast::Function) -> Result<Inputs<'e>> {
    let FunctionArguments::List(list) = &function.args else { return Ok(inputs) };
    let Some(FunctionArgumentClause::OrderBy(keys)) = list.clauses.first() else {
        return Ok(inputs);
    };
    let [key] = &keys[..] else {
        return Err(Error::unsupported("texts are joined in the order of one expression"));
    };
    if key.with_fill.is_some() {
        return Err(Error::unsupported("`with fill` is not supported"));
    }
    let (direction, nulls) = order_of(&key.options)?;
    let second = (key.expr != *inputs.value).then_some(&key.expr);
    Ok(Inputs { second, direction, nulls, ..inputs })
}

fn separator_of(node: &Node) -> Result<String> {
    match node.as_constant() {
        Some(Value::Text(text)) => Ok(text.to_string()),
        _ => Err(Error::meaning("what stands between texts is a text").at(node.at)),
    }
}

/// Checks the types of an aggregate of two values, and finds its own.
fn typed_pair(
    name: &str,
    input: Node,
    second: Node,
) -> Result<(Aggregate, Node, Option<Node>, Kind)> {
    let ordered = |node: Node| match node.kind.is_ordered() {
        true => Ok(node),
        false => Err(Error::meaning(format!("a {} has no order", node.kind)).at(node.at)),
    };
    if JOINS.contains(&name) {
        let (aggregate, input, kind) = typed(name, input, None)?;
        return Ok((aggregate, input, Some(ordered(second)?), kind));
    }
    let aggregate = match name {
        "arg_max" | "argmax" | "max_by" => Aggregate::ArgMax,
        "arg_min" | "argmin" | "min_by" => Aggregate::ArgMin,
        "covar_pop" => Aggregate::Covariance(Spread::Population),
        "covar_samp" => Aggregate::Covariance(Spread::Sample),
        "corr" => Aggregate::Correlation,
        other => unreachable!("{other} is of two values"),
    };
    if matches!(aggregate, Aggregate::ArgMax | Aggregate::ArgMin) {
        let kind = input.kind.clone();
        return Ok((aggregate, ordered(input)?, Some(ordered(second)?), kind));
    }
    let number =
        |node: Node| match &node.kind {
            Kind::Null => Ok(converted(node, &Kind::Float)),
            kind if kind.is_number() => Ok(converted(node, &Kind::Float)),
            kind => Err(Error::meaning(format!("`{name}` needs numbers, and these are {kind}s"))
                .at(node.at)),
        };
    Ok((aggregate, number(input)?, Some(number(second)?), Kind::Float))
}

fn share_of(node: &Node) -> Result<f64> {
    let share = match node.as_constant() {
        Some(Value::Float(share)) => *share,
        Some(Value::Int(share)) => *share as f64,
        Some(value @ Value::Decimal { .. }) => {
            match value.clone().to_type(&sapwood_schema::Type::F64) {
                Ok(Value::Float(share)) => share,
                _ => f64::NAN,
            }
        }
        _ => f64::NAN,
    };
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err(Error::meaning("the share is a number from 0 to 1").at(node.at)),
    }
}

/// The aggregate that a name is of values of this kind, with its input and the kind of its result.
fn typed(name: &str, input: Node, share: Option<f64>) -> Result<(Aggregate, Node, Kind)> {
    let at = input.at;
    let number = |input: Node| match input.kind {
        Kind::Null => Ok(converted(input, &Kind::Int)),
        Kind::Real => Ok(converted(input, &Kind::Float)),
        _ if input.kind.is_number() => Ok(input),
        kind => {
            Err(Error::meaning(format!("`{name}` needs numbers, and these are {kind}s")).at(at))
        }
    };
    let float = |input: Node| Ok(converted(number(input)?, &Kind::Float));
    let ordered = |input: Node| match input.kind.is_ordered() {
        true => Ok(input),
        false => Err(Error::meaning(format!("a {} has no order", input.kind)).at(at)),
    };
    let truth = |input: Node| match input.kind {
        Kind::Bool | Kind::Null => Ok(converted(input, &Kind::Bool)),
        kind => {
            Err(Error::meaning(format!("`{name}` needs truth values, and these are {kind}s"))
                .at(at))
        }
    };
    let of_float = |aggregate: Aggregate, input: Node| Ok((aggregate, float(input)?, Kind::Float));
    let same = |aggregate: Aggregate, input: Node| {
        let kind = input.kind.clone();
        (aggregate, input, kind)
    };
    match name {
        "count" => Ok((Aggregate::Count, input, Kind::Int)),
        "sum" => {
            let input = number(input)?;
            let kind = match &input.kind {
                Kind::Int => Kind::Big,
                kind => kind.clone(),
            };
            Ok((Aggregate::Sum, input, kind))
        }
        "avg" | "mean" => Ok((Aggregate::Average, number(input)?, Kind::Float)),
        "min" => Ok(same(Aggregate::Min, ordered(input)?)),
        "max" => Ok(same(Aggregate::Max, ordered(input)?)),
        "any_value" => Ok(same(Aggregate::First, input)),
        "bool_and" => Ok((Aggregate::BoolAnd, truth(input)?, Kind::Bool)),
        "bool_or" => Ok((Aggregate::BoolOr, truth(input)?, Kind::Bool)),
        "var_samp" | "variance" => {
            of_float(Aggregate::Variance(Spread::Sample, Root::Variance), input)
        }
        "var_pop" => of_float(Aggregate::Variance(Spread::Population, Root::Variance), input),
        "stddev" | "stddev_samp" => {
            of_float(Aggregate::Variance(Spread::Sample, Root::Deviation), input)
        }
        "stddev_pop" => of_float(Aggregate::Variance(Spread::Population, Root::Deviation), input),
        "median" => of_float(Aggregate::QuantileContinuous(0.5), input),
        "quantile_cont" | "percentile_cont" => {
            of_float(Aggregate::QuantileContinuous(share.expect("it was given")), input)
        }
        "quantile_disc" | "percentile_disc" => {
            let share = share.expect("it was given");
            Ok(same(Aggregate::QuantileDiscrete(share), ordered(input)?))
        }
        "approx_quantile" => {
            of_float(Aggregate::ApproximateQuantile(share.expect("it was given")), input)
        }
        "approx_count_distinct" => Ok((Aggregate::ApproximateDistinct, input, Kind::Int)),
        "mode" => Ok(same(Aggregate::Mode, ordered(input)?)),
        "group_concat" | "listagg" | "string_agg" => match input.kind {
            Kind::Text | Kind::Null => {
                let input = converted(input, &Kind::Text);
                let order = Aggregate::Join { direction: Direction::Ascending, nulls: Nulls::Last };
                Ok((order, input, Kind::Text))
            }
            kind => Err(Error::meaning(format!(
                "`{name}` joins texts, and these are {kind}s: cast(... as text)"
            ))
            .at(at)),
        },
        other => unreachable!("{other} is in the list"),
    }
}

/// Whether an expression has an aggregate in it.
pub(crate) fn has_aggregate(expr: &Expr) -> bool {
    // The aggregates that there are have names of their own, so that the words of the expression tell.
    let mut found = false;
    walk(expr, &mut |function| {
        let name = function.name.to_string().to_lowercase();
        found |= function.over.is_none() && NAMES.contains(&name.as_str());
    });
    found
}

/// Calls `visit` with each function of an expression.
fn walk(expr: &Expr, visit: &mut impl FnMut(&ast::Function)) {
    let mut each = |parts: &[&Expr]| parts.iter().for_each(|part| walk(part, visit));
    match expr {
        Expr::Function(function) => {
            visit(function);
            if let FunctionArguments::List(list) = &function.args {
                for argument in &list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
                        walk(expr, visit);
                    }
                }
            }
        }
        Expr::Nested(inner)
        | Expr::UnaryOp { expr: inner, .. }
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotUnknown(inner)
        | Expr::Cast { expr: inner, .. }
        | Expr::Extract { expr: inner, .. }
        | Expr::Ceil { expr: inner, .. }
        | Expr::Floor { expr: inner, .. } => each(&[inner]),
        Expr::BinaryOp { left, right, .. }
        | Expr::IsDistinctFrom(left, right)
        | Expr::IsNotDistinctFrom(left, right) => each(&[left, right]),
        Expr::Like { expr, pattern, .. } | Expr::ILike { expr, pattern, .. } => {
            each(&[expr, pattern]);
        }
        Expr::Between { expr, low, high, .. } => each(&[expr, low, high]),
        Expr::In { expr, target, .. } => {
            each(&[expr]);
            if let ast::InTarget::List(list) = target {
                list.iter().for_each(|item| walk(item, visit));
            }
        }
        Expr::Position { expr, r#in } => each(&[expr, r#in]),
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            each(&[expr]);
            for part in substring_from.iter().chain(substring_for) {
                walk(part, visit);
            }
        }
        Expr::Trim { expr, .. } => each(&[expr]),
        Expr::CompoundFieldAccess { root, .. } => each(&[root]),
        Expr::Case { operand, conditions, else_result, .. } => {
            for part in operand.iter().chain(else_result) {
                walk(part, visit);
            }
            for ast::CaseWhen { condition, result } in conditions {
                walk(condition, visit);
                walk(result, visit);
            }
        }
        _ => {}
    }
}

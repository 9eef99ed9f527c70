//! Operators between two values.

use sapwood_schema::{Precision, Value, timestamp_of_text};
use sqlparser::ast::{BinaryOperator, Expr, Spanned};
use sqlparser::tokenizer::Span;

use super::{Binder, converted, folded, interval, precision_of, two_kinds};
use crate::error::{Error, Result};
use crate::functions::Function;
use crate::kind::Kind;
use crate::node::{Arithmetic, Comparison, Node, OnFailure, Op};

impl Binder<'_> {
    pub(super) fn binary(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        at: Span,
    ) -> Result<Node> {
        if let Expr::Interval(span) = right {
            let value = self.bind(left)?;
            let value = self.expect_time(value, &op.to_string())?;
            let interval = match op {
                BinaryOperator::Plus => interval(span)?,
                BinaryOperator::Minus => interval(span)?.negated(),
                _ => return Err(Error::meaning("an interval is added or subtracted")),
            };
            // A day and some hours is a moment. So is a second and some milliseconds, with more digits.
            let is_finer = match value.kind {
                Kind::Timestamp(precision) => !interval.is_whole_in(precision),
                _ => !interval.is_of_days(),
            };
            let value = match is_finer {
                true => converted(value, &Kind::Timestamp(Precision::Micros)),
                false => value,
            };
            let kind = value.kind.clone();
            return Ok(Node {
                op: Op::Function(Function::AddInterval(interval), vec![value]),
                kind,
                at,
            });
        }
        let comparison = match op {
            BinaryOperator::Eq => Some(Comparison::Equal),
            BinaryOperator::NotEq => Some(Comparison::NotEqual),
            BinaryOperator::Lt => Some(Comparison::Less),
            BinaryOperator::LtEq => Some(Comparison::LessOrEqual),
            BinaryOperator::Gt => Some(Comparison::Greater),
            BinaryOperator::GtEq => Some(Comparison::GreaterOrEqual),
            _ => None,
        };
        if let Some(comparison) = comparison {
            let (left, right) = (self.bind(left)?, self.bind(right)?);
            return self.compare(comparison, left, right, at);
        }
        match op {
            BinaryOperator::And | BinaryOperator::Or => {
                let (left, right) = (self.condition(left)?, self.condition(right)?);
                let is_and = *op == BinaryOperator::And;
                let mut parts = Vec::new();
                for part in [left, right] {
                    match part.op {
                        Op::And(inner) if is_and => parts.extend(inner),
                        Op::Or(inner) if !is_and => parts.extend(inner),
                        op => parts.push(Node { op, ..part }),
                    }
                }
                Ok(Node::truth(if is_and { Op::And(parts) } else { Op::Or(parts) }, at))
            }
            BinaryOperator::Plus => self.arithmetic(Arithmetic::Add, left, right, at),
            BinaryOperator::Minus => self.arithmetic(Arithmetic::Subtract, left, right, at),
            BinaryOperator::Multiply => self.arithmetic(Arithmetic::Multiply, left, right, at),
            BinaryOperator::Divide => self.arithmetic(Arithmetic::Divide, left, right, at),
            BinaryOperator::Modulo => self.arithmetic(Arithmetic::Remainder, left, right, at),
            BinaryOperator::StringConcat => {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                let is_bytes = |node: &Node| matches!(node.kind, Kind::Bytes | Kind::Null);
                if left.kind == Kind::Bytes && is_bytes(&right)
                    || right.kind == Kind::Bytes && is_bytes(&left)
                {
                    let parts = vec![converted(left, &Kind::Bytes), converted(right, &Kind::Bytes)];
                    let op = Op::Function(Function::Join, parts);
                    return Ok(Node { op, kind: Kind::Bytes, at });
                }
                let parts = vec![self.as_text(left)?, self.as_text(right)?];
                Ok(Node { op: Op::Function(Function::Join, parts), kind: Kind::Text, at })
            }
            other => Err(Error::unsupported(format!(
                "the operator `{other}` is not supported{}",
                match other {
                    BinaryOperator::DuckIntegerDivide | BinaryOperator::MyIntegerDivide =>
                        ": `/` of whole numbers is whole",
                    BinaryOperator::PGRegexMatch | BinaryOperator::Regexp => ": use `like`",
                    _ => "",
                }
            ))),
        }
    }

    /// A value as text.
    pub(super) fn as_text(&mut self, node: Node) -> Result<Node> {
        let at = node.at;
        self.cast(node, &Kind::Text, OnFailure::Refuse, at).map(folded)
    }

    /// Two values in the kind in which they meet. A text in quotes becomes what the other is.
    pub(super) fn meet(&mut self, left: Node, right: Node, at: Span) -> Result<(Node, Node, Kind)> {
        let (left, right) = self.alike(left, right)?;
        let Some(kind) = left.kind.common(&right.kind) else {
            return Err(two_kinds(&left.kind, &right.kind).at(at));
        };
        Ok((converted(left, &kind), converted(right, &kind), kind))
    }

    /// Two values in the kind in which they are compared, or in two kinds of whole numbers of 128 bits, which are compared
    /// nonetheless: no kind has all of both.
    pub(super) fn meet_to_compare(
        &mut self,
        left: Node,
        right: Node,
        at: Span,
    ) -> Result<(Node, Node, Kind)> {
        let (left, right) = self.alike(left, right)?;
        let is_kept = |node: &Node| match node.as_constant() {
            Some(Value::Int(number)) => *number < 0,
            _ => true,
        };
        match (&left.kind, &right.kind) {
            (Kind::Int | Kind::Big, Kind::Huge) if is_kept(&left) => {
                Ok((converted(left, &Kind::Big), right, Kind::Huge))
            }
            (Kind::Huge, Kind::Int | Kind::Big) if is_kept(&right) => {
                Ok((left, converted(right, &Kind::Big), Kind::Huge))
            }
            // A float of 32 bits has fewer digits than they have.
            (Kind::Real, Kind::Int | Kind::Big | Kind::Huge)
            | (Kind::Int | Kind::Big | Kind::Huge, Kind::Real) => {
                Ok((converted(left, &Kind::Float), converted(right, &Kind::Float), Kind::Float))
            }
            _ => self.meet(left, right, at),
        }
    }

    /// Two values, of which a text in quotes becomes what the other is.
    fn alike(&mut self, left: Node, right: Node) -> Result<(Node, Node)> {
        Ok(match (left.is_quoted(), right.is_quoted()) {
            (true, false) => (self.as_other(left, &right)?, right),
            (false, true) => {
                let right = self.as_other(right, &left)?;
                (left, right)
            }
            _ => (left, right),
        })
    }

    /// A text in quotes in the kind of another value.
    fn as_other(&mut self, text: Node, other: &Node) -> Result<Node> {
        let kind = match (&other.kind, text.as_constant()) {
            (Kind::Null | Kind::Text, _) => return Ok(text),
            // It may have more digits than the other.
            (Kind::Timestamp(precision), Some(Value::Text(text))) => {
                Kind::Timestamp(precision_of(text).max(*precision))
            }
            (Kind::Date, Some(Value::Text(text)))
                if sapwood_schema::date_of_text(text).is_none()
                    && timestamp_of_text(text, precision_of(text)).is_some() =>
            {
                Kind::Timestamp(precision_of(text))
            }
            (kind, _) => kind.clone(),
        };
        let at = text.at;
        self.cast(text, &kind, OnFailure::Refuse, at)
    }

    /// A comparison, whose constant stands on the right if there is one.
    pub(super) fn compare(
        &mut self,
        comparison: Comparison,
        left: Node,
        right: Node,
        at: Span,
    ) -> Result<Node> {
        let (left, right, kind) = self.meet_to_compare(left, right, at)?;
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        if !kind.is_ordered() && !is_equality {
            return Err(Error::meaning(format!("a {kind} has no order")).at(at));
        }
        let (comparison, left, right) = match (left.as_constant(), right.as_constant()) {
            (Some(_), None) => (comparison.mirrored(), right, left),
            _ => (comparison, left, right),
        };
        Ok(Node::truth(Op::Compare(comparison, Box::new(left), Box::new(right)), at))
    }

    fn arithmetic(
        &mut self,
        arithmetic: Arithmetic,
        left: &Expr,
        right: &Expr,
        at: Span,
    ) -> Result<Node> {
        let (left, right) = (self.bind(left)?, self.bind(right)?);
        self.arithmetic_of(arithmetic, left, right, at)
    }

    pub(super) fn arithmetic_of(
        &mut self,
        arithmetic: Arithmetic,
        left: Node,
        right: Node,
        at: Span,
    ) -> Result<Node> {
        use Arithmetic::{Add, Divide, Multiply, Remainder, Subtract};
        let of = |left: Node, right: Node, kind: Kind| Node {
            op: Op::Arithmetic(arithmetic, Box::new(left), Box::new(right)),
            kind,
            at,
        };
        match (&left.kind, arithmetic, &right.kind) {
            (Kind::Date, Add | Subtract, Kind::Int) => return Ok(of(left, right, Kind::Date)),
            (Kind::Int, Add, Kind::Date) => return Ok(of(right, left, Kind::Date)),
            (Kind::Date, Subtract, Kind::Date) => return Ok(of(left, right, Kind::Int)),
            (Kind::Timestamp(_), Subtract, Kind::Timestamp(_)) => {
                return Err(Error::unsupported(
                    "the span between two timestamps is no value: date_diff('second', a, b) counts",
                ));
            }
            (Kind::Date | Kind::Timestamp(_), ..) | (.., Kind::Date | Kind::Timestamp(_)) => {
                return Err(Error::meaning(format!(
                    "`{}` has no meaning between a {} and a {}: write + interval '3 days'",
                    arithmetic.sign(),
                    left.kind,
                    right.kind
                )));
            }
            _ => {}
        }
        let (left, right) = self.alike(left, right)?;
        let left = self.expect_number(left, arithmetic.sign())?;
        let right = self.expect_number(right, arithmetic.sign())?;
        // What has no sign is computed with one, if it has room for that, and floats in 64 bits.
        let kind = match left.kind.common(&right.kind).expect("numbers meet") {
            Kind::Huge => Kind::Big,
            Kind::Real => Kind::Float,
            kind => kind,
        };
        match (kind, arithmetic) {
            // Digits behind the point add up.
            (Kind::Decimal(_), Multiply) => {
                let scale = |node: &Node| match node.kind {
                    Kind::Decimal(scale) => scale,
                    _ => 0,
                };
                let (first, second) = (scale(&left), scale(&right));
                if first + second > sapwood_schema::DECIMAL_DIGITS_MAX {
                    return Err(Error::meaning(
                        "the product has more than 38 digits behind the point: cast a side to double",
                    ));
                }
                let left = converted(left, &Kind::Decimal(first));
                let right = converted(right, &Kind::Decimal(second));
                Ok(of(left, right, Kind::Decimal(first + second)))
            }
            (Kind::Decimal(_), Divide) => {
                Ok(of(converted(left, &Kind::Float), converted(right, &Kind::Float), Kind::Float))
            }
            (kind, Add | Subtract | Multiply | Divide | Remainder) => {
                Ok(of(converted(left, &kind), converted(right, &kind), kind))
            }
        }
    }

    /// A sign before a number; the least whole number has no positive counterpart, and is read as it stands.
    pub(super) fn negate(&mut self, expr: &Expr, at: Span) -> Result<Node> {
        let node = self.bind(expr).map_err(|error| error.at(expr.span()))?;
        let node = self.expect_number(node, "-")?;
        if let Some(Value::Int(value)) = node.as_constant()
            && let Some(negative) = value.checked_neg()
        {
            return Ok(Node::constant(Value::Int(negative), at));
        }
        if let Some(Value::Huge(value)) = node.as_constant()
            && *value == i128::MIN.unsigned_abs()
        {
            return Ok(Node::constant(Value::Int(i128::MIN), at));
        }
        let node = match node.kind {
            Kind::Huge => converted(node, &Kind::Big),
            _ => node,
        };
        let kind = node.kind.clone();
        Ok(Node { op: Op::Negate(Box::new(node)), kind, at })
    }
}

//! Calls of functions.

use sapwood_schema::{DAY_SECONDS, Precision, Value, nearest};
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Spanned};
use sqlparser::tokenizer::Span;

use super::{Binder, converted, folded};
use crate::error::{Error, Result};
use crate::functions::{FloatFunction, Function, Side};
use crate::kind::Kind;
use crate::node::{Arithmetic, Comparison, Node, OnFailure, Op};
use crate::time::{Field, Format, Interval, Unit};

/// Functions of values, for messages.
pub(super) const NAMES: &[&str] = &[
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "cbrt",
    "ceil",
    "ceiling",
    "coalesce",
    "concat",
    "contains",
    "cos",
    "cosh",
    "current_date",
    "current_timestamp",
    "date_bin",
    "date_diff",
    "date_part",
    "date_trunc",
    "day",
    "dayofweek",
    "dayofyear",
    "degrees",
    "ends_with",
    "epoch",
    "exp",
    "floor",
    "greatest",
    "hour",
    "if",
    "ifnull",
    "last_day",
    "least",
    "left",
    "length",
    "ln",
    "log10",
    "log2",
    "lower",
    "lpad",
    "ltrim",
    "minute",
    "mod",
    "month",
    "now",
    "nullif",
    "octet_length",
    "pi",
    "pow",
    "power",
    "quarter",
    "radians",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "rpad",
    "rtrim",
    "second",
    "sign",
    "sin",
    "sinh",
    "split_part",
    "sqrt",
    "starts_with",
    "strftime",
    "strpos",
    "substring",
    "tan",
    "tanh",
    "time_bucket",
    "today",
    "trim",
    "trunc",
    "typeof",
    "upper",
    "week",
    "year",
];

/// The arguments of a call that takes values alone.
pub(super) fn values<'e>(function: &'e ast::Function, name: &str) -> Result<Vec<&'e Expr>> {
    let list = match &function.args {
        FunctionArguments::None => return Ok(Vec::new()),
        FunctionArguments::List(list) => list,
        FunctionArguments::Subquery(_) => {
            return Err(Error::unsupported("subqueries are not supported"));
        }
    };
    let value = |argument: &'e FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
        FunctionArg::Unnamed(_) => Err(Error::meaning(format!("{name}(*) has no meaning"))),
        FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
            Err(Error::unsupported("arguments have no names here"))
        }
    };
    list.args.iter().map(value).collect()
}

impl Binder<'_> {
    pub(super) fn function(&mut self, function: &ast::Function, at: Span) -> Result<Node> {
        let named = function.name.span();
        self.function_of(function, at).map_err(|error| error.at(named))
    }

    fn function_of(&mut self, function: &ast::Function, at: Span) -> Result<Node> {
        let name = function.name.to_string().to_lowercase();
        if function.over.is_some() {
            return Err(Error::unsupported("window functions (`over`) are not supported"));
        }
        if function.null_treatment.is_some() || function.parameters != FunctionArguments::None {
            return Err(Error::unsupported(format!(
                "a call is written as {name}(a, b): `ignore nulls`, `respect nulls` and two lists of \
                 arguments are not supported"
            )));
        }
        if let Some(node) = self.aggregate(&name, function, at)? {
            return Ok(node);
        }
        let is_of_rows = match &function.args {
            FunctionArguments::List(list) => {
                list.duplicate_treatment.is_none() && list.clauses.is_empty()
            }
            _ => true,
        };
        if function.filter.is_some() || !function.within_group.is_empty() || !is_of_rows {
            return Err(Error::meaning(format!("`{name}` is no aggregate")));
        }
        let arguments = values(function, &name)?;
        if matches!(&name[..], "time_bucket" | "date_bin") {
            return self.bucket(&name, &arguments, at);
        }
        let parts = arguments.into_iter().map(|argument| self.bind(argument));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        self.call(&name, parts, at)
    }

    /// A call of a function of values.
    pub(super) fn call(&mut self, name: &str, parts: Vec<Node>, at: Span) -> Result<Node> {
        let count = parts.len();
        let takes = |wanted: std::ops::RangeInclusive<usize>| match wanted.contains(&count) {
            true => Ok(()),
            false => Err(Error::meaning(match (*wanted.start(), *wanted.end()) {
                (1, 1) => format!("{name} takes one argument"),
                (from, to) if from == to => format!("{name} takes {from} arguments"),
                (from, usize::MAX) => format!("{name} takes at least {from} arguments"),
                (from, to) => format!("{name} takes {from} to {to} arguments"),
            })),
        };
        let of = |function: Function, parts: Vec<Node>, kind: Kind| {
            Ok(Node { op: Op::Function(function, parts), kind, at })
        };
        if let Some(function) = FloatFunction::of_name(name) {
            takes(1..=1)?;
            let parts = self.numbers_as(parts, name, &Kind::Float)?;
            return of(Function::OfFloat(function), parts, Kind::Float);
        }
        let mut parts = parts;
        match name {
            "abs" | "sign" | "floor" | "ceil" | "ceiling" | "trunc" => {
                takes(1..=1)?;
                let part = self.expect_number(parts.remove(0), name)?;
                let (function, kind) = match (name, &part.kind) {
                    ("abs", kind) => (Function::Abs, kind.clone()),
                    ("sign", _) => (Function::Sign, Kind::Int),
                    (_, kind) => {
                        let function = match name {
                            "floor" => Function::Floor,
                            "trunc" => Function::Truncate,
                            _ => Function::Ceil,
                        };
                        let kind = match kind {
                            Kind::Decimal(_) => Kind::Decimal(0),
                            kind => kind.clone(),
                        };
                        (function, kind)
                    }
                };
                of(function, vec![part], kind)
            }
            "round" => {
                takes(1..=2)?;
                let digits = match parts.get(1).map(Node::as_constant) {
                    None => 0,
                    Some(Some(Value::Int(digits))) => (*digits).clamp(-400, 400) as i64,
                    Some(_) => {
                        return Err(Error::unsupported("the digits of round are a whole number"));
                    }
                };
                let part = self.expect_number(parts.swap_remove(0), name)?;
                match part.kind {
                    Kind::Decimal(scale) => {
                        let kept = digits.clamp(0, scale.into()) as u8;
                        match digits {
                            0.. => Ok(converted(part, &Kind::Decimal(kept))),
                            _ => of(Function::Round(digits), vec![part], Kind::Decimal(kept)),
                        }
                    }
                    Kind::Real => {
                        let part = converted(part, &Kind::Float);
                        of(Function::Round(digits), vec![part], Kind::Float)
                    }
                    _ => {
                        let kind = part.kind.clone();
                        of(Function::Round(digits), vec![part], kind)
                    }
                }
            }
            "power" | "pow" => {
                takes(2..=2)?;
                let parts = self.numbers_as(parts, name, &Kind::Float)?;
                of(Function::Power, parts, Kind::Float)
            }
            "atan2" => {
                takes(2..=2)?;
                let parts = self.numbers_as(parts, name, &Kind::Float)?;
                of(Function::Atan2, parts, Kind::Float)
            }
            "pi" => {
                takes(0..=0)?;
                Ok(Node::constant(Value::Float(std::f64::consts::PI), at))
            }
            "now" | "current_timestamp" | "localtimestamp" => {
                takes(0..=0)?;
                let precision = Precision::Micros;
                let moment = Value::Timestamp { ticks: self.scope.moment, precision };
                Ok(Node::constant(moment, at))
            }
            "current_date" | "today" => {
                takes(0..=0)?;
                let micros_of_day = DAY_SECONDS * Precision::Micros.ticks();
                let day = self.scope.moment.div_euclid(micros_of_day) as i32;
                Ok(Node::constant(Value::Date(day), at))
            }
            "last_day" => {
                takes(1..=1)?;
                let value = self.expect_time(parts.remove(0), name)?;
                of(Function::LastDay, vec![value], Kind::Date)
            }
            "strftime" => {
                takes(2..=2)?;
                let Some(Value::Text(form)) = parts[1].as_constant() else {
                    return Err(Error::meaning(
                        "the form is a text: strftime(at, '%Y-%m-%d %H:%M:%S')",
                    ));
                };
                let form_at = parts[1].at;
                let form =
                    Format::of_text(form).map_err(|what| Error::meaning(what).at(form_at))?;
                let value = self.expect_time(parts.remove(0), name)?;
                of(Function::Format(form), vec![value], Kind::Text)
            }
            "to_char" => Err(Error::unsupported(
                "`to_char` is not supported: strftime(at, '%Y-%m-%d %H:%M:%S') writes a moment",
            )),
            "mod" => {
                takes(2..=2)?;
                let (left, right) = (parts.remove(0), parts.remove(0));
                self.arithmetic_of(Arithmetic::Remainder, left, right, at)
            }
            "greatest" | "least" => {
                takes(1..=usize::MAX)?;
                let (parts, kind) = self.unite(parts)?;
                if !kind.is_ordered() {
                    return Err(Error::meaning(format!("a {kind} has no order")));
                }
                let function = if name == "least" { Function::Least } else { Function::Greatest };
                of(function, parts, kind)
            }
            "coalesce" | "ifnull" => {
                takes(1..=usize::MAX)?;
                let (parts, kind) = self.unite(parts)?;
                Ok(Node { op: Op::Coalesce(parts), kind, at })
            }
            "nullif" => {
                takes(2..=2)?;
                let (value, other) = (parts.remove(0), parts.remove(0));
                let is_equal = self.compare(Comparison::Equal, value.clone(), other, at)?;
                let null = Node::constant(Value::Null, at);
                self.case_of(vec![(is_equal, null)], value, at)
            }
            "if" => {
                takes(3..=3)?;
                let condition = self.expect_truth(parts.remove(0))?;
                let (then, otherwise) = (parts.remove(0), parts.remove(0));
                self.case_of(vec![(condition, then)], otherwise, at)
            }
            "concat" => {
                takes(1..=usize::MAX)?;
                let parts = parts.into_iter().map(|part| self.as_text(part));
                of(Function::Concat, parts.collect::<Result<_>>()?, Kind::Text)
            }
            "length" | "len" | "char_length" | "character_length" => {
                takes(1..=1)?;
                self.texts(Function::Length, parts, name, &[], Kind::Int, at)
            }
            "octet_length" => {
                takes(1..=1)?;
                match parts[0].kind {
                    Kind::Bytes => of(Function::OctetLength, parts, Kind::Int),
                    _ => self.texts(Function::OctetLength, parts, name, &[], Kind::Int, at),
                }
            }
            "lower" | "lcase" | "upper" | "ucase" | "reverse" => {
                takes(1..=1)?;
                let function = match name {
                    "lower" | "lcase" => Function::Lower,
                    "reverse" => Function::Reverse,
                    _ => Function::Upper,
                };
                self.texts(function, parts, name, &[], Kind::Text, at)
            }
            "trim" | "ltrim" | "rtrim" => {
                takes(1..=2)?;
                let side = match name {
                    "ltrim" => Side::Left,
                    "rtrim" => Side::Right,
                    _ => Side::Both,
                };
                self.texts(Function::Trim(side), parts, name, &[], Kind::Text, at)
            }
            "substring" | "substr" => {
                takes(2..=3)?;
                self.texts(Function::Substring, parts, name, &[1, 2], Kind::Text, at)
            }
            "replace" => {
                takes(3..=3)?;
                self.texts(Function::Replace, parts, name, &[], Kind::Text, at)
            }
            "starts_with" | "ends_with" | "contains" | "prefix" | "suffix" => {
                takes(2..=2)?;
                let function = match name {
                    "starts_with" | "prefix" => Function::StartsWith,
                    "contains" => Function::Contains,
                    _ => Function::EndsWith,
                };
                self.texts(function, parts, name, &[], Kind::Bool, at)
            }
            "strpos" | "instr" | "position" => {
                takes(2..=2)?;
                self.texts(Function::Position, parts, name, &[], Kind::Int, at)
            }
            "left" | "right" => {
                takes(2..=2)?;
                let function = if name == "left" { Function::Left } else { Function::Right };
                self.texts(function, parts, name, &[1], Kind::Text, at)
            }
            "repeat" => {
                takes(2..=2)?;
                self.texts(Function::Repeat, parts, name, &[1], Kind::Text, at)
            }
            "lpad" | "rpad" => {
                takes(2..=3)?;
                let side = if name == "lpad" { Side::Left } else { Side::Right };
                self.texts(Function::Pad(side), parts, name, &[1], Kind::Text, at)
            }
            "split_part" => {
                takes(3..=3)?;
                self.texts(Function::SplitPart, parts, name, &[2], Kind::Text, at)
            }
            "date_trunc" => {
                takes(2..=2)?;
                let unit = unit_of(&parts[0])?;
                let value = self.expect_time(parts.remove(1), name)?;
                let value = match value.kind {
                    Kind::Date if !unit.is_of_days() => {
                        converted(value, &Kind::Timestamp(Precision::Micros))
                    }
                    _ => value,
                };
                let kind = value.kind.clone();
                of(Function::DateTrunc(unit), vec![value], kind)
            }
            "date_diff" | "datediff" => {
                takes(3..=3)?;
                let unit = unit_of(&parts[0])?;
                let second = self.expect_time(parts.remove(2), name)?;
                let first = self.expect_time(parts.remove(1), name)?;
                of(Function::DateDiff(unit), vec![first, second], Kind::Int)
            }
            "date_part" => {
                takes(2..=2)?;
                let Some(Value::Text(field)) = parts[0].as_constant() else {
                    return Err(Error::meaning("the part is a text: date_part('year', day)"));
                };
                let field = field.to_string();
                let value = parts.remove(1);
                self.extract(&field, value, at)
            }
            "typeof" => {
                takes(1..=1)?;
                Ok(Node::constant(Value::text(parts[0].kind.to_string()), at))
            }
            _ if count == 1 && Field::of_name(name).is_some() => {
                self.extract(name, parts.remove(0), at)
            }
            _ => {
                let names = super::function_names();
                let hint = match nearest(name, names) {
                    Some(near) => format!(": did you mean `{near}`?"),
                    None => String::new(),
                };
                Err(Error::meaning(format!("no function is called `{name}`{hint}")))
            }
        }
    }

    /// `time_bucket(interval '15 minutes', at)`, maybe with an origin.
    fn bucket(&mut self, name: &str, arguments: &[&Expr], at: Span) -> Result<Node> {
        let written =
            || Error::meaning(format!("{name} is written as {name}(interval '15 minutes', at)"));
        let (span, value, origin) = match arguments {
            [span, value] => (span, value, None),
            [span, value, origin] => (span, value, Some(origin)),
            _ => return Err(written()),
        };
        let interval = match span {
            Expr::Interval(span) => super::interval(span)?,
            span => match self.bind(span)?.as_constant() {
                Some(Value::Text(text)) => Interval::of_text(text, None).map_err(Error::meaning)?,
                _ => return Err(written().at(span.span())),
            },
        };
        if !interval.is_span() {
            let what = "spans have a length, of months or of days and hours";
            return Err(Error::meaning(what).at(span.span()));
        }
        let mut parts = vec![self.bind(value)?];
        if let Some(origin) = origin {
            if interval.months > 0 {
                return Err(Error::unsupported(
                    "spans of months begin with 2000-01: they have no other origin",
                ));
            }
            parts.push(self.bind(origin)?);
        }
        let parts = parts.into_iter().map(|part| self.expect_time(part, name));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let precisions = parts.iter().filter_map(|part| match part.kind {
            Kind::Timestamp(precision) => Some(precision),
            _ => None,
        });
        // Neither the span nor the origin loses digits.
        let kind = match precisions.max() {
            None if interval.is_of_days() => Kind::Date,
            Some(finest) if interval.is_whole_in(finest) => Kind::Timestamp(finest),
            _ => Kind::Timestamp(Precision::Micros),
        };
        let parts = parts.into_iter().map(|part| converted(part, &kind)).collect();
        Ok(Node { op: Op::Function(Function::Bucket(interval), parts), kind, at })
    }

    fn numbers_as(&mut self, parts: Vec<Node>, name: &str, kind: &Kind) -> Result<Vec<Node>> {
        let parts = parts.into_iter();
        parts.map(|part| Ok(converted(self.expect_number(part, name)?, kind))).collect()
    }

    /// A function whose arguments are texts, but for whole numbers at some places.
    fn texts(
        &mut self,
        function: Function,
        parts: Vec<Node>,
        name: &str,
        numbers: &[usize],
        kind: Kind,
        at: Span,
    ) -> Result<Node> {
        let parts = parts.into_iter().enumerate().map(|(place, part)| {
            if !numbers.contains(&place) {
                return self.expect_text(part, name);
            }
            match part.kind {
                Kind::Int | Kind::Null => Ok(converted(part, &Kind::Int)),
                Kind::Big | Kind::Huge => {
                    let at = part.at;
                    self.cast(part, &Kind::Int, OnFailure::Refuse, at).map(folded)
                }
                kind => Err(Error::meaning(format!(
                    "`{name}` needs a whole number there, and this is a {kind}"
                ))
                .at(part.at)),
            }
        });
        let parts = parts.collect::<Result<_>>()?;
        Ok(Node { op: Op::Function(function, parts), kind, at })
    }
}

fn unit_of(node: &Node) -> Result<Unit> {
    let wrong = |found: &str| {
        Error::meaning(format!("`{found}` is no unit of time: there are {}", Unit::NAMES))
            .at(node.at)
    };
    match node.as_constant() {
        Some(Value::Text(text)) => Unit::of_name(text).ok_or_else(|| wrong(text)),
        _ => Err(Error::meaning("the unit is a text: date_trunc('month', day)").at(node.at)),
    }
}

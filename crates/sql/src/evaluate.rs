//! Expressions of a batch of rows.
//!
//! A value that is null has no meaning beside its mark: where an operation could fail, it looks at the mark
//! first. Parts of `and`, `or`, `case` and `coalesce` that can fail are computed for the rows that need
//! them alone, so that `case when b <> 0 then a / b end` has an answer.

use std::borrow::Cow;
use std::cmp::Ordering;

use sapwood_schema::{Batch, Cell, Data, Strings, Value, Vector};
use sqlparser::tokenizer::Span;

use crate::convert::convert;
use crate::error::{Error, Result};
use crate::group::encode_value;
use crate::kind::Kind;
use crate::node::{Arithmetic, Comparison, Node, Op};
use crate::out::{Out, compare_floats};

/// The values of an expression for the rows of a batch: one each.
pub(crate) fn evaluate<'a>(node: &Node, batch: &'a Batch) -> Result<Cow<'a, Vector>> {
    let out = evaluate_out(node, batch)?;
    if !out.is_one {
        return Ok(out.vector);
    }
    Ok(Cow::Owned(out.vector.take(&vec![0; batch.len])))
}

/// The rows for which a condition is true.
pub(crate) fn rows_where(node: &Node, batch: &Batch) -> Result<Vec<u32>> {
    let out = evaluate_out(node, batch)?;
    let Data::Bool(values) = &out.vector.data else { unreachable!("a condition is a truth value") };
    if out.is_one {
        let is_true = values[0] && !out.vector.is_null(0);
        return Ok(if is_true { (0..batch.len as u32).collect() } else { Vec::new() });
    }
    let rows = 0..batch.len as u32;
    Ok(match &out.vector.nulls {
        None => rows.filter(|&row| values[row as usize]).collect(),
        Some(nulls) => rows.filter(|&row| values[row as usize] && !nulls[row as usize]).collect(),
    })
}

/// Some rows of a batch: of the columns that a node reads, the others being empty.
fn rows_of(batch: &Batch, node: &Node, rows: &[u32]) -> Batch {
    let mut is_read = vec![false; batch.columns.len()];
    node.columns(&mut |column| is_read[column] = true);
    let columns = batch.columns.iter().zip(is_read);
    let columns = columns.map(|(column, is_read)| match is_read {
        true => column.take(rows),
        false => Vector::new(Data::Bool(Vec::new())),
    });
    Batch { len: rows.len(), columns: columns.collect(), ids: None }
}

/// The values of an expression for some rows of a batch.
fn evaluate_at<'a>(node: &Node, batch: &'a Batch, rows: &[u32]) -> Result<Cow<'a, Vector>> {
    if rows.len() == batch.len {
        return evaluate(node, batch);
    }
    if node.can_fail() {
        let some = rows_of(batch, node, rows);
        return Ok(Cow::Owned(evaluate(node, &some)?.into_owned()));
    }
    let out = evaluate_out(node, batch)?;
    Ok(Cow::Owned(match out.is_one {
        true => out.vector.take(&vec![0; rows.len()]),
        false => out.vector.take(rows),
    }))
}

/// The values of an expression; constants are one for all rows.
pub(crate) fn evaluate_out<'a>(node: &Node, batch: &'a Batch) -> Result<Out<'a>> {
    match by_dictionary(node, batch)? {
        Some(out) => Ok(out),
        None => evaluate_each(node, batch),
    }
}

/// The values of an expression of one column that has a [dictionary](crate::Strings): each is computed once, where some
/// row has it. `None` of any other expression.
fn by_dictionary(node: &Node, batch: &Batch) -> Result<Option<Out<'static>>> {
    if matches!(node.op, Op::Column(_) | Op::Constant(_)) {
        return Ok(None);
    }
    let (mut column, mut is_one_column) = (None, true);
    node.columns(&mut |other| is_one_column &= *column.get_or_insert(other) == other);
    let Some(column) = column.filter(|_| is_one_column) else { return Ok(None) };
    let vector = &batch.columns[column];
    let Data::Bytes(strings) = &vector.data else { return Ok(None) };
    let Some((dictionary, codes)) = strings.coded() else { return Ok(None) };
    if codes.len() <= dictionary.len() {
        return Ok(None);
    }
    // What no row has may have no value: where a filter left it out, say.
    const NULL: usize = Strings::DICTIONARY_MAX;
    let mut is_there = [false; NULL + 1];
    match &vector.nulls {
        None => codes.iter().for_each(|code| is_there[usize::from(*code)] = true),
        Some(nulls) => {
            for (code, is_null) in codes.iter().zip(nulls) {
                is_there[if *is_null { NULL } else { (*code).into() }] = true;
            }
        }
    }
    let mut some = Vector::new(Data::Bytes(Strings::new()));
    let mut places = [0; NULL + 1];
    for at in (0..=NULL).filter(|&at| is_there[at]) {
        places[at] = some.len() as u32;
        match at {
            NULL => some.push_null(),
            at => some.push_cell(&Cell::Bytes(dictionary.get(at).into())),
        }
    }
    let len = some.len();
    let mut columns = vec![Vector::new(Data::Bool(Vec::new())); batch.columns.len()];
    columns[column] = some;
    let some = Batch { len, columns, ids: None };
    let out = evaluate_each(node, &some)?;
    if out.is_one {
        return Ok(Some(Out { vector: Cow::Owned(out.vector.into_owned()), is_one: true }));
    }
    let places: Vec<u32> = match &vector.nulls {
        None => codes.iter().map(|code| places[usize::from(*code)]).collect(),
        Some(nulls) => {
            let place = |(code, is_null): (&u8, &bool)| {
                places[if *is_null { NULL } else { (*code).into() }]
            };
            codes.iter().zip(nulls).map(place).collect()
        }
    };
    Ok(Some(Out { vector: Cow::Owned(out.vector.take(&places)), is_one: false }))
}

/// As [`evaluate_out`], from the values of each row.
fn evaluate_each<'a>(node: &Node, batch: &'a Batch) -> Result<Out<'a>> {
    let each = |vector| Ok(Out { vector: Cow::Owned(vector), is_one: false });
    match &node.op {
        Op::Column(column) => {
            Ok(Out { vector: column_of(batch, *column, &node.kind), is_one: false })
        }
        Op::Constant(value) => Ok(Out { vector: Cow::Owned(one(value, &node.kind)), is_one: true }),
        Op::Convert(part, on_failure) => {
            let out = evaluate_out(part, batch)?;
            let vector = convert(&out.vector, &part.kind, &node.kind, *on_failure)
                .map_err(|error| error.at(node.at))?;
            Ok(Out { vector: Cow::Owned(vector), is_one: out.is_one })
        }
        Op::Arithmetic(arithmetic, left, right) => {
            let sides = Sides::of(left, right, batch)?;
            sides.arithmetic(*arithmetic, &node.kind, node.at)
        }
        Op::Negate(part) => {
            let zero = Node { op: Op::Constant(zero_of(&node.kind)), ..node.clone() };
            let sides = Sides::of(&zero, part, batch)?;
            match node.kind {
                // Zero less zero is plus zero, and its negation is not.
                Kind::Real | Kind::Float => {
                    let Data::Float(values) = &sides.right.vector.data else {
                        unreachable!("floats")
                    };
                    let data = Data::Float(values.iter().map(|value| -value).collect());
                    let vector = Vector { data, nulls: sides.right.vector.nulls.clone() };
                    Ok(Out { vector: Cow::Owned(vector), is_one: sides.right.is_one })
                }
                _ => sides.arithmetic(Arithmetic::Subtract, &node.kind, node.at),
            }
        }
        Op::Compare(comparison, left, right) => {
            Ok(Sides::of(left, right, batch)?.compare(*comparison))
        }
        Op::Same(left, right) => Ok(Sides::of(left, right, batch)?.same()),
        Op::And(parts) => each(junction(parts, Junction::And, batch)?),
        Op::Or(parts) => each(junction(parts, Junction::Or, batch)?),
        Op::Not(part) => {
            let out = evaluate_out(part, batch)?;
            let data = Data::Bool(truths(&out.vector).iter().map(|value| !value).collect());
            let vector = Vector { data, nulls: out.vector.nulls.clone() };
            Ok(Out { vector: Cow::Owned(vector), is_one: out.is_one })
        }
        Op::IsNull(part) => {
            let out = evaluate_out(part, batch)?;
            let len = out.vector.len();
            let values = out.vector.nulls.clone().unwrap_or_else(|| vec![false; len]);
            let vector = Vector::new(Data::Bool(values));
            Ok(Out { vector: Cow::Owned(vector), is_one: out.is_one })
        }
        Op::In(part, members) => {
            let out = evaluate_out(part, batch)?;
            let mut vector = Vector::new(Data::Bool(Vec::new()));
            let mut bytes = Vec::new();
            for row in 0..out.vector.len() {
                bytes.clear();
                let found = !out.vector.is_null(row) && {
                    encode_value(&out.vector, row, &mut bytes);
                    members.encoded.contains(&bytes)
                };
                match found {
                    false if members.has_null || out.vector.is_null(row) => vector.push_null(),
                    found => vector.push_value(&Value::Bool(found)),
                }
            }
            Ok(Out { vector: Cow::Owned(vector), is_one: out.is_one })
        }
        Op::Like(part, pattern) => {
            let out = evaluate_out(part, batch)?;
            let matched = (0..out.vector.len()).map(|row| {
                let is_null = out.vector.is_null(row);
                Ok(!is_null && pattern.matches(out.text(row)?))
            });
            let data = Data::Bool(matched.collect::<Result<_>>()?);
            let vector = Vector { data, nulls: out.vector.nulls.clone() };
            Ok(Out { vector: Cow::Owned(vector), is_one: out.is_one })
        }
        Op::Case(branches, otherwise) => each(case(branches, otherwise, &node.kind, batch)?),
        Op::Coalesce(parts) => each(coalesce(parts, &node.kind, batch)?),
        Op::Function(function, parts) => {
            let parts = parts.iter().map(|part| Ok((evaluate_out(part, batch)?, &part.kind)));
            let parts: Vec<(Out<'_>, &Kind)> = parts.collect::<Result<_>>()?;
            let is_one = !parts.is_empty() && parts.iter().all(|(out, _)| out.is_one);
            let len = if is_one { 1 } else { batch.len };
            let vector =
                function.evaluate(&parts, len, &node.kind).map_err(|error| error.at(node.at))?;
            Ok(Out { vector: Cow::Owned(vector), is_one })
        }
    }
}

/// A column in the representation of its kind.
fn column_of<'a>(batch: &'a Batch, column: usize, kind: &Kind) -> Cow<'a, Vector> {
    let vector = &batch.columns[column];
    match (kind, &vector.data) {
        (Kind::Decimal(_), Data::Int(values)) => Cow::Owned(Vector {
            data: Data::Big(values.iter().map(|&value| value.into()).collect()),
            nulls: vector.nulls.clone(),
        }),
        _ => Cow::Borrowed(vector),
    }
}

/// A vector of one value.
fn one(value: &Value<'_>, kind: &Kind) -> Vector {
    let mut vector = Vector::new(kind.data());
    vector.push_value(value);
    vector
}

fn zero_of(kind: &Kind) -> Value<'static> {
    match kind {
        Kind::Real | Kind::Float => Value::Float(0.0),
        Kind::Decimal(scale) => Value::Decimal { units: 0, scale: *scale },
        _ => Value::Int(0),
    }
}

fn truths(vector: &Vector) -> &[bool] {
    match &vector.data {
        Data::Bool(values) => values,
        other => unreachable!("{other:?} are no truth values"),
    }
}

/// Two expressions of one kind.
struct Sides<'a> {
    left: Out<'a>,
    right: Out<'a>,
    len: usize,
    is_one: bool,
}

impl<'a> Sides<'a> {
    fn of(left: &Node, right: &Node, batch: &'a Batch) -> Result<Sides<'a>> {
        let (left, right) = (evaluate_out(left, batch)?, evaluate_out(right, batch)?);
        let is_one = left.is_one && right.is_one;
        let len = if is_one { 1 } else { batch.len };
        Ok(Sides { left, right, len, is_one })
    }

    fn out(&self, data: Data, nulls: Option<Vec<bool>>) -> Out<'static> {
        Out { vector: Cow::Owned(Vector { data, nulls }), is_one: self.is_one }
    }

    /// The rows that are null on one side at least.
    fn nulls(&self) -> Option<Vec<bool>> {
        let (left, right) = (&self.left, &self.right);
        match (&left.vector.nulls, &right.vector.nulls) {
            (None, None) => None,
            (Some(nulls), None) if !left.is_one || self.is_one => Some(nulls.clone()),
            (None, Some(nulls)) if !right.is_one || self.is_one => Some(nulls.clone()),
            _ => Some((0..self.len).map(|row| left.is_null(row) || right.is_null(row)).collect()),
        }
    }

    fn arithmetic(&self, arithmetic: Arithmetic, kind: &Kind, at: Span) -> Result<Out<'static>> {
        let nulls = self.nulls();
        let (left, right) = (&self.left.vector.data, &self.right.vector.data);
        let wrong = |problem: Problem| {
            Err(match problem {
                Problem::Zero => Error::value("division by zero"),
                Problem::Overflow => Error::value(format!(
                    "{} is too large for {kind}{}",
                    match arithmetic {
                        Arithmetic::Add => "a sum",
                        Arithmetic::Subtract => "a difference",
                        Arithmetic::Multiply => "a product",
                        Arithmetic::Divide | Arithmetic::Remainder => "a quotient",
                    },
                    match kind {
                        Kind::Int => ": cast a side to hugeint or double",
                        Kind::Big | Kind::Decimal(_) => ": cast a side to double",
                        _ => "",
                    }
                )),
            }
            .at(at))
        };
        let data = match (left, right) {
            (Data::Int(left), Data::Int(right)) => {
                let limits = match kind {
                    Kind::Date => i64::from(i32::MIN)..=i64::from(i32::MAX),
                    _ => i64::MIN..=i64::MAX,
                };
                let run = |apply: fn(i64, i64) -> Result<i64, Problem>| {
                    self.each(left, right, nulls.as_deref(), |left, right| {
                        apply(left, right).and_then(|it| {
                            if limits.contains(&it) { Ok(it) } else { Err(Problem::Overflow) }
                        })
                    })
                };
                let done = match arithmetic {
                    Arithmetic::Add => run(|a, b| a.checked_add(b).ok_or(Problem::Overflow)),
                    Arithmetic::Subtract => run(|a, b| a.checked_sub(b).ok_or(Problem::Overflow)),
                    Arithmetic::Multiply => run(|a, b| a.checked_mul(b).ok_or(Problem::Overflow)),
                    Arithmetic::Divide => run(|a, b| match b {
                        0 => Err(Problem::Zero),
                        b => a.checked_div(b).ok_or(Problem::Overflow),
                    }),
                    Arithmetic::Remainder => run(|a, b| match b {
                        0 => Err(Problem::Zero),
                        b => Ok(a.wrapping_rem(b)),
                    }),
                };
                done.map(Data::Int)
            }
            (Data::Big(left), Data::Big(right)) => {
                let limit = match kind {
                    Kind::Decimal(_) => sapwood_schema::POWERS_OF_TEN[38],
                    _ => i128::MAX,
                };
                let run = |apply: fn(i128, i128) -> Result<i128, Problem>| {
                    self.each(left, right, nulls.as_deref(), |left, right| {
                        let result = apply(left, right)?;
                        match limit == i128::MAX || (-limit < result && result < limit) {
                            true => Ok(result),
                            false => Err(Problem::Overflow),
                        }
                    })
                };
                match arithmetic {
                    Arithmetic::Add => run(|a, b| a.checked_add(b).ok_or(Problem::Overflow)),
                    Arithmetic::Subtract => run(|a, b| a.checked_sub(b).ok_or(Problem::Overflow)),
                    Arithmetic::Multiply => run(|a, b| a.checked_mul(b).ok_or(Problem::Overflow)),
                    Arithmetic::Divide => run(|a, b| match b {
                        0 => Err(Problem::Zero),
                        b => a.checked_div(b).ok_or(Problem::Overflow),
                    }),
                    Arithmetic::Remainder => run(|a, b| match b {
                        0 => Err(Problem::Zero),
                        b => Ok(a.wrapping_rem(b)),
                    }),
                }
                .map(Data::Big)
            }
            (Data::Float(left), Data::Float(right)) => {
                let run = |apply: fn(f64, f64) -> f64| {
                    self.each(left, right, nulls.as_deref(), |left, right| {
                        let divides =
                            matches!(arithmetic, Arithmetic::Divide | Arithmetic::Remainder);
                        if divides && right == 0.0 {
                            return Err(Problem::Zero);
                        }
                        let result = apply(left, right);
                        match result.is_infinite() && left.is_finite() && right.is_finite() {
                            true => Err(Problem::Overflow),
                            false => Ok(result),
                        }
                    })
                };
                match arithmetic {
                    Arithmetic::Add => run(|a, b| a + b),
                    Arithmetic::Subtract => run(|a, b| a - b),
                    Arithmetic::Multiply => run(|a, b| a * b),
                    Arithmetic::Divide => run(|a, b| a / b),
                    Arithmetic::Remainder => run(|a, b| a % b),
                }
                .map(Data::Float)
            }
            (left, right) => unreachable!("{left:?} {} {right:?}", arithmetic.sign()),
        };
        match data {
            Ok(data) => Ok(self.out(data, nulls)),
            Err(problem) => wrong(problem),
        }
    }

    /// A result for each row that has values on both sides.
    fn each<T: Copy, R: Default>(
        &self,
        left: &[T],
        right: &[T],
        nulls: Option<&[bool]>,
        apply: impl Fn(T, T) -> Result<R, Problem>,
    ) -> Result<Vec<R>, Problem> {
        let (left_step, right_step) = (self.left.step(), self.right.step());
        let mut results = Vec::with_capacity(self.len);
        for row in 0..self.len {
            if nulls.is_some_and(|nulls| nulls[row]) {
                results.push(R::default());
                continue;
            }
            results.push(apply(left[row * left_step], right[row * right_step])?);
        }
        Ok(results)
    }

    fn compare(&self, comparison: Comparison) -> Out<'static> {
        let (a, b) = (self.left.step(), self.right.step());
        let rows = 0..self.len;
        // One loop for each comparison: the processor then takes many rows at once.
        macro_rules! by_value {
            ($left:expr, $right:expr) => {{
                let (left, right) = ($left, $right);
                match comparison {
                    Comparison::Equal => rows.map(|row| left[row * a] == right[row * b]).collect(),
                    Comparison::NotEqual => {
                        rows.map(|row| left[row * a] != right[row * b]).collect()
                    }
                    Comparison::Less => rows.map(|row| left[row * a] < right[row * b]).collect(),
                    Comparison::LessOrEqual => {
                        rows.map(|row| left[row * a] <= right[row * b]).collect()
                    }
                    Comparison::Greater => rows.map(|row| left[row * a] > right[row * b]).collect(),
                    Comparison::GreaterOrEqual => {
                        rows.map(|row| left[row * a] >= right[row * b]).collect()
                    }
                }
            }};
        }
        let values: Vec<bool> = match (&self.left.vector.data, &self.right.vector.data) {
            (Data::Int(left), Data::Int(right)) => by_value!(left, right),
            (Data::Big(left), Data::Big(right)) => by_value!(left, right),
            (Data::Huge(left), Data::Huge(right)) => by_value!(left, right),
            // Those with a sign and those without one have no kind in which all of both are.
            (Data::Big(left), Data::Huge(right)) => rows
                .map(|row| comparison.holds(with_unsigned(left[row * a], right[row * b])))
                .collect(),
            (Data::Huge(left), Data::Big(right)) => rows
                .map(|row| comparison.holds(with_unsigned(right[row * b], left[row * a]).reverse()))
                .collect(),
            (Data::Bool(left), Data::Bool(right)) => by_value!(left, right),
            (Data::Float(left), Data::Float(right)) => rows
                .map(|row| comparison.holds(compare_floats(left[row * a], right[row * b])))
                .collect(),
            (Data::Bytes(left), Data::Bytes(right)) => match comparison {
                Comparison::Equal => {
                    rows.map(|row| left.get(row * a) == right.get(row * b)).collect()
                }
                Comparison::NotEqual => {
                    rows.map(|row| left.get(row * a) != right.get(row * b)).collect()
                }
                _ => rows
                    .map(|row| comparison.holds(left.get(row * a).cmp(right.get(row * b))))
                    .collect(),
            },
            (left, right) => unreachable!("{left:?} is not compared with {right:?}"),
        };
        self.out(Data::Bool(values), self.nulls())
    }

    /// `is not distinct from`.
    fn same(&self) -> Out<'static> {
        let equal = self.compare(Comparison::Equal);
        let values = truths(&equal.vector).iter().enumerate().map(|(row, &equal)| {
            match (self.left.is_null(row), self.right.is_null(row)) {
                (false, false) => equal,
                (left, right) => left && right,
            }
        });
        self.out(Data::Bool(values.collect()), None)
    }
}

/// A number with a sign beside one without.
fn with_unsigned(left: i128, right: u128) -> Ordering {
    u128::try_from(left).map_or(Ordering::Less, |left| left.cmp(&right))
}

#[derive(Debug, Clone, Copy)]
enum Problem {
    Overflow,
    Zero,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Junction {
    And,
    Or,
}

/// By three values: a part that decides does so whether or not others are null.
fn junction(parts: &[Node], junction: Junction, batch: &Batch) -> Result<Vector> {
    // What decides an `and` is false, and an `or` true.
    let decides = junction == Junction::Or;
    let mut values = vec![!decides; batch.len];
    let mut nulls = vec![false; batch.len];
    for part in parts {
        let open: Vec<u32> = match part.can_fail() {
            true => {
                let rows = 0..batch.len as u32;
                rows.filter(|&row| nulls[row as usize] || values[row as usize] != decides).collect()
            }
            false => Vec::new(),
        };
        let mut take = |row: usize, value: bool, is_null: bool| {
            if !is_null && value == decides {
                (values[row], nulls[row]) = (decides, false);
            } else if is_null && (nulls[row] || values[row] != decides) {
                nulls[row] = true;
            }
        };
        if part.can_fail() {
            let vector = evaluate_at(part, batch, &open)?;
            let of_part = truths(&vector);
            for (at, &row) in open.iter().enumerate() {
                take(row as usize, of_part[at], vector.is_null(at));
            }
            continue;
        }
        let out = evaluate_out(part, batch)?;
        let of_part = truths(&out.vector);
        match (&out.vector.nulls, out.is_one) {
            (None, false) => {
                for (row, &value) in of_part.iter().enumerate() {
                    take(row, value, false);
                }
            }
            _ => {
                for row in 0..batch.len {
                    take(row, of_part[row * out.step()], out.is_null(row));
                }
            }
        }
    }
    let nulls = nulls.contains(&true).then_some(nulls);
    Ok(Vector { data: Data::Bool(values), nulls })
}

/// Values of several vectors, put together by row.
struct Choice {
    vectors: Vec<Vector>,
    /// For each row, which vector, and which value of it.
    chosen: Vec<Option<(u32, u32)>>,
}

impl Choice {
    fn of(batch: &Batch) -> Choice {
        Choice { vectors: Vec::new(), chosen: vec![None; batch.len] }
    }

    /// These rows get the values of an expression.
    fn choose(&mut self, node: &Node, batch: &Batch, rows: &[u32]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let number = self.vectors.len() as u32;
        for (at, &row) in rows.iter().enumerate() {
            self.chosen[row as usize] = Some((number, at as u32));
        }
        self.vectors.push(evaluate_at(node, batch, rows)?.into_owned());
        Ok(())
    }

    /// Rows that chose none are null.
    fn into_vector(self, kind: &Kind) -> Vector {
        let mut vector = Vector::new(kind.data());
        for chosen in self.chosen {
            match chosen {
                Some((number, at)) => vector.push_from(&self.vectors[number as usize], at as usize),
                None => vector.push_null(),
            }
        }
        vector
    }
}

fn case(branches: &[(Node, Node)], otherwise: &Node, kind: &Kind, batch: &Batch) -> Result<Vector> {
    let mut choice = Choice::of(batch);
    let mut open: Vec<u32> = (0..batch.len as u32).collect();
    for (condition, result) in branches {
        let conditions = evaluate_at(condition, batch, &open)?;
        let values = truths(&conditions);
        let is_met = |at: usize| values[at] && !conditions.is_null(at);
        let pick = |wanted: bool| {
            let rows = open.iter().enumerate().filter(|(at, _)| is_met(*at) == wanted);
            rows.map(|(_, &row)| row).collect::<Vec<u32>>()
        };
        let (met, rest) = (pick(true), pick(false));
        choice.choose(result, batch, &met)?;
        open = rest;
    }
    choice.choose(otherwise, batch, &open)?;
    Ok(choice.into_vector(kind))
}

fn coalesce(parts: &[Node], kind: &Kind, batch: &Batch) -> Result<Vector> {
    let mut choice = Choice::of(batch);
    let mut open: Vec<u32> = (0..batch.len as u32).collect();
    for part in parts {
        if open.is_empty() {
            break;
        }
        choice.choose(part, batch, &open)?;
        let vector = choice.vectors.last().expect("it was chosen");
        let rows = open.iter().enumerate().filter(|(at, _)| vector.is_null(*at));
        open = rows.map(|(_, &row)| row).collect();
    }
    Ok(choice.into_vector(kind))
}

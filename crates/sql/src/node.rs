//! Expressions whose names are columns and whose types are known.

use std::collections::HashSet;

use sapwood_schema::Value;
use sqlparser::tokenizer::Span;

use crate::functions::Function;
use crate::kind::Kind;
use crate::like::Pattern;

/// An expression with its type.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) op: Op,
    pub(crate) kind: Kind,
    /// Where it stands in the statement.
    pub(crate) at: Span,
}

/// Two are equal if they compute the same, wherever they stand.
impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.kind == other.kind && self.op == other.op
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    /// A column of the batch.
    Column(usize),
    Constant(Value<'static>),
    /// The value in the kind of this node: where kinds meet, and `cast`.
    Convert(Box<Node>, OnFailure),
    /// Of two numbers of this node's kind.
    Arithmetic(Arithmetic, Box<Node>, Box<Node>),
    Negate(Box<Node>),
    /// Of two values of one kind.
    Compare(Comparison, Box<Node>, Box<Node>),
    /// Whether both are null, or both are there and equal.
    Same(Box<Node>, Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    IsNull(Box<Node>),
    /// Whether a value is among constants of its kind.
    In(Box<Node>, Members),
    Like(Box<Node>, Box<Pattern>),
    /// The first result whose condition is true.
    Case(Vec<(Node, Node)>, Box<Node>),
    /// The first that is not null.
    Coalesce(Vec<Node>),
    Function(Function, Vec<Node>),
}

/// What becomes of a value that has no counterpart in another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    Refuse,
    /// It is null: `try_cast`.
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Arithmetic {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Remainder => "%",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The one that holds of `b` and `a` where this holds of `a` and `b`.
    pub(crate) fn mirrored(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }

    #[inline]
    pub(crate) fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// The constants of an `in`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Members {
    pub(crate) values: Vec<Value<'static>>,
    /// Each as the bytes that [`crate::group`] makes of a value.
    pub(crate) encoded: HashSet<Vec<u8>>,
    pub(crate) has_null: bool,
}

impl Node {
    pub(crate) fn constant(value: Value<'static>, at: Span) -> Node {
        Node { kind: Kind::of_value(&value), op: Op::Constant(value), at }
    }

    pub(crate) fn column(column: usize, kind: Kind, at: Span) -> Node {
        Node { op: Op::Column(column), kind, at }
    }

    /// A truth value.
    pub(crate) fn truth(op: Op, at: Span) -> Node {
        Node { op, kind: Kind::Bool, at }
    }

    pub(crate) fn as_constant(&self) -> Option<&Value<'static>> {
        match &self.op {
            Op::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is a text in quotes, which becomes what it meets.
    pub(crate) fn is_quoted(&self) -> bool {
        self.kind == Kind::Text && self.as_constant().is_some()
    }

    /// The expressions that it is made of.
    pub(crate) fn parts(&self) -> Vec<&Node> {
        match &self.op {
            Op::Column(_) | Op::Constant(_) => Vec::new(),
            Op::Convert(part, _)
            | Op::Negate(part)
            | Op::Not(part)
            | Op::IsNull(part)
            | Op::In(part, _)
            | Op::Like(part, _) => vec![part],
            Op::Arithmetic(_, left, right)
            | Op::Compare(_, left, right)
            | Op::Same(left, right) => vec![left, right],
            Op::And(parts) | Op::Or(parts) | Op::Coalesce(parts) | Op::Function(_, parts) => {
                parts.iter().collect()
            }
            Op::Case(branches, otherwise) => {
                let branches = branches.iter().flat_map(|(condition, result)| [condition, result]);
                branches.chain([&**otherwise]).collect()
            }
        }
    }

    /// The same, to be changed.
    pub(crate) fn parts_mut(&mut self) -> Vec<&mut Node> {
        match &mut self.op {
            Op::Column(_) | Op::Constant(_) => Vec::new(),
            Op::Convert(part, _)
            | Op::Negate(part)
            | Op::Not(part)
            | Op::IsNull(part)
            | Op::In(part, _)
            | Op::Like(part, _) => vec![part],
            Op::Arithmetic(_, left, right)
            | Op::Compare(_, left, right)
            | Op::Same(left, right) => vec![left, right],
            Op::And(parts) | Op::Or(parts) | Op::Coalesce(parts) | Op::Function(_, parts) => {
                parts.iter_mut().collect()
            }
            Op::Case(branches, otherwise) => {
                let branches =
                    branches.iter_mut().flat_map(|(condition, result)| [condition, result]);
                branches.chain([&mut **otherwise]).collect()
            }
        }
    }

    /// Calls `found` with each column that it reads.
    pub(crate) fn columns(&self, found: &mut impl FnMut(usize)) {
        if let Op::Column(column) = self.op {
            found(column);
        }
        self.parts().into_iter().for_each(|part| part.columns(found));
    }

    /// Gives each column that it reads another number.
    pub(crate) fn renumber(&mut self, number: &impl Fn(usize) -> usize) {
        if let Op::Column(column) = &mut self.op {
            *column = number(*column);
        }
        self.parts_mut().into_iter().for_each(|part| part.renumber(number));
    }

    /// Whether it has no value for some rows, so that it must not be computed where it is not asked for.
    pub(crate) fn can_fail(&self) -> bool {
        let itself = match &self.op {
            Op::Convert(part, OnFailure::Refuse) => {
                // Whole numbers become floats and larger ones whatever they are worth.
                !matches!(
                    (&part.kind, &self.kind),
                    (Kind::Int, Kind::Big)
                        | (Kind::Null, _)
                        | (Kind::Int | Kind::Big | Kind::Decimal(_), Kind::Real | Kind::Float)
                        | (Kind::Huge | Kind::Real, Kind::Float)
                )
            }
            Op::Arithmetic(..) | Op::Negate(_) | Op::Function(..) => true,
            _ => false,
        };
        itself || self.parts().into_iter().any(Node::can_fail)
    }
}

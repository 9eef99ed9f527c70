//! What a `select` asks, with names, types and the way to its rows known.

mod keys;
mod select;

pub(crate) use keys::key_filter;
pub(crate) use select::{bind_select, scope_of, table_name, table_of};

use sapwood_schema::Type;

use crate::node::Node;
use crate::order::{Direction, Nulls};
use crate::source::Request;
use crate::states::AggregateCall;

/// A `select` over one source.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The columns of the source that it reads, and what it knows of keys.
    pub(crate) request: Request,
    /// Over the columns of the request.
    pub(crate) filter: Option<Node>,
    pub(crate) grouping: Option<Grouping>,
    /// Over groups: first the values that they are by, then the aggregates.
    pub(crate) having: Option<Node>,
    /// Over groups, if there is a grouping, and else over the columns of the request.
    pub(crate) outputs: Vec<Output>,
    /// Rows of the answer that are equal are there once.
    pub(crate) is_distinct: bool,
    pub(crate) order: Vec<OrderKey>,
    pub(crate) limit: Option<u64>,
    pub(crate) offset: u64,
    /// The parts of the statement, for `explain`.
    pub(crate) words: Words,
}

impl Plan {
    /// Whether each row of the answer is one of the source, and all that it needs.
    pub(crate) fn is_stream(&self) -> bool {
        self.grouping.is_none()
            && !self.is_distinct
            && self.order.is_empty()
            && self.limit.is_none()
            && self.offset == 0
    }
}

/// Rows of one group become one.
#[derive(Debug)]
pub(crate) struct Grouping {
    pub(crate) by: Vec<Node>,
    pub(crate) calls: Vec<AggregateCall>,
}

/// A column of the answer.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) node: Node,
}

impl Output {
    pub(crate) fn kind(&self) -> Type {
        self.node.kind.to_type()
    }
}

/// What the answer is sorted by.
#[derive(Debug, Clone)]
pub(crate) struct OrderKey {
    /// Over what outputs are over; over the outputs, if the plan is distinct.
    pub(crate) node: Node,
    pub(crate) direction: Direction,
    pub(crate) nulls: Nulls,
}

/// Parts of a statement as they were written.
#[derive(Debug, Default)]
pub(crate) struct Words {
    pub(crate) filter: Option<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) having: Option<String>,
    pub(crate) order: Vec<String>,
}

//! The order in which rows, or texts of a group, come.

use sqlparser::ast;

use crate::error::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    First,
    Last,
}

/// The order that stands behind an expression of `order by`.
pub(crate) fn order_of(options: &ast::OrderByOptions) -> Result<(Direction, Nulls)> {
    let direction = match &options.sort {
        None | Some(ast::OrderBySort::Asc) => Direction::Ascending,
        Some(ast::OrderBySort::Desc) => Direction::Descending,
        Some(ast::OrderBySort::Using(_)) => {
            return Err(Error::unsupported("`order by ... using` is not supported"));
        }
    };
    let nulls = match options.nulls_first {
        Some(true) => Nulls::First,
        Some(false) | None => Nulls::Last,
    };
    Ok((direction, nulls))
}

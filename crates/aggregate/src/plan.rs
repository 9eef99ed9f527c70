//! The plan of a query: what it compiles to, before any object is seen.

pub(crate) mod columns;
pub(crate) mod compiled;
pub(crate) mod group_column;
pub(crate) mod meaning;
pub(crate) mod membership;
pub(crate) mod output;
pub(crate) mod state_plan;

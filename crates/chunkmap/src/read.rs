//! Operations that change nothing: look-ups, and walks over the entries of a range.

pub(crate) mod columns;
pub(crate) mod get;
pub(crate) mod lock;
pub(crate) mod navigate;
pub(crate) mod range;
pub(crate) mod rank;
pub(crate) mod scan;
pub(crate) mod split_points;

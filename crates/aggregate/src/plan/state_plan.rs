//! The parts of a compiled query that its folds and its columns share: groups and states.

use crate::question::group::Shape;
use crate::state::Spec;

/// One of the values of a group.
#[derive(Debug, Clone)]
pub(crate) struct GroupPlan {
    /// Which of the reads.
    pub(crate) read: usize,
    pub(crate) shape: Shape,
}

/// One state of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StatePlan {
    pub(crate) spec: Spec,
    /// Which of the reads is added; none: the object is counted.
    pub(crate) value: Option<usize>,
    /// By which of the reads first and last are found.
    pub(crate) by: Option<usize>,
}

//! The roll-ups of a log in a build without the feature `rollup`: there are none.

/// The roll-ups that are open.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenRollups {}

impl OpenRollups {
    /// Merges small segments.
    pub(super) fn merge(&self) {}
}

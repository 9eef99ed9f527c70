//! The outcomes of operations whose closures see or decide.

/// The decision of a closure of `compute`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compute {
    /// Leave everything as it is.
    Keep,
    /// Make this the value, whether there was one or not.
    Replace(Vec<u8>),
    /// Remove the entry, if there is one.
    Remove,
}

/// The outcome of `compute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Computed {
    /// The entry is there, unchanged.
    Kept,
    /// There was none, now there is.
    Inserted,
    /// The value was replaced.
    Replaced,
    /// The entry was removed.
    Removed,
    /// There was none, and there is none.
    Absent,
}

/// The outcome of `put_if_absent_or_update`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upsert<R> {
    /// The key was absent and has the given value now.
    Inserted,
    /// The key was there; this is what the closure returned.
    Updated(R),
}

//! Errors: why a run came to no end.

use sapwood_aggregate::QueryError;

use crate::Executor;

/// The result of a run.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a run was refused or ended. It names no table: its caller knows which it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A query does not fit together, objects do not have what it reads, or a figure leaves its
    /// range.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The requested executor is not available for these objects.
    #[error("{}{why}", executor.map_or(String::new(), |executor| format!("the executor `{executor}` ")))]
    Executor {
        /// The executor, if one was asked for.
        executor: Option<Executor>,
        /// Why not, and what to do.
        why: String,
    },
    /// The run was cancelled.
    #[error("cancelled after {visited} visits")]
    Cancelled {
        /// Objects, keys or records that were visited by then.
        visited: u64,
    },
    /// The ordered engine refused.
    #[error(transparent)]
    Ordered(#[from] sapwood_chunkmap::Error),
    /// The hash engine refused.
    #[error(transparent)]
    Hash(#[from] sapwood_hashlog::Error),
    /// The tree engine refused.
    #[error(transparent)]
    Tree(#[from] sapwood_ptree::Error),
    /// A batch of changes stopped in the hash engine.
    #[error(transparent)]
    HashBatch(#[from] sapwood_hashlog::BatchError),
}

impl Error {
    /// Whether the hash engine had no memory for a change.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        use sapwood_hashlog::{BatchError, Error::OutOfMemory};
        matches!(self, Error::HashBatch(BatchError { error: OutOfMemory { .. }, .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_and_why() {
        let why = "does not see one moment".to_owned();
        let error = Error::Executor { executor: Some(Executor::Walk), why: why.clone() };
        assert_eq!(error.to_string(), "the executor `walk` does not see one moment");
        assert_eq!(Error::Executor { executor: None, why: why.clone() }.to_string(), why);
        assert_eq!(Error::Cancelled { visited: 7 }.to_string(), "cancelled after 7 visits");
        let cause = sapwood_hashlog::Error::Reentrant;
        assert_eq!(Error::from(cause.clone()).to_string(), cause.to_string());
    }
}

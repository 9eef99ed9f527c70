//! The keys of one table among the versions that transactions go by.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sapwood_occ::{Conflict, Shared, SharedAtOnce, Stripe, Versions};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A table's keys, by stripes that it shares with all tables of its database.
#[derive(Debug, Clone)]
pub(crate) struct KeyVersions {
    versions: Arc<Versions>,
    /// Lets the same key of two tables fall into two stripes.
    seed: u64,
}

impl KeyVersions {
    pub(crate) fn new(versions: &Arc<Versions>) -> KeyVersions {
        static TABLES: AtomicU64 = AtomicU64::new(0);
        let seed = TABLES.fetch_add(1, Ordering::Relaxed);
        KeyVersions { versions: Arc::clone(versions), seed }
    }

    /// Whether the table is of the database that has these versions.
    pub(crate) fn is_among(&self, versions: &Versions) -> bool {
        std::ptr::eq(&*self.versions, versions)
    }

    pub(crate) fn stripe(&self, key: &[u8]) -> Stripe {
        self.versions.stripe(xxh3_64_with_seed(key, self.seed))
    }

    /// Held while a change of any keys is made, if that is to be had at once.
    #[inline(always)]
    pub(crate) fn share_at_once(&self) -> Option<SharedAtOnce<'_>> {
        self.versions.share_at_once()
    }

    /// Held while a change of a key is made.
    #[inline]
    pub(crate) fn share(&self, key: &[u8]) -> Result<Shared<'_>, Conflict> {
        self.versions.share(|stripe| stripe(self.stripe(key)))
    }

    /// Held while changes of some keys are made.
    #[inline]
    pub(crate) fn share_many<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<Shared<'_>, Conflict> {
        self.versions.share(|stripe| keys.for_each(|key| stripe(self.stripe(key))))
    }

    /// Held while changes of any keys are made.
    #[inline]
    pub(crate) fn share_all(&self) -> Result<Shared<'_>, Conflict> {
        self.versions.share_all()
    }
}

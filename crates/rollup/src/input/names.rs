//! Columns by their names.

use std::fmt;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// Up to so many columns are compared one by one, which takes no longer than a hash.
const FEW: usize = 16;

/// Where columns of a list are, by the hashes of their names.
#[derive(Clone, Default)]
pub(super) struct Names {
    /// Empty of few.
    table: HashTable<u32>,
}

fn hash(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

impl Names {
    pub(super) fn of<T>(columns: &[(String, T)]) -> Names {
        let mut names = Names::default();
        if columns.len() > FEW {
            (0..columns.len()).for_each(|at| names.insert(columns, at));
        }
        names
    }

    pub(super) fn find<T>(&self, columns: &[(String, T)], name: &str) -> Option<usize> {
        if columns.len() <= FEW {
            return columns.iter().position(|(known, _)| known == name);
        }
        let found = self.table.find(hash(name), |&at| columns[at as usize].0 == name);
        found.map(|&at| at as usize)
    }

    /// The last column is new.
    pub(super) fn added<T>(&mut self, columns: &[(String, T)]) {
        if columns.len() == FEW + 1 {
            *self = Names::of(columns);
        } else if columns.len() > FEW {
            self.insert(columns, columns.len() - 1);
        }
    }

    /// The columns from one on are about to go.
    pub(super) fn truncate<T>(&mut self, columns: &[(String, T)], len: usize) {
        if len <= FEW {
            self.table.clear();
            return;
        }
        for (at, (name, _)) in columns.iter().enumerate().skip(len) {
            if let Ok(known) = self.table.find_entry(hash(name), |&known| known as usize == at) {
                known.remove();
            }
        }
    }

    fn insert<T>(&mut self, columns: &[(String, T)], at: usize) {
        let of = |&at: &u32| hash(&columns[at as usize].0);
        self.table.insert_unique(of(&(at as u32)), at as u32, of);
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The columns show them.
        f.debug_struct("Names").finish_non_exhaustive()
    }
}

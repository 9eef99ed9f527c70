//! The databases and tables of a service, and how a command may use them.

use std::sync::Arc;

use sapwood::HashTable;

use crate::replicas::Exclusive;
use crate::store::keyspace::Keyspace;
use crate::store::memory::Memory;
use crate::store::tables::{Handle, Tables, is_own};

/// Databases by number, each made when it is used first, and tables by name.
#[derive(Debug, Clone)]
pub(crate) struct Databases(Vec<Option<Arc<Keyspace>>>, Tables);

impl Databases {
    /// None yet, with room for so many.
    pub(crate) fn new(count: usize) -> Databases {
        Databases(vec![None; count], Tables::default())
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&Arc<Keyspace>> {
        self.0.get(number)?.as_ref()
    }

    pub(crate) fn set(&mut self, number: usize, space: Option<Arc<Keyspace>>) {
        if let Some(database) = self.0.get_mut(number) {
            *database = space;
        }
    }

    /// Those that there are, with their numbers.
    pub(crate) fn made(&self) -> impl Iterator<Item = (usize, &Arc<Keyspace>)> {
        self.0.iter().enumerate().filter_map(|(number, space)| Some((number, space.as_ref()?)))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Hash tables of databases, and those that commands have used.
    pub(crate) fn hash_tables(&self) -> impl Iterator<Item = &HashTable> {
        self.made().flat_map(|(_, space)| space.lasting()).chain(self.1.hash_tables())
    }

    /// One of them, by its name.
    pub(crate) fn hash_table(&self, name: &str) -> Option<&HashTable> {
        if is_own(name.as_bytes()) {
            let mut lasting = self.made().flat_map(|(_, space)| space.lasting());
            return lasting.find(|table| table.name() == name);
        }
        match self.1.get(name.as_bytes())? {
            Handle::Keyed(table) => table.as_hash(),
            Handle::Rollup(_) => None,
        }
    }

    /// Tables that commands have used.
    pub(crate) fn tables(&self) -> &Tables {
        &self.1
    }

    /// Memory of databases and tables.
    pub(crate) fn memory(&self) -> Memory {
        self.memory_of_hash_tables() + self.memory_beside()
    }

    /// Memory of hash tables, whose figures cost the same whatever they hold.
    pub(crate) fn memory_of_hash_tables(&self) -> Memory {
        self.hash_tables().map(|table| Memory::of_hash(&table.stats())).sum()
    }

    /// Memory of all others, whose figures take a walk of their nodes.
    pub(crate) fn memory_beside(&self) -> Memory {
        let ends: Memory = self.made().map(|(_, space)| space.memory_of_ends()).sum();
        ends + self.1.memory_beside()
    }

    pub(crate) fn tables_mut(&mut self) -> &mut Tables {
        &mut self.1
    }
}

/// The databases, as a command may use them.
pub(crate) enum Access<'a> {
    /// Beside other commands.
    Shared(&'a Databases),
    /// With no other beside it.
    Exclusive(&'a mut (dyn AllReplicas + 'a)),
}

/// All replicas of the databases, for a command that changes which there are.
pub(crate) trait AllReplicas {
    fn databases(&self) -> &Databases;
    fn set(&mut self, number: usize, space: Option<Arc<Keyspace>>);
    fn set_table(&mut self, name: &str, handle: Option<&Handle>);
}

impl AllReplicas for Exclusive<'_, Databases> {
    fn databases(&self) -> &Databases {
        self
    }

    fn set(&mut self, number: usize, space: Option<Arc<Keyspace>>) {
        self.change(|databases| databases.set(number, space));
    }

    fn set_table(&mut self, name: &str, handle: Option<&Handle>) {
        self.change(|databases| databases.tables_mut().set(name, handle));
    }
}

impl Access<'_> {
    pub(crate) fn databases(&self) -> &Databases {
        match self {
            Access::Shared(databases) => databases,
            Access::Exclusive(all) => all.databases(),
        }
    }

    /// The same, for a shorter time.
    pub(crate) fn reborrow(&mut self) -> Access<'_> {
        match self {
            Access::Shared(databases) => Access::Shared(databases),
            Access::Exclusive(all) => Access::Exclusive(&mut **all),
        }
    }
}

/// The name of the table of a database.
pub(crate) fn keyspace_name(number: usize) -> String {
    format!("redis.{number}")
}

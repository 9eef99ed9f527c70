//! The databases and tables of a service, and how a command may use them.

use std::sync::Arc;

use crate::replicas::Exclusive;
use crate::store::keyspace::Keyspace;
use crate::store::tables::{Handle, Tables};

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

    /// Tables that commands have used.
    pub(crate) fn tables(&self) -> &Tables {
        &self.1
    }

    /// Bytes of memory that databases and tables have taken.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        let spaces: u64 = self.made().map(|(_, space)| space.reserved_bytes()).sum();
        spaces + self.1.reserved_bytes()
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

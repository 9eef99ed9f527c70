//! One moment of all tables that last, and its checkpoints.
//!
//! The caller has the databases for itself while snapshots of all tables are taken; commands go on
//! while these are written. A process that ends meanwhile leaves some tables as of this moment and
//! some as of the one before. Values in parts are whole in either case: their table is written
//! before that of the heads, and keeps parts that a checkpoint of heads may name
//! (`PartsTable::remove_all`).

use std::sync::Arc;

use sapwood::{Cut, Db, HashSnapshot, HashTable, Result};

use crate::store::format::Parts;
use crate::store::keyspace::Keyspace;
use crate::store::tables::is_own;

/// Tables whose checkpoints need each other.
struct Group {
    space: Option<Arc<Keyspace>>,
    /// In the order in which they are written.
    tables: Vec<HashTable>,
}

/// All tables that last.
pub(crate) struct Lasting(Vec<Group>);

/// Snapshots of all tables that last.
pub(crate) struct Moment<'l>(Vec<GroupMoment<'l>>);

struct GroupMoment<'l> {
    space: Option<&'l Keyspace>,
    snapshots: Vec<HashSnapshot<'l>>,
    /// Values that no head of the snapshot names.
    freed: Vec<Parts>,
}

impl Lasting {
    /// Those of databases, and tables with names.
    pub(crate) fn of<'s>(db: &Db, spaces: impl Iterator<Item = &'s Arc<Keyspace>>) -> Lasting {
        let of_space = |space: &Arc<Keyspace>| {
            let mut tables: Vec<HashTable> = space.lasting().cloned().collect();
            // Parts before heads.
            tables.reverse();
            Group { space: Some(Arc::clone(space)), tables }
        };
        let named = db.open_hash_tables().into_iter();
        let named = named.filter(|table| !is_own(table.name().as_bytes()));
        let named = named.map(|table| Group { space: None, tables: vec![table] });
        Lasting(spaces.map(of_space).chain(named).collect())
    }

    /// This moment. The caller has the databases for itself.
    ///
    /// # Errors
    /// As of [`HashTable::snapshot`].
    pub(crate) fn moment(&self) -> Result<Moment<'_>> {
        let mut groups = Vec::with_capacity(self.0.len());
        for Group { space, tables } in &self.0 {
            let snapshots = tables.iter().map(HashTable::snapshot).collect::<Result<Vec<_>>>()?;
            groups.push(GroupMoment { space: space.as_deref(), snapshots, freed: Vec::new() });
        }
        for group in &mut groups {
            group.freed = group.space.map(Keyspace::begin_save).unwrap_or_default();
        }
        Ok(Moment(groups))
    }
}

impl Moment<'_> {
    /// Makes it durable. Where tables fail, the others are written still.
    ///
    /// # Errors
    /// The first, as of [`HashSnapshot::checkpoint`].
    pub(crate) fn write(self) -> Result<()> {
        let mut outcome = Ok(());
        for GroupMoment { space, snapshots, freed } in self.0 {
            let mut snapshots = snapshots.into_iter();
            let written =
                snapshots.try_for_each(|table| table.checkpoint(Cut::Incremental).map(drop));
            if let Some(space) = space {
                space.end_save(freed, &written);
            }
            outcome = outcome.and(written);
        }
        outcome
    }
}

//! Tree tables of a database: made, opened.

use std::sync::Arc;

use sapwood_ptree::TreeLayout;

use super::schemas::{self, Lasting};
use crate::db::{Db, Slot, check_new_name, other_engine};
use crate::formats::Formats;
use crate::{Engine, Error, RecordLayout, Result, TreeEngineError, TreeTable, TreeTableOptions};

impl Db {
    /// Makes a tree table; refuses a name that is taken. It lives in the database's directory if
    /// there is one, and else in memory.
    ///
    /// # Errors
    /// [`Error::TableName`], [`Error::TableExists`]; [`Error::Trees`], [`Error::ReadOnly`] and
    /// [`Error::Directory`] where it cannot be made.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// let orders = db.create_tree_table("orders", TreeTableOptions::default())?;
    /// orders.put(b"1", b"an oak")?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn create_tree_table(&self, name: &str, options: TreeTableOptions) -> Result<TreeTable> {
        check_new_name(name)?;
        let _name = self.shared.schemas.hold(name);
        Self::expect_free(&self.slots(), name)?;
        self.create_tree(name, &options)
    }

    /// Opens a tree table that is there.
    ///
    /// # Errors
    /// [`Error::TableMissing`]; [`Error::OtherEngine`] if it is of another kind.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_tree_table("orders", TreeTableOptions::default())?.put(b"1", b"an oak")?;
    /// assert_eq!(db.tree_table("orders")?.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn tree_table(&self, name: &str) -> Result<TreeTable> {
        let slots = self.slots();
        match slots.get(name) {
            Some(slot) => tree(name, slot),
            None => Err(Self::missing(&slots, name)),
        }
    }

    /// Opens a tree table, after making it with these options if it is not there. A table that is
    /// there keeps its own.
    ///
    /// # Errors
    /// [`Error::OtherEngine`] if it is of another kind; as
    /// [`create_tree_table`](Self::create_tree_table).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// for _ in 0..2 {
    ///     db.open_or_create_tree_table("orders", TreeTableOptions::default())?;
    /// }
    /// assert_eq!(db.table_names(), ["orders"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_or_create_tree_table(
        &self,
        name: &str,
        options: TreeTableOptions,
    ) -> Result<TreeTable> {
        check_new_name(name)?;
        let find = || self.slots().get(name).map(|slot| tree(name, slot)).transpose();
        if let Some(table) = find()? {
            return Ok(table);
        }
        let _name = self.shared.schemas.hold(name);
        // Another thread may have made it before the name was held.
        if let Some(table) = find()? {
            return Ok(table);
        }
        match self.create_tree(name, &options) {
            // Another thread has made it, and may not have noted it yet.
            Err(Error::TableExists { engine: Engine::Tree, .. }) => self.note_stored_tree(name),
            made => made,
        }
    }

    /// Whether the database has, or had, tree tables: a heap for them.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// let db = Db::in_memory();
    /// assert!(!db.has_trees());
    /// db.create_tree_table("t", TreeTableOptions::default())?;
    /// assert!(db.has_trees());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn has_trees(&self) -> bool {
        self.home().opened_pool().is_some()
    }

    /// Makes a tree table. The names are not locked meanwhile: its commit may wait for other threads,
    /// which may want a name.
    fn create_tree(&self, name: &str, options: &TreeTableOptions) -> Result<TreeTable> {
        schemas::expect_rows(name, options.layout, options.schema.as_ref())?;
        let formats = self.note_schema(name, options.schema.as_ref(), Lasting::Directory)?;
        let _set = self.change_table_set();
        let table = self.make_tree(name, options, formats)?;
        let noted = self.note_tree(table.clone());
        if noted.is_err() {
            table.named(self.home().pool()?.remove_tree(table.tree()))?;
        }
        noted
    }

    /// Makes a tree table that has no name yet but in the pool.
    pub(in crate::db) fn make_tree(
        &self,
        name: &str,
        options: &TreeTableOptions,
        formats: Option<Arc<Formats>>,
    ) -> Result<TreeTable> {
        if let Some(directory) = &self.home().directory {
            directory.expect_writable()?;
        }
        let pool = self.home().pool()?;
        let layout = match options.layout {
            RecordLayout::Fixed8 => TreeLayout::Fixed,
            RecordLayout::Variable => TreeLayout::Bytes,
        };
        let made = pool.transaction(|tx| {
            let tree = tx.create_tree(pool, name, options.kind, layout)?;
            if let Some(fields) = &options.fields {
                tx.set_note(&tree, fields.to_string().as_bytes())?;
            }
            Ok(tree)
        });
        let tree = made.map_err(|cause| match cause {
            TreeEngineError::TreeExists { name } => {
                Error::TableExists { name, engine: Engine::Tree }
            }
            cause => Error::TreeEngine { table: name.into(), cause },
        })?;
        let fields = options.fields.clone();
        let table = TreeTable::new(name.into(), tree, fields, Arc::clone(&self.shared.home));
        if let Some(formats) = formats {
            table.set_formats(formats);
        }
        Ok(table)
    }

    /// Gives a tree table its name, unless another kind of table has come by it.
    fn note_tree(&self, table: TreeTable) -> Result<TreeTable> {
        let mut slots = self.slots_mut();
        match slots.get(table.name()) {
            Some(Slot::Tree(there)) if there.tree().id() == table.tree().id() => Ok(there.clone()),
            // That of a table that is being dropped.
            Some(Slot::Tree(_)) | None => {
                slots.insert(Arc::clone(&table.shared.name), Slot::Tree(table.clone()));
                Ok(table)
            }
            Some(slot) => {
                let (name, engine) = (table.name().to_owned(), slot.engine());
                Err(Error::TableExists { name, engine })
            }
        }
    }

    fn note_stored_tree(&self, name: &str) -> Result<TreeTable> {
        let pool = self.home().pool()?;
        let infos = pool.trees().map_err(Error::trees)?;
        let info = infos.into_iter().find(|info| info.name == name);
        let info = info.ok_or_else(|| Self::missing(&self.slots(), name))?;
        let tree = pool.tree(name).map_err(Error::trees)?;
        self.note_tree(TreeTable::stored(&info, tree, Arc::clone(&self.shared.home))?)
    }
}

fn tree(name: &str, slot: &Slot) -> Result<TreeTable> {
    match slot {
        Slot::Tree(table) => Ok(table.clone()),
        Slot::Hash(_) | Slot::Ordered(_) | Slot::Rollup(_) => Err(other_engine(name, slot)),
    }
}

//! What can be chosen when a tree table is made.

use crate::schema::Schema;
use crate::{RecordLayout, TreeKind, aggregate};

/// Options of a [`TreeTable`](crate::TreeTable).
///
/// ```
/// use sapwood::{Db, RecordLayout, TreeKind, TreeTableOptions};
///
/// let options = TreeTableOptions::default().kind(TreeKind::CritBit).layout(RecordLayout::Fixed8);
/// let balances = Db::in_memory().create_tree_table("balances", options)?;
/// balances.add(&7_u64.to_be_bytes(), 100)?;
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeTableOptions {
    pub(crate) kind: TreeKind,
    pub(crate) layout: RecordLayout,
    pub(crate) fields: Option<aggregate::Layout>,
    pub(crate) schema: Option<Schema>,
}

impl Default for TreeTableOptions {
    /// A B-tree of keys and values of any length.
    fn default() -> Self {
        Self { kind: TreeKind::BTree, layout: RecordLayout::Variable, fields: None, schema: None }
    }
}

impl TreeTableOptions {
    /// How the tree is balanced: by default a B-tree, which is the fastest and the smallest.
    ///
    /// ```
    /// # use sapwood::{Db, TreeKind, TreeTableOptions};
    /// let options = TreeTableOptions::default().kind(TreeKind::RedBlack);
    /// let table = Db::in_memory().create_tree_table("t", options)?;
    /// assert_eq!(table.kind(), TreeKind::RedBlack);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn kind(mut self, kind: TreeKind) -> Self {
        self.kind = kind;
        self
    }

    /// Which keys and values the table takes: of any length (the default), or 8 bytes each, which
    /// then lie in the nodes themselves.
    ///
    /// ```
    /// # use sapwood::{Db, RecordLayout, TreeTableOptions};
    /// let options = TreeTableOptions::default().layout(RecordLayout::Fixed8);
    /// let table = Db::in_memory().create_tree_table("t", options)?;
    /// assert!(table.put(b"short", b"12345678").is_err());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn layout(mut self, layout: RecordLayout) -> Self {
        self.layout = layout;
        self
    }

    /// The fields of keys and values, for queries that name no layout of their own
    /// ([`TreeTable::query`](crate::TreeTable::query)). They are kept with the table.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// let options = TreeTableOptions::default().fields("cents:i64le".parse()?);
    /// let table = Db::in_memory().create_tree_table("t", options)?;
    /// table.add(b"ada", 300)?;
    /// let answer = table.aggregate(&table.query()?.aggregates(
    ///     sapwood::aggregate::Aggregate::list("sum(cents)")?,
    /// ))?;
    /// assert_eq!(answer.value(0, "sum(cents)")?, &300.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn fields(mut self, fields: aggregate::Layout) -> Self {
        self.fields = Some(fields);
        self
    }

    /// The typed columns of the table, which its entries are rows of ([`Rows`](crate::Rows)). The table keeps
    /// them. What is put as bytes is not checked against them; a table of
    /// [`RecordLayout::Fixed8`] has none.
    ///
    /// Default: none, entries are bytes.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// let schema = "sensor:u32, celsius:f32?, key(sensor)".parse().expect("a schema");
    /// let db = Db::in_memory();
    /// let table = db.create_tree_table("t", TreeTableOptions::default().schema(schema))?;
    /// db.rows("t")?.put(&[7.into(), 21.5.into()])?;
    /// assert_eq!(table.schema().expect("it was made with one").columns().len(), 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }
}

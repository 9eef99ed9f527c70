//! What can be chosen when a roll-up table is made.

use crate::rollup::Schema;

/// Choices for one [`RollupTable`](crate::RollupTable), made once, when it is created.
///
/// Limits of facts and bytes are the schema's ([`Schema::limits`]).
///
/// ```
/// use sapwood::rollup::Schema;
/// use sapwood::{Db, RollupTableOptions};
///
/// let schema = Schema::from_json(r#"{
///     "timestampSpec": {"column": "time"},
///     "dimensionsSpec": {"dimensions": ["page"]},
///     "metricsSpec": [{"type": "count", "name": "edits"}],
///     "granularitySpec": {"queryGranularity": "hour"}
/// }"#).expect("a schema");
/// let edits = Db::in_memory().create_rollup_table("edits", RollupTableOptions::new(schema))?;
/// assert_eq!(edits.dimensions()[0].name, "page");
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RollupTableOptions {
    pub(crate) schema: Schema,
}

impl RollupTableOptions {
    /// How rows become facts; all else as it is best for most tables.
    ///
    /// ```
    /// use sapwood::RollupTableOptions;
    /// use sapwood::rollup::{Dimension, Metric, Schema};
    ///
    /// let schema = Schema::new("time").dimension(Dimension::text("page")).metric(Metric::count("edits"));
    /// let options = RollupTableOptions::new(schema);
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn new(schema: Schema) -> RollupTableOptions {
        RollupTableOptions { schema }
    }
}

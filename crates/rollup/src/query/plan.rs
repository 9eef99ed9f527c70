//! From a query to what is read, how facts are grouped, and which figures are made.

use super::Query;
use super::bound::declare;
use super::columns::Columns;
use super::figures::Figure;
use super::groups::Part;
use super::sets::BoundSet;
use crate::error::{Error, Result};
use crate::filter::{Compiled, Filter};
use crate::live::state::StateLayout;
use crate::schema::{Dimension, Discovery, Schema};
use crate::sketch::Reading;
use crate::time::granularity::Buckets;

/// The key of a group says by bits of a word which parts are null.
const PARTS_MAX: usize = 63;

/// What a query reads and makes.
#[derive(Debug)]
pub(crate) struct Plan<'r> {
    pub(crate) columns: Columns<'r>,
    /// The parts of the keys of groups: time first, if there are buckets of it.
    pub(crate) parts: Vec<Part>,
    pub(crate) figures: Vec<Figure>,
    /// Sets of theta sketches, and what is said of them.
    pub(crate) sets: Vec<(BoundSet, Reading)>,
    pub(crate) filter: Option<Compiled>,
    pub(crate) figure_filters: Vec<Compiled>,
    pub(crate) layout: &'r StateLayout,
}

impl<'r> Plan<'r> {
    /// Plans a query; `more` are columns that it reads beside those of its groups and figures.
    ///
    /// # Errors
    /// [`Error::Query`] if it does not fit the schema.
    pub(crate) fn new(
        query: &'r Query,
        schema: &'r Schema,
        dimensions: &'r [Dimension],
        layout: &'r StateLayout,
        more: &[String],
    ) -> Result<Plan<'r>> {
        let lenient = schema.discovery != Discovery::Off;
        query.check_virtual_columns()?;
        let mut columns =
            Columns::new(dimensions, &schema.metrics, layout, &query.virtual_columns, lenient);
        let mut parts = Vec::new();
        if !query.granularity.is_all() {
            parts.push(Part::Time(Buckets::new(query.granularity.clone())));
        }
        for dimension in &query.dimensions {
            parts.push(match columns.read(&dimension.dimension)? {
                Some((column, _)) => Part::Column(column),
                None => Part::Null,
            });
        }
        if parts.len() > PARTS_MAX {
            return Err(Error::Query(format!(
                "it groups by {} parts: {PARTS_MAX} are the most",
                parts.len()
            )));
        }
        let mut filters: Vec<&Filter> = Vec::new();
        let mut figures = Vec::with_capacity(query.aggregations.len());
        for aggregation in &query.aggregations {
            let filter = match &aggregation.filter {
                Some(filter) => {
                    declare(filter, &mut columns)?;
                    let known = filters.iter().position(|known| *known == filter);
                    Some(known.unwrap_or_else(|| {
                        filters.push(filter);
                        filters.len() - 1
                    }))
                }
                None => None,
            };
            figures.push(Figure::new(aggregation, &mut columns, filter, &figures)?);
        }
        let figure_filters = filters.into_iter().map(Filter::compile).collect::<Result<_>>()?;
        let sets = query.sets.iter().map(|(name, set, figure)| {
            let set = BoundSet::new(set, &query.aggregations, &figures);
            let set = set.map_err(|why| Error::Query(format!("`{name}`: {why}")))?;
            Ok((set, figure.reading()))
        });
        let sets = sets.collect::<Result<_>>()?;
        if let Some(filter) = &query.filter {
            declare(filter, &mut columns)?;
        }
        for name in more {
            columns.read(name)?;
        }
        let filter = query.filter.as_ref().map(|filter| filter.compile()).transpose()?;
        Ok(Plan { columns, parts, figures, sets, filter, figure_filters, layout })
    }
}

//! The request: the text forms of the arguments, read before any file is.

use sapwood::aggregate::{
    Aggregate, Field, Group, Layout, Mismatches, Missing, OrderBy, Predicate, Query, SyntaxError,
};

use crate::args;
use crate::args::rows::{OnMismatch, OnMissing};
use crate::terminal::exit::{Failure, Outcome};

/// A query without its layout and selection, which need the columns of the rows.
pub(super) struct Request {
    /// Of `--layout`.
    pub(super) fields: Vec<Field>,
    figures: Vec<Aggregate>,
    pub(super) groups: Vec<Group>,
    filter: Option<Predicate>,
    having: Option<Predicate>,
    order: Vec<OrderBy>,
    limit: Option<usize>,
}

impl Request {
    pub(super) fn parse(args: &args::rows::Aggregate) -> Outcome<Self> {
        let layout = optional("--layout", &args.layout, str::parse::<Layout>)?;
        Ok(Self {
            fields: layout.map_or_else(Vec::new, |layout| layout.fields().to_vec()),
            figures: read("--select", &args.select, Aggregate::list)?,
            groups: optional("--by", &args.by, Group::list)?.unwrap_or_default(),
            filter: optional("--where", &args.filter, str::parse)?,
            having: optional("--having", &args.having, str::parse)?,
            order: optional("--order", &args.order, OrderBy::list)?.unwrap_or_default(),
            limit: args.limit,
        })
    }

    /// The query over rows of this layout.
    pub(super) fn query(&self, layout: Layout, args: &args::rows::Aggregate) -> Query {
        let query = Query::new(layout)
            .aggregates(self.figures.clone())
            .group_by(self.groups.clone())
            .groups_max(args.groups_max)
            .missing(match args.missing {
                OnMissing::PassOver => Missing::PassOver,
                OnMissing::Refuse => Missing::Refuse,
            })
            .mismatches(match args.mismatches {
                OnMismatch::Refuse => Mismatches::Refuse,
                OnMismatch::Skip => Mismatches::Skip,
            });
        match &self.filter {
            Some(filter) => query.filter(filter.clone()),
            None => query,
        }
    }

    /// The same query with order, limit and filter of the answer.
    pub(super) fn arranged(self, query: Query) -> Query {
        let mut query = query.order_by(self.order);
        if let Some(having) = self.having {
            query = query.having(having);
        }
        if let Some(limit) = self.limit {
            query = query.limit(limit);
        }
        query
    }
}

fn optional<T>(
    option: &str,
    text: &Option<String>,
    form: impl FnOnce(&str) -> Result<T, SyntaxError>,
) -> Outcome<Option<T>> {
    text.as_ref().map(|text| read(option, text, form)).transpose()
}

fn read<T>(
    option: &str,
    text: &str,
    form: impl FnOnce(&str) -> Result<T, SyntaxError>,
) -> Outcome<T> {
    form(text).map_err(|error| Failure::Usage(format!("{option}: {error}")))
}

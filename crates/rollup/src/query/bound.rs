//! Filters over facts: texts are tested once for each number of a dictionary.

use super::batch::{FactBatch, FactColumn, Texts};
use super::columns::{Columns, Form, Source};
use crate::error::Result;
use crate::filter::{Compiled, Filter, Node, Test};
use crate::live::dictionary::Entry;
use crate::live::state::StateLayout;
use crate::value::Value;

/// A filter over the columns that a query reads.
#[derive(Debug)]
pub(crate) struct BoundFilter {
    node: BoundNode,
}

#[derive(Debug)]
enum BoundNode {
    Constant(bool),
    And(Vec<BoundNode>),
    Or(Vec<BoundNode>),
    Not(Box<BoundNode>),
    /// By number of a text: whether it is taken, where unknown is not, and where it is.
    Texts {
        column: usize,
        takes: Vec<bool>,
        takes_unknown: Vec<bool>,
    },
    Column {
        column: usize,
        source: Source,
        test: Test,
    },
    /// What needs several columns: row by row.
    Row {
        node: Node,
        columns: Vec<(String, usize, Source)>,
    },
}

/// Declares the columns that a filter asks.
pub(crate) fn declare(filter: &Filter, columns: &mut Columns<'_>) -> Result<()> {
    filter.columns().iter().try_for_each(|name| columns.read(name).map(drop))
}

impl BoundFilter {
    /// Binds a filter whose columns were declared.
    pub(crate) fn new(filter: &Compiled, columns: &Columns<'_>, texts: &Texts<'_>) -> BoundFilter {
        BoundFilter { node: bind(&filter.0, columns, texts) }
    }

    /// Leaves those of some rows that it takes.
    pub(crate) fn retain(
        &self,
        batch: &FactBatch,
        texts: &Texts<'_>,
        layout: &StateLayout,
        rows: &mut Vec<u32>,
    ) {
        let mask = self.node.mask(batch, texts, layout, false);
        rows.retain(|&row| mask[row as usize]);
    }

    /// Columns of texts of which each row that it takes has one of some numbers: which these are.
    pub(crate) fn needed(&self) -> Vec<(usize, &[bool])> {
        match &self.node {
            BoundNode::Texts { column, takes, .. } => vec![(*column, takes)],
            BoundNode::And(parts) => {
                let texts = parts.iter().filter_map(|part| match part {
                    BoundNode::Texts { column, takes, .. } => Some((*column, &takes[..])),
                    _ => None,
                });
                texts.collect()
            }
            _ => Vec::new(),
        }
    }

    /// Which rows it takes.
    pub(crate) fn mask(
        &self,
        batch: &FactBatch,
        texts: &Texts<'_>,
        layout: &StateLayout,
    ) -> Vec<bool> {
        self.node.mask(batch, texts, layout, false)
    }
}

fn find(columns: &Columns<'_>, name: &str) -> Option<(usize, Source, Form)> {
    let (source, form) = columns.find(name)?;
    let at = columns.read.iter().position(|(known, _)| *known == source);
    Some((at.expect("it was declared"), source, form))
}

fn bind(node: &Node, columns: &Columns<'_>, texts: &Texts<'_>) -> BoundNode {
    let all = |parts: &[Node]| parts.iter().map(|part| bind(part, columns, texts)).collect();
    match node {
        Node::Constant(truth) => BoundNode::Constant(*truth),
        Node::And(parts) => BoundNode::And(all(parts)),
        Node::Or(parts) => BoundNode::Or(all(parts)),
        Node::Not(part) => BoundNode::Not(Box::new(bind(part, columns, texts))),
        Node::Column { column, test } => match find(columns, column) {
            // A column that is not there is null in all rows.
            None => BoundNode::Row { node: node.clone(), columns: Vec::new() },
            // The texts of a virtual column come by and by.
            Some((column, source @ Source::Virtual(_), _)) => {
                BoundNode::Column { column, source, test: test.clone() }
            }
            Some((column, _, Form::Ids)) => {
                let (takes, takes_unknown) = tables(column, test, texts);
                BoundNode::Texts { column, takes, takes_unknown }
            }
            Some((column, source, _)) => BoundNode::Column { column, source, test: test.clone() },
        },
        Node::Columns(names) => row_by_row(node, names.iter().map(String::as_str), columns),
        Node::Expression(expression) => row_by_row(node, expression.columns().into_iter(), columns),
    }
}

fn row_by_row<'n>(
    node: &Node,
    names: impl Iterator<Item = &'n str>,
    columns: &Columns<'_>,
) -> BoundNode {
    let found = names.filter_map(|name| {
        let (column, source, _) = find(columns, name)?;
        Some((name.to_owned(), column, source))
    });
    BoundNode::Row { node: node.clone(), columns: found.collect() }
}

/// Tests each text of a dictionary once; a list by its elements.
fn tables(column: usize, test: &Test, texts: &Texts<'_>) -> (Vec<bool>, Vec<bool>) {
    let entries = texts.words(column);
    let count = entries.len() + 1;
    let table = |unknown: bool| {
        let mut takes: Vec<bool> = Vec::with_capacity(count);
        for id in 0..count as u32 {
            let taken = match entries.entry(id) {
                Entry::Null => test.takes(&Value::Null, unknown),
                Entry::Text(text) => test.takes(&Value::text(text), unknown),
                // Elements have numbers before that of their list.
                Entry::List(ids) => ids.iter().any(|id| takes[id as usize]),
            };
            takes.push(taken);
        }
        takes
    };
    (table(false), table(true))
}

impl BoundNode {
    fn mask(
        &self,
        batch: &FactBatch,
        texts: &Texts<'_>,
        layout: &StateLayout,
        unknown: bool,
    ) -> Vec<bool> {
        let len = batch.len();
        match self {
            BoundNode::Constant(truth) => vec![*truth; len],
            BoundNode::And(parts) => {
                let mut mask = vec![true; len];
                for part in parts {
                    let other = part.mask(batch, texts, layout, unknown);
                    mask.iter_mut().zip(other).for_each(|(one, other)| *one &= other);
                }
                mask
            }
            BoundNode::Or(parts) => {
                let mut mask = vec![false; len];
                for part in parts {
                    let other = part.mask(batch, texts, layout, unknown);
                    mask.iter_mut().zip(other).for_each(|(one, other)| *one |= other);
                }
                mask
            }
            BoundNode::Not(part) => {
                let mut mask = part.mask(batch, texts, layout, !unknown);
                mask.iter_mut().for_each(|taken| *taken = !*taken);
                mask
            }
            BoundNode::Texts { column, takes, takes_unknown } => {
                let takes = if unknown { takes_unknown } else { takes };
                let FactColumn::Ids(ids) = &batch.columns[*column] else {
                    unreachable!("a column of texts is read as numbers")
                };
                ids.iter().map(|id| takes[*id as usize]).collect()
            }
            BoundNode::Column { column, source, test } => (0..len)
                .map(|row| {
                    let value = texts.value_of(batch, *column, row, layout, *source);
                    test.takes(&value, unknown)
                })
                .collect(),
            BoundNode::Row { node, columns } => (0..len)
                .map(|row| {
                    let value = |name: &str| {
                        let found = columns.iter().find(|(known, ..)| known == name);
                        found.map_or(Value::Null, |(_, column, source)| {
                            texts.value_of(batch, *column, row, layout, *source)
                        })
                    };
                    node.matches(&value, unknown)
                })
                .collect(),
        }
    }
}

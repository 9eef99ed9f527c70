//! Sets of values, by theta sketches: how many values some have in common, or one has and others have not.

use super::figures::{Figure, FigureStates};
use super::{Aggregation, ThetaSet};
use crate::error::Result;
use crate::sketch::{Reading, Sketch, ThetaUnion};
use crate::value::Value;

/// A set, bound to the figures whose states it is made of.
#[derive(Debug)]
pub(crate) struct BoundSet {
    node: Node,
    lg_k: u8,
}

#[derive(Debug)]
enum Node {
    /// The sketches of the figure of this number.
    Figure(usize),
    Union(Vec<Node>),
    Intersection(Vec<Node>),
    Difference(Box<Node>, Vec<Node>),
}

/// Sets lie this deep in one another, at most.
const DEPTH_MAX: usize = 16;

impl BoundSet {
    /// # Errors
    /// Which of its names is that of no theta sketch.
    pub(crate) fn new(
        set: &ThetaSet,
        aggregations: &[Aggregation],
        figures: &[Figure],
    ) -> std::result::Result<BoundSet, String> {
        let mut lg_k = 0;
        let node = bind(set, aggregations, figures, &mut lg_k, 0)?;
        Ok(BoundSet { node, lg_k })
    }

    /// What is said of the set of a group.
    pub(crate) fn value(
        &self,
        states: &[FigureStates],
        group: usize,
        reading: &Reading,
    ) -> Result<Value<'static>> {
        Sketch::Theta(self.of(&self.node, states, group)?).value(reading)
    }

    fn of(&self, node: &Node, states: &[FigureStates], group: usize) -> Result<ThetaUnion> {
        let all = |nodes: &[Node]| -> Result<Vec<ThetaUnion>> {
            nodes.iter().map(|node| self.of(node, states, group)).collect()
        };
        match node {
            Node::Figure(number) => {
                let FigureStates::Sketches(sketches) = &states[*number] else {
                    unreachable!("the figure has theta sketches")
                };
                let known = match &sketches[group] {
                    Some(Sketch::Theta(known)) => Some(known),
                    _ => None,
                };
                ThetaUnion::union(self.lg_k, known)
            }
            Node::Union(nodes) => ThetaUnion::union(self.lg_k, &all(nodes)?),
            Node::Intersection(nodes) => ThetaUnion::intersection(self.lg_k, &all(nodes)?),
            Node::Difference(first, others) => {
                let others = ThetaUnion::union(self.lg_k, &all(others)?)?;
                self.of(first, states, group)?.without(&others)
            }
        }
    }
}

fn bind(
    set: &ThetaSet,
    aggregations: &[Aggregation],
    figures: &[Figure],
    lg_k: &mut u8,
    depth: usize,
) -> std::result::Result<Node, String> {
    if depth > DEPTH_MAX {
        return Err(format!("sets lie more than {DEPTH_MAX} deep in one another"));
    }
    let mut all = |sets: &[ThetaSet]| -> std::result::Result<Vec<Node>, String> {
        match sets {
            [] => Err("it is made of no sets".to_owned()),
            sets => {
                sets.iter().map(|set| bind(set, aggregations, figures, lg_k, depth + 1)).collect()
            }
        }
    };
    Ok(match set {
        ThetaSet::Of(name) => {
            let number = aggregations.iter().position(|known| known.name == *name);
            let number = number.ok_or_else(|| format!("there is no aggregation `{name}`"))?;
            let number = figures[number].shares().unwrap_or(number);
            let size = figures[number].theta_lg_k();
            let size = size.ok_or_else(|| format!("`{name}` is no theta sketch"))?;
            *lg_k = (*lg_k).max(size);
            Node::Figure(number)
        }
        ThetaSet::Union(sets) => Node::Union(all(sets)?),
        ThetaSet::Intersection(sets) => Node::Intersection(all(sets)?),
        ThetaSet::Difference(first, others) => {
            let others = all(others)?;
            Node::Difference(Box::new(bind(first, aggregations, figures, lg_k, depth + 1)?), others)
        }
    })
}

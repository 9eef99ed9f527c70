//! Nodes and arrows: circles, and the steps up that close them.

use std::collections::{BTreeMap, BTreeSet};

/// A graph of names.
#[derive(Debug, Default)]
pub struct Graph {
    used: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Adds a node without arrows.
    pub fn add(&mut self, node: &str) {
        self.used.entry(node.to_owned()).or_default();
    }

    /// Adds an arrow, unless it leads back to its node.
    pub fn arrow(&mut self, user: &str, used: &str) {
        if user != used {
            self.add(used);
            self.used.entry(user.to_owned()).or_default().insert(used.to_owned());
        }
    }

    /// The arrows, from the user to what it uses.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.used
            .iter()
            .flat_map(|(user, used)| used.iter().map(|used| (user.as_str(), used.as_str())))
    }

    /// The number of arrows.
    #[must_use]
    pub fn arrows(&self) -> usize {
        self.iter().count()
    }

    /// The sets of nodes that reach each other, of two or more, the largest first.
    #[must_use]
    pub fn circles(&self) -> Vec<BTreeSet<String>> {
        let reached: BTreeMap<_, _> =
            self.used.keys().map(|node| (node, self.reach(node))).collect();
        let mut circles = BTreeSet::new();
        for (node, others) in &reached {
            let circle = others.iter().filter(|other| reached[other].contains(*node));
            let circle: BTreeSet<String> = circle.cloned().collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        let mut circles: Vec<_> = circles.into_iter().collect();
        circles.sort_by_key(|circle| usize::MAX - circle.len());
        circles
    }

    fn reach(&self, from: &String) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(node) = next.pop() {
            for used in &self.used[node] {
                if reached.insert(used.clone()) {
                    next.push(used);
                }
            }
        }
        reached
    }

    /// Few arrows without which no circle is left: those that lead up in an order of each circle's nodes
    /// (Eades, Lin and Smyth, "A fast and effective heuristic for the feedback arc set problem", 1993).
    #[must_use]
    pub fn steps_up(&self) -> Vec<(&str, &str)> {
        let mut steps = Vec::new();
        for circle in self.circles() {
            let inside =
                |(user, used): &(&str, &str)| circle.contains(*user) && circle.contains(*used);
            let arrows: Vec<_> = self.iter().filter(inside).collect();
            let mut left: BTreeSet<&str> = circle.iter().map(String::as_str).collect();
            let mut from_top = Vec::new();
            while !left.is_empty() {
                let surplus = |node: &str| {
                    let both = arrows
                        .iter()
                        .filter(|arrow| left.contains(arrow.0) && left.contains(arrow.1));
                    both.map(|(user, used)| i64::from(*user == node) - i64::from(*used == node))
                        .sum::<i64>()
                };
                let Some(top) = left.iter().copied().max_by_key(|node| surplus(node)) else {
                    break;
                };
                left.remove(top);
                from_top.push(top);
            }
            let height = |node: &str| from_top.iter().rev().position(|other| *other == node);
            steps.extend(arrows.iter().filter(|(user, used)| height(user) < height(used)));
        }
        steps
    }
}

#[test]
fn circles_and_steps_up_are_found() {
    let mut graph = Graph::default();
    for arrow in ["ab", "bc", "ca", "ac", "cd", "de", "ed", "ff"] {
        graph.arrow(&arrow[..1], &arrow[1..]);
    }
    assert_eq!(graph.arrows(), 7);
    let circles: Vec<_> = graph.circles().iter().map(|circle| circle.len()).collect();
    assert_eq!(circles, [3, 2]);
    assert_eq!(graph.steps_up().len(), 2);
    assert!(graph.steps_up().contains(&("c", "a")));
}

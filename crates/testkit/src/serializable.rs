//! The check that a history of transactions is serializable.
//!
//! Transactions read lists and append to them, each a number that no other appends. So a list tells in which
//! order its transactions came, and whose changes a reader had seen and whose it had not. From that comes a
//! graph of which transaction must have been before which; a history is serializable if it has no cycle.
//!
//! Source: K. Kingsbury, P. Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations",
//! VLDB 2020; the graph is that of A. Adya, "Weak Consistency", 1999, section 4.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A list that transactions share.
pub type List = u64;

/// A transaction that ran, or a single operation, which is one of its own.
#[derive(Debug, Clone, Default)]
pub struct Ran {
    /// Lists that were read, each as it was before the transaction appended to it.
    pub reads: Vec<(List, Vec<u64>)>,
    /// Lists that were appended to, once each, and what.
    pub appends: Vec<(List, u64)>,
    /// Whether it says that it was committed. If not, no other may have seen it.
    pub is_committed: bool,
    /// Moments before its begin and after its end: one that ended before another began must come before
    /// that. None where that is not promised.
    pub during: Option<(u64, u64)>,
}

/// Why no order of the transactions explains what they read.
#[derive(Debug)]
pub struct NotSerializable(String);

impl fmt::Display for NotSerializable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why one transaction comes before another.
#[derive(Clone, Copy)]
enum Before {
    /// The other appended behind what it had appended.
    Appended(List),
    /// The other has read what it had appended.
    WasRead(List),
    /// It has read the list without what the other appended.
    ReadWithout(List),
    /// It had ended when the other began.
    Ended,
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Before::Appended(list) => write!(f, "the next appended behind it to list {list}"),
            Before::WasRead(list) => write!(f, "the next read list {list} with what it appended"),
            Before::ReadWithout(list) => {
                write!(f, "it read list {list} without what the next appended")
            }
            Before::Ended => f.write_str("it had ended when the next began"),
        }
    }
}

/// Checks a history, at whose begin all lists are empty.
///
/// # Errors
/// What was read cannot be explained.
pub fn check(history: &[Ran]) -> Result<(), NotSerializable> {
    let mut appended: HashMap<(List, u64), usize> = HashMap::new();
    for (index, ran) in history.iter().enumerate() {
        for append in &ran.appends {
            if appended.insert(*append, index).is_some() {
                return Err(NotSerializable(format!("{append:?} is appended twice")));
            }
        }
    }
    let orders = orders(history, &appended)?;
    let mut after: Vec<Vec<(usize, Before)>> = vec![Vec::new(); history.len()];
    let mut edge = |from: usize, to: usize, why: Before| {
        if from != to {
            after[from].push((to, why));
        }
    };
    for (list, order) in &orders {
        for pair in order.windows(2) {
            edge(appended[&(*list, pair[0])], appended[&(*list, pair[1])], Before::Appended(*list));
        }
    }
    for (index, ran) in history.iter().enumerate().filter(|(_, ran)| ran.is_committed) {
        for (list, read) in &ran.reads {
            if let Some(last) = read.last() {
                edge(appended[&(*list, *last)], index, Before::WasRead(*list));
            }
            if let Some(next) = orders[list].get(read.len()) {
                edge(index, appended[&(*list, *next)], Before::ReadWithout(*list));
            }
        }
        for (other, later) in history.iter().enumerate().filter(|(_, ran)| ran.is_committed) {
            if let (Some((_, end)), Some((begin, _))) = (ran.during, later.during)
                && end < begin
            {
                edge(index, other, Before::Ended);
            }
        }
    }
    match cycle(&after) {
        None => Ok(()),
        Some(cycle) => Err(NotSerializable(shown(&cycle, history))),
    }
}

/// The order in which each list was appended to, as far as any transaction has read it.
fn orders(
    history: &[Ran],
    appended: &HashMap<(List, u64), usize>,
) -> Result<BTreeMap<List, Vec<u64>>, NotSerializable> {
    let mut orders: BTreeMap<List, Vec<u64>> = BTreeMap::new();
    for ran in history.iter().filter(|ran| ran.is_committed) {
        for (list, read) in &ran.reads {
            for number in read {
                let writer = appended.get(&(*list, *number)).map(|writer| &history[*writer]);
                if !writer.is_some_and(|writer| writer.is_committed) {
                    let what =
                        format!("list {list}: {number} was read, and not committed: {ran:?}");
                    return Err(NotSerializable(what));
                }
            }
            let order = orders.entry(*list).or_default();
            let common = order.len().min(read.len());
            if order[..common] != read[..common] {
                let what = format!("list {list} was read as {read:?} and as {order:?}");
                return Err(NotSerializable(what));
            }
            if read.len() > order.len() {
                order.clone_from(read);
            }
        }
    }
    // What was committed and is in no list that was read to its end would go unnoticed.
    for ran in history.iter().filter(|ran| ran.is_committed) {
        for (list, number) in &ran.appends {
            if !orders.get(list).is_some_and(|order| order.contains(number)) {
                let what =
                    format!("list {list}: {number} is lost, or the last read is missing: {ran:?}");
                return Err(NotSerializable(what));
            }
        }
    }
    Ok(orders)
}

/// A cycle, if there is one: transactions, each with why it comes before the next.
fn cycle(after: &[Vec<(usize, Before)>]) -> Option<Vec<(usize, Before)>> {
    // Those that come first are taken away, until none does.
    let mut before = vec![0_usize; after.len()];
    for (to, _) in after.iter().flatten() {
        before[*to] += 1;
    }
    let mut first: Vec<usize> = (0..after.len()).filter(|index| before[*index] == 0).collect();
    let mut is_taken = vec![false; after.len()];
    while let Some(index) = first.pop() {
        is_taken[index] = true;
        for (to, _) in &after[index] {
            before[*to] -= 1;
            if before[*to] == 0 {
                first.push(*to);
            }
        }
    }
    // Of those that are left each has one before it: going back comes round.
    let mut back: HashMap<usize, (usize, Before)> = HashMap::new();
    for (from, edges) in after.iter().enumerate().filter(|(from, _)| !is_taken[*from]) {
        for (to, why) in edges.iter().filter(|(to, _)| !is_taken[*to]) {
            back.entry(*to).or_insert((from, *why));
        }
    }
    let mut at = *back.keys().min()?;
    let mut steps: Vec<(usize, Before)> = Vec::new();
    let mut seen: HashMap<usize, usize> = HashMap::new();
    loop {
        if let Some(begin) = seen.insert(at, steps.len()) {
            steps.drain(..begin);
            steps.reverse();
            return Some(steps);
        }
        let (from, why) = back[&at];
        steps.push((from, why));
        at = from;
    }
}

fn shown(cycle: &[(usize, Before)], history: &[Ran]) -> String {
    let mut text =
        String::from("each of these comes before the next, and the last before the first:");
    for (index, why) in cycle {
        let ran = &history[*index];
        text.push_str(&format!("\n  {index}: {ran:?}\n    {why}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(reads: &[(List, &[u64])], appends: &[(List, u64)]) -> Ran {
        Ran {
            reads: reads.iter().map(|(list, read)| (*list, read.to_vec())).collect(),
            appends: appends.to_vec(),
            is_committed: true,
            during: None,
        }
    }

    #[test]
    fn one_after_the_other_is_serializable() {
        let history = [
            ran(&[(1, &[])], &[(1, 10)]),
            ran(&[(1, &[10])], &[(1, 11), (2, 20)]),
            ran(&[(1, &[10, 11]), (2, &[20])], &[]),
        ];
        assert!(check(&history).is_ok());
    }

    #[test]
    fn each_anomaly_is_noticed() {
        let last = |lists: &[(List, &[u64])]| ran(lists, &[]);
        let lost_update = [ran(&[(1, &[])], &[(1, 10)]), ran(&[(1, &[])], &[(1, 11)])];
        let write_skew = [ran(&[(1, &[])], &[(2, 20)]), ran(&[(2, &[])], &[(1, 10)])];
        let half_read = [ran(&[], &[(1, 10), (2, 20)]), ran(&[(1, &[10]), (2, &[])], &[])];
        let of_both = last(&[(1, &[10]), (2, &[20])]);
        let with = |history: &[Ran], last: Ran| [history, &[last]].concat();
        assert!(check(&with(&lost_update, last(&[(1, &[10, 11])]))).is_err());
        assert!(check(&with(&write_skew, of_both.clone())).is_err());
        assert!(check(&with(&half_read, of_both.clone())).is_err());
        let mut aborted = vec![ran(&[], &[(1, 10)]), last(&[(1, &[10])])];
        aborted[0].is_committed = false;
        assert!(check(&aborted).is_err());
        assert!(check(&[ran(&[], &[(1, 10)]), last(&[(1, &[])])]).is_err(), "lost");
        let mut late = vec![ran(&[], &[(1, 10)]), ran(&[(1, &[])], &[]), last(&[(1, &[10])])];
        assert!(check(&late).is_ok());
        (late[0].during, late[1].during) = (Some((1, 2)), Some((3, 4)));
        assert!(check(&late).is_err(), "it began when the other had ended");
    }
}

//! Names of columns: the one that may be meant, and names of their own for those that share one.

use std::collections::{HashMap, HashSet};

use sapwood_schema::nearest;

use crate::words::quoted;

/// The refusal of a name that no column has: the one that may be meant, or all that there are.
pub fn no_column<'a>(
    name: &str,
    there: &str,
    names: impl Iterator<Item = &'a String> + Clone,
) -> String {
    if let Some(near) = nearest(name, names.clone().map(String::as_str)) {
        return format!("no column {}: did you mean {}?", quoted(name), quoted(near));
    }
    let names: Vec<String> = names.take(40).map(|name| quoted(name)).collect();
    format!("no column {}; {there} has {}", quoted(name), names.join(", "))
}

/// Columns with the same name, of which all but the first got another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    name: String,
    /// From one.
    first: usize,
    position: usize,
    now: String,
}

impl std::fmt::Display for Renamed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Renamed { name, first, position, now } = self;
        write!(
            f,
            "columns {first} and {position} are both called {}; column {position} is called {} here",
            quoted(name),
            quoted(now)
        )
    }
}

/// Gives every column a name of its own, as others do: the second `id` is `id_1`.
pub fn distinct_names(names: Vec<String>) -> (Vec<String>, Vec<Renamed>) {
    let mut first: HashMap<String, usize> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        first.entry(name.clone()).or_insert(index);
    }
    let mut taken: HashSet<String> = first.keys().cloned().collect();
    let mut next: HashMap<String, usize> = HashMap::new();
    let mut renamed = Vec::new();
    let mut distinct = Vec::with_capacity(names.len());
    for (index, name) in names.into_iter().enumerate() {
        if first[&name] == index {
            distinct.push(name);
            continue;
        }
        let number = next.entry(name.clone()).or_insert(1);
        let now = loop {
            let now = format!("{name}_{number}");
            *number += 1;
            if taken.insert(now.clone()) {
                break now;
            }
        };
        let first = first[&name] + 1;
        renamed.push(Renamed { name, first, position: index + 1, now: now.clone() });
        distinct.push(now);
    }
    (distinct, renamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_share_a_name_get_names_of_their_own() {
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        for (given, distinct) in [
            ("a,b", "a,b"),
            ("id,id,name", "id,id_1,name"),
            ("id,id,id_1,id", "id,id_2,id_1,id_3"),
            (",", ",_1"),
        ] {
            let (found, renamed) = distinct_names(names(given));
            assert_eq!(found, names(distinct), "{given}");
            assert_eq!(distinct_names(found), (names(distinct), Vec::new()), "{given}: settled");
            let changed = names(given).iter().zip(names(distinct)).filter(|(a, b)| *a != b).count();
            assert_eq!(renamed.len(), changed, "{given}");
        }
        let (_, renamed) = distinct_names(names("id,n,id"));
        let says = "columns 1 and 3 are both called `id`; column 3 is called `id_1` here";
        assert_eq!(renamed[0].to_string(), says);
    }
}

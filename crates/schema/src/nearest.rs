//! The name that may be meant where one is not there.

/// The name that is nearest to one that is not there, if one is near: for messages.
///
/// ```
/// use sapwood::schema::nearest;
///
/// assert_eq!(nearest("carier", ["dest", "carrier"]), Some("carrier"));
/// assert_eq!(nearest("plane", ["dest", "carrier"]), None);
/// ```
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let all = names.into_iter().map(|other| (distance(&lower, &other.to_lowercase()), other));
    let (distance, nearest) = all.min_by_key(|(distance, _)| *distance)?;
    let len = name.chars().count();
    // Not of one letter, in whose place any other stands.
    (distance <= 1 + len / 4 && distance < len.max(nearest.chars().count())).then_some(nearest)
}

/// The letters to insert, remove, replace or swap with their neighbour that make one word of
/// another.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let (mut above, mut row): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=right.len()).collect());
    let mut letter_before = None;
    for (down, letter) in left.chars().enumerate() {
        let mut next = vec![down + 1];
        for (across, &other) in right.iter().enumerate() {
            let mut least = (row[across] + usize::from(letter != other))
                .min(row[across + 1] + 1)
                .min(next[across] + 1);
            if across > 0 && letter_before == Some(other) && right[across - 1] == letter {
                least = least.min(above[across - 1] + 1);
            }
            next.push(least);
        }
        above = std::mem::replace(&mut row, next);
        letter_before = Some(letter);
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let names = ["carrier", "dep_delay", "dest"];
        assert_eq!(nearest("m", ["n", "x"]), None);
        for (name, found) in [
            ("carier", Some("carrier")),
            ("DEP_DELAI", Some("dep_delay")),
            ("dset", Some("dest")),
            ("origin", None),
            ("x", None),
            ("des", Some("dest")),
        ] {
            assert_eq!(nearest(name, names), found, "{name}");
        }
        assert_eq!((distance("ab", "ba"), distance("", "abc"), distance("abc", "abc")), (1, 3, 0));
    }
}

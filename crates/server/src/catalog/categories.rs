//! The names of classes of commands, as rules have them.

use crate::catalog::Categories;

/// The classes, in Redis's order; those for kinds of values that are not here have no commands, so
/// that the rules of a Redis server can be taken over.
const NAMES: &[(&str, Categories)] = &[
    ("keyspace", Categories::KEYSPACE),
    ("read", Categories::READ),
    ("write", Categories::WRITE),
    ("set", Categories::empty()),
    ("sortedset", Categories::empty()),
    ("list", Categories::empty()),
    ("hash", Categories::empty()),
    ("string", Categories::STRING),
    ("bitmap", Categories::empty()),
    ("hyperloglog", Categories::empty()),
    ("geo", Categories::empty()),
    ("stream", Categories::empty()),
    ("pubsub", Categories::PUBSUB),
    ("admin", Categories::ADMIN),
    ("fast", Categories::FAST),
    ("slow", Categories::SLOW),
    ("blocking", Categories::empty()),
    ("dangerous", Categories::DANGEROUS),
    ("connection", Categories::CONNECTION),
    ("transaction", Categories::TRANSACTION),
    ("scripting", Categories::empty()),
    ("table", Categories::TABLE),
];

/// All classes, with their names.
pub(crate) fn all() -> impl ExactSizeIterator<Item = (&'static str, Categories)> {
    NAMES.iter().copied()
}

/// The class of a name in letters of either size, with the name in small ones.
pub(crate) fn find(name: &[u8]) -> Option<(&'static str, Categories)> {
    all().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::catalog;

    #[test]
    fn each_class_of_commands_has_one_name() {
        for class in Categories::all() {
            assert_eq!(NAMES.iter().filter(|(_, named)| *named == class).count(), 1, "{class:?}");
        }
    }

    #[test]
    fn classes_are_found_in_letters_of_either_size() {
        assert_eq!(find(b"DANGerous"), Some(("dangerous", Categories::DANGEROUS)));
        assert_eq!(find(b"hash"), Some(("hash", Categories::empty())));
        assert_eq!(find(b"nothing"), None);
        assert_eq!(catalog().of_class(Categories::empty()).count(), 0);
        assert!(catalog().of_class(Categories::STRING).any(|command| command.name == "get"));
    }
}

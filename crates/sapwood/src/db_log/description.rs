//! A table, as the log describes it: lines of text, in this order.
//!
//! ```text
//! sapwood ordered 1
//! memory_budget none
//! chunk_entries 512
//! fields hits:i64le
//! ```
//! Of a hash table, whose folder has its options, `sapwood hash 1` alone; of the pool of tree tables
//! `sapwood trees 1`. Of a roll-up table, which the log knows as one of records, its name and its schema:
//!
//! ```text
//! sapwood rollup 1
//! name edits
//! schema {"timestampSpec":...}
//! ```
//!
//! Words and order are stored: do not change them without another version in the first line.

use sapwood_aggregate::Layout;

use crate::OrderedTableOptions;
use crate::stored_options::{Lines, Unreadable, fields_of, parse_number};

const ORDERED: &str = "sapwood ordered 1";
const HASH: &str = "sapwood hash 1";
const TREES: &str = "sapwood trees 1";
const ROLLUP: &str = "sapwood rollup 1";

/// The engine of a table, and what it was made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Description {
    Ordered(OrderedTableOptions),
    Hash,
    /// The pool of all tree tables.
    Trees,
    /// Its schema as a document, in one line.
    Rollup {
        name: String,
        schema: String,
    },
}

impl Description {
    pub(crate) fn encode(&self) -> String {
        let options = match self {
            Description::Ordered(options) => options,
            Description::Hash => return format!("{HASH}\n"),
            Description::Trees => return format!("{TREES}\n"),
            Description::Rollup { name, schema } => {
                return format!("{ROLLUP}\nname {name}\nschema {schema}\n");
            }
        };
        let budget =
            options.memory_budget.map_or_else(|| "none".to_owned(), |bytes| bytes.to_string());
        let fields = options.fields.as_ref().map_or_else(|| "none".to_owned(), Layout::to_string);
        format!(
            "{ORDERED}\nmemory_budget {budget}\nchunk_entries {}\nfields {fields}\n",
            options.chunk_entries
        )
    }

    /// Reads what [`encode`](Self::encode) wrote. Any bytes may be given.
    ///
    /// # Errors
    /// What is expected instead.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Description, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "text is expected".to_owned())?;
        let mut lines = Lines::new(text);
        match lines.next_line() {
            ORDERED => {}
            word @ (HASH | TREES) => {
                let read = match word {
                    HASH => Description::Hash,
                    _ => Description::Trees,
                };
                return lines.expect_end().map(|()| read).map_err(|unreadable| unreadable.what);
            }
            ROLLUP => {
                let mut read = || {
                    let some = |word: &str| Some(word.to_owned());
                    let (name, schema) = (lines.value("name", some)?, lines.value("schema", some)?);
                    lines.expect_end().map(|()| Description::Rollup { name, schema })
                };
                return read().map_err(|unreadable: Unreadable| unreadable.what);
            }
            _ => return Err(format!("`{ORDERED}`, `{HASH}`, `{TREES}` or `{ROLLUP}` is expected")),
        }
        let mut read = || {
            let memory_budget = lines.value("memory_budget", |word| match word {
                "none" => Some(None),
                bytes => parse_number(bytes).map(Some),
            })?;
            let chunk_entries = lines.number("chunk_entries")?;
            let fields = lines.value("fields", fields_of)?;
            lines.expect_end()?;
            Ok(OrderedTableOptions {
                memory_budget,
                chunk_entries,
                volatile: false,
                fields,
                schema: None,
            })
        };
        let read: Result<_, Unreadable> = read();
        read.map(Description::Ordered).map_err(|unreadable| unreadable.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it lies on a disk.
    const GOLDEN: &str =
        "sapwood ordered 1\nmemory_budget 1048576\nchunk_entries 64\nfields n:i64le\n";

    #[test]
    fn this_version_is_read_and_written() {
        let options = OrderedTableOptions::default()
            .memory_budget(1 << 20)
            .chunk_entries(64)
            .fields("n:i64le".parse().expect("a layout"));
        for (options, golden) in [(options, Some(GOLDEN)), (OrderedTableOptions::default(), None)] {
            let description = Description::Ordered(options);
            let text = description.encode();
            assert!(golden.is_none_or(|golden| golden == text), "{text}");
            assert_eq!(Description::decode(text.as_bytes()), Ok(description));
        }
        assert_eq!(Description::Hash.encode(), "sapwood hash 1\n");
        assert_eq!(Description::decode(b"sapwood hash 1\n"), Ok(Description::Hash));
        assert_eq!(Description::Trees.encode(), "sapwood trees 1\n");
        assert_eq!(Description::decode(b"sapwood trees 1\n"), Ok(Description::Trees));
        let schema = r#"{"timestampSpec": {"column": "time"}}"#.to_owned();
        let rollup = Description::Rollup { name: "edits".to_owned(), schema };
        let text =
            "sapwood rollup 1\nname edits\nschema {\"timestampSpec\": {\"column\": \"time\"}}\n";
        assert_eq!(rollup.encode(), text);
        assert_eq!(Description::decode(text.as_bytes()), Ok(rollup));
    }

    #[test]
    fn other_texts_are_refused() {
        for cut in 0..GOLDEN.len() {
            assert!(Description::decode(&GOLDEN.as_bytes()[..cut]).is_err(), "cut to {cut} bytes");
        }
        for (written, other) in [
            ("ordered 1", "ordered 2"),
            ("1048576", "+1048576"),
            ("64", "064"),
            ("n:i64le\n", "n:i64le\nmore\n"),
        ] {
            let text = GOLDEN.replace(written, other);
            assert!(Description::decode(text.as_bytes()).is_err(), "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            proptest::prop_assert!(Description::decode(&bytes).is_err());
        }
    }
}

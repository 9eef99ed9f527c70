//! The options of a hash table, as its directory keeps them.
//!
//! In a file of one block: lines of text, in this order, then zero bytes to the end of the block.
//! The last line is the CRC-32 of all bytes before it.
//!
//! ```text
//! sapwood table 3
//! engine hash
//! layout fixed8
//! page_bytes 2097152
//! memory_budget none
//! mutable_share 0.9
//! expected_entries 0
//! cold_reads copy-to-tail
//! checkpoints_kept 2
//! compaction 0.5 268435456 none
//! fields hits:i64le
//! checksum 984d6527
//! ```
//!
//! Compaction is `off`, or the share of garbage, and the bytes of log from which on, and above which
//! for less. Version 1 had no such line, and stands for its default. Fields are the text form of
//! their layout, or `none`. Versions 1 and 2 had no such line, and stand for none.
//!
//! Version 4 has a line `read_cache BYTES` behind `cold_reads`. It is written for a table that has a read
//! cache, and version 3 for all others.
//!
//! Words and order are stored: do not change them without another version in the first line.

use std::fmt::{Display, Write};
use std::str::FromStr;
use std::sync::Arc;

use sapwood_disk::checksum;

use sapwood_aggregate::Layout;

use crate::{ColdReads, Compaction, Error, HashTableOptions, RecordLayout};

/// The first line: what this is, and the version of its format.
pub(crate) const MAGIC: &str = "sapwood table 3";
/// Where the read cache has a size of its own.
const MAGIC_4: &str = "sapwood table 4";
/// As earlier versions wrote it.
const MAGIC_1: &str = "sapwood table 1";
const MAGIC_2: &str = "sapwood table 2";

/// What the text form of the fields may have, so that everything fits into a block.
const FIELDS_BYTES_MAX: usize = 3_000;

const LAYOUTS: [(RecordLayout, &str); 2] =
    [(RecordLayout::Variable, "variable"), (RecordLayout::Fixed8, "fixed8")];
const COLD_READS: [(ColdReads, &str); 2] =
    [(ColdReads::Stay, "stay"), (ColdReads::CopyToTail, "copy-to-tail")];

/// The text of the file, without the zeros behind it.
pub(crate) fn encode(options: &HashTableOptions) -> String {
    let budget = options.memory_budget.map_or_else(|| "none".to_owned(), |bytes| bytes.to_string());
    let compaction = options.compaction.map_or_else(|| "off".to_owned(), compaction_words);
    let fields = options.fields.as_ref().map_or_else(|| "none".to_owned(), Layout::to_string);
    let (magic, read_cache) = match options.read_cache {
        0 => (MAGIC, String::new()),
        bytes => (MAGIC_4, format!("read_cache {bytes}\n")),
    };
    let mut text = format!(
        "{magic}\nengine hash\nlayout {}\npage_bytes {}\nmemory_budget {budget}\n\
         mutable_share {}\nexpected_entries {}\ncold_reads {}\n{read_cache}checkpoints_kept {}\n\
         compaction {compaction}\nfields {fields}\n",
        word(&LAYOUTS, options.layout),
        options.page_bytes,
        options.mutable_share,
        options.expected_entries,
        word(&COLD_READS, options.cold_reads),
        options.checkpoints_kept,
    );
    let sum = checksum(text.as_bytes());
    writeln!(text, "checksum {sum:08x}").expect("a string takes everything");
    text
}

/// What is wrong with a file, and at which byte of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) offset: u64,
    pub(crate) what: String,
}

/// The last version that [`decode`] reads.
pub(crate) const VERSION: u64 = 4;

/// The version of options that a later version of Sapwood has written.
pub(crate) fn later_version(block: &[u8]) -> Option<u64> {
    let line = block.split(|&byte| byte == b'\n').next()?;
    let number = std::str::from_utf8(line).ok()?.strip_prefix("sapwood table ")?;
    number.parse().ok().filter(|number| *number > VERSION)
}

/// Reads what [`encode`] wrote. Any bytes may be given.
pub(crate) fn decode(block: &[u8]) -> Result<HashTableOptions, Unreadable> {
    let end = block.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let text = std::str::from_utf8(&block[..end]).map_err(|error| Unreadable {
        offset: error.valid_up_to() as u64,
        what: "text is expected".to_owned(),
    })?;
    let mut lines = Lines::new(text);
    let version = match lines.next_line() {
        MAGIC_4 => 4,
        MAGIC => 3,
        MAGIC_2 => 2,
        MAGIC_1 => 1,
        _ => return Err(Unreadable { offset: 0, what: format!("`{MAGIC}` is expected") }),
    };
    lines.value("engine", |word| (word == "hash").then_some(()))?;
    let options = HashTableOptions {
        layout: lines.value("layout", |word| named(&LAYOUTS, word))?,
        page_bytes: lines.number("page_bytes")?,
        memory_budget: lines.value("memory_budget", |word| match word {
            "none" => Some(None),
            bytes => parse_number(bytes).map(Some),
        })?,
        mutable_share: lines.number("mutable_share")?,
        expected_entries: lines.number("expected_entries")?,
        cold_reads: lines.value("cold_reads", |word| named(&COLD_READS, word))?,
        read_cache: match version {
            4 => lines.number("read_cache")?,
            _ => 0,
        },
        checkpoints_kept: lines.number("checkpoints_kept")?,
        compaction: match version {
            1 => Some(Compaction::default()),
            _ => lines.value("compaction", compaction_of)?,
        },
        fields: match version {
            1 | 2 => None,
            _ => lines.value("fields", fields_of)?,
        },
        schema: None,
    };
    let sum = format!("{:08x}", checksum(&text.as_bytes()[..lines.offset]));
    lines.value("checksum", |word| (word == sum).then_some(()))?;
    lines.expect_end()?;
    Ok(options)
}

/// Refuses what could not be written.
pub(crate) fn check(table: &Arc<str>, options: &HashTableOptions) -> crate::Result<()> {
    let refuse = |why| Err(Error::Fields { table: Arc::clone(table), why });
    match options.fields.as_ref().map(Layout::to_string) {
        Some(text) if text.len() > FIELDS_BYTES_MAX => refuse("they take more than 3,000 bytes"),
        Some(text) if text.contains(char::is_control) => refuse("they have control characters"),
        Some(text) if fields_of(&text).is_none() => refuse("they are not what their text reads as"),
        _ => Ok(()),
    }
}

/// A layout in its one spelling.
pub(crate) fn fields_of(text: &str) -> Option<Option<Layout>> {
    if text == "none" {
        return Some(None);
    }
    let layout: Layout = text.parse().ok()?;
    (layout.to_string() == text).then_some(Some(layout))
}

fn compaction_words(compaction: Compaction) -> String {
    let Compaction { garbage_share, log_bytes_min, log_bytes_max } = compaction;
    let max = log_bytes_max.map_or_else(|| "none".to_owned(), |bytes| bytes.to_string());
    format!("{garbage_share} {log_bytes_min} {max}")
}

fn compaction_of(words: &str) -> Option<Option<Compaction>> {
    if words == "off" {
        return Some(None);
    }
    let mut words = words.split(' ');
    let compaction = Compaction {
        garbage_share: words.next()?.parse().ok()?,
        log_bytes_min: words.next()?.parse().ok()?,
        log_bytes_max: match words.next()? {
            "none" => None,
            bytes => Some(bytes.parse().ok()?),
        },
    };
    words.next().is_none().then_some(Some(compaction))
}

/// Lines of text, each a name and a value.
pub(crate) struct Lines<'a> {
    text: &'a str,
    /// Where the next line begins.
    offset: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Lines<'a> {
        Lines { text, offset: 0 }
    }

    /// Empty where the text ends before the line does.
    pub(crate) fn next_line(&mut self) -> &'a str {
        let Some((line, _)) = self.text[self.offset..].split_once('\n') else { return "" };
        self.offset += line.len() + 1;
        line
    }

    pub(crate) fn value<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, Unreadable> {
        let begin = self.offset;
        let word = self.next_line().strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
        word.and_then(parse).ok_or_else(|| Unreadable {
            offset: begin as u64,
            what: format!("a valid line `{name} ...` is expected"),
        })
    }

    pub(crate) fn number<T: FromStr + Display>(&mut self, name: &str) -> Result<T, Unreadable> {
        self.value(name, parse_number)
    }

    /// Refuses what stands behind the last line.
    pub(crate) fn expect_end(&self) -> Result<(), Unreadable> {
        match &self.text[self.offset..] {
            "" => Ok(()),
            _ => Err(Unreadable {
                offset: self.offset as u64,
                what: "nothing is expected behind the last line".to_owned(),
            }),
        }
    }
}

/// A number in its one spelling.
pub(crate) fn parse_number<T: FromStr + Display>(word: &str) -> Option<T> {
    word.parse().ok().filter(|number: &T| number.to_string() == word)
}

fn word<T: PartialEq>(words: &[(T, &'static str)], value: T) -> &'static str {
    let found = words.iter().find(|(other, _)| *other == value);
    found.expect("every value has a word").1
}

fn named<T: Copy>(words: &[(T, &str)], word: &str) -> Option<T> {
    words.iter().find(|(_, other)| *other == word).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As version 1 wrote a file; every later version must read it.
    const GOLDEN_1: &str = "sapwood table 1\nengine hash\nlayout fixed8\npage_bytes 65536\n\
        memory_budget 1048576\nmutable_share 0.5\nexpected_entries 1000\ncold_reads stay\n\
        checkpoints_kept 3\nchecksum 7509efe6\n";
    /// As version 2 did.
    const GOLDEN_2: &str = "sapwood table 2\nengine hash\nlayout fixed8\npage_bytes 65536\n\
        memory_budget 1048576\nmutable_share 0.5\nexpected_entries 1000\ncold_reads stay\n\
        checkpoints_kept 3\ncompaction 0.25 1048576 8388608\nchecksum 84fe5bc4\n";
    /// As it lies on a disk now.
    const GOLDEN: &str = "sapwood table 3\nengine hash\nlayout fixed8\npage_bytes 65536\n\
        memory_budget 1048576\nmutable_share 0.5\nexpected_entries 1000\ncold_reads stay\n\
        checkpoints_kept 3\ncompaction 0.25 1048576 8388608\nfields n:i64le\n\
        checksum 268ac73a\n";

    /// The same with a read cache of a size.
    const GOLDEN_4: &str = "sapwood table 4\nengine hash\nlayout fixed8\npage_bytes 65536\n\
        memory_budget 1048576\nmutable_share 0.5\nexpected_entries 1000\ncold_reads stay\n\
        read_cache 262144\ncheckpoints_kept 3\ncompaction 0.25 1048576 8388608\n\
        fields n:i64le\nchecksum 97ae5ae3\n";

    fn golden_1() -> HashTableOptions {
        HashTableOptions::default()
            .layout(RecordLayout::Fixed8)
            .page_bytes(1 << 16)
            .memory_budget(1 << 20)
            .mutable_share(0.5)
            .expected_entries(1000)
            .cold_reads(ColdReads::Stay)
            .checkpoints_kept(3)
    }

    fn golden_2() -> HashTableOptions {
        golden_1().compaction(Compaction {
            garbage_share: 0.25,
            log_bytes_min: 1 << 20,
            log_bytes_max: Some(8 << 20),
        })
    }

    fn golden() -> HashTableOptions {
        golden_2().fields("n:i64le".parse().expect("a layout"))
    }

    #[test]
    fn a_read_cache_of_a_size_is_written_and_read() {
        let options = golden().read_cache(256 << 10);
        assert_eq!(encode(&options), GOLDEN_4);
        assert_eq!(decode(&[GOLDEN_4.as_bytes(), &[0; 100]].concat()), Ok(options));
    }

    #[test]
    fn earlier_versions_are_read() {
        assert_eq!(decode(&[GOLDEN_1.as_bytes(), &[0; 100]].concat()), Ok(golden_1()));
        assert_eq!(golden_1().compaction, Some(Compaction::default()));
        assert_eq!(decode(&[GOLDEN_2.as_bytes(), &[0; 100]].concat()), Ok(golden_2()));
    }

    #[test]
    fn fields_that_cannot_be_written_are_refused() {
        let table: Arc<str> = "t".into();
        let with = |text: &str| HashTableOptions::default().fields(text.parse().expect("a layout"));
        assert_eq!(check(&table, &golden()), Ok(()));
        let long = (0..400).map(|at| format!("f{at}:u8@{at}")).collect::<Vec<_>>().join(", ");
        let error = check(&table, &with(&long)).expect_err("too long").to_string();
        assert!(error.contains("3,000 bytes"), "{error}");
        // As many as fit lie in one block.
        let fits = (0..200).map(|at| format!("f{at}:u8@{at}")).collect::<Vec<_>>().join(", ");
        assert_eq!(check(&table, &with(&fits)), Ok(()));
        assert!(encode(&with(&fits)).len() < 4_096);
    }

    #[test]
    fn this_version_is_read_and_written() {
        assert_eq!(encode(&golden()), GOLDEN);
        assert_eq!(decode(&[GOLDEN.as_bytes(), &[0; 100]].concat()), Ok(golden()));
        for plain in [HashTableOptions::default(), HashTableOptions::default().compaction(None)] {
            assert_eq!(decode(encode(&plain).as_bytes()), Ok(plain));
        }
    }

    /// Found by fuzzing: numbers were read that are never written so.
    #[test]
    fn other_spellings_are_refused() {
        for (written, other) in [
            ("page_bytes 65536", "page_bytes +65536"),
            ("memory_budget 1048576", "memory_budget 01048576"),
            ("mutable_share 0.5", "mutable_share .5"),
            ("checkpoints_kept 3", "checkpoints_kept 03"),
        ] {
            let text = GOLDEN.replace(written, other);
            let (text, _) = text.split_once("checksum").expect("it ends with one");
            let sum = checksum(text.as_bytes());
            let unreadable = decode(format!("{text}checksum {sum:08x}\n").as_bytes());
            let offset = text.find(other).expect("just put there") as u64;
            assert_eq!(unreadable.map_err(|unreadable| unreadable.offset), Err(offset), "{other}");
        }
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let good = GOLDEN.as_bytes();
        for at in 0..good.len() {
            for flip in [0x01, 0x20, 0x80] {
                let mut bad = good.to_vec();
                bad[at] ^= flip;
                assert!(decode(&bad).is_err(), "byte {at} with bits {flip:#x} flipped");
            }
            assert!(decode(&good[..at]).is_err(), "cut to {at} bytes");
        }
        let unreadable = decode(b"sapwood table 5\n").expect_err("another version");
        assert_eq!(
            (unreadable.offset, unreadable.what.as_str()),
            (0, "`sapwood table 3` is expected")
        );
        assert_eq!(later_version(b"sapwood table 5\n"), Some(5));
        let others: [&[u8]; 5] =
            [b"sapwood table 4\n", b"sapwood table x\n", b"sapwood table 99", b"", b"\xff\n"];
        assert_eq!(others.map(later_version), [None, None, Some(99), None, None]);
        assert!(decode(&[GOLDEN.as_bytes(), b"\0more"].concat()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(decode(&bytes).is_err());
        }
    }
}

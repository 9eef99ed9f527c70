//! The contents of each table, which a reader of a damaged database compares with. They travel in a
//! file, a line for each entry.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use sapwood::{Db, Error, HashTable};

use crate::stream::Contents;

/// The contents of all tables.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    tables: BTreeMap<String, Contents>,
}

impl Expected {
    pub(crate) fn add(&mut self, table: &str, contents: Contents) {
        self.tables.insert(table.to_owned(), contents);
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        for (table, contents) in &self.tables {
            text += &format!("table {table}\n");
            for (key, value) in contents {
                text += &format!("{} {}\n", hex(key), hex(value));
            }
        }
        text
    }

    pub(crate) fn parse(text: &str) -> Option<Expected> {
        let mut expected = Expected::default();
        let mut at = None;
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["table", name] => {
                    at = Some(name.to_owned());
                    expected.add(name, Contents::new());
                }
                [key, value] => {
                    let contents = expected.tables.get_mut(at.as_ref()?)?;
                    contents.insert(unhex(key)?, unhex(value)?);
                }
                _ => return None,
            }
        }
        Some(expected)
    }

    /// Reads all of a database. `Ok` holds what was refused, `Err` what is wrong.
    pub(crate) fn compare(&self, folder: &Path) -> Result<Vec<String>, String> {
        let mut refused = Vec::new();
        let db = match Db::open(folder) {
            Ok(db) => db,
            Err(e) => return Ok(vec![e.to_string()]),
        };
        for (name, right) in &self.tables {
            let table = match db.hash_table(name) {
                Ok(table) => table,
                Err(e) => {
                    refused.push(e.to_string());
                    continue;
                }
            };
            compare(&table, right, &mut refused).map_err(|what| format!("table {name}: {what}"))?;
            if let Err(e @ Error::HashCorrupt { .. }) = table.check() {
                refused.push(e.to_string());
            }
        }
        Ok(refused)
    }
}

/// Every way to read a table answers what is right, or an error.
fn compare(table: &HashTable, right: &Contents, refused: &mut Vec<String>) -> Result<(), String> {
    for way in [Way::ForEach, Way::ScanLog] {
        let mut seen = 0;
        let mut visit = |key: &[u8], value: &[u8]| {
            seen += 1;
            match right.get(key) {
                Some(right) if right == value => ControlFlow::Continue(()),
                other => {
                    ControlFlow::Break(format!("{way:?}: {key:?} has {value:?}, not {other:?}"))
                }
            }
        };
        let walked = match way {
            Way::ForEach => table.for_each(&mut visit),
            Way::ScanLog => table.scan_log(&mut visit),
        };
        match walked {
            Err(e) => refused.push(e.to_string()),
            Ok(ControlFlow::Break(wrong)) => return Err(wrong),
            Ok(ControlFlow::Continue(())) if seen != right.len() => {
                return Err(format!("{way:?} saw {seen} entries of {}", right.len()));
            }
            Ok(ControlFlow::Continue(())) => {}
        }
    }
    for (key, value) in right {
        match table.get(key) {
            Err(e) => refused.push(e.to_string()),
            Ok(found) if found.as_ref() == Some(value) => {}
            Ok(found) => return Err(format!("get: {key:?} has {found:?}, not {value:?}")),
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Way {
    ForEach,
    ScanLog,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_read_as_they_are_written() {
        let mut expected = Expected::default();
        expected.add("a", Contents::from([(vec![0, 255], vec![])]));
        expected.add("b", Contents::new());
        let read = Expected::parse(&expected.to_text()).expect("text of ours");
        assert_eq!(read.tables, expected.tables);
        assert!(Expected::parse("00 1").is_none());
    }
}

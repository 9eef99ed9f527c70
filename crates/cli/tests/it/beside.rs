//! Processes that read tables while another process changes them, statement by statement.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;
use tempfile::TempDir;

use crate::stdout_of;

const ROWS: u64 = 2_000;

/// Of each row `a` and `b` make this, before and after each change.
const SUM: u64 = 1_000_000;

/// Readers at a time.
const READERS: u64 = 2;

/// Statements that change a table: `SAPWOOD_STATEMENTS` for the full size, which takes minutes.
fn statements() -> u64 {
    let set = std::env::var("SAPWOOD_STATEMENTS").ok();
    set.map_or(12, |count| count.parse().expect("a number"))
}

#[test]
fn an_ordered_table_is_read_beside_a_writer() {
    read_beside_a_writer("ordered");
}

#[test]
fn a_hash_table_is_read_beside_a_writer() {
    read_beside_a_writer("hash");
}

#[test]
fn a_tree_table_is_read_beside_a_writer() {
    read_beside_a_writer("tree");
}

fn read_beside_a_writer(engine: &str) {
    let folder = TempDir::new().expect("a directory for the test");
    let (file, directory) = (folder.path().join("t.csv"), folder.path().join("db"));
    let rows = (0..ROWS).map(|id| format!("{id},{id},{}\n", SUM - id));
    fs::write(&file, format!("id,a,b\n{}", rows.collect::<String>())).expect("a file");
    let directory = text(&directory);
    let file = text(&file);
    stdout_of(&[
        "load", file, "--key", "id", "--engine", engine, "--dir", directory, "--table", "t", "-q",
    ]);
    let sql =
        |statement: &str| stdout_of(&["sql", statement, "--dir", directory, "--mode", "csv", "-q"]);
    let (is_over, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    let found = thread::scope(|scope| {
        for reader in 0..READERS {
            let (sql, is_over, reads) = (&sql, &is_over, &reads);
            scope.spawn(move || {
                let mut rng = Rng::with_seed(reader);
                loop {
                    read(sql, &mut rng);
                    reads.fetch_add(1, Ordering::Relaxed);
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        let _ends = Ends(&is_over);
        change(&sql)
    });
    assert!(reads.into_inner() >= READERS);
    assert_eq!(sql("select count(*), sum(a + b) from t"), answer(found));
    stdout_of(&["check", directory]);
}

/// Tells readers that no more changes come, even if one fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Changes the table by many statements; how many rows it has then.
fn change(sql: &impl Fn(&str) -> String) -> u64 {
    let mut rng = Rng::with_seed(7);
    let mut more = std::collections::BTreeSet::new();
    let mut next = ROWS;
    for _ in 0..statements() {
        let low = rng.u64(..ROWS);
        match rng.u8(..6) {
            0..3 => sql(&format!("update t set a = a + 7, b = b - 7 where id = {low}")),
            3 => sql(&format!(
                "update t set a = a + 1, b = b - 1 where a % 97 = {} and id < {low}",
                rng.u8(..97)
            )),
            4 => {
                more.insert(next);
                next += 1;
                sql(&format!("insert into t (id, a, b) values ({}, 1, {})", next - 1, SUM - 1))
            }
            _ => {
                let odd = rng.u64(..2);
                more.retain(|id| id % 2 != odd);
                sql(&format!("delete from t where id >= {ROWS} and id % 2 = {odd}"))
            }
        };
    }
    ROWS + more.len() as u64
}

/// Any moment of the table has as many rows as it began with, or more, and each makes the same sum.
fn read(sql: &impl Fn(&str) -> String, rng: &mut Rng) {
    match rng.u8(..4) {
        0 => {
            let found = sql(&format!("select count(*), sum(a + b) from t where id < {ROWS}"));
            assert_eq!(found, answer(ROWS));
        }
        1 => {
            let found = sql("select count(*), sum(a + b) from t where id between 500 and 1499");
            assert_eq!(found, answer(1_000));
        }
        2 => {
            let found = sql("select count(*), sum(a + b) from t");
            let count = found.lines().nth(1).and_then(|row| row.split(',').next()?.parse().ok());
            let count: u64 = count.expect("a count");
            assert!(count >= ROWS, "{count}");
            assert_eq!(found, answer(count));
        }
        _ => {
            let found = sql(&format!("select a + b as sum from t where id = {}", rng.u64(..ROWS)));
            assert_eq!(found, format!("sum\n{SUM}\n"));
        }
    }
}

/// What `select count(*), sum(a + b)` answers of so many rows.
fn answer(rows: u64) -> String {
    format!("count(*),sum(a + b)\n{rows},{}\n", rows * SUM)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

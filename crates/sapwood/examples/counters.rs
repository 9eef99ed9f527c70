//! Counters that outlive the program: run it several times, and it counts on.
//!
//! ```sh
//! cargo run -p sapwood --example counters
//! ```

use std::error::Error;
use std::path::Path;

use sapwood::{Db, HashTableOptions};

const TEXT: &str = "an oak and an elm and an ash and an oak";

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join("sapwood-counters");
    let times = count(&directory)?;
    println!("counted {times} times; remove {} to begin anew", directory.display());
    Ok(())
}

/// Counts the words of the text once more; answers how often it did so far.
fn count(directory: &Path) -> Result<i64, Box<dyn Error>> {
    let db = Db::open(directory)?;
    // What does not fit into the budget lies on the disk alone.
    let options = HashTableOptions::default().memory_budget(64 << 20);
    let words = db.open_or_create_hash_table("words", options)?;

    // Many at once are faster than one by one.
    let ones: Vec<(&str, i64)> = TEXT.split(' ').map(|word| (word, 1)).collect();
    words.add_many(&ones)?;
    let times = words.add(b"(texts)", 1)?;

    // What is counted so far survives a crash, while other threads may go on counting.
    db.checkpoint()?;

    for word in ["an", "oak", "elm", "beech"] {
        match words.get_counter(word.as_bytes())? {
            Some(count) => println!("{word:6} {count}"),
            None => println!("{word:6} not seen"),
        }
    }
    drop(words);
    db.close()?;
    Ok(times)
}

#[test]
fn it_counts_on_when_it_runs_again() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    assert_eq!(count(directory.path())?, 1);
    assert_eq!(count(directory.path())?, 2);
    let words = Db::open(directory.path())?.hash_table("words")?;
    assert_eq!(words.get_counter(b"an")?, Some(8));
    assert_eq!(words.get_counter(b"beech")?, None);
    Ok(())
}

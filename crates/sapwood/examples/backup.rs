//! Backups of a database while it changes, and one that is restored beside it.
//!
//! ```sh
//! cargo run -p sapwood --example backup
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sapwood::{BackupInfo, Backups, Db, HashTable, HashTableOptions, Result};

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join(format!("sapwood-backup-{}", std::process::id()));
    let (first, second) = back_up(&directory)?;
    for backup in [&first, &second] {
        println!(
            "backup {}: {} bytes, {} of them new",
            backup.number, backup.bytes, backup.own_bytes
        );
    }
    let restored = restore(&directory, first.number)?;
    println!("backup {} had {restored} orders", first.number);
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

/// Two backups, while a thread takes orders. They share what is the same.
fn back_up(directory: &Path) -> Result<(BackupInfo, BackupInfo)> {
    let db = Db::open(directory.join("shop"))?;
    let orders = db.create_hash_table("orders", HashTableOptions::default())?;
    let backups = Backups::open_or_create(directory.join("backups"))?;
    (0..1000).try_for_each(|number| order(&orders, number))?;

    let is_open = AtomicBool::new(true);
    let take_orders = || {
        (1000..).take_while(|_| is_open.load(Relaxed)).try_for_each(|number| order(&orders, number))
    };
    std::thread::scope(|scope| {
        let taking = scope.spawn(take_orders);
        // Called now and then with how far it is; false would end the backup.
        let first = backups.add(&db, |_progress| true);
        let second = backups.add(&db, |_progress| true);
        is_open.store(false, Relaxed);
        taking.join().expect("orders do not panic")?;
        // Of all backups, the newest seven stay.
        backups.keep(7)?;
        Ok((first?, second?))
    })
}

fn order(orders: &HashTable, number: u64) -> Result<()> {
    orders.put(number.to_be_bytes(), b"an oak")
}

/// Makes a directory of a backup, opens it, and counts its orders.
fn restore(directory: &Path, number: u64) -> Result<usize> {
    let before = directory.join("before");
    Backups::open(directory.join("backups"))?.restore(Some(number), &before, |_progress| true)?;
    Db::open(before)?.hash_table("orders")?.len()
}

#[test]
fn a_backup_has_what_was_there_before_it() -> std::result::Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let (first, second) = back_up(directory.path())?;
    assert!(second.own_bytes < second.bytes, "{second:?}");
    assert!(restore(directory.path(), first.number)? >= 1000);
    Ok(())
}

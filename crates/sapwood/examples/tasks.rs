//! The synchronous engine in tasks of tokio: what is called in place, what waits in a thread, what is awaited.
//!
//! ```sh
//! cargo run -p sapwood --example tasks
//! ```

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;

use sapwood::{Db, OrderedTableOptions};
use tokio::task::{JoinSet, spawn_blocking};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const SEATS: i64 = 90;

#[tokio::main]
async fn main() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("sapwood-tasks-{}", std::process::id()));
    let (sold, members) = sell(&directory).await?;
    println!("{sold} seats are sold and on the disk, {members} of them to members");
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

/// A hundred buyers, a task each, want one of the seats: how many are sold, and how many of these to members.
async fn sell(directory: &Path) -> Result<(i64, u32)> {
    // Opening reads files: in a thread that may wait.
    let path = directory.to_owned();
    let db = spawn_blocking(move || Db::open(path)).await??;
    let seats = db.create_ordered_table("seats", OrderedTableOptions::default())?;
    let sold = db.create_ordered_table("sold", OrderedTableOptions::default())?;

    let mut buyers = JoinSet::new();
    for buyer in 0..100_u32 {
        let (db, seats, sold) = (db.clone(), seats.clone(), sold.clone());
        buyers.spawn(async move {
            // Ordered tables are in memory: a transaction takes microseconds, and is called in place.
            let seat = db.transaction(|tx| {
                let seat = tx.table(&sold).get_counter(b"seats")?.unwrap_or(0);
                if seat == SEATS {
                    return Ok(None);
                }
                tx.table(&sold).add(b"seats", 1)?;
                let kind = if buyer % 3 == 0 { "member" } else { "guest" };
                tx.table(&seats).put(seat.to_be_bytes(), kind)?;
                Ok(Some(seat))
            })?;
            // The disk is awaited, without a thread: tasks that wait at the same time share its syncs. There is no
            // `.await` between the change and `changes`, which has the changes of this thread.
            db.changes().await?;
            Ok::<_, sapwood::Error>(seat)
        });
    }
    while let Some(seat) = buyers.join_next().await {
        seat??;
    }

    // A scan of a large table takes its time: in a thread that may.
    let count = move || {
        let mut members = 0;
        let _ = seats.scan(.., sapwood::Direction::Ascending, |_seat, kind| {
            members += u32::from(kind == b"member");
            ControlFlow::<()>::Continue(())
        })?;
        Ok::<_, sapwood::Error>((sold.get_counter(b"seats")?.unwrap_or(0), members))
    };
    let counted = spawn_blocking(count).await??;
    spawn_blocking(move || db.close()).await??;
    Ok(counted)
}

#[tokio::test]
async fn no_seat_is_sold_twice() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (sold, members) = sell(directory.path()).await?;
    assert!(sold == SEATS && members <= 34, "{sold} seats, {members} members");
    let seats = Db::open(directory.path())?.ordered_table("seats")?;
    assert_eq!(seats.len()?, 90);
    Ok(())
}

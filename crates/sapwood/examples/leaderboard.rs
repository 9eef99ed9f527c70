//! A leaderboard: the best players first, and the place of each, however many there are.
//!
//! ```sh
//! cargo run -p sapwood --example leaderboard
//! ```

use std::cmp::Reverse;

use sapwood::{Db, HashTable, HashTableOptions, OrderedTable, OrderedTableOptions, Result, key};

struct Leaderboard {
    db: Db,
    /// The score of each player.
    scores: HashTable,
    /// Keys are a score, the highest first, and a player; values are empty.
    places: OrderedTable,
}

impl Leaderboard {
    fn open(db: Db) -> Result<Leaderboard> {
        let scores = db.open_or_create_hash_table("scores", HashTableOptions::default())?;
        let places = db.open_or_create_ordered_table("places", OrderedTableOptions::default())?;
        Ok(Leaderboard { db, scores, places })
    }

    /// Adds points to the score of a player, in both tables or in none; answers the score.
    fn add(&self, player: &str, points: i64) -> Result<i64> {
        self.db.transaction(|tx| {
            let (scores, places) = (tx.table(&self.scores), tx.table(&self.places));
            if let Some(score) = scores.get_counter(player)? {
                places.remove(place(score, player))?;
            }
            let score = scores.add(player, points)?;
            places.put(place(score, player), b"")?;
            Ok(score)
        })
    }

    /// The place of a player, from 1.
    fn place(&self, player: &str) -> Result<Option<u64>> {
        let Some(score) = self.scores.get_counter(player)? else { return Ok(None) };
        Ok(Some(self.places.rank(place(score, player))? + 1))
    }

    /// The players from a place on, with their scores.
    fn from(&self, place: u64, count: usize) -> Result<Vec<(String, i64)>> {
        let Some(first) = self.places.nth(place - 1)? else { return Ok(Vec::new()) };
        let entries = self.places.range(first.key()..).take(count);
        let player = |bytes: &[u8]| {
            let (Reverse(score), player) = key::decode::<(Reverse<i64>, String)>(bytes)?;
            Ok((player, score))
        };
        entries.map(|entry| player(entry?.key())).collect()
    }
}

fn place(score: i64, player: &str) -> Vec<u8> {
    key::encode(&(Reverse(score), player))
}

fn main() -> Result<()> {
    let board = Leaderboard::open(Db::in_memory())?;
    for (player, points) in [("ada", 300), ("bob", 250), ("eve", 120), ("bob", 90)] {
        board.add(player, points)?;
    }
    for (player, score) in board.from(1, 10)? {
        println!("{}. {player} {score}", board.place(&player)?.unwrap_or_default());
    }
    Ok(())
}

#[test]
fn places_follow_the_scores() -> Result<()> {
    main()?;
    let board = Leaderboard::open(Db::in_memory())?;
    for number in 0..10_000 {
        board.add(&format!("player {number:04}"), number)?;
    }
    assert_eq!(board.place("player 9999")?, Some(1));
    assert_eq!(board.place("player 0000")?, Some(10_000));
    assert_eq!(board.add("player 0000", 5_000)?, 5_000);
    // Of equal scores the first by name.
    assert_eq!(board.place("player 0000")?, Some(5_000));
    assert_eq!(
        board.from(5_000, 2)?,
        [("player 0000".to_owned(), 5_000), ("player 5000".to_owned(), 5_000)]
    );
    assert_eq!(board.place("tim")?, None);
    Ok(())
}

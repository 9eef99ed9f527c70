//! Sessions that expire: rows of a typed table, prolonged in place by each use, and swept once they are over.
//!
//! ```sh
//! cargo run -p sapwood --example sessions
//! ```

use sapwood::row::Row;
use sapwood::sql::{self, Outcome};
use sapwood::{Db, HashTableOptions, Result, Rows};

/// Seconds that a session lasts after its last use.
const LASTS: i64 = 1800;

#[derive(Row)]
struct Session {
    #[row(key)]
    token: String,
    user: String,
    /// Seconds since 1970.
    expires: i64,
}

struct Sessions {
    db: Db,
    rows: Rows<Session>,
}

impl Sessions {
    fn open(db: Db) -> Result<Sessions> {
        let options = HashTableOptions::default().schema(Session::schema());
        db.open_or_create_hash_table("sessions", options)?;
        Ok(Sessions { rows: db.rows("sessions")?.typed()?, db })
    }

    fn begin(&self, token: &str, user: &str, now: i64) -> Result<()> {
        let (token, user) = (token.to_owned(), user.to_owned());
        self.rows.put(&Session { token, user, expires: now + LASTS }).map(drop)
    }

    /// The user of a session that is not over, which lasts longer from here.
    fn user(&self, token: &str, now: i64) -> Result<Option<String>> {
        let Some(session) = self.rows.get(token)?.filter(|it| it.expires > now) else {
            return Ok(None);
        };
        // False if the session ended meanwhile.
        let is_there = self.rows.update_column(token, "expires", &(now + LASTS).into())?;
        Ok(is_there.then_some(session.user))
    }

    /// Removes what is over, for a thread that does so every minute. Each row is looked at again as it goes: one that
    /// is prolonged meanwhile stays.
    fn sweep(&self, now: i64) -> sql::Result<u64> {
        match self.db.sql_with("delete from sessions where expires <= $1", &[now.into()])? {
            Outcome::Changed { rows, .. } => Ok(rows),
            other => unreachable!("a delete changes rows: {other:?}"),
        }
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    // `Db::open` keeps them over the end of the process.
    let sessions = Sessions::open(Db::in_memory())?;
    let noon = 1_793_620_800;
    sessions.begin("5f2c", "ada", noon)?;
    sessions.begin("91ab", "bob", noon)?;
    println!("20 minutes later, 5f2c is {:?}", sessions.user("5f2c", noon + 1200)?);
    println!("40 minutes later, 5f2c is {:?}", sessions.user("5f2c", noon + 2400)?);
    println!("40 minutes later, 91ab is {:?}", sessions.user("91ab", noon + 2400)?);
    println!("{} swept, {} stay", sessions.sweep(noon + 2400)?, sessions.rows.table().len()?);
    Ok(())
}

#[test]
fn sessions_last_from_their_last_use() -> std::result::Result<(), Box<dyn std::error::Error>> {
    main()?;
    let sessions = Sessions::open(Db::in_memory())?;
    sessions.begin("t", "ada", 0)?;
    assert_eq!(sessions.user("t", LASTS - 1)?.as_deref(), Some("ada"));
    assert_eq!((sessions.sweep(LASTS)?, sessions.user("u", 0)?), (0, None));
    assert_eq!(sessions.user("t", 2 * LASTS - 1)?, None);
    assert_eq!((sessions.sweep(2 * LASTS)?, sessions.sweep(2 * LASTS)?), (1, 0));
    Ok(())
}

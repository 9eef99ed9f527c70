//! Answers as structs, and lists of parameters.

use super::{Error, Outcome, Result};
use crate::Db;
use crate::row::Row;
use crate::schema::Value;

/// Values for the parameters of a statement, of any types that a [`Value`](crate::schema::Value) is made from.
///
/// ```
/// use sapwood::{Db, params};
///
/// let db = Db::in_memory();
/// db.sql("create table hits (page text primary key, hits bigint)")?;
/// db.sql_with("insert into hits values ($1, $2)", &params!["/oaks", 7])?;
/// # Ok::<(), sapwood::sql::Error>(())
/// ```
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        [$($crate::schema::Value::from($value)),*]
    };
}

impl Db {
    /// Executes a statement that has rows, and answers them as structs: each field has the value of the column of its name.
    /// Other columns are ignored.
    ///
    /// # Errors
    /// The errors of [`sql_with`](Self::sql_with); a field without a column, and a value that a field cannot have. A statement that
    /// changes rows is executed, and has none to answer.
    ///
    /// ```
    /// use sapwood::row::Row;
    /// use sapwood::{Db, params};
    ///
    /// #[derive(Row, Debug, PartialEq)]
    /// struct Late {
    ///     carrier: String,
    ///     minutes: Option<i64>,
    /// }
    ///
    /// let db = Db::in_memory();
    /// db.sql("create table flights (carrier text, flight int, delay int, primary key (carrier, flight))")?;
    /// db.sql("insert into flights values ('UA', 1545, 11), ('UA', 1714, 20), ('AA', 1141, 33)")?;
    /// let late: Vec<Late> = db.query(
    ///     "select carrier, sum(delay) as minutes from flights where delay > $1 group by carrier order by carrier",
    ///     &params![15],
    /// )?;
    /// assert_eq!(late[1], Late { carrier: "UA".to_owned(), minutes: Some(20) });
    /// # Ok::<(), sapwood::sql::Error>(())
    /// ```
    pub fn query<R: Row>(&self, select: &str, parameters: &[Value<'_>]) -> Result<Vec<R>> {
        let Outcome::Rows(answer) = self.sql_with(select, parameters)? else {
            return Err(Error::value("the statement has no rows: `sql_with` executes it"));
        };
        let fields = R::schema();
        let columns = fields.columns().iter().map(|field| answer.column(&field.name));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let row = |row: usize| {
            let values = columns.iter().map(|&column| answer.value(row, column));
            let values = values.collect::<Result<Vec<_>>>()?;
            R::from_values(values)
                .map_err(|error| Error::value(format!("row {}: {error}", row + 1)))
        };
        (0..answer.len()).map(row).collect()
    }
}

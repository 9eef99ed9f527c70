//! Typed columns: tables whose entries are rows.
//!
//! A [`Schema`] names the columns of a table and their [`Type`]s, and says which of them make the key. A
//! table is made with one ([`OrderedTableOptions::schema`](crate::OrderedTableOptions::schema) and its like
//! of the other kinds), keeps it, and is read and changed by [`Rows`](crate::Rows).
//!
//! ```
//! use sapwood::schema::{Schema, Value};
//! use sapwood::{Db, OrderedTableOptions};
//!
//! let db = Db::in_memory();
//! let schema: Schema = "carrier:text, flight:u16, delay:i16?, key(carrier, flight)".parse()?;
//! db.create_ordered_table("flights", OrderedTableOptions::default().schema(schema))?;
//!
//! let flights = db.rows("flights")?;
//! flights.put(&["UA".into(), 1545.into(), 11.into()])?;
//! assert_eq!(flights.get(&["UA".into(), 1545.into()])?.expect("it was put")[2], Value::Int(11));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use sapwood_schema::{
    BATCH_ROWS, Batch, Cell, Civil, Column, ColumnPiece, DAY_SECONDS, DECIMAL_DIGITS_MAX, Data,
    Error, Inference, Missing, POWERS_OF_TEN, Precision, Projection, Result, RowCut, RowFormat,
    Scan, Schema, SchemaBuilder, Sink, SourceColumn, Strings, Type, Value, Vector, date_of_text,
    date_to_text, days_of, decimal_of_text, decimal_to_text, nearest, rescale, timestamp_of_text,
    timestamp_to_text,
};

//! Rows as Parquet and Arrow, and back.
//!
//! | kind of column | type in the file |
//! |---|---|
//! | truth values | `Boolean` |
//! | whole numbers of 8 to 64 bits | `Int8` to `Int64`, `UInt8` to `UInt64` |
//! | whole numbers of 128 bits | `Utf8`, in digits |
//! | floats | `Float32`, `Float64` |
//! | text | `Utf8` |
//! | bytes | `Binary` |
//!
//! `reading` has more types, of files that others wrote.

mod guard;
mod reading;
mod writing;

pub(crate) use guard::guarded;
pub(crate) use reading::ColumnFile;
pub(crate) use writing::ColumnWriter;

//! Rows: read from files, kept in tables, and opened again.
//!
//! | module | holds |
//! |---|---|
//! | `source` | a file or standard input, unpacked |
//! | `lines` | the lines on which records stand |
//! | `reader` | rows of CSV or JSON lines, one after another |
//! | `key_columns` | the columns of a key, and its bytes |
//! | `key_range` | bounds of keys |
//! | `encoding` | a row as the bytes of a value |
//! | `rows_table` | rows of a key in a table, of either engine |
//! | `kept` | rows in a directory, and how to read them |
//! | `loader` | a file into a table |
//! | `events` | rows of files as events of a roll-up, and what became of them |
//! | `open_input` | the rows that a command reads: of a file or of a directory |
//! | `exchange` | rows of tables in files of other programs, there and back |
//! | `frames` | files as sources of rows for statements |

pub(crate) mod encoding;
pub(crate) mod events;
pub(crate) mod exchange;
#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "statements over files are not a command yet")
)]
pub(crate) mod frames;
pub(crate) mod kept;
pub(crate) mod key_columns;
pub(crate) mod key_range;
pub(crate) mod lines;
pub(crate) mod loader;
pub(crate) mod open_input;
pub(crate) mod reader;
pub(crate) mod rows_table;
pub(crate) mod source;

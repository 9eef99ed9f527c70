//! Rows: read from files, kept in tables, and opened again.
//!
//! | module | holds |
//! |---|---|
//! | `source` | a file or standard input, unpacked |
//! | `lines` | the lines on which records stand |
//! | `columns` | the columns of rows, and their names |
//! | `key_columns` | the columns of a key, and its bytes |
//! | `key_range` | bounds of keys |
//! | `stored` | the rows of tables, as they are shown |
//! | `rows_table` | rows of a key in a table, of either engine |
//! | `kept` | rows in a directory, and how to read them |
//! | `typed_loader` | a file into a table of typed columns |
//! | `counts` | the rows of a file, counted by what became of them |
//! | `events` | rows of files as events of a roll-up, and what became of them |
//! | `open_input` | the rows that a command reads: of a file or of a directory |
//! | `exchange` | rows of tables in files of other programs, there and back |
//! | `statements` | what statements of SQL can name: files, and tables of directories |

pub(crate) mod columns;
pub(crate) mod counts;
pub(crate) mod events;
pub(crate) mod exchange;
pub(crate) mod kept;
pub(crate) mod key_columns;
pub(crate) mod key_range;
pub(crate) mod lines;
pub(crate) mod open_input;
pub(crate) mod rows_table;
pub(crate) mod source;
pub(crate) mod statements;
pub(crate) mod stored;
pub(crate) mod typed_loader;

//! The commands, a module each; the samples have a folder of their own.
//!
//! | module | command |
//! |---|---|
//! | `load` | `sapwood load` |
//! | `get`, `scan` | the row with a key; rows in order |
//! | `aggregate` | figures of rows |
//! | `ingest` | rows of files into a roll-up table |
//! | `query` | a native query over a roll-up table, or over rows that are rolled up |
//! | `sql` | statements over files and tables |
//! | `stats` | the costs of a table |
//! | `tables`, `describe` | the tables of a directory, and the columns of one |
//! | `put`, `remove` | a row into a table, and out of it |
//! | `compact` | disk space given back |
//! | `check` | whether files are what was written |
//! | `checkpoints` | the checkpoints of a directory |
//! | `inspect` | the log; the files, trees and heap of tree tables |
//! | `backup` | backups of a directory: taken, listed, restored |
//! | `repair` | what can be read of a damaged directory |
//! | `export`, `import` | a table into a file of another program's format, and back |
//! | `tail` | changes of tables, as the log has them |
//! | `serve` | a server for the Redis protocol |
//! | `shell` | commands to a server, or to a database in this process |
//! | `manual` | completions and manual pages |

pub(crate) mod aggregate;
pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod checkpoints;
pub(crate) mod compact;
pub(crate) mod describe;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod import;
pub(crate) mod ingest;
pub(crate) mod inspect;
pub(crate) mod load;
pub(crate) mod manual;
pub(crate) mod put;
pub(crate) mod query;
pub(crate) mod remove;
pub(crate) mod repair;
pub(crate) mod scan;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod sql;
pub(crate) mod stats;
pub(crate) mod tables;
pub(crate) mod tail;

//! The columns of rows.

use std::sync::Arc;

use sapwood::files::no_column;
use sapwood::schema::RowFormat;

/// The columns of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Columns {
    /// In the order of the header.
    Csv(Vec<String>),
    /// Each object may have others.
    Json,
    /// Entries of a table without a schema: the bytes of the key and of the value.
    Entries,
    /// Those of a table's schema.
    Typed(Arc<RowFormat>),
}

impl Columns {
    /// Where in a row a column stands; of JSON lines, which may have any, nowhere.
    pub(crate) fn find(&self, name: &str) -> Result<usize, String> {
        match self {
            Self::Csv(names) => {
                let index = names.iter().position(|column| column == name);
                index.ok_or_else(|| no_column(name, "the header", names.iter()))
            }
            Self::Json => Ok(0),
            Self::Entries => Err("entries that no file was loaded into have no columns".to_owned()),
            Self::Typed(format) => {
                let columns = format.schema().columns();
                let found = format.schema().find(name);
                let names = columns.iter().map(|column| &column.name);
                found.ok_or_else(|| no_column(name, "the table", names))
            }
        }
    }
}

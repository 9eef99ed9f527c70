//! The arguments of the commands that look at the tables of a directory, and change their rows.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Tables {
    /// A directory of a database
    pub(crate) directory: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Describe {
    /// A directory of a database
    pub(crate) directory: PathBuf,

    /// The table's name
    #[arg(default_value = "rows")]
    pub(crate) table: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Put {
    /// A directory of a database
    pub(crate) directory: PathBuf,

    /// The table's name
    #[arg(long, value_name = "NAME", default_value = "rows")]
    pub(crate) table: String,

    /// The values of the row; of a table without columns, a key and a value
    #[arg(required = true, value_name = "COLUMN=VALUE", allow_negative_numbers = true)]
    pub(crate) values: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    /// A directory of a database
    pub(crate) directory: PathBuf,

    /// The table's name
    #[arg(long, value_name = "NAME", default_value = "rows")]
    pub(crate) table: String,

    /// The value of each key column
    #[arg(required = true, allow_negative_numbers = true)]
    pub(crate) values: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Compact {
    /// A directory of a database
    pub(crate) directory: PathBuf,
}

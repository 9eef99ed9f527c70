//! Formats of files, by the ending of a name.

use std::path::Path;

use crate::error::{Error, Result};
use crate::packing::{Packing, ending};

/// The format of a file of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values below a header line; also with `;`, tab or `|`.
    Csv,
    /// An object of JSON on each line.
    Jsonl,
    /// Maps of MessagePack, one after the other.
    MessagePack,
    /// Apache Parquet: typed columns, packed.
    Parquet,
    /// Apache Arrow's file format: typed columns.
    Arrow,
}

impl Format {
    /// The format and the packing of a file to be written: those that its name tells, or the format that was `said`.
    ///
    /// # Errors
    /// The name tells no format, or packs a format that packs itself.
    ///
    /// ```
    /// use std::path::Path;
    /// use sapwood::files::{Format, Packing};
    ///
    /// let told = Format::of_name(Path::new("flights.csv.zst"), None);
    /// assert_eq!(told, Ok((Format::Csv, Packing::Zstd)));
    /// ```
    pub fn of_name(path: &Path, said: Option<Format>) -> Result<(Format, Packing)> {
        let packing = Packing::of_name(path);
        let Some(format) = said.or_else(|| Format::of_ending(&ending(path))) else {
            return Err(Error::Format(format!(
                "{} has a name that does not tell its format (.csv, .jsonl or .msgpack, also with .zst or .gz, \
                 .parquet or .arrow)",
                path.display()
            )));
        };
        if format.is_columnar() && packing != Packing::Plain {
            return Err(Error::Format(format!(
                "{}: {} files are packed inside: leave .zst or .gz away",
                path.display(),
                format.name()
            )));
        }
        Ok((format, packing))
    }

    fn of_ending(ending: &str) -> Option<Format> {
        match ending {
            "csv" => Some(Format::Csv),
            "jsonl" | "ndjson" | "json" => Some(Format::Jsonl),
            "msgpack" | "mpk" => Some(Format::MessagePack),
            "parquet" => Some(Format::Parquet),
            "arrow" | "feather" => Some(Format::Arrow),
            _ => None,
        }
    }

    /// The ending of its files.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Jsonl => "jsonl",
            Format::MessagePack => "msgpack",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
        }
    }

    /// True of formats that the feature `columnar` reads and writes: their columns say their types.
    pub fn is_columnar(self) -> bool {
        matches!(self, Format::Parquet | Format::Arrow)
    }
}

/// True of a name that tells a format which can be read.
pub(crate) fn is_of_rows(path: &Path) -> bool {
    let ending = ending(path);
    matches!(&ending[..], "tsv" | "arrows") || Format::of_ending(&ending).is_some()
}

/// The refusal of a build without the libraries of Parquet and Arrow.
#[cfg(not(feature = "columnar"))]
pub(crate) const NOT_BUILT: &str =
    "this program was built without Parquet and Arrow; next: build it with `--features columnar`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        for (name, expected) in [
            ("a.csv", Some((Format::Csv, Packing::Plain))),
            ("A.CSV.GZ", Some((Format::Csv, Packing::Gzip))),
            ("a.b.ndjson.zst", Some((Format::Jsonl, Packing::Zstd))),
            ("a.json", Some((Format::Jsonl, Packing::Plain))),
            ("a.msgpack.gz", Some((Format::MessagePack, Packing::Gzip))),
            ("a.parquet", Some((Format::Parquet, Packing::Plain))),
            ("a.feather", Some((Format::Arrow, Packing::Plain))),
            ("a.arrow.zst", None),
            ("a.txt", None),
            ("a", None),
            ("-", None),
        ] {
            assert_eq!(Format::of_name(Path::new(name), None).ok(), expected, "{name}");
        }
        let said = Format::of_name(Path::new("a.gz"), Some(Format::Csv));
        assert_eq!(said, Ok((Format::Csv, Packing::Gzip)));
    }
}

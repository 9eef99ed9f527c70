//! The formats of files, and how they are packed, by the ending of a name.

use std::path::Path;

use crate::args::exchange::FileFormat;
use crate::args::rows::Format;
use crate::rows::source::extension;
use crate::terminal::exit::{Failure, Outcome};

/// How the bytes of a file are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl FileFormat {
    /// The format of text, if it is one.
    pub(crate) fn as_text(self) -> Option<Format> {
        match self {
            FileFormat::Csv => Some(Format::Csv),
            FileFormat::Jsonl => Some(Format::Jsonl),
            FileFormat::Parquet | FileFormat::Arrow => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            FileFormat::Csv => "csv",
            FileFormat::Jsonl => "jsonl",
            FileFormat::Parquet => "parquet",
            FileFormat::Arrow => "arrow",
        }
    }

    fn of_ending(ending: &str) -> Option<Self> {
        match ending {
            "csv" => Some(FileFormat::Csv),
            "jsonl" | "ndjson" | "json" => Some(FileFormat::Jsonl),
            "parquet" => Some(FileFormat::Parquet),
            "arrow" | "feather" => Some(FileFormat::Arrow),
            _ => None,
        }
    }
}

/// The format and packing of a file: the format that was said, or the one that its name tells.
pub(crate) fn of_name(path: &Path, said: Option<FileFormat>) -> Outcome<(FileFormat, Packing)> {
    let packing = match extension(path).as_str() {
        "zst" => Packing::Zstd,
        "gz" => Packing::Gzip,
        _ => Packing::Plain,
    };
    let unpacked = match packing {
        Packing::Plain => path.to_owned(),
        Packing::Gzip | Packing::Zstd => path.with_extension(""),
    };
    let Some(format) = said.or_else(|| FileFormat::of_ending(&extension(&unpacked))) else {
        return Err(Failure::Usage(format!(
            "{} has a name that does not tell its format (.csv or .jsonl, also with .zst or .gz, \
             .parquet or .arrow): add --format",
            path.display()
        )));
    };
    if format.as_text().is_none() && packing != Packing::Plain {
        return Err(Failure::Usage(format!(
            "{}: {} files are packed inside: leave .zst or .gz away",
            path.display(),
            format.name()
        )));
    }
    Ok((format, packing))
}

/// Why a program without the libraries of Parquet and Arrow refuses their files.
#[cfg(not(feature = "columnar"))]
pub(crate) const NOT_BUILT: &str = "this program was built without Parquet and Arrow; next: \
    `cargo install --profile dist --features columnar --path crates/cli`";

/// The failure of a program without the libraries of a format.
#[cfg(not(feature = "columnar"))]
pub(crate) fn not_built(format: &str) -> Failure {
    Failure::Usage(format!("{format} cannot be read or written: {NOT_BUILT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        for (name, expected) in [
            ("a.csv", Some((FileFormat::Csv, Packing::Plain))),
            ("A.CSV.GZ", Some((FileFormat::Csv, Packing::Gzip))),
            ("a.b.ndjson.zst", Some((FileFormat::Jsonl, Packing::Zstd))),
            ("a.json", Some((FileFormat::Jsonl, Packing::Plain))),
            ("a.parquet", Some((FileFormat::Parquet, Packing::Plain))),
            ("a.feather", Some((FileFormat::Arrow, Packing::Plain))),
            ("a.arrow.zst", None),
            ("a.txt", None),
            ("a", None),
            ("-", None),
        ] {
            assert_eq!(of_name(Path::new(name), None).ok(), expected, "{name}");
        }
        let said = of_name(Path::new("a.gz"), Some(FileFormat::Csv));
        assert_eq!(said.ok(), Some((FileFormat::Csv, Packing::Gzip)));
    }
}

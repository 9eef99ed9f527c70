//! The integration tests of the command line, one binary. They run the built `sapwood`.

mod aggregate;
mod backups;
mod bad_input;
mod beside;
mod checkpoints;
mod delays;
mod entries;
mod examples;
mod exchange;
mod failed_loads;
mod files;
mod flights;
mod hash;
mod ingest;
mod inspect;
mod keyed_loads;
mod kills;
mod query;
mod sample;
mod serve;
mod sessions;
mod shell;
mod sql;
mod stops;
mod tail;
mod trees;
mod typed;

use std::path::PathBuf;

use assert_cmd::Command;

/// The built binary, with nothing of the tester's environment that changes what it prints.
fn sapwood(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("sapwood").expect("the binary of this package");
    command.args(args).env_remove("RUST_BACKTRACE").env("NO_COLOR", "1");
    command
}

/// Standard output of a run that must succeed.
fn stdout_of(args: &[&str]) -> String {
    let output = sapwood(args).assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("UTF-8")
}

/// The bundled data, as a file.
fn flights_path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/flights-2013.csv.zst"))
}

/// Its rows with their header, read without any of the code under test.
fn flight_rows() -> (csv::StringRecord, Vec<csv::StringRecord>) {
    let file = std::fs::File::open(flights_path()).expect("bundled");
    let unpacked = zstd::stream::read::Decoder::new(file).expect("zstd");
    let mut reader = csv::Reader::from_reader(unpacked);
    let header = reader.headers().expect("a header").clone();
    let rows = reader.records().map(|row| row.expect("good CSV")).collect();
    (header, rows)
}

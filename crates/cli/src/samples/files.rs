//! `sapwood sample files`: the files that examples of the help and of README name.

use std::fs::OpenOptions;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::ui::Ui;

use super::unpack::PACKED;

const STOPS: &str = "line,minute,waiting\nU6,485,10\nU6,492,4\nU7,480,37\n";

const EVENTS: &str =
    "{\"user\":\"ada\",\"time\":1}\n{\"user\":\"ada\",\"time\":1}\n{\"user\":\"bob\",\"time\":2}\n";

const SCHEMA: &str = r#"{
    "timestampSpec": {"column": "time_hour"},
    "dimensionsSpec": {"dimensions": ["carrier"]},
    "metricsSpec": [{"type": "count", "name": "flights"}]
}
"#;

const QUERY: &str = r#"{
    "queryType": "topN", "dimension": "carrier", "metric": "flights", "threshold": 3,
    "aggregations": [{"type": "longSum", "name": "flights", "fieldName": "flights"}]
}
"#;

/// Writes the files; those that are there stay.
pub(super) fn run(ui: &Ui) -> Outcome {
    for (name, bytes) in [
        ("flights.csv.zst", PACKED.to_vec()),
        ("stops.csv", STOPS.into()),
        ("events.jsonl", EVENTS.into()),
        ("rows.csv.gz", packed("id\n1\n2\n")),
        ("deltas.csv", "delta\n-5\n5\n".into()),
        ("schema.json", SCHEMA.into()),
        ("query.json", QUERY.into()),
        ("pieces.csv", "shop,pieces,euros\nnorth,3,0.5\n".into()),
        ("hits.jsonl.gz", packed("{\"key\":\"/\",\"value\":\"7\"}\n")),
    ] {
        let made = OpenOptions::new().write(true).create_new(true).open(name);
        let what = match made.and_then(|mut file| file.write_all(&bytes)) {
            Ok(()) => "is written",
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => "is there, and stays",
            Err(error) => {
                return Err(Failure::Failed(format!("{name} cannot be written: {error}")));
            }
        };
        ui.print(|out| writeln!(out, "{name} {what}"))?;
    }
    Ok(())
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(text.as_bytes());
    written.and_then(|()| encoder.finish()).expect("a vector takes everything")
}

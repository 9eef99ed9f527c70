//! Tables into files and back: `sapwood export` and `sapwood import`.

mod forms;
mod refusals;
mod round_trips;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use sapwood::{AnyTable, Db, HashTableOptions, OrderedTableOptions, TreeTableOptions};
use tempfile::TempDir;

use crate::{sapwood, stdout_of};

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

const ENGINES: [&str; 3] = ["ordered", "hash", "tree"];

/// Endings of files, each of another format or packing.
fn endings() -> Vec<&'static str> {
    let text = vec!["csv", "jsonl", "csv.gz", "jsonl.zst"];
    match cfg!(feature = "columnar") {
        true => [text, vec!["parquet", "arrow"]].concat(),
        false => text,
    }
}

/// A directory for files and databases.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Place(TempDir::new().expect("a directory for the test"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// A database with one table `t`, that declares fields or none.
    fn database(
        &self,
        name: &str,
        engine: &str,
        fields: Option<&str>,
        contents: &Contents,
    ) -> String {
        let path = self.path(name);
        let db = Db::open(&path).expect("new");
        let fields = fields.map(|fields| fields.parse().expect("fields"));
        let fields = fields.into_iter();
        let table: AnyTable = match engine {
            "ordered" => {
                let options = OrderedTableOptions::default();
                let options = fields.fold(options, OrderedTableOptions::fields);
                db.create_ordered_table("t", options).expect("made").into()
            }
            "hash" => {
                let options = fields.fold(HashTableOptions::default(), HashTableOptions::fields);
                db.create_hash_table("t", options).expect("made").into()
            }
            _ => {
                let options = fields.fold(TreeTableOptions::default(), TreeTableOptions::fields);
                db.create_tree_table("t", options).expect("made").into()
            }
        };
        for (key, value) in contents {
            table.put(key, value).expect("room");
        }
        drop(table);
        db.close().expect("written");
        path
    }
}

/// All entries of a table, and its engine.
fn contents(directory: &str, table: &str) -> (Contents, String) {
    let db = Db::open_read_only(Path::new(directory)).expect("a database");
    let table = db.table(table).expect("a table");
    let mut contents = Contents::new();
    let end = table.for_each(|key, value| {
        contents.insert(key.to_vec(), value.to_vec());
        ControlFlow::<()>::Continue(())
    });
    assert!(end.expect("read").is_continue());
    let engine = format!("{:?}", table.engine()).to_lowercase();
    (contents, engine)
}

/// Exports a table, and answers the notice on standard error.
fn export(directory: &str, table: &str, file: &str, more: &[&str]) -> String {
    let mut args = vec!["export", directory, table, "--to", file, "--overwrite"];
    args.extend(more);
    let output = sapwood(&args).assert().success();
    assert!(!Path::new(&format!("{file}.part")).exists());
    String::from_utf8_lossy(&output.get_output().stderr).into_owned()
}

fn import(directory: &str, table: &str, file: &str, more: &[&str]) -> String {
    let mut args = vec!["import", directory, table, file];
    args.extend(more);
    stdout_of(&args)
}

#[track_caller]
fn refused(args: &[&str], code: i32, message: &str) {
    let output = sapwood(args).assert().code(code);
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains(message), "{args:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

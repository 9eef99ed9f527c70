//! Directories that are open to be read.

use sapwood::{Cut, Db, Error, HashEngineError, RecordLayout};
use tempfile::TempDir;

use super::{directory, files_of, open, plain};

/// Two checkpoints, of which the older has 300 entries and the newer 200 more.
fn written() -> TempDir {
    let path = directory();
    let db = open(&path);
    let options = plain().page_bytes(4096).memory_budget(64 << 10);
    for layout in [RecordLayout::Variable, RecordLayout::Fixed8] {
        let name = format!("{layout:?}");
        let table = db.create_hash_table(&name, options.clone().layout(layout)).expect("free");
        for entries in [0..300_u64, 200..500] {
            for entry in entries {
                table.put(entry.to_be_bytes(), entry.to_le_bytes()).expect("put");
            }
            table.checkpoint(Cut::Incremental).expect("a checkpoint");
        }
    }
    path
}

#[test]
fn readers_share_a_directory_and_change_nothing_in_it() {
    let path = written();
    let before = files_of(path.path());
    let readers: Vec<Db> =
        (0..3).map(|_| Db::open_read_only(path.path()).expect("it is shared")).collect();
    for db in &readers {
        assert_eq!(db.table_names(), ["Fixed8", "Variable"]);
        for name in db.table_names() {
            let table = db.hash_table(&name).expect("it is there");
            for round in 0..2 {
                for entry in 0..500_u64 {
                    let value = table.get(entry.to_be_bytes());
                    assert_eq!(value, Ok(Some(entry.to_le_bytes().to_vec())), "{round}");
                }
            }
            assert_eq!(table.get(500_u64.to_be_bytes()), Ok(None));
            assert_eq!(table.len(), Ok(500));
            let mut seen = 0;
            let _ = table.scan_log(|_, _| {
                seen += 1;
                std::ops::ControlFlow::<()>::Continue(())
            });
            assert_eq!(seen, 500);
            assert_eq!(table.checkpoints().expect("a directory").len(), 2);
            table.check().expect("a sound table");
            drop(table);
            // With more memory, which is not remembered, or as it was.
            let more = db.hash_table_with(&name, {
                let layout =
                    if name == "Fixed8" { RecordLayout::Fixed8 } else { RecordLayout::Variable };
                plain().page_bytes(4096).layout(layout).memory_budget(1 << 20)
            });
            assert_eq!(more.expect("no thread has it").stats().budget_bytes, Some(1 << 20));
            let older = db.hash_table_at(&name, 1).expect("the older checkpoint");
            assert_eq!(older.len(), Ok(300));
        }
    }
    for db in readers {
        db.close().expect("there is nothing to keep");
    }
    assert_eq!(files_of(path.path()), before);
    let db = open(&path);
    let error = Db::open(path.path()).expect_err("a writer has it");
    assert!(matches!(error, Error::DirectoryInUse { .. }), "{error}");
    let table = db.hash_table("Fixed8").expect("it is there");
    assert_eq!((table.len(), table.checkpoints().map(|all| all.len())), (Ok(500), Ok(2)));
}

#[test]
fn what_is_open_to_be_read_refuses_every_change() {
    let path = written();
    let before = files_of(path.path());
    let db = Db::open_read_only(path.path()).expect("it is shared");
    for name in db.table_names() {
        let table = db.hash_table(&name).expect("it is there");
        let (old, new) = (7_u64.to_be_bytes(), 1000_u64.to_be_bytes());
        let tried = |what: &str| {
            let refused = match what {
                "put" => table.put(old, new).map(drop),
                "put new" => table.put(new, new).map(drop),
                "put_many" => table.put_many(&[(old, new), (new, new)]).map(drop),
                "put_if_absent" => table.put_if_absent(new, new).map(drop),
                "remove" => table.remove(old).map(drop),
                "update" => table.update(old, |value| value[0] += 1).map(drop),
                "update_many" => table.update_many(&[old], |_, value| value[0] += 1).map(drop),
                "compare_and_put" => table.compare_and_put(old, 7_u64.to_le_bytes(), new).map(drop),
                "add" => table.add(old, 1).map(drop),
                "add_many" => table.add_many(&[(old, 1), (new, 1)]).map(drop),
                "clear" => table.clear().map(drop),
                "compact" => table.compact(1.0).map(drop),
                "checkpoint" => table.checkpoint(Cut::Full).map(drop),
                _ => unreachable!(),
            };
            refused.expect_err(what)
        };
        for round in ["from the disk", "in memory"] {
            for what in [
                "put",
                "put new",
                "put_many",
                "put_if_absent",
                "remove",
                "update",
                "update_many",
                "compare_and_put",
                "add",
                "add_many",
                "clear",
                "compact",
                "checkpoint",
            ] {
                let error = tried(what);
                let cause = error.hash_engine();
                assert_eq!(cause, Some(&HashEngineError::ReadOnly), "{what} {round}: {error}");
                assert!(error.to_string().contains("`Db::open`"), "{error}");
            }
            assert_eq!(table.len(), Ok(500), "{round}");
            assert_eq!(table.get(old), Ok(Some(7_u64.to_le_bytes().to_vec())), "{round}");
        }
        assert_eq!(table.remove(new), Ok(false), "which changes nothing");
    }
    let is_refused = |error: Error| matches!(error, Error::ReadOnly { .. });
    assert!(is_refused(db.create_hash_table("new", plain()).expect_err("no table is made")));
    assert!(is_refused(db.drop_table("Fixed8").expect_err("no table is dropped")));
    assert!(is_refused(db.checkpoint().expect_err("nothing is written")));
    assert_eq!(db.table_names(), ["Fixed8", "Variable"]);
    drop(db);
    assert_eq!(files_of(path.path()), before);
    let missing = path.path().join("missing");
    Db::open_read_only(&missing).expect_err("it is not made");
    assert!(!missing.exists());
}

//! The statements of a thread, one by one, and the tables after them.
//!
//! A batch is [`LINES`] rows with one number, `v`, that statements change together: a statement in
//! part shows as a batch with fewer lines, or with two values.

use std::collections::BTreeMap;

use rand::RngExt as _;

/// Rows of a batch.
pub(super) const LINES: u64 = 60;
/// Batches of a table, beyond which statements remove.
const BATCHES_MAX: usize = 12;
/// Tables made of queries, beyond which they are dropped.
const COPIES_MAX: usize = 3;
/// Tables that last, and their engines.
const LASTING: [(&str, &str); 3] = [("first", "ordered"), ("second", "hash"), ("third", "tree")];

/// The tables of a thread, and the number of its statements so far.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) seed: u64,
    pub(super) thread: u64,
    done: u64,
    pub(super) tables: BTreeMap<String, Table>,
}

/// The rows of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// `v` of each batch.
    pub(super) batches: BTreeMap<i64, i64>,
    /// Columns that were added.
    pub(super) added: usize,
}

/// True for seeds without tree tables, which may lose power: the shim sees no stores to the mapped log of trees.
pub(super) fn is_without_trees(seed: u64) -> bool {
    !seed.is_multiple_of(2)
}

/// A statement.
#[derive(Debug, Clone)]
pub(super) enum Statement {
    Create {
        table: String,
        engine: &'static str,
    },
    Insert {
        table: String,
        batch: i64,
    },
    /// Brings a batch of another table under a number of its own.
    InsertFrom {
        table: String,
        from: String,
        old: i64,
        batch: i64,
    },
    Raise {
        table: String,
        batch: Option<i64>,
        by: i64,
    },
    /// Fails at one of its rows.
    Divide {
        table: String,
    },
    Delete {
        table: String,
        batch: i64,
    },
    Truncate {
        table: String,
    },
    CreateAs {
        table: String,
        from: String,
    },
    AddColumn {
        table: String,
        number: usize,
    },
    Drop {
        table: String,
    },
}

impl Model {
    pub(super) fn new(seed: u64, thread: u64) -> Model {
        Model { seed, thread, done: 0, tables: BTreeMap::new() }
    }

    /// True for tables of this thread.
    pub(super) fn owns(&self, table: &str) -> bool {
        table.starts_with(&format!("thread{}_", self.thread))
    }

    fn name(&self, rest: impl std::fmt::Display) -> String {
        format!("thread{}_{rest}", self.thread)
    }

    /// The statement that comes next.
    pub(super) fn next(&self) -> Statement {
        if let Some(&(name, engine)) = LASTING.get(self.done as usize) {
            let engine =
                if is_without_trees(self.seed) && engine == "tree" { "ordered" } else { engine };
            return Statement::Create { table: self.name(name), engine };
        }
        let mut rng = sapwood_testkit::rng(
            self.seed ^ (self.done + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ self.thread << 56,
        );
        let number = self.done as i64;
        let table = self.name(LASTING[rng.random_range(0..3)].0);
        let batches = &self.tables[&table].batches;
        let copies: Vec<&String> =
            self.tables.keys().filter(|name| name.contains("_copy")).collect();
        let batch = batches.keys().nth(rng.random_range(0..batches.len().max(1))).copied();
        match rng.random_range(0..20) {
            _ if batches.len() > BATCHES_MAX => match rng.random_range(0..8) {
                0 => Statement::Truncate { table },
                _ => Statement::Delete { table, batch: batch.expect("there are batches") },
            },
            0..=3 => {
                let from = self.name(LASTING[rng.random_range(0..3)].0);
                match self.tables[&from].batches.keys().next() {
                    Some(&old) => Statement::InsertFrom { table, from, old, batch: number },
                    None => Statement::Insert { table, batch: number },
                }
            }
            4..=6 => Statement::Insert { table, batch: number },
            7..=9 => Statement::Raise { table, batch: None, by: number },
            10..=11 => Statement::Raise { table, batch, by: -number },
            12 => Statement::Divide { table },
            13 => match batch {
                Some(batch) => Statement::Delete { table, batch },
                None => Statement::Insert { table, batch: number },
            },
            14 if !copies.is_empty() => {
                let table = copies[rng.random_range(0..copies.len())].clone();
                Statement::AddColumn { number: self.tables[&table].added, table }
            }
            _ if copies.len() > COPIES_MAX => {
                Statement::Drop { table: copies[rng.random_range(0..copies.len())].clone() }
            }
            _ => Statement::CreateAs { table: self.name(format!("copy{number}")), from: table },
        }
    }

    /// Changes the tables as the statement does, which comes next.
    pub(super) fn apply(&mut self, statement: &Statement) {
        self.done += 1;
        let tables = &mut self.tables;
        match statement {
            Statement::Create { table, .. } => {
                tables.insert(table.clone(), Table::default());
            }
            Statement::Insert { table, batch } => {
                at(tables, table).batches.insert(*batch, 0);
            }
            Statement::InsertFrom { table, from, old, batch } => {
                let v = at(tables, from).batches[old];
                at(tables, table).batches.insert(*batch, v);
            }
            Statement::Raise { table, batch, by } => {
                let batches = at(tables, table).batches.iter_mut();
                let raised =
                    batches.filter(|(number, _)| batch.is_none_or(|batch| batch == **number));
                raised.for_each(|(_, v)| *v += by);
            }
            Statement::Divide { .. } => {}
            Statement::Delete { table, batch } => {
                at(tables, table).batches.remove(batch);
            }
            Statement::Truncate { table } => at(tables, table).batches.clear(),
            Statement::CreateAs { table, from } => {
                let batches = at(tables, from).batches.clone();
                tables.insert(table.clone(), Table { batches, added: 0 });
            }
            Statement::AddColumn { table, .. } => at(tables, table).added += 1,
            Statement::Drop { table } => {
                tables.remove(table);
            }
        }
    }

    /// The first table that differs, in words.
    pub(super) fn difference(&self, found: &Model) -> String {
        let names = self.tables.keys().chain(found.tables.keys());
        for name in names {
            match (self.tables.get(name), found.tables.get(name)) {
                (Some(right), Some(found)) if right == found => {}
                (right, found) => return format!("{name} is {found:?}, not {right:?}"),
            }
        }
        "all are right".to_owned()
    }
}

fn at<'a>(tables: &'a mut BTreeMap<String, Table>, name: &str) -> &'a mut Table {
    tables.get_mut(name).expect("a table of the model")
}

impl Statement {
    /// An error is the answer where there are rows.
    pub(super) fn fails(&self, model: &Model) -> bool {
        match self {
            Statement::Divide { table } => !model.tables[table].batches.is_empty(),
            _ => false,
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Statement::Create { table, engine } => format!(
                "create table {table} (batch bigint, line bigint, v bigint, \
                 primary key (batch, line)) with (engine = '{engine}')"
            ),
            Statement::Insert { table, batch } => {
                let rows: Vec<String> =
                    (0..LINES).map(|line| format!("({batch}, {line}, 0)")).collect();
                format!("insert into {table} values {}", rows.join(", "))
            }
            Statement::InsertFrom { table, from, old, batch } => format!(
                "insert into {table} select {batch}, line, v from {from} where batch = {old}"
            ),
            Statement::Raise { table, batch: None, by } => {
                format!("update {table} set v = v + ({by})")
            }
            Statement::Raise { table, batch: Some(batch), by } => {
                format!("update {table} set v = v + ({by}) where batch = {batch}")
            }
            Statement::Divide { table } => {
                format!("update {table} set v = v / (line - {})", LINES - 7)
            }
            Statement::Delete { table, batch } => {
                format!("delete from {table} where batch = {batch}")
            }
            Statement::Truncate { table } => format!("truncate {table}"),
            Statement::CreateAs { table, from } => {
                format!("create table {table} as select batch, line, v from {from}")
            }
            Statement::AddColumn { table, number } => {
                format!("alter table {table} add column added{number} bigint")
            }
            Statement::Drop { table } => format!("drop table {table}"),
        }
    }
}

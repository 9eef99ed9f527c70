//! Systems that a program has open: ours in this process, peers in one of Python.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use sapwood::schema::{Type, Value};
use sapwood::sql::Outcome;
use sapwood::{Db, Rows};
use serde_json::json;

use super::rows::{KEY, RowKey};
use super::systems::{Answer, Answered, TABLE};
use crate::harness::*;

/// The column that is looked up, and the one that is changed.
const READ: &str = "distance";
const CHANGED: &str = "dep_delay";

/// A system that is open. Each call repeats its work until some time has passed.
pub(crate) trait Library {
    fn open(&mut self, path: &Path) -> Result;

    fn close(&mut self) -> Result;

    fn ask(&mut self, question: &str, least: Duration) -> Result<Answered>;

    fn get(&mut self, keys: &[RowKey], least: Duration) -> Result<Answered>;

    fn update(&mut self, keys: &[RowKey], turn: usize, least: Duration) -> Result<Answered>;
}

/// The number that a row's column becomes in a turn.
fn changed(number: usize, turn: usize) -> i64 {
    ((number + turn) % 100) as i64
}

fn found(rows: i64, sum: i64) -> Answer {
    let row = json!({ "rows": rows, "sum": sum });
    vec![row.as_object().expect("it is one").clone()]
}

#[derive(Default)]
pub(crate) struct OpenDb(Option<(Db, Rows)>);

impl OpenDb {
    fn opened(&self) -> Result<&(Db, Rows)> {
        self.0.as_ref().ok_or_else(|| "it is not open".into())
    }

    fn column(&self, name: &str) -> Result<usize> {
        let found = self.opened()?.1.schema().find(name);
        found.ok_or_else(|| format!("the rows have no {name}").into())
    }

    fn keys<'k>(&self, keys: &'k [RowKey]) -> Result<Vec<[Value<'k>; KEY.len()]>> {
        let hour: &Type = &self.opened()?.1.schema().columns()[self.column(KEY[0])?].kind;
        let values = keys.iter().map(|key| {
            Ok([
                Value::of_text(&key.hour, hour)?,
                Value::text(&key.carrier[..]),
                Value::from(key.flight),
            ])
        });
        values.collect()
    }
}

impl Library for OpenDb {
    fn open(&mut self, path: &Path) -> Result {
        let db = Db::open(path)?;
        let rows = db.rows(TABLE)?;
        self.0 = Some((db, rows));
        Ok(())
    }

    fn close(&mut self) -> Result {
        if let Some((db, rows)) = self.0.take() {
            drop(rows);
            db.close()?;
        }
        Ok(())
    }

    fn ask(&mut self, question: &str, least: Duration) -> Result<Answered> {
        let (db, _) = self.opened()?;
        let Repeated { times, elapsed, answer: outcome } =
            again(least, || Ok((1, db.sql(question)?)))?;
        let Outcome::Rows(answer) = outcome else { bail!("it is no question") };
        let rows = (0..answer.len()).map(|row| {
            let named = answer.columns().iter().zip(answer.row(row)?);
            Ok(named.map(|(column, value)| (column.name.clone(), as_json(&value))).collect())
        });
        Ok(Answered { times, elapsed, answer: rows.collect::<Result<_>>()? })
    }

    fn get(&mut self, keys: &[RowKey], least: Duration) -> Result<Answered> {
        let keys = self.keys(keys)?;
        let ((_, rows), column) = (self.opened()?, self.column(READ)?);
        let look_up = || {
            let (mut count, mut sum) = (0, 0);
            for key in &keys {
                let value = rows.get_with(key, |row| row.get(column).map(Value::into_owned))?;
                if let Some(value) = value.transpose()? {
                    count += 1;
                    if let Value::Int(value) = value {
                        sum += value as i64;
                    }
                }
            }
            Ok((keys.len(), found(count, sum)))
        };
        again(least, look_up)
    }

    fn update(&mut self, keys: &[RowKey], turn: usize, least: Duration) -> Result<Answered> {
        let keys = self.keys(keys)?;
        let ((_, rows), column) = (self.opened()?, self.column(CHANGED)?);
        let change = || {
            for (number, key) in keys.iter().enumerate() {
                if !rows.update_column(key, column, &Value::from(changed(number, turn)))? {
                    bail!("a row is not there");
                }
            }
            Ok((keys.len(), Answer::new()))
        };
        again(least, change)
    }
}

fn as_json(value: &Value<'_>) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Int(number) => match i64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => (*number as f64).into(),
        },
        Value::Float(number) => (*number).into(),
        other => other.to_string().into(),
    }
}

pub(crate) struct PythonLibrary {
    name: &'static str,
    program: Rc<RefCell<Process>>,
    key: String,
}

impl PythonLibrary {
    pub(crate) fn new(name: &'static str, program: &Rc<RefCell<Process>>) -> PythonLibrary {
        let key = KEY.map(|column| format!("{column} = ?")).join(" and ");
        PythonLibrary { name, program: Rc::clone(program), key }
    }

    fn tell(&self, mut command: serde_json::Value) -> Result<serde_json::Value> {
        command["engine"] = self.name.into();
        self.program.borrow_mut().ask(command)
    }
}

/// Keys in the order of their columns; moments as the file has them.
fn words(keys: &[RowKey]) -> Vec<(&str, &str, i64)> {
    keys.iter().map(|key| (&key.hour[..], &key.carrier[..], key.flight)).collect()
}

impl Library for PythonLibrary {
    fn open(&mut self, path: &Path) -> Result {
        self.tell(json!({ "do": "open", "path": path })).map(drop)
    }

    fn close(&mut self) -> Result {
        self.tell(json!({ "do": "close" })).map(drop)
    }

    fn ask(&mut self, question: &str, least: Duration) -> Result<Answered> {
        let least = least.as_nanos() as u64;
        let answer = self.tell(json!({ "do": "ask", "question": question, "least_ns": least }))?;
        let rows = serde_json::from_value(answer["rows"].clone())?;
        let times = number(&answer, "times")? as usize;
        Ok(Answered { times, elapsed: elapsed_of(&answer)?, answer: rows })
    }

    fn get(&mut self, keys: &[RowKey], least: Duration) -> Result<Answered> {
        let question = format!("select {READ} from {TABLE} where {}", self.key);
        let answer = self.tell(json!({
            "do": "get", "question": question, "keys": words(keys), "least_ns": least.as_nanos() as u64,
        }))?;
        let (rows, sum) = (number(&answer, "rows")?, number(&answer, "sum")?);
        let times = number(&answer, "times")? as usize;
        Ok(Answered { times, elapsed: elapsed_of(&answer)?, answer: found(rows, sum) })
    }

    fn update(&mut self, keys: &[RowKey], turn: usize, least: Duration) -> Result<Answered> {
        let question = format!("update {TABLE} set {CHANGED} = ? where {}", self.key);
        let keys = words(keys);
        let numbers: Vec<i64> = (0..keys.len()).map(|number| changed(number, turn)).collect();
        let answer = self.tell(json!({
            "do": "update", "question": question, "keys": keys, "numbers": numbers,
            "least_ns": least.as_nanos() as u64,
        }))?;
        let times = number(&answer, "times")? as usize;
        Ok(Answered { times, elapsed: elapsed_of(&answer)?, answer: Answer::new() })
    }
}

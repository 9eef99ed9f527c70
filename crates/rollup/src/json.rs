//! Documents: schemas, filters and queries as JSON, whose every field is known or refused by name.

use serde_json::{Map, Value as Json};

use crate::error::Error;
use crate::value::Value;

/// An object whose fields are taken one by one; what is left at the end is unknown.
#[derive(Debug)]
pub(crate) struct Object {
    path: String,
    fields: Map<String, Json>,
    make: fn(String) -> Error,
}

type Result<T> = std::result::Result<T, Error>;

impl Object {
    /// The document, or a part of it that lies at `path`.
    pub(crate) fn new(path: &str, json: Json, make: fn(String) -> Error) -> Result<Object> {
        match json {
            Json::Object(fields) => Ok(Object { path: path.to_owned(), fields, make }),
            other => Err(make(format!("`{path}` is {}, not an object", kind(&other)))),
        }
    }

    pub(crate) fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(crate) fn refused(&self, name: &str, why: &str) -> Error {
        (self.make)(format!("`{}` {why}", self.at(name)))
    }

    /// What went wrong with a field, told with its place.
    pub(crate) fn placed<T>(&self, name: &str, found: Result<T>) -> Result<T> {
        found.map_err(|error| self.refused(name, &format!("cannot be: {error}")))
    }

    /// A field; none if it is absent or null.
    pub(crate) fn take(&mut self, name: &str) -> Option<Json> {
        self.fields.remove(name).filter(|json| !json.is_null())
    }

    /// Whether a field is there, null or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    fn required<T>(&self, name: &str, found: Option<T>) -> Result<T> {
        found.ok_or_else(|| self.refused(name, "is missing"))
    }

    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.refused(name, &format!("is {}, not a text", kind(&other)))),
        }
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<String> {
        let found = self.optional_text(name)?;
        self.required(name, found)
    }

    pub(crate) fn flag(&mut self, name: &str, default: bool) -> Result<bool> {
        match self.take(name) {
            None => Ok(default),
            Some(Json::Bool(flag)) => Ok(flag),
            Some(other) => {
                Err(self.refused(name, &format!("is {}, not true or false", kind(&other))))
            }
        }
    }

    pub(crate) fn optional_count(&mut self, name: &str) -> Result<Option<u64>> {
        match self.take(name) {
            None => Ok(None),
            Some(json) => match json.as_u64() {
                Some(count) => Ok(Some(count)),
                None => Err(self.refused(name, &format!("is {json}, not a whole number from 0"))),
            },
        }
    }

    pub(crate) fn optional_double(&mut self, name: &str) -> Result<Option<f64>> {
        match self.take(name) {
            None => Ok(None),
            Some(json) => match json.as_f64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.refused(name, &format!("is {}, not a number", kind(&json)))),
            },
        }
    }

    pub(crate) fn optional_list(&mut self, name: &str) -> Result<Option<Vec<Json>>> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Array(list)) => Ok(Some(list)),
            Some(other) => Err(self.refused(name, &format!("is {}, not a list", kind(&other)))),
        }
    }

    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<Json>> {
        let found = self.optional_list(name)?;
        self.required(name, found)
    }

    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>> {
        let list = self.optional_list(name)?.unwrap_or_default();
        let text = |json| match json {
            Json::String(text) => Ok(text),
            other => Err(self.refused(name, &format!("has {}, not a text", kind(&other)))),
        };
        list.into_iter().map(text).collect()
    }

    pub(crate) fn optional_object(&mut self, name: &str) -> Result<Option<Object>> {
        let path = self.at(name);
        self.take(name).map(|json| Object::new(&path, json, self.make)).transpose()
    }

    pub(crate) fn object(&mut self, name: &str) -> Result<Object> {
        let found = self.optional_object(name)?;
        self.required(name, found)
    }

    /// The objects of a list, each with its place.
    pub(crate) fn objects(&mut self, name: &str) -> Result<Vec<Object>> {
        let list = self.optional_list(name)?.unwrap_or_default();
        let (path, make) = (self.at(name), self.make);
        let each = list.into_iter().enumerate();
        each.map(|(at, json)| Object::new(&format!("{path}[{at}]"), json, make)).collect()
    }

    /// A value as rows have it.
    pub(crate) fn value(&mut self, name: &str) -> Result<Value<'static>> {
        match self.take(name) {
            None => Ok(Value::Null),
            Some(json) => self.value_of(name, json),
        }
    }

    pub(crate) fn value_of(&self, name: &str, json: Json) -> Result<Value<'static>> {
        serde_json::from_value(json)
            .map_err(|_| self.refused(name, "is an object, not null, a number, a text or a list"))
    }

    /// Fields that say nothing here, and are known to be without harm.
    pub(crate) fn ignore(&mut self, names: &[&str]) {
        names.iter().for_each(|name| drop(self.fields.remove(*name)));
    }

    /// Refuses what was not taken.
    pub(crate) fn end(self) -> Result<()> {
        let left: Vec<_> = self.fields.keys().map(|name| format!("`{}`", self.at(name))).collect();
        match left.is_empty() {
            true => Ok(()),
            false => Err((self.make)(format!(
                "{} {} not known here: correct the name, or leave it out",
                left.join(", "),
                if left.len() == 1 { "is" } else { "are" },
            ))),
        }
    }
}

fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a truth value",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

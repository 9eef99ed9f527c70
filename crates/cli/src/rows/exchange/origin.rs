//! What a file of typed columns says of the table that it came from.
//!
//! It stands in the metadata of the file's schema, as a JSON object under the name `sapwood`. Text
//! has no place for it: there the command that reads the file says it.

use sapwood::Engine;
use sapwood::aggregate::Layout;
use serde_json::{Value, json};

use crate::args::rows::EngineName;
use crate::rows::columns::Columns;
use crate::rows::exchange::form::{Cells, Form};
use crate::rows::kept::Description;

/// The name of the metadata.
pub(crate) const METADATA: &str = "sapwood";

/// A table, as a file tells of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Origin {
    pub(crate) engine: EngineName,
    /// The form of the rows, by its name.
    form: String,
    /// The columns of the file that was loaded into the table, if one was.
    pub(crate) description: Option<Description>,
    /// The fields that the table declares, if it does.
    pub(crate) layout: Option<Layout>,
    /// The text that a missing value of each column stands for.
    absent: Vec<String>,
}

impl Origin {
    pub(crate) fn new(
        engine: Engine,
        form: &Form,
        description: &Description,
        layout: Option<&Layout>,
    ) -> Self {
        let engine = match engine {
            Engine::Hash => EngineName::Hash,
            Engine::Tree => EngineName::Tree,
            _ => EngineName::Ordered,
        };
        let is_loaded = description.columns != Columns::Entries;
        let absent = match form {
            Form::Cells(cells) => cells.absent.clone(),
            _ => Vec::new(),
        };
        Self {
            engine,
            form: form.name().to_owned(),
            description: is_loaded.then(|| description.clone()),
            layout: layout.cloned(),
            absent,
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let engine = match self.engine {
            EngineName::Ordered => "ordered",
            EngineName::Hash => "hash",
            EngineName::Tree => "tree",
        };
        let layout = self.layout.as_ref().map(ToString::to_string);
        json!({
            "version": 1,
            "engine": engine,
            "form": self.form,
            "loaded": self.description.as_ref().map(Description::as_json),
            "layout": layout,
            "absent": self.absent,
        })
        .to_string()
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let object: Value = serde_json::from_str(text).ok()?;
        if object.get("version")?.as_u64()? != 1 {
            return None;
        }
        let engine = match object.get("engine")?.as_str()? {
            "ordered" => EngineName::Ordered,
            "hash" => EngineName::Hash,
            "tree" => EngineName::Tree,
            _ => return None,
        };
        let description = match object.get("loaded")? {
            Value::Null => None,
            loaded => Some(Description::from_json(loaded)?),
        };
        let layout = match object.get("layout")? {
            Value::Null => None,
            Value::String(text) => Some(text.parse().ok()?),
            _ => return None,
        };
        let absent = object.get("absent")?.as_array()?.iter();
        Some(Self {
            engine,
            form: object.get("form")?.as_str()?.to_owned(),
            description,
            layout,
            absent: absent.map(|text| text.as_str().map(str::to_owned)).collect::<Option<_>>()?,
        })
    }

    /// The form of the rows; none if the parts do not fit each other.
    pub(crate) fn form(&self) -> Option<Form> {
        let entries = Form::entries();
        if self.form == entries.name() {
            return Some(entries);
        }
        match (&self.description, &self.layout) {
            (Some(Description { columns: Columns::Csv(names), keys }), _) => {
                let Form::Cells(cells) = Form::cells(names, keys.clone()) else { return None };
                let fits = self.absent.len() == names.len() && self.form == "columns";
                fits.then(|| Form::Cells(Cells { absent: self.absent.clone(), ..cells }))
            }
            (None, Some(layout)) => Form::fields(layout).filter(|form| form.name() == self.form),
            _ => None,
        }
    }
}

//! A file of text whose columns have the types that its first rows have, until a value says otherwise.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use sapwood_schema::Type;

use crate::blocks::Blocks;
use crate::cuts::Cuts;
use crate::field::Reading;
use crate::input::Input;
use crate::looks::{Look, Typed};
use crate::options::{Malformed, ReadOptions};
use crate::words::quoted;

/// A file of text, and what is known of its columns.
pub(crate) struct TextFile {
    pub(crate) input: Input,
    pub(crate) options: ReadOptions,
    pub(crate) known: Known,
    pub(crate) typed: Typed,
    left_out: Mutex<LeftOut>,
    widening: Mutex<Option<Widening>>,
}

/// The records that were left out of the last scan.
#[derive(Debug, Default)]
struct LeftOut {
    count: u64,
    /// The first ones, by line and by number, and why.
    first: BTreeMap<(u64, u64), String>,
}

/// The columns that were seen, and their values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) names: Vec<String>,
    pub(crate) looks: Vec<Look>,
    /// What is to be said of the names.
    pub(crate) notices: Vec<String>,
}

/// Why types are too narrow.
#[derive(Debug, Clone)]
pub(crate) struct Widening {
    /// A column with a value that its type lacks; none if a column is missing.
    pub(crate) column: Option<usize>,
    /// The columns that the scan had.
    pub(crate) columns: Vec<usize>,
}

impl TextFile {
    pub(crate) fn new(input: Input, options: ReadOptions, known: Known) -> Result<Self, String> {
        let mut typed = Typed::of(&known.names, &known.looks, &options)
            .map_err(|what| format!("{}: {what}", input.name))?;
        typed.notices.splice(0..0, known.notices.iter().cloned());
        let widening = Mutex::new(None);
        Ok(TextFile { input, options, known, typed, left_out: Mutex::default(), widening })
    }

    /// The facts known of each column, by its name.
    pub(crate) fn looks(&self) -> impl Iterator<Item = (&String, &Look)> {
        self.known.names.iter().zip(&self.known.looks)
    }

    /// Replaces the types found in this file by those given, by the names of columns.
    pub(crate) fn with_looks(mut self, looks: &HashMap<String, Look>) -> Result<Self, String> {
        for (name, look) in self.known.names.iter().zip(&mut self.known.looks) {
            if let Some(known) = looks.get(name) {
                *look = *known;
            }
        }
        TextFile::new(self.input, self.options, self.known)
    }

    /// The blocks of the file, from its beginning.
    pub(crate) fn blocks(
        input: &Input,
        options: &ReadOptions,
        cuts: Cuts,
    ) -> Result<Blocks, String> {
        let reader = input.reader().map_err(|error| input.unread(&error))?;
        Ok(Blocks::new(reader, cuts, options.block_bytes))
    }

    /// How the fields of a column are read.
    pub(crate) fn reading(&self, column: usize) -> Reading<'_> {
        Reading {
            kind: self.kind(column),
            look: (!self.typed.is_said[column]).then(|| &self.known.looks[column]),
            missing: self.typed.missing.as_deref().map(str::as_bytes),
            is_key: self.options.key.contains(&self.known.names[column]),
        }
    }

    pub(crate) fn kind(&self, column: usize) -> &Type {
        &self.typed.columns[column].kind
    }

    /// Whether records that are none are left out.
    pub(crate) fn leaves_out(&self) -> bool {
        self.options.malformed == Malformed::Skip
    }

    /// Leaves out a record.
    pub(crate) fn leave_out(&self, line: u64, what: String) {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let number = left_out.count;
        left_out.count += 1;
        left_out.first.insert((line, number), what);
        if left_out.first.len() > self.options.notes_max {
            left_out.first.pop_last();
        }
    }

    /// Forgets what an earlier scan left out.
    pub(crate) fn begin(&self) {
        *self.left_out.lock().unwrap_or_else(PoisonError::into_inner) = LeftOut::default();
    }

    /// How many records are left out, and the first of them with their lines.
    pub(crate) fn left_out(&self) -> (u64, Vec<(u64, String)>) {
        let left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let first = left_out.first.iter().map(|((line, _), what)| (*line, what.clone()));
        (left_out.count, first.collect())
    }

    /// An error on a line.
    pub(crate) fn at_line(&self, line: u64, what: impl std::fmt::Display) -> String {
        format!("{}, line {line}: {what}", self.input.name)
    }

    /// The error of a value that is none of its column's type. A type that was found may be widened then.
    pub(crate) fn misfit(&self, column: usize, text: &str, line: u64, scanned: &[usize]) -> String {
        let (name, kind) = (quoted(&self.known.names[column]), self.kind(column));
        if self.typed.is_said[column] {
            let what = self.unlike(column, text);
            let what =
                format!("{what}; give the column another type, as text, or correct the value");
            return self.at_line(line, what);
        }
        self.widen(Widening { column: Some(column), columns: scanned.to_vec() });
        let what = format!(
            "{} in column {name} is no {kind}, the type of the rows before it; opened again, the \
             file has a wider one",
            quoted(text)
        );
        self.at_line(line, what)
    }

    /// A value is none of its column's type.
    pub(crate) fn unlike(&self, column: usize, text: &str) -> String {
        let (name, kind) = (quoted(&self.known.names[column]), self.kind(column));
        format!("{} in column {name} is no {kind}", quoted(text))
    }

    /// Notes that opening the file again finds more; the first reason stays.
    pub(crate) fn widen(&self, widening: Widening) {
        self.widening.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(widening);
    }

    pub(crate) fn widening(&self) -> Option<Widening> {
        self.widening.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The file with what all its rows say. A type that a value did not fit, and that all rows have nonetheless, is
    /// text: its range is too small, as that of `timestamp(ns)`.
    pub(crate) fn widened(&self, known: Known) -> Result<TextFile, String> {
        let mut wider = TextFile::new(self.input.clone(), self.options.clone(), known)?;
        if let Some(column) = self.widening().and_then(|widening| widening.column) {
            let is_same = wider.kind(column) == self.kind(column)
                && wider.typed.missing == self.typed.missing;
            if is_same {
                wider.known.looks[column].text();
                wider = TextFile::new(wider.input, wider.options, wider.known)?;
            }
        }
        Ok(wider)
    }
}

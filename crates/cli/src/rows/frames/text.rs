//! A file of text whose columns have the types that its first rows have, until a value says otherwise.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use sapwood::schema::Type;

use super::blocks::Blocks;
use super::cuts::Cuts;
use super::field::Reading;
use super::input::Input;
use super::looks::{Look, Typed};
use super::options::{FrameOptions, Malformed};
use crate::terminal::format::quoted;

/// A file of text, and what is known of its columns.
pub(super) struct TextFile {
    pub(super) input: Input,
    pub(super) options: FrameOptions,
    pub(super) known: Known,
    pub(super) typed: Typed,
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
pub(super) struct Known {
    pub(super) names: Vec<String>,
    pub(super) looks: Vec<Look>,
    /// What is to be said of the names.
    pub(super) notices: Vec<String>,
}

/// Why types are too narrow.
#[derive(Debug, Clone)]
pub(super) struct Widening {
    /// A column with a value that its type lacks; none if a column is missing.
    pub(super) column: Option<usize>,
    /// The columns that the scan had.
    pub(super) columns: Vec<usize>,
}

impl TextFile {
    pub(super) fn new(input: Input, options: FrameOptions, known: Known) -> Result<Self, String> {
        let mut typed = Typed::of(&known.names, &known.looks, &options)
            .map_err(|what| format!("{}: {what}", input.name))?;
        typed.notices.splice(0..0, known.notices.iter().cloned());
        let widening = Mutex::new(None);
        Ok(TextFile { input, options, known, typed, left_out: Mutex::default(), widening })
    }

    /// The facts known of each column, by its name.
    pub(super) fn looks(&self) -> impl Iterator<Item = (&String, &Look)> {
        self.known.names.iter().zip(&self.known.looks)
    }

    /// Replaces the types found in this file by those given, by the names of columns.
    pub(super) fn with_looks(mut self, looks: &HashMap<String, Look>) -> Result<Self, String> {
        for (name, look) in self.known.names.iter().zip(&mut self.known.looks) {
            if let Some(known) = looks.get(name) {
                *look = *known;
            }
        }
        TextFile::new(self.input, self.options, self.known)
    }

    /// The blocks of the file, from its beginning.
    pub(super) fn blocks(
        input: &Input,
        options: &FrameOptions,
        cuts: Cuts,
    ) -> Result<Blocks, String> {
        let reader = input.reader().map_err(|error| input.unread(&error))?;
        Ok(Blocks::new(reader, cuts, options.block_bytes))
    }

    /// How the fields of a column are read.
    pub(super) fn reading(&self, column: usize) -> Reading<'_> {
        Reading {
            kind: self.kind(column),
            look: (!self.typed.is_said[column]).then(|| &self.known.looks[column]),
            missing: self.typed.missing.as_deref().map(str::as_bytes),
            is_key: self.options.key.contains(&self.known.names[column]),
        }
    }

    pub(super) fn kind(&self, column: usize) -> &Type {
        &self.typed.columns[column].kind
    }

    /// Whether records that are none are left out.
    pub(super) fn leaves_out(&self) -> bool {
        self.options.malformed == Malformed::Skip
    }

    /// Leaves out a record.
    pub(super) fn leave_out(&self, line: u64, what: String) {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let number = left_out.count;
        left_out.count += 1;
        left_out.first.insert((line, number), what);
        if left_out.first.len() > self.options.notes_max {
            left_out.first.pop_last();
        }
    }

    /// Forgets what an earlier scan left out.
    pub(super) fn begin(&self) {
        *self.left_out.lock().unwrap_or_else(PoisonError::into_inner) = LeftOut::default();
    }

    /// How many records are left out, and the first of them with their lines.
    pub(super) fn left_out(&self) -> (u64, Vec<(u64, String)>) {
        let left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let first = left_out.first.iter().map(|((line, _), what)| (*line, what.clone()));
        (left_out.count, first.collect())
    }

    /// An error on a line.
    pub(super) fn at_line(&self, line: u64, what: impl std::fmt::Display) -> String {
        format!("{}, line {line}: {what}", self.input.name)
    }

    /// The error of a value that is none of its column's type. A type that was found may be widened then.
    pub(super) fn misfit(&self, column: usize, text: &str, line: u64, scanned: &[usize]) -> String {
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
    pub(super) fn unlike(&self, column: usize, text: &str) -> String {
        let (name, kind) = (quoted(&self.known.names[column]), self.kind(column));
        format!("{} in column {name} is no {kind}", quoted(text))
    }

    /// Notes that opening the file again finds more; the first reason stays.
    pub(super) fn widen(&self, widening: Widening) {
        self.widening.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(widening);
    }

    pub(super) fn widening(&self) -> Option<Widening> {
        self.widening.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The file with what all its rows say. A type that a value did not fit, and that all rows have nonetheless, is
    /// text: its range is too small, as that of `timestamp(ns)`.
    pub(super) fn widened(&self, known: Known) -> Result<TextFile, String> {
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

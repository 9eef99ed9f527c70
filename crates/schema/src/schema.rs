//! The columns of a table: their names, types and order, and the key.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result, Type};

/// Columns that a schema has at most.
pub(crate) const COLUMNS_MAX: usize = 16_384;

/// Versions that a schema has at most: rows say theirs in seven bits.
pub(crate) const VERSIONS_MAX: u8 = 127;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// What questions call it.
    pub name: String,
    /// The type of its values.
    pub kind: Type,
    /// Whether a row may have no value for it.
    pub nullable: bool,
    /// The version of the schema from which on rows have it, from 1.
    pub since: u8,
    /// Narrower types that it had, each until a version: rows of versions before that have values of it.
    pub was: Vec<(Type, u8)>,
}

impl Column {
    fn new(name: impl Into<String>, kind: Type, nullable: bool, since: u8) -> Column {
        Column { name: name.into(), kind, nullable, since, was: Vec::new() }
    }

    /// The type of its values in rows of a version.
    pub fn kind_at(&self, version: u8) -> &Type {
        let narrower = self.was.iter().find(|(_, until)| version < *until);
        narrower.map_or(&self.kind, |(kind, _)| kind)
    }
}

/// The typed columns of a table, and its key.
///
/// # Text form
///
/// Columns stand between commas: a name, a colon and a [`Type`], behind which `?` says that values may be
/// missing. Names with other signs than letters, digits and `_` stand in double quotes. `key(...)` behind
/// them names the columns of the key; `#` there, as the last one, stands for a number that each row gets when
/// it is put, so that rows may be equal in all columns. Without `key` that number alone is the key.
///
/// Columns that came later say since which version: `fare:f64? since 2`. They are nullable. Columns that became wider say
/// what they were: `delay:i32? was i16 until 2`.
///
/// ```
/// use sapwood::schema::Schema;
///
/// let schema: Schema = "carrier:text, flight:u16, day:date, delay:i16?, key(carrier, flight, day)".parse()?;
/// assert_eq!(schema.key_columns(), [0, 1, 2]);
/// assert!(!schema.is_numbered());
/// let wider = schema.with_column("fare", "f64".parse()?)?;
/// assert_eq!(wider.version(), 2);
/// assert_eq!(
///     wider.to_string(),
///     "carrier:text, flight:u16, day:date, delay:i16?, fare:f64? since 2, key(carrier, flight, day)"
/// );
/// let wider = schema.with_wider("delay", "i32".parse()?)?;
/// assert_eq!(
///     wider.to_string(),
///     "carrier:text, flight:u16, day:date, delay:i32? was i16 until 2, key(carrier, flight, day)"
/// );
/// # Ok::<(), sapwood::schema::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    columns: Vec<Column>,
    key: Vec<usize>,
    is_numbered: bool,
}

/// Puts a [`Schema`] together.
///
/// ```
/// use sapwood::schema::{Schema, Type};
///
/// let schema = Schema::builder()
///     .column("sensor", Type::UInt(32))
///     .column("at", "timestamp(ms)".parse()?)
///     .nullable("celsius", Type::F32)
///     .key(["sensor", "at"])
///     .build()?;
/// assert_eq!(schema.to_string(), "sensor:u32, at:timestamp(ms), celsius:f32?, key(sensor, at)");
/// # Ok::<(), sapwood::schema::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "`build` makes the schema"]
pub struct SchemaBuilder {
    columns: Vec<Column>,
    key: Vec<String>,
    is_numbered: bool,
}

impl SchemaBuilder {
    /// A column that every row has a value for.
    pub fn column(mut self, name: impl Into<String>, kind: Type) -> Self {
        self.columns.push(Column::new(name, kind, false, 1));
        self
    }

    /// A column whose value may be missing.
    pub fn nullable(mut self, name: impl Into<String>, kind: Type) -> Self {
        self.columns.push(Column::new(name, kind, true, 1));
        self
    }

    /// The columns that make the key, in the order in which rows are to sort. Without them, and without
    /// [`numbered`](Self::numbered), each row gets a number as its key.
    pub fn key<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.key = names.into_iter().map(Into::into).collect();
        self
    }

    /// A number behind the columns of the key, so that rows may share these.
    pub fn numbered(mut self) -> Self {
        self.is_numbered = true;
        self
    }

    /// The schema.
    ///
    /// # Errors
    /// [`Error::Schema`] if two columns share a name, a name is empty, a type cannot be stored, or the key
    /// names a column that is not there, twice, or of a type that has no order (arrays).
    pub fn build(self) -> Result<Schema> {
        let mut key = Vec::with_capacity(self.key.len());
        for name in &self.key {
            let found = self.columns.iter().position(|column| column.name == *name);
            key.push(found.ok_or_else(|| {
                Error::Schema(format!("the key names `{name}`, and no column is called so"))
            })?);
        }
        let is_numbered = self.is_numbered || key.is_empty();
        Schema { columns: self.columns, key, is_numbered }.checked()
    }
}

impl Schema {
    /// To put one together.
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder::default()
    }

    /// All columns, in their order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The number of the column with a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The numbers of the columns that make the key, in its order.
    pub fn key_columns(&self) -> &[usize] {
        &self.key
    }

    /// Whether a number stands behind the columns of the key.
    pub fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    /// The version: 1, and one more for each time that columns were added or became wider.
    pub fn version(&self) -> u8 {
        let versions = self.columns.iter().flat_map(|column| {
            std::iter::once(column.since).chain(column.was.iter().map(|(_, until)| *until))
        });
        versions.max().unwrap_or(1)
    }

    /// The schema with a nullable column more, in a version of its own. Rows that are there have no value for
    /// it, and are not written again.
    ///
    /// # Errors
    /// As of [`SchemaBuilder::build`], and where there are 127 versions already.
    pub fn with_column(&self, name: impl Into<String>, kind: Type) -> Result<Schema> {
        let since = self.version() + 1;
        let mut wider = self.clone();
        wider.columns.push(Column::new(name, kind, true, since));
        wider.checked()
    }

    /// The schema with a wider type for a column that is not in the key, in a version of its own: one that has all
    /// values of the type before ([`Type::widens_to`]). Rows that are there keep their bytes, and are read as they
    /// are.
    ///
    /// # Errors
    /// [`Error::Schema`] if there is no such column, it is in the key, or the type is not wider; and where there are
    /// 127 versions already.
    pub fn with_wider(&self, name: &str, kind: Type) -> Result<Schema> {
        let refuse = |what: String| Err(Error::Schema(what));
        let Some(column) = self.find(name) else {
            return refuse(format!("no column is called `{name}`"));
        };
        let before = &self.columns[column].kind;
        if !before.widens_to(&kind) {
            return refuse(format!(
                "column `{name}` is of type {before}, and {kind} does not have all values of that: \
                 copy the table into a new one"
            ));
        }
        let until = self.version() + 1;
        let mut wider = self.clone();
        let column = &mut wider.columns[column];
        let before = std::mem::replace(&mut column.kind, kind);
        column.was.push((before, until));
        wider.checked()
    }

    fn checked(self) -> Result<Schema> {
        let refuse = |what: String| Err(Error::Schema(what));
        if self.columns.len() > COLUMNS_MAX {
            return refuse(format!("a schema has at most {COLUMNS_MAX} columns"));
        }
        if self.version() > VERSIONS_MAX {
            return refuse(format!(
                "a schema has at most {VERSIONS_MAX} versions: copy the table into a new one"
            ));
        }
        let mut names = std::collections::HashSet::new();
        let mut since = 1;
        for column in &self.columns {
            let name = &column.name;
            if name.is_empty() || name.contains(char::is_control) {
                return refuse("columns have names, without control characters".to_owned());
            }
            if !names.insert(name.as_str()) {
                return refuse(format!("two columns are called `{name}`: rename one"));
            }
            if let Err(what) = column.kind.check() {
                return refuse(format!("column `{name}`: {what}"));
            }
            if column.since < since {
                return refuse(format!("column `{name}` is of a version before that of another"));
            }
            if column.since > 1 && !column.nullable {
                return refuse(format!(
                    "column `{name}` came later, and rows before it have no value for it: it is nullable"
                ));
            }
            since = column.since;
            column.check_was().map_err(Error::Schema)?;
        }
        for (at, &column) in self.key.iter().enumerate() {
            let Column { name, kind, since, was, .. } = &self.columns[column];
            if !was.is_empty() {
                return refuse(format!(
                    "the key names `{name}`, and columns of the key keep their type, by which they sort"
                ));
            }
            if self.key[..at].contains(&column) {
                return refuse(format!("the key names `{name}` twice"));
            }
            if matches!(kind, Type::Array(..)) {
                return refuse(format!("the key names `{name}`, and arrays have no order"));
            }
            if *since > 1 {
                return refuse(format!(
                    "the key names `{name}`, and every row has a key: it is not new"
                ));
            }
        }
        Ok(self)
    }
}

impl Column {
    /// Whether its types became wider from version to version.
    fn check_was(&self) -> std::result::Result<(), String> {
        let name = &self.name;
        let kinds = self.was.iter().skip(1).map(|(kind, _)| kind).chain([&self.kind]);
        let mut from = self.since;
        for ((kind, until), wider) in self.was.iter().zip(kinds) {
            kind.check().map_err(|what| format!("column `{name}`: {what}"))?;
            if !kind.widens_to(wider) {
                return Err(format!("column `{name}` was {kind}, and {wider} is not wider"));
            }
            if *until <= from {
                return Err(format!("column `{name}` was {kind} until a version before its own"));
            }
            from = *until;
        }
        Ok(())
    }
}

/// A name, in quotes if it needs them.
fn quoted(name: &str) -> String {
    let plain = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    match plain && !name.is_empty() {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// In the form that is read.
impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Column { name, kind, nullable, since, was } in &self.columns {
            write!(f, "{}:{kind}{}", quoted(name), if *nullable { "?" } else { "" })?;
            if *since > 1 {
                write!(f, " since {since}")?;
            }
            for (kind, until) in was {
                write!(f, " was {kind} until {until}")?;
            }
            f.write_str(", ")?;
        }
        let names = self.key.iter().map(|&column| quoted(&self.columns[column].name));
        let number = self.is_numbered.then(|| "#".to_owned());
        write!(f, "key({})", names.chain(number).collect::<Vec<_>>().join(", "))
    }
}

impl FromStr for Schema {
    type Err = Error;

    fn from_str(text: &str) -> Result<Schema> {
        Reader { text, at: 0 }.schema()
    }
}

/// A text that is read from its beginning.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn schema(&mut self) -> Result<Schema> {
        let mut builder = Schema::builder();
        let mut columns = Vec::new();
        loop {
            if self.symbol("key(") {
                builder = self.key(builder)?;
                self.symbol(",");
                break;
            }
            columns.push(self.column()?);
            if !self.symbol(",") {
                break;
            }
            if self.rest().trim_start().is_empty() {
                break;
            }
        }
        if !self.rest().trim_start().is_empty() {
            return self.fail("`,` or the end is expected");
        }
        SchemaBuilder { columns, ..builder }.build()
    }

    fn key(&mut self, mut builder: SchemaBuilder) -> Result<SchemaBuilder> {
        while !self.symbol(")") {
            if self.symbol("#") {
                builder.is_numbered = true;
                if !self.symbol(")") {
                    return self.fail("`)` is expected behind `#`, which stands last");
                }
                break;
            }
            builder.key.push(self.name()?);
            if !self.symbol(",") && !self.rest().trim_start().starts_with(')') {
                return self.fail("`,` or `)` is expected");
            }
        }
        Ok(builder)
    }

    fn column(&mut self) -> Result<Column> {
        let name = self.name()?;
        if !self.symbol(":") {
            return self.fail("`:` and a type are expected");
        }
        let kind = self.kind(&["?", " since ", " was "])?;
        let nullable = self.symbol("?");
        let since = if self.symbol("since ") { self.version()? } else { 1 };
        let mut was = Vec::new();
        while self.symbol("was ") {
            let kind = self.kind(&[" until "])?;
            if !self.symbol("until ") {
                return self.fail("`until` and a version are expected");
            }
            was.push((kind, self.version()?));
        }
        Ok(Column { name, kind, nullable, since, was })
    }

    /// A type, up to a comma outside of its brackets, or one of these.
    fn kind(&mut self, ends: &[&str]) -> Result<Type> {
        let begin = self.at;
        let mut depth = 0;
        let comma = self.rest().find(|letter| {
            match letter {
                '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                _ => {}
            }
            depth <= 0 && letter == ','
        });
        let text = &self.rest()[..comma.unwrap_or(self.rest().len())];
        let end = ends.iter().filter_map(|end| text.find(end)).min();
        let text = &text[..end.unwrap_or(text.len())];
        let kind = text.trim_end().parse().map_err(|error| match error {
            Error::Syntax { what, .. } => Error::Syntax { offset: begin, what },
            other => other,
        })?;
        self.at += text.len();
        Ok(kind)
    }

    /// The number of a version.
    fn version(&mut self) -> Result<u8> {
        let rest = self.rest();
        let digits = &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()];
        match digits.parse() {
            Ok(version @ 1..=VERSIONS_MAX) => {
                self.at += digits.len();
                Ok(version)
            }
            _ => self.fail("the number of a version, 1 to 127, is expected"),
        }
    }

    fn name(&mut self) -> Result<String> {
        if self.symbol("\"") {
            let mut name = String::new();
            loop {
                let Some(len) = self.rest().find('"') else {
                    return self.fail("a quote is expected at the end of the name");
                };
                name.push_str(&self.rest()[..len]);
                self.at += len + 1;
                if !self.rest().starts_with('"') {
                    return Ok(name);
                }
                name.push('"');
                self.at += 1;
            }
        }
        self.skip_space();
        let plain = |letter: char| letter.is_alphanumeric() || letter == '_';
        let len = self.rest().find(|letter| !plain(letter)).unwrap_or(self.rest().len());
        if len == 0 {
            return self.fail("the name of a column is expected");
        }
        let name = &self.rest()[..len];
        self.at += len;
        Ok(name.to_owned())
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let begin = self.at;
        self.skip_space();
        let found = self.rest().starts_with(symbol);
        self.at = if found { self.at + symbol.len() } else { begin };
        found
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn fail<T>(&self, what: &str) -> Result<T> {
        let found = match self.rest().trim_start().chars().next() {
            Some(letter) => format!(", and `{letter}` stands there"),
            None => ", and the text ends".to_owned(),
        };
        Err(Error::Syntax { offset: self.at, what: format!("{what}{found}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "a:i64, key(#)",
            "a:i64, b:text?, key(a)",
            "a:i64, b:text, key(b, a, #)",
            "\"a b\":decimal(10,2)?, \"c\"\"d\":[u8; 4], key(\"a b\")",
            "key:text, since:i8, key(key, since)",
            "a:i64, b:f64? since 2, c:text? since 2, d:bool? since 5, key(a)",
            "a:i64, b:i32 was u8 until 2 was i16 until 4, c:f64? since 2 was f32 until 3, key(a)",
            "was:i64, until:decimal(9,2) was decimal(4,2) until 2, key(was)",
            "key(#)",
        ] {
            let schema: Schema = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(schema.to_string(), text);
        }
        for (text, same) in [
            ("a:i64", "a:i64, key(#)"),
            (" a : i64 ? , ", "a:i64?, key(#)"),
            ("a:text,b:[ u8 ;4 ],key( b2 )", ""),
            ("a:timestamp,key(a,)", "a:timestamp(us), key(a)"),
        ] {
            match text.parse::<Schema>() {
                Ok(schema) => assert_eq!(schema.to_string(), same),
                Err(error) => assert_eq!(same, "", "{text}: {error}"),
            }
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (text, says) in [
            ("", "the name of a column"),
            ("a", "`:` and a type"),
            ("a:", "no type is called"),
            ("a:int", "no type is called `int`"),
            ("a:i64 b:i64", "no type is called"),
            ("a:i64? b:i64", "`,` or the end"),
            ("a:i64, a:i8", "two columns are called `a`"),
            ("a:i64, key(b)", "names `b`, and no column"),
            ("a:i64, key(a, a)", "twice"),
            ("a:i64, key(#, a)", "behind `#`"),
            ("a:[u8; 4], key(a)", "arrays have no order"),
            ("a:i64 since 2", "it is nullable"),
            ("a:i64? since 2, b:i8?", "version before"),
            ("a:i64? since 2, key(a)", "it is not new"),
            ("a:i64? since 128", "1 to 127"),
            ("a:i32 was i16", "`until` and a version"),
            ("a:i32 was i16 until 1", "before its own"),
            ("a:i32? since 3 was i16 until 3", "before its own"),
            ("a:i32 was i8 until 3 was i16 until 2", "before its own"),
            ("a:i32 was i64 until 2", "is not wider"),
            ("a:i32 was text until 2", "is not wider"),
            ("a:i32 was i16 until 2, key(a)", "keep their type"),
            ("a:i32 was i16 until 200", "1 to 127"),
            ("\"a", "a quote is expected"),
            ("\"\":i64", "columns have names"),
            ("a:i64, key(a", "`,` or `)`"),
        ] {
            let error = text.parse::<Schema>().expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let mut schema: Schema = "a:i64".parse().expect("a schema");
        for version in 2..=VERSIONS_MAX {
            schema = schema.with_column(format!("c{version}"), Type::Bool).expect("there is room");
        }
        assert!(schema.with_column("more", Type::Bool).is_err());
        assert_eq!(schema.to_string().parse(), Ok(schema));
    }

    #[test]
    fn columns_become_wider() {
        let schema: Schema = "a:i64, b:i8?, c:u8, d:text, key(a)".parse().expect("a schema");
        let wider = schema.with_wider("b", Type::Int(32)).expect("it is wider");
        let wider = wider.with_column("e", Type::F32).expect("there is room");
        let wider = wider.with_wider("c", Type::Int(16)).expect("it has all of them");
        let wider = wider.with_wider("b", Type::Int(64)).expect("it is wider");
        assert_eq!(
            wider.to_string(),
            "a:i64, b:i64? was i8 until 2 was i32 until 5, c:i16 was u8 until 4, d:text, \
             e:f32? since 3, key(a)"
        );
        assert_eq!(wider.version(), 5);
        let kinds = (1..=5).map(|version| wider.columns()[1].kind_at(version).to_string());
        assert_eq!(kinds.collect::<Vec<_>>(), ["i8", "i32", "i32", "i32", "i64"]);
        for (name, kind, says) in [
            ("b", Type::Int(32), "does not have all values"),
            ("b", Type::Int(64), "does not have all values"),
            ("d", Type::Bytes, "does not have all values"),
            ("a", Type::Int(128), "keep their type"),
            ("z", Type::Int(64), "no column"),
        ] {
            let error = wider.with_wider(name, kind).expect_err(name).to_string();
            assert!(error.contains(says), "{name}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "[a-c:,?()\"# 0-9;\\[\\]]{0,40}") {
            if let Ok(schema) = text.parse::<Schema>() {
                prop_assert_eq!(schema.to_string().parse::<Schema>(), Ok(schema));
            }
        }
    }
}

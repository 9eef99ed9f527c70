//! An answer as a table of text.

use std::fmt;

use super::{Answer, Cell};
use crate::state::TopEntry;
use crate::value::Value;

/// Between two columns.
const GAP: &str = "  ";

/// A line of names, and a line for each row. Columns of numbers stand to the right; there is `-`
/// where there is nothing. All digits of a figure are shown.
///
/// ```
/// use sapwood::aggregate::{Aggregate, Group};
/// use sapwood::{Db, OrderedTableOptions};
///
/// let options = OrderedTableOptions::default().fields("kind:key.text3, pieces:u32le".parse()?);
/// let stock = Db::in_memory().create_ordered_table("stock", options)?;
/// for (item, pieces) in [("oak 1", 90_u32), ("elm 1", 7), ("oak 2", 12)] {
///     stock.put(item.as_bytes(), &pieces.to_le_bytes())?;
/// }
/// let query = stock
///     .query()?
///     .group_by(Group::list("kind")?)
///     .aggregates(Aggregate::list("count, sum(pieces)")?);
/// let answer = stock.aggregate(&query)?;
/// assert_eq!(
///     answer.to_string(),
///     "kind  count  sum(pieces)\n\
///      elm       1            7\n\
///      oak       2          102"
/// );
/// # Ok::<(), sapwood::Error>(())
/// ```
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.columns.iter().map(|column| one_line(&column.name)).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::to_string).collect());
        let lines: Vec<Vec<String>> = std::iter::once(names).chain(rows).collect();
        let sides: Vec<(usize, bool)> = (0..self.columns.len())
            .map(|at| {
                let width = lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
                (width, self.rows.iter().any(|row| row[at].is_text()))
            })
            .collect();
        for (number, line) in lines.iter().enumerate() {
            let cells = line.iter().zip(&sides).map(|(cell, &(width, is_text))| match is_text {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
            let line = cells.collect::<Vec<_>>().join(GAP);
            let end = if number == 0 { "" } else { "\n" };
            write!(f, "{end}{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The value as text, `-` where there is nothing.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Nothing => f.pad("-"),
            Cell::Value(value) => value.fmt(f),
            Cell::Top(entries) => {
                for (number, entry) in entries.iter().enumerate() {
                    write!(f, "{}{entry}", if number == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

/// `UA 5`, or `UA 5 to 7` where it was not counted exactly.
impl fmt::Display for TopEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TopEntry { value, at_least, at_most } = self;
        match at_least == at_most {
            true => write!(f, "{value} {at_least}"),
            false => write!(f, "{value} {at_least} to {at_most}"),
        }
    }
}

impl Cell {
    fn is_text(&self) -> bool {
        matches!(self, Cell::Value(Value::Bytes(_)) | Cell::Top(_))
    }
}

/// Names are the query's, with whatever characters.
fn one_line(name: &str) -> String {
    name.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Accuracy, Column, Tally};

    fn answer(names: &[&str], rows: Vec<Vec<Cell>>) -> Answer {
        let column = |name: &&str| Column { name: (*name).to_owned(), accuracy: Accuracy::Exact };
        let columns = names.iter().map(column).collect();
        Answer { columns, groups: rows.len() as u64, rows, tally: Tally::default() }
    }

    fn value(value: impl Into<Value<'static>>) -> Cell {
        Cell::Value(value.into())
    }

    #[test]
    fn columns_are_aligned() {
        let float = Cell::Value(Value::float(-0.25).expect("not NaN"));
        let top = |at_most| TopEntry { value: "x".into(), at_least: 2, at_most };
        let answer = answer(
            &["carrier", "n", "two\nlines", "top"],
            vec![
                vec![value("UA"), value(12_345), float, Cell::Top(vec![top(2), top(3)])],
                vec![value("Å"), Cell::Nothing, value(1), Cell::Nothing],
            ],
        );
        let expected = "carrier      n  two lines  top\n\
                        UA       12345      -0.25  x 2, x 2 to 3\n\
                        Å            -          1  -";
        assert_eq!(answer.to_string(), expected);
    }

    #[test]
    fn an_answer_without_rows_has_names() {
        assert_eq!(answer(&["a", "b"], Vec::new()).to_string(), "a  b");
    }

    #[test]
    fn cells_tell_what_they_are() {
        assert!(Cell::Nothing.is_missing() && !value(0).is_missing());
        assert_eq!(value(7).value().and_then(Value::as_i64), Some(7));
        assert_eq!((Cell::Nothing.value(), Cell::Nothing.top()), (None, None));
        assert_eq!(Cell::Top(Vec::new()).top(), Some(&[][..]));
    }
}

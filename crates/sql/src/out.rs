//! The values of expressions while they are computed.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::error::{Error, Result};
use sapwood_schema::{Data, Strings, Vector};

/// The values of an expression: one for each row, or one for all.
#[derive(Debug)]
pub(crate) struct Out<'a> {
    pub(crate) vector: Cow<'a, Vector>,
    pub(crate) is_one: bool,
}

impl Out<'_> {
    /// How far the value of the next row lies behind that of a row.
    #[inline]
    pub(crate) fn step(&self) -> usize {
        usize::from(!self.is_one)
    }

    #[inline]
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.vector.is_null(row * self.step())
    }

    /// A text or bytes of a row.
    #[inline]
    pub(crate) fn bytes(&self, row: usize) -> &[u8] {
        match &self.vector.data {
            Data::Bytes(values) => values.get(row * self.step()),
            other => unreachable!("{other:?} are no bytes"),
        }
    }

    /// A text of a row.
    pub(crate) fn text(&self, row: usize) -> Result<&str> {
        std::str::from_utf8(self.bytes(row)).map_err(|_| Error::value("a text is not UTF-8"))
    }
}

/// Floats as SQL orders them: zeros are equal, and NaN equals itself and is greater than all.
#[inline]
pub(crate) fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// Texts, one for each row that has values; `write` appends one.
pub(crate) fn texts(
    len: usize,
    nulls: Option<Vec<bool>>,
    mut write: impl FnMut(usize, &mut Vec<u8>) -> Result<()>,
) -> Result<Vector> {
    let mut strings = Strings::new();
    for row in 0..len {
        let mut written = Ok(());
        strings.push_with(|out| {
            if !nulls.as_ref().is_some_and(|nulls| nulls[row]) {
                written = write(row, out);
            }
        });
        written?;
    }
    Ok(Vector { data: Data::Bytes(strings), nulls })
}

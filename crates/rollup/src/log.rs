//! The log of a database, as a roll-up uses it: batches of rows, and when they were taken.
//!
//! | record | bytes |
//! |---|---|
//! | version, 1 | 1 |
//! | number of the batch | 8 |
//! | the present when it was taken, in milliseconds | 8 |
//! | how many offsets | 2 |
//! | of each: source behind its length, offset | 2 and its length, 8 |
//! | rows | as `RowBatch::encode` writes them |

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;

use crate::error::{Error, Result};
use crate::input::batch::RowBatch;

/// What a roll-up appends its batches to, so that they outlive the process.
///
/// A batch is appended before any query sees its rows; what was appended is told to
/// [`Writer::redo`](crate::Writer::redo), in its order, when the roll-up is opened again.
pub trait BatchLog: Debug + Send + Sync {
    /// Appends a record, or makes it part of the changes of this thread that go together.
    ///
    /// # Errors
    /// The record is not there, and no row of its batch is taken.
    fn append(&self, record: &[u8]) -> io::Result<()>;

    /// Waits until all that was appended before lasts, by whichever thread.
    ///
    /// # Errors
    /// It is not known to last; no segment with rows of it may count.
    fn sync(&self) -> io::Result<()>;

    /// Runs something short at a moment at which no changes that go together are made by half.
    ///
    /// # Errors
    /// This thread is among such changes.
    fn apart(&self, work: &mut dyn FnMut()) -> io::Result<()>;
}

const VERSION: u8 = 1;
/// Where the number of a batch stands.
const NUMBER_AT: usize = 1;

/// The order of batches, and how far each source was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// The number of the last batch.
    pub(crate) number: u64,
    pub(crate) offsets: BTreeMap<String, u64>,
}

/// A batch in the log.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) number: u64,
    pub(crate) now: i64,
    pub(crate) offsets: Vec<(String, u64)>,
    pub(crate) rows: RowBatch,
}

/// The record of a batch, whose number is set later.
pub(crate) fn encode(rows: &RowBatch, now: i64, offsets: &[(&str, u64)]) -> Result<Vec<u8>> {
    let mut record = vec![VERSION];
    record.extend_from_slice(&[0; 8]);
    record.extend_from_slice(&now.to_le_bytes());
    let count = u16::try_from(offsets.len());
    let count = count.map_err(|_| Error::Input("a batch has 65,535 offsets at most".to_owned()))?;
    record.extend_from_slice(&count.to_le_bytes());
    for (source, offset) in offsets {
        let len = u16::try_from(source.len()).map_err(|_| {
            Error::Input("the name of a source has 65,535 bytes at most".to_owned())
        })?;
        record.extend_from_slice(&len.to_le_bytes());
        record.extend_from_slice(source.as_bytes());
        record.extend_from_slice(&offset.to_le_bytes());
    }
    rows.encode(&mut record)?;
    Ok(record)
}

/// Sets the number of the batch.
pub(crate) fn number(record: &mut [u8], number: u64) {
    record[NUMBER_AT..][..8].copy_from_slice(&number.to_le_bytes());
}

/// Reads a record that [`encode`] made. Any bytes may be given.
///
/// # Errors
/// [`Error::Corrupt`].
pub(crate) fn decode(record: &[u8]) -> Result<Record> {
    let mut rest = record;
    let mut take = |len: usize| match rest.split_at_checked(len) {
        Some((taken, behind)) => {
            rest = behind;
            Ok(taken)
        }
        None => {
            let offset = (record.len() - rest.len()) as u64;
            Err(Error::corrupt(offset, format!("{len} bytes are expected, and there are fewer")))
        }
    };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes were taken"));
    let short = |bytes: &[u8]| u16::from_le_bytes(bytes.try_into().expect("2 bytes were taken"));
    let version = take(1)?[0];
    Error::expect_known(version.into(), VERSION.into())
        .map_err(|newer| newer.in_file("the log"))?;
    if version != VERSION {
        return Err(Error::corrupt(0, format!("records of version {version} are not known")));
    }
    let number = word(take(8)?);
    let now = word(take(8)?).cast_signed();
    let count = short(take(2)?);
    let mut offsets = Vec::new();
    for _ in 0..count {
        let len = short(take(2)?).into();
        let source = std::str::from_utf8(take(len)?)
            .map_err(|_| Error::corrupt(0, "the name of a source is no UTF-8"))?;
        let source = source.to_owned();
        offsets.push((source, word(take(8)?)));
    }
    Ok(Record { number, now, offsets, rows: RowBatch::decode(rest)? })
}

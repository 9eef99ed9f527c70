//! Entries of a file, put many at once.

use sapwood::{AnyTable, Error};

use crate::args::exchange::Import;
use crate::rows::exchange::reader::bad_row;
use crate::rows::rows_table;
use crate::terminal::exit::{Failure, Outcome, words};

/// Entries that are put at once, and about the bytes at which they are put before.
const BATCH_ENTRIES: usize = 4096;
const BATCH_BYTES: usize = 4 << 20;

/// Puts entries, many at once.
pub(super) struct Putter {
    pub(super) table: AnyTable,
    /// Of the file, and of what its places count.
    name: String,
    unit: &'static str,
    batch: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where each entry of the batch stood in the file.
    places: Vec<u64>,
    bytes: usize,
    /// Those that are in.
    pub(super) entries: u64,
}

impl Putter {
    pub(super) fn new(table: AnyTable, args: &Import, unit: &'static str) -> Self {
        Self {
            table,
            name: args.file.display().to_string(),
            unit,
            batch: Vec::with_capacity(BATCH_ENTRIES),
            places: Vec::with_capacity(BATCH_ENTRIES),
            bytes: 0,
            entries: 0,
        }
    }

    pub(super) fn put(&mut self, place: u64, key: &[u8], value: &[u8]) -> Outcome {
        self.batch.push((key.to_vec(), value.to_vec()));
        self.places.push(place);
        self.bytes += key.len() + value.len();
        match self.batch.len() == BATCH_ENTRIES || self.bytes >= BATCH_BYTES {
            true => self.put_batch(),
            false => Ok(()),
        }
    }

    pub(super) fn put_batch(&mut self) -> Outcome {
        let put = self.table.put_many(&self.batch);
        let failed = match put {
            Ok(()) => {
                self.entries += self.batch.len() as u64;
                Ok(())
            }
            Err(error) => Err(self.stopped(&error)),
        };
        self.batch.clear();
        self.places.clear();
        self.bytes = 0;
        failed
    }

    /// Puts what a batch that failed has before the entry that is at fault, and says which that is.
    fn stopped(&mut self, error: &Error) -> Failure {
        // A tree takes all of a batch or nothing; other tables take again what they have.
        for ((key, value), place) in self.batch.iter().zip(&self.places) {
            let Err(error) = self.table.put(key, value) else {
                self.entries += 1;
                continue;
            };
            let why = rows_table::too_long(&error, key, value).unwrap_or_else(|| words(&error));
            return bad_row(&self.name, self.unit, *place, &why);
        }
        Failure::Failed(words(error))
    }
}

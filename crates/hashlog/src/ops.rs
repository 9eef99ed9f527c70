//! Operations on keys, over index and log.
//!
//! | module | holds |
//! |---|---|
//! | `store` | the store: its fields and its construction |
//! | `drive` | the loop of attempts, and the wait between two of them |
//! | `search`, `append` | a key's newest record; a new one |
//! | `growth` | the growth of the index beside operations |
//! | `read_back` | the way back of pages into memory |
//! | `compactor` | the state of the thread that compacts |
//! | `get`, `put`, `rmw`, `add`, `remove` | the operations on one key |
//! | `fast` | the same on fixed records, where they end at first sight, in the caller's code |
//! | `compute` | a closure decides about one key |
//! | `batch` | many operations that share their waits |
//! | `update_at` | changes of entries whose addresses are known |
//! | `update_run` | the same of records that a hold keeps where they are |
//! | `edit` | the same, many at a time, as a value that a caller holds |
//!
//! An operation is tried in steps. Its names end alike: `_fast` and `_by_look` find the key by one look into its
//! bucket, `_first` is given the record that a look named, `_attempt` searches and may stop.
//!
//! | operation | linearization point |
//! |---|---|
//! | get, contains | the load of the slot; of a value in the mutable region, the load of its word or the reader count |
//! | put in place | the store of the value's word; the release of EXCLUSIVE |
//! | put by append, insert | publication in the slot |
//! | update in place | the CAS of the value's word; the release of EXCLUSIVE |
//! | remove | the tombstone flag in place; publication of the tombstone record |
//!
//! If an in-place write and an append to the same key race: the writer found the record before it
//! was replaced and had not returned when it was, so it counts as just before. A read-modify-write
//! never appends from a record that others may be writing in place: a fixed one leaves the
//! fuzzy region first, a variable one is locked.

mod add;
mod append;
pub(crate) mod batch;
mod cold_reads;
pub(crate) mod compactor;
pub(crate) mod compute;
mod drive;
mod fast;
mod get;
mod growth;
mod put;
pub(crate) mod read_back;
mod remove;
pub(crate) mod rmw;
pub(crate) mod search;
pub(crate) mod store;
pub(crate) mod update_at;
pub(crate) mod update_run;

/// Runs the same code for whichever layout: `F` names it in the body.
macro_rules! by_layout {
    ($self:ident, $form:ident => $body:expr) => {
        match $self.store.options.layout {
            $crate::options::Layout::Fixed8 => {
                type $form = $crate::record::Fixed;
                $body
            }
            $crate::options::Layout::Variable => {
                type $form = $crate::record::Variable;
                $body
            }
        }
    };
}
pub(crate) use by_layout;

//! Operations on keys, over index and log.
//!
//! | module | holds |
//! |---|---|
//! | `store` | the store: its fields, and how an attempt is driven until it is done |
//! | `point` | get, put, update, add and remove of one key |
//! | `compute` | a closure decides about one key |
//! | `batch` | many operations that share their waits |
//! | `update_at` | changes of entries whose addresses are known |
//! | `edit` | the same, many at a time, as a value that a caller holds |

pub(crate) mod batch;
pub(crate) mod compute;
pub(crate) mod edit;
pub(crate) mod point;
pub(crate) mod store;
pub(crate) mod update_at;

/// Runs the same code for whichever layout: `F` names it in the body.
macro_rules! by_layout {
    ($self:ident, $form:ident => $body:expr) => {
        match $self.store.options.layout {
            Layout::Fixed8 => {
                type $form = Fixed;
                $body
            }
            Layout::Variable => {
                type $form = Variable;
                $body
            }
        }
    };
}
pub(crate) use by_layout;

//! The begin of a model's execution, and the end of a thread in it, for the loom build only.

use crate::{epoch, sync};

/// Begins an execution of a model: no word has a shadow, and all numbers of threads are free. Call
/// it first.
pub fn reset() {
    sync::shadow::forget_all();
    epoch::forget_numbers();
}

/// Makes this thread act from now on as in destructors of its thread-locals, when those of this
/// crate are gone.
pub fn end_locals() {
    epoch::end_locals();
}

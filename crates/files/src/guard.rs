//! A guard around decoders that panic on damaged files.
//!
//! Parquet's decoder answers most damage with an error, but not all: lengths of a damaged header are
//! divided by, and ranges cut by them, unchecked. For a user that is a file that cannot be read.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught, and not to be printed.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `read`; a panic within it is an error in words. What `read` works on is not to be used after
/// an error.
///
/// # Errors
/// The words of the error, or of the panic.
pub fn guarded<T, E: ToString>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |about| {
            if !IS_GUARDED.get() {
                before(about);
            }
        }));
    });
    IS_GUARDED.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(read));
    IS_GUARDED.set(false);
    match outcome {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err("its parts do not fit each other".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let divided = |by: usize| guarded(|| Ok::<_, String>(12 / by));
        assert_eq!(divided(4), Ok(3));
        assert_eq!(divided(0), Err("its parts do not fit each other".to_owned()));
        assert_eq!(guarded(|| Err::<(), _>("refused")), Err("refused".to_owned()));
        assert!(!IS_GUARDED.get());
    }
}

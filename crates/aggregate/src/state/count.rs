//! Counters.

/// A counter passed its range. No honest state can: objects are fewer.
#[derive(Debug)]
pub(crate) struct CountOverflow;

pub(crate) fn add_counts(left: &mut u64, right: u64) -> Result<(), CountOverflow> {
    *left = left.checked_add(right).ok_or(CountOverflow)?;
    Ok(())
}

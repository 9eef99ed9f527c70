//! The records of a stored page.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::record::address::Address;
use crate::record::layout::control;
use crate::record::{Form, word_at};

/// Calls `each` with the offset and the bytes of every record of a stored page.
pub(crate) fn for_each_stored<F: Form, B>(
    stored: &[u8],
    mut offset: usize,
    mut each: impl FnMut(usize, &[u8]) -> Result<ControlFlow<B>>,
) -> Result<ControlFlow<B>> {
    while let Some(word) = word_at(stored, offset) {
        if word & control::VALID == 0 {
            if F::STRIDE == 0 {
                break;
            }
            offset += F::STRIDE;
            continue;
        }
        let rest = &stored[offset..];
        let bytes = F::stored_bytes(rest).unwrap_or(rest.len()).min(rest.len());
        let flow = each(offset, &rest[..bytes])?;
        if flow.is_break() {
            return Ok(flow);
        }
        offset += bytes;
    }
    Ok(ControlFlow::Continue(()))
}

/// The error for a page that has no whole record at an address.
pub(crate) fn not_a_record(file: String, address: Address) -> Error {
    let what = "no record at this address of the log".to_owned();
    Error::Corrupt { file, offset: address.bytes(), what }
}

//! Are there bytes that a decoder takes badly? What the fuzz targets in `fuzz` call.

use crate::stored_options;

/// The options of a table: bytes are refused, or are the ones that would be written, and zeros.
/// Those of earlier versions would be written otherwise.
pub fn table_options(bytes: &[u8]) {
    if let Ok(options) = stored_options::decode(bytes)
        && bytes.starts_with(stored_options::MAGIC.as_bytes())
    {
        let text = stored_options::encode(&options);
        let rest = bytes.strip_prefix(text.as_bytes()).expect("as it would be written");
        assert!(rest.iter().all(|byte| *byte == 0));
    }
}

//! Bytes as Redis writes them.

/// A number of bytes: `1kb` is 1,024 of them, `1k` is 1,000.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let units = [
        ("kb", 1 << 10),
        ("mb", 1 << 20),
        ("gb", 1 << 30),
        ("k", 1_000),
        ("m", 1_000_000),
        ("g", 1_000_000_000),
        ("b", 1),
        ("", 1_u64),
    ];
    let (number, unit) =
        units.into_iter().find_map(|(end, unit)| Some((text.strip_suffix(end)?, unit)))?;
    number.parse::<u64>().ok()?.checked_mul(unit)
}

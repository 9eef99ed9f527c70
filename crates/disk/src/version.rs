//! Versions of stored formats.

/// The last version that is believed to be one. A larger number is damage.
const VERSION_MAX: u32 = 255;

/// Tells a format that came after the last `known` one from damage: its files are as they should be.
///
/// ```
/// use sapwood_disk::is_later_version;
///
/// assert!(is_later_version(4, 3));
/// assert!(!is_later_version(3, 3) && !is_later_version(0x0300_0000, 3));
/// ```
pub fn is_later_version(found: u32, known: u32) -> bool {
    (known + 1..=VERSION_MAX).contains(&found)
}

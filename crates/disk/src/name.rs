//! Names of files: the check of those that are allowed.

use std::io;

/// Longest name that every filesystem takes.
const NAME_BYTES_MAX: usize = 255;

/// Refuses names that could mean another folder, a hidden file, or different files on different
/// systems.
pub(crate) fn check(name: &str) -> io::Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let valid = (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(plain);
    if valid {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "{name:?} cannot name a file: use 1 to {NAME_BYTES_MAX} ASCII letters, digits, '-', '_' and '.', not beginning with '.'"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_pass() {
        for name in ["a", "log-00000000000000ff.part", "A_b.9", &"x".repeat(255)] {
            assert!(check(name).is_ok(), "{name}");
        }
        let long = "x".repeat(256);
        for name in ["", ".", "..", ".lock", "a/b", "/a", "a\\b", "a\0", "é", "a b", "c:", &long] {
            let error = check(name).expect_err(name);
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}

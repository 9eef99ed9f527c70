//! Patterns of keys and channels, as `KEYS`, `SCAN` and `PSUBSCRIBE` have them.

/// Whether `text` is what `pattern` stands for.
///
/// `?` is any byte, `*` any bytes, `[a-z_]` one of these and `[^a-z]` none of them, `\` takes the
/// next byte as it is. A bracket that is not closed ends with the pattern. Time is at most the
/// product of both lengths: the last star alone is tried again.
///
/// ```
/// use sapwood_server::protocol::glob::matches;
///
/// assert!(matches(b"session:*:[0-9]?", b"session:eu:17"));
/// assert!(!matches(b"session:*:[^0-9]", b"session:eu:7"));
/// ```
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut rest, mut bytes) = (pattern, text);
    // Behind the last star: the pattern, and the text that the star has not taken yet.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', behind @ ..] = rest {
            (rest, star) = (behind, Some((behind, bytes)));
            if rest.is_empty() {
                return true;
            }
            continue;
        }
        let step = match (one(rest), bytes) {
            (None, []) => return true,
            (Some((one, behind)), [byte, left @ ..]) if one.is(*byte) => Some((behind, left)),
            _ => None,
        };
        match (step, star) {
            (Some(step), _) => (rest, bytes) = step,
            // The star takes a byte more.
            (None, Some((behind, [_, left @ ..]))) => {
                (rest, bytes, star) = (behind, left, Some((behind, left)));
            }
            (None, _) => return false,
        }
    }
}

/// What one byte of the text must be.
#[derive(Clone, Copy)]
enum One<'p> {
    Any,
    This(u8),
    /// The inside of a bracket, and whether it is of bytes that must not be.
    Of {
        set: &'p [u8],
        is_negated: bool,
    },
}

/// The first element of a pattern that does not begin with a star, and what is behind it.
fn one(pattern: &[u8]) -> Option<(One<'_>, &[u8])> {
    match pattern {
        [] => None,
        [b'?', behind @ ..] => Some((One::Any, behind)),
        [b'\\', byte, behind @ ..] => Some((One::This(*byte), behind)),
        [b'[', inside @ ..] => {
            let (set, is_negated) = match inside {
                [b'^', set @ ..] => (set, true),
                set => (set, false),
            };
            let len = closing(set);
            let behind = set.get(len + 1..).unwrap_or_default();
            Some((One::Of { set: &set[..len], is_negated }, behind))
        }
        [byte, behind @ ..] => Some((One::This(*byte), behind)),
    }
}

/// The bytes of a set before its bracket.
fn closing(set: &[u8]) -> usize {
    let mut at = 0;
    while at < set.len() && set[at] != b']' {
        at += if set[at] == b'\\' && at + 1 < set.len() { 2 } else { 1 };
    }
    at.min(set.len())
}

impl One<'_> {
    fn is(self, byte: u8) -> bool {
        match self {
            One::Any => true,
            One::This(this) => this == byte,
            One::Of { set, is_negated } => has(set, byte) != is_negated,
        }
    }
}

fn has(mut set: &[u8], byte: u8) -> bool {
    while let Some((&first, behind)) = set.split_first() {
        set = match (first, behind) {
            (b'\\', [escaped, left @ ..]) => {
                if *escaped == byte {
                    return true;
                }
                left
            }
            (low, [b'-', high, left @ ..]) => {
                if (low.min(*high)..=low.max(*high)).contains(&byte) {
                    return true;
                }
                left
            }
            _ if first == byte => return true,
            _ => behind,
        };
    }
    false
}

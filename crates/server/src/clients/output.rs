//! Bounds of replies and messages that a client leaves unread, by its class, as Redis has them.

use std::fmt;

use crate::protocol::units;

/// Bounds of a class of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimit {
    /// Bytes beyond which a client is closed at once; 0 for no bound.
    pub hard_bytes: usize,
    /// Bytes beyond which a client is closed that has had more of them for some time; 0 for no
    /// bound.
    pub soft_bytes: usize,
    /// That time.
    pub soft_seconds: u64,
}

/// A text that names no limits. The texts are those of Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OutputLimitsError {
    /// Words that are not four for each class.
    #[error("Wrong number of arguments in buffer limit configuration.")]
    Words,
    /// A class that there is not.
    #[error("Invalid client class specified in buffer limit configuration.")]
    Class,
    /// A number that is none.
    #[error("Error in hard, soft or soft_seconds setting in buffer limit configuration.")]
    Number,
}

/// Bounds of all classes.
///
/// ```
/// use sapwood_server::clients::OutputLimits;
///
/// let limits = OutputLimits::default().with("normal 64mb 16mb 10").expect("four words");
/// assert_eq!(limits.normal.hard_bytes, 64 << 20);
/// assert_eq!(limits.pubsub, OutputLimits::default().pubsub);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Limit of clients that have not subscribed to messages.
    pub normal: OutputLimit,
    /// Limit of replicas. There are none; tools set and read it.
    pub replica: OutputLimit,
    /// Limit of clients that have subscribed.
    pub pubsub: OutputLimit,
}

impl Default for OutputLimits {
    /// The limits of Redis.
    fn default() -> OutputLimits {
        let limit = |hard_bytes, soft_bytes, soft_seconds| OutputLimit {
            hard_bytes,
            soft_bytes,
            soft_seconds,
        };
        OutputLimits {
            normal: limit(0, 0, 0),
            replica: limit(256 << 20, 64 << 20, 60),
            pubsub: limit(32 << 20, 8 << 20, 60),
        }
    }
}

impl OutputLimits {
    /// Replaces the limits that a text names: a class, its two numbers of bytes, and its seconds, for
    /// any number of classes.
    ///
    /// # Errors
    /// [`OutputLimitsError`], for any other text.
    pub fn with(mut self, text: &str) -> Result<OutputLimits, OutputLimitsError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if !words.len().is_multiple_of(4) {
            return Err(OutputLimitsError::Words);
        }
        for words in words.chunks_exact(4) {
            let of_class = match words[0].to_ascii_lowercase().as_str() {
                "normal" => &mut self.normal,
                "slave" | "replica" => &mut self.replica,
                "pubsub" => &mut self.pubsub,
                _ => return Err(OutputLimitsError::Class),
            };
            let bytes = |word: &str| usize::try_from(units::bytes(word)?).ok();
            *of_class = OutputLimit {
                hard_bytes: bytes(words[1]).ok_or(OutputLimitsError::Number)?,
                soft_bytes: bytes(words[2]).ok_or(OutputLimitsError::Number)?,
                soft_seconds: words[3].parse().map_err(|_| OutputLimitsError::Number)?,
            };
        }
        Ok(self)
    }
}

impl fmt::Display for OutputLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutputLimits { normal, replica, pubsub } = self;
        for (at, (name, limit)) in
            [("normal", normal), ("slave", replica), ("pubsub", pubsub)].into_iter().enumerate()
        {
            let OutputLimit { hard_bytes, soft_bytes, soft_seconds } = limit;
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{name} {hard_bytes} {soft_bytes} {soft_seconds}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_redis() {
        let default = OutputLimits::default();
        let text = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60";
        assert_eq!(default.to_string(), text);
        assert_eq!(default.with(text), Ok(default));
        assert_eq!(default.with(""), Ok(default));
        let changed = default.with("PUBSUB 1mb 1k 5 normal 10 5 1").expect("two classes");
        let text = "normal 10 5 1 slave 268435456 67108864 60 pubsub 1048576 1000 5";
        assert_eq!(changed.to_string(), text);
        for (text, error) in [
            ("normal", OutputLimitsError::Words),
            ("normal 1 1", OutputLimitsError::Words),
            ("normal 1 1 1 pubsub", OutputLimitsError::Words),
            ("other 1 1 1", OutputLimitsError::Class),
            ("normal -1 0 0", OutputLimitsError::Number),
            ("normal 1 x 1", OutputLimitsError::Number),
            ("normal 1 1 x", OutputLimitsError::Number),
        ] {
            assert_eq!(default.with(text), Err(error), "{text}");
        }
    }
}

//! Bounds of keys: the values of `--from`, `--to` and `--prefix`, as bytes of keys.

use sapwood::key;

use crate::args::key_spec::{KeySpec, split_list};
use crate::args::rows::KeyRange;
use crate::rows::key_columns::KeyColumns;
use crate::terminal::exit::{Failure, Outcome};

/// The values that bound the keys.
pub(crate) enum KeyBounds {
    Between(Option<Vec<String>>, Option<Vec<String>>),
    Prefix(Vec<String>),
}

impl KeyBounds {
    /// Reads the values; refuses too many where the columns of the key are known already.
    pub(crate) fn parse(range: &KeyRange, key: Option<&KeySpec>) -> Outcome<Self> {
        let values = |text: &String| -> Outcome<Vec<String>> {
            let values = split_list(text).map_err(Failure::Usage)?;
            if let Some(key) = key {
                key.check_count(&values)?;
            }
            Ok(values)
        };
        Ok(match &range.prefix {
            Some(prefix) => Self::Prefix(values(prefix)?),
            None => Self::Between(
                range.from.as_ref().map(values).transpose()?,
                range.to.as_ref().map(values).transpose()?,
            ),
        })
    }

    /// Where to begin, and the key before which to end.
    pub(crate) fn bounds(&self, keys: &KeyColumns) -> Outcome<(Vec<u8>, Option<Vec<u8>>)> {
        match self {
            Self::Prefix(values) => {
                let range = key::prefix_range(&keys.encode_prefix(values)?);
                Ok((range.begin().to_vec(), range.limit().map(<[u8]>::to_vec)))
            }
            Self::Between(from, to) => {
                let bound = |values: &Option<Vec<String>>| -> Outcome<Option<Vec<u8>>> {
                    values.as_ref().map(|values| keys.encode_values(values)).transpose()
                };
                Ok((bound(from)?.unwrap_or_default(), bound(to)?))
            }
        }
    }
}

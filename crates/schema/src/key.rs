//! Keys of typed values, whose bytes sort as the values do.
//!
//! Engines compare keys as bytes. This module encodes integers, floats, booleans, text, bytes,
//! options and tuples of them so that comparing the encodings byte by byte orders them exactly
//! as comparing the values would. The layout of each type is in `docs/design/keys.md` and is
//! pinned by a test: stored keys depend on it.
//!
//! ```
//! use sapwood::key;
//!
//! let key = key::encode(&("UA", 1545_u16));
//! assert!(key < key::encode(&("UA", 1546_u16)));
//! assert!(key < key::encode(&("US", 3_u16)));
//! assert_eq!(key::decode::<(String, u16)>(&key)?, ("UA".to_owned(), 1545));
//!
//! // The encoding of the first components is a prefix of the whole key.
//! assert!(key.starts_with(&key::encode(&"UA")));
//! # Ok::<(), key::DecodeError>(())
//! ```
//!
//! A component in [`Reverse`](std::cmp::Reverse) sorts descending:
//!
//! ```
//! use sapwood::key;
//! use std::cmp::Reverse;
//!
//! let best = key::encode(&(Reverse(900_u32), "ada"));
//! assert!(best < key::encode(&(Reverse(850_u32), "bob")));
//! assert!(best < key::encode(&(Reverse(900_u32), "eve")));
//! assert_eq!(key::decode::<(Reverse<u32>, String)>(&best)?, (Reverse(900), "ada".to_owned()));
//! # Ok::<(), key::DecodeError>(())
//! ```
//!
//! Useful for keys that people query by range or prefix. Not useful for values: a value keeps
//! no order, so it needs no order-preserving layout.
//!
//! # Choosing types
//!
//! - Use the same types for every key of a table: the encodings carry no type marks, so
//!   `1_u16` and `1_u32` do not sort together.
//! - Negative numbers need a signed type; floats sort by [`f64::total_cmp`], which puts `-0.0`
//!   just before `0.0` (they are two keys) and NaN beyond the infinities, by its sign bit.
//! - Text sorts by its UTF-8 bytes, which is by code point.

mod encode;
mod number;
mod prefix;
mod reverse;
mod text;
mod tuple;

pub use encode::{DecodeError, Decoder, KeyDecode, KeyEncode, decode, encode, encode_into};
pub use prefix::{PrefixRange, encode_partial, prefix_range};

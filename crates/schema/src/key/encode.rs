//! The two traits of a key component, and the functions that run them over a whole key.

/// A value that can be (part of) an ordered key.
///
/// # Consistency
///
/// For values `a` and `b` of one type, `encode(&a) < encode(&b)` exactly when `a < b` (for
/// floats: when [`f64::total_cmp`] says less), and no encoding is a prefix of another of the
/// same type. The second property lets components stand one after the other in a tuple.
pub trait KeyEncode {
    /// Appends the encoding of `self` to `out`.
    fn encode_to(&self, out: &mut Vec<u8>);
}

/// A value that can be read back from an ordered key.
pub trait KeyDecode: Sized {
    /// Takes one value off the front of what is left in `decoder`.
    ///
    /// # Errors
    /// [`DecodeError`] if no value of the type stands there.
    fn decode_from(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

/// Encodes `key` into a new vector.
///
/// ```
/// assert_eq!(sapwood::key::encode(&(7_u8, 258_u16)), [7, 1, 2]);
/// ```
pub fn encode<K: KeyEncode + ?Sized>(key: &K) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode_to(&mut out);
    out
}

/// Encodes `key` into `out`, replacing what it held: the form for loops, without an allocation
/// for each key.
///
/// ```
/// let mut bytes = Vec::new();
/// for flight in [12_u16, 1545] {
///     sapwood::key::encode_into(&("UA", flight), &mut bytes);
///     assert_eq!(bytes.len(), 6);
/// }
/// ```
pub fn encode_into<K: KeyEncode + ?Sized>(key: &K, out: &mut Vec<u8>) {
    out.clear();
    key.encode_to(out);
}

/// Decodes a whole key; bytes left over are an error.
///
/// Any bytes may be given: what is not an encoding answers a [`DecodeError`].
///
/// # Errors
/// [`DecodeError`], which says where the bytes are not an encoding of `K`.
///
/// ```
/// use sapwood::key;
///
/// let error = key::decode::<u32>(&[1, 2]).unwrap_err();
/// assert_eq!(error.to_string(), "not a key of this type: at byte 0, 4 bytes expected, 2 left");
/// ```
pub fn decode<K: KeyDecode>(bytes: &[u8]) -> Result<K, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let key = K::decode_from(&mut decoder)?;
    match decoder.rest().len() {
        0 => Ok(key),
        more => Err(decoder.error(format!("{more} more bytes than the type has"))),
    }
}

/// Bytes that are not a key of the type asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a key of this type: at byte {offset}, {what}")]
pub struct DecodeError {
    /// Where in the key the component begins that cannot be read.
    pub offset: usize,
    /// What is wrong there.
    pub what: String,
}

/// A key being read from front to back.
#[derive(Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Decoder<'a> {
    /// Reads `bytes` from their beginning: for keys whose types are known only at run time.
    ///
    /// ```
    /// use sapwood::key::{self, Decoder, KeyDecode};
    ///
    /// let bytes = key::encode(&("UA", 1545_u16));
    /// let mut decoder = Decoder::new(&bytes);
    /// assert_eq!(String::decode_from(&mut decoder)?, "UA");
    /// assert_eq!(decoder.rest(), key::encode(&1545_u16));
    /// # Ok::<(), key::DecodeError>(())
    /// ```
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// The bytes not yet read.
    ///
    /// ```
    /// # use sapwood::key::Decoder;
    /// assert_eq!(Decoder::new(&[1, 2]).rest(), [1, 2]);
    /// ```
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.offset..]
    }

    /// Takes the next `N` bytes.
    ///
    /// # Errors
    /// [`DecodeError`] if fewer bytes are left.
    ///
    /// ```
    /// # use sapwood::key::{DecodeError, Decoder};
    /// let mut decoder = Decoder::new(&[1, 2, 3]);
    /// assert_eq!(decoder.take::<2>()?, [1, 2]);
    /// assert_eq!(decoder.rest(), [3]);
    /// # Ok::<(), DecodeError>(())
    /// ```
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.rest().first_chunk::<N>() {
            Some(taken) => {
                self.offset += N;
                Ok(*taken)
            }
            None => {
                let left = self.rest().len();
                let unit = if N == 1 { "byte" } else { "bytes" };
                Err(self.error(format!("{N} {unit} expected, {left} left")))
            }
        }
    }

    /// Passes bytes that another decoder has read.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.offset += bytes;
    }

    /// The error of a decoder that begins at the present offset.
    pub(super) fn error_behind(&self, error: DecodeError) -> DecodeError {
        DecodeError { offset: self.offset + error.offset, ..error }
    }

    /// An error at the present offset.
    ///
    /// ```
    /// # use sapwood::key::Decoder;
    /// let error = Decoder::new(b"x").error("not a month");
    /// assert_eq!(error.to_string(), "not a key of this type: at byte 0, not a month");
    /// ```
    pub fn error(&self, what: impl Into<String>) -> DecodeError {
        DecodeError { offset: self.offset, what: what.into() }
    }
}

impl<K: KeyEncode + ?Sized> KeyEncode for &K {
    fn encode_to(&self, out: &mut Vec<u8>) {
        (**self).encode_to(out);
    }
}

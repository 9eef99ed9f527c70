//! Values as structs.
//!
//! [`record`](macro@record) lays the fields of a struct out in their order, without gaps, each with
//! an order of bytes in its type. From then on the struct is the description of the bytes: it is
//! the view that reads and changes them where they lie ([`Record::view`]), and the layout that
//! queries ask by ([`Record::layout`]).
//!
//! Numbers are [`U32`], [`I64`] and the like, with their least significant byte first; [`big_endian`] has the
//! others. They compare with plain numbers and are made of them by `into()`; arithmetic answers the same
//! type, and `get()` gives the plain number.
//!
//! ```
//! use sapwood::record::{I64, Record, U32, record};
//! use sapwood::{Db, aggregate};
//!
//! /// Departures of a route.
//! #[record]
//! struct Route {
//!     flights: U32,
//!     minutes: I64,
//!     carrier: [u8; 2],
//! }
//!
//! assert_eq!(Route::layout().to_string(), "flights:u32le, minutes:i64le@4, carrier:bytes2@12");
//!
//! let route = Route { flights: 2.into(), minutes: 31.into(), carrier: *b"UA" };
//! let mut bytes = route.bytes().to_vec();
//! Route::view_mut(&mut bytes)?.minutes += 9;
//! assert_eq!(Route::view(&bytes)?.minutes, 40);
//! # Ok::<(), sapwood::record::RecordLength>(())
//! ```

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Makes a struct a [`Record`].
///
/// The struct has named fields, whose types are [`FieldType`]s, and no type parameters. It becomes
/// `repr(C)`, [`Copy`], and the traits of `zerocopy` that see bytes as the struct are derived.
/// [`Clone`] and [`Copy`] are derived already; [`Debug`], [`Default`] and [`PartialEq`] may be added. A
/// field of any other type does not compile: a flag is a `u8`, a short text a `[u8; N]`. Neither does a
/// struct with a `repr` of its own.
///
/// ```compile_fail
/// use sapwood::record::record;
///
/// #[record]
/// struct Wide {
///     // In which order do its bytes lie? `sapwood::record::U32` says so.
///     flights: u32,
/// }
/// ```
#[cfg(feature = "derive")]
pub use sapwood_derive::record;

pub use crate::aggregate::Read as FieldRead;
pub use zerocopy::little_endian::{F32, F64, I16, I32, I64, I128, U16, U32, U64, U128};

/// Numbers with their most significant byte first, as network formats and some files have them.
pub mod big_endian {
    pub use zerocopy::big_endian::{F32, F64, I16, I32, I64, I128, U16, U32, U64, U128};
}

/// The crate that the generated code names.
#[doc(hidden)]
pub use zerocopy;

pub use crate::error::RecordLength;

use crate::aggregate::{Field, Form, Layout, Number, Order, Part, Place};

/// A struct that is the bytes of a value: see [`record`](macro@record), which implements it.
pub trait Record: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy {
    /// Each field: its name, its offset in bytes, and how its bytes are read.
    const FIELDS: &'static [(&'static str, usize, FieldRead)];

    /// The fields as queries know them, for
    /// [`OrderedTableOptions::fields`](crate::OrderedTableOptions::fields) and
    /// [`HashTableOptions::fields`](crate::HashTableOptions::fields).
    fn layout() -> Layout {
        let field = |(name, offset, read): &(&str, usize, FieldRead)| Field {
            name: (*name).to_owned(),
            place: Place::Value,
            part: Part::From(*offset),
            read: read.clone(),
            absent: None,
        };
        let fields = Self::FIELDS.iter().map(field).collect();
        Layout::new(fields).expect("a struct has each name once, and none is empty")
    }

    /// The record that these bytes are.
    ///
    /// # Errors
    /// [`RecordLength`] if there are more or fewer bytes than the record has.
    fn view(bytes: &[u8]) -> std::result::Result<&Self, RecordLength> {
        Self::ref_from_bytes(bytes).map_err(|_| RecordLength::of::<Self>(bytes))
    }

    /// The record that these bytes are, to be changed.
    ///
    /// # Errors
    /// As of [`view`](Self::view).
    fn view_mut(bytes: &mut [u8]) -> std::result::Result<&mut Self, RecordLength> {
        let length = RecordLength::of::<Self>(bytes);
        Self::mut_from_bytes(bytes).map_err(|_| length)
    }

    /// The bytes of the record.
    fn bytes(&self) -> &[u8] {
        IntoBytes::as_bytes(self)
    }
}

/// A type that a field of a record may have: `u8`, `i8`, `[u8; N]`, the numbers of [`record`](crate::record)
/// and those of [`big_endian`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a record",
    label = "its bytes have no order that is the same on every machine",
    note = "fields are u8, i8, the numbers of `sapwood::record` and of `sapwood::record::big_endian`, and [u8; N]"
)]
pub trait FieldType {
    /// How its bytes are read.
    const READ: FieldRead;
}

/// The bound of a field that the generated code writes down before all others, so that a field of
/// another type is refused in the words of [`FieldType`] first.
#[doc(hidden)]
#[derive(Debug)]
pub struct IsField<T: FieldType>(std::marker::PhantomData<T>);

/// Implements [`FieldType`] for numbers of a form and an order.
macro_rules! numbers {
    ($form:ident, $order:ident: $($kind:ty)*) => {
        $(impl FieldType for $kind {
            const READ: FieldRead =
                match Number::new(Form::$form, size_of::<$kind>() as u8, Order::$order) {
                    Some(number) => FieldRead::Number(number),
                    None => panic!("numbers have these widths"),
                };
        })*
    };
}

numbers!(Unsigned, Little: u8 U16 U32 U64 U128);
numbers!(Signed, Little: i8 I16 I32 I64 I128);
numbers!(Float, Little: F32 F64);
numbers!(Unsigned, Big: big_endian::U16 big_endian::U32 big_endian::U64 big_endian::U128);
numbers!(Signed, Big: big_endian::I16 big_endian::I32 big_endian::I64 big_endian::I128);
numbers!(Float, Big: big_endian::F32 big_endian::F64);

impl<const N: usize> FieldType for [u8; N] {
    const READ: FieldRead = FieldRead::Bytes(Some(N));
}

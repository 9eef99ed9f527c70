//! Rows as structs.
//!
//! The derive macro [`Row`](macro@Row) makes a struct of plain Rust types a row: its fields are columns, in
//! their order, and those that are marked `#[row(key)]` make the key. Without such a field each row gets a
//! number as its key.
//!
//! | field | column |
//! |---|---|
//! | `bool`, `i8` to `i128`, `u8` to `u128`, `f32`, `f64` | the type of that name; `i8` and `u8` of 8 bits |
//! | `String` | `text` |
//! | `Vec<u8>` | `bytes` |
//! | `[T; N]` of numbers | an array |
//! | [`Date`], [`Timestamp`] | `date`, `timestamp(us)` |
//! | `Option<T>` | a nullable column |
//!
//! ```
//! use sapwood::row::{Date, Row};
//! use sapwood::{Db, OrderedTableOptions};
//!
//! #[derive(Row, Debug, Clone, PartialEq)]
//! struct Flight {
//!     #[row(key)]
//!     carrier: String,
//!     #[row(key)]
//!     flight: u16,
//!     #[row(key)]
//!     day: Date,
//!     delay: Option<i16>,
//! }
//!
//! assert_eq!(
//!     Flight::schema().to_string(),
//!     "carrier:text, flight:u16, day:date, delay:i16?, key(carrier, flight, day)"
//! );
//! let db = Db::in_memory();
//! db.create_ordered_table("flights", OrderedTableOptions::default().schema(Flight::schema()))?;
//! let flights = db.rows("flights")?.typed::<Flight>()?;
//! let flight = Flight { carrier: "UA".to_owned(), flight: 1545, day: Date(15_706), delay: Some(11) };
//! flights.put(&flight)?;
//! assert_eq!(flights.get(("UA", 1545, Date(15_706)))?, Some(flight));
//! # Ok::<(), sapwood::Error>(())
//! ```

use crate::schema::{Error, Precision, Result, Schema, Type, Value};

/// Makes a struct a [`Row`](trait@Row): see [`row`](crate::row).
///
/// The struct has named fields, whose types are [`RowField`]s, and no type parameters. Fields of the key
/// are marked `#[row(key)]`; they sort in the order in which they stand.
///
/// ```compile_fail
/// use sapwood::row::Row;
///
/// #[derive(Row)]
/// struct Wide {
///     // A number of how many bits? `u64` says so.
///     flights: usize,
/// }
/// ```
#[cfg(feature = "derive")]
pub use sapwood_derive::Row;

/// A struct that is a row of a table: see [`Row`](macro@Row), which implements it.
pub trait Row: Sized {
    /// The fields of the key: one alone, several as a tuple, and the number of a row where there is none.
    type Key<'k>;

    /// The values of a key.
    fn key_values<'k>(key: Self::Key<'k>) -> Vec<Value<'k>>;

    /// The columns: a field each.
    fn schema() -> Schema;

    /// A value for each column.
    fn to_values(&self) -> Vec<Value<'_>>;

    /// The struct with a value for each column.
    ///
    /// # Errors
    /// [`Error::Value`] for a value that the field cannot have; [`Error::Schema`] if there are fewer values than
    /// fields.
    fn from_values<'a>(values: impl IntoIterator<Item = Value<'a>>) -> Result<Self>;
}

/// A type that a field of a row may have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a row",
    label = "no column has such values",
    note = "fields are bool, numbers of a fixed width, String, Vec<u8>, arrays of numbers, `sapwood::row::Date`, \
            `sapwood::row::Timestamp`, and Option of these"
)]
pub trait RowField: Sized {
    /// Whether the value may be missing.
    const NULLABLE: bool = false;

    /// The type of the column.
    fn kind() -> Type;

    /// The field as a value.
    fn to_value(&self) -> Value<'_>;

    /// The value as a field, if it is one.
    fn of_value(value: Value<'_>) -> Option<Self>;

    /// The field in a key that is searched: `&str` for a `String`, and most types by themselves.
    type InKey<'k>;

    /// The value of a field in a key.
    fn key_value<'k>(field: Self::InKey<'k>) -> Value<'k>;
}

/// A number that the items of an array may be.
pub trait RowNumber: RowField {}

/// A day, as so many since 1970-01-01.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i32);

/// A moment in UTC, in microseconds since 1970-01-01.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

macro_rules! whole_numbers {
    ($variant:ident: $($kind:ty)*) => {
        $(
            impl RowField for $kind {
                fn kind() -> Type {
                    Type::$variant(<$kind>::BITS as u8)
                }

                fn to_value(&self) -> Value<'_> {
                    Value::from(*self)
                }

                fn of_value(value: Value<'_>) -> Option<Self> {
                    match value {
                        Value::Int(value) => Self::try_from(value).ok(),
                        Value::Huge(value) => Self::try_from(value).ok(),
                        _ => None,
                    }
                }

                type InKey<'k> = Self;

                fn key_value<'k>(field: Self::InKey<'k>) -> Value<'k> {
                    field.to_value().into_owned()
                }
            }

            impl RowNumber for $kind {}
        )*
    };
}

whole_numbers!(Int: i8 i16 i32 i64 i128);
whole_numbers!(UInt: u8 u16 u32 u64 u128);

impl RowField for bool {
    fn kind() -> Type {
        Type::Bool
    }

    fn to_value(&self) -> Value<'_> {
        Value::Bool(*self)
    }

    fn of_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    type InKey<'k> = Self;

    fn key_value<'k>(field: Self::InKey<'k>) -> Value<'k> {
        field.to_value().into_owned()
    }
}

impl RowField for f64 {
    fn kind() -> Type {
        Type::F64
    }

    fn to_value(&self) -> Value<'_> {
        Value::Float(*self)
    }

    fn of_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Float(value) => Some(value),
            _ => None,
        }
    }

    type InKey<'k> = Self;

    fn key_value<'k>(field: Self::InKey<'k>) -> Value<'k> {
        field.to_value().into_owned()
    }
}

impl RowField for f32 {
    fn kind() -> Type {
        Type::F32
    }

    fn to_value(&self) -> Value<'_> {
        Value::Float(f64::from(*self))
    }

    fn of_value(value: Value<'_>) -> Option<Self> {
        f64::of_value(value).map(|value| value as f32)
    }

    type InKey<'k> = Self;

    fn key_value<'k>(field: Self::InKey<'k>) -> Value<'k> {
        field.to_value().into_owned()
    }
}

impl RowNumber for f32 {}
impl RowNumber for f64 {}

impl RowField for String {
    fn kind() -> Type {
        Type::Text
    }

    fn to_value(&self) -> Value<'_> {
        Value::text(self.as_str())
    }

    fn of_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }

    type InKey<'k> = &'k str;

    fn key_value<'k>(field: Self::InKey<'k>) -> Value<'k> {
        Value::text(field)
    }
}

impl RowField for Vec<u8> {
    fn kind() -> Type {
        Type::Bytes
    }

    fn to_value(&self) -> Value<'_> {
        Value::Bytes(self.as_slice().into())
    }

    fn of_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes.into_owned()),
            _ => None,
        }
    }

    type InKey<'k> = &'k [u8];

    fn key_value<'k>(field: Self::InKey<'k>) -> Value<'k> {
        Value::Bytes(field.into())
    }
}

impl RowField for Date {
    fn kind() -> Type {
        Type::Date
    }

    fn to_value(&self) -> Value<'_> {
        Value::Date(self.0)
    }

    fn of_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Date(days) => Some(Date(days)),
            _ => None,
        }
    }

    type InKey<'k> = Self;

    fn key_value<'k>(field: Self::InKey<'k>) -> Value<'k> {
        field.to_value().into_owned()
    }
}

impl RowField for Timestamp {
    fn kind() -> Type {
        Type::Timestamp(Precision::Micros)
    }

    fn to_value(&self) -> Value<'_> {
        Value::Timestamp { ticks: self.0, precision: Precision::Micros }
    }

    fn of_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Timestamp { ticks, precision: Precision::Micros } => Some(Timestamp(ticks)),
            _ => None,
        }
    }

    type InKey<'k> = Self;

    fn key_value<'k>(field: Self::InKey<'k>) -> Value<'k> {
        field.to_value().into_owned()
    }
}

impl<T: RowNumber, const N: usize> RowField for [T; N] {
    /// An array that is longer than any can be is refused with the schema.
    fn kind() -> Type {
        Type::Array(Box::new(T::kind()), u16::try_from(N).unwrap_or(u16::MAX))
    }

    fn to_value(&self) -> Value<'_> {
        Value::Array(self.iter().map(T::to_value).collect())
    }

    fn of_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Array(items) => {
                let items: Option<Vec<T>> = items.into_iter().map(T::of_value).collect();
                items?.try_into().ok()
            }
            _ => None,
        }
    }

    type InKey<'k> = [T; N];

    fn key_value<'k>(field: Self::InKey<'k>) -> Value<'k> {
        field.to_value().into_owned()
    }
}

impl<T: RowField> RowField for Option<T> {
    const NULLABLE: bool = true;

    fn kind() -> Type {
        T::kind()
    }

    fn to_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, T::to_value)
    }

    fn of_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::of_value(value).map(Some),
        }
    }

    type InKey<'k> = Option<T::InKey<'k>>;

    fn key_value<'k>(field: Self::InKey<'k>) -> Value<'k> {
        field.map_or(Value::Null, T::key_value)
    }
}

/// The next field of a struct, for the generated code.
///
/// ```
/// let mut values = [sapwood::schema::Value::Int(7)].into_iter();
/// assert_eq!(sapwood::row::field::<u8>("a", &mut values), Ok(7));
/// ```
#[doc(hidden)]
pub fn field<'a, T: RowField>(
    name: &str,
    values: &mut impl Iterator<Item = Value<'a>>,
) -> Result<T> {
    let missing = || Error::Schema(format!("there is no value for the field `{name}`"));
    let value = values.next().ok_or_else(missing)?;
    let shown = value.to_string();
    T::of_value(value).ok_or_else(|| Error::Value {
        column: name.to_owned(),
        wanted: T::kind().to_string(),
        what: format!("the field cannot be {shown}"),
    })
}

/// The schema of a struct, for the generated code: of each field its name, its type, whether it may be missing.
///
/// ```
/// let fields = [("a", sapwood::schema::Type::Bool, false)];
/// assert_eq!(sapwood::row::schema_of(&fields, &["a"]).to_string(), "a:bool, key(a)");
/// ```
#[doc(hidden)]
pub fn schema_of(fields: &[(&str, Type, bool)], key: &[&str]) -> Schema {
    let mut builder = Schema::builder();
    for (name, kind, nullable) in fields {
        builder = match nullable {
            true => builder.nullable(*name, kind.clone()),
            false => builder.column(*name, kind.clone()),
        };
    }
    let schema = builder.key(key.iter().copied()).build();
    schema.unwrap_or_else(|error| panic!("the struct is no row: {error}"))
}

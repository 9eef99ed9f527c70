//! The types that expressions have: fewer than columns, since whole numbers of up to 64 bits are one.

use std::fmt;

use sapwood_schema::{DECIMAL_DIGITS_MAX, Data, Precision, Strings, Type, Value};

/// The type of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of `null` alone.
    Null,
    Bool,
    /// Whole numbers of 64 bits.
    Int,
    /// Whole numbers of 128 bits.
    Big,
    /// Whole numbers of 128 bits without a sign.
    Huge,
    /// Floats of 32 bits, which lie in vectors as doubles, and are computed as such.
    Real,
    Float,
    /// Exact numbers with so many digits behind the point.
    Decimal(u8),
    Date,
    Timestamp(Precision),
    Text,
    Bytes,
    /// Of this type of columns.
    Array(Type),
}

impl Kind {
    /// That of a column.
    pub(crate) fn of_type(kind: &Type) -> Kind {
        match kind {
            Type::Bool => Kind::Bool,
            Type::UInt(64) | Type::Int(128) => Kind::Big,
            Type::UInt(128) => Kind::Huge,
            Type::Int(_) | Type::UInt(_) => Kind::Int,
            Type::F32 => Kind::Real,
            Type::F64 => Kind::Float,
            Type::Decimal { scale, .. } => Kind::Decimal(*scale),
            Type::Date => Kind::Date,
            Type::Timestamp(precision) => Kind::Timestamp(*precision),
            Type::Text => Kind::Text,
            Type::Bytes => Kind::Bytes,
            array => Kind::Array(array.clone()),
        }
    }

    /// The type of a column of an answer.
    pub(crate) fn to_type(&self) -> Type {
        match self {
            Kind::Null | Kind::Text => Type::Text,
            Kind::Bool => Type::Bool,
            Kind::Int => Type::Int(64),
            Kind::Big => Type::Int(128),
            Kind::Huge => Type::UInt(128),
            Kind::Real => Type::F32,
            Kind::Float => Type::F64,
            Kind::Decimal(scale) => Type::Decimal { digits: DECIMAL_DIGITS_MAX, scale: *scale },
            Kind::Date => Type::Date,
            Kind::Timestamp(precision) => Type::Timestamp(*precision),
            Kind::Bytes => Type::Bytes,
            Kind::Array(kind) => kind.clone(),
        }
    }

    /// That of a value.
    pub(crate) fn of_value(value: &Value<'_>) -> Kind {
        match value {
            Value::Bool(_) => Kind::Bool,
            Value::Int(value) if i64::try_from(*value).is_ok() => Kind::Int,
            Value::Int(_) => Kind::Big,
            Value::Huge(_) => Kind::Huge,
            Value::Float(_) => Kind::Float,
            Value::Decimal { scale, .. } => Kind::Decimal(*scale),
            Value::Date(_) => Kind::Date,
            Value::Timestamp { precision, .. } => Kind::Timestamp(*precision),
            Value::Text(_) => Kind::Text,
            Value::Bytes(_) => Kind::Bytes,
            _ => Kind::Null,
        }
    }

    /// No values yet, in the representation that this kind has.
    pub(crate) fn data(&self) -> Data {
        match self {
            Kind::Bool => Data::Bool(Vec::new()),
            Kind::Int | Kind::Date | Kind::Timestamp(_) => Data::Int(Vec::new()),
            Kind::Big | Kind::Decimal(_) => Data::Big(Vec::new()),
            Kind::Huge => Data::Huge(Vec::new()),
            Kind::Real | Kind::Float => Data::Float(Vec::new()),
            Kind::Null | Kind::Text | Kind::Bytes | Kind::Array(_) => Data::Bytes(Strings::new()),
        }
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(
            self,
            Kind::Int | Kind::Big | Kind::Huge | Kind::Real | Kind::Float | Kind::Decimal(_)
        )
    }

    pub(crate) fn is_time(&self) -> bool {
        matches!(self, Kind::Date | Kind::Timestamp(_))
    }

    /// Whether values sort.
    pub(crate) fn is_ordered(&self) -> bool {
        !matches!(self, Kind::Array(_))
    }

    /// The kind that both become where they meet: in comparisons, sums, branches of a case.
    pub(crate) fn common(&self, other: &Kind) -> Option<Kind> {
        use Kind::{Big, Date, Decimal, Float, Huge, Int, Null, Real, Timestamp};
        Some(match (self, other) {
            (left, right) if left == right => left.clone(),
            (Null, kind) | (kind, Null) => kind.clone(),
            (Float, kind) | (kind, Float) if kind.is_number() => Float,
            (Real, kind) | (kind, Real) if kind.is_number() => Real,
            (Decimal(left), Decimal(right)) => Decimal(*left.max(right)),
            (Decimal(scale), Int | Big | Huge) | (Int | Big | Huge, Decimal(scale)) => {
                Decimal(*scale)
            }
            (Int, Big) | (Big, Int) => Big,
            // What is below zero is refused there.
            (Int | Big, Huge) | (Huge, Int | Big) => Huge,
            (Timestamp(left), Timestamp(right)) => Timestamp(*left.max(right)),
            (Date, Timestamp(precision)) | (Timestamp(precision), Date) => Timestamp(*precision),
            _ => return None,
        })
    }
}

/// As SQL calls it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Null => "null",
            Kind::Bool => "boolean",
            Kind::Int => "bigint",
            Kind::Big => "hugeint",
            Kind::Huge => "uhugeint",
            Kind::Real => "real",
            Kind::Float => "double",
            Kind::Decimal(scale) => {
                return write!(f, "decimal({DECIMAL_DIGITS_MAX},{scale})");
            }
            Kind::Date => "date",
            Kind::Timestamp(_) => "timestamp",
            Kind::Text => "text",
            Kind::Bytes => "bytes",
            Kind::Array(kind) => return kind.fmt(f),
        })
    }
}

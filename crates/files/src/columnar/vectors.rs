//! Arrays of Arrow as vectors.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayAccessor};
use arrow_schema::{DataType, TimeUnit};
use sapwood_schema::{DAY_SECONDS, DECIMAL_DIGITS_MAX, Data, Precision, Strings, Type, Vector};

use super::nested::{arrays, is_json, texts};

/// The type of a column whose arrays are of this type; none if no column is.
pub(crate) fn kind_of(array: &DataType) -> Option<Type> {
    Some(match array {
        DataType::Boolean => Type::Bool,
        DataType::Int8 => Type::Int(8),
        DataType::Int16 => Type::Int(16),
        DataType::Int32 => Type::Int(32),
        DataType::Int64 => Type::Int(64),
        DataType::UInt8 => Type::UInt(8),
        DataType::UInt16 => Type::UInt(16),
        DataType::UInt32 => Type::UInt(32),
        DataType::UInt64 => Type::UInt(64),
        DataType::Float16 | DataType::Float32 => Type::F32,
        DataType::Float64 => Type::F64,
        // As whole numbers of 128 bits without a sign are written.
        DataType::Decimal256(39, 0) => Type::UInt(128),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => {
            let scale = u8::try_from(*scale).ok().filter(|scale| scale <= digits)?;
            match *digits <= DECIMAL_DIGITS_MAX {
                true => Type::Decimal { digits: *digits, scale },
                false => Type::Text,
            }
        }
        DataType::FixedSizeList(item, len) => match array_kind(item.data_type(), *len) {
            Some(kind) => kind,
            None => return is_json(array).then_some(Type::Text),
        },
        // Where all have as many items, they become arrays later.
        DataType::List(_) | DataType::LargeList(_) | DataType::Map(..) => {
            return is_json(array).then_some(Type::Text);
        }
        DataType::Date32 | DataType::Date64 => Type::Date,
        DataType::Time32(_) | DataType::Time64(_) => Type::Text,
        DataType::Duration(_) => Type::Int(64),
        // Their ticks are those of UTC, whatever zone is named.
        DataType::Timestamp(unit, _) => Type::Timestamp(match unit {
            TimeUnit::Second => Precision::Seconds,
            TimeUnit::Millisecond => Precision::Millis,
            TimeUnit::Microsecond => Precision::Micros,
            TimeUnit::Nanosecond => Precision::Nanos,
        }),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => Type::Text,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => Type::Bytes,
        DataType::Dictionary(_, values) => return kind_of(values),
        _ => return None,
    })
}

/// The type of lists of a fixed length; none if their items have no fixed width, or are too many.
fn array_kind(item: &DataType, len: i32) -> Option<Type> {
    let kind = Type::Array(Box::new(kind_of(item)?), u16::try_from(len).ok()?);
    kind.to_string().parse().ok()
}

/// The notice of a column whose values are read as others.
pub(crate) fn read_as(array: &DataType) -> Option<String> {
    Some(match array {
        DataType::Duration(unit) => format!("is a duration: a number of {}", words(*unit)),
        DataType::Time32(_) | DataType::Time64(_) => {
            "is a time of day: a text as 05:15:00".to_owned()
        }
        DataType::Decimal256(digits, _) if kind_of(array) == Some(Type::Text) => format!(
            "has {digits} digits, more than a decimal here: a text; cast(... as double) computes with it"
        ),
        _ => return None,
    })
}

fn words(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    }
}

/// The values of an array, but for those that are absent.
pub(crate) fn vector_of(
    array: &dyn Array,
    kind: &Type,
    is_absent: &dyn Fn(usize) -> bool,
) -> Result<Vector, String> {
    let known = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    let is_known = |at: usize| known.as_ref().is_none_or(|nulls| nulls.is_valid(at));
    let nulls: Vec<bool> = (0..array.len()).map(|at| !is_known(at) || is_absent(at)).collect();
    let nulls = nulls.contains(&true).then_some(nulls);
    let is_null = |at: usize| nulls.as_ref().is_some_and(|nulls| nulls[at]);
    let data = match array.data_type() {
        DataType::Null => Data::Bytes((0..array.len()).map(|_| &b""[..]).collect()),
        DataType::Boolean => Data::Bool(array.as_boolean().values().iter().collect()),
        DataType::Int8 => whole::<Int8Type>(array),
        DataType::Int16 => whole::<Int16Type>(array),
        DataType::Int32 => whole::<Int32Type>(array),
        DataType::Int64 => whole::<Int64Type>(array),
        DataType::UInt8 => whole::<UInt8Type>(array),
        DataType::UInt16 => whole::<UInt16Type>(array),
        DataType::UInt32 => whole::<UInt32Type>(array),
        DataType::UInt64 => Data::Big(
            array.as_primitive::<UInt64Type>().values().iter().map(|it| i128::from(*it)).collect(),
        ),
        DataType::Float32 => Data::Float(
            array.as_primitive::<Float32Type>().values().iter().map(|it| f64::from(*it)).collect(),
        ),
        DataType::Float64 => Data::Float(array.as_primitive::<Float64Type>().values().to_vec()),
        DataType::Float16 => Data::Float(
            array.as_primitive::<Float16Type>().values().iter().map(|it| f64::from(*it)).collect(),
        ),
        DataType::Decimal32(..) => decimals::<Decimal32Type>(array, kind, is_null)?,
        DataType::Decimal64(..) => decimals::<Decimal64Type>(array, kind, is_null)?,
        DataType::Decimal128(..) => decimals::<Decimal128Type>(array, kind, is_null)?,
        DataType::Decimal256(_, scale) => wide_decimals(array, *scale, kind, is_null)?,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)
            if matches!(kind, Type::Array(..)) =>
        {
            arrays(array, kind, is_null)?
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::Map(..) => texts(array, is_null)?,
        DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Timestamp(..) => moments(array),
        DataType::Utf8 => strings(array.as_string::<i32>(), is_null),
        DataType::LargeUtf8 => strings(array.as_string::<i64>(), is_null),
        DataType::Utf8View => strings(array.as_string_view(), is_null),
        DataType::Binary => strings(array.as_binary::<i32>(), is_null),
        DataType::LargeBinary => strings(array.as_binary::<i64>(), is_null),
        DataType::BinaryView => strings(array.as_binary_view(), is_null),
        DataType::FixedSizeBinary(_) => strings(array.as_fixed_size_binary(), is_null),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let words = vector_of(dictionary.values().as_ref(), kind, &|_| false)?;
            let keys = if words.is_empty() { Vec::new() } else { dictionary.normalized_keys() };
            let mut values = words.emptied();
            for at in 0..array.len() {
                match keys.get(at).filter(|_| !is_null(at)) {
                    Some(key) => values.push_from(&words, *key),
                    None => values.push_null(),
                }
            }
            values.data
        }
        other => unreachable!("columns of {other} are left out"),
    };
    Ok(Vector { data, nulls })
}

/// Decimals of 256 bits: as text, decimals or whole numbers of 128 bits without a sign.
fn wide_decimals(
    array: &dyn Array,
    scale: i8,
    kind: &Type,
    is_null: impl Fn(usize) -> bool,
) -> Result<Data, String> {
    let numbers = array.as_primitive::<Decimal256Type>().values();
    match kind {
        Type::Text => {
            let scale = usize::try_from(scale).unwrap_or_default();
            let texts = numbers.iter().map(|number| pointed(&number.to_string(), scale));
            Ok(Data::Bytes(texts.collect::<Vec<_>>().iter().map(|text| text.as_bytes()).collect()))
        }
        Type::Decimal { .. } => {
            units_of(numbers.iter().map(|number| number.to_i128()), kind, is_null)
        }
        _ => {
            let numbers = numbers.iter().enumerate().map(|(at, number)| match number.to_parts() {
                (low, 0) => Ok(low),
                _ if is_null(at) => Ok(0),
                _ => Err(format!("{number} is no {kind}")),
            });
            Ok(Data::Huge(numbers.collect::<Result<_, _>>()?))
        }
    }
}

/// Days, moments, durations, and times of day as texts.
fn moments(array: &dyn Array) -> Data {
    match array.data_type() {
        DataType::Date32 => whole::<Date32Type>(array),
        DataType::Date64 => {
            let millis = array.as_primitive::<Date64Type>().values().iter();
            Data::Int(millis.map(|millis| millis.div_euclid(DAY_SECONDS * 1_000)).collect())
        }
        DataType::Time32(TimeUnit::Second) => times(&whole::<Time32SecondType>(array), 1),
        DataType::Time32(_) => times(&whole::<Time32MillisecondType>(array), 1_000),
        DataType::Time64(TimeUnit::Microsecond) => {
            times(&whole::<Time64MicrosecondType>(array), 1_000_000)
        }
        DataType::Time64(_) => times(&whole::<Time64NanosecondType>(array), 1_000_000_000),
        DataType::Duration(TimeUnit::Second) => whole::<DurationSecondType>(array),
        DataType::Duration(TimeUnit::Millisecond) => whole::<DurationMillisecondType>(array),
        DataType::Duration(TimeUnit::Microsecond) => whole::<DurationMicrosecondType>(array),
        DataType::Duration(TimeUnit::Nanosecond) => whole::<DurationNanosecondType>(array),
        DataType::Timestamp(TimeUnit::Second, _) => whole::<TimestampSecondType>(array),
        DataType::Timestamp(TimeUnit::Millisecond, _) => whole::<TimestampMillisecondType>(array),
        DataType::Timestamp(TimeUnit::Microsecond, _) => whole::<TimestampMicrosecondType>(array),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => whole::<TimestampNanosecondType>(array),
        other => unreachable!("{other} is no time"),
    }
}

fn decimals<T: ArrowPrimitiveType<Native: Into<i128>>>(
    array: &dyn Array,
    kind: &Type,
    is_null: impl Fn(usize) -> bool,
) -> Result<Data, String> {
    let units = array.as_primitive::<T>().values().iter();
    units_of(units.map(|units| Some((*units).into())), kind, is_null)
}

/// Decimals of a type, by their units; none where they have more than 128 bits.
fn units_of(
    units: impl Iterator<Item = Option<i128>>,
    kind: &Type,
    is_null: impl Fn(usize) -> bool,
) -> Result<Data, String> {
    let units = units.enumerate().map(|(at, units)| match (is_null(at), units) {
        (true, _) => Ok(0),
        (false, Some(units)) => Ok(units),
        (false, None) => Err(format!("a number is no {kind}")),
    });
    let units = units.collect::<Result<Vec<i128>, _>>()?;
    match Data::of_type(kind) {
        Data::Int(_) => {
            let units = units.iter().map(|units| {
                i64::try_from(*units).map_err(|_| format!("the units {units} are no {kind}"))
            });
            Ok(Data::Int(units.collect::<Result<_, _>>()?))
        }
        _ => Ok(Data::Big(units)),
    }
}

/// Digits with a point in front of the last ones.
fn pointed(digits: &str, scale: usize) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// Times of day as texts, which sort as they do.
fn times(ticks: &Data, per_second: i64) -> Data {
    let Data::Int(ticks) = ticks else { unreachable!("ticks are whole numbers") };
    let mut texts = Strings::new();
    for ticks in ticks {
        let (second, fraction) = (ticks.div_euclid(per_second), ticks.rem_euclid(per_second));
        let mut text = format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60);
        if fraction > 0 {
            let digits = per_second.ilog10() as usize;
            let fraction = format!("{fraction:0digits$}");
            text.extend([".", fraction.trim_end_matches('0')]);
        }
        texts.push(text.as_bytes());
    }
    Data::Bytes(texts)
}

fn whole<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array) -> Data {
    Data::Int(array.as_primitive::<T>().values().iter().map(|value| (*value).into()).collect())
}

fn strings<'b, A>(array: A, is_null: impl Fn(usize) -> bool) -> Data
where
    A: ArrayAccessor<Item: AsRef<[u8]>> + 'b,
{
    let mut strings = Strings::new();
    for at in 0..array.len() {
        if is_null(at) {
            strings.push(b"");
        } else {
            strings.push(array.value(at).as_ref());
        }
    }
    Data::Bytes(strings)
}

//! Arrays of Arrow as vectors.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayAccessor, FixedSizeListArray};
use arrow_schema::{DataType, TimeUnit};
use sapwood::schema::{DECIMAL_DIGITS_MAX, Precision, Type, Value};
use sapwood::sql::{Data, Strings, Vector};

/// The type of a column whose arrays are of this type; none if no column is.
pub(super) fn kind_of(array: &DataType) -> Option<Type> {
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
        DataType::Float32 => Type::F32,
        DataType::Float64 => Type::F64,
        DataType::Decimal128(digits, scale) => {
            let scale = u8::try_from(*scale).ok().filter(|scale| scale <= digits)?;
            if *digits > DECIMAL_DIGITS_MAX {
                return None;
            }
            Type::Decimal { digits: *digits, scale }
        }
        // As whole numbers of 128 bits without a sign are written.
        DataType::Decimal256(39, 0) => Type::UInt(128),
        DataType::FixedSizeList(item, len) => {
            let kind = Type::Array(Box::new(kind_of(item.data_type())?), u16::try_from(*len).ok()?);
            // There is a limit, and items have a fixed width.
            return kind.to_string().parse().ok();
        }
        DataType::Date32 => Type::Date,
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
        DataType::Dictionary(_, values) => match kind_of(values)? {
            kind @ (Type::Text | Type::Bytes) if **values != DataType::Null => kind,
            _ => return None,
        },
        _ => return None,
    })
}

/// The values of an array.
pub(super) fn vector_of(array: &dyn Array, kind: &Type) -> Result<Vector, String> {
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    let nulls: Option<Vec<bool>> = nulls.map(|nulls| nulls.iter().map(|valid| !valid).collect());
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
        DataType::Decimal128(..) => {
            let units = array.as_primitive::<Decimal128Type>().values();
            match Data::of_type(kind) {
                Data::Int(_) => {
                    let units = units.iter().enumerate().map(|(at, units)| match is_null(at) {
                        true => Ok(0),
                        false => i64::try_from(*units)
                            .map_err(|_| format!("the units {units} are no {kind}")),
                    });
                    Data::Int(units.collect::<Result<_, _>>()?)
                }
                _ => Data::Big(units.to_vec()),
            }
        }
        DataType::Decimal256(..) => {
            let numbers = array.as_primitive::<Decimal256Type>().values();
            let numbers = numbers.iter().enumerate().map(|(at, number)| match number.to_parts() {
                (low, 0) => Ok(low),
                _ if is_null(at) => Ok(0),
                _ => Err(format!("{number} is no {kind}")),
            });
            Data::Huge(numbers.collect::<Result<_, _>>()?)
        }
        DataType::FixedSizeList(..) => arrays(array.as_fixed_size_list(), kind, is_null)?,
        DataType::Date32 => whole::<Date32Type>(array),
        DataType::Timestamp(TimeUnit::Second, _) => whole::<TimestampSecondType>(array),
        DataType::Timestamp(TimeUnit::Millisecond, _) => whole::<TimestampMillisecondType>(array),
        DataType::Timestamp(TimeUnit::Microsecond, _) => whole::<TimestampMicrosecondType>(array),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => whole::<TimestampNanosecondType>(array),
        DataType::Utf8 => strings(array.as_string::<i32>(), is_null),
        DataType::LargeUtf8 => strings(array.as_string::<i64>(), is_null),
        DataType::Utf8View => strings(array.as_string_view(), is_null),
        DataType::Binary => strings(array.as_binary::<i32>(), is_null),
        DataType::LargeBinary => strings(array.as_binary::<i64>(), is_null),
        DataType::BinaryView => strings(array.as_binary_view(), is_null),
        DataType::FixedSizeBinary(_) => strings(array.as_fixed_size_binary(), is_null),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let words = vector_of(dictionary.values().as_ref(), kind)?;
            let Data::Bytes(words) = words.data else {
                unreachable!("such dictionaries are left out")
            };
            let keys = if words.is_empty() { Vec::new() } else { dictionary.normalized_keys() };
            let mut values = Strings::new();
            for at in 0..array.len() {
                let word = keys.get(at).filter(|_| !is_null(at)).map(|key| words.get(*key));
                values.push(word.unwrap_or_default());
            }
            Data::Bytes(values)
        }
        other => unreachable!("columns of {other} are left out"),
    };
    Ok(Vector { data, nulls })
}

/// Lists of one length, as rows have them.
fn arrays(
    lists: &FixedSizeListArray,
    kind: &Type,
    is_null: impl Fn(usize) -> bool,
) -> Result<Data, String> {
    let Type::Array(item, _) = kind else { unreachable!("lists are arrays") };
    let mut vector = Vector::of_type(kind);
    for at in (0..lists.len()).filter(|at| !is_null(*at)) {
        let items = vector_of(lists.value(at).as_ref(), item)?;
        let items = (0..items.len()).map(|place| match items.value(place, item) {
            Ok(Value::Null) => Err(format!("an array of {kind} has no nulls inside")),
            Ok(value) => Ok(value.into_owned()),
            Err(error) => Err(error.to_string()),
        });
        let items = Value::Array(items.collect::<Result<_, _>>()?);
        while vector.len() < at {
            vector.push_null();
        }
        vector.push_array(&items, kind);
    }
    while vector.len() < lists.len() {
        vector.push_null();
    }
    Ok(vector.data)
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

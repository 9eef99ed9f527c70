//! Columns of Arrow, each as a whole.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Float16Type, Float32Type,
    Float64Type, GenericStringType, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    AnyDictionaryArray, Array, ArrowPrimitiveType, GenericByteArray, GenericListArray,
    OffsetSizeTrait, PrimitiveArray,
};
use arrow_schema::{DataType, TimeUnit};

use crate::input::batch::{Column, Nulls, Values, is_null};
use crate::input::budget::Budget;
use crate::value::{Value, canonical};

/// What is wrong with a column.
type Result<T> = std::result::Result<T, String>;

const DAY_MILLIS: i64 = 86_400_000;

pub(super) fn read(array: &dyn Array, budget: &mut Budget) -> Result<Values> {
    Ok(match array.data_type() {
        DataType::Null => all_null(array.len(), budget)?,
        DataType::Boolean => {
            let values = array.as_boolean();
            let said = |value| if value { "true" } else { "false" };
            texts(values.len(), values.iter().map(|value| value.map(said)), budget)?
        }
        DataType::Int8 => longs(array.as_primitive::<Int8Type>(), i64::from),
        DataType::Int16 => longs(array.as_primitive::<Int16Type>(), i64::from),
        DataType::Int32 => longs(array.as_primitive::<Int32Type>(), i64::from),
        DataType::Int64 => longs(array.as_primitive::<Int64Type>(), |value| value),
        DataType::UInt8 => longs(array.as_primitive::<UInt8Type>(), i64::from),
        DataType::UInt16 => longs(array.as_primitive::<UInt16Type>(), i64::from),
        DataType::UInt32 => longs(array.as_primitive::<UInt32Type>(), i64::from),
        DataType::UInt64 => whole(array.as_primitive::<UInt64Type>(), budget, |value| {
            i64::try_from(value).map_or(Value::Double(value as f64), Value::Long)
        })?,
        DataType::Float16 => doubles(array.as_primitive::<Float16Type>(), |value| value.to_f64()),
        DataType::Float32 => doubles(array.as_primitive::<Float32Type>(), f64::from),
        DataType::Float64 => doubles(array.as_primitive::<Float64Type>(), |value| value),
        DataType::Decimal32(_, scale) => {
            decimals(array.as_primitive::<Decimal32Type>(), *scale, budget)?
        }
        DataType::Decimal64(_, scale) => {
            decimals(array.as_primitive::<Decimal64Type>(), *scale, budget)?
        }
        DataType::Decimal128(_, scale) => {
            decimals(array.as_primitive::<Decimal128Type>(), *scale, budget)?
        }
        DataType::Timestamp(TimeUnit::Second, _) => {
            times(array.as_primitive::<TimestampSecondType>(), |time| time.checked_mul(1_000))?
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            longs(array.as_primitive::<TimestampMillisecondType>(), |time| time)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            longs(array.as_primitive::<TimestampMicrosecondType>(), |time| time.div_euclid(1_000))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let floor = |time: i64| time.div_euclid(1_000_000);
            longs(array.as_primitive::<TimestampNanosecondType>(), floor)
        }
        DataType::Date32 => {
            longs(array.as_primitive::<Date32Type>(), |day| i64::from(day) * DAY_MILLIS)
        }
        DataType::Date64 => longs(array.as_primitive::<Date64Type>(), |time| time),
        DataType::Utf8 => strings(array.as_string::<i32>(), budget)?,
        DataType::LargeUtf8 => strings(array.as_string::<i64>(), budget)?,
        DataType::Utf8View => texts(array.len(), array.as_string_view().iter(), budget)?,
        DataType::Binary => bytes(array.len(), array.as_binary::<i32>().iter(), budget)?,
        DataType::LargeBinary => bytes(array.len(), array.as_binary::<i64>().iter(), budget)?,
        DataType::BinaryView => bytes(array.len(), array.as_binary_view().iter(), budget)?,
        DataType::FixedSizeBinary(_) => {
            bytes(array.len(), array.as_fixed_size_binary().iter(), budget)?
        }
        DataType::Dictionary(..) => dictionary(array.as_any_dictionary(), budget)?,
        DataType::List(_) => list(array.as_list::<i32>(), budget)?,
        DataType::LargeList(_) => list(array.as_list::<i64>(), budget)?,
        DataType::FixedSizeList(_, len) => {
            let (len, values) = (*len as usize, array.as_fixed_size_list().values());
            let ranges = (0..array.len()).map(|row| (row * len, (row + 1) * len));
            lists(array, values.as_ref(), ranges, budget)?
        }
        _ => {
            let why = "cast it to numbers, texts, bytes, times, or lists of them";
            return Err(why.to_owned());
        }
    })
}

fn nulls(array: &dyn Array) -> Nulls {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0)?;
    Some(nulls.iter().map(|is_valid| !is_valid).collect())
}

/// The values of a column, with `empty` where they are null.
fn each<T: ArrowPrimitiveType, V: Copy>(
    array: &PrimitiveArray<T>,
    nulls: &Nulls,
    empty: V,
    read: impl Fn(T::Native) -> V,
) -> Vec<V> {
    let values = array.values().iter();
    match nulls {
        None => values.map(|value| read(*value)).collect(),
        Some(nulls) => {
            let values = values.zip(nulls);
            values.map(|(value, is_null)| if *is_null { empty } else { read(*value) }).collect()
        }
    }
}

fn longs<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    read: impl Fn(T::Native) -> i64,
) -> Values {
    let nulls = nulls(array);
    Values::Longs { values: each(array, &nulls, 0, read), nulls }
}

fn doubles<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    read: impl Fn(T::Native) -> f64,
) -> Values {
    let nulls = nulls(array);
    Values::Doubles { values: each(array, &nulls, 0.0, |value| canonical(read(value))), nulls }
}

/// Longs that may be too large.
fn times<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    read: impl Fn(T::Native) -> Option<i64>,
) -> Result<Values> {
    let nulls = nulls(array);
    let values = each(array, &nulls, Some(0), read);
    if let Some(row) = values.iter().position(Option::is_none) {
        return Err(format!("the time of row {row} is beyond 64 bits of milliseconds"));
    }
    Ok(Values::Longs { values: values.into_iter().flatten().collect(), nulls })
}

/// Longs where all values are some, else each value for itself.
fn whole<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    budget: &mut Budget,
    read: impl Fn(T::Native) -> Value<'static>,
) -> Result<Values> {
    let nulls = nulls(array);
    let long = |value| match read(value) {
        Value::Long(value) => Some(value),
        _ => None,
    };
    let values = each(array, &nulls, Some(0), long);
    if values.iter().all(Option::is_some) {
        return Ok(Values::Longs { values: values.into_iter().flatten().collect(), nulls });
    }
    budget.take(array.len(), size_of::<Value<'_>>()).ok_or_else(too_large)?;
    let values = array.iter().map(|value| value.map_or(Value::Null, &read));
    Ok(Values::Mixed(values.collect()))
}

fn decimals<T: ArrowPrimitiveType<Native: Into<i128>>>(
    array: &PrimitiveArray<T>,
    scale: i8,
    budget: &mut Budget,
) -> Result<Values> {
    match scale {
        ..=0 => whole(array, budget, |digits| scaled_up(digits.into(), -i32::from(scale))),
        1.. => Ok(doubles(array, |digits| scaled_down(digits.into(), i32::from(scale)))),
    }
}

/// `digits` with so many zeros behind.
fn scaled_up(digits: i128, zeros: i32) -> Value<'static> {
    let factor = 10_i128.checked_pow(zeros.unsigned_abs());
    let long = factor.and_then(|factor| i64::try_from(digits.checked_mul(factor)?).ok());
    long.map_or_else(|| Value::Double(nearest(digits, zeros)), Value::Long)
}

/// The double that is nearest to `digits` with so many of them behind the point.
fn scaled_down(digits: i128, behind: i32) -> f64 {
    /// Powers of ten up to this are doubles themselves, and so are digits up to 2^53: one division rounds
    /// once.
    const EXACT: i32 = 22;
    if behind <= EXACT && digits.unsigned_abs() <= 1 << 53 {
        return digits as f64 / 10_f64.powi(behind);
    }
    nearest(digits, -behind)
}

fn nearest(digits: i128, exponent: i32) -> f64 {
    format!("{digits}e{exponent}").parse().expect("digits and an exponent are a number")
}

fn too_large() -> String {
    "its rows take far more memory than it does: send fewer at a time".to_owned()
}

fn all_null(rows: usize, budget: &mut Budget) -> Result<Values> {
    budget.take(rows, size_of::<Value<'_>>()).ok_or_else(too_large)?;
    Ok(Values::Mixed(vec![Value::Null; rows]))
}

/// Texts that lie one after the other in Arrow, too, are copied at once.
fn strings<O: OffsetSizeTrait>(
    array: &GenericByteArray<GenericStringType<O>>,
    budget: &mut Budget,
) -> Result<Values> {
    let nulls = nulls(array);
    if let [first, ends @ ..] = array.value_offsets()
        && let begin = first.as_usize()
        && let end = ends.last().unwrap_or(first).as_usize()
        && let Ok(bytes) = std::str::from_utf8(&array.value_data()[begin..end])
    {
        let ends: Vec<usize> = ends.iter().map(|end| end.as_usize() - begin).collect();
        let starts = std::iter::once(&0).chain(&ends);
        let mut lens = starts.zip(&ends).map(|(start, end)| end - start);
        // Arrow may have bytes where a text is null.
        let is_tight = nulls
            .as_ref()
            .is_none_or(|nulls| nulls.iter().all(|is_null| lens.next() == Some(0) || !is_null));
        if is_tight {
            budget.take(bytes.len(), 1).ok_or_else(too_large)?;
            return Ok(Values::Texts { bytes: bytes.to_owned(), ends, nulls });
        }
    }
    texts(array.len(), array.iter(), budget)
}

fn texts<'a>(
    rows: usize,
    values: impl Iterator<Item = Option<&'a str>>,
    budget: &mut Budget,
) -> Result<Values> {
    let (mut bytes, mut ends) = (String::new(), Vec::with_capacity(rows));
    let mut nulls: Nulls = None;
    for (row, value) in values.enumerate() {
        match value {
            Some(text) => {
                budget.take(text.len(), 1).ok_or_else(too_large)?;
                bytes.push_str(text);
            }
            None => nulls.get_or_insert_with(|| vec![false; rows])[row] = true,
        }
        ends.push(bytes.len());
    }
    Ok(Values::Texts { bytes, ends, nulls })
}

fn bytes<'a>(
    rows: usize,
    values: impl Iterator<Item = Option<&'a [u8]>>,
    budget: &mut Budget,
) -> Result<Values> {
    let mut wrong = None;
    let values = values.enumerate().map(|(row, value)| {
        let text = value.map(std::str::from_utf8).transpose();
        text.unwrap_or_else(|_| {
            wrong.get_or_insert(row);
            None
        })
    });
    let texts = texts(rows, values, budget)?;
    match wrong {
        None => Ok(texts),
        Some(row) => Err(format!("the bytes of row {row} are no UTF-8")),
    }
}

fn dictionary(array: &dyn AnyDictionaryArray, budget: &mut Budget) -> Result<Values> {
    let (rows, values) = (array.len(), array.values().as_ref());
    if values.is_empty() {
        return all_null(rows, budget);
    }
    // Where a key is null, that of some value.
    let (keys, nulls) = (array.normalized_keys(), nulls(array));
    let keys = keys.into_iter().enumerate();
    let mut keys =
        keys.map(|(row, key)| (!is_null(&nulls, row) && values.is_valid(key)).then_some(key));
    // Texts are copied once, and those alone that rows have.
    match values.data_type() {
        DataType::Utf8 => {
            let values = values.as_string::<i32>();
            texts(rows, keys.map(|key| key.map(|key| values.value(key))), budget)
        }
        DataType::LargeUtf8 => {
            let values = values.as_string::<i64>();
            texts(rows, keys.map(|key| key.map(|key| values.value(key))), budget)
        }
        DataType::Utf8View => {
            let values = values.as_string_view();
            texts(rows, keys.map(|key| key.map(|key| values.value(key))), budget)
        }
        _ => {
            let column = Column(read(values, budget)?);
            Ok(match &column.0 {
                Values::Longs { values, .. } => {
                    let values = keys.map(|key| key.map(|key| values[key]));
                    Column::optional_longs(values).0
                }
                Values::Doubles { values, .. } => {
                    let values = keys.map(|key| key.map(|key| values[key]));
                    Column::optional_doubles(values).0
                }
                _ => {
                    let mut values = Vec::new();
                    keys.try_for_each(|key| {
                        let value = key.map_or(Value::Null, |key| column.value(key));
                        budget.take(1, bytes_of(&value))?;
                        values.push(value.into_owned());
                        Some(())
                    })
                    .ok_or_else(too_large)?;
                    Values::Mixed(values)
                }
            })
        }
    }
}

/// The memory of a value.
fn bytes_of(value: &Value<'_>) -> usize {
    let own = size_of::<Value<'_>>();
    match value {
        Value::Text(text) => own + text.len(),
        Value::List(values) => own + values.iter().map(bytes_of).sum::<usize>(),
        _ => own,
    }
}

fn list<O: OffsetSizeTrait>(array: &GenericListArray<O>, budget: &mut Budget) -> Result<Values> {
    let offsets = array.value_offsets();
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return all_null(array.len(), budget);
    };
    // Rows of a slice have some of the values alone.
    let (begin, end) = (first.as_usize(), last.as_usize());
    let values = array.values().slice(begin, end - begin);
    let ranges =
        offsets.windows(2).map(|pair| (pair[0].as_usize() - begin, pair[1].as_usize() - begin));
    lists(array, values.as_ref(), ranges, budget)
}

/// Lists of values that lie one after the other, of each row from one to another.
fn lists(
    array: &dyn Array,
    values: &dyn Array,
    ranges: impl Iterator<Item = (usize, usize)>,
    budget: &mut Budget,
) -> Result<Values> {
    let (rows, inside) = (array.len(), values.len());
    budget.take(rows, size_of::<Value<'_>>()).ok_or_else(too_large)?;
    budget.take(inside, size_of::<Value<'_>>()).ok_or_else(too_large)?;
    let (nulls, column) = (nulls(array), Column(read(values, budget)?));
    let value = |at: usize| match &column.0 {
        // A list has no other sign that there was a number.
        Values::Doubles { values, nulls } if !is_null(nulls, at) && !values[at].is_finite() => {
            Value::Text(Cow::Owned(values[at].to_string()))
        }
        _ => column.value(at).into_owned(),
    };
    let list = |(row, (begin, end))| match is_null(&nulls, row) {
        true => Value::Null,
        false => Value::List((begin..end).map(value).collect()),
    };
    Ok(Values::Mixed(ranges.enumerate().map(list).collect()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Int64Builder, ListBuilder};
    use arrow_array::*;
    use arrow_schema::{Field, Schema};

    use super::*;
    use crate::input::batch::RowBatch;

    type Half = <Float16Type as ArrowPrimitiveType>::Native;

    /// The values of a column as texts, of the whole array and of every slice of it.
    fn expect(array: ArrayRef, expected: &[&str]) -> Values {
        let batch =
            RecordBatch::try_from_iter_with_nullable([("a", array, true)]).expect("a column");
        for offset in 0..=expected.len() {
            for len in 0..=expected.len() - offset {
                let read =
                    RowBatch::from_arrow(&batch.slice(offset, len)).expect("of a known type");
                let column = read.find("a").expect("its column");
                let texts: Vec<String> =
                    (0..read.rows()).map(|row| column.value(row).to_string()).collect();
                assert_eq!(texts, expected[offset..offset + len], "{offset} {len}");
            }
        }
        let read = RowBatch::from_arrow(&batch).expect("of a known type");
        read.find("a").expect("its column").0.clone()
    }

    fn refused(array: ArrayRef) -> String {
        let batch = RecordBatch::try_from_iter([("a", array)]).expect("a column");
        RowBatch::from_arrow(&batch).expect_err("it cannot be").to_string()
    }

    #[test]
    fn whole_numbers_are_longs() {
        let arrays: [(ArrayRef, &str, &str); 7] = [
            (Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(i8::MAX)])), "-128", "127"),
            (Arc::new(Int16Array::from(vec![Some(i16::MIN), None, Some(7)])), "-32768", "7"),
            (Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(7)])), "-2147483648", "7"),
            (
                Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)])),
                "-9223372036854775808",
                "9223372036854775807",
            ),
            (Arc::new(UInt8Array::from(vec![Some(u8::MAX), None, Some(0)])), "255", "0"),
            (Arc::new(UInt16Array::from(vec![Some(u16::MAX), None, Some(0)])), "65535", "0"),
            (Arc::new(UInt32Array::from(vec![Some(u32::MAX), None, Some(0)])), "4294967295", "0"),
        ];
        for (array, first, last) in arrays {
            let read = expect(array, &[first, "null", last]);
            assert!(matches!(read, Values::Longs { nulls: Some(_), .. }), "{read:?}");
        }
        let read = expect(Arc::new(Int64Array::from(vec![1, 2])), &["1", "2"]);
        assert!(matches!(read, Values::Longs { nulls: None, .. }), "{read:?}");
        let read = expect(Arc::new(UInt64Array::from(vec![Some(7), None])), &["7", "null"]);
        assert!(matches!(read, Values::Longs { .. }), "{read:?}");
        let large = UInt64Array::from(vec![Some(1 << 63), None, Some(7)]);
        expect(Arc::new(large), &["9.223372036854776e18", "null", "7"]);
    }

    #[test]
    fn floating_point_numbers_are_doubles() {
        let half = [Some(Half::from_f32(1.5)), None, Some(Half::from_f32(-0.0))];
        let arrays: [ArrayRef; 3] = [
            Arc::new(Float16Array::from(half.to_vec())),
            Arc::new(Float32Array::from(vec![Some(1.5), None, Some(-0.0)])),
            Arc::new(Float64Array::from(vec![Some(1.5), None, Some(-0.0)])),
        ];
        for array in arrays {
            let read = expect(array, &["1.5", "null", "0.0"]);
            assert!(matches!(read, Values::Doubles { .. }), "{read:?}");
        }
        let read = expect(Arc::new(Float64Array::from(vec![f64::NAN, 1.0])), &["null", "1.0"]);
        assert!(matches!(read, Values::Doubles { nulls: None, .. }), "it is no null: {read:?}");
    }

    #[test]
    fn decimals_are_the_nearest_numbers() {
        let decimal = |values: Vec<Option<i128>>, scale| -> ArrayRef {
            let array = Decimal128Array::from(values).with_precision_and_scale(38, scale);
            Arc::new(array.expect("a precision that can be"))
        };
        let large = 10_i128.pow(37);
        let read = expect(
            decimal(vec![Some(125), None, Some(-1), Some(large + 1), Some((1 << 53) + 1)], 2),
            &["1.25", "null", "-0.01", "1e35", "90071992547409.94"],
        );
        assert!(matches!(read, Values::Doubles { .. }), "{read:?}");
        let read = expect(decimal(vec![Some(12), None], 0), &["12", "null"]);
        assert!(matches!(read, Values::Longs { .. }), "{read:?}");
        expect(decimal(vec![Some(12), None], -2), &["1200", "null"]);
        expect(decimal(vec![Some(12), Some(large), None], 0), &["12", "1e37", "null"]);
        expect(decimal(vec![Some(large)], -38), &["1e75"]);
        let small = Decimal32Array::from(vec![Some(125)]).with_precision_and_scale(9, 2);
        expect(Arc::new(small.expect("it can be")), &["1.25"]);
        let small = Decimal64Array::from(vec![Some(125)]).with_precision_and_scale(18, 2);
        expect(Arc::new(small.expect("it can be")), &["1.25"]);
    }

    #[test]
    fn times_are_milliseconds_that_were_begun() {
        let arrays: [(ArrayRef, [&str; 2]); 8] = [
            (Arc::new(TimestampSecondArray::from(vec![-1, 2])), ["-1000", "2000"]),
            (Arc::new(TimestampMillisecondArray::from(vec![-1, 2])), ["-1", "2"]),
            (Arc::new(TimestampMicrosecondArray::from(vec![-1, 2_999])), ["-1", "2"]),
            (Arc::new(TimestampNanosecondArray::from(vec![-1, 2_999_999])), ["-1", "2"]),
            (
                Arc::new(TimestampSecondArray::from(vec![-1, 2]).with_timezone("+05:00")),
                ["-1000", "2000"],
            ),
            (
                Arc::new(
                    TimestampMicrosecondArray::from(vec![-1, 2_999]).with_timezone("Asia/Tokyo"),
                ),
                ["-1", "2"],
            ),
            (Arc::new(Date32Array::from(vec![-1, i32::MAX])), ["-86400000", "185542587100800000"]),
            (Arc::new(Date64Array::from(vec![-86_400_000, 1])), ["-86400000", "1"]),
        ];
        for (array, expected) in arrays {
            let read = expect(array, &expected);
            assert!(matches!(read, Values::Longs { nulls: None, .. }), "{read:?}");
        }
        let far = TimestampSecondArray::from(vec![0, i64::MAX / 1_000 + 1]);
        let told = refused(Arc::new(far));
        assert!(told.contains("`a` of the type Timestamp") && told.contains("row 1"), "{told}");
        // What lies below a null does not count.
        let far =
            TimestampSecondArray::new(vec![i64::MAX, 1].into(), Some(vec![false, true].into()));
        expect(Arc::new(far), &["null", "1000"]);
    }

    #[test]
    fn texts_and_bytes_are_texts() {
        let values =
            || vec![Some("Ölm"), None, Some(""), Some("a text that no view has in itself")];
        let expected = ["Ölm", "null", "", "a text that no view has in itself"];
        let bytes = || values().into_iter().map(|value| value.map(str::as_bytes));
        let arrays: [ArrayRef; 6] = [
            Arc::new(StringArray::from(values())),
            Arc::new(LargeStringArray::from(values())),
            Arc::new(StringViewArray::from(values())),
            Arc::new(BinaryArray::from_iter(bytes())),
            Arc::new(LargeBinaryArray::from_iter(bytes())),
            Arc::new(BinaryViewArray::from_iter(bytes())),
        ];
        for array in arrays {
            let read = expect(array, &expected);
            assert!(matches!(read, Values::Texts { .. }), "{read:?}");
        }
        let fixed = FixedSizeBinaryArray::try_from_iter([b"ab", b"cd"].into_iter());
        expect(Arc::new(fixed.expect("of one size")), &["ab", "cd"]);
        let truths = BooleanArray::from(vec![Some(true), None, Some(false)]);
        expect(Arc::new(truths), &["true", "null", "false"]);
        let told = refused(Arc::new(BinaryArray::from_iter([Some(&b"a"[..]), Some(b"\xff")])));
        assert!(told.contains("`a` of the type Binary") && told.contains("row 1"), "{told}");
    }

    #[test]
    fn texts_below_nulls_are_left_out() {
        let whole = StringArray::from(vec!["a", "hidden", "b"]);
        let (offsets, data, _) = whole.into_parts();
        let array = StringArray::new(offsets, data, Some(vec![true, false, true].into()));
        let read = expect(Arc::new(array), &["a", "null", "b"]);
        assert!(matches!(&read, Values::Texts { bytes, .. } if bytes == "ab"), "{read:?}");
    }

    #[test]
    fn dictionaries_are_their_values() {
        let keys = || Int8Array::from(vec![Some(1), None, Some(0), Some(2), Some(1)]);
        let texts = || vec![Some("x"), Some("ö"), None];
        let expected = ["ö", "null", "x", "null", "ö"];
        let values: [ArrayRef; 4] = [
            Arc::new(StringArray::from(texts())),
            Arc::new(LargeStringArray::from(texts())),
            Arc::new(StringViewArray::from(texts())),
            Arc::new(BinaryArray::from_iter(texts())),
        ];
        for values in values {
            expect(Arc::new(DictionaryArray::new(keys(), values)), &expected);
        }
        let numbers = Int64Array::from(vec![Some(5), Some(-6), None]);
        let read = expect(
            Arc::new(DictionaryArray::new(keys(), Arc::new(numbers))),
            &["-6", "null", "5", "null", "-6"],
        );
        assert!(matches!(read, Values::Longs { .. }), "{read:?}");
        let numbers = Float64Array::from(vec![Some(0.5), Some(1.5), None]);
        let wide = UInt32Array::from(vec![Some(1), None, Some(2)]);
        expect(Arc::new(DictionaryArray::new(wide, Arc::new(numbers))), &["1.5", "null", "null"]);
        let nothing = DictionaryArray::new(
            Int8Array::from(vec![None, None]),
            Arc::new(StringArray::from(Vec::<&str>::new())),
        );
        expect(Arc::new(nothing), &["null", "null"]);
    }

    #[test]
    fn lists_are_lists() {
        let mut lists = ListBuilder::new(builder::StringBuilder::new());
        lists.append_value([Some("b"), Some("a")]);
        lists.append_null();
        lists.append_value([None::<&str>; 0]);
        lists.append_value([None, Some("c")]);
        expect(Arc::new(lists.finish()), &["[b, a]", "null", "[]", "[null, c]"]);
        let mut lists = builder::LargeListBuilder::new(ListBuilder::new(Int64Builder::new()));
        lists.values().append_value([Some(1), Some(2)]);
        lists.values().append_null();
        lists.append(true);
        lists.append(false);
        lists.values().append_value([Some(3)]);
        lists.append(true);
        expect(Arc::new(lists.finish()), &["[[1, 2], null]", "null", "[[3]]"]);
        let mut lists = builder::FixedSizeListBuilder::new(builder::Float64Builder::new(), 2);
        lists.values().append_slice(&[0.5, f64::NAN, 1.0, 2.0]);
        lists.append(true);
        lists.append(false);
        expect(Arc::new(lists.finish()), &["[0.5, NaN]", "null"]);
    }

    #[test]
    fn nulls_are_nulls_and_other_types_are_told() {
        expect(Arc::new(NullArray::new(2)), &["null", "null"]);
        let told = refused(Arc::new(DurationSecondArray::from(vec![1])));
        assert!(told.starts_with("the column `a` of the type Duration"), "{told}");
        let column: ArrayRef = Arc::new(Int8Array::from(vec![1]));
        let fields = [("a", column.clone()), ("a", column)];
        let schema = Schema::new(vec![Field::new("a", DataType::Int8, false); 2]);
        let twice = RecordBatch::try_new(Arc::new(schema), fields.map(|(_, it)| it).to_vec());
        let told = RowBatch::from_arrow(&twice.expect("Arrow does not mind")).expect_err("two");
        assert_eq!(told.to_string(), "there are two columns `a`");
    }
}

//! Parquet and Arrow.
#![cfg(feature = "columnar")]

use std::fs::File;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Decimal256Type, Float32Type, Int32Type};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
    DictionaryArray, FixedSizeListArray, Float32Array, Float64Array, Int8Array, Int64Array,
    IntervalYearMonthArray, LargeStringArray, ListArray, NullArray, RecordBatch, StringArray,
    StringViewArray, TimestampMillisecondArray, UInt64Array,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::{Files, columns, open, rows, rows_of};
use crate::ReadOptions;

/// A column of each type, with a null in the middle; `gap` is one that cannot be read.
fn batch() -> RecordBatch {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)]), None, None]);
    let dictionary: DictionaryArray<Int32Type> = [Some("x"), None, Some("y")].into_iter().collect();
    let decimal = |digits, scale| {
        let decimals = Decimal128Array::from(vec![Some(1_250), None, Some(-5)]);
        Arc::new(decimals.with_precision_and_scale(digits, scale).expect("a type")) as ArrayRef
    };
    let zoned = TimestampMillisecondArray::from(vec![Some(1_500), None, Some(0)]);
    RecordBatch::try_from_iter([
        ("bool", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])) as ArrayRef),
        ("tiny", Arc::new(Int8Array::from(vec![Some(-8), None, Some(8)]))),
        ("whole", Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(3)]))),
        ("large", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(3)]))),
        ("short", Arc::new(Float32Array::from(vec![Some(0.5), None, Some(2.0)]))),
        ("float", Arc::new(Float64Array::from(vec![Some(0.1), None, Some(2.0)]))),
        ("small", decimal(10, 2)),
        ("wide", decimal(38, 3)),
        ("day", Arc::new(Date32Array::from(vec![Some(1), None, Some(-1)]))),
        ("moment", Arc::new(zoned.with_timezone("+02:00"))),
        ("text", Arc::new(StringArray::from(vec![Some("a"), None, Some("")]))),
        ("long", Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("b")]))),
        ("view", Arc::new(StringViewArray::from(vec![Some("a"), None, Some("b")]))),
        ("word", Arc::new(dictionary)),
        ("blob", Arc::new(BinaryArray::from(vec![Some(&b"\0"[..]), None, Some(b"z")]))),
        ("list", Arc::new(list)),
        ("gap", Arc::new(IntervalYearMonthArray::from(vec![Some(1), None, Some(2)]))),
    ])
    .expect("a batch")
}

const COLUMNS: &str = "bool bool, tiny i8, whole i64, large u64, short f32, float f64, \
    small decimal(10,2), wide decimal(38,3), day date, moment timestamp(ms), text text, long text, \
    view text, word text, blob bytes, list [i32; 1]";

const ROWS: [&str; 3] = [
    "true|-8|-9223372036854775808|18446744073709551615|0.5|0.1|12.50|1.250|1970-01-02|1970-01-01 00:00:01.5|a|a|a|x|\\x00|[1]",
    "null|null|null|null|null|null|null|null|null|null|null|null|null|null|null|null",
    "false|8|3|3|2|2|-0.05|-0.005|1969-12-31|1970-01-01 00:00:00||b|b|y|z|null",
];

/// The batch, in files of each format.
fn write(files: &Files, batch: &RecordBatch, times: usize) -> Vec<std::path::PathBuf> {
    let paths = ["a.parquet", "a.arrow", "a.arrows"].map(|name| files.path(name));
    let [parquet, file, stream] = paths.each_ref().map(|path| File::create(path).expect("a file"));
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
    let mut parquet = ArrowWriter::try_new(parquet, batch.schema(), Some(properties)).expect("one");
    let mut file = FileWriter::try_new(file, &batch.schema()).expect("one");
    let mut stream = StreamWriter::try_new(stream, &batch.schema()).expect("one");
    for _ in 0..times {
        parquet.write(batch).expect("a batch");
        file.write(batch).expect("a batch");
        stream.write(batch).expect("a batch");
    }
    parquet.close().expect("an end");
    file.finish().expect("an end");
    stream.finish().expect("an end");
    paths.to_vec()
}

#[test]
fn columns_have_the_types_of_the_file() {
    let files = Files::new();
    for path in write(&files, &batch(), 3) {
        let source = open(&path, &ReadOptions::default()).expect("a source");
        assert_eq!(columns(&source), COLUMNS);
        let notices = source.notices().join(" ");
        assert!(notices.contains("left out: `gap` (Interval"), "{notices}");
        let found = rows(&source).expect("rows");
        assert_eq!(found, [ROWS, ROWS, ROWS].concat(), "{}", path.display());
        assert_eq!(rows_of(&source, &[8, 1, 8]).expect("rows")[0], "1970-01-02|-8|1970-01-02");
        assert_eq!(rows_of(&source, &[]).expect("rows").len(), 9);
        let is_parquet = path.extension().is_some_and(|ending| ending == "parquet");
        assert_eq!(source.rows_estimate(), is_parquet.then_some(9));
    }
}

#[test]
fn packed_files_of_columns_are_read_from_memory() {
    let files = Files::new();
    for path in write(&files, &batch(), 1) {
        let packed = zstd::encode_all(File::open(&path).expect("a file"), 1).expect("bytes");
        let name = path.file_name().expect("a name").to_string_lossy();
        assert_eq!(rows(&files.open(&format!("{name}.zst"), &packed)).expect("rows"), ROWS);
        // Its contents tell what it is.
        let plain = std::fs::read(&path).expect("a file");
        assert_eq!(rows(&files.open("plain", plain)).expect("rows"), ROWS);
    }
}

#[test]
fn cut_files_are_errors() {
    let files = Files::new();
    for path in write(&files, &batch(), 1) {
        let whole = std::fs::read(&path).expect("a file");
        for end in [0, 5, whole.len() / 2, whole.len() - 12] {
            std::fs::write(&path, &whole[..end]).expect("a file");
            let read = open(&path, &ReadOptions::default()).and_then(|source| rows(&source));
            // A stream may end between its batches.
            if !path.ends_with("a.arrows") || end < whole.len() / 2 {
                assert!(read.is_err(), "{} {end}", path.display());
            }
        }
    }
}

#[test]
fn columns_of_nulls_are_text() {
    let files = Files::new();
    let nulls = RecordBatch::try_from_iter_with_nullable([(
        "a",
        Arc::new(NullArray::new(2)) as ArrayRef,
        true,
    )]);
    for path in write(&files, &nulls.expect("a batch"), 1) {
        let source = open(&path, &ReadOptions::default()).expect("a source");
        assert_eq!(rows(&source).expect("rows"), ["null", "null"]);
    }
}

#[test]
fn large_batches_come_in_small_ones() {
    let files = Files::new();
    let numbers = Int64Array::from_iter_values(0..5_000);
    let batch = RecordBatch::try_from_iter([("n", Arc::new(numbers) as ArrayRef)]).expect("one");
    for path in write(&files, &batch, 1).into_iter().skip(1) {
        let found = rows(&open(&path, &ReadOptions::default()).expect("a source")).expect("rows");
        assert!(found.into_iter().eq((0..5_000).map(|number| number.to_string())));
    }
}

#[test]
fn lists_of_one_length_are_arrays_and_wide_decimals_whole_numbers() {
    type Wide = <Decimal256Type as ArrowPrimitiveType>::Native;
    let files = Files::new();
    let batch = |last: Option<f32>, wide: Wide| {
        let lists = [Some(vec![Some(0.5), Some(-1.0)]), None, Some(vec![Some(3.0), last])];
        let lists = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(lists, 2);
        let numbers = [Some(Wide::from_parts(u128::MAX, 0)), None, Some(wide)];
        let numbers = Decimal256Array::from_iter(numbers).with_precision_and_scale(39, 0);
        RecordBatch::try_from_iter([
            ("list", Arc::new(lists) as ArrayRef),
            ("wide", Arc::new(numbers.expect("decimals"))),
        ])
    };
    let good = batch(Some(4.0), Wide::from_i128(7)).expect("a batch");
    for path in write(&files, &good, 2) {
        let source = open(&path, &ReadOptions::default()).expect("a source");
        assert_eq!(columns(&source), "list [f32; 2], wide u128");
        let once = ["[0.5, -1]|340282366920938463463374607431768211455", "null|null", "[3, 4]|7"];
        assert_eq!(rows(&source).expect("rows"), [once, once].concat(), "{}", path.display());
    }
    for (last, wide, says) in [(None, 7, "no nulls inside"), (Some(4.0), -7, "-7 is no u128")] {
        let bad = batch(last, Wide::from_i128(wide)).expect("a batch");
        for path in write(&files, &bad, 1) {
            let source = open(&path, &ReadOptions::default()).expect("a source");
            let what = rows(&source).expect_err(says);
            assert!(what.contains(says), "{what}");
        }
    }
}

#[test]
fn parquet_is_read_by_every_codec_that_writers_use_by_default() {
    let files = Files::new();
    let ids = Arc::new(Int64Array::from_iter_values(0..5_000)) as ArrayRef;
    let texts = StringArray::from_iter_values((0..5_000).map(|id| format!("text {}", id % 7)));
    let batch = RecordBatch::try_from_iter([("id", ids), ("text", Arc::new(texts) as ArrayRef)]);
    let batch = batch.expect("a batch");
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
    ];
    for codec in codecs {
        let path = files.path("packed.parquet");
        let properties = WriterProperties::builder().set_compression(codec).build();
        let file = File::create(&path).expect("a file");
        let mut writer =
            ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
        writer.write(&batch).expect("a batch");
        writer.close().expect("an end");
        let source = open(&path, &ReadOptions::default()).expect("a source");
        let found = rows(&source).expect("rows");
        assert_eq!(found.len(), 5_000, "{codec}");
        assert_eq!(found[4_999], "4999|text 1", "{codec}");
    }
}

/// Types that other programs write, each with a null, and a structure that is absent as a whole.
#[test]
fn less_common_types_are_read_or_named() {
    use arrow_array::types::Float16Type;
    use arrow_array::{
        Array, Date64Array, DurationMicrosecondArray, PrimitiveArray, StructArray,
        Time32MillisecondArray, Time64NanosecondArray,
    };
    use arrow_schema::{DataType, Field, Fields};
    let halves = [0x3E00_u16, 0xC000].map(|bits| {
        // A half: one and a half, and minus two.
        <<Float16Type as ArrowPrimitiveType>::Native>::from_bits(bits)
    });
    let halves: PrimitiveArray<Float16Type> =
        [Some(halves[0]), None, Some(halves[1])].into_iter().collect();
    let wide = |text: &str| text.parse::<<Decimal256Type as ArrowPrimitiveType>::Native>();
    let wide = |text: &str| wide(text).expect("a number");
    let fifty = wide(&"12345".repeat(10));
    let decimals = |digits, first| {
        let decimals = Decimal256Array::from(vec![Some(first), None, Some(wide("-5"))]);
        Arc::new(decimals.with_precision_and_scale(digits, 2).expect("a type")) as ArrayRef
    };
    let inner = Fields::from(vec![
        Field::new("lat", DataType::Int64, true),
        Field::new("tags", DataType::new_list(DataType::Int32, true), true),
    ]);
    let tags = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)]), None, None]);
    let inner = StructArray::new(
        inner,
        vec![Arc::new(Int64Array::from(vec![Some(1), Some(2), None])) as ArrayRef, Arc::new(tags)],
        Some(vec![true, false, true].into()),
    );
    let outer = StructArray::new(
        Fields::from(vec![Field::new("at", inner.data_type().clone(), true)]),
        vec![Arc::new(inner) as ArrayRef],
        Some(vec![true, true, false].into()),
    );
    let batch = RecordBatch::try_from_iter([
        ("half", Arc::new(halves) as ArrayRef),
        ("day", Arc::new(Date64Array::from(vec![Some(-86_400_000), None, Some(0)]))),
        ("clock", Arc::new(Time32MillisecondArray::from(vec![Some(18_900_500), None, Some(0)]))),
        ("fine", Arc::new(Time64NanosecondArray::from(vec![Some(1), None, Some(0)]))),
        ("took", Arc::new(DurationMicrosecondArray::from(vec![Some(-7), None, Some(7)]))),
        ("few", decimals(38, wide("12345"))),
        ("many", decimals(50, fifty)),
        ("geo", Arc::new(outer)),
    ])
    .expect("a batch");
    let files = Files::new();
    for path in write(&files, &batch, 1) {
        let source = open(&path, &ReadOptions::default()).expect("a source");
        assert_eq!(
            columns(&source),
            "half f32, day date, clock text, fine text, took i64, few decimal(38,2), many text, \
             geo.at.lat i64, geo.at.tags [i32; 1]",
            "{}",
            path.display()
        );
        let notices = source.notices().join("; ");
        for says in ["`took` is a duration: a number of microseconds", "50 digits"] {
            assert!(notices.contains(says), "{says}: {notices}");
        }
        let fifty = "123451234512345123451234512345123451234512345123.45";
        assert_eq!(
            rows(&source).expect("rows"),
            [
                format!("1.5|1969-12-31|05:15:00.5|00:00:00.000000001|-7|123.45|{fifty}|1|[1]"),
                "null|null|null|null|null|null|null|null|null".to_owned(),
                "-2|1970-01-01|00:00:00|00:00:00|7|-0.05|-0.05|null|null".to_owned(),
            ]
        );
        assert_eq!(rows_of(&source, &[7, 0]).expect("rows")[0], "1|1.5");
    }
}

/// Lists, maps and structures within them, each with a null.
#[test]
fn what_is_nested_is_arrays_or_json() {
    use arrow_array::builder::{
        Int64Builder, LargeListBuilder, ListBuilder, MapBuilder, StringBuilder,
    };
    use arrow_array::types::Int64Type;
    use arrow_array::{Array, StructArray};
    use arrow_schema::{DataType, Field, Fields};
    let mut uneven = LargeListBuilder::new(Int64Builder::new());
    uneven.append_value([Some(1), None]);
    uneven.append_null();
    uneven.append_value([]);
    let mut words = ListBuilder::new(StringBuilder::new());
    words.append_value([Some("a\"b"), None]);
    words.append_null();
    words.append_value([Some("c")]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    map.keys().append_value("k");
    map.values().append_value(7);
    map.append(true).expect("a map");
    map.append(false).expect("a map");
    map.append(true).expect("a map");
    let mut numbered = MapBuilder::new(None, Int64Builder::new(), Int64Builder::new());
    for number in 0..3 {
        numbered.keys().append_value(number);
        numbered.values().append_null();
        numbered.append(true).expect("a map");
    }
    let members = Fields::from(vec![Field::new("x", DataType::Float32, true)]);
    let points = StructArray::new(
        members.clone(),
        vec![Arc::new(Float32Array::from(vec![0.1, 2.0, 3.0])) as ArrayRef],
        Some(vec![true, false, true].into()),
    );
    let item = Arc::new(Field::new("item", DataType::Struct(members), true));
    let plain = [Some([Some(1); 2].to_vec()), None, Some(vec![Some(1)])];
    let offsets = ListArray::from_iter_primitive::<Int64Type, _, _>(plain).offsets().clone();
    let points =
        ListArray::new(item, offsets, Arc::new(points), Some(vec![true, false, true].into()));
    let codes: DictionaryArray<Int32Type> = DictionaryArray::new(
        arrow_array::Int32Array::from(vec![Some(1), None, Some(0)]),
        Arc::new(Int64Array::from(vec![10, 20])),
    );
    let pairs = [Some(vec![Some(1), Some(2)]), None, Some(vec![Some(3), Some(4)])];
    let batch = RecordBatch::try_from_iter([
        ("uneven", Arc::new(uneven.finish()) as ArrayRef),
        ("words", Arc::new(words.finish())),
        ("map", Arc::new(map.finish())),
        ("numbered", Arc::new(numbered.finish())),
        ("points", Arc::new(points)),
        ("codes", Arc::new(codes)),
        ("pairs", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(pairs))),
    ])
    .expect("a batch");
    assert_eq!(batch.column(4).len(), 3);
    let files = Files::new();
    for path in write(&files, &batch, 2) {
        let source = open(&path, &ReadOptions::default()).expect("a source");
        assert_eq!(
            columns(&source),
            "uneven text, words text, map text, numbered text, points text, codes i64, pairs [i64; 2]",
        );
        assert!(source.notices().is_empty(), "{:?}", source.notices());
        let once = [
            "[1,null]|[\"a\\\"b\",null]|{\"k\":7}|{\"0\":null}|[{\"x\":0.1},null]|20|[1, 2]",
            "null|null|null|{\"1\":null}|null|null|null",
            "[]|[\"c\"]|{}|{\"2\":null}|[{\"x\":3.0}]|10|[3, 4]",
        ];
        assert_eq!(rows(&source).expect("rows"), [once, once].concat(), "{}", path.display());
    }
}

#[test]
fn lists_of_later_rows_make_text_of_all() {
    let files = Files::new();
    let lists = (0..5_000).map(|at| Some(vec![Some(at); if at == 4_999 { 3 } else { 2 }]));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let batch = RecordBatch::try_from_iter([("list", Arc::new(lists) as ArrayRef)]);
    for path in write(&files, &batch.expect("a batch"), 1) {
        let source = open(&path, &ReadOptions::default()).expect("a source");
        if columns(&source) == "list [i32; 2]" {
            let what = rows(&source).expect_err("the last one");
            assert!(what.contains("has not 2 items") && source.is_too_narrow(), "{what}");
        }
        let source = source.reopen().expect("a source");
        assert_eq!(columns(&source), "list text");
        assert_eq!(rows(&source).expect("rows")[4_998..], ["[4998,4998]", "[4999,4999,4999]"]);
    }
}

/// The types of several widths, each with a null.
#[test]
fn types_of_every_width_are_read() {
    use arrow_array::{
        BinaryViewArray, Decimal32Array, Decimal64Array, DurationMillisecondArray,
        DurationNanosecondArray, DurationSecondArray, FixedSizeBinaryArray, Int16Array, Int32Array,
        LargeBinaryArray, LargeListArray, Time32SecondArray, Time64MicrosecondArray,
        TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array,
        UInt16Array, UInt32Array,
    };
    let blobs = || [Some(&b"ab"[..]), None];
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(blobs().into_iter(), 2);
    let small = Decimal32Array::from(vec![Some(125), None]).with_precision_and_scale(9, 2);
    let middle = Decimal64Array::from(vec![Some(-125), None]).with_precision_and_scale(18, 2);
    let pairs = LargeListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), Some(2)]),
        None,
    ]);
    let all: Vec<(&str, &str, &str, ArrayRef)> = vec![
        ("i16", "i16", "-300", Arc::new(Int16Array::from(vec![Some(-300), None]))),
        ("i32", "i32", "-70000", Arc::new(Int32Array::from(vec![Some(-70_000), None]))),
        ("u8", "u8", "200", Arc::new(UInt8Array::from(vec![Some(200), None]))),
        ("u16", "u16", "60000", Arc::new(UInt16Array::from(vec![Some(60_000), None]))),
        ("u32", "u32", "4000000000", Arc::new(UInt32Array::from(vec![Some(4_000_000_000), None]))),
        ("d32", "decimal(9,2)", "1.25", Arc::new(small.expect("decimals"))),
        ("d64", "decimal(18,2)", "-1.25", Arc::new(middle.expect("decimals"))),
        ("large", "bytes", "ab", Arc::new(LargeBinaryArray::from_iter(blobs()))),
        ("view", "bytes", "ab", Arc::new(BinaryViewArray::from_iter(blobs()))),
        ("fixed", "bytes", "ab", Arc::new(fixed.expect("blobs"))),
        ("pairs", "[i32; 2]", "[1, 2]", Arc::new(pairs)),
        ("t_s", "text", "00:01:01", Arc::new(Time32SecondArray::from(vec![Some(61), None]))),
        (
            "t_us",
            "text",
            "00:00:00.5",
            Arc::new(Time64MicrosecondArray::from(vec![Some(500_000), None])),
        ),
        ("d_s", "i64", "7", Arc::new(DurationSecondArray::from(vec![Some(7), None]))),
        ("d_ms", "i64", "7", Arc::new(DurationMillisecondArray::from(vec![Some(7), None]))),
        ("d_ns", "i64", "7", Arc::new(DurationNanosecondArray::from(vec![Some(7), None]))),
        (
            "s",
            "timestamp(s)",
            "1970-01-01 00:00:07",
            Arc::new(TimestampSecondArray::from(vec![Some(7), None])),
        ),
        (
            "us",
            "timestamp(us)",
            "1970-01-01 00:00:00.000007",
            Arc::new(TimestampMicrosecondArray::from(vec![Some(7), None])),
        ),
        (
            "ns",
            "timestamp(ns)",
            "1970-01-01 00:00:00.000000007",
            Arc::new(TimestampNanosecondArray::from(vec![Some(7), None])),
        ),
    ];
    let files = Files::new();
    for (name, kind, value, array) in all {
        let batch = RecordBatch::try_from_iter([(name, array)]).expect("a batch");
        for path in write(&files, &batch, 1) {
            let source = open(&path, &ReadOptions::default()).expect("a source");
            let shown = path.display();
            // Parquet has no seconds: its writer of Arrow notes the type beside.
            assert_eq!(columns(&source), format!("{name} {kind}"), "{shown}");
            assert_eq!(rows(&source).expect("rows"), [value, "null"], "{name} {shown}");
        }
    }
}

//! Streams of Arrow, from bytes that may be any.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_ipc::reader::StreamReader;

use crate::error::{Error, Result};
use crate::input::batch::RowBatch;

pub(super) fn read(bytes: &[u8]) -> Result<Vec<RowBatch>> {
    let mut budget = super::budget(bytes.len());
    let mut reader = guarded(|| StreamReader::try_new(bytes, None))?;
    let mut batches = Vec::new();
    while let Some(batch) = guarded(|| reader.next().transpose())? {
        batches.push(super::read(&batch, &mut budget)?);
    }
    match reader.get_ref().len() {
        0 => Ok(batches),
        behind => Err(no_stream(&format!("{behind} bytes lie behind its end"))),
    }
}

/// The reader checks what it reads, but does not promise to find all damage before it divides or cuts by
/// it. A panic of it is an error here.
fn guarded<T, E: ToString>(read: impl FnOnce() -> std::result::Result<T, E>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|error| no_stream(&error.to_string())),
        Err(_) => Err(no_stream("its parts do not fit each other")),
    }
}

fn no_stream(why: &str) -> Error {
    Error::Input(format!("no Arrow stream: {why}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, ListArray, NullArray,
        RecordBatch, RecordBatchOptions, StringArray, StringViewArray, types,
    };
    use arrow_ipc::writer::StreamWriter;
    use arrow_schema::Schema;
    use fastrand::Rng;

    use super::*;

    fn batch() -> RecordBatch {
        let lists = [Some(vec![Some(1), None]), None, Some(vec![])];
        let columns: [(&str, ArrayRef); 7] = [
            ("time", Arc::new(Int64Array::from(vec![1, 2, 3]))),
            ("page", Arc::new(StringArray::from(vec![Some("Oak"), None, Some("Ölm")]))),
            ("view", Arc::new(StringViewArray::from(vec!["", "a text that is long enough", "b"]))),
            (
                "few",
                Arc::new(DictionaryArray::<types::Int8Type>::from_iter([
                    Some("x"),
                    None,
                    Some("y"),
                ])),
            ),
            ("x", Arc::new(Float64Array::from(vec![0.5, -0.0, f64::NAN]))),
            ("on", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
            ("list", Arc::new(ListArray::from_iter_primitive::<types::Int32Type, _, _>(lists))),
        ];
        RecordBatch::try_from_iter(columns).expect("of one length")
    }

    fn stream(batches: &[RecordBatch]) -> Vec<u8> {
        let mut writer =
            StreamWriter::try_new(Vec::new(), &batches[0].schema()).expect("the schema is written");
        batches.iter().for_each(|batch| writer.write(batch).expect("it is written"));
        writer.into_inner().expect("it ends")
    }

    #[test]
    fn streams_are_read_batch_by_batch() {
        let (batch, bytes) =
            (batch(), stream(&[batch(), batch().slice(1, 2), batch().slice(3, 0)]));
        let read = RowBatch::from_arrow_stream(&bytes).expect("it was written");
        let expected = [batch.clone(), batch.slice(1, 2), batch.slice(3, 0)];
        let expected = expected.map(|batch| RowBatch::from_arrow(&batch).expect("of known types"));
        // NaN is not equal to itself; as text it is.
        assert_eq!(format!("{read:?}"), format!("{expected:?}"));
        // The mark of the end may be left out.
        let open = &bytes[..bytes.len() - 8];
        assert_eq!(RowBatch::from_arrow_stream(open).map(|batches| batches.len()), Ok(3));
        let behind = [&bytes[..], b"x"].concat();
        let error = RowBatch::from_arrow_stream(&behind).expect_err("there is more");
        assert_eq!(error.to_string(), "no Arrow stream: 1 bytes lie behind its end");
        assert!(RowBatch::from_arrow_stream(b"").is_err());
    }

    #[test]
    fn damaged_streams_are_refused_or_another_one() {
        let sound = stream(&[batch(), batch()]);
        let mut rng = Rng::with_seed(13);
        let mut refused = 0;
        for _ in 0..3_000 {
            let mut bytes = sound.clone();
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(..bytes.len());
                match rng.u8(..4) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes.insert(at, rng.u8(..)),
                    2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.usize(..5)],
                    _ => bytes[at] ^= 1 << rng.u8(..8),
                }
            }
            refused += usize::from(RowBatch::from_arrow_stream(&bytes).is_err());
        }
        assert!(refused > 500, "{refused}");
    }

    #[test]
    fn rows_of_nothing_have_a_bound() {
        let rows = |rows| {
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let empty = Schema::empty();
            RecordBatch::try_new_with_options(Arc::new(empty), vec![], &options)
                .expect("no columns")
        };
        let nulls = |rows| {
            let column: ArrayRef = Arc::new(NullArray::new(rows));
            RecordBatch::try_from_iter([("a", column)]).expect("one column")
        };
        for batch in [rows, nulls as fn(usize) -> RecordBatch] {
            let few = RowBatch::from_arrow_stream(&stream(&[batch(1_000)])).expect("a thousand");
            assert_eq!(few[0].rows(), 1_000);
            assert!(RowBatch::from_arrow_stream(&stream(&[batch(1 << 40)])).is_err());
            assert!(RowBatch::from_arrow_stream(&stream(&[batch(i64::MAX as usize)])).is_err());
        }
    }

    #[test]
    fn rows_that_share_a_text_have_a_bound() {
        let long = "x".repeat(1 << 16);
        let few = StringArray::from(vec![long.as_str()]);
        let keys = arrow_array::Int8Array::from(vec![0; 4_000]);
        let shared = DictionaryArray::new(keys, Arc::new(few));
        let shared: ArrayRef = Arc::new(shared);
        let shared = RecordBatch::try_from_iter([("a", shared)]).expect("one column");
        let error = RowBatch::from_arrow(&shared).expect_err("a quarter of a gigabyte");
        assert!(error.to_string().contains("`a` of the type Dictionary"), "{error}");
        assert!(RowBatch::from_arrow(&shared.slice(7, 20)).is_ok());
    }
}

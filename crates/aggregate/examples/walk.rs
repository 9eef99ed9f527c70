//! The speed of a fold over objects of fixed width, beside the most that it could be.
//!
//! `cargo run --release -p sapwood-aggregate --example walk [objects] [runs]` prints objects per
//! millisecond of one thread over records of 24 bytes (a word that says whether they live, a key, a
//! value), as a hash table's log has them: the medians of interleaved runs with their least and
//! greatest, and a plain loop over the same bytes as the floor.

use std::ops::Bound;
use std::time::{Duration, Instant};

use sapwood_aggregate::{Aggregate, Compiled, Group, Query, QueryError, Result, Selection, Value};
use sapwood_engine::{Column, ColumnBatch, Validity};

const STRIDE: usize = 24;
/// Objects of a block: a page of 2 MiB.
const PAGE: usize = (2 << 20) / STRIDE;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse());
    let mut number = |default| match arguments.next() {
        None => Ok(default),
        Some(parsed) => {
            parsed.map_err(|_| QueryError::Query("arguments are numbers: objects, runs".to_owned()))
        }
    };
    let (objects, runs) = (number(10_000_000)?, number(7)?);
    let bytes = records(objects);
    let contenders = contenders(objects)?;
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..runs.max(1) {
        for (contender, times) in contenders.iter().zip(&mut times) {
            let started = Instant::now();
            let check = (contender.run)(&bytes)?;
            times.push(started.elapsed());
            let expected = expected(objects, contender.what);
            assert_eq!(check, expected, "{}", contender.name);
        }
    }
    println!(
        "objects/ms, median (least .. greatest) of {} runs over {objects} objects",
        runs.max(1)
    );
    for (contender, times) in contenders.iter().zip(&mut times) {
        times.sort_unstable();
        let rate = |time: Duration| (objects as f64 / time.as_secs_f64() / 1000.0).round() as u64;
        let median = rate(times[times.len() / 2]);
        let (least, greatest) = (rate(times[times.len() - 1]), rate(times[0]));
        println!("{:<44} {median:>9} ({least} .. {greatest})", contender.name);
    }
    Ok(())
}

/// Every eighth record does not live; values are small and of both signs.
fn records(objects: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(objects * STRIDE);
    for at in 0..objects as u64 {
        let words = [u64::from(!at.is_multiple_of(8)), at, value(at).cast_unsigned()];
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    }
    bytes
}

fn value(at: u64) -> i64 {
    (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as i64 - 30_000
}

/// What is summed, for the check.
#[derive(Debug, Clone, Copy)]
enum What {
    All,
    Live,
    LiveAbove(i64),
    /// Keys, of which the first byte is below 128.
    LiveLow,
    LiveTenth,
}

fn expected(objects: usize, what: What) -> i128 {
    let counts = |at: u64| match what {
        What::All => true,
        What::Live => !at.is_multiple_of(8),
        What::LiveAbove(bound) => !at.is_multiple_of(8) && value(at) > bound,
        What::LiveLow => !at.is_multiple_of(8) && at % 256 < 128,
        What::LiveTenth => !at.is_multiple_of(8) && at.is_multiple_of(10),
    };
    (0..objects as u64).filter(|&at| counts(at)).map(|at| i128::from(value(at))).sum()
}

struct Contender {
    name: &'static str,
    what: What,
    run: Box<dyn Fn(&[u8]) -> Result<i128>>,
}

fn contenders(objects: usize) -> Result<Vec<Contender>> {
    let query = |figures: &str| {
        Ok::<_, QueryError>(Query::new("n:i64le".parse()?).aggregates(Aggregate::list(figures)?))
    };
    let sum = query("sum(n)")?.compile()?;
    let several = query("count, sum(n), min(n), max(n)")?.compile()?;
    let filtered = query("sum(n)")?.filter("n > 15".parse()?).compile()?;
    let grouped = query("sum(n)")?.group_by(Group::list("bucket(n, 4096)")?).compile()?;
    let by_object = sum.clone();
    let grouped_by_object = grouped.clone();
    let selected = |selection| query("sum(n)")?.select(selection).compile();
    let low = selected(Selection::range((Bound::Unbounded, Bound::Excluded(&[128])))?)?;
    let tenth = (0..objects as u64).step_by(10);
    let tenth = selected(Selection::keys(tenth.map(u64::to_le_bytes)))?;
    let tenth_by_object = tenth.clone();
    let by_page = |query: Compiled, filter: fn(Column<'_>) -> Validity<'_>| {
        move |bytes: &[u8]| pages(&query, bytes, filter)
    };
    Ok(vec![
        contender("a plain loop, all records", What::All, |bytes| Ok(plain(bytes, |_| true))),
        contender("a plain loop, live records", What::Live, |bytes| {
            Ok(plain(bytes, |word| word == 1))
        }),
        contender("sum by block, all records", What::All, by_page(sum.clone(), |_| Validity::All)),
        contender("sum by block, live records", What::Live, by_page(sum, live)),
        contender("count, sum, min, max by block, live", What::Live, by_page(several, live)),
        contender(
            "sum by block under a filter, live",
            What::LiveAbove(15),
            by_page(filtered, live),
        ),
        contender("sum by object, live records", What::Live, move |bytes| each(&by_object, bytes)),
        contender("sum by block in 16 groups, live", What::Live, by_page(grouped, live)),
        contender("sum by object in 16 groups, live", What::Live, move |bytes| {
            each(&grouped_by_object, bytes)
        }),
        contender("sum by block of a range of keys", What::LiveLow, by_page(low, live)),
        contender(
            "sum by block of a tenth of the keys, listed",
            What::LiveTenth,
            by_page(tenth, live),
        ),
        contender("sum by object of a tenth of the keys, listed", What::LiveTenth, move |bytes| {
            each(&tenth_by_object, bytes)
        }),
    ])
}

fn contender(
    name: &'static str,
    what: What,
    run: impl Fn(&[u8]) -> Result<i128> + 'static,
) -> Contender {
    Contender { name, what, run: Box::new(run) }
}

fn live(words: Column<'_>) -> Validity<'_> {
    Validity::Word { words, mask: 1, equals: 1 }
}

fn plain(bytes: &[u8], is_live: impl Fn(u64) -> bool) -> i128 {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let mut sum = 0_i128;
    for record in bytes.chunks_exact(STRIDE) {
        if is_live(word(&record[0..8])) {
            sum += i128::from(word(&record[16..24]).cast_signed());
        }
    }
    sum
}

fn pages(query: &Compiled, bytes: &[u8], live: fn(Column<'_>) -> Validity<'_>) -> Result<i128> {
    let mut fold = query.fold();
    for page in bytes.chunks(PAGE * STRIDE) {
        let column = |offset| Column::new(page, offset, STRIDE, 8);
        let live = live(column(0)?);
        fold.push_batch(&ColumnBatch::new(page.len() / STRIDE, column(8)?, column(16)?, live)?)?;
    }
    total(query, fold)
}

fn each(query: &Compiled, bytes: &[u8]) -> Result<i128> {
    let mut fold = query.fold();
    for record in bytes.chunks_exact(STRIDE) {
        if record[0] == 1 {
            fold.push(&record[8..16], &record[16..24])?;
        }
    }
    total(query, fold)
}

/// The sum over all groups.
fn total(query: &Compiled, fold: sapwood_aggregate::Fold<'_>) -> Result<i128> {
    let answer = query.finish(fold.into_partial())?;
    let mut total = 0;
    for row in 0..answer.rows.len() {
        match answer.value(row, "sum(n)")? {
            Value::Int(sum) => total += sum,
            other => panic!("a sum of whole numbers is whole, not {other}"),
        }
    }
    Ok(total)
}

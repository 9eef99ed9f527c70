//! Objects go by column to the very states that they have when each goes by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use sapwood_engine::{Column, ColumnBatch, Validity};
use sapwood_schema::{RowFormat, Schema, Type, Value as Typed};

use super::columns::Scratch;
use crate::columns::kernels::RUN;
use crate::{
    Aggregate, Comparison, Compiled, Fold, Group, Kind, Layout, Mismatches, Missing, Operand,
    Partial, Predicate, Query, Value,
};

/// A key and a value.
type Object = (Vec<u8>, Vec<u8>);

/// The types of columns, and numbers that stand for values of each.
const TYPES: [&str; 16] = [
    "bool",
    "i8",
    "i32",
    "i64",
    "i128",
    "u8",
    "u64",
    "f32",
    "f64",
    "decimal(10,2)",
    "decimal(30,0)",
    "date",
    "timestamp(ms)",
    "text",
    "bytes",
    "decimal(30,3)",
];

const TEXTS: [&str; 8] =
    ["", "a", "ab", "UA", "x\0y", "b", "much longer than the dictionary takes", "\u{e4}"];

/// Numbers 0 to 9 are ends of ranges and values near zero; those behind them differ.
fn typed(of: &Type, number: usize) -> Typed<'static> {
    let ends = |least: i128, greatest: i128| match number {
        0 => least,
        1 => greatest,
        2 => -i128::from(least < 0),
        other => other as i128 % greatest.min(90),
    };
    match of {
        Type::Bool => Typed::Bool(number.is_multiple_of(2)),
        Type::Int(bits) => Typed::Int(ends(i128::MIN >> (128 - bits), i128::MAX >> (128 - bits))),
        Type::UInt(bits) => Typed::Int(ends(0, i128::MAX >> (127 - bits))),
        Type::F32 | Type::F64 => Typed::Float(match number {
            0 => f64::NEG_INFINITY,
            1 => f64::NAN,
            2 => -0.0,
            3 => f64::from(f32::MAX),
            other => other as f64 / 4.0 - 3.0,
        }),
        Type::Decimal { digits, scale } => {
            let most = sapwood_schema::POWERS_OF_TEN[usize::from(*digits)] - 1;
            Typed::Decimal { units: ends(-most, most), scale: *scale }
        }
        Type::Date => Typed::Date(ends(-719_529, 2_932_897) as i32 + number as i32 / 3),
        Type::Timestamp(precision) => {
            let ticks = ends(i64::MIN.into(), 1_359_626_400_250) as i64;
            Typed::Timestamp { ticks, precision: *precision }
        }
        Type::Bytes if number == 0 => Typed::Bytes(vec![0xFF, 0].into()),
        Type::Bytes => Typed::Bytes(format!("t{number}").into_bytes().into()),
        Type::Text => match TEXTS.get(number) {
            Some(text) => Typed::Text((*text).into()),
            None => Typed::Text(format!("t{number}").into()),
        },
        other => panic!("{other}"),
    }
}

/// A constant that a column of this kind is compared with.
fn constant(kind: Kind, number: usize) -> Value<'static> {
    let texts = [
        "",
        "a",
        "UA",
        "t1",
        "2013-01-31",
        "1970-01-2",
        "9999",
        "-000001-12-31",
        "1970-01-01 00:00:00.02",
    ];
    match kind {
        Kind::Bool => Value::Bool(number.is_multiple_of(2)),
        Kind::Bytes => texts[number % texts.len()].into(),
        Kind::Number => match number {
            0 => Value::Int(i128::MAX),
            1 => Value::float(f64::NEG_INFINITY).expect("not NaN"),
            2 => Value::Int(i64::MAX.into()),
            3 => Value::float(2.5).expect("not NaN"),
            4 => Value::float(-0.0).expect("not NaN"),
            other => Value::Int(other as i128 - 8),
        },
    }
}

#[derive(Debug, Clone)]
struct World {
    /// Types of the columns, whether they are nullable, and how many are in the key.
    columns: Vec<(usize, bool)>,
    key_columns: usize,
    /// Types of columns that came later.
    later: Vec<usize>,
    /// Columns that became wider behind that, if they can, and numbers of their types.
    wider: Vec<(usize, usize)>,
}

fn world() -> impl Strategy<Value = World> {
    let columns = prop::collection::vec((0..TYPES.len(), prop::bool::weighted(0.7)), 2..9);
    let later = prop::collection::vec(0..TYPES.len(), 0..3);
    let wider = prop::collection::vec((0..12_usize, 0..TYPES.len()), 0..4);
    (columns, 1..4_usize, later, wider).prop_map(|(columns, key_columns, later, wider)| World {
        key_columns: key_columns.min(columns.len()),
        columns,
        later,
        wider,
    })
}

impl World {
    fn schemas(&self) -> Vec<Arc<RowFormat>> {
        let parse = |of: &usize| TYPES[*of].parse::<Type>().expect("a type");
        let mut builder = Schema::builder();
        for (at, (of, nullable)) in self.columns.iter().enumerate() {
            builder = match nullable {
                true => builder.nullable(format!("c{at}"), parse(of)),
                false => builder.column(format!("c{at}"), parse(of)),
            };
        }
        let key = (0..self.key_columns).rev().map(|at| format!("c{at}"));
        let mut all = vec![builder.key(key.collect::<Vec<_>>()).build().expect("a schema")];
        for (at, of) in self.later.iter().enumerate() {
            let name = format!("c{}", self.columns.len() + at);
            let wider = all[at].with_column(name, parse(of)).expect("a column");
            all.push(wider);
        }
        for (at, of) in &self.wider {
            let newest = all.last().expect("there is a first");
            let column = &newest.columns()[at % newest.columns().len()];
            let types = TYPES.iter().cycle().skip(*of).take(TYPES.len());
            let mut types = types.map(|name| name.parse().expect("a type"));
            let wider = types.find(|kind| column.kind.widens_to(kind));
            if let Some(Ok(wider)) = wider.map(|kind| newest.with_wider(&column.name, kind)) {
                all.push(wider);
            }
        }
        all.into_iter().map(|schema| Arc::new(RowFormat::new(schema))).collect()
    }
}

/// What makes a row: the version, a number for each column, and what is damaged.
type RowSeed = (prop::sample::Index, Vec<(usize, bool)>, Option<(prop::sample::Index, bool, u8)>);

fn row_seed() -> impl Strategy<Value = RowSeed> {
    let damage =
        prop::option::weighted(0.1, (any::<prop::sample::Index>(), any::<bool>(), any::<u8>()));
    let number = prop_oneof![0..10_usize, 0..60_usize];
    let numbers = prop::collection::vec((number, prop::bool::weighted(0.3)), 12);
    (any::<prop::sample::Index>(), numbers, damage)
}

fn row(formats: &[Arc<RowFormat>], (version, numbers, damage): &RowSeed) -> Object {
    let format = &formats[version.index(formats.len())];
    let columns = format.schema().columns().iter().zip(numbers);
    let row: Vec<Typed<'_>> = columns
        .map(|(column, (number, is_null))| match column.nullable && *is_null {
            true => Typed::Null,
            false => typed(&column.kind, *number),
        })
        .collect();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    format.encode(&row, None, &mut key, &mut value).expect("values of their types");
    if let Some((at, of_key, bits)) = damage {
        let bytes = if *of_key { &mut key } else { &mut value };
        match (bytes.is_empty(), bits % 3) {
            (true, _) => {}
            (_, 0) => bytes.truncate(at.index(bytes.len())),
            _ => {
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
            }
        }
    }
    (key, value)
}

/// A filter over columns by their numbers.
#[derive(Debug, Clone)]
enum Condition {
    Compare(usize, usize, usize),
    In(usize, Vec<usize>),
    Pair(usize, usize, usize),
    Begins(usize, usize),
    Missing(usize),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

fn condition() -> impl Strategy<Value = Condition> {
    let column = || 0..12_usize;
    let leaf = prop_oneof![
        4 => (column(), 0..6_usize, 0..20_usize).prop_map(|(column, how, value)| Condition::Compare(column, how, value)),
        1 => (column(), prop::collection::vec(0..20_usize, 0..4)).prop_map(|(column, values)| Condition::In(column, values)),
        1 => (column(), 0..20_usize).prop_map(|(column, value)| Condition::Begins(column, value)),
        1 => (column(), 0..6_usize, column()).prop_map(|(column, how, other)| Condition::Pair(column, how, other)),
        1 => column().prop_map(Condition::Missing),
    ];
    leaf.prop_recursive(3, 8, 3, |part| {
        prop_oneof![
            part.clone().prop_map(|part| Condition::Not(Box::new(part))),
            prop::collection::vec(part.clone(), 0..3).prop_map(Condition::And),
            prop::collection::vec(part, 0..3).prop_map(Condition::Or),
        ]
    })
}

impl Condition {
    fn predicate(&self, kinds: &[Kind]) -> Predicate {
        let of = |column: usize| {
            let column = column % kinds.len();
            (Operand::Name(format!("c{column}")), kinds[column])
        };
        let all = |parts: &[Condition]| parts.iter().map(|part| part.predicate(kinds)).collect();
        match self {
            Condition::Compare(column, how, value) => {
                let (operand, kind) = of(*column);
                let value = Operand::Value(constant(kind, *value));
                Predicate::Compare(operand, Comparison::ALL[*how], value)
            }
            Condition::Pair(column, how, other) => match (of(*column), of(*other)) {
                ((operand, kind), (other, of_other)) if kind == of_other => {
                    Predicate::Compare(operand, Comparison::ALL[*how], other)
                }
                ((operand, _), _) => Predicate::Missing(operand),
            },
            Condition::In(column, values) => {
                let (operand, kind) = of(*column);
                Predicate::In(operand, values.iter().map(|value| constant(kind, *value)).collect())
            }
            Condition::Begins(column, value) => {
                match (of(*column), constant(Kind::Bytes, *value)) {
                    ((operand, Kind::Bytes), Value::Bytes(prefix)) => {
                        Predicate::Begins(operand, prefix.into_owned())
                    }
                    ((operand, _), _) => Predicate::Missing(operand),
                }
            }
            Condition::Missing(column) => Predicate::Missing(of(*column).0),
            Condition::Not(part) => Predicate::Not(Box::new(part.predicate(kinds))),
            Condition::And(parts) => Predicate::And(all(parts)),
            Condition::Or(parts) => Predicate::Or(all(parts)),
        }
    }
}

#[derive(Debug, Clone)]
struct Question {
    condition: Option<Condition>,
    /// A column, and the shape of its groups.
    groups: Vec<(usize, usize)>,
    /// A figure, and its column.
    figures: Vec<(usize, usize)>,
    refuses_missing: bool,
    has_having: bool,
}

fn question() -> impl Strategy<Value = Question> {
    (
        prop::option::weighted(0.7, condition()),
        prop::collection::vec((0..12_usize, 0..6_usize), 0..4),
        prop::collection::vec((0..9_usize, 0..12_usize), 0..5),
        prop::bool::weighted(0.1),
        any::<bool>(),
    )
        .prop_map(|(condition, groups, figures, refuses_missing, has_having)| Question {
            condition,
            groups,
            figures,
            refuses_missing,
            has_having,
        })
}

impl Question {
    fn compile(&self, layout: &Layout) -> Compiled {
        let kinds: Vec<Kind> =
            layout.fields().iter().map(|field| field.kind().expect("no arrays")).collect();
        let mut figures = vec!["count".to_owned()];
        for &(figure, column) in &self.figures {
            let column = column % kinds.len();
            let is_number = kinds[column] == Kind::Number;
            figures.push(match (figure, is_number) {
                (0, _) | (1..=3, false) => format!("count(c{column})"),
                (1, true) => format!("sum(c{column})"),
                (2, true) => format!("mean(c{column})"),
                (3, true) => format!("variance(c{column})"),
                (4 | 5, _) => format!("min(c{column})"),
                (6, _) | (8, false) => format!("max(c{column})"),
                (7, _) => format!("distinct(c{column})"),
                _ => format!("quantile(c{column}, 0.5)"),
            });
        }
        figures.sort();
        figures.dedup();
        let mut groups = Vec::new();
        for &(column, shape) in &self.groups {
            let column = column % kinds.len();
            let at = groups.len();
            groups.push(match (shape, kinds[column]) {
                (0, Kind::Number) => format!("bucket(c{column}, 7, 2) as g{at}"),
                (1, Kind::Number) => format!("classes(c{column}, -1, 0.5, 3, 40) as g{at}"),
                _ => format!("c{column} as g{at}"),
            });
        }
        let missing = if self.refuses_missing { Missing::Refuse } else { Missing::PassOver };
        let mut query = Query::new(layout.clone())
            .aggregates(Aggregate::list(&figures.join(", ")).expect("figures"))
            .mismatches(Mismatches::Skip)
            .missing(missing);
        if !groups.is_empty() {
            query = query.group_by(Group::list(&groups.join(", ")).expect("groups"));
        }
        if let Some(condition) = &self.condition {
            query = query.filter(condition.predicate(&kinds));
        }
        if self.has_having {
            query = query.having("count > 2".parse().expect("a condition"));
        }
        query.compile().unwrap_or_else(|error| panic!("{error}"))
    }
}

fn by_object(query: &Compiled) -> Compiled {
    let mut query = query.clone();
    query.columns = None;
    query
}

fn push_all<'a>(fold: &mut Fold<'_>, objects: impl IntoIterator<Item = &'a Object>) {
    for (key, value) in objects {
        fold.push(key, value).expect("few groups");
    }
}

fn folded<'a>(query: &Compiled, objects: impl IntoIterator<Item = &'a Object>) -> Partial {
    let mut fold = query.fold();
    push_all(&mut fold, objects);
    fold.into_partial()
}

/// The same objects in batches of equal widths.
fn batched(query: &Compiled, objects: &[&Object]) -> Partial {
    let mut widths: BTreeMap<(usize, usize), Vec<&Object>> = BTreeMap::new();
    for object in objects {
        widths.entry((object.0.len(), object.1.len())).or_default().push(object);
    }
    let mut fold = query.fold();
    for ((key, value), objects) in widths {
        let bytes: Vec<u8> =
            objects.iter().flat_map(|(key, value)| [&key[..], &value[..]].concat()).collect();
        let column = |offset: usize, width: usize| match width {
            0 => Column::NOTHING,
            _ => Column::new(&bytes, offset, key + value, width).expect("inside"),
        };
        let batch =
            ColumnBatch::new(objects.len(), column(0, key), column(key, value), Validity::All);
        fold.push_batch(&batch.expect("inside")).expect("few groups");
    }
    fold.into_partial()
}

fn check(query: &Compiled, objects: &[Object], repeats: usize, cut: usize) {
    let all: Vec<&Object> = objects.iter().cycle().take(objects.len() * repeats).collect();
    let alone = by_object(query);
    let expected = folded(&alone, all.iter().copied());
    let encoded = expected.encode();
    // Of several groups whose sums overflow any is named.
    let finish = |partial| query.finish(partial).map_err(|error| std::mem::discriminant(&error));
    let answer = finish(expected);

    let mut fold = query.fold();
    let (first, rest) = all.split_at(cut.min(all.len()));
    push_all(&mut fold, first.iter().copied());
    let part = folded(&alone, first.iter().copied());
    assert!(fold.partial().encode() == part.encode(), "the first {cut}");
    push_all(&mut fold, rest.iter().copied());
    let whole = fold.into_partial();
    assert!(whole.encode() == encoded, "{whole:?}");
    assert_eq!(finish(whole), answer);

    let parts = [folded(query, first.iter().copied()), batched(query, rest)];
    let [left, right] = parts.map(|part| query.decode(&part.encode()).expect("what was encoded"));
    assert_eq!(query.merge(left, right).expect("few groups").encode(), encoded);
}

fn cases(default: u32) -> ProptestConfig {
    let set = std::env::var("SEEDS").ok();
    let cases = set.map_or(default, |seeds| seeds.parse().expect("SEEDS is a number"));
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn rows_by_column_are_rows_one_by_one(
        world in world(),
        rows in prop::collection::vec(row_seed(), 0..50),
        repeats in prop_oneof![3 => Just(1_usize), 1 => 1..60_usize],
        cut in 0..60_usize,
        question in question(),
    ) {
        let formats = world.schemas();
        let newest = formats.last().expect("there is one");
        let query = question.compile(&Layout::of_rows(newest));
        let objects: Vec<Object> = rows.iter().map(|seed| row(&formats, seed)).collect();
        check(&query, &objects, repeats, cut);
    }

    /// Layouts that are written by hand: keys of components, values that stand for missing, parts.
    #[test]
    fn layouts_by_column_are_layouts_one_by_one(
        objects in prop::collection::vec((
            (0..4_usize, prop::option::of(0..3_u16), any::<bool>()),
            (prop::sample::select(vec![i16::MIN, -1, 0, 7, 300]), 0..4_u8, 0..30_u8, prop::sample::select(vec![0.0, -0.0, 1.5, f64::NAN, f64::INFINITY])),
            prop::option::weighted(0.1, 0..30_usize),
        ), 0..50),
        repeats in prop_oneof![3 => Just(1_usize), 1 => 1..60_usize],
        cut in 0..60_usize,
        question in question(),
    ) {
        let layout = "key(c0:str, c1:u16?, c2:bool), c3:i16le?-32768, c4:u8@2?3, c5:text3@3?'t7', c6:f64le@6?1.5, c7:u8@2, \
            c8:bytes@3, c9:split(\"t\",1).text?'', c10:i128le@3";
        let query = question.compile(&layout.parse().expect("a layout"));
        let objects: Vec<Object> = objects
            .iter()
            .map(|&((text, number, truth), (short, byte, name, float), cut)| {
                let key = sapwood_schema::key::encode(&(TEXTS[text], number, truth));
                let name = format!("t{name}\0\0");
                let parts = [&short.to_le_bytes()[..], &[byte], &name.as_bytes()[..3], &float.to_le_bytes(), &[0; 5]];
                let mut value = parts.concat();
                value.truncate(cut.unwrap_or(value.len()));
                (key, value)
            })
            .collect();
        check(&query, &objects, repeats, cut);
    }
}

/// What should go by column does, and none of these objects by itself.
#[test]
fn rows_of_a_schema_stay_on_columns() {
    let schema: Schema = "carrier:text, day:date, flight:u16?, delay:i16?, fare:f64?, price:decimal(9,2)?, late:bool?, \
        at:timestamp?, plane:text?, miles:i32, key(carrier, day, flight)"
        .parse()
        .expect("a schema");
    let format = Arc::new(RowFormat::new(schema));
    let layout = Layout::of_rows(&format);
    let rows: Vec<Object> = (0..RUN - 1)
        .map(|at| {
            let null = |every: usize, value: Typed<'static>| match at % every {
                0 => Typed::Null,
                _ => value,
            };
            let number = at as i128;
            let row = [
                Typed::Text(["UA", "AA", "B6"][at % 3].into()),
                Typed::Date(15_000 + at as i32 / 9),
                null(11, Typed::Int(number)),
                null(5, Typed::Int(number % 90 - 20)),
                null(7, Typed::Float(at as f64 / 8.0)),
                null(4, Typed::Decimal { units: number, scale: 2 }),
                null(3, Typed::Bool(at.is_multiple_of(2))),
                null(
                    6,
                    Typed::Timestamp {
                        ticks: at as i64 * 977,
                        precision: sapwood_schema::Precision::Micros,
                    },
                ),
                null(8, Typed::Text(format!("N{}", at % 20).into())),
                Typed::Int(number),
            ];
            let (mut key, mut value) = (Vec::new(), Vec::new());
            format.encode(&row, None, &mut key, &mut value).expect("values of their types");
            (key, value)
        })
        .collect();
    let figures = "count, count(plane), sum(delay), mean(fare), sum(price), min(at), max(day), min(plane), variance(delay), \
        sum(miles)";
    for (filter, groups) in [
        ("", ""),
        ("delay > 15 and not late = true", "carrier"),
        ("plane begins with 'N1' or plane in ('N2', 'N3')", "plane"),
        ("carrier = 'UA' and day >= '2011-02-01' and at < '1971'", "carrier, plane"),
        ("delay is missing or not (delay between_ 0)", "flight, day, late"),
        ("at begins with '1970-01-01 00:00:00.5'", "bucket(delay, 15), classes(fare, 0, 2.5)"),
        ("flight in (1, 2, 300, 4.0) or fare <= 3", "at"),
        ("not delay >= miles and fare != price", ""),
    ] {
        let filter = filter.replace("between_ 0", ">= 0");
        let mut query =
            Query::new(layout.clone()).aggregates(Aggregate::list(figures).expect("figures"));
        if !filter.is_empty() {
            query = query.filter(filter.parse().unwrap_or_else(|error| panic!("{error}")));
        }
        if !groups.is_empty() {
            query = query.group_by(Group::list(groups).expect("groups"));
        }
        let query = query.compile().unwrap_or_else(|error| panic!("{error}"));
        assert!(query.goes_by_column(), "{filter} {groups}");
        let mut fold = query.fold();
        for (key, value) in &rows {
            let taken = |fold: &Fold<'_>| fold.scratch.as_ref().map_or(0, Scratch::len);
            let before = taken(&fold);
            fold.push(key, value).expect("few groups");
            // One more in the run, or the run was folded.
            let is_folded = before > 0 && taken(&fold) == 0;
            assert!(is_folded || taken(&fold) == before + 1, "{filter} {groups}");
        }
        check(&query, &rows, 3, 100);
    }
}

//! Answers are those of a naive program over the same objects, however these are split and merged.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sapwood_aggregate::{
    Accuracy, Aggregate, Answer, Cell, Compiled, Group, Mismatches, Missing, OrderBy, Partial,
    Query, QueryError, Selection, Value,
};

use crate::flight::{self, CARRIERS, Flight, WHOLE, flights};

/// A condition as the naive program knows it.
#[derive(Debug, Clone)]
enum Condition {
    Delay(&'static str, i32),
    DelayIn(Vec<i32>),
    /// In eighths.
    Weight(&'static str, i32),
    Carrier(&'static str, &'static str),
    CarrierBegins(&'static str),
    Gate(&'static str, i16),
    GateMissing,
    DelayAgainstGate(&'static str),
    Key(&'static str, u16),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

/// What an object does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unreadable;

type Read<T> = Result<T, Unreadable>;

/// How the naive program reads fields.
struct Reader<'a> {
    flight: &'a Flight,
    refuses_missing: bool,
}

impl Reader<'_> {
    fn up_to(&self, len: usize) -> Read<()> {
        if self.flight.len >= len { Ok(()) } else { Err(Unreadable) }
    }

    fn delay(&self) -> Read<i32> {
        self.up_to(4).map(|()| self.flight.delay)
    }

    fn hour(&self) -> Read<u8> {
        self.up_to(5).map(|()| self.flight.hour)
    }

    fn weight(&self) -> Read<i32> {
        self.up_to(13)?;
        self.flight.weight.ok_or(Unreadable)
    }

    fn carrier(&self) -> Read<&'static str> {
        self.up_to(15).map(|()| self.flight.carrier)
    }

    fn gate(&self) -> Read<Option<i16>> {
        self.up_to(WHOLE).map(|()| self.flight.gate)
    }

    fn unknown(&self) -> Read<Option<bool>> {
        if self.refuses_missing { Err(Unreadable) } else { Ok(None) }
    }
}

fn holds(comparison: &str, order: Ordering) -> bool {
    match comparison {
        "=" => order == Ordering::Equal,
        "!=" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        ">=" => order != Ordering::Less,
        other => panic!("{other}"),
    }
}

impl Condition {
    fn text(&self) -> String {
        let joined = |parts: &[Condition], word: &str| {
            let parts: Vec<_> = parts.iter().map(|part| format!("({})", part.text())).collect();
            parts.join(word)
        };
        match self {
            Condition::Delay(comparison, value) => format!("delay {comparison} {value}"),
            Condition::DelayIn(values) => {
                let values: Vec<_> = values.iter().map(i32::to_string).collect();
                format!("delay in ({})", values.join(", "))
            }
            Condition::Weight(comparison, eighths) => {
                format!("weight {comparison} {:?}", f64::from(*eighths) / 8.0)
            }
            Condition::Carrier(comparison, value) => format!("'{value}' {comparison} carrier"),
            Condition::CarrierBegins(prefix) => format!("carrier begins with '{prefix}'"),
            Condition::Gate(comparison, value) => format!("gate {comparison} {value}"),
            Condition::GateMissing => "gate is missing".to_owned(),
            Condition::DelayAgainstGate(comparison) => format!("delay {comparison} gate"),
            Condition::Key(comparison, number) => format!("key {comparison} x\"{number:04x}\""),
            Condition::Not(part) => format!("not ({})", part.text()),
            Condition::And(parts) => joined(parts, " and "),
            Condition::Or(parts) => joined(parts, " or "),
        }
    }

    fn ask(&self, reader: &Reader<'_>) -> Read<Option<bool>> {
        Ok(match self {
            Condition::Delay(comparison, value) => {
                Some(holds(comparison, reader.delay()?.cmp(value)))
            }
            Condition::DelayIn(values) => Some(values.contains(&reader.delay()?)),
            Condition::Weight(comparison, eighths) => {
                Some(holds(comparison, reader.weight()?.cmp(eighths)))
            }
            Condition::Carrier(comparison, value) => {
                Some(holds(comparison, (*value).cmp(reader.carrier()?)))
            }
            Condition::CarrierBegins(prefix) => Some(reader.carrier()?.starts_with(prefix)),
            Condition::GateMissing => Some(reader.gate()?.is_none()),
            Condition::Gate(comparison, value) => match reader.gate()? {
                Some(gate) => Some(holds(comparison, gate.cmp(value))),
                None => return reader.unknown(),
            },
            Condition::DelayAgainstGate(comparison) => match (reader.delay()?, reader.gate()?) {
                (delay, Some(gate)) => Some(holds(comparison, delay.cmp(&i32::from(gate)))),
                (_, None) => return reader.unknown(),
            },
            Condition::Key(comparison, number) => {
                Some(holds(comparison, reader.flight.key()[..].cmp(&number.to_be_bytes())))
            }
            Condition::Not(part) => part.ask(reader)?.map(|truth| !truth),
            Condition::And(parts) => Connective::And.ask(parts, reader)?,
            Condition::Or(parts) => Connective::Or.ask(parts, reader)?,
        })
    }
}

enum Connective {
    And,
    Or,
}

impl Connective {
    /// The first part that is false under `And`, or true under `Or`, ends it.
    fn ask(self, parts: &[Condition], reader: &Reader<'_>) -> Read<Option<bool>> {
        let decisive = matches!(self, Connective::Or);
        let mut is_unknown = false;
        for part in parts {
            match part.ask(reader)? {
                Some(truth) if truth == decisive => return Ok(Some(decisive)),
                Some(_) => {}
                None => is_unknown = true,
            }
        }
        Ok((!is_unknown).then_some(!decisive))
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let comparison = || prop::sample::select(&["=", "!=", "<", "<=", ">", ">="][..]);
    let carrier = || prop::sample::select(&CARRIERS[..]);
    let leaf = prop_oneof![
        (comparison(), -30..50_i32).prop_map(|(c, v)| Condition::Delay(c, v)),
        prop::collection::vec(-20..40_i32, 0..9).prop_map(Condition::DelayIn),
        (comparison(), -80..80_i32).prop_map(|(c, v)| Condition::Weight(c, v)),
        (comparison(), carrier()).prop_map(|(c, v)| Condition::Carrier(c, v)),
        prop::sample::select(&["", "U", "UA", "UAX"][..]).prop_map(Condition::CarrierBegins),
        (comparison(), 0..5_i16).prop_map(|(c, v)| Condition::Gate(c, v)),
        Just(Condition::GateMissing),
        comparison().prop_map(Condition::DelayAgainstGate),
        (comparison(), any::<u16>()).prop_map(|(c, v)| Condition::Key(c, v)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|part| Condition::Not(Box::new(part))),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Condition::And),
            prop::collection::vec(inner, 1..4).prop_map(Condition::Or),
        ]
    })
}

/// Which of these the query groups by.
const GROUPS: [&str; 5] =
    ["carrier", "bucket(delay, 15, 3)", "classes(delay, -5, 0, 15.5)", "gate", "hour"];

const FIGURES: &str = "count, count(gate), sum(delay), sum(weight), min(delay), max(weight), \
    min(carrier), max(gate), mean(delay), mean(weight), variance(delay), stddev_pop(delay), \
    first(carrier), last(hour), first(delay by weight), last(key by gate), distinct(delay), \
    distinct(carrier), quantile(delay, 0.5), quantile(weight, 0.9), top(hour, 3)";

#[derive(Debug, Clone)]
struct Question {
    condition: Option<Condition>,
    groups: Vec<usize>,
    numbers: Option<BTreeSet<u16>>,
    refuses_missing: bool,
}

fn question() -> impl Strategy<Value = Question> {
    let groups = prop::sample::subsequence((0..GROUPS.len()).collect::<Vec<_>>(), 0..4);
    let number = (0..90_u16).prop_map(|at| at.wrapping_mul(40_503));
    let numbers = prop::collection::btree_set(number, 0..60);
    let condition = prop::option::of(condition());
    (condition, groups, prop::option::weighted(0.3, numbers), prop::bool::weighted(0.2)).prop_map(
        |(condition, groups, numbers, refuses_missing)| Question {
            condition,
            groups,
            numbers,
            refuses_missing,
        },
    )
}

impl Question {
    fn compile(&self) -> Compiled {
        let groups: Vec<_> = self.groups.iter().map(|&at| GROUPS[at]).collect();
        let groups = match groups.is_empty() {
            true => Vec::new(),
            false => Group::list(&groups.join(", ")).expect("groups"),
        };
        let mut query = Query::new(flight::LAYOUT.parse().expect("a layout"))
            .group_by(groups)
            .aggregates(Aggregate::list(FIGURES).expect("figures"))
            .mismatches(Mismatches::Skip)
            .missing(if self.refuses_missing { Missing::Refuse } else { Missing::PassOver });
        if let Some(condition) = &self.condition {
            let text = condition.text();
            query = query.filter(text.parse().unwrap_or_else(|error| panic!("{error}")));
        }
        if let Some(numbers) = &self.numbers {
            let of_class = |class: u8| {
                numbers
                    .iter()
                    .map(move |number| [&number.to_be_bytes()[..], b"/", &[class]].concat())
            };
            query = query.select(Selection::keys((0..4).flat_map(of_class)));
        }
        query.compile().expect("a query")
    }

    fn selects(&self, flight: &Flight) -> bool {
        self.numbers.as_ref().is_none_or(|numbers| numbers.contains(&flight.number))
    }

    /// The group of a flight that matches; none if it does not.
    fn group(&self, flight: &Flight) -> Read<Option<Vec<Option<Value<'static>>>>> {
        let reader = Reader { flight, refuses_missing: self.refuses_missing };
        if let Some(condition) = &self.condition
            && condition.ask(&reader)? != Some(true)
        {
            return Ok(None);
        }
        // The figures read every field.
        reader.delay()?;
        reader.weight()?;
        if reader.gate()?.is_none() && self.refuses_missing {
            return Err(Unreadable);
        }
        let value = |&at: &usize| {
            Ok(match at {
                0 => Some(reader.carrier()?.into()),
                1 => {
                    let delay = reader.delay()?;
                    Some(((delay - 3).div_euclid(15) * 15 + 3).into())
                }
                2 => Some(match reader.delay()? {
                    ..-5 => Value::float(f64::NEG_INFINITY).expect("not NaN"),
                    -5..0 => (-5).into(),
                    0..16 => 0.into(),
                    _ => Value::float(15.5).expect("not NaN"),
                }),
                3 => reader.gate()?.map(Value::from),
                _ => Some(reader.hour()?.into()),
            })
        };
        self.groups.iter().map(value).collect::<Read<_>>().map(Some)
    }
}

fn float(value: f64) -> Value<'static> {
    Value::float(value).expect("not NaN")
}

/// One over the other, both exact, rounded once: as division of floats is.
fn ratio(numerator: i64, denominator: i64) -> Option<Value<'static>> {
    assert!(numerator.abs() < 1 << 53 && denominator < 1 << 53, "exact in floats");
    (denominator != 0).then(|| float(numerator as f64 / denominator as f64))
}

/// The figures of [`FIGURES`], without the last three, which are approximate.
fn figures(flights: &[&Flight]) -> Vec<Option<Value<'static>>> {
    let count = flights.len() as i64;
    let delays: Vec<i64> = flights.iter().map(|flight| flight.delay.into()).collect();
    let weights: Vec<i32> = flights.iter().filter_map(|flight| flight.weight).collect();
    let gates: Vec<i16> = flights.iter().filter_map(|flight| flight.gate).collect();
    let sum: i64 = delays.iter().sum();
    let squares: i64 = delays.iter().map(|delay| delay * delay).sum();
    let spread = count * squares - sum * sum;
    let eighths = |value: i64| float(value as f64 / 8.0);
    let weight: i64 = weights.iter().map(|&weight| i64::from(weight)).sum();
    let first = flights.iter().min_by_key(|flight| flight.key());
    let last = flights.iter().max_by_key(|flight| flight.key());
    let lightest = flights.iter().min_by_key(|flight| (flight.weight, flight.key()));
    let farthest = flights.iter().filter(|flight| flight.gate.is_some());
    let farthest = farthest.max_by_key(|flight| (flight.gate, flight.key()));
    let some = |value: Value<'static>| (count > 0).then_some(value);
    let different = |values: BTreeSet<String>| Some(Value::from(values.len() as u64));
    vec![
        Some(count.into()),
        Some((gates.len() as u64).into()),
        some(sum.into()),
        some(eighths(weight)),
        delays.iter().min().map(|&delay| delay.into()),
        weights.iter().max().map(|&weight| eighths(weight.into())),
        flights.iter().map(|flight| flight.carrier).min().map(Value::from),
        gates.iter().max().map(|&gate| gate.into()),
        ratio(sum, count),
        ratio(weight, count * 8),
        if count > 1 { ratio(spread, count * (count - 1)) } else { None },
        ratio(spread, count * count).map(|variance| match variance {
            Value::Float(variance) => float(variance.get().sqrt()),
            other => other,
        }),
        first.map(|flight| flight.carrier.into()),
        last.map(|flight| flight.hour.into()),
        lightest.map(|flight| flight.delay.into()),
        farthest.map(|flight| Value::from(&flight.key()[..]).into_owned()),
        different(delays.iter().map(i64::to_string).collect()),
        different(flights.iter().map(|flight| flight.carrier.to_owned()).collect()),
    ]
}

fn cell(cell: &Cell) -> Option<Value<'static>> {
    match cell {
        Cell::Nothing => None,
        Cell::Value(value) => Some(value.clone()),
        Cell::Top(_) => panic!("a list"),
    }
}

/// A quantile of so many numbers, which are few.
fn check_quantile(found: &Cell, mut numbers: Vec<f64>, share: f64) {
    numbers.sort_by(f64::total_cmp);
    let position = share * numbers.len().saturating_sub(1) as f64;
    match (cell(found), numbers.get(position as usize)) {
        (None, None) => {}
        (Some(Value::Float(found)), Some(lower)) => {
            let upper = numbers.get(position as usize + 1).unwrap_or(lower);
            assert_eq!(found.get(), lower + (upper - lower) * position.fract());
        }
        other => panic!("{other:?}"),
    }
}

fn check_row(row: &[Cell], group: &[Option<Value<'static>>], flights: &[&Flight]) {
    let (group_cells, rest) = row.split_at(group.len());
    let found: Vec<_> = group_cells.iter().map(cell).collect();
    assert_eq!(found, group);
    let (exact, rest) = rest.split_at(rest.len() - 3);
    let found: Vec<_> = exact.iter().map(cell).collect();
    assert_eq!(found, figures(flights), "group {group:?}");
    let [delay, weight, top] = rest else { panic!("three figures") };
    check_quantile(delay, flights.iter().map(|flight| flight.delay.into()).collect(), 0.5);
    let weights = flights.iter().filter_map(|flight| flight.weight);
    check_quantile(weight, weights.map(|weight| f64::from(weight) / 8.0).collect(), 0.9);
    let mut hours = BTreeMap::new();
    flights.iter().for_each(|flight| *hours.entry(flight.hour).or_insert(0_u64) += 1);
    let mut hours: Vec<_> = hours.into_iter().collect();
    hours.sort_by_key(|&(hour, count)| (std::cmp::Reverse(count), hour));
    let Cell::Top(top) = top else { panic!("a list") };
    let found: Vec<_> = top.iter().map(|e| (e.value.clone(), e.at_least, e.at_most)).collect();
    let expected = hours.iter().take(3).map(|&(hour, count)| (hour.into(), count, count));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

/// What has no value comes last.
fn order(left: &[Option<Value<'_>>], right: &[Option<Value<'_>>]) -> Ordering {
    let absent = |value: &Option<Value<'_>>| value.is_none();
    let pairs = left.iter().zip(right);
    let each = pairs.map(|(l, r)| (absent(l), l).cmp(&(absent(r), r)));
    each.fold(Ordering::Equal, Ordering::then)
}

fn check_answer(question: &Question, flights: &[Flight], answer: &Answer) {
    let mut rows: Vec<(Vec<Option<Value<'static>>>, Vec<&Flight>)> = Vec::new();
    let mut tally = [0_u64; 4];
    for flight in flights.iter().filter(|flight| question.selects(flight)) {
        tally[0] += 1;
        match question.group(flight) {
            Err(Unreadable) => tally[2] += 1,
            Ok(None) => {}
            Ok(Some(group)) => {
                tally[1] += 1;
                tally[3] += u64::from(flight.gate.is_none());
                match rows.iter_mut().find(|(known, _)| *known == group) {
                    Some((_, members)) => members.push(flight),
                    None => rows.push((group, vec![flight])),
                }
            }
        }
    }
    if question.groups.is_empty() && rows.is_empty() {
        rows.push((Vec::new(), Vec::new()));
    }
    rows.sort_by(|left, right| order(&left.0, &right.0));
    let found = &answer.tally;
    assert_eq!([found.selected, found.matched, found.mismatched, found.missing], tally);
    assert_eq!(found.first_mismatch.is_some(), tally[2] > 0);
    assert_eq!(answer.groups, rows.len() as u64);
    assert_eq!(answer.rows.len(), rows.len());
    for (row, (group, members)) in answer.rows.iter().zip(&rows) {
        check_row(row, group, members);
    }
}

fn fold<'a>(query: &Compiled, flights: impl Iterator<Item = &'a Flight>) -> Partial {
    let mut fold = query.fold();
    flights.for_each(|flight| fold.push(&flight.key(), &flight.value()).expect("few groups"));
    fold.into_partial()
}

proptest! {
    #![proptest_config(crate::cases(400))]

    #[test]
    fn answers_are_those_of_a_naive_program(flights in flights(3), question in question()) {
        let query = question.compile();
        let answer = query.finish(fold(&query, flights.iter())).expect("an answer");
        check_answer(&question, &flights, &answer);
    }

    /// Any parts, merged in any tree, some on the way as bytes, are the whole.
    #[test]
    fn parts_merge_to_the_whole(
        flights in flights(2),
        question in question(),
        homes in prop::collection::vec(0_usize..6, 60),
        merges in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()), 5),
    ) {
        let query = question.compile();
        let whole = fold(&query, flights.iter()).encode();
        let mut parts: Vec<Partial> = (0..6)
            .map(|part| {
                let members = flights.iter().zip(&homes).filter(|&(_, &home)| home == part);
                fold(&query, members.map(|(flight, _)| flight))
            })
            .collect();
        for (left, right, travels) in merges {
            let left = parts.remove(left.index(parts.len()));
            let mut right = parts.remove(right.index(parts.len()));
            if travels {
                let bytes = right.encode();
                right = query.decode(&bytes).expect("what was encoded");
                prop_assert_eq!(right.encode(), bytes);
            }
            parts.push(query.merge(left, right).expect("few groups"));
        }
        prop_assert_eq!(parts.len(), 1);
        let merged = parts.remove(0);
        prop_assert_eq!(merged.encode(), whole);
        check_answer(&question, &flights, &query.finish(merged).expect("an answer"));
    }

    #[test]
    fn merging_with_nothing_changes_nothing(flights in flights(2), question in question()) {
        let query = question.compile();
        let some = fold(&query, flights.iter());
        let bytes = some.encode();
        let merged = query.merge(query.empty(), some.clone()).expect("few groups");
        prop_assert_eq!(merged.encode(), &bytes[..]);
        prop_assert_eq!(query.merge(some, query.empty()).expect("few groups").encode(), bytes);
    }

    /// `having`, order and limit against the rows without them.
    #[test]
    fn rows_are_filtered_sorted_and_cut(
        flights in flights(0),
        least in 0..4_u64,
        limit in 0..12_usize,
        descends in any::<bool>(),
    ) {
        let way = if descends { "desc" } else { "asc" };
        let query = Query::new(flight::LAYOUT.parse().expect("a layout"))
            .group_by(Group::list("hour, gate").expect("groups"))
            .aggregates(Aggregate::list("count, max(gate) as far, sum(delay)").expect("figures"));
        let all = query.compile().expect("a query");
        let some = query
            .having(format!("count >= {least} or sum(delay) > 100").parse().expect("a condition"))
            .order_by(OrderBy::list(&format!("far {way}, sum(delay)")).expect("an order"))
            .limit(limit)
            .compile()
            .expect("a query");
        let whole = fold(&all, flights.iter());
        // What matters at the end alone does not tell partial states apart.
        let found = some.finish(whole.clone()).expect("an answer");
        let whole = all.finish(whole).expect("an answer");
        let mut expected: Vec<Vec<Cell>> = whole.rows.clone();
        expected.retain(|row| {
            let number = |at: usize| match cell(&row[at]) {
                Some(Value::Int(number)) => number,
                other => panic!("{other:?}"),
            };
            number(2) >= least.into() || number(4) > 100
        });
        expected.sort_by(|left, right| {
            let key = |row: &[Cell]| [3, 4, 0, 1].map(|at| cell(&row[at]));
            let (left, right) = (key(left), key(right));
            let far = match (&left[0], &right[0]) {
                (Some(_), Some(_)) if descends => left[0].cmp(&right[0]).reverse(),
                _ => order(&left[..1], &right[..1]),
            };
            far.then_with(|| order(&left[1..], &right[1..]))
        });
        expected.truncate(limit);
        prop_assert_eq!(found.rows, expected);
        prop_assert_eq!(found.groups, whole.groups);
    }
}

#[test]
fn nothing_selected_has_no_figures_but_counts() {
    let question = Question {
        condition: None,
        groups: Vec::new(),
        numbers: Some(BTreeSet::new()),
        refuses_missing: false,
    };
    let query = question.compile();
    let answer = query.finish(query.empty()).expect("an answer");
    check_answer(&question, &[], &answer);
    assert_eq!(answer.value(0, "count"), Ok(&0.into()));
    let nothing = answer.value(0, "mean(delay)");
    assert_eq!(nothing, Err(QueryError::Nothing { column: "mean(delay)".to_owned() }));

    let grouped = Question { groups: vec![0], ..question }.compile();
    assert!(grouped.finish(grouped.empty()).expect("an answer").rows.is_empty());
}

#[test]
fn threads_share_a_query() {
    let query = Query::new("n:u32le".parse().expect("a layout"))
        .aggregates(Aggregate::list("count, sum(n)").expect("figures"))
        .compile()
        .expect("a query");
    let part = |from: u32| {
        let mut fold = query.fold();
        for n in (from..30_000).step_by(3) {
            fold.push(&n.to_be_bytes(), &n.to_le_bytes()).expect("no groups");
        }
        fold.into_partial()
    };
    let parts: Vec<Partial> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|from| scope.spawn(move || part(from))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let merge = |left, right| query.merge(left, right).expect("one query");
    let answer = query.finish(parts.into_iter().fold(query.empty(), merge)).expect("an answer");
    assert_eq!(answer.value(0, "sum(n)"), Ok(&(30_000 * 29_999 / 2).into()));
}

#[test]
fn medians_are_called_as_they_were_asked_for_and_are_exact_while_few() {
    let query = |figures: &str| {
        Query::new("n:u64le".parse().expect("a layout"))
            .aggregates(Aggregate::list(figures).expect("figures"))
    };
    let answer = |query: Query, numbers: std::ops::Range<u64>| {
        let query = query.compile().expect("a query");
        let mut fold = query.fold();
        for number in numbers {
            fold.push(&number.to_be_bytes(), &number.to_le_bytes()).expect("one group");
        }
        query.finish(fold.into_partial()).expect("an answer")
    };
    let few = answer(query("median(n), avg(n)"), 116..178);
    let names: Vec<&str> = few.columns.iter().map(|column| &column.name[..]).collect();
    assert_eq!(names, ["median(n)", "avg(n)"]);
    assert_eq!(few.value(0, "median(n)"), Ok(&Value::float(146.5).expect("a number")));
    assert_eq!(few.columns[0].accuracy, Accuracy::Rounded);
    let many = answer(query("median(n)"), 1..10_001);
    assert_eq!(many.columns[0].accuracy, Accuracy::Within(0.01));

    // By either name, wherever a column is named.
    for (figures, order) in [
        ("median(n)", "quantile(n, 0.5)"),
        ("quantile(n, 0.5)", "median(n)"),
        ("avg(n)", "mean(n)"),
    ] {
        let having = format!("{order} > 200").parse().expect("a condition");
        let order = OrderBy::list(order).expect("an order");
        assert_eq!(answer(query(figures).order_by(order.clone()), 0..9).rows.len(), 1);
        assert_eq!(answer(query(figures).order_by(order).having(having), 0..9).rows.len(), 0);
    }
}

#[test]
fn a_query_knows_which_fields_it_reads() {
    let query =
        Query::new("a:u8, b:u8@1, c:u8@2, d:u8@3, e:u8@4, f:u8@5".parse().expect("a layout"))
            .filter("not (a = 1 or b < c) and d is missing".parse().expect("a condition"))
            .group_by(Group::list("e").expect("groups"))
            .aggregates(Aggregate::list("count").expect("figures"))
            .compile()
            .expect("a query");
    let read: Vec<&str> = ["a", "b", "c", "d", "e", "f", "none"]
        .into_iter()
        .filter(|name| query.reads_field(name))
        .collect();
    assert_eq!(read, ["a", "b", "c", "d", "e"]);
}

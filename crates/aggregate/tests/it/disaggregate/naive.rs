//! Cases drawn at random, beside a naive program.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sapwood_aggregate::{
    Action, Collected, Disaggregation, Disaggregator, Outcome, QueryError, Selection, Shares, Value,
};
use sapwood_engine::{Addresses, Column, ColumnBatch, RecordAddress, Validity};

use super::{check_columns, parts_of};

/// Objects by key. A value is the field, a weight of 4 bytes, and a byte to filter by.
type Objects = BTreeMap<Vec<u8>, (i128, u32, u8)>;

/// Whole numbers that a field may be, with the numbers that it can hold.
const FORMS: [(&str, i128, i128); 12] = [
    ("u8", 0, u8::MAX as i128),
    ("i8", i8::MIN as i128, i8::MAX as i128),
    ("u16be", 0, u16::MAX as i128),
    ("i16ord", i16::MIN as i128, i16::MAX as i128),
    ("u32le", 0, u32::MAX as i128),
    ("i32be", i32::MIN as i128, i32::MAX as i128),
    ("u64ord", 0, u64::MAX as i128),
    ("i64le", i64::MIN as i128, i64::MAX as i128),
    ("i64be", i64::MIN as i128, i64::MAX as i128),
    ("u128le", 0, i128::MAX),
    ("i128ord", i128::MIN, i128::MAX),
    ("decimal", i128::MIN, i128::MAX),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Equally,
    InProportion,
    Listed,
}

#[derive(Debug, Clone)]
struct Case {
    form: usize,
    how: How,
    action: Action,
    total: i128,
    filters: bool,
    objects: Objects,
    selection: Selection,
}

/// Where the field begins: behind the weight and the byte to filter by.
const AT: usize = 5;

impl Case {
    fn value(&self, (field, weight, class): (i128, u32, u8)) -> Vec<u8> {
        let mut value = weight.to_le_bytes().to_vec();
        value.push(class);
        let width = FORMS[self.form].0.trim_matches(|c: char| !c.is_ascii_digit());
        let Ok(bits) = width.parse::<usize>() else {
            value.extend(field.to_string().bytes());
            return value;
        };
        let form = FORMS[self.form].0;
        let flips = form.starts_with('i') && form.ends_with("ord");
        let raw = if flips { field ^ (1 << (bits - 1)) } else { field };
        match form.ends_with("le") {
            true => value.extend(&raw.to_le_bytes()[..bits / 8]),
            false => value.extend(&raw.to_be_bytes()[16 - bits / 8..]),
        }
        value
    }

    fn description(&self) -> Disaggregation {
        let layout = format!("weight:u32le, class:u8@4, field:{}@{AT}", FORMS[self.form].0);
        let mut asked = Disaggregation::new(layout.parse().expect("a layout"), "field", self.total)
            .select(self.selection.clone());
        if self.filters {
            asked = asked.filter("class > 1".parse().expect("a condition"));
        }
        asked = match self.action {
            Action::Set => asked.setting(),
            Action::Add => asked.adding(),
        };
        match self.how {
            How::Equally => asked.equally(),
            How::InProportion => asked.in_proportion_to("weight"),
            How::Listed => asked.weights(
                self.objects.iter().map(|(key, object)| (key.clone(), u64::from(object.1))),
            ),
        }
    }

    fn compile(&self) -> Disaggregator {
        self.description().compile().unwrap_or_else(|error| panic!("{error}"))
    }

    fn selected(&self) -> BTreeMap<&[u8], (i128, u32, u8)> {
        let takes =
            |key: &[u8], class: u8| self.selection.contains(key) && (!self.filters || class > 1);
        let objects = self.objects.iter();
        let taken = objects.filter(|(key, object)| takes(key, object.2));
        taken.map(|(key, object)| (&key[..], *object)).collect()
    }

    /// Each object's part, with everything sorted.
    fn parts(&self) -> Result<BTreeMap<&[u8], i128>, &'static str> {
        let selected = self.selected();
        let weight = |object: &(i128, u32, u8)| match self.how {
            How::Equally => 1,
            How::InProportion | How::Listed => u128::from(object.1),
        };
        let sum: u128 = selected.values().map(weight).sum();
        if sum == 0 && self.total != 0 {
            return Err(if selected.is_empty() { "no object" } else { "all zero" });
        }
        let magnitude = self.total.unsigned_abs();
        let sum = sum.max(1);
        let mut left = magnitude;
        let mut order = Vec::new();
        for (&key, object) in &selected {
            let (quotient, remainder) =
                (magnitude / sum * weight(object), magnitude % sum * weight(object));
            let part = quotient + remainder / sum;
            left -= part;
            order.push((std::cmp::Reverse(remainder % sum), key, part));
        }
        order.sort();
        for (_, _, part) in order.iter_mut().take(left as usize) {
            *part += 1;
        }
        let sign = self.total.signum();
        Ok(order.into_iter().map(|(_, key, part)| (key, sign * part as i128)).collect())
    }

    fn after(&self, before: i128, part: i128) -> Option<i128> {
        let after = match self.action {
            Action::Set => part,
            Action::Add => before.checked_add(part)?,
        };
        let (_, min, max) = FORMS[self.form];
        (min..=max).contains(&after).then_some(after)
    }

    fn table(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let objects = self.objects.iter();
        objects.map(|(key, object)| (key.clone(), self.value(*object))).collect()
    }
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(0..3_u8, 0..6),
        (0..40_u64).prop_map(|key| key.to_be_bytes().to_vec()),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let how = prop::sample::select(vec![How::Equally, How::InProportion, How::Listed]);
    let action = prop::sample::select(vec![Action::Set, Action::Add]);
    let total = prop_oneof![
        Just(0_i128),
        -300..300_i128,
        any::<i32>().prop_map(i128::from),
        any::<i64>().prop_map(i128::from),
        prop::sample::select(vec![1 << 80, -(1 << 90)]),
    ];
    let weight = prop_oneof![Just(0), 0..4_u32, any::<u32>()];
    let share = prop_oneof![Just(0_u8), any::<u8>(), Just(255)];
    let object = (share, weight, 0..4_u8);
    let selection = prop_oneof![
        3 => Just(Selection::EVERYTHING),
        1 => prop::collection::vec(key(), 0..20).prop_map(Selection::keys),
        1 => key().prop_map(|prefix| Selection::prefix(&prefix)),
    ];
    let objects = prop::collection::btree_map(key(), object, 0..30);
    (0..FORMS.len(), how, action, total, any::<bool>(), objects, selection).prop_map(
        |(form, how, action, total, filters, objects, selection)| {
            let (_, min, max) = FORMS[form];
            // From the least number to the greatest, in 255 steps.
            let field = |share: u8| match share {
                255 => max,
                128 => 0,
                share => min.wrapping_add((max / 255 - min / 255).wrapping_mul(share.into())),
            };
            let objects = objects
                .into_iter()
                .map(|(key, (share, weight, class))| (key, (field(share), weight, class)));
            Case { form, how, action, total, filters, objects: objects.collect(), selection }
        },
    )
}

fn collect<'a>(
    by: &Disaggregator,
    objects: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>,
) -> Collected {
    let mut collector = by.collector();
    objects.for_each(|(key, value)| collector.push(key, value));
    collector.into_collected()
}

/// Applies shares to a table, those of the batches from `begin` on and at most `limit` of them.
fn apply(
    by: &Disaggregator,
    shares: &Shares<'_>,
    table: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    limit: usize,
) -> sapwood_aggregate::DisaggregationProgress {
    let mut progress = shares.progress();
    let all = (0..shares.batch_count())
        .flat_map(|at| shares.batch(at).shares().map(move |share| (at, share)));
    for (at, share) in all.take(limit) {
        let outcome = match table.get_mut(share.key) {
            None => Outcome::Vanished,
            Some(value) => {
                let mut rewritten = b"before".to_vec();
                let result = by.rewrite(value, share.part, &mut rewritten);
                match result {
                    Ok(_) => assert_eq!(rewritten[..6], *b"before"),
                    Err(_) => assert_eq!(rewritten, b"before"),
                }
                if by.changes_in_place() {
                    let mut changed = value.clone();
                    assert_eq!(by.change(&mut changed, share.part), result);
                    let expected = if result.is_ok() { &rewritten[6..] } else { &value[..] };
                    assert_eq!(changed, expected);
                }
                if result.is_ok() {
                    *value = rewritten[6..].to_vec();
                }
                result.into()
            }
        };
        progress.record(at, &share, outcome);
    }
    progress
}

proptest! {
    #![proptest_config(crate::cases(1500))]

    #[test]
    fn parts_are_those_of_a_naive_program(case in case(), threads in 1..4_usize) {
        let by = case.compile();
        let mut table = case.table();
        let entries: Vec<_> = table.iter().collect();
        let collected = (0..threads).map(|thread| collect(&by, entries.iter().copied().skip(thread).step_by(threads)));
        let shares = by.shares(collected.collect::<Vec<_>>());

        let selected = case.selected();
        let expected = match case.parts() {
            Err(says) => {
                let error = shares.expect_err(says).to_string();
                prop_assert!(error.contains(says), "{}", error);
                return Ok(());
            }
            Ok(parts) => parts,
        };
        let unfit: Vec<_> = expected.iter().filter(|&(key, &part)| case.after(selected[key].0, part).is_none()).collect();
        if let Some((key, _)) = unfit.first() {
            match shares {
                Err(QueryError::Unfit { count, first }) => {
                    prop_assert_eq!(count, unfit.len() as u64);
                    prop_assert_eq!(&first.key[..], **key);
                }
                other => prop_assert!(false, "{:?} for {:?}", other, unfit),
            }
            return Ok(());
        }
        let shares = shares.unwrap_or_else(|error| panic!("{error}"));
        let found = parts_of(&shares);
        prop_assert_eq!(found.iter().map(|(key, part)| (&key[..], *part)).collect::<BTreeMap<_, _>>(), expected.clone());
        prop_assert_eq!(shares.count(), selected.len() as u64);

        let progress = apply(&by, &shares, &mut table, usize::MAX);
        let report = shares.report(&progress);
        let mut expected_table = case.objects.clone();
        let (mut before, mut after) = (Some(0_i128), Some(0_i128));
        for (key, part) in &expected {
            let object = expected_table.get_mut(*key).expect("it was selected");
            before = before.and_then(|sum| sum.checked_add(object.0));
            object.0 = case.after(object.0, *part).expect("it fits");
            after = after.and_then(|sum| sum.checked_add(object.0));
        }
        for (key, object) in expected_table {
            prop_assert_eq!(&table[&key], &case.value(object));
        }
        prop_assert_eq!((report.changed, report.vanished, report.refused, report.pending), (expected.len() as u64, 0, 0, 0));
        prop_assert_eq!((report.given, report.not_given, report.pending_sum), (case.total, 0, 0));
        // A sum that leaves the range on the way and comes back is in range.
        if before.is_some() && after.is_some() {
            prop_assert_eq!(&report.sum_before, &before.map(Value::Int));
            prop_assert_eq!(report.sum_after, after.map(Value::Int));
            prop_assert_eq!(shares.sum_before().ok(), report.sum_before);
        }
    }

    /// Stopped anywhere, saved, and gone on with: as if it had not been stopped.
    #[test]
    fn what_is_left_is_gone_on_with(case in case(), stops in prop::collection::vec(0..9_usize, 1..4), gone in prop::collection::vec(key(), 0..6)) {
        let by = case.compile();
        let mut table = case.table();
        let Ok(mut shares) = by.shares([collect(&by, table.iter())]) else { return Ok(()) };
        let gone: BTreeSet<_> = gone.into_iter().filter(|key| table.remove(key).is_some()).collect();
        let parts = parts_of(&shares);
        let mut at_once = table.clone();
        let progress = apply(&by, &shares, &mut at_once, usize::MAX);
        let expected = shares.report(&progress);

        for stop in stops {
            let progress = apply(&by, &shares, &mut table, stop);
            let report = shares.report(&progress);
            prop_assert_eq!(report.given + report.not_given + report.pending_sum, case.total);
            let pending = shares.pending(&progress).expect("each object once");
            prop_assert_eq!(pending.count(), report.pending);
            let bytes = pending.encode();
            let read = by.decode(&bytes).unwrap_or_else(|error| panic!("{error}"));
            prop_assert_eq!(read.encode(), bytes);
            shares = by.resume(read).expect("the same disaggregation");
        }
        let progress = apply(&by, &shares, &mut table, usize::MAX);
        prop_assert_eq!(&table, &at_once);
        let report = shares.report(&progress);
        let vanished = parts.keys().filter(|key| gone.contains(*key)).count();
        prop_assert_eq!(report.vanished, vanished as u64);
        prop_assert_eq!(report.not_given, parts.iter().filter(|(key, _)| gone.contains(*key)).map(|(_, part)| part).sum::<i128>());
        prop_assert_eq!(report, expected);
    }

    /// However wide numbers are, equal weights are no weights.
    #[test]
    fn equal_weights_are_equal_parts(
        total in prop_oneof![any::<i128>(), Just(i128::MIN), Just(i128::MAX), any::<i64>().prop_map(i128::from)],
        weight in prop_oneof![Just(1), Just(u64::MAX), 1..u64::MAX],
        count in 1..40_u32,
    ) {
        let described = || Disaggregation::new("n:i128le".parse().expect("a layout"), "n", total);
        let keys = || (0..count).map(|at| (at * 7919 % 40).to_be_bytes());
        let parts = |asked: Disaggregation| {
            let by = asked.compile().expect("it can be changed");
            let mut collector = by.collector();
            keys().for_each(|key| collector.push(&key, &[0; 16]));
            parts_of(&by.shares([collector.into_collected()]).expect("it fits"))
        };
        let equal = parts(described());
        prop_assert_eq!(equal.values().copied().reduce(i128::wrapping_add), Some(total));
        let by_weights = parts(described().weights(keys().map(|key| (key, weight))));
        prop_assert_eq!(by_weights, equal);
    }

    /// By block, with addresses of any kind, as object by object.
    #[test]
    fn a_block_is_its_objects(
        case in case(),
        width in prop::sample::select(vec![8_usize, 8, 3, 20]),
        count in prop_oneof![0..50_usize, 1000..2100_usize],
        live in prop::sample::select(vec![1_u64, 2, 40]),
        how in 0..3,
        is_selected in any::<bool>(),
    ) {
        let case = Case { how: if case.how == How::Listed { How::Equally } else { case.how }, ..case };
        let by = case.compile();
        let samples: Vec<_> = case.objects.values().map(|object| case.value(*object)).collect();
        // Decimals differ in width, and one that is too short is a mismatch.
        let value_width = samples.iter().map(Vec::len).min().unwrap_or(0);
        let key = |at: usize| {
            let mixed = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            [&[0; 12][..], &(mixed << 24 | at as u64).to_be_bytes()].concat()[20 - width..].to_vec()
        };
        let stride = width + value_width.max(1) + 3;
        let mut bytes = vec![0xA5; count * stride];
        for (at, record) in bytes.chunks_mut(stride).enumerate() {
            record[..width].copy_from_slice(&key(at));
            if let Some(sample) = samples.get(at % samples.len().max(1)) {
                record[width..width + value_width].copy_from_slice(&sample[..value_width]);
            }
        }
        let bits: Vec<u64> = (0..count.div_ceil(64) as u64).map(|at| match live {
            1 => u64::MAX,
            2 => 0xF0F0_1234_FFFF_0F0F_u64.rotate_left(at as u32),
            _ => u64::from(at.is_multiple_of(3)),
        }).collect();
        let column = |offset: usize, width| Column::new(&bytes, offset.min(bytes.len()), stride, width).expect("inside");
        let block = ColumnBatch::new(count, column(0, width), column(width, value_width), Validity::Bits(&bits)).expect("inside");
        let each: Vec<_> = (0..count as u64).map(|at| RecordAddress::from_word(100 + 24 * at)).collect();
        let addresses = match how {
            0 => Addresses::None,
            1 => Addresses::Each(&each),
            _ => Addresses::Stepped { first: RecordAddress::from_word(100), step: 24 },
        };
        let block = block.with_addresses(addresses).expect("one for each");

        let (mut by_block, mut by_object) = (by.collector(), by.collector());
        match is_selected {
            true => by_block.push_batch_selected(&block),
            false => by_block.push_batch(&block),
        }
        for (at, record) in bytes.chunks(stride).enumerate() {
            if bits[at / 64] >> (at % 64) & 1 == 1 {
                let address = (how > 0).then_some(each[at]);
                let (key, value) = (&record[..width], &record[width..width + value_width]);
                match is_selected {
                    true => by_object.push_selected(key, value, address),
                    false => by_object.push_at(key, value, address),
                }
            }
        }
        prop_assert_eq!(by_block.count(), by_object.count());
        let [left, right] = [by_block, by_object].map(|collector| by.shares([collector.into_collected()]));
        match (left, right) {
            (Ok(left), Ok(right)) => {
                prop_assert_eq!(left.tally(), right.tally());
                prop_assert_eq!(left.sum_before(), right.sum_before());
                let all = |shares: &Shares<'_>| {
                    (0..shares.batch_count()).for_each(|at| check_columns(shares.batch(at)));
                    let all = (0..shares.batch_count()).flat_map(|at| shares.batch(at).shares());
                    all.map(|share| (share.key.to_vec(), share.address, share.part)).collect::<Vec<_>>()
                };
                prop_assert_eq!(all(&left), all(&right));
            }
            (left, right) => prop_assert_eq!(left.map(drop), right.map(drop)),
        }
    }
}

//! Parts are those of a naive program, and an object gets its own, once.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sapwood_aggregate::{
    Action, Collected, Collector, Disaggregated, Disaggregation, Disaggregator, Mismatches,
    Outcome, QueryError, Selection, ShareBatch, Shares, Value,
};
use sapwood_engine::{
    Addresses, Column, ColumnBatch, HeldKeys, RecordAddress, RecordRun, Validity,
};

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

fn parts_of(shares: &Shares<'_>) -> BTreeMap<Vec<u8>, i128> {
    (0..shares.batch_count()).for_each(|at| check_columns(shares.batch(at)));
    let mut parts = BTreeMap::new();
    for share in (0..shares.batch_count()).flat_map(|at| shares.batch(at).shares()) {
        assert_eq!(parts.insert(share.key.to_vec(), share.part), None);
    }
    parts
}

/// Columns of a batch are what its shares have.
fn check_columns(batch: ShareBatch<'_>) {
    let parts: Vec<i128> = batch.shares().map(|share| share.part).collect();
    assert_eq!(batch.len(), parts.len());
    let narrow: Option<Vec<i64>> = parts.iter().map(|&part| part.try_into().ok()).collect();
    let mut words = vec![7];
    match batch.word_parts(&mut words) {
        Some(sum) => assert_eq!((Some(words), sum), (narrow, parts.iter().sum())),
        // What stands beside the parts may be wide.
        None => assert!(words.is_empty()),
    }
    let addresses: Option<Vec<_>> = batch.shares().map(|share| share.address).collect();
    let mut listed = vec![RecordAddress::from_word(7)];
    match batch.addresses(&mut listed) {
        true => assert_eq!(Some(listed), addresses),
        false => assert!(listed.is_empty() && addresses.is_none()),
    }
    if let Some(keys) = batch.word_keys() {
        assert!(keys.iter().map(|key| &key[..]).eq(batch.shares().map(|share| share.key)));
    }
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

fn described(layout: &str, total: i128) -> Disaggregation {
    Disaggregation::new(layout.parse().expect("a layout"), "n", total)
}

/// Collects these values, with keys in their order, and computes the parts.
fn shares(asked: &Disaggregation, values: &[&[u8]]) -> Result<Shares<'static>, QueryError> {
    let by = asked.compile()?;
    let mut collector = by.collector();
    for (at, value) in values.iter().enumerate() {
        collector.push(format!("{at:02}").as_bytes(), value);
    }
    by.shares([collector.into_collected()])
}

#[test]
fn ties_go_to_lesser_keys_and_negative_totals_mirror() {
    for total in [11_i128, -11] {
        let layout = "n:i64le, w:u8@8";
        let value = |weight: u8| [&0_i64.to_le_bytes()[..], &[weight]].concat();
        let values = [2, 2, 0, 2, 1].map(value);
        let values: Vec<_> = values.iter().map(|value| &value[..]).collect();
        let parts = |asked: Disaggregation| {
            let parts = parts_of(&shares(&asked, &values).expect("it fits"));
            parts.into_values().map(|part| part * total.signum()).collect::<Vec<_>>()
        };
        // 11 / 5 is 2 and 1 of 5 left.
        assert_eq!(parts(described(layout, total)), [3, 2, 2, 2, 2]);
        // 22 / 7 is 3 and 1 of 7 left, 11 / 7 is 1 and 4 of 7: one unit is to be given.
        assert_eq!(parts(described(layout, total).in_proportion_to("w")), [3, 3, 0, 3, 2]);
    }
}

#[test]
fn nothing_to_spread_over_is_an_error_that_says_so() {
    let error = shares(&described("n:i64le", 5), &[]).expect_err("no objects");
    assert_eq!(error, QueryError::NoObjects { total: 5 });
    assert!(error.to_string().contains("nothing is selected"), "{error}");
    let nothing = shares(&described("n:i64le", 0), &[]).expect("nothing to do");
    let report = nothing.report(&nothing.progress());
    assert_eq!((report.changed, report.given, report.pending), (0, 0, 0));
    assert_eq!(nothing.batch_count(), 0);
    let nothing = nothing.pending(&nothing.progress()).expect("nothing twice");
    assert_eq!(nothing.count(), 0);

    let weighed = described("n:u8, w:u8@1", 5).in_proportion_to("w");
    let error = shares(&weighed, &[&[1, 0], &[2, 0]]).expect_err("no weights");
    assert_eq!(error, QueryError::NoWeights { total: 5, count: 2 });
    let weighed = described("n:u8, w:u8@1", 0).in_proportion_to("w");
    let zeros = shares(&weighed, &[&[1, 0], &[2, 0]]).expect("zeros");
    assert_eq!(parts_of(&zeros).into_values().collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_changed() {
    let error = shares(&described("n:u8", 511), &[&[0], &[0]]).expect_err("256 does not fit");
    assert_eq!(
        error.to_string(),
        "the parts of 1 objects do not fit; the first by key: key 00: field `n` cannot hold 256. Nothing was changed: spread less, or over more objects, or widen the field"
    );
    // The unit that is left over goes to the lesser key, where it fits, or does not.
    let adds = described("n:u8", 3).adding();
    assert!(shares(&adds, &[&[253], &[254]]).is_ok());
    let error = shares(&adds, &[&[254], &[253]]).expect_err("256 does not fit");
    assert!(matches!(error, QueryError::Unfit { count: 1, .. }), "{error:?}");
    let error = shares(&described("n:u8", -1).adding(), &[&[0]]).expect_err("-1 does not fit");
    assert!(error.to_string().contains("cannot hold -1"), "{error}");
    let most = i128::MAX.to_string();
    let error = shares(&described("n:decimal", 1).adding(), &[most.as_bytes()]);
    assert!(error.expect_err("2^127").to_string().contains("128 bits"));
}

#[test]
fn objects_without_the_field_are_refused_or_skipped_and_counted() {
    let asked = described("n:u16le, w:u16le@2?0", 9).in_proportion_to("w").adding();
    let values: [&[u8]; 4] = [&[1, 0, 2, 0], &[1, 0, 2], &[5, 0, 0, 0], &[3, 0, 1, 0]];
    let error = shares(&asked, &values).expect_err("two have no weight").to_string();
    assert!(error.starts_with("2 of 4") && error.contains("needs 4 bytes"), "{error}");
    let skipping = asked.mismatches(Mismatches::Skip);
    let shares = shares(&skipping, &values).expect("the others");
    assert_eq!(parts_of(&shares).into_values().collect::<Vec<_>>(), [6, 3]);
    assert_eq!((shares.tally().matched, shares.tally().mismatched), (2, 2));
    assert_eq!(shares.sum_before(), Ok(4.into()));
}

#[test]
fn what_stands_for_missing_is_set_and_never_made() {
    let missing = i16::MIN.to_le_bytes();
    let five = 5_i16.to_le_bytes();
    let set = described("n:i16le?-32768", 4);
    let found = shares(&set, &[&missing, &five]).expect("both can be set");
    assert_eq!((found.sum_before(), found.tally().missing), (Ok(5.into()), 1));
    let adds = set.clone().adding();
    let error = shares(&adds, &[&missing, &five]).expect_err("nothing to add to").to_string();
    assert!(error.contains("field `n` is missing"), "{error}");
    for asked in
        [described("n:i16le?4", 4), described("n:decimal?'4'", 4), described("n:u8?x'04'", 4)]
    {
        let value: &[u8] =
            if asked.clone().compile().expect("one").changes_in_place() { &[9, 9] } else { b"9" };
        let error = shares(&asked, &[value]).expect_err("it would be missing").to_string();
        assert!(error.contains("would become 4, which stands for missing"), "{error}");
        assert!(shares(&asked.adding(), &[value]).is_ok());
    }
    let error = shares(&described("n:i16le?7", 2).adding(), &[&five]).expect_err("7 is missing");
    assert!(matches!(error, QueryError::Unfit { count: 1, .. }), "{error:?}");
}

#[test]
fn floats_are_changed_where_nothing_is_rounded() {
    let change = |form: &str, before: f64, total: i128| {
        let value = match form {
            "f32le" => (before as f32).to_le_bytes().to_vec(),
            "f64ord" => {
                let bits = before.to_bits();
                let bits = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
                bits.to_be_bytes().to_vec()
            }
            _ => before.to_le_bytes().to_vec(),
        };
        let asked = described(&format!("n:{form}"), total).adding();
        shares(&asked, &[&value])?;
        let by = asked.compile()?;
        let mut changed = value;
        let change = by.change(&mut changed, total).expect("as planned");
        assert_eq!(by.change(&mut changed, -total).map(|change| change.after), Ok(change.before));
        Ok::<_, QueryError>(change.after)
    };
    let float = sapwood_aggregate::Amount::Float;
    assert_eq!(change("f64le", 0.5, 3), Ok(float(3.5)));
    assert_eq!(change("f64ord", -0.5, 3), Ok(float(2.5)));
    assert_eq!(change("f32le", 16_777_215.0, 1), Ok(float(16_777_216.0)));
    assert_eq!(change("f64le", -(2_f64.powi(60)), 1 << 60), Ok(float(0.0)));
    assert_eq!(change("f64le", 2_f64.powi(200), 0), Ok(float(2_f64.powi(200))));
    for (form, before, total) in [
        ("f32le", 16_777_216.0, 1),
        ("f32le", 0.25, 1 << 23),
        ("f64le", 0.1, 1),
        ("f64le", 0.5, 1 << 53),
        ("f64le", 2_f64.powi(53), 1),
        ("f64le", 2_f64.powi(200), 1),
        ("f64le", 0.5, (1 << 100) + 1),
    ] {
        let error = change(form, before, total).expect_err("rounded").to_string();
        assert!(error.contains("would have to be rounded"), "{before} {total}: {error}");
    }
    for value in [f64::NAN, f64::INFINITY] {
        let error = shares(&described("n:f64le", 1), &[&value.to_le_bytes()]);
        assert!(matches!(error, Err(QueryError::Mismatched { .. })), "{error:?}");
    }
    let set = shares(&described("n:f32le", 1 << 24 | 1), &[&[0; 4]]).map(drop);
    assert!(matches!(set, Err(QueryError::Unfit { .. })), "{set:?}");
}

#[test]
fn digits_are_written_anew_and_only_whole_ones() {
    let by = described("n:decimal@2", -100).adding().compile().expect("digits");
    let mut out = b"kept".to_vec();
    assert!(!by.changes_in_place());
    let change = by.rewrite(b"x:+0042", -100, &mut out).expect("whole");
    assert_eq!(
        (&out[..], change.after),
        (&b"keptx:-58"[..], sapwood_aggregate::Amount::Whole(-58))
    );
    for value in [&b"x:4.0"[..], b"x:", b"x:NA", b"x"] {
        let refused = by.rewrite(value, 1, &mut out);
        assert!(refused.is_err() && out == b"keptx:-58", "{refused:?}");
        let error = shares(&described("n:decimal@2", 1), &[value]);
        assert!(matches!(error, Err(QueryError::Mismatched { .. })), "{error:?}");
    }
}

#[test]
fn an_object_that_changed_meanwhile_keeps_its_value() {
    let asked = described("n:u8", 10).adding();
    let by = asked.compile().expect("it can be changed");
    let found = shares(&asked, &[&[1], &[2], &[3]]).expect("it fits");
    // 0 has become too great, 1 too short, 2 is as it was.
    let mut now: [Vec<u8>; 3] = [vec![255], Vec::new(), vec![3]];
    let mut progress = found.progress();
    for (share, value) in found.batch(0).shares().zip(&mut now) {
        let outcome = Outcome::from(by.change(value, share.part));
        progress.record(0, &share, outcome);
    }
    assert_eq!(now, [vec![255], Vec::new(), vec![6]]);
    let report = found.report(&progress);
    assert_eq!((report.changed, report.refused, report.given, report.not_given), (1, 2, 3, 7));
    assert_eq!((report.sum_before, report.sum_after), (Some(3.into()), Some(6.into())));
    let first = report.first_refusal.expect("two are refused");
    assert_eq!(first.to_string(), "key 00: the field cannot hold 259");
}

#[test]
fn threads_take_batches_of_words() {
    for action in [Action::Set, Action::Add] {
        let asked = described("n:i64le", 100_003);
        let asked = if action == Action::Add { asked.adding() } else { asked };
        check_words(&asked.compile().expect("words"));
    }
}

fn check_words(by: &Disaggregator) {
    assert!(by.changes_words());
    for other in ["n:i64be", "n:u64le", "n:i64le@8", "n:i32le", "n:i64le?0"] {
        assert!(!described(other, 1).compile().expect("numbers").changes_words());
    }
    let count = 20_000_usize;
    let mut collector = by.collector();
    for at in 0..count as u64 {
        collector.push(&at.to_be_bytes(), &at.to_le_bytes());
    }
    let shares = by.shares([collector.into_collected()]).expect("it fits");
    assert!(shares.batch_count() > 2);
    let run = |first: usize| {
        let mut progress = shares.progress();
        for at in (first..shares.batch_count()).step_by(2) {
            let batch = shares.batch(at);
            let number = |key: &[u8]| i64::from_be_bytes(key.try_into().expect("8 bytes"));
            let before: Vec<i64> = batch.shares().map(|share| number(share.key)).collect();
            let given = batch.shares().map(|share| share.part).sum();
            progress.record_words(at, &before, given);
            assert_eq!(progress.done(at), batch.len());
        }
        progress
    };
    let progress = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        run(0).merge(other.join().expect("no panic"))
    });
    let report = shares.report(&progress);
    assert_eq!((report.changed, report.given, report.pending), (count as u64, 100_003, 0));
    let before = (count * (count - 1) / 2) as i128;
    assert_eq!(report.sum_before, Some(Value::Int(before)));
    let kept = if by.action() == Action::Add { before } else { 0 };
    assert_eq!(report.sum_after, Some(Value::Int(kept + 100_003)));
}

/// Keys of records at addresses by threes, of which each may be read.
#[derive(Debug)]
struct Records(Vec<[u8; 8]>);

impl Records {
    fn key(&self, address: RecordAddress) -> [u8; 8] {
        self.0[(address.word() / 3) as usize]
    }
}

impl HeldKeys for Records {
    fn read_run(&self, run: &RecordRun, keys: &mut Vec<[u8; 8]>) {
        keys.extend((0..run.len()).filter_map(|at| Some(self.key(run.address(at)?))));
    }

    fn read_each(&self, addresses: &[RecordAddress], keys: &mut Vec<[u8; 8]>) {
        keys.extend(addresses.iter().map(|address| self.key(*address)));
    }
}

/// Whether the keys are kept or read from records, and whatever was guessed of them, objects get the
/// same parts, and the same is left.
#[test]
fn keys_that_records_hold_are_as_good_as_kept() {
    const COUNT: usize = 90_000;
    let mixed = |at: usize| (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7;
    let keys: Vec<[u8; 8]> = (0..COUNT).map(|at| mixed(at).to_be_bytes()).collect();
    let values: Vec<[u8; 8]> = (0..COUNT as i64).map(i64::to_le_bytes).collect();
    let records = Records(keys.clone());
    // Few of the last quarter are valid, most of what is before it.
    let is_valid =
        |at: usize| if at < COUNT * 3 / 4 { at % 50 != 7 } else { at.is_multiple_of(30) };
    let count = (0..COUNT).filter(|at| is_valid(*at)).count();
    let push = |collector: &mut Collector<'_>, first: usize| {
        let rows = first..(first + 1_000).min(COUNT);
        let mut bits = [0_u64; 16];
        let valid = rows.clone().filter(|at| is_valid(*at)).map(|at| at - first);
        valid.for_each(|at| bits[at / 64] |= 1 << (at % 64));
        let [keys, values] = [&keys, &values].map(|words| Column::of_words(&words[rows.clone()]));
        let batch = ColumnBatch::new(rows.len(), keys, values, Validity::Bits(&bits));
        let first = RecordAddress::from_word(3 * first as u64);
        let batch =
            batch.expect("one length").with_addresses(Addresses::Stepped { first, step: 3 });
        collector.push_batch(&batch.expect("by steps"));
    };
    for (total, threads) in [(10_000_019, 1), (-77_777, 2), (3, 3), (2 * count as i128, 1)] {
        let by = described("n:i64le", total).adding().compile().expect("words");
        let some: Vec<[u8; 8]> = keys.iter().copied().step_by(9).collect();
        let wrong: Vec<[u8; 8]> = (0..9_000_u64).map(u64::to_be_bytes).collect();
        let guesses = [
            None,
            by.guess(count as u64, &some),
            by.guess(count as u64 - 1, &some),
            by.guess(count as u64, &wrong),
        ];
        assert_eq!(guesses[1].is_some(), total % count as i128 != 0);
        assert_eq!(by.guess(count as u64, &some[..20]), None, "too few say nothing");
        let mut kept: Vec<_> = (0..threads).map(|_| by.collector()).collect();
        for (at, first) in (0..COUNT).step_by(1_000).enumerate() {
            push(&mut kept[at % threads], first);
        }
        let kept = kept.into_iter().map(Collector::into_collected);
        let kept = by.shares(kept).expect("it fits");
        for guess in guesses {
            let mut held: Vec<_> = (0..threads).map(|_| by.collector_of_held(guess)).collect();
            for (at, first) in (0..COUNT).step_by(1_000).enumerate() {
                push(&mut held[at % threads], first);
            }
            let held = held.into_iter().map(Collector::into_collected);
            let held = by.shares_of_held(held, &records).expect("it fits");
            assert_eq!((held.tally(), held.sum_before()), (kept.tally(), kept.sum_before()));
            let batches = (0..held.batch_count()).filter_map(|at| held.held_batch(at));
            let mut of_runs = BTreeMap::new();
            for batch in batches {
                let mut keys = Vec::new();
                batch.runs().iter().for_each(|run| records.read_run(run, &mut keys));
                of_runs.extend(keys.iter().map(|key| (key.to_vec(), batch.parts.of(*key))));
            }
            assert!(of_runs.len() * 10 > count * 9 && of_runs.len() < count, "few are kept");
            let parts = parts_of(&kept);
            assert!(of_runs.iter().all(|(key, part)| parts.get(key) == Some(part)), "{total}");
            assert_eq!(parts_of(&held), parts, "{total} {guess:?}");
            let rest = held.pending(&held.progress()).expect("each came once");
            let of_kept = kept.pending(&kept.progress()).expect("each came once");
            assert_eq!(rest.encode(), of_kept.encode());
        }
    }
}

/// Records that lie apart are no row of a page, however even their distance is.
#[test]
fn records_that_lie_apart_keep_their_keys() {
    const COUNT: usize = 200;
    let keys: Vec<[u8; 8]> = (0..COUNT as u64).map(u64::to_be_bytes).collect();
    let values: Vec<[u8; 8]> = (0..COUNT as i64).map(i64::to_le_bytes).collect();
    let apart: Vec<_> = (0..COUNT as u64).map(|at| RecordAddress::from_word(6 * at)).collect();
    let by = described("n:i64le", 100_003).adding().compile().expect("words");
    let mut collector = by.collector_of_held(None);
    let [keys, values] = [&keys, &values].map(|words| Column::of_words(words));
    let batch = ColumnBatch::new(COUNT, keys, values, Validity::All).expect("one length");
    collector.push_batch(&batch.with_addresses(Addresses::Each(&apart)).expect("one each"));
    // It has no key to be read.
    let none = Records(Vec::new());
    let shares = by.shares_of_held([collector.into_collected()], &none).expect("it fits");
    assert!((0..shares.batch_count()).all(|at| shares.held_batch(at).is_none()));
    let parts = parts_of(&shares);
    assert_eq!((parts.len(), parts.values().sum::<i128>()), (COUNT, 100_003));
}

#[test]
fn an_object_that_comes_twice_is_found_where_parts_would_not_add_up() {
    let by = described("n:i64le, w:u8@8", 5).compile().expect("it can be changed");
    let mut collector = by.collector();
    for key in [b"a", b"b", b"b"] {
        collector.push(key, &[0; 9]);
    }
    let error = by.shares([collector.into_collected()]).expect_err("b came twice");
    assert_eq!(error, QueryError::Twice { key: "b".into() });
    let weighed = described("n:i64le, w:u8@8", 4).in_proportion_to("w").compile().expect("one");
    let collect = |objects: &[(&[u8], u8)]| {
        let mut collector = weighed.collector();
        for &(key, weight) in objects {
            collector.push(key, &[weight; 9]);
        }
        weighed.shares([collector.into_collected()])
    };
    // One unit is left and goes to `a`; the others need not be told apart.
    assert!(collect(&[(b"a", 1), (b"b", 1), (b"b", 1)]).is_ok());
    let error = collect(&[(b"a", 1), (b"a", 1), (b"b", 1)]).expect_err("a came twice");
    assert_eq!(error, QueryError::Twice { key: "a".into() });
    let found = collect(&[(b"a", 2), (b"b", 1), (b"b", 1)]).expect("nothing is left");
    let twice = found.pending(&found.progress()).map(drop);
    assert_eq!(twice, Err(QueryError::Twice { key: "b".into() }));
}

#[test]
fn fields_that_cannot_be_changed_are_refused_with_what_can() {
    for (layout, says) in [
        ("n:key.u8", "it is part of the key"),
        ("n:text", "needs a number"),
        ("n:json($.a)", "it lies in a document"),
        ("n:msgpack($.a)", "it lies in a document"),
        ("n:tuple(u16)", "it is part of a tuple"),
        ("n:split(\"/\",1).decimal", "between separators"),
        ("n:cell(1).decimal", "row of cells"),
        ("m:u8", "there is no field `n`"),
    ] {
        let error = described(layout, 1).compile().expect_err(layout).to_string();
        assert!(error.contains(says), "{layout}: {error}");
        let is_refused = error.contains("cannot be changed");
        assert_eq!(is_refused, error.contains("a number of fixed width, or decimal digits"));
    }
    let key = Disaggregation::new("n:u8".parse().expect("a layout"), "key", 1);
    assert!(key.compile().is_err());
    let asked = || described("n:u8, x:f64le, t:text, j:json($.w)", 1);
    for (asked, says) in [
        (asked().in_proportion_to("x"), "`x` is a float"),
        (asked().in_proportion_to("t"), "needs a number"),
        (asked().in_proportion_to("m"), "there is no field `m`"),
        (asked().in_proportion_to("key"), "needs a number"),
        (asked().weights([(b"a", 1), (b"a", 1)]), "the key a has two weights"),
        (asked().filter("n = 'x'".parse().expect("a condition")), "cannot be compared"),
    ] {
        let error = asked.compile().expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(asked().in_proportion_to("j").compile().is_ok());
}

#[test]
fn weights_select_their_keys() {
    let by = described("n:u8", 10)
        .weights([(b"a", 1), (b"b", 3), (b"z", 9)])
        .select(
            Selection::range((std::ops::Bound::Unbounded, std::ops::Bound::Excluded(b"x")))
                .expect("a range"),
        )
        .compile()
        .expect("weights");
    assert_eq!(by.selection(), &Selection::keys([b"a", b"b"]));
    let mut collector = by.collector();
    for key in [b"a", b"b", b"c", b"z"] {
        collector.push(key, &[0]);
    }
    // One that has no weight is not selected.
    collector.push_selected(b"c", &[0], None);
    collector.add_absent(1);
    let found = by.shares([collector.into_collected()]).expect("it fits");
    assert_eq!(parts_of(&found).into_values().collect::<Vec<_>>(), [3, 7]);
    assert_eq!((found.tally().selected, found.tally().absent), (2, 1));
}

#[test]
fn parts_of_another_disaggregation_are_refused() {
    let asked = || described("n:i64le, w:u8@8", 5);
    let by = asked().compile().expect("one");
    let saved = shares(&asked(), &[&[0; 9]]).expect("it fits");
    let saved = saved.pending(&saved.progress()).expect("once").encode();
    for other in [
        described("n:i64le, w:u8@8", 6),
        asked().adding(),
        asked().in_proportion_to("w"),
        asked().weights([(b"00", 1)]),
        asked().filter("w = 0".parse().expect("a condition")),
        described("n:i64be, w:u8@8", 5),
    ] {
        let other = other.compile().expect("another");
        let collected = by.collector().into_collected();
        assert_eq!(other.shares([collected]).map(drop), Err(QueryError::OtherDisaggregation));
        assert_eq!(other.decode(&saved).map(drop), Err(QueryError::OtherDisaggregation));
        let pending = by.decode(&saved).expect("its own");
        assert_eq!(other.resume(pending).map(drop), Err(QueryError::OtherDisaggregation));
    }
    let same = asked().select(Selection::prefix(b"0")).mismatches(Mismatches::Skip);
    assert!(same.compile().expect("the same").decode(&saved).is_ok());
}

/// A rest that has everything: recorded, vanished and refused shares, sums of floats, long keys.
fn some_rest() -> (Disaggregator, Vec<u8>) {
    let by = described("n:f32le, w:u16le@4", -1_000_003)
        .in_proportion_to("w")
        .adding()
        .mismatches(Mismatches::Skip)
        .compile()
        .expect("it can be changed");
    let mut collector = by.collector();
    for at in 0..20_u16 {
        let key = vec![at as u8; usize::from(at) % 4 * 5 + 1];
        let value = [&(f32::from(at) + 1.0).to_le_bytes()[..], &(at * 7).to_le_bytes()].concat();
        collector.push(&key, &value);
    }
    collector.push(b"short", &[0; 5]);
    let shares = by.shares([collector.into_collected()]).expect("it fits");
    let mut progress = shares.progress();
    for (at, share) in shares.batch(0).shares().enumerate().take(9) {
        let mut value = (at as f32 + if at == 4 { 0.1 } else { 0.0 }).to_le_bytes().to_vec();
        value.extend([0, 0]);
        let outcome =
            if at == 2 { Outcome::Vanished } else { by.change(&mut value, share.part).into() };
        progress.record(0, &share, outcome);
    }
    let pending = shares.pending(&progress).expect("each once");
    (by, pending.encode())
}

#[test]
fn damage_to_a_rest_is_refused_wherever_it_is() {
    let (by, bytes) = some_rest();
    let is_refused = |bytes: &[u8]| matches!(by.decode(bytes), Err(QueryError::Corrupt { .. }));
    assert!(by.decode(&bytes).is_ok());
    assert!((0..bytes.len()).all(|end| is_refused(&bytes[..end])));
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(is_refused(&flipped), "bit {bit} of {at}");
        }
    }
    assert!(is_refused(&[&bytes[..], &[0]].concat()));
}

#[test]
fn golden_rests_stay_readable() {
    let (by, written) = some_rest();
    let path = format!("{}/tests/golden/pending-1.bin", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("GOLDEN").is_ok_and(|what| what == "write") {
        std::fs::write(&path, &written).expect("the golden file can be written");
    }
    let golden = std::fs::read(&path).expect("the golden file is there");
    assert!(golden == written, "version 1 is written differently now");
    let shares = by.resume(by.decode(&golden).expect("version 1 stays readable")).expect("its own");
    let report: Disaggregated = shares.report(&shares.progress());
    assert_eq!((report.changed, report.vanished, report.refused, report.pending), (7, 1, 1, 11));
    assert_eq!(report.given + report.not_given + report.pending_sum, -1_000_003);
    assert_eq!(parts_of(&shares).values().sum::<i128>(), report.pending_sum);
}

proptest! {
    #![proptest_config(crate::cases(1500))]

    /// What is refused is refused without a panic, and what is not is in its one form, and can be
    /// gone on with.
    #[test]
    fn sealed_lies_about_a_rest_are_refused_or_harmless(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..4),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let (by, mut bytes) = some_rest();
        for (at, byte, is_flip) in changes {
            // Behind the fingerprint.
            let at = 24 + at.index(bytes.len() - 24);
            bytes[at] = if is_flip { bytes[at] ^ (1 << (byte % 8)) } else { byte };
        }
        if let Some(cut) = cut {
            bytes.truncate(24 + cut.index(bytes.len() - 24));
        }
        let checksum = crc32fast::hash(&bytes[16..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        match by.decode(&bytes) {
            Err(QueryError::Corrupt { offset, .. }) => prop_assert!(offset <= bytes.len()),
            Err(other) => prop_assert!(false, "{other:?}"),
            Ok(lie) => {
                prop_assert_eq!(lie.encode(), bytes);
                let shares = by.resume(lie).expect("its own");
                let mut progress = shares.progress();
                for share in (0..shares.batch_count()).flat_map(|at| shares.batch(at).shares()) {
                    progress.record(0, &share, Outcome::Vanished);
                }
                let report = shares.report(&progress);
                prop_assert_eq!((report.pending, report.pending_sum), (0, 0));
            }
        }
    }
}

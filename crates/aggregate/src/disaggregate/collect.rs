//! The collection of the objects that get a part, and of their weights.

use std::sync::OnceLock;

use sapwood_engine::{Addresses, ColumnBatch, RecordAddress, RecordRun, Validity};
use sapwood_mem::vector::Level;

use super::chunk::{AddressColumn, CHUNK, Chunk, Ints, Keys, Risks};
use super::disaggregator::{Disaggregator, Weight};
use super::field::{Action, Amount};
use super::select::{Guess, Guessed};
use crate::columns::kernels::{self, Lanes, RUN};
use crate::error::{Mismatch, Why};
use crate::fold::columns::{Run, Scratch};
use crate::fold::partial::Tally;
use crate::plan::columns::ColumnPlan;
use crate::plan::compiled::Object;
use crate::plan::membership::Membership;
use crate::state::{Side, Sum};
use crate::value::Value;
use crate::value::number::{Form, Number, Order};

/// Collects the objects over which a total is spread. It changes nothing.
///
/// Each thread has its own; what they collected comes together in [`Disaggregator::shares`]. An
/// object must be handed over once.
///
/// ```
/// use sapwood_aggregate::{Disaggregation, Outcome};
///
/// let budget = Disaggregation::new("minutes:i16le, seats:u16le@2".parse()?, "minutes", 100)
///     .in_proportion_to("seats")
///     .adding()
///     .compile()?;
/// let mut flights: Vec<([u8; 3], Vec<u8>)> = [(b"AA1", 10_i16, 150_u16), (b"UA1", -5, 150), (b"UA2", 0, 30)]
///     .map(|(key, minutes, seats)| (*key, [minutes.to_le_bytes(), seats.to_le_bytes()].concat()))
///     .into();
///
/// // Nothing is changed while objects are collected.
/// let mut collector = budget.collector();
/// for (key, value) in &flights {
///     collector.push(key, value);
/// }
/// let shares = budget.shares([collector.into_collected()])?;
///
/// let mut progress = shares.progress();
/// for at in 0..shares.batch_count() {
///     for share in shares.batch(at).shares() {
///         let flight = flights.iter_mut().find(|(key, _)| key == share.key);
///         let outcome = match flight {
///             Some((_, value)) => budget.change(value, share.part).into(),
///             None => Outcome::Vanished,
///         };
///         progress.record(at, &share, outcome);
///     }
/// }
/// let minutes = |at: usize| i16::from_le_bytes([flights[at].1[0], flights[at].1[1]]);
/// assert_eq!([minutes(0), minutes(1), minutes(2)], [10 + 46, -5 + 45, 9]);
/// let report = shares.report(&progress);
/// assert_eq!((report.changed, report.given), (3, 100));
/// assert_eq!((report.sum_before, report.sum_after), (Some(5.into()), Some(105.into())));
/// # Ok::<(), sapwood_aggregate::QueryError>(())
/// ```
#[derive(Debug)]
pub struct Collector<'d> {
    by: &'d Disaggregator,
    collected: Collected,
    /// Columns of a run, where objects are read by column.
    scratch: Option<Scratch>,
    /// Lanes of a run that are being moved.
    lanes: Box<Lanes>,
    /// Whether records hold the keys of objects whose addresses are steps.
    is_held: bool,
    /// Whether nothing is asked of these but their word and their key.
    is_of_words: bool,
}

/// A run whose columns are in the scratch.
#[derive(Clone, Copy)]
struct Loaded<'a> {
    columns: &'a ColumnPlan,
    scratch: &'a Scratch,
    run: &'a Run,
}

/// Objects over which a total is to be spread: a part of them, or all.
#[derive(Debug, Clone)]
pub struct Collected {
    pub(super) fingerprint: u64,
    pub(super) chunks: Vec<Chunk>,
    pub(super) tally: Tally,
    /// What the fields held.
    pub(super) before: Sum,
    /// Of all weights.
    pub(super) weight_sum: u128,
    pub(super) weight_max: u64,
    pub(super) guessed: Option<Guessed>,
}

/// What is kept of an object.
struct Kept {
    before: Amount,
    weight: Option<u64>,
}

impl Disaggregator {
    /// Begins to collect objects. Each thread has its own collector.
    pub fn collector(&self) -> Collector<'_> {
        Collector::new(self)
    }

    /// Begins to collect objects whose records stay where they are: of most batches with addresses by
    /// steps no key is kept, and [`Disaggregator::shares_of_held`] reads them there. Where the parts
    /// depend on more than the key, keys are kept all the same.
    ///
    /// With a guess, keys are counted by it on the way.
    pub fn collector_of_held(&self, guess: Option<Guess>) -> Collector<'_> {
        let mut collector = Collector::new(self);
        collector.is_held = self.has_equal_parts();
        let is_asked = self.query.test.is_some();
        collector.is_of_words = collector.is_held && self.changes_words() && !is_asked;
        collector.collected.guessed = guess.map(Guessed::new);
        collector
    }
}

impl<'d> Collector<'d> {
    pub(super) fn new(by: &'d Disaggregator) -> Collector<'d> {
        let collected = Collected::nothing(by.fingerprint());
        Collector {
            by,
            collected,
            scratch: None,
            lanes: Box::new([0; RUN]),
            is_held: false,
            is_of_words: false,
        }
    }

    /// Collects an object, unless it is not selected. One that has not what is read of it is counted,
    /// and is an error when parts are computed, if at all.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.push_at(key, value, None);
    }

    /// Collects an object and the address where it lies, unless it is not selected.
    #[inline]
    pub fn push_at(&mut self, key: &[u8], value: &[u8], address: Option<RecordAddress>) {
        if self.by.query.membership.contains(key) {
            self.push_selected(key, value, address);
        }
    }

    /// Collects an object that is known to be selected, because it was looked up or lies in the range.
    pub fn push_selected(&mut self, key: &[u8], value: &[u8], address: Option<RecordAddress>) {
        match self.read(key, value) {
            Ok(None) => self.collected.tally.selected += 1,
            Ok(Some(kept)) => {
                self.collected.tally.selected += 1;
                self.collected.tally.matched += 1;
                self.keep(key, address, kept);
            }
            Err(None) => {}
            Err(Some(mismatch)) => {
                self.collected.tally.selected += 1;
                self.collected.tally.add_mismatch(&self.by.query, key, mismatch);
            }
        }
    }

    /// Collects the valid objects of a batch that are selected: the same as pushing one after the
    /// other, and much faster where field, filter and weight are whole numbers of fixed width.
    pub fn push_batch(&mut self, batch: &ColumnBatch<'_>) {
        let membership = &self.by.query.membership;
        self.push_chosen(batch, (!membership.is_everything()).then_some(membership));
    }

    /// Collects the valid objects of a batch that are known to be selected.
    pub fn push_batch_selected(&mut self, batch: &ColumnBatch<'_>) {
        self.push_chosen(batch, None);
    }

    fn push_chosen(&mut self, batch: &ColumnBatch<'_>, chosen: Option<&Membership>) {
        let by = self.by;
        let (keys, values) = (batch.keys().width(), batch.values().width());
        let columns = by.query.columns.as_ref();
        let columns = columns.filter(|columns| columns.is_gathered() && columns.fit(keys, values));
        let Some(columns) = columns.filter(|_| !matches!(by.weight, Weight::Listed(_))) else {
            return self.push_each(batch, 0..batch.len(), chosen);
        };
        // Of held records, steps say that they lie in a row of a page.
        let addresses = match self.is_held {
            true => batch.addresses(),
            false => in_steps(batch.addresses()),
        };
        if chosen.is_none() && self.is_of_words && self.keep_words(batch, addresses) {
            return;
        }
        let mut scratch =
            self.scratch.take().unwrap_or_else(|| Scratch::new(columns, &by.query.states));
        for begin in (0..batch.len()).step_by(RUN) {
            let run = columns.load(batch, begin, chosen, &mut scratch);
            let loaded = Loaded { columns, scratch: &scratch, run: &run };
            if !self.keep_run(batch, begin, &loaded, addresses) {
                self.push_each(batch, begin..begin + run.len, chosen);
            }
        }
        self.scratch = Some(scratch);
    }

    fn push_each(
        &mut self,
        batch: &ColumnBatch<'_>,
        objects: std::ops::Range<usize>,
        chosen: Option<&Membership>,
    ) {
        for at in objects {
            if let Some((key, value)) = batch.entry(at)
                && chosen.is_none_or(|chosen| chosen.contains(key))
            {
                self.push_selected(key, value, batch.addresses().get(at));
            }
        }
    }

    /// Keeps the objects of a run that is loaded. False, and nothing is kept, if something about some of
    /// them needs a look at each.
    fn keep_run(
        &mut self,
        batch: &ColumnBatch<'_>,
        begin: usize,
        loaded: &Loaded<'_>,
        addresses: Addresses<'_>,
    ) -> bool {
        let by = self.by;
        let Loaded { columns, scratch, run } = *loaded;
        if !Keys::new(batch.keys().width()).has_room(batch.keys().width(), run.len) {
            return false;
        }
        let fields = |number: usize| columns.find(by.query.field(number));
        let field = columns.figures(run, fields(by.field), scratch);
        if run.matched == 0 {
            self.collected.tally.selected += run.selected;
            return true;
        }
        let is_safe = |side| {
            let (least, greatest) = by.safe;
            let extreme = field.extreme(side);
            extreme.is_some_and(|extreme| (least..=greatest).contains(&extreme))
        };
        if by.action == Action::Add && !(is_safe(Side::Least) && is_safe(Side::Greatest)) {
            return false;
        }
        let mut weights = None;
        if let Weight::Field(number) = by.weight {
            let column = fields(number);
            let figures = columns.figures(run, column, scratch);
            let most = figures.extreme(Side::Greatest).map(u64::try_from);
            let (Some(column), Some(0..), Some(Ok(most))) =
                (column, figures.extreme(Side::Least), most)
            else {
                return false;
            };
            // Not negative, so it fits.
            let sum = figures.sum().cast_unsigned();
            self.collected.add_weights(sum, most);
            weights = Some((scratch.lanes(run, column), columns.bias(column) as u64));
        }
        let collected = &mut self.collected;
        collected.tally.selected += run.selected;
        collected.tally.matched += run.matched;
        collected.before.push_ints(run.matched, field.sum());

        let (count, mask) = (run.matched as usize, scratch.mask(run));
        let is_stepped = matches!(addresses, Addresses::Stepped { .. });
        let is_held = self.is_held
            && is_stepped
            && batch.keys().width() == 8
            && count * HELD_SHARE >= run.len
            && count >= STEPPED_MIN;
        let chunk = collected.room(batch.keys().width(), count, addresses, is_held);
        if let Some((lanes, bias)) = weights {
            let kept = &mut *self.lanes;
            kept[..run.len].copy_from_slice(lanes);
            if let Some(mask) = mask {
                kernels::compact(&mut kept[..run.len], mask);
            }
            chunk.weights.extend(kept[..count].iter().map(|lane| lane - bias));
        }
        match &mut chunk.keys {
            Keys::Held { count: known, .. } => *known += count,
            _ => chunk.push_keys(batch, begin, loaded, &mut self.lanes),
        }
        chunk.push_addresses(begin, loaded, addresses);
        if let Some(guessed) = collected.guessed.as_mut().filter(|_| is_held) {
            let lanes = &mut self.lanes[..run.len];
            match (mask, batch.keys().words()) {
                (None, Some(words)) => {
                    guessed.count(scratch.level(), &words[begin..begin + run.len]);
                }
                _ => {
                    let keys = batch.keys();
                    let bytes = keys.bytes_from(begin, 0);
                    kernels::gather(scratch.level(), RAW, bytes, keys.stride(), lanes);
                    let count = mask.map_or(run.len, |mask| kernels::compact(lanes, mask));
                    guessed.count_lanes(scratch.level(), &lanes[..count]);
                }
            }
        }
        true
    }

    /// As `keep_run`, of a batch whose valid objects are all collected for their words: the columns are
    /// read where they are, once.
    fn keep_words(&mut self, batch: &ColumnBatch<'_>, addresses: Addresses<'_>) -> bool {
        let Some((keys, values)) = batch.keys().words().zip(batch.values().words()) else {
            return false;
        };
        let Some(bits) = bits_of(batch).filter(|_| !batch.is_empty()) else { return false };
        let (Addresses::Stepped { first, step }, count) = (addresses, count_of(&bits)) else {
            return false;
        };
        if count * HELD_SHARE < batch.len() || count < STEPPED_MIN {
            return false;
        }
        let level = Level::detected();
        let (mut sum, mut extremes) = (0, (i64::MAX, i64::MIN));
        let mut some = [[0; 8]; RUN];
        for_each_piece(values, &bits, &mut some, |values| {
            let (of_piece, span) = kernels::span_of_words(level, values, extremes);
            sum += of_piece;
            extremes = span;
        });
        let (least, greatest) = self.by.safe;
        let is_safe = least <= extremes.0.into() && greatest >= extremes.1.into();
        if self.by.action == Action::Add && !is_safe {
            return false;
        }
        let collected = &mut self.collected;
        collected.tally.selected += count as u64;
        collected.tally.matched += count as u64;
        collected.before.push_ints(count as u64, sum);
        let chunk = collected.room(size_of::<u64>(), count, addresses, true);
        if let (Keys::Held { count: known, .. }, AddressColumn::Runs(runs)) =
            (&mut chunk.keys, &mut chunk.addresses)
        {
            *known += count;
            runs.push(RecordRun { first, step, bits });
        }
        if let Some(guessed) = &mut collected.guessed {
            for_each_piece(keys, &bits, &mut some, |keys| guessed.count(level, keys));
        }
        true
    }

    /// Counts selected keys that have no object.
    pub fn add_absent(&mut self, count: u64) {
        self.collected.tally.absent += count;
    }

    /// How many objects will get a part so far.
    pub fn count(&self) -> u64 {
        self.collected.tally.matched
    }

    /// All that was collected.
    pub fn into_collected(self) -> Collected {
        self.collected
    }

    /// What is to be kept of an object; none if the filter is not true. No mismatch if it is not
    /// selected after all, because it has no weight.
    fn read(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> std::result::Result<Option<Kept>, Option<Mismatch>> {
        let by = self.by;
        let listed = match &by.weight {
            Weight::Listed(listed) => Some(*listed.get(key).ok_or(None)?),
            Weight::Equal | Weight::Field(_) => None,
        };
        let object = Object { query: &by.query, key, value };
        if let Some(test) = &by.query.test
            && test.ask(&object).map_err(Some)? != Some(true)
        {
            return Ok(None);
        }
        let field = |why| Some(Mismatch { field: by.field, why });
        let before = by.target.read(value).map_err(field)?;
        match (before, by.action) {
            (Amount::Missing, Action::Add) => return Err(field(Why::Missing)),
            (Amount::Float(before), _) if before.is_infinite() => {
                return Err(field(Why::NotFinite));
            }
            _ => {}
        }
        let weight = match by.weight {
            Weight::Field(number) => {
                let weight = weight(by.query.read(number, key, value));
                Some(weight.map_err(|why| Some(Mismatch { field: number, why }))?)
            }
            Weight::Equal | Weight::Listed(_) => listed,
        };
        Ok(Some(Kept { before, weight }))
    }

    fn keep(&mut self, key: &[u8], address: Option<RecordAddress>, kept: Kept) {
        let collected = &mut self.collected;
        match kept.before {
            Amount::Missing => collected.tally.missing += 1,
            Amount::Whole(before) => collected.before.push_ints(1, before),
            Amount::Float(_) => {
                let before = kept.before.value().expect("reading refuses NaN");
                collected.before.push(&before);
            }
        }
        let chunk = collected.chunk_for(key, address);
        let at = chunk.keys.len() as u32 - 1;
        if self.by.action == Action::Add {
            let (least, greatest) = self.by.safe;
            let is_safe = match kept.before {
                Amount::Whole(before) => (least..=greatest).contains(&before),
                Amount::Float(_) | Amount::Missing => false,
            };
            if let Some(before) = kept.before.bits().filter(|_| !is_safe) {
                chunk.risks.at.push(at);
                chunk.risks.before.push(before);
            }
        }
        if let Some(weight) = kept.weight {
            chunk.weights.push(weight);
            collected.add_weights(weight.into(), weight);
        }
    }
}

/// Addresses of which each lies a step behind the one before, which those of a page do where all
/// its entries are valid.
fn in_steps<'a>(addresses: Addresses<'a>) -> Addresses<'a> {
    let Addresses::Each(each @ [first, second, ..]) = addresses else { return addresses };
    let ahead =
        |address: &RecordAddress, next: &RecordAddress| next.word().wrapping_sub(address.word());
    let step = ahead(first, second);
    let is_step = |(address, next): (&RecordAddress, &RecordAddress)| ahead(address, next) == step;
    let all = each.iter().zip(&each[1..]).fold(true, |all, pair| all & is_step(pair));
    if all { Addresses::Stepped { first: *first, step } } else { addresses }
}

/// Which objects of a batch of one run are valid; none if words say it, or there are more.
fn bits_of(batch: &ColumnBatch<'_>) -> Option<[u64; RUN / 64]> {
    let len = batch.len();
    let mut bits = [0; RUN / 64];
    match batch.validity() {
        _ if len > RUN => return None,
        Validity::All => bits.fill(u64::MAX),
        Validity::Bits(valid) => {
            bits.iter_mut().zip(valid).for_each(|(bits, valid)| *bits = *valid);
        }
        Validity::Word { .. } => return None,
    }
    for (at, bits) in bits.iter_mut().enumerate() {
        let count = len.saturating_sub(64 * at).min(64);
        *bits &= u64::MAX.checked_shr(64 - count as u32).unwrap_or(0);
    }
    Some(bits)
}

fn count_of(bits: &[u64]) -> usize {
    bits.iter().map(|bits| bits.count_ones() as usize).sum()
}

/// Calls `visit` with the words whose bit is set: those of full words of bits where they lie, others
/// gathered in `some`.
fn for_each_piece(
    words: &[[u8; 8]],
    bits: &[u64],
    some: &mut [[u8; 8]; RUN],
    mut visit: impl FnMut(&[[u8; 8]]),
) {
    let (mut begin, mut count) = (0, 0);
    for (at, (words_of, &bits)) in words.chunks(64).zip(bits).enumerate() {
        if bits == u64::MAX {
            continue;
        }
        if begin < 64 * at {
            visit(&words[begin..64 * at]);
        }
        begin = 64 * at + words_of.len();
        let mut rest = bits;
        while rest != 0 {
            some[count] = words_of[rest.trailing_zeros() as usize];
            rest &= rest - 1;
            count += 1;
        }
    }
    if begin < words.len() {
        visit(&words[begin..]);
    }
    if count > 0 {
        visit(&some[..count]);
    }
}

fn weight(read: std::result::Result<Option<Value<'_>>, Why>) -> std::result::Result<u64, Why> {
    match read?.map(Value::canonical) {
        Some(Value::Int(weight)) => u64::try_from(weight).map_err(|_| Why::NoWeight),
        Some(_) => Err(Why::NoWeight),
        None => Err(Why::Missing),
    }
}

impl Collected {
    /// Appends a key and its address to a chunk that both fit.
    fn chunk_for(&mut self, key: &[u8], address: Option<RecordAddress>) -> &mut Chunk {
        let fits = self.chunks.last_mut().is_some_and(|chunk| {
            let has_addresses = matches!(chunk.addresses, AddressColumn::Each(_));
            let is_listed = !matches!(chunk.addresses, AddressColumn::Runs(_));
            is_listed && has_addresses == address.is_some() && chunk.keys.push(key)
        });
        if !fits {
            let mut chunk = Chunk::new(
                key.len(),
                match address {
                    Some(_) => AddressColumn::Each(Vec::new()),
                    None => AddressColumn::None,
                },
            );
            assert!(chunk.keys.push(key), "every chunk takes one key");
            self.chunks.push(chunk);
        }
        let chunk = self.chunks.last_mut().expect("there is one now");
        if let (AddressColumn::Each(addresses), Some(address)) = (&mut chunk.addresses, address) {
            addresses.push(address);
        }
        chunk
    }

    /// A chunk that has room for so many objects with keys so wide.
    fn room(
        &mut self,
        key_width: usize,
        count: usize,
        addresses: Addresses<'_>,
        is_held: bool,
    ) -> &mut Chunk {
        let is_stepped = matches!(addresses, Addresses::Stepped { .. });
        let fits = self.chunks.last().is_some_and(|chunk| {
            chunk.keys.has_room(key_width, count)
                && matches!(chunk.keys, Keys::Held { .. }) == is_held
                && match (&chunk.addresses, addresses) {
                    (AddressColumn::None, Addresses::None) => true,
                    (AddressColumn::None, _) | (_, Addresses::None) => false,
                    (AddressColumn::Each(_), _) => !is_stepped || count < STEPPED_MIN,
                    (AddressColumn::Runs(_), _) => is_stepped,
                }
        });
        if !fits {
            let column = match addresses {
                Addresses::None => AddressColumn::None,
                Addresses::Stepped { .. } if count >= STEPPED_MIN => {
                    AddressColumn::Runs(Vec::new())
                }
                Addresses::Each(_) | Addresses::Stepped { .. } => AddressColumn::Each(Vec::new()),
            };
            let mut chunk = Chunk::new(key_width, column);
            if is_held {
                chunk.keys = Keys::Held { count: 0, read: OnceLock::new() };
            }
            // Where there are several, each is filled.
            if let (Some(last), Keys::Words(words)) = (self.chunks.last(), &mut chunk.keys)
                && last.keys.len() + count > CHUNK
            {
                words.reserve_exact(CHUNK);
            }
            self.chunks.push(chunk);
        }
        self.chunks.last_mut().expect("there is one now")
    }

    fn add_weights(&mut self, sum: u128, max: u64) {
        // 2^64 weights of 2^64 would be needed to overflow.
        self.weight_sum += sum;
        self.weight_max = self.weight_max.max(max);
    }
}

impl Chunk {
    pub(super) fn new(key_width: usize, addresses: AddressColumn) -> Chunk {
        Chunk {
            keys: Keys::new(key_width),
            addresses,
            weights: Vec::new(),
            risks: Risks { at: Vec::new(), before: Ints::default() },
        }
    }

    /// Appends the keys of a run, for which there is room.
    fn push_keys(
        &mut self,
        batch: &ColumnBatch<'_>,
        begin: usize,
        loaded: &Loaded<'_>,
        lanes: &mut Lanes,
    ) {
        let Loaded { scratch, run, .. } = *loaded;
        let (keys, mask) = (batch.keys(), scratch.mask(run));
        let Keys::Words(words) = &mut self.keys else {
            for at in (0..run.len).filter(|&at| mask.is_none_or(|mask| mask[at] != 0)) {
                assert!(self.keys.push(keys.item(begin + at)), "there is room");
            }
            return;
        };
        let lanes = &mut lanes[..run.len];
        kernels::gather(scratch.level(), RAW, keys.bytes_from(begin, 0), keys.stride(), lanes);
        let count = mask.map_or(run.len, |mask| kernels::compact(lanes, mask));
        words.extend(lanes[..count].iter().map(|lane| lane.to_le_bytes()));
    }

    /// Appends the addresses of a run.
    fn push_addresses(&mut self, begin: usize, loaded: &Loaded<'_>, addresses: Addresses<'_>) {
        let Loaded { scratch, run, .. } = *loaded;
        let mask = scratch.mask(run);
        let step = match addresses {
            Addresses::Stepped { step, .. } => step,
            Addresses::None | Addresses::Each(_) => 0,
        };
        match (&mut self.addresses, addresses.get(begin)) {
            (AddressColumn::None, _) | (_, None) => {}
            (AddressColumn::Each(column), _) => {
                let taken = (0..run.len).filter(|&at| mask.is_none_or(|mask| mask[at] != 0));
                column.extend(taken.filter_map(|at| addresses.get(begin + at)));
            }
            (AddressColumn::Runs(runs), Some(first)) => {
                let mut bits = [0; RUN / 64];
                match mask {
                    Some(mask) => kernels::pack(scratch.level(), mask, &mut bits),
                    None => {
                        for (at, bits) in bits.iter_mut().enumerate() {
                            let count = run.len.saturating_sub(64 * at).min(64);
                            *bits = u64::MAX.checked_shr(64 - count as u32).unwrap_or(0);
                        }
                    }
                }
                runs.push(RecordRun { first, step, bits });
            }
        }
    }
}

/// Keys of 8 bytes as they lie there.
const RAW: Number = Number::new(Form::Unsigned, 8, Order::Little).expect("a number of 8 bytes");
/// Of how many objects a run's bits take less than a address for each.
const STEPPED_MIN: usize = 1 + size_of::<RecordRun>() / size_of::<u64>();
/// Where fewer than one in so many records of a run are collected, their keys are kept: to read them
/// in the records would be to read most lines of the others too.
const HELD_SHARE: usize = 4;

//! Runs of objects, folded column by column.
//!
//! Objects that come one by one are gathered into a run first; batches are loaded a run at a time.

use sapwood_engine::{Column as Items, ColumnBatch, Validity};
use sapwood_mem::vector::Level;
use sapwood_schema::Cell;

use crate::columns::Masking;
use crate::columns::dictionary::Dictionary;
use crate::columns::kernels::{self, Lanes, MISSING, RUN};
use crate::error::Result;
use crate::fold::grouping::Slots;
use crate::fold::partial::Partial;
use crate::plan::columns::{Column, ColumnPlan, Filter, Int, Rows, Sense, Source, Takes};
use crate::plan::compiled::Compiled;
use crate::plan::membership::Membership;
use crate::plan::state_plan::StatePlan;
use crate::question::layout::{Place, RowColumn};
use crate::state::{Figures, Given, State};
use crate::value::Value;
use crate::value::number::{Form, Number, Order};

impl Int {
    fn side<'a>(&self, batch: &ColumnBatch<'a>) -> Items<'a> {
        match self.place {
            Place::Key => batch.keys(),
            Place::Value => batch.values(),
        }
    }
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// There is room for more.
    Yes,
    /// It is the last of its run.
    Full,
    /// It goes by itself: it is a mismatch, or has a value without a lane.
    No,
}

impl Column {
    /// The lane of a value. None if the object goes by itself.
    #[inline]
    fn lane(&self, value: Option<&Value<'_>>, dictionary: &mut Dictionary) -> Option<u64> {
        match (value, self.may_miss) {
            (Some(value), false) => self.meaning.lane(value, dictionary),
            (Some(value), true) => {
                self.meaning.lane(value, dictionary).filter(|lane| *lane != MISSING)
            }
            (None, may_miss) => may_miss.then_some(MISSING),
        }
    }

    /// The same of a cell of a row.
    #[inline]
    fn lane_of_cell(
        &self,
        row: &RowColumn,
        cell: Cell<'_>,
        dictionary: &mut Dictionary,
    ) -> Option<u64> {
        match self.meaning.lane_of_cell(&cell, dictionary) {
            Some(MISSING) if self.may_miss => None,
            Some(lane) => Some(lane),
            None => self.lane(row.plain(cell)?.as_ref(), dictionary),
        }
    }
}

impl ColumnPlan {
    /// Takes an object that they fit, unless it must go by itself.
    #[inline]
    pub(crate) fn push(&self, key: &[u8], value: &[u8], scratch: &mut Scratch) -> Taken {
        let at = scratch.len;
        for (number, (column, lanes)) in self.columns.iter().zip(&mut scratch.columns).enumerate() {
            lanes[at] = match &column.source {
                Source::Int(int) => {
                    let bytes = match int.place {
                        Place::Key => key,
                        Place::Value => value,
                    };
                    kernels::lane(int.number, &bytes[int.offset..])
                }
                Source::Row(_) => continue,
                Source::Field(field) => {
                    let Ok(value) = field.read(key, value) else { return Taken::No };
                    let lane = column.lane(value.as_ref(), &mut scratch.dictionaries[number]);
                    let Some(lane) = lane else { return Taken::No };
                    scratch.misses[number] |= column.may_miss && value.is_none();
                    lane
                }
            };
        }
        if let Some(rows) = &self.rows
            && !self.push_row(rows, key, value, scratch)
        {
            return Taken::No;
        }
        scratch.len += 1;
        if scratch.is_full() { Taken::Full } else { Taken::Yes }
    }

    /// Reads the columns of a row. False if it must go by itself.
    fn push_row(&self, rows: &Rows, key: &[u8], value: &[u8], scratch: &mut Scratch) -> bool {
        let at = scratch.len;
        let mut has_lanes = true;
        let read = rows.projection.read(key, value, &mut |wanted, cell| {
            let (number, row) = &rows.columns[wanted];
            let (column, dictionary) = (&self.columns[*number], &mut scratch.dictionaries[*number]);
            scratch.misses[*number] |= column.may_miss && matches!(cell, Cell::Null);
            match column.lane_of_cell(row, cell, dictionary) {
                Some(lane) => scratch.columns[*number][at] = lane,
                None => has_lanes = false,
            }
        });
        read.is_ok() && has_lanes
    }

    /// Folds the objects that were taken one by one, into at most so many groups. Groups stay in their slots while
    /// there is room.
    pub(crate) fn flush(
        &self,
        scratch: &mut Scratch,
        into: &mut Destination<'_>,
        groups_max: usize,
    ) -> Result<()> {
        let len = std::mem::take(&mut scratch.len);
        let run = self.filter_run(len, Masking::Unmasked, scratch);
        let mut folded = self.fold(&run, scratch, into, groups_max);
        scratch.misses.fill(false);
        if scratch.has_full_dictionary() {
            folded = folded.and(self.pour(scratch, into, groups_max));
            scratch.forget();
        }
        folded
    }

    /// Folds the valid objects of a batch that they fit: of those `chosen`, or of all.
    pub(crate) fn push_batch(
        &self,
        batch: &ColumnBatch<'_>,
        chosen: Option<&Membership>,
        scratch: &mut Scratch,
        into: &mut Destination<'_>,
    ) -> Result<()> {
        debug_assert_eq!(scratch.len, 0, "what was taken one by one is folded first");
        for begin in (0..batch.len()).step_by(RUN) {
            let run = self.load(batch, begin, chosen, scratch);
            self.fold(&run, scratch, into, into.query.groups_max)?;
        }
        let groups_max = into.query.groups_max;
        self.pour(scratch, into, groups_max)
    }

    /// Makes columns of the run that begins at `begin`, and a mask of the objects that are valid,
    /// chosen, and pass the filter.
    pub(crate) fn load(
        &self,
        batch: &ColumnBatch<'_>,
        begin: usize,
        chosen: Option<&Membership>,
        scratch: &mut Scratch,
    ) -> Run {
        let level = scratch.level;
        let len = RUN.min(batch.len() - begin);
        for (column, lanes) in self.columns.iter().zip(&mut scratch.columns) {
            let Source::Int(int) = &column.source else {
                unreachable!("batches are loaded where all columns are gathered")
            };
            let side = int.side(batch);
            let bytes = side.bytes_from(begin, int.offset);
            kernels::gather(level, int.number, bytes, side.stride(), &mut lanes[..len]);
        }
        let mask = &mut scratch.mask[..len];
        let mut masking = valid(level, batch, begin, mask);
        if let Some(chosen) = chosen {
            let keys = &mut scratch.passes;
            masking = chosen.mask(level, batch.keys(), begin, masking, keys, mask);
        }
        self.filter_run(len, masking, scratch)
    }

    /// Narrows the mask of a run, if it has one, to the objects that pass the filter.
    fn filter_run(&self, len: usize, masking: Masking, scratch: &mut Scratch) -> Run {
        let is_masked = masking == Masking::Masked;
        let level = scratch.level;
        let mask = &mut scratch.mask[..len];
        let selected = if is_masked { kernels::count(level, mask) } else { len as u64 };
        let mut matched = selected;
        if let Some(filter) = &self.filter {
            let passes = &mut scratch.passes[..len];
            let columns = Masked { level, columns: &scratch.columns, misses: &scratch.misses };
            filter.ask(&columns, if is_masked { &mut *passes } else { &mut *mask });
            if is_masked {
                kernels::and(level, mask, passes);
            }
            matched = kernels::count(level, mask);
        }
        // Under a mask that has all lanes there is nothing to leave out.
        Run { len, selected, matched, is_masked: matched < len as u64 }
    }

    fn fold(
        &self,
        run: &Run,
        scratch: &mut Scratch,
        into: &mut Destination<'_>,
        groups_max: usize,
    ) -> Result<()> {
        let missing = self.count_missing(run, scratch);
        let tally = into.partial.tally_mut();
        tally.selected += run.selected;
        tally.matched += run.matched;
        tally.missing += missing;
        if self.groups.is_empty() {
            let states = into.partial.one_group();
            for (at, (state, plan)) in states.iter_mut().zip(&into.query.states).enumerate() {
                self.fold_state(run, at, state, plan, scratch);
            }
            return Ok(());
        }
        let mut slots = scratch.slots.take().expect("made with a group");
        slots.assign(&self.groups, |column| scratch.lanes(run, column), scratch.mask(run));
        for (at, state) in self.states.iter().enumerate() {
            if let Some(number) = state.column {
                let column = &self.columns[number];
                slots.add(at, scratch.lanes(run, number), column, &scratch.dictionaries[number]);
            }
        }
        let are_many = slots.are_many();
        scratch.slots = Some(slots);
        match are_many {
            true => self.pour(scratch, into, groups_max),
            false => Ok(()),
        }
    }

    /// Adds a run to a state where there are no groups.
    fn fold_state(
        &self,
        run: &Run,
        at: usize,
        state: &mut State,
        plan: &StatePlan,
        scratch: &mut Scratch,
    ) {
        let of = self.states[at];
        let Some(number) = of.column else {
            return state.push_figures(plan.spec, run.matched, || 0, |_| None);
        };
        let meaning = &self.columns[number].meaning;
        let present = scratch.misses[number].then(|| scratch.keep_present(run, [number]));
        let scratch = &*scratch;
        let mut figures = self.figures(run, Some(number), scratch);
        if let Some(count) = present {
            (figures.count, figures.mask) = (count, Some(&scratch.passes[..run.len]));
        }
        if of.takes == Takes::Figure {
            let value = |lane| meaning.value(lane, &scratch.dictionaries[number]);
            let extreme = |side| figures.extreme_lane(side).map(value);
            return state.push_figures(plan.spec, figures.count, || figures.sum(), extreme);
        }
        for (at, &lane) in scratch.lanes(run, number).iter().enumerate() {
            if figures.mask.is_none_or(|mask| mask[at] != 0) {
                let value = meaning.value(lane, &scratch.dictionaries[number]);
                state.push(plan.spec, Given { key: &[], value: Some(&value), by: None });
            }
        }
    }

    /// How many objects of a run, of those that count, have no value of some state.
    fn count_missing(&self, run: &Run, scratch: &mut Scratch) -> u64 {
        let of_states = self.states.iter().filter_map(|state| state.column);
        let missed: Vec<usize> = of_states.filter(|column| scratch.misses[*column]).collect();
        match missed[..] {
            [] => 0,
            _ => run.matched - scratch.keep_present(run, missed),
        }
    }

    /// Pours what groups have so far into the partial state.
    pub(crate) fn pour(
        &self,
        scratch: &mut Scratch,
        into: &mut Destination<'_>,
        groups_max: usize,
    ) -> Result<()> {
        let Some(slots) = &mut scratch.slots else { return Ok(()) };
        slots.pour(self, &scratch.dictionaries, into, groups_max)
    }

    /// What a run gives to a state that is of a column.
    pub(crate) fn figures<'a>(
        &self,
        run: &Run,
        column: Option<usize>,
        scratch: &'a Scratch,
    ) -> Figures<'a> {
        let column = column.map(|column| (scratch.lanes(run, column), self.bias(column)));
        Figures { level: scratch.level, count: run.matched, column, mask: scratch.mask(run) }
    }
}

/// Sets the mask of the valid objects from `begin` on, unless all are.
fn valid(level: Level, batch: &ColumnBatch<'_>, begin: usize, mask: &mut [u64]) -> Masking {
    match batch.validity() {
        Validity::All => return Masking::Unmasked,
        Validity::Bits(bits) => kernels::spread(level, bits, begin, mask),
        Validity::Word { words, mask: bits, equals } => {
            kernels::gather(level, WORD, words.bytes_from(begin, 0), words.stride(), mask);
            kernels::agree(level, mask, bits, equals);
        }
    }
    Masking::Masked
}

/// The words that tell whether objects are valid.
const WORD: Number = Number::new(Form::Unsigned, 8, Order::Little).expect("a number of 8 bytes");

/// The columns of a run that a filter is asked about.
struct Masked<'a> {
    level: Level,
    columns: &'a [Box<Lanes>],
    misses: &'a [bool],
}

impl Filter {
    /// Sets the mask of the objects for which it is true.
    fn ask(&self, of: &Masked<'_>, mask: &mut [u64]) {
        let level = of.level;
        let join = |parts: &[Filter], mask: &mut [u64], join: fn(Level, &mut [u64], &[u64])| {
            let mut of_part: Lanes = [0; RUN];
            let of_part = &mut of_part[..mask.len()];
            for part in parts {
                part.ask(of, of_part);
                join(level, mask, of_part);
            }
        };
        // A comparison with what is missing is not true.
        let present = |column: usize, mask: &mut [u64]| {
            if of.misses[column] {
                kernels::present(level, &of.columns[column][..mask.len()], mask);
            }
        };
        match self {
            Filter::Compare(column, comparison, constant) => {
                let lanes = &of.columns[*column][..mask.len()];
                kernels::compare(level, lanes, *comparison, *constant, mask);
                present(*column, mask);
            }
            Filter::Pair(column, comparison, other) => {
                let [lanes, others] =
                    [column, other].map(|column| &of.columns[*column][..mask.len()]);
                kernels::compare_pairs(level, lanes, others, *comparison, mask);
                present(*column, mask);
                present(*other, mask);
            }
            Filter::In(column, set, sense) => {
                kernels::among(level, &of.columns[*column][..mask.len()], set, mask);
                if *sense == Sense::Negated {
                    kernels::not(level, mask);
                }
                present(*column, mask);
            }
            Filter::Missing(column, sense) => {
                mask.fill(u64::MAX);
                present(*column, mask);
                if *sense == Sense::Plain {
                    kernels::not(level, mask);
                }
            }
            Filter::And(parts) => {
                mask.fill(u64::MAX);
                join(parts, mask, kernels::and);
            }
            Filter::Or(parts) => {
                mask.fill(0);
                join(parts, mask, kernels::or);
            }
        }
    }
}

/// A run whose columns are in the scratch.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) len: usize,
    /// Objects that are valid and chosen.
    pub(crate) selected: u64,
    /// Those of them that pass the filter.
    pub(crate) matched: u64,
    /// Whether the mask leaves some out.
    is_masked: bool,
}

/// Columns and masks of a run.
#[derive(Debug)]
pub(crate) struct Scratch {
    level: Level,
    columns: Vec<Box<Lanes>>,
    /// Of each column, whether objects of the run have no value.
    misses: Vec<bool>,
    /// Of each column, the texts that its lanes are the numbers of.
    dictionaries: Vec<Dictionary>,
    /// Which objects of the run count.
    mask: Box<Lanes>,
    /// For which the filter is true; before that, keys, and then, which have a value.
    passes: Box<Lanes>,
    /// Where objects are grouped.
    slots: Option<Slots>,
    /// Objects that were taken one by one and are not folded yet.
    len: usize,
}

impl Scratch {
    /// For a query with these states.
    pub(crate) fn new(columns: &ColumnPlan, states: &[StatePlan]) -> Scratch {
        let lanes = || Box::new([0; RUN]);
        Scratch {
            level: Level::detected(),
            columns: columns.columns.iter().map(|_| lanes()).collect(),
            misses: vec![false; columns.columns.len()],
            dictionaries: columns.columns.iter().map(|_| Dictionary::default()).collect(),
            mask: lanes(),
            passes: lanes(),
            slots: (!columns.groups.is_empty()).then(|| Slots::new(columns, states)),
            len: 0,
        }
    }

    /// Objects that were taken and are not folded yet.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no room for another object, or for texts.
    pub(crate) fn is_full(&self) -> bool {
        self.len == RUN || self.has_full_dictionary()
    }

    fn has_full_dictionary(&self) -> bool {
        self.dictionaries.iter().any(Dictionary::is_full)
    }

    /// Keeps in `passes` the objects that count and have values in all of these columns, and says how many they are.
    fn keep_present(&mut self, run: &Run, columns: impl IntoIterator<Item = usize>) -> u64 {
        let passes = &mut self.passes[..run.len];
        match run.is_masked {
            true => passes.copy_from_slice(&self.mask[..run.len]),
            false => passes.fill(u64::MAX),
        }
        for column in columns {
            kernels::present(self.level, &self.columns[column][..run.len], passes);
        }
        kernels::count(self.level, passes)
    }

    /// Forgets the texts, and the groups that are made of them. No lane is left then.
    fn forget(&mut self) {
        self.dictionaries.iter_mut().for_each(Dictionary::clear);
        if let Some(slots) = &mut self.slots {
            slots.forget();
        }
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// A column of a run.
    pub(crate) fn lanes(&self, run: &Run, column: usize) -> &[u64] {
        &self.columns[column][..run.len]
    }

    /// Which objects of a run count; none if all do.
    pub(crate) fn mask(&self, run: &Run) -> Option<&[u64]> {
        run.is_masked.then(|| &self.mask[..run.len])
    }
}

/// Where runs go.
pub(crate) struct Destination<'a> {
    pub(crate) partial: &'a mut Partial,
    pub(crate) query: &'a Compiled,
}

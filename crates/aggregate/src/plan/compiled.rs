//! The compiled query: a query whose names are numbers.
//!
//! How it is evaluated is in `evaluation.rs`, above the folds and partial states.
//!
//! Fields are numbered: those of the layout, then those that groups declare on the spot, then the
//! key.

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{QueryError, Result, Why};
use crate::plan::columns::ColumnPlan;
use crate::plan::membership::Membership;
use crate::plan::output::{Column, Output};
use crate::plan::state_plan::{GroupPlan, StatePlan};
use crate::question::group::{GroupBy, Input, Shape};
use crate::question::layout::{Field, Layout};
use crate::question::predicate::{Names, Test, Values};
use crate::question::query::{Mismatches, Missing, Query};
use crate::question::selection::Selection;
use crate::value::{Kind, Value};

/// A query that is ready to be answered; see [`Query`] for an example.
///
/// # Consistency
/// It holds no objects and changes nothing: it may be shared by threads.
#[derive(Debug, Clone)]
pub struct Compiled {
    fields: Vec<Field>,
    pub(crate) membership: Membership,
    pub(crate) test: Option<Test>,
    /// Numbers of the fields that groups and states read, each once.
    pub(crate) reads: Vec<usize>,
    pub(crate) groups: Vec<GroupPlan>,
    pub(crate) states: Vec<StatePlan>,
    /// How runs of objects are read by column, where the query allows it.
    pub(crate) columns: Option<ColumnPlan>,
    pub(crate) answer: Output,
    mismatches: Mismatches,
    missing: Missing,
    pub(crate) groups_max: usize,
    fingerprint: u64,
}

impl Query {
    /// Checks that the parts fit together, and makes ready to answer.
    ///
    /// # Errors
    /// [`QueryError::Query`](crate::QueryError::Query): a name that is not known, kinds that do not compare, a
    /// number out of range, two columns with one name, no column at all.
    pub fn compile(&self) -> Result<Compiled> {
        Compiled::new(self)
    }
}

impl Compiled {
    pub(crate) fn new(query: &Query) -> Result<Compiled> {
        let mut fields = query.layout.fields().to_vec();
        for group in &query.groups {
            if let GroupBy::Field(field) = &group.by {
                Layout::new(vec![Field::clone(field)])?;
                field.expect_readable()?;
                fields.push(Field::clone(field));
            }
        }
        let scope = FilterNames { layout: &query.layout, fields: &fields };
        let test = query.filter.as_ref().map(|filter| filter.resolve(&scope)).transpose()?;
        let mut reads = Vec::new();
        let mut answer = Output::default();

        let mut groups = Vec::new();
        let mut inline = query.layout.fields().len()..;
        for group in &query.groups {
            let (number, shape) = match &group.by {
                GroupBy::Input(input) => (scope.input(input)?, Shape::Plain),
                GroupBy::Field(_) => (inline.next().expect("numbers do not end"), Shape::Plain),
                GroupBy::Bucket { input, width, origin } => {
                    (scope.input(input)?, Shape::bucket(*width, *origin)?)
                }
                GroupBy::Classes { input, bounds } => {
                    (scope.input(input)?, Shape::classes(bounds)?)
                }
            };
            if shape.needs_numbers() {
                scope.needs_number(number, &group.name)?;
            }
            let is_plain = matches!(shape, Shape::Plain);
            let kind = if is_plain { scope.kind(number) } else { Some(Kind::Number) };
            answer.add_group(&group.name, kind, is_plain && scope.is_float(number))?;
            groups.push(GroupPlan { read: place(&mut reads, number), shape });
        }

        let mut states = Vec::new();
        for aggregate in &query.aggregates {
            let spec = aggregate.function.spec()?;
            let (value, by) = aggregate.function.inputs();
            let number = |input: Option<&Input>| input.map(|input| scope.input(input)).transpose();
            let (value, by) = (number(value)?, number(by)?);
            if let Some(number) = value.filter(|_| spec.needs_numbers()) {
                scope.needs_number(number, &aggregate.name)?;
            }
            let kind = value.and_then(|number| scope.kind(number));
            let is_float = value.is_some_and(|number| scope.is_float(number));
            let mut read = |number: Option<usize>| number.map(|number| place(&mut reads, number));
            let state = StatePlan { spec, value: read(value), by: read(by) };
            let state = place(&mut states, state);
            answer.add_figure(aggregate, state, kind, is_float)?;
        }
        answer.arrange(query)?;

        let refuses_missing = query.missing == Missing::Refuse;
        let columns =
            ColumnPlan::new(&fields, test.as_ref(), &groups, &states, &reads, refuses_missing);
        let fingerprint = fingerprint(query, &fields, &states, &reads);
        Ok(Compiled {
            fields,
            membership: Membership::new(query.selection.clone()),
            test,
            reads,
            groups,
            states,
            columns,
            answer,
            mismatches: query.mismatches,
            missing: query.missing,
            groups_max: query.groups_max,
            fingerprint,
        })
    }

    /// Which objects are selected by key. An executor may reach just these.
    pub fn selection(&self) -> &Selection {
        self.membership.selection()
    }

    /// Whether objects are answered column by column, in runs.
    ///
    /// ```
    /// use sapwood::aggregate::{Aggregate, Query};
    ///
    /// let query = |layout: &str, figures: &str| {
    ///     let query = Query::new(layout.parse().expect("a layout"));
    ///     query.aggregates(Aggregate::list(figures).expect("figures")).compile().expect("a query")
    /// };
    /// assert!(query("n:u8", "sum(n)").gathers_batches());
    /// let of_floats = query("n:f64le?0", "sum(n)");
    /// assert!(of_floats.goes_by_column() && !of_floats.gathers_batches());
    /// assert!(!query("n:json($.n)", "sum(n)").goes_by_column());
    /// ```
    pub fn goes_by_column(&self) -> bool {
        self.columns.is_some()
    }

    /// Whether all that is read is whole numbers at offsets. Then handing over batches pays, of values that are at
    /// least [`Compiled::value_bytes_min`] wide; else the objects of a batch are read one after the other.
    pub fn gathers_batches(&self) -> bool {
        self.columns.as_ref().is_some_and(ColumnPlan::is_gathered)
    }

    /// How wide values must be at least, so that objects go by column; else each is a mismatch.
    pub fn value_bytes_min(&self) -> usize {
        self.columns.as_ref().map_or(0, ColumnPlan::value_bytes_min)
    }

    /// How many of the first bytes of keys are read, where batches are gathered; objects with shorter keys are mismatches.
    pub fn key_bytes_min(&self) -> usize {
        self.columns.as_ref().map_or(0, ColumnPlan::key_bytes_min)
    }

    /// Whether anything but the selection depends on keys. If not, objects that are known to be
    /// selected may be handed over without them,
    /// [`Column::NOTHING`](sapwood_engine::Column::NOTHING) in
    /// their place, by [`Fold::push_batch_selected`](crate::Fold::push_batch_selected). A query that
    /// reads objects one by one needs them, to show the key of a mismatch.
    pub fn needs_keys(&self) -> bool {
        self.columns.as_ref().is_none_or(ColumnPlan::needs_keys)
    }

    /// Whether the filter, a group or a figure reads the field of the layout that is called so.
    pub fn reads_field(&self, name: &str) -> bool {
        self.fields.iter().position(|field| field.name == name).is_some_and(|field| {
            self.reads.contains(&field) || self.test.as_ref().is_some_and(|test| test.asks(field))
        })
    }

    /// The columns that an answer has.
    pub fn columns(&self) -> &[Column] {
        &self.answer.columns
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(crate) fn mismatches(&self) -> Mismatches {
        self.mismatches
    }

    pub(crate) fn refuses_missing(&self) -> bool {
        self.missing == Missing::Refuse
    }

    /// A field of the layout.
    pub(crate) fn field(&self, number: usize) -> &Field {
        &self.fields[number]
    }

    /// What a field is called, for messages.
    pub(crate) fn field_name(&self, number: usize) -> String {
        match self.fields.get(number) {
            Some(field) => format!("field `{}`", field.name),
            None => "the key".to_owned(),
        }
    }

    /// Reads a field of an object.
    #[inline]
    pub(crate) fn read<'a>(
        &self,
        number: usize,
        key: &'a [u8],
        value: &'a [u8],
    ) -> std::result::Result<Option<Value<'a>>, Why> {
        match self.fields.get(number) {
            Some(field) => field.read(key, value),
            None => Ok(Some(key.into())),
        }
    }
}

/// The place of `item` in `items`, which gets it if it is not there.
fn place<T: PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    items.iter().position(|known| *known == item).unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}

/// Everything that a partial state depends on but the objects, so that states of other queries are
/// told apart. The selection is not part of it: states of disjoint selections may be merged. Stored.
fn fingerprint(query: &Query, fields: &[Field], states: &[StatePlan], reads: &[usize]) -> u64 {
    let missing = match query.missing {
        Missing::PassOver => "passed over",
        Missing::Refuse => "refused",
    };
    let mut text = format!("missing: {missing}\n");
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    fields.iter().for_each(|field| line(field.to_string()));
    if let Some(filter) = &query.filter {
        line(format!("where {filter}"));
    }
    query.groups.iter().for_each(|group| line(format!("by {}", group.by)));
    for state in states {
        let field = |read: Option<usize>| read.map_or(-1, |read| reads[read] as i64);
        line(format!("{} of {} by {}", state.spec.text(), field(state.value), field(state.by)));
    }
    xxh3_64(text.as_bytes())
}

/// What names mean in a filter.
struct FilterNames<'a> {
    layout: &'a Layout,
    /// Those of the layout first.
    fields: &'a [Field],
}

impl FilterNames<'_> {
    fn input(&self, input: &Input) -> Result<usize> {
        match input {
            Input::Key => self.key(),
            Input::Field(name) => self.number(name),
        }
    }

    fn is_float(&self, number: usize) -> bool {
        self.fields.get(number).is_some_and(Field::is_float)
    }

    fn needs_number(&self, number: usize, what: &str) -> Result<()> {
        match self.kind(number) {
            Some(kind) if kind != Kind::Number => {
                let field = self.fields.get(number).map_or("key", |field| &field.name);
                Err(QueryError::Query(format!("`{what}` needs a number, and `{field}` is {kind}")))
            }
            _ => Ok(()),
        }
    }
}

impl Names for FilterNames<'_> {
    fn number(&self, name: &str) -> Result<usize> {
        let number = self.layout.find(name).ok_or_else(|| {
            let known = self.layout.fields().iter().map(|field| field.name.as_str());
            let known: Vec<_> = known.chain(["key"]).collect();
            QueryError::no_field(name, &known)
        })?;
        self.fields[number].expect_readable()?;
        Ok(number)
    }

    fn kind(&self, number: usize) -> Option<Kind> {
        self.fields.get(number).map_or(Some(Kind::Bytes), Field::kind)
    }

    fn key(&self) -> Result<usize> {
        Ok(self.fields.len())
    }
}

/// An object that a filter is asked about.
pub(crate) struct Object<'a> {
    pub(crate) query: &'a Compiled,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl Values for Object<'_> {
    #[inline]
    fn get(&self, number: usize) -> std::result::Result<Option<Value<'_>>, Why> {
        self.query.read(number, self.key, self.value)
    }

    fn unknown(&self) -> std::result::Result<Option<bool>, Why> {
        if self.query.refuses_missing() { Err(Why::Missing) } else { Ok(None) }
    }
}

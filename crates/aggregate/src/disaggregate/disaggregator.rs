//! The compiled disaggregation.

use hashbrown::HashMap;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::disaggregation::{Disaggregation, Weighting};
use super::field::{Action, Change, Refusal, Target};
use crate::error::{QueryError, Result};
use crate::plan::compiled::Compiled;
use crate::question::aggregate::Aggregate;
use crate::question::layout::Layout;
use crate::question::query::{Mismatches, Query};
use crate::question::selection::Selection;

/// A disaggregation that is ready to be done; see [`Disaggregation`] for an example.
///
/// # Consistency
/// It holds no objects: it may be shared by threads. [`Disaggregator::change`] changes the bytes that
/// it is given and nothing else; which other readers see them meanwhile is up to the engine that they lie in.
#[derive(Debug, Clone)]
pub struct Disaggregator {
    /// Reads the field and, in proportion to another, that one: the query for both their sums.
    pub(super) query: Compiled,
    /// The field's number in the query.
    pub(super) field: usize,
    pub(super) target: Target,
    pub(super) weight: Weight,
    pub(super) total: i128,
    pub(super) action: Action,
    pub(super) mismatches: Mismatches,
    /// Whole numbers to which each part that there may be can be added.
    pub(super) safe: (i128, i128),
    fingerprint: u64,
}

/// What an object's part depends on.
#[derive(Debug, Clone)]
pub(super) enum Weight {
    Equal,
    /// The number of a field in the query.
    Field(usize),
    Listed(HashMap<Box<[u8]>, u64>),
}

impl Disaggregation {
    /// Checks that the parts fit together, and makes ready to collect.
    ///
    /// # Errors
    /// [`QueryError::Query`](crate::QueryError::Query): a name that is not known, a field that cannot be
    /// changed, a weight that is no number, two weights for one key.
    pub fn compile(&self) -> Result<Disaggregator> {
        Disaggregator::new(self)
    }
}

impl Disaggregator {
    fn new(asked: &Disaggregation) -> Result<Disaggregator> {
        let mut figures = vec![Aggregate::sum(&asked.field[..]).named("field")];
        if let Weighting::InProportionTo(field) = &asked.weighting {
            figures.push(Aggregate::sum(&field[..]).named("weight"));
        }
        let (weight, selection) = match &asked.weighting {
            Weighting::Weights(weights) => {
                let (listed, selection) = listed(weights, &asked.selection)?;
                (Weight::Listed(listed), selection)
            }
            Weighting::Equally => (Weight::Equal, asked.selection.clone()),
            // Set below, where names are numbers.
            Weighting::InProportionTo(_) => (Weight::Equal, asked.selection.clone()),
        };
        let mut query = Query::new(asked.layout.clone()).select(selection).aggregates(figures);
        if let Some(filter) = &asked.filter {
            query = query.filter(filter.clone());
        }
        let query = query.compile()?;

        let number = |name: &str| {
            let key = || {
                QueryError::Query(
                    "the key cannot be changed, and is no weight: name a field".into(),
                )
            };
            asked.layout.find(name).ok_or_else(key)
        };
        let field = number(&asked.field)?;
        let target = Target::new(&asked.layout.fields()[field])?;
        let weight = match &asked.weighting {
            Weighting::InProportionTo(name) => {
                let number = number(name)?;
                asked.layout.fields()[number].expect_readable()?;
                if asked.layout.fields()[number].is_float() {
                    let why = format!(
                        "weights are whole numbers, and `{name}` is a float: give weights by key, or a field of whole numbers"
                    );
                    return Err(QueryError::Query(why));
                }
                Weight::Field(number)
            }
            Weighting::Equally | Weighting::Weights(_) => weight,
        };
        let safe = match asked.action {
            Action::Set => (i128::MIN, i128::MAX),
            // Parts lie between zero and the total.
            Action::Add => target.safe((asked.total.min(0), asked.total.max(0))),
        };
        let fingerprint = fingerprint(asked, &asked.layout);
        Ok(Disaggregator {
            query,
            field,
            target,
            weight,
            total: asked.total,
            action: asked.action,
            mismatches: asked.mismatches,
            safe,
            fingerprint,
        })
    }

    /// Which objects are selected by key. A collector may reach just these.
    pub fn selection(&self) -> &Selection {
        self.query.selection()
    }

    /// What is spread.
    pub fn total(&self) -> i128 {
        self.total
    }

    /// What is done with an object's part.
    pub fn action(&self) -> Action {
        self.action
    }

    /// Whether the field is of fixed width, so that [`Disaggregator::change`] can be used.
    pub fn changes_in_place(&self) -> bool {
        self.target.is_fixed()
    }

    /// Whether the field is a signed number of 8 bytes, least significant first, at the beginning of
    /// the value: an engine that adds to such numbers, or stores them, may do that with the part, as
    /// [`Disaggregator::action`] says, instead of calling [`Disaggregator::change`]. When the parts were
    /// computed no sum left 64 bits.
    pub fn changes_words(&self) -> bool {
        self.target.is_word()
    }

    /// Whether an object's part depends on its key alone, and on how many objects there are.
    pub fn has_equal_parts(&self) -> bool {
        matches!(self.weight, Weight::Equal)
    }

    /// Gives an object its part, in place. It may be called inside an engine's update of the object,
    /// several times if that has to be begun anew, each time with the bytes as they were. It changes
    /// all or nothing.
    ///
    /// # Errors
    /// The value has no such field, or it cannot hold what it would become.
    ///
    /// # Panics
    /// Unless [`Disaggregator::changes_in_place`].
    #[inline]
    pub fn change(&self, value: &mut [u8], part: i128) -> std::result::Result<Change, Refusal> {
        assert!(self.changes_in_place(), "decimal digits change their length: use `rewrite`");
        self.target.change(value, self.action, part).map_err(Refusal)
    }

    /// Appends what an object's value becomes with its part, or nothing. For fields of any kind.
    ///
    /// # Errors
    /// As [`Disaggregator::change`].
    pub fn rewrite(
        &self,
        value: &[u8],
        part: i128,
        out: &mut Vec<u8>,
    ) -> std::result::Result<Change, Refusal> {
        self.target.rewrite(value, self.action, part, out).map_err(Refusal)
    }

    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(super) fn check_own(&self, fingerprint: u64) -> Result<()> {
        if fingerprint == self.fingerprint { Ok(()) } else { Err(QueryError::OtherDisaggregation) }
    }
}

/// The weights by key, and the keys.
fn listed(
    weights: &[(Vec<u8>, u64)],
    selection: &Selection,
) -> Result<(HashMap<Box<[u8]>, u64>, Selection)> {
    let mut listed = HashMap::with_capacity(weights.len());
    for (key, weight) in weights.iter().filter(|(key, _)| selection.contains(key)) {
        if listed.insert(key.clone().into_boxed_slice(), *weight).is_some() {
            let key = crate::Value::from(&key[..]);
            return Err(QueryError::Query(format!("the key {key} has two weights: give it one")));
        }
    }
    let selection = Selection::keys(listed.keys());
    Ok((listed, selection))
}

/// Everything that the parts and the changes depend on but the objects. Which are selected is left to
/// the collectors: parts of disjoint selections belong together. Stored.
fn fingerprint(asked: &Disaggregation, layout: &Layout) -> u64 {
    let action = match asked.action {
        Action::Set => "set",
        Action::Add => "add",
    };
    let mut text = format!("disaggregation: {action} {}\n", asked.total);
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    let field = |name: &str| layout.find(name).map(|at| layout.fields()[at].to_string());
    line(field(&asked.field).unwrap_or_default());
    match &asked.weighting {
        Weighting::Equally => line("equally".to_owned()),
        Weighting::InProportionTo(name) => line(format!("by {}", field(name).unwrap_or_default())),
        Weighting::Weights(weights) => {
            let mut sorted: Vec<_> = weights.iter().collect();
            sorted.sort_unstable();
            let mut hash = Xxh3::new();
            for (key, weight) in sorted {
                hash.update(&(key.len() as u64).to_le_bytes());
                hash.update(key);
                hash.update(&weight.to_le_bytes());
            }
            line(format!("weights {:016x}", hash.digest()));
        }
    }
    layout.fields().iter().for_each(|field| line(field.to_string()));
    if let Some(filter) = &asked.filter {
        line(format!("where {filter}"));
    }
    xxh3_64(text.as_bytes())
}

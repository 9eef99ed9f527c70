//! One figure on its own, for engines that keep states in their own records.

use crate::answer::{Cell, figure};
use crate::error::{QueryError, Result};
use crate::question::aggregate::Function;
use crate::state::{CentralMoments, Given, Spec, State};
use crate::value::Value;
use crate::value::stored::Reader;

/// The state of one figure of one group: values go in, states merge, and a figure comes out.
///
/// A [`Query`](crate::Query) has many of them. By itself it serves an engine that keeps a state beside
/// each key, such as a roll-up. The inputs that its [`Function`] names are not read: the caller hands
/// over values. The state depends on the values alone, not on their order, and its bytes
/// ([`encode`](Self::encode)) are those of the partial states of queries.
///
/// ```
/// use sapwood_aggregate::{Accumulator, Function};
///
/// let distinct = Function::Distinct { input: "user".into(), precision: 14 };
/// let mut here = Accumulator::new(distinct.clone())?;
/// here.push(&"ann".into())?;
/// here.push(&"bob".into())?;
/// let mut stored = Vec::new();
/// here.encode(&mut stored);
///
/// let mut there = Accumulator::new(distinct.clone())?;
/// there.push(&"ann".into())?;
/// there.merge(Accumulator::decode(distinct, &stored)?)?;
/// assert_eq!(there.cell()?.value(), Some(&2.into()));
/// # Ok::<(), sapwood_aggregate::QueryError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Accumulator {
    function: Function,
    spec: Spec,
    state: State,
}

impl Accumulator {
    /// The state of nothing.
    ///
    /// # Errors
    /// [`QueryError::Query`] if a number of the function is out of range, or if it is one that goes by
    /// more than the value: `first` and `last`.
    pub fn new(function: Function) -> Result<Accumulator> {
        let spec = spec(&function)?;
        Ok(Accumulator { function, state: spec.new_state(), spec })
    }

    /// Adds a value.
    ///
    /// # Errors
    /// [`QueryError::Query`] if the figure does not take it: a text where numbers are added up. The
    /// state is as before.
    pub fn push(&mut self, value: &Value<'_>) -> Result<()> {
        self.spec.accepts(value).map_err(|why| {
            QueryError::Query(format!("`{}` cannot take {value}: the value {why}", self.function))
        })?;
        self.state.push(self.spec, Given { key: b"", value: Some(value), by: None });
        Ok(())
    }

    /// Adds what another state of the same function has seen.
    ///
    /// # Errors
    /// [`QueryError::Foreign`] if it is of another function, [`QueryError::Overflow`] if a counter passes
    /// its range.
    pub fn merge(&mut self, other: Accumulator) -> Result<()> {
        if self.spec != other.spec {
            return Err(QueryError::Foreign);
        }
        self.state.merge(self.spec, other.state).map_err(|_| QueryError::Overflow {
            column: format!("`{}`", self.function),
            what: "a count beyond 2^64".to_owned(),
        })
    }

    /// The figure.
    ///
    /// # Errors
    /// [`QueryError::Overflow`] if its type cannot hold it.
    pub fn cell(&self) -> Result<Cell> {
        self.cell_as(&self.function)
    }

    /// The figure that another function makes of the same state: another quantile, say.
    ///
    /// # Errors
    /// [`QueryError::Foreign`] if that function remembers something else, else as of
    /// [`cell`](Self::cell).
    pub fn cell_as(&self, function: &Function) -> Result<Cell> {
        if spec(function)? != self.spec {
            return Err(QueryError::Foreign);
        }
        figure(function, &self.state)
            .map_err(|what| QueryError::Overflow { column: format!("`{function}`"), what })
    }

    /// Count, mean and squared distances from it, of a state of a variance or deviation; `None` of nothing, and of
    /// another function.
    ///
    /// ```
    /// use sapwood_aggregate::{Accumulator, Function, Spread};
    ///
    /// let variance = Function::Variance("delay".into(), Spread::Population);
    /// let mut delays = Accumulator::new(variance)?;
    /// [1, 2, 6].map(|delay| delays.push(&delay.into()).expect("a number"));
    /// let moments = delays.central_moments()?.expect("of three numbers");
    /// assert_eq!((moments.count, moments.mean, moments.squares), (3, 3.0, 14.0));
    /// # Ok::<(), sapwood_aggregate::QueryError>(())
    /// ```
    ///
    /// # Errors
    /// [`QueryError::Overflow`] if a float cannot hold one of them.
    pub fn central_moments(&self) -> Result<Option<CentralMoments>> {
        let State::Moments(moments) = &self.state else { return Ok(None) };
        let column = || format!("`{}`", self.function);
        moments.central().map_err(|what| QueryError::Overflow { column: column(), what })
    }

    /// Appends the one form of the state.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.state.encode(out);
    }

    /// Reads what [`encode`](Self::encode) wrote for the same function.
    ///
    /// # Errors
    /// [`QueryError::Corrupt`] if the bytes are not such a state, else as of [`new`](Self::new).
    pub fn decode(function: Function, bytes: &[u8]) -> Result<Accumulator> {
        let spec = spec(&function)?;
        let mut reader = Reader::new(bytes);
        let state = spec.decode(&mut reader)?;
        if !reader.is_empty() {
            return Err(reader.corrupt("there are bytes behind the state").into());
        }
        Ok(Accumulator { function, spec, state })
    }
}

fn spec(function: &Function) -> Result<Spec> {
    match function.spec()? {
        Spec::Edge(_) => Err(QueryError::Query(format!(
            "`{function}` goes by more than values: keep what it goes by beside them"
        ))),
        spec => Ok(spec),
    }
}

//! Queries: what is asked of facts.

pub(crate) mod answer;
pub(crate) mod batch;
mod bound;
pub(crate) mod columns;
mod figures;
mod groups;
mod json;
mod made;
pub(crate) mod ordered;
pub(crate) mod plan;
mod rows;
mod run;
mod sets;
pub(crate) mod source;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::filter::Filter;
use crate::schema::{DimensionKind, Number, TIME_COLUMN, Utf};
use crate::time::granularity::Granularity;
use crate::time::interval::Interval;

/// A question to a [`Rollup`](crate::Rollup): a kind of Druid's native queries.
///
/// ```
/// use sapwood::rollup::{Aggregation, Filter, Granularity, Interval, Query};
///
/// let query = Query::timeseries(Granularity::parse("day")?)
///     .interval(Interval::parse("2013-01-01/P1M")?)
///     .filter(Filter::equal("carrier", "UA"))
///     .aggregation(Aggregation::long_sum("flights", "count"))
///     .aggregation(Aggregation::quantile("p90", "delay", 0.9))
///     .post_aggregation("thousands", "flights / 1000.0")?;
/// # let _ = query;
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Query {
    pub(crate) kind: Kind,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) filter: Option<Filter>,
    pub(crate) virtual_columns: Vec<VirtualColumn>,
    pub(crate) granularity: Granularity,
    pub(crate) dimensions: Vec<DimensionSpec>,
    pub(crate) aggregations: Vec<Aggregation>,
    pub(crate) sets: Vec<(String, ThetaSet, SketchFigure)>,
    pub(crate) post_aggregations: Vec<(String, Expression)>,
    pub(crate) having: Option<Filter>,
    pub(crate) order: Vec<OrderBy>,
    pub(crate) limit: Option<usize>,
    pub(crate) offset: usize,
    pub(crate) threads: usize,
    pub(crate) cancel: Option<Arc<AtomicBool>>,
    pub(crate) timeout: Option<Duration>,
}

/// The kind of a query, with what only that kind has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Timeseries { descending: bool, skip_empty: bool },
    TopN { metric: TopNMetric },
    GroupBy { subtotals: Vec<Vec<String>> },
    Scan { columns: Vec<String>, order: ScanOrder, form: ScanForm },
    Search { dimensions: Vec<String>, text: String, case_sensitive: bool },
    TimeBoundary { first: bool, last: bool },
    SegmentMetadata,
}

/// How Druid writes the facts of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanForm {
    List,
    CompactedList,
    /// In pages, each of which says where the next one begins.
    Select,
}

/// By what the first of a [`Query::top_n`] are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopNMetric {
    /// The greatest of a figure.
    Greatest(String),
    /// The least of a figure.
    Least(String),
    /// The first values of the dimension itself, by their order.
    Dimension,
}

/// In which order a scan shows facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanOrder {
    /// By time, the first one first.
    Ascending,
    /// By time, the last one first.
    Descending,
}

/// A column that an expression makes of others, fact by fact, for one query.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualColumn {
    /// Its name. It hides a column of the facts that has the same.
    pub name: String,
    /// Of the columns of facts, and of virtual columns before it.
    pub expression: Expression,
    /// What its values become; null where they cannot be.
    pub kind: DimensionKind,
}

/// A dimension of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimensionSpec {
    /// The dimension, or `__time`.
    pub dimension: String,
    /// Its name in the answer.
    pub output: String,
}

impl From<&str> for DimensionSpec {
    fn from(name: &str) -> DimensionSpec {
        DimensionSpec { dimension: name.to_owned(), output: name.to_owned() }
    }
}

/// A column by which rows of an answer are ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderBy {
    /// The column.
    pub column: String,
    /// Whether the greatest comes first. Null comes last, either way.
    pub descending: bool,
}

/// A figure of each group of facts.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregation {
    /// Its name in the answer.
    pub name: String,
    /// The metric, dimension, or `__time` that it is of; of a count, none.
    pub field: Option<String>,
    /// Which figure.
    pub kind: AggregationKind,
    /// The facts that count for it; all without one.
    pub filter: Option<Filter>,
}

/// Which figure an aggregation is.
///
/// Of a metric that is a sketch, sketches are merged; of anything else, values are added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AggregationKind {
    /// How many facts. How many rows they were made of is the sum of a metric that counts.
    Count,
    /// The sum.
    Sum(Number),
    /// The least.
    Min(Number),
    /// The greatest.
    Max(Number),
    /// That of the first time; of several, the least.
    First(Number),
    /// That of the last time; of several, the greatest.
    Last(Number),
    /// How many different values.
    Distinct {
        /// 4 to 18; that of the metric, if it is one.
        precision: u8,
    },
    /// The number with this share of the others below it.
    Quantile {
        /// 0 to 1.
        share: f64,
        /// The relative error, 0.0001 to 0.5; that of the metric, if it is one.
        accuracy: f64,
    },
    /// The variance of all there are, or the square root of it.
    Variance {
        /// Whether it is the root.
        root: bool,
    },
    /// An HLL sketch of Apache DataSketches.
    Hll {
        /// 4 to 21; that of the metric, if it is one.
        lg_k: u8,
        /// How texts are hashed.
        texts: Utf,
        /// An estimate, or bytes.
        figure: SketchFigure,
    },
    /// A theta sketch of Apache DataSketches.
    Theta {
        /// 5 to 26; that of the metric, if it is one.
        lg_k: u8,
        /// An estimate, or bytes.
        figure: SketchFigure,
    },
    /// A KLL sketch of Apache DataSketches.
    Kll {
        /// From 8 on; that of the metric, if it is one.
        k: u16,
        /// A count, a quantile, or bytes.
        figure: SketchFigure,
    },
}

/// What is said of a sketch of Apache DataSketches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SketchFigure {
    /// About how many different values there are.
    Estimate,
    /// The same as a whole number.
    Rounded,
    /// How many values there are.
    Count,
    /// The number with this share of the others at or below it.
    Quantile {
        /// 0 to 1.
        share: f64,
    },
    /// The sketch itself: its bytes in base64, which other programs read.
    Bytes,
}

/// A set of values, by theta sketches.
///
/// ```
/// use std::sync::Arc;
/// use sapwood::rollup::{
///     Aggregation, Dimension, Filter, Granularity, Metric, Query, Rollup, RowBatch, Schema, SketchFigure, ThetaSet,
///     Value, Writer,
/// };
///
/// let schema = Schema::new("time")
///     .dimension(Dimension::text("page"))
///     .metric(Metric::theta("users", "user"));
/// let rollup = Arc::new(Rollup::new(schema)?);
/// let (batch, _) = RowBatch::from_csv(
///     b"time,page,user\n2013-01-01,Oak,ann\n2013-01-01,Oak,bob\n2013-01-01,Elm,bob\n2013-01-01,Elm,eve\n",
/// )?;
/// Writer::new(&rollup).ingest(&batch)?;
///
/// let users_of = |page: &'static str| Aggregation::theta(page, "users").where_(Filter::equal("page", page));
/// let both = ThetaSet::Intersection(vec![ThetaSet::Of("Oak".to_owned()), ThetaSet::Of("Elm".to_owned())]);
/// let query = Query::timeseries(Granularity::ALL)
///     .aggregation(users_of("Oak"))
///     .aggregation(users_of("Elm"))
///     .theta_set("both", both, SketchFigure::Estimate);
/// assert_eq!(rollup.query(&query)?.value(0, "both"), Some(&Value::Double(1.0)));
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThetaSet {
    /// The values of an aggregation that is a theta sketch, by its name.
    Of(String),
    /// Values that any of some sets has.
    Union(Vec<ThetaSet>),
    /// Values that each of some sets has.
    Intersection(Vec<ThetaSet>),
    /// Values that the first set has, and none of the others.
    Difference(Box<ThetaSet>, Vec<ThetaSet>),
}

macro_rules! aggregations {
    ($($(#[doc = $doc:literal])* $name:ident $kind:expr;)*) => {$(
        $(#[doc = $doc])*
        pub fn $name(name: impl Into<String>, field: impl Into<String>) -> Aggregation {
            Aggregation { name: name.into(), field: Some(field.into()), kind: $kind, filter: None }
        }
    )*};
}

impl Aggregation {
    /// How many facts.
    pub fn count(name: impl Into<String>) -> Aggregation {
        Aggregation { name: name.into(), field: None, kind: AggregationKind::Count, filter: None }
    }

    aggregations! {
        /// The sum of whole numbers.
        long_sum AggregationKind::Sum(Number::Long);
        /// The sum of floating point numbers.
        double_sum AggregationKind::Sum(Number::Double);
        /// The least whole number.
        long_min AggregationKind::Min(Number::Long);
        /// The least floating point number.
        double_min AggregationKind::Min(Number::Double);
        /// The greatest whole number.
        long_max AggregationKind::Max(Number::Long);
        /// The greatest floating point number.
        double_max AggregationKind::Max(Number::Double);
        /// The whole number of the first time.
        long_first AggregationKind::First(Number::Long);
        /// The floating point number of the first time.
        double_first AggregationKind::First(Number::Double);
        /// The whole number of the last time.
        long_last AggregationKind::Last(Number::Long);
        /// The floating point number of the last time.
        double_last AggregationKind::Last(Number::Double);
        /// How many different values.
        distinct AggregationKind::Distinct { precision: crate::schema::PRECISION };
        /// The variance of all there are.
        variance AggregationKind::Variance { root: false };
        /// The standard deviation of all there are.
        deviation AggregationKind::Variance { root: true };
        /// About how many different values, by an HLL sketch of Apache DataSketches.
        hll AggregationKind::Hll {
            lg_k: crate::schema::HLL_LG_K, texts: Utf::Utf16, figure: SketchFigure::Estimate
        };
        /// About how many different values, by a theta sketch of Apache DataSketches.
        theta AggregationKind::Theta {
            lg_k: crate::schema::THETA_LG_K, figure: SketchFigure::Estimate
        };
    }

    /// The number with this share of the others below it.
    pub fn quantile(name: impl Into<String>, field: impl Into<String>, share: f64) -> Aggregation {
        Aggregation {
            name: name.into(),
            field: Some(field.into()),
            kind: AggregationKind::Quantile { share, accuracy: crate::schema::ACCURACY },
            filter: None,
        }
    }

    /// A quantile by a KLL sketch of Apache DataSketches.
    pub fn kll(name: impl Into<String>, field: impl Into<String>, share: f64) -> Aggregation {
        let figure = SketchFigure::Quantile { share };
        Aggregation {
            name: name.into(),
            field: Some(field.into()),
            kind: AggregationKind::Kll { k: crate::schema::KLL_K, figure },
            filter: None,
        }
    }

    /// The same of the facts that a filter takes.
    #[must_use]
    pub fn where_(self, filter: Filter) -> Aggregation {
        Aggregation { filter: Some(filter), ..self }
    }
}

impl Query {
    fn of(kind: Kind) -> Query {
        Query {
            kind,
            intervals: vec![Interval::ETERNITY],
            filter: None,
            virtual_columns: Vec::new(),
            granularity: Granularity::ALL,
            dimensions: Vec::new(),
            aggregations: Vec::new(),
            sets: Vec::new(),
            post_aggregations: Vec::new(),
            having: None,
            order: Vec::new(),
            limit: None,
            offset: 0,
            threads: 1,
            cancel: None,
            timeout: None,
        }
    }

    /// Figures of each bucket of time. Buckets without facts between others that have some are shown.
    pub fn timeseries(granularity: Granularity) -> Query {
        Query::of(Kind::Timeseries { descending: false, skip_empty: false })
            .granularity(granularity)
    }

    /// Figures of each combination of values of dimensions. Of a fact with several values in a
    /// dimension, each counts.
    pub fn group_by(dimensions: impl IntoIterator<Item = impl Into<DimensionSpec>>) -> Query {
        let mut query = Query::of(Kind::GroupBy { subtotals: Vec::new() });
        query.dimensions = dimensions.into_iter().map(Into::into).collect();
        query
    }

    /// Figures of the first values of a dimension, `threshold` of each bucket of time. They are exact.
    pub fn top_n(
        dimension: impl Into<DimensionSpec>,
        metric: TopNMetric,
        threshold: usize,
    ) -> Query {
        let mut query = Query::of(Kind::TopN { metric });
        query.dimensions = vec![dimension.into()];
        query.limit = Some(threshold);
        query
    }

    /// The facts themselves, in the order of their times: these columns, or all without any.
    pub fn scan<'c>(columns: impl IntoIterator<Item = &'c str>, order: ScanOrder) -> Query {
        let columns = columns.into_iter().map(str::to_owned).collect();
        Query::of(Kind::Scan { columns, order, form: ScanForm::List })
    }

    /// The values of dimensions (all without any) that contain a text, great or small letters alike,
    /// and in how many facts.
    pub fn search<'c>(dimensions: impl IntoIterator<Item = &'c str>, text: &str) -> Query {
        let dimensions = dimensions.into_iter().map(str::to_owned).collect();
        Query::of(Kind::Search { dimensions, text: text.to_owned(), case_sensitive: false })
    }

    /// The time of the first fact and of the last.
    pub fn time_boundary() -> Query {
        Query::of(Kind::TimeBoundary { first: true, last: true })
    }

    /// The columns of the facts, and what there is in them.
    pub fn segment_metadata() -> Query {
        Query::of(Kind::SegmentMetadata)
    }

    /// Reads one of Druid's native queries. `docs/design/rollup.md` lists the forms.
    ///
    /// # Errors
    /// [`Error::Query`](crate::Error::Query), which names the field.
    pub fn from_json(text: &str) -> Result<Query> {
        json::query(text)
    }

    /// Of facts whose time lies in this interval, and in those given before.
    #[must_use]
    pub fn interval(mut self, interval: Interval) -> Query {
        if self.intervals == [Interval::ETERNITY] {
            self.intervals.clear();
        }
        self.intervals.push(interval);
        self.intervals = Interval::joined(&self.intervals);
        self
    }

    /// Of facts that the filter takes.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Query {
        self.filter = Some(filter);
        self
    }

    /// With a column that an expression makes of others: of facts, and of virtual ones before it. Whatever names columns
    /// may name it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use sapwood::rollup::{Dimension, Metric, Rollup, RowBatch, Schema, Writer};
    /// use sapwood::rollup::{Aggregation, DimensionKind, Query};
    ///
    /// # let schema = Schema::new("time").dimension(Dimension::text("page")).metric(Metric::count("edits"));
    /// # let rollup = Arc::new(Rollup::new(schema)?);
    /// # let (batch, _) = RowBatch::from_csv(b"time,page\n2013-01-01,Oak\n2013-01-01,oak\n")?;
    /// # Writer::new(&rollup).ingest(&batch)?;
    /// let query = Query::group_by(["word"])
    ///     .virtual_column("word", "lower(page)", DimensionKind::Text)?
    ///     .aggregation(Aggregation::long_sum("edits", "edits"));
    /// let answer = rollup.query(&query)?;
    /// assert_eq!((answer.value(0, "word"), answer.value(0, "edits")), (Some(&"oak".into()), Some(&2.into())));
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Syntax`](crate::Error::Syntax) if it cannot be read.
    pub fn virtual_column(
        mut self,
        name: impl Into<String>,
        text: &str,
        kind: DimensionKind,
    ) -> Result<Query> {
        let expression = Expression::parse(text)?;
        self.virtual_columns.push(VirtualColumn { name: name.into(), expression, kind });
        Ok(self)
    }

    /// # Errors
    /// [`Error::Query`] if a virtual column has a name that it cannot have.
    pub(crate) fn check_virtual_columns(&self) -> Result<()> {
        for (at, column) in self.virtual_columns.iter().enumerate() {
            let name = &column.name;
            let why = match name.as_str() {
                "" => "has no name".to_owned(),
                TIME_COLUMN => format!("is called `{TIME_COLUMN}`, as the time is"),
                _ if self.virtual_columns[..at].iter().any(|known| known.name == *name) => {
                    format!("is called `{name}`, as another is")
                }
                _ => continue,
            };
            return Err(Error::Query(format!("a virtual column {why}")));
        }
        Ok(())
    }

    /// By buckets of time.
    #[must_use]
    pub fn granularity(mut self, granularity: Granularity) -> Query {
        self.granularity = granularity;
        self
    }

    /// With one more figure.
    #[must_use]
    pub fn aggregation(mut self, aggregation: Aggregation) -> Query {
        self.aggregations.push(aggregation);
        self
    }

    /// With what is said of a set of values, which aggregations before it sketch.
    #[must_use]
    pub fn theta_set(
        mut self,
        name: impl Into<String>,
        set: ThetaSet,
        figure: SketchFigure,
    ) -> Query {
        self.sets.push((name.into(), set, figure));
        self
    }

    /// With a figure of figures: an expression over the columns of the answer.
    ///
    /// # Errors
    /// [`Error::Syntax`](crate::Error::Syntax) if it cannot be read.
    pub fn post_aggregation(mut self, name: impl Into<String>, text: &str) -> Result<Query> {
        self.post_aggregations.push((name.into(), Expression::parse(text)?));
        Ok(self)
    }

    /// Only rows of the answer that a filter takes.
    #[must_use]
    pub fn having(mut self, filter: Filter) -> Query {
        self.having = Some(filter);
        self
    }

    /// Ordered by a column of the answer, after those given before.
    #[must_use]
    pub fn order_by(mut self, column: impl Into<String>, descending: bool) -> Query {
        self.order.push(OrderBy { column: column.into(), descending });
        self
    }

    /// At most so many rows.
    #[must_use]
    pub fn limit(mut self, rows: usize) -> Query {
        self.limit = Some(rows);
        self
    }

    /// Without the first rows.
    #[must_use]
    pub fn offset(mut self, rows: usize) -> Query {
        self.offset = rows;
        self
    }

    /// Run by so many threads, which live as long as the query.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Query {
        self.threads = threads.max(1);
        self
    }

    /// Ends with [`Error::Cancelled`](crate::Error::Cancelled) soon after the flag is set.
    #[must_use]
    pub fn cancelled_by(mut self, flag: Arc<AtomicBool>) -> Query {
        self.cancel = Some(flag);
        self
    }

    /// Ends with [`Error::Timeout`](crate::Error::Timeout) soon after so much time has passed since it began, and
    /// at once with none, [`Duration::ZERO`]. Without a timeout, a query takes as long as it needs.
    ///
    /// The time is looked at before each batch of facts is read, of some thousand at most. So a query
    /// may end a little later; what is left when the last batch has been read is done to its end.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use std::time::Duration;
    ///
    /// use sapwood::rollup::{Aggregation, Error, Granularity, Query};
    /// # use sapwood::rollup::{Metric, Rollup, RowBatch, Schema, Writer};
    ///
    /// # let rollup = Arc::new(Rollup::new(Schema::new("time").metric(Metric::count("edits")))?);
    /// # let (batch, _) = RowBatch::from_csv(b"time\n2013-01-01\n2013-01-01\n")?;
    /// # Writer::new(&rollup).ingest(&batch)?;
    /// let edits = Query::timeseries(Granularity::ALL).aggregation(Aggregation::long_sum("edits", "edits"));
    /// let answer = rollup.query(&edits.clone().timeout(Duration::from_secs(60)))?;
    /// assert_eq!(answer.value(0, "edits"), Some(&2.into()));
    /// assert_eq!(rollup.query(&edits.timeout(Duration::ZERO)), Err(Error::Timeout));
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Query {
        self.timeout = Some(timeout);
        self
    }
}

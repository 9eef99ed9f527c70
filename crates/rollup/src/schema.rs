//! Schemas: which columns rows have, and how they become facts.

mod document;
mod json;

use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::filter::Filter;
use crate::time::granularity::Granularity;
use crate::time::timestamp::TimestampFormat;

pub(crate) use json::granularity as granularity_of_json;
pub(crate) use json::{Datasketch, datasketch};

/// The name of the time of a row in filters, transforms and queries.
pub const TIME_COLUMN: &str = "__time";

/// How rows become facts: the column of times, dimensions, metrics, granularities.
///
/// Rows that have the same time, truncated to the query granularity, and the same dimensions are one
/// fact, whose metrics are those of all its rows. The names are those of Druid's `dataSchema`, which
/// [`from_json`](Self::from_json) reads.
///
/// ```
/// use sapwood::rollup::{Dimension, Granularity, Metric, Schema};
///
/// let schema = Schema::new("time")
///     .dimension(Dimension::text("page"))
///     .dimension(Dimension::text("user"))
///     .metric(Metric::count("edits"))
///     .metric(Metric::long_sum("added", "added"))
///     .query_granularity(Granularity::parse("hour")?);
/// schema.check()?;
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    pub(crate) timestamp: Timestamp,
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) discovery: Discovery,
    pub(crate) exclusions: Vec<String>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) transforms: Vec<Transform>,
    pub(crate) filter: Option<Filter>,
    pub(crate) segment_granularity: Granularity,
    pub(crate) query_granularity: Granularity,
    pub(crate) rollup: bool,
    pub(crate) limits: Limits,
}

/// Where the time of a row is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Timestamp {
    pub(crate) column: String,
    pub(crate) format: TimestampFormat,
    /// The time of rows that have none.
    pub(crate) missing: Option<i64>,
}

/// A column by which facts differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    /// Its name, here and in the rows.
    pub name: String,
    /// The type of its values.
    pub kind: DimensionKind,
}

/// The type of the values of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DimensionKind {
    /// Texts, one or several a row. Several are sorted: their order does not count.
    Text,
    /// Whole numbers of 64 bits.
    Long,
    /// Floating point numbers of 64 bits.
    Double,
}

impl Dimension {
    /// Texts.
    pub fn text(name: impl Into<String>) -> Dimension {
        Dimension { name: name.into(), kind: DimensionKind::Text }
    }

    /// Whole numbers.
    pub fn long(name: impl Into<String>) -> Dimension {
        Dimension { name: name.into(), kind: DimensionKind::Long }
    }

    /// Floating point numbers.
    pub fn double(name: impl Into<String>) -> Dimension {
        Dimension { name: name.into(), kind: DimensionKind::Double }
    }
}

/// Whether columns that the schema does not name become dimensions when rows have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discovery {
    /// They are left out.
    Off,
    /// They become dimensions of texts.
    Texts,
    /// They become dimensions of the type of their first values.
    Typed,
}

/// A figure that is kept for each fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its name in queries.
    pub name: String,
    /// The column of the rows; of a count, none.
    pub field: Option<String>,
    /// Which figure.
    pub kind: MetricKind,
    /// The rows that count for it; all without one.
    pub filter: Option<Filter>,
}

/// The type of the numbers of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Whole numbers of 64 bits. A sum beyond them is refused, row by row.
    Long,
    /// Floating point numbers of 64 bits, added in the order in which rows arrive.
    Double,
}

/// Which figure a metric keeps.
///
/// Values that are null do not count; the figure of no value at all is null, but that of a count is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// How many rows.
    Count,
    /// The sum.
    Sum(Number),
    /// The least.
    Min(Number),
    /// The greatest.
    Max(Number),
    /// That of the row with the first time; of several with it, the least.
    First(Number),
    /// That of the row with the last time; of several with it, the greatest.
    Last(Number),
    /// How many different values: exactly up to 2^precision / 16, then within a standard error of
    /// 1.04 / 2^(precision / 2).
    Distinct {
        /// 4 to 18.
        precision: u8,
    },
    /// A sketch that answers any quantile: exactly of up to 4,096 different numbers, else within a
    /// relative error.
    Quantiles {
        /// The relative error, 0.0001 to 0.5.
        accuracy: f64,
    },
    /// A state that answers count, mean, variance and deviation.
    Variance,
    /// An HLL sketch of Apache DataSketches, for how many different values there are: within a standard error of
    /// about 1.04 / 2^(lg_k / 2).
    Hll {
        /// Registers, as a power of two: 4 to 21.
        lg_k: u8,
        /// How texts are hashed.
        texts: Utf,
        /// What rows bring.
        input: SketchInput,
    },
    /// A theta sketch of Apache DataSketches, for how many different values there are in a set, or in what sets have in
    /// common: exactly up to 2^lg_k, then within a standard error of 1 / 2^(lg_k / 2).
    Theta {
        /// Hashes that are kept, as a power of two: 5 to 26.
        lg_k: u8,
        /// What rows bring.
        input: SketchInput,
    },
    /// A KLL sketch of Apache DataSketches, for quantiles: their ranks are within about 2.3 / k^0.9 of what is asked.
    Kll {
        /// 8 to 65,535; 200 has a rank error of 1.65 %.
        k: u16,
        /// What rows bring.
        input: SketchInput,
    },
}

/// How a sketch hashes texts. Sketches that are merged do it alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Utf {
    /// By their UTF-8 bytes.
    Utf8,
    /// By their UTF-16 units, as Druid does where its schema says nothing.
    Utf16,
}

/// What rows bring for a sketch of Apache DataSketches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SketchInput {
    /// Values.
    Values,
    /// Sketches that others made: their bytes, in base64.
    Sketches,
}

/// The registers of an HLL sketch, as Druid has them: 2^12.
pub(crate) const HLL_LG_K: u8 = 12;
/// The hashes of a theta sketch, as Druid has them: 2^14.
pub(crate) const THETA_LG_K: u8 = 14;
/// The size of a KLL sketch, as Druid has it.
pub(crate) const KLL_K: u16 = 200;

/// Registers of distinct counts, as a power of two: a standard error of 1.6 %.
pub(crate) const PRECISION: u8 = 12;
/// Relative error of quantiles.
pub(crate) const ACCURACY: f64 = 0.01;

macro_rules! metrics {
    ($($(#[doc = $doc:literal])* $name:ident $kind:expr;)*) => {$(
        $(#[doc = $doc])*
        pub fn $name(name: impl Into<String>, field: impl Into<String>) -> Metric {
            Metric { name: name.into(), field: Some(field.into()), kind: $kind, filter: None }
        }
    )*};
}

impl Metric {
    /// How many rows.
    pub fn count(name: impl Into<String>) -> Metric {
        Metric { name: name.into(), field: None, kind: MetricKind::Count, filter: None }
    }

    metrics! {
        /// The sum of whole numbers.
        long_sum MetricKind::Sum(Number::Long);
        /// The sum of floating point numbers.
        double_sum MetricKind::Sum(Number::Double);
        /// The least whole number.
        long_min MetricKind::Min(Number::Long);
        /// The least floating point number.
        double_min MetricKind::Min(Number::Double);
        /// The greatest whole number.
        long_max MetricKind::Max(Number::Long);
        /// The greatest floating point number.
        double_max MetricKind::Max(Number::Double);
        /// The whole number of the first row by time.
        long_first MetricKind::First(Number::Long);
        /// The floating point number of the first row by time.
        double_first MetricKind::First(Number::Double);
        /// The whole number of the last row by time.
        long_last MetricKind::Last(Number::Long);
        /// The floating point number of the last row by time.
        double_last MetricKind::Last(Number::Double);
        /// How many different values, within 1.6 % where they are more than 256.
        distinct MetricKind::Distinct { precision: PRECISION };
        /// A sketch for quantiles, within 1 %.
        quantiles MetricKind::Quantiles { accuracy: ACCURACY };
        /// A state for mean and variance.
        variance MetricKind::Variance;
        /// An HLL sketch that other programs read, of 2^12 registers and texts in UTF-16: within 1.6 %.
        hll MetricKind::Hll { lg_k: HLL_LG_K, texts: Utf::Utf16, input: SketchInput::Values };
        /// A theta sketch that other programs read, of up to 2^14 hashes: within 0.8 %.
        theta MetricKind::Theta { lg_k: THETA_LG_K, input: SketchInput::Values };
        /// A KLL sketch that other programs read, of size 200.
        kll MetricKind::Kll { k: KLL_K, input: SketchInput::Values };
    }

    /// The same of the rows that a filter takes.
    #[must_use]
    pub fn where_(self, filter: Filter) -> Metric {
        Metric { filter: Some(filter), ..self }
    }
}

/// A column that an expression makes of the others of a row, before anything else reads the row.
#[derive(Debug, Clone, PartialEq)]
pub struct Transform {
    /// The column. One of the rows of that name is hidden, also from its own expression's successors.
    pub name: String,
    /// Of the row's own columns, and of those of transforms before it.
    pub expression: Expression,
}

/// What live facts may take, and which times are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Limits {
    /// Most live facts: beyond them, facts are sealed into segments. By default there is no limit.
    pub facts_max: Option<u64>,
    /// Most bytes of live facts and dictionaries, 8 MiB at least: beyond them, facts are sealed. While they are,
    /// as many may be on their way. By default there is no limit.
    pub bytes_max: Option<u64>,
    /// Rows whose time lies so many milliseconds before the present are thrown away.
    pub late_max: Option<i64>,
    /// Rows whose time lies so many milliseconds behind the present are thrown away.
    pub early_max: Option<i64>,
    /// Segments whose interval ended so many milliseconds before the present are dropped, when others are merged, and
    /// rows that are as late are thrown away. By default facts are kept for good.
    pub retention: Option<i64>,
}

impl Schema {
    /// A schema whose rows have their time in a column, without dimensions and metrics; with roll-up,
    /// each millisecond by itself, in segments of a day.
    pub fn new(time_column: impl Into<String>) -> Schema {
        Schema {
            timestamp: Timestamp {
                column: time_column.into(),
                format: TimestampFormat::Auto,
                missing: None,
            },
            dimensions: Vec::new(),
            discovery: Discovery::Off,
            exclusions: Vec::new(),
            metrics: Vec::new(),
            transforms: Vec::new(),
            filter: None,
            segment_granularity: Granularity::parse("day").expect("a name that is known"),
            query_granularity: Granularity::NONE,
            rollup: true,
            limits: Limits::default(),
        }
    }

    /// Reads a schema as Druid's `dataSchema` writes it. `docs/design/rollup.md` lists the fields.
    ///
    /// ```
    /// use sapwood::rollup::Schema;
    ///
    /// let schema = Schema::from_json(r#"{
    ///     "timestampSpec": {"column": "time", "format": "iso"},
    ///     "dimensionsSpec": {"dimensions": ["page", {"type": "long", "name": "size"}]},
    ///     "metricsSpec": [{"type": "count", "name": "edits"}],
    ///     "granularitySpec": {"queryGranularity": "hour", "segmentGranularity": "day"}
    /// }"#)?;
    /// let refused = Schema::from_json(r#"{"timestampSpec": {"colum": "time"}}"#);
    /// assert!(refused.unwrap_err().to_string().contains("`timestampSpec.colum` is not known"));
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Schema`], which names the field.
    pub fn from_json(text: &str) -> Result<Schema> {
        let schema = json::schema(text)?;
        schema.check()?;
        Ok(schema)
    }

    /// How times are written.
    #[must_use]
    pub fn timestamp_format(mut self, format: TimestampFormat) -> Schema {
        self.timestamp.format = format;
        self
    }

    /// The time of rows that have none, in milliseconds; without one they are refused.
    #[must_use]
    pub fn missing_time(mut self, time: i64) -> Schema {
        self.timestamp.missing = Some(time);
        self
    }

    /// With one more dimension.
    #[must_use]
    pub fn dimension(mut self, dimension: Dimension) -> Schema {
        self.dimensions.push(dimension);
        self
    }

    /// Whether other columns become dimensions, and which do not.
    #[must_use]
    pub fn discover(mut self, discovery: Discovery, exclusions: &[&str]) -> Schema {
        self.discovery = discovery;
        self.exclusions = exclusions.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Its metrics.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// With one more metric.
    #[must_use]
    pub fn metric(mut self, metric: Metric) -> Schema {
        self.metrics.push(metric);
        self
    }

    /// With one more transform.
    #[must_use]
    pub fn transform(mut self, name: impl Into<String>, expression: Expression) -> Schema {
        self.transforms.push(Transform { name: name.into(), expression });
        self
    }

    /// Takes only the rows that a filter takes.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Schema {
        self.filter = Some(filter);
        self
    }

    /// The granularity of segments. With [`Granularity::ALL`] as query granularity, the time of a fact
    /// is where its segment begins.
    #[must_use]
    pub fn segment_granularity(mut self, granularity: Granularity) -> Schema {
        self.segment_granularity = granularity;
        self
    }

    /// To which granularity the times of facts are truncated.
    #[must_use]
    pub fn query_granularity(mut self, granularity: Granularity) -> Schema {
        self.query_granularity = granularity;
        self
    }

    /// Whether rows that agree are one fact. Without, each row is a fact.
    #[must_use]
    pub fn rollup(mut self, rollup: bool) -> Schema {
        self.rollup = rollup;
        self
    }

    /// What live facts may take.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Schema {
        self.limits = limits;
        self
    }

    /// Whether its parts fit together.
    ///
    /// # Errors
    /// [`Error::Schema`]: which part does not, and why.
    pub fn check(&self) -> Result<()> {
        let refused = |why: String| Err(Error::Schema(why));
        let dimensions = self.dimensions.iter().map(|dimension| &dimension.name);
        let names = dimensions.chain(self.metrics.iter().map(|metric| &metric.name));
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return refused(format!(
                "two columns are called `{}`: dimensions and metrics have one name each",
                twice[0]
            ));
        }
        if names.iter().any(|name| name.is_empty() || *name == TIME_COLUMN) {
            return refused(format!(
                "dimensions and metrics have a name, and `{TIME_COLUMN}` is that of the time"
            ));
        }
        if names.iter().any(|name| name.len() > NAME_BYTES_MAX) || self.metrics.len() > METRICS_MAX
        {
            return refused(format!(
                "names have {NAME_BYTES_MAX} bytes at most, and there are {METRICS_MAX} metrics at most"
            ));
        }
        if let Some(excluded) = names.iter().find(|name| self.exclusions.contains(name)) {
            return refused(format!("`{excluded}` is both declared and excluded"));
        }
        if self.dimensions.len() > DIMENSIONS_MAX {
            return refused(format!("there are more than {DIMENSIONS_MAX} dimensions"));
        }
        if let Some(bytes) = self.limits.bytes_max.filter(|bytes| *bytes < BYTES_MAX_LEAST) {
            return refused(format!(
                "the limit of {bytes} bytes is below {BYTES_MAX_LEAST}: a few blocks of memory are more than that"
            ));
        }
        if self.limits.facts_max == Some(0) {
            return refused("a limit of no facts leaves no room for any".to_owned());
        }
        for metric in &self.metrics {
            let name = &metric.name;
            if metric.field.is_none() != (metric.kind == MetricKind::Count) {
                return refused(format!(
                    "the metric `{name}` needs a `fieldName`, and a count none"
                ));
            }
            match metric.kind {
                MetricKind::Distinct { precision } if !(4..=18).contains(&precision) => {
                    return refused(format!("the precision of `{name}` is 4 to 18"));
                }
                MetricKind::Quantiles { accuracy } if !(0.0001..=0.5).contains(&accuracy) => {
                    return refused(format!("the accuracy of `{name}` is 0.0001 to 0.5"));
                }
                MetricKind::Hll { lg_k, .. } if !(4..=21).contains(&lg_k) => {
                    return refused(format!("the `lgK` of `{name}` is 4 to 21"));
                }
                MetricKind::Theta { lg_k, .. } if !(5..=26).contains(&lg_k) => {
                    return refused(format!("the `size` of `{name}` is 2^5 to 2^26"));
                }
                MetricKind::Kll { k, .. } if k < 8 => {
                    return refused(format!("the `k` of `{name}` is 8 to 65535"));
                }
                _ => {}
            }
            if let Some(filter) = &metric.filter {
                filter.compile()?;
            }
        }
        if let Some(filter) = &self.filter {
            filter.compile()?;
        }
        Ok(())
    }
}

/// The least limit of bytes.
const BYTES_MAX_LEAST: u64 = 8 << 20;

/// Most bytes of the name of a column.
pub(crate) const NAME_BYTES_MAX: usize = 1 << 12;

/// Most metrics.
const METRICS_MAX: usize = 1 << 12;

/// Most dimensions, declared and discovered.
pub(crate) const DIMENSIONS_MAX: usize = 1 << 12;

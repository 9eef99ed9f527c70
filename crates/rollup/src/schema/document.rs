//! Schemas, written as Druid's `dataSchema`.

use jiff::tz::TimeZone;
use serde_json::{Map, Value as Json, json};

use super::{
    DimensionKind, Discovery, Limits, Metric, MetricKind, Number, Schema, SketchInput, Utf,
};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::time::iso;

impl Schema {
    /// The document that [`from_json`](Self::from_json) reads as this schema.
    ///
    /// ```
    /// use sapwood::rollup::{Dimension, Granularity, Metric, Schema};
    ///
    /// let schema = Schema::new("time")
    ///     .dimension(Dimension::text("page"))
    ///     .metric(Metric::count("edits"))
    ///     .query_granularity(Granularity::parse("hour")?.in_zone("Europe/Berlin")?);
    /// assert_eq!(Schema::from_json(&schema.to_json()?)?, schema);
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Schema`] if a document would say something else, as of a bound that is null.
    pub fn to_json(&self) -> Result<String> {
        let text = self.document().to_string();
        match Schema::from_json(&text) {
            Ok(read) if read == *self => Ok(text),
            Ok(_) => {
                let why =
                    "no document says the same: let filters compare with texts and numbers alone";
                Err(Error::Schema(why.to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    fn document(&self) -> Json {
        let (timestamp, utc) = (&self.timestamp, TimeZone::UTC);
        let dimensions: Vec<Json> = self
            .dimensions
            .iter()
            .map(|dimension| {
                let kind = match dimension.kind {
                    DimensionKind::Text => "string",
                    DimensionKind::Long => "long",
                    DimensionKind::Double => "double",
                };
                json!({"type": kind, "name": dimension.name})
            })
            .collect();
        let transforms: Vec<Json> = self
            .transforms
            .iter()
            .map(|made| json!({"name": made.name, "expression": made.expression.text()}))
            .collect();
        json!({
            "timestampSpec": {
                "column": timestamp.column,
                "format": timestamp.format.name(),
                "missingValue": timestamp.missing.map(|time| iso(time, &utc)),
            },
            "dimensionsSpec": {
                "dimensions": dimensions,
                "dimensionExclusions": self.exclusions,
                "useSchemaDiscovery": self.discovery == Discovery::Typed,
                "includeAllDimensions": self.discovery == Discovery::Texts,
            },
            "metricsSpec": self.metrics.iter().map(metric).collect::<Vec<_>>(),
            "granularitySpec": {
                "segmentGranularity": self.segment_granularity.document(),
                "queryGranularity": self.query_granularity.document(),
                "rollup": self.rollup,
            },
            "transformSpec": {
                "transforms": transforms,
                "filter": self.filter.as_ref().map(Filter::to_document),
            },
            "limits": limits(&self.limits),
        })
    }
}

fn metric(metric: &Metric) -> Json {
    let of = |kind: &str, number: Number| match number {
        Number::Long => format!("long{kind}"),
        Number::Double => format!("double{kind}"),
    };
    let mut fields = Map::new();
    let kind = match metric.kind {
        MetricKind::Count => "count".to_owned(),
        MetricKind::Sum(number) => of("Sum", number),
        MetricKind::Min(number) => of("Min", number),
        MetricKind::Max(number) => of("Max", number),
        MetricKind::First(number) => of("First", number),
        MetricKind::Last(number) => of("Last", number),
        MetricKind::Distinct { precision } => {
            fields.insert("precision".to_owned(), json!(precision));
            "distinct".to_owned()
        }
        MetricKind::Quantiles { accuracy } => {
            fields.insert("accuracy".to_owned(), json!(accuracy));
            "quantiles".to_owned()
        }
        MetricKind::Variance => "variance".to_owned(),
        MetricKind::Hll { lg_k, texts, input } => {
            fields.insert("lgK".to_owned(), json!(lg_k));
            let encoding = match texts {
                Utf::Utf8 => "utf8",
                Utf::Utf16 => "utf16le",
            };
            fields.insert("stringEncoding".to_owned(), json!(encoding));
            match input {
                SketchInput::Values => "HLLSketchBuild".to_owned(),
                SketchInput::Sketches => "HLLSketchMerge".to_owned(),
            }
        }
        MetricKind::Theta { lg_k, input } => {
            fields.insert("size".to_owned(), json!(1_u64 << lg_k));
            let is_sketch = input == SketchInput::Sketches;
            fields.insert("isInputThetaSketch".to_owned(), json!(is_sketch));
            "thetaSketch".to_owned()
        }
        MetricKind::Kll { k, input } => {
            fields.insert("k".to_owned(), json!(k));
            match input {
                SketchInput::Values => "KllDoublesSketch".to_owned(),
                SketchInput::Sketches => "KllDoublesSketchMerge".to_owned(),
            }
        }
    };
    fields.insert("type".to_owned(), json!(kind));
    fields.insert("name".to_owned(), json!(metric.name));
    if let Some(field) = &metric.field {
        fields.insert("fieldName".to_owned(), json!(field));
    }
    let plain = Json::Object(fields);
    match &metric.filter {
        None => plain,
        Some(filter) => {
            json!({"type": "filtered", "filter": filter.to_document(), "aggregator": plain})
        }
    }
}

fn limits(limits: &Limits) -> Json {
    let period = |millis: i64| format!("PT{}.{:03}S", millis / 1000, millis % 1000);
    json!({
        "maxRowsInMemory": limits.facts_max,
        "maxBytesInMemory": limits.bytes_max,
        "lateMessageRejectionPeriod": limits.late_max.map(period),
        "earlyMessageRejectionPeriod": limits.early_max.map(period),
        "retentionPeriod": limits.retention.map(period),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Expression;
    use crate::time::granularity::Granularity;
    use crate::time::interval::Interval;
    use crate::time::timestamp::TimestampFormat;
    use crate::value::Value;
    use crate::{Dimension, Filter};

    fn is_read_back(schema: &Schema) {
        let text = schema.to_json().expect("a document");
        assert_eq!(Schema::from_json(&text).as_ref(), Ok(schema), "{text}");
    }

    #[test]
    fn each_part_is_read_back() {
        let column = || "x".to_owned();
        let granularity = |text: &str| Granularity::parse(text).expect("known");
        is_read_back(&Schema::new("time"));
        let formats = ["auto", "iso", "posix", "millis", "micro", "nano"];
        for format in formats.map(|name| TimestampFormat::parse(name).expect("known")) {
            is_read_back(&Schema::new("t").timestamp_format(format).missing_time(-1));
        }
        for discovery in [Discovery::Off, Discovery::Texts, Discovery::Typed] {
            is_read_back(&Schema::new("t").discover(discovery, &["secret"]));
            let declared = Schema::new("t")
                .dimension(Dimension::text("a"))
                .dimension(Dimension::long("b"))
                .dimension(Dimension::double("c"));
            is_read_back(&declared.discover(discovery, &[]));
        }
        for query in [
            Granularity::NONE,
            Granularity::ALL,
            granularity("second"),
            granularity("PT15M"),
            granularity("PT6H"),
            granularity("P1W"),
            granularity("quarter"),
            granularity("PT7S").in_zone("UTC").expect("known"),
            Granularity::duration(1_234, 567).expect("a length"),
            granularity("day").in_zone("Europe/Berlin").expect("known"),
            granularity("day").in_zone("-03:30").expect("known"),
            granularity("P3D")
                .in_zone("America/New_York")
                .and_then(|it| it.from_origin("2013-03-10T07:30Z"))
                .expect("known"),
        ] {
            let segment = granularity("month");
            is_read_back(&Schema::new("t").query_granularity(query).segment_granularity(segment));
        }
        for filter in [
            Filter::True,
            Filter::not(Filter::False),
            Filter::and([Filter::or([]), Filter::IsNull { column: column() }]),
            Filter::In { column: column(), values: vec![Value::Null, "a".into(), 7.into()] },
            Filter::Bound {
                column: column(),
                lower: Some(Value::Double(0.1)),
                lower_strict: true,
                upper: None,
                upper_strict: false,
                numeric: true,
            },
            Filter::Bound {
                column: column(),
                lower: None,
                lower_strict: false,
                upper: Some("é".into()),
                upper_strict: true,
                numeric: false,
            },
            Filter::Like { column: column(), pattern: "%a_".to_owned(), escape: Some('\\') },
            Filter::Like { column: column(), pattern: "%".to_owned(), escape: None },
            Filter::Regex { column: column(), pattern: "^a+".to_owned() },
            Filter::Contains { column: column(), text: "A".to_owned(), case_sensitive: true },
            Filter::Interval {
                column: "__time".to_owned(),
                intervals: vec![Interval { start: -1, end: 86_400_001 }],
            },
            Filter::Columns(vec!["a".to_owned(), "b".to_owned()]),
            Filter::Expression(Expression::parse("x + 1 > 2").expect("an expression")),
        ] {
            let limits = Limits {
                facts_max: Some(7),
                bytes_max: Some(1 << 40),
                late_max: Some(1_234),
                early_max: Some(0),
                retention: Some(7_000),
            };
            let schema = Schema::new("t").metric(Metric::count("all").where_(filter.clone()));
            is_read_back(&schema.filter(filter).limits(limits).rollup(false));
        }
        let schema = Schema::new("t")
            .metric(Metric::long_first("first", "x"))
            .metric(Metric::double_last("last", "x"))
            .metric(Metric::distinct("users", "user"))
            .metric(Metric::quantiles("delays", "delay"))
            .metric(Metric::variance("spread", "delay"))
            .transform("y", Expression::parse("upper(x)").expect("an expression"));
        is_read_back(&schema);
    }

    #[test]
    fn what_no_document_says_is_refused() {
        let filter = Filter::Bound {
            column: "x".to_owned(),
            lower: Some(Value::Null),
            lower_strict: false,
            upper: None,
            upper_strict: false,
            numeric: false,
        };
        assert!(matches!(Schema::new("t").filter(filter).to_json(), Err(Error::Schema(_))));
    }
}

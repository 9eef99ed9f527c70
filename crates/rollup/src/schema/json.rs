//! Schemas as Druid's `dataSchema` writes them.

use jiff::{Span, SpanRelativeTo};
use serde_json::Value as Json;

use super::{
    ACCURACY, Dimension, DimensionKind, Discovery, HLL_LG_K, KLL_K, Limits, Metric, MetricKind,
    Number, PRECISION, Schema, SketchInput, THETA_LG_K, Utf,
};
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::filter;
use crate::json::Object;
use crate::time::granularity::Granularity;
use crate::time::timestamp::{TimestampFormat, parse_iso};

pub(super) fn schema(text: &str) -> Result<Schema> {
    let json: Json = serde_json::from_str(text)
        .map_err(|error| Error::Schema(format!("it is no JSON: {error}")))?;
    let mut document = Object::new("", json, Error::Schema)?;
    document.ignore(&["dataSource"]);
    let mut schema = Schema::new("timestamp");
    if let Some(spec) = document.optional_object("timestampSpec")? {
        timestamp(spec, &mut schema)?;
    }
    if let Some(spec) = document.optional_object("dimensionsSpec")? {
        dimensions(spec, &mut schema)?;
    } else {
        schema.discovery = Discovery::Texts;
    }
    for spec in document.objects("metricsSpec")? {
        schema.metrics.push(metric(spec, 0)?);
    }
    if let Some(spec) = document.optional_object("granularitySpec")? {
        granularities(spec, &mut schema)?;
    }
    if let Some(spec) = document.optional_object("transformSpec")? {
        transforms(spec, &mut schema)?;
    }
    if let Some(spec) = document.optional_object("limits")? {
        schema.limits = limits(spec)?;
    }
    document.end()?;
    Ok(schema)
}

fn timestamp(mut spec: Object, schema: &mut Schema) -> Result<()> {
    if let Some(column) = spec.optional_text("column")? {
        schema.timestamp.column = column;
    }
    if let Some(format) = spec.optional_text("format")? {
        schema.timestamp.format = TimestampFormat::parse(&format)?;
    }
    if let Some(missing) = spec.optional_text("missingValue")? {
        schema.timestamp.missing = Some(spec.placed("missingValue", parse_iso(&missing))?);
    }
    spec.end()
}

fn dimensions(mut spec: Object, schema: &mut Schema) -> Result<()> {
    let path = spec.at("dimensions");
    for (at, json) in spec.optional_list("dimensions")?.unwrap_or_default().into_iter().enumerate()
    {
        schema.dimensions.push(match json {
            Json::String(name) => Dimension::text(name),
            json => dimension(Object::new(&format!("{path}[{at}]"), json, Error::Schema)?)?,
        });
    }
    schema.exclusions = spec.texts("dimensionExclusions")?;
    let discovers_types = spec.flag("useSchemaDiscovery", false)?;
    let includes_all = spec.flag("includeAllDimensions", schema.dimensions.is_empty())?;
    schema.discovery = match (discovers_types, includes_all) {
        (true, _) => Discovery::Typed,
        (false, true) => Discovery::Texts,
        (false, false) => Discovery::Off,
    };
    spec.end()
}

fn dimension(mut spec: Object) -> Result<Dimension> {
    let kind = match spec.optional_text("type")?.as_deref() {
        None | Some("string") => DimensionKind::Text,
        Some("long") => DimensionKind::Long,
        Some("double" | "float") => DimensionKind::Double,
        Some(other) => {
            let why = format!("is `{other}`: say string, long or double");
            return Err(spec.refused("type", &why));
        }
    };
    let name = spec.text("name")?;
    // Indexes are made of all texts; the order of several values does not count.
    spec.ignore(&["createBitmapIndex", "multiValueHandling"]);
    spec.end()?;
    Ok(Dimension { name, kind })
}

fn metric(mut spec: Object, depth: usize) -> Result<Metric> {
    let kind = spec.text("type")?;
    if kind == "filtered" {
        if depth > 0 {
            return Err(
                spec.refused("type", "is `filtered` inside of `filtered`: join the filters")
            );
        }
        let at = spec.at("filter");
        let filter = spec.take("filter").ok_or_else(|| spec.refused("filter", "is missing"))?;
        let filter = filter::from_json(&at, filter, Error::Schema)?;
        let inner = metric(spec.object("aggregator")?, depth + 1)?;
        let name = spec.optional_text("name")?.unwrap_or_else(|| inner.name.clone());
        spec.end()?;
        return Ok(Metric { name, filter: Some(filter), ..inner });
    }
    let kind = match kind.as_str() {
        "count" => MetricKind::Count,
        "longSum" => MetricKind::Sum(Number::Long),
        "doubleSum" | "floatSum" => MetricKind::Sum(Number::Double),
        "longMin" => MetricKind::Min(Number::Long),
        "doubleMin" | "floatMin" => MetricKind::Min(Number::Double),
        "longMax" => MetricKind::Max(Number::Long),
        "doubleMax" | "floatMax" => MetricKind::Max(Number::Double),
        "longFirst" => MetricKind::First(Number::Long),
        "doubleFirst" | "floatFirst" => MetricKind::First(Number::Double),
        "longLast" => MetricKind::Last(Number::Long),
        "doubleLast" | "floatLast" => MetricKind::Last(Number::Double),
        "distinct" | "hyperUnique" => {
            let precision = spec.optional_count("precision")?.unwrap_or(PRECISION.into());
            MetricKind::Distinct { precision: u8::try_from(precision).unwrap_or(u8::MAX) }
        }
        "quantiles" => MetricKind::Quantiles {
            accuracy: spec.optional_double("accuracy")?.unwrap_or(ACCURACY),
        },
        "variance" => MetricKind::Variance,
        other => match datasketch(&mut spec, other)? {
            Some(Datasketch::Hll { lg_k, texts, input }) => MetricKind::Hll { lg_k, texts, input },
            Some(Datasketch::Theta { lg_k, input }) => MetricKind::Theta { lg_k, input },
            Some(Datasketch::Kll { k, input }) => MetricKind::Kll { k, input },
            None => {
                let why = format!(
                    "is `{other}`: say count, longSum, longMin, longMax, longFirst, longLast, the same \
                     with double, distinct, quantiles, variance, HLLSketchBuild, HLLSketchMerge, thetaSketch, \
                     KllDoublesSketch, KllDoublesSketchMerge or filtered"
                );
                return Err(spec.refused("type", &why));
            }
        },
    };
    let name = spec.text("name")?;
    let field = match kind {
        MetricKind::Count => None,
        _ => Some(spec.text("fieldName")?),
    };
    spec.end()?;
    Ok(Metric { name, field, kind, filter: None })
}

/// A sketch of Apache DataSketches, as a metric and an aggregation name it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Datasketch {
    Hll { lg_k: u8, texts: Utf, input: SketchInput },
    Theta { lg_k: u8, input: SketchInput },
    Kll { k: u16, input: SketchInput },
}

/// Reads the sketch of a type, if it is that of one.
pub(crate) fn datasketch(spec: &mut Object, kind: &str) -> Result<Option<Datasketch>> {
    use SketchInput::{Sketches, Values};
    Ok(Some(match kind {
        "HLLSketchBuild" | "HLLSketchMerge" => {
            let lg_k = spec.optional_count("lgK")?.unwrap_or(HLL_LG_K.into());
            let texts = match spec.optional_text("stringEncoding")?.as_deref() {
                None | Some("utf16le") => Utf::Utf16,
                Some("utf8") => Utf::Utf8,
                Some(other) => {
                    let why = format!("is `{other}`: say utf16le or utf8");
                    return Err(spec.refused("stringEncoding", &why));
                }
            };
            if let Some(other) = spec.optional_text("tgtHllType")?
                && other != "HLL_4"
            {
                let why = format!("is `{other}`: sketches are written as HLL_4, and read as any");
                return Err(spec.refused("tgtHllType", &why));
            }
            let input = if kind == "HLLSketchBuild" { Values } else { Sketches };
            Datasketch::Hll { lg_k: u8::try_from(lg_k).unwrap_or(u8::MAX), texts, input }
        }
        "thetaSketch" => {
            let size = spec.optional_count("size")?.unwrap_or(1 << THETA_LG_K);
            if !size.is_power_of_two() {
                return Err(spec.refused("size", &format!("is {size}, and no power of two")));
            }
            let input = if spec.flag("isInputThetaSketch", false)? { Sketches } else { Values };
            Datasketch::Theta { lg_k: size.ilog2() as u8, input }
        }
        "KllDoublesSketch" | "KllDoublesSketchMerge" => {
            let k = spec.optional_count("k")?.unwrap_or(KLL_K.into());
            let k = u16::try_from(k).map_err(|_| spec.refused("k", "is not 8 to 65535"))?;
            // Druid's guess of how much memory a sketch takes.
            spec.ignore(&["maxStreamLength"]);
            let input = if kind == "KllDoublesSketch" { Values } else { Sketches };
            Datasketch::Kll { k, input }
        }
        _ => return Ok(None),
    }))
}

fn granularities(mut spec: Object, schema: &mut Schema) -> Result<()> {
    match spec.optional_text("type")?.as_deref() {
        None | Some("uniform") => {}
        Some(other) => {
            return Err(spec.refused("type", &format!("is `{other}`: only uniform is known")));
        }
    }
    if let Some(found) = granularity(&mut spec, "segmentGranularity")? {
        schema.segment_granularity = found;
    }
    if let Some(found) = granularity(&mut spec, "queryGranularity")? {
        schema.query_granularity = found;
    }
    schema.rollup = spec.flag("rollup", true)?;
    spec.end()
}

/// Reads a granularity: a name, a period, or an object of type `period`, `duration`, `all` or `none`.
pub(crate) fn granularity(spec: &mut Object, name: &str) -> Result<Option<Granularity>> {
    let Some(json) = spec.take(name) else { return Ok(None) };
    if let Json::String(text) = json {
        return spec.placed(name, Granularity::parse(&text)).map(Some);
    }
    let at = spec.at(name);
    let mut object = Object::new(&at, json, Error::Schema)
        .map_err(|_| spec.refused(name, "is neither the name of a granularity nor an object"))?;
    let kind = object.text("type")?;
    let mut granularity = match kind.as_str() {
        "all" => Granularity::ALL,
        "none" => Granularity::NONE,
        "period" => {
            let period = object.text("period")?;
            let granularity = object.placed("period", Granularity::parse(&period))?;
            match object.optional_text("timeZone")? {
                Some(zone) => object.placed("timeZone", granularity.in_zone(&zone))?,
                None => granularity,
            }
        }
        "duration" => {
            let length = object.optional_count("duration")?.unwrap_or(0);
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            object.placed("duration", Granularity::duration(length, 0))?
        }
        other => {
            let why = format!("is `{other}`: say period, duration, all or none");
            return Err(object.refused("type", &why));
        }
    };
    if let Some(origin) = object.optional_text("origin")? {
        granularity = object.placed("origin", granularity.from_origin(&origin))?;
    }
    object.end()?;
    Ok(Some(granularity))
}

fn transforms(mut spec: Object, schema: &mut Schema) -> Result<()> {
    for mut transform in spec.objects("transforms")? {
        match transform.optional_text("type")?.as_deref() {
            None | Some("expression") => {}
            Some(other) => {
                let why = format!("is `{other}`: only expression is known");
                return Err(transform.refused("type", &why));
            }
        }
        let name = transform.text("name")?;
        let text = transform.text("expression")?;
        let expression = transform.placed("expression", Expression::parse(&text))?;
        transform.end()?;
        schema.transforms.push(super::Transform { name, expression });
    }
    let at = spec.at("filter");
    if let Some(json) = spec.take("filter") {
        schema.filter = Some(filter::from_json(&at, json, Error::Schema)?);
    }
    spec.end()
}

fn limits(mut spec: Object) -> Result<Limits> {
    let limits = Limits {
        facts_max: spec.optional_count("maxRowsInMemory")?,
        bytes_max: spec.optional_count("maxBytesInMemory")?,
        late_max: period(&mut spec, "lateMessageRejectionPeriod")?,
        early_max: period(&mut spec, "earlyMessageRejectionPeriod")?,
        retention: period(&mut spec, "retentionPeriod")?,
    };
    spec.end()?;
    Ok(limits)
}

/// A period, in milliseconds; days have 24 hours here.
fn period(spec: &mut Object, name: &str) -> Result<Option<i64>> {
    let Some(text) = spec.optional_text(name)? else { return Ok(None) };
    let days = SpanRelativeTo::days_are_24_hours();
    let millis = text
        .parse::<Span>()
        .and_then(|span| span.to_duration(days))
        .map(|length| i64::try_from(length.as_millis()).unwrap_or(i64::MAX));
    match millis {
        Ok(millis) if millis >= 0 => Ok(Some(millis)),
        _ => Err(spec.refused(name, "is no ISO 8601 period of at most days, such as PT10M")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Filter;

    #[test]
    fn a_schema_is_read_as_druid_writes_it() {
        let schema = Schema::from_json(
            r#"{
            "dataSource": "wiki",
            "timestampSpec": {"column": "time", "format": "iso", "missingValue": "2013-01-01"},
            "dimensionsSpec": {
                "dimensions": ["page", {"type": "long", "name": "size"}, {"type": "double", "name": "at"}],
                "dimensionExclusions": ["secret"]
            },
            "metricsSpec": [
                {"type": "count", "name": "edits"},
                {"type": "longSum", "name": "added", "fieldName": "add"},
                {"type": "filtered", "filter": {"type": "selector", "dimension": "bot", "value": "true"},
                 "aggregator": {"type": "doubleMax", "name": "by_bots", "fieldName": "delta"}},
                {"type": "hyperUnique", "name": "users", "fieldName": "user"}
            ],
            "granularitySpec": {
                "type": "uniform", "segmentGranularity": "day", "rollup": true,
                "queryGranularity": {"type": "period", "period": "PT1H", "timeZone": "Europe/Berlin"}
            },
            "transformSpec": {
                "transforms": [{"type": "expression", "name": "word", "expression": "lower(page)"}],
                "filter": {"type": "not", "field": {"type": "null", "column": "page"}}
            },
            "limits": {"maxRowsInMemory": 1000, "lateMessageRejectionPeriod": "P1D", "retentionPeriod": "P30D"}
        }"#,
        )
        .expect("a schema");
        let same = Schema::new("time")
            .timestamp_format(TimestampFormat::Iso)
            .missing_time(1_356_998_400_000)
            .dimension(Dimension::text("page"))
            .dimension(Dimension::long("size"))
            .dimension(Dimension::double("at"))
            .discover(Discovery::Off, &["secret"])
            .metric(Metric::count("edits"))
            .metric(Metric::long_sum("added", "add"))
            .metric(Metric::double_max("by_bots", "delta").where_(Filter::equal("bot", "true")))
            .metric(Metric::distinct("users", "user"))
            .query_granularity(
                Granularity::parse("hour")
                    .and_then(|it| it.in_zone("Europe/Berlin"))
                    .expect("known"),
            )
            .transform("word", Expression::parse("lower(page)").expect("an expression"))
            .filter(Filter::not(Filter::IsNull { column: "page".to_owned() }))
            .limits(Limits {
                facts_max: Some(1000),
                late_max: Some(86_400_000),
                retention: Some(30 * 86_400_000),
                ..Limits::default()
            });
        assert_eq!(schema, same);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (json, named) in [
            (r#"{"timestampSpecs": {}}"#, "`timestampSpecs` is not known here"),
            (r#"{"timestampSpec": {"format": "yy"}}"#, "`timestampSpec.format` is `yy`"),
            (
                r#"{"dimensionsSpec": {"dimensions": [{"type": "json", "name": "x"}]}}"#,
                "`dimensionsSpec.dimensions[0].type` is `json`",
            ),
            (
                r#"{"metricsSpec": [{"type": "longSum", "name": "x"}]}"#,
                "`metricsSpec[0].fieldName`",
            ),
            (r#"{"metricsSpec": [{"type": "arrayOfDoubles"}]}"#, "`metricsSpec[0].type`"),
            (
                r#"{"metricsSpec": [{"type": "thetaSketch", "size": 100}]}"#,
                "`metricsSpec[0].size` is 100, and no power of two",
            ),
            (
                r#"{"metricsSpec": [{"type": "HLLSketchBuild", "name": "x", "fieldName": "x", "lgK": 30}]}"#,
                "the `lgK` of `x` is 4 to 21",
            ),
            (
                r#"{"granularitySpec": {"queryGranularity": "hours"}}"#,
                "`granularitySpec.queryGranularity` cannot be",
            ),
            (
                r#"{"granularitySpec": {"queryGranularity": {"type":"period","period":"P1D","timeZone":"Mars"}}}"#,
                "`granularitySpec.queryGranularity.timeZone` cannot be",
            ),
            (
                r#"{"dimensionsSpec": {"dimensions": ["x"]}, "metricsSpec": [{"type":"count","name":"x"}]}"#,
                "two columns are called `x`",
            ),
            (
                r#"{"dimensionsSpec": {"dimensions": ["x"], "dimensionExclusions": ["x"]}}"#,
                "`x` is both declared and excluded",
            ),
            (r#"{"limits": {"lateMessageRejectionPeriod": "P1M"}}"#, "lateMessageRejectionPeriod"),
            (r#"{"#, "no JSON"),
        ] {
            let error = Schema::from_json(json).expect_err(json).to_string();
            assert!(error.contains(named), "{json}: {error}");
        }
    }
}

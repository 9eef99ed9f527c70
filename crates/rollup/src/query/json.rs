//! Queries as Druid writes its native ones.

use std::time::Duration;

use serde_json::Value as Json;

use super::answer::SEGMENT;
use super::{
    Aggregation, AggregationKind, DimensionSpec, Kind, OrderBy, Query, ScanForm, ScanOrder,
    SketchFigure, ThetaSet, TopNMetric, VirtualColumn,
};
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::filter;
use crate::json::Object;
use crate::schema::{
    ACCURACY, Datasketch, DimensionKind, Number, PRECISION, datasketch, granularity_of_json,
};
use crate::time::interval::Interval;

pub(super) fn query(text: &str) -> Result<Query> {
    let json: Json = serde_json::from_str(text)
        .map_err(|error| Error::Query(format!("it is no JSON: {error}")))?;
    let mut object = Object::new("", json, Error::Query)?;
    object.ignore(&["dataSource", "batchSize", "legacy"]);
    let kind = object.text("queryType")?;
    let mut context = match object.optional_object("context")? {
        Some(context) => context,
        None => Object::new("context", Json::Object(serde_json::Map::new()), Error::Query)?,
    };
    let skip_empty = context.flag("skipEmptyBuckets", false)?;
    // As Druid has it: none is no timeout.
    let timeout = context.optional_count("timeout")?.filter(|millis| *millis > 0);
    // It is for those that answer the query; what it says is looked at here, too.
    context.optional_text("queryId")?;
    let mut query = match kind.as_str() {
        "timeseries" => {
            let descending = object.flag("descending", false)?;
            let mut query = Query::of(Kind::Timeseries { descending, skip_empty });
            grouped(&mut object, &mut query)?;
            query.limit = count(&mut object, "limit")?;
            query
        }
        "topN" => top_n(&mut object)?,
        "groupBy" => group_by(&mut object)?,
        "scan" => scan(&mut object)?,
        "select" => select(&mut object)?,
        "search" => search(&mut object)?,
        "timeBoundary" => {
            let (first, last) = match object.optional_text("bound")?.as_deref() {
                None => (true, true),
                Some("minTime") => (true, false),
                Some("maxTime") => (false, true),
                Some(other) => {
                    let why = format!("is `{other}`: say minTime or maxTime");
                    return Err(object.refused("bound", &why));
                }
            };
            Query::of(Kind::TimeBoundary { first, last })
        }
        "segmentMetadata" => {
            object.ignore(&["merge", "analysisTypes", "toInclude", "lenientAggregatorMerge"]);
            Query::of(Kind::SegmentMetadata)
        }
        other => {
            let why = format!(
                "is `{other}`: say timeseries, topN, groupBy, scan, search, timeBoundary or \
                 segmentMetadata"
            );
            return Err(object.refused("queryType", &why));
        }
    };
    if let Some(intervals) = object.take("intervals") {
        query.intervals = self::intervals(&object, intervals)?;
    }
    if let Some(json) = object.take("filter") {
        query.filter = Some(filter::from_json("filter", json, Error::Query)?);
    }
    for column in object.objects("virtualColumns")? {
        query.virtual_columns.push(virtual_column(column)?);
    }
    query.timeout = timeout.map(Duration::from_millis);
    object.end()?;
    Ok(query)
}

fn virtual_column(mut object: Object) -> Result<VirtualColumn> {
    match object.text("type")?.as_str() {
        "expression" => {}
        other => {
            return Err(object.refused("type", &format!("is `{other}`: only expression is known")));
        }
    }
    let kind = match object.optional_text("outputType")?.as_deref() {
        Some("STRING") => DimensionKind::Text,
        Some("LONG") => DimensionKind::Long,
        // As Druid has it, whose floats are doubles here.
        None | Some("FLOAT" | "DOUBLE") => DimensionKind::Double,
        Some(other) => {
            let why = format!("is `{other}`: say STRING, LONG or DOUBLE");
            return Err(object.refused("outputType", &why));
        }
    };
    let name = object.text("name")?;
    let text = object.text("expression")?;
    let expression = object.placed("expression", Expression::parse(&text))?;
    object.end()?;
    Ok(VirtualColumn { name, expression, kind })
}

fn intervals(object: &Object, json: Json) -> Result<Vec<Interval>> {
    let list = match json {
        Json::Array(list) => list,
        Json::Object(mut fields) => match fields.remove("intervals") {
            Some(Json::Array(list)) => list,
            _ => return Err(object.refused("intervals", "has no list `intervals`")),
        },
        one => vec![one],
    };
    let mut found = Vec::with_capacity(list.len());
    for json in list {
        let Json::String(text) = json else {
            return Err(object.refused("intervals", "has something that is no text"));
        };
        found.push(object.placed("intervals", Interval::parse(&text))?);
    }
    Ok(Interval::joined(&found))
}

fn count(object: &mut Object, name: &str) -> Result<Option<usize>> {
    let count = object.optional_count(name)?;
    Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
}

/// What all queries with figures have.
fn grouped(object: &mut Object, query: &mut Query) -> Result<()> {
    let granularity = object.placed_query(granularity_of_json)?;
    if let Some(granularity) = granularity {
        query.granularity = granularity;
    }
    for aggregation in object.objects("aggregations")? {
        query.aggregations.push(self::aggregation(aggregation, 0)?);
    }
    for post in object.objects("postAggregations")? {
        post_aggregation(post, query)?;
    }
    Ok(())
}

impl Object {
    fn placed_query(
        &mut self,
        read: fn(&mut Object, &str) -> Result<Option<crate::Granularity>>,
    ) -> Result<Option<crate::Granularity>> {
        read(self, "granularity").map_err(|error| match error {
            Error::Schema(why) => Error::Query(why),
            other => other,
        })
    }
}

fn aggregation(mut object: Object, depth: usize) -> Result<Aggregation> {
    let kind = object.text("type")?;
    if kind == "filtered" {
        if depth > 0 {
            return Err(
                object.refused("type", "is `filtered` inside of `filtered`: join the filters")
            );
        }
        let at = object.at("filter");
        let json = object.take("filter").ok_or_else(|| object.refused("filter", "is missing"))?;
        let filter = filter::from_json(&at, json, Error::Query)?;
        let inner = aggregation(object.object("aggregator")?, depth + 1)?;
        let name = object.optional_text("name")?.unwrap_or_else(|| inner.name.clone());
        object.end()?;
        return Ok(Aggregation { name, filter: Some(filter), ..inner });
    }
    let kind = match kind.as_str() {
        "count" => AggregationKind::Count,
        "longSum" => AggregationKind::Sum(Number::Long),
        "doubleSum" | "floatSum" => AggregationKind::Sum(Number::Double),
        "longMin" => AggregationKind::Min(Number::Long),
        "doubleMin" | "floatMin" => AggregationKind::Min(Number::Double),
        "longMax" => AggregationKind::Max(Number::Long),
        "doubleMax" | "floatMax" => AggregationKind::Max(Number::Double),
        "longFirst" => AggregationKind::First(Number::Long),
        "doubleFirst" | "floatFirst" => AggregationKind::First(Number::Double),
        "longLast" => AggregationKind::Last(Number::Long),
        "doubleLast" | "floatLast" => AggregationKind::Last(Number::Double),
        "distinct" | "hyperUnique" => {
            let precision = object.optional_count("precision")?.unwrap_or(PRECISION.into());
            AggregationKind::Distinct { precision: u8::try_from(precision).unwrap_or(u8::MAX) }
        }
        "quantile" => {
            let share = object.optional_double("fraction")?;
            let share = share.ok_or_else(|| object.refused("fraction", "is missing"))?;
            let accuracy = object.optional_double("accuracy")?.unwrap_or(ACCURACY);
            AggregationKind::Quantile { share, accuracy }
        }
        "variance" => AggregationKind::Variance { root: false },
        "stddev" => AggregationKind::Variance { root: true },
        other => match datasketch(&mut object, other)? {
            Some(sketch) => sketch_aggregation(&mut object, sketch)?,
            None => {
                let why = format!(
                    "is `{other}`: say count, longSum, longMin, longMax, longFirst, longLast, the same \
                     with double, distinct, quantile, variance, stddev, HLLSketchBuild, HLLSketchMerge, thetaSketch, \
                     KllDoublesSketch, KllDoublesSketchMerge or filtered"
                );
                return Err(object.refused("type", &why));
            }
        },
    };
    let name = object.text("name")?;
    let field = match kind {
        AggregationKind::Count => None,
        _ => Some(object.text("fieldName")?),
    };
    object.end()?;
    Ok(Aggregation { name, field, kind, filter: None })
}

/// An aggregation that is a sketch: what Druid makes of it at the end, unless it is told to leave it.
fn sketch_aggregation(object: &mut Object, sketch: Datasketch) -> Result<AggregationKind> {
    let is_final = object.flag("shouldFinalize", true)?;
    let figure = |at_end: SketchFigure| if is_final { at_end } else { SketchFigure::Bytes };
    Ok(match sketch {
        Datasketch::Hll { lg_k, texts, .. } => {
            let estimate = estimate(object)?;
            AggregationKind::Hll { lg_k, texts, figure: figure(estimate) }
        }
        Datasketch::Theta { lg_k, .. } => {
            AggregationKind::Theta { lg_k, figure: figure(SketchFigure::Estimate) }
        }
        Datasketch::Kll { k, .. } => {
            AggregationKind::Kll { k, figure: figure(SketchFigure::Count) }
        }
    })
}

fn estimate(object: &mut Object) -> Result<SketchFigure> {
    Ok(match object.flag("round", false)? {
        true => SketchFigure::Rounded,
        false => SketchFigure::Estimate,
    })
}

/// Adds a figure of figures to a query whose aggregations were read.
fn post_aggregation(mut object: Object, query: &mut Query) -> Result<()> {
    let name = object.text("name")?;
    let kind = object.text("type")?;
    let (place, text) = match kind.as_str() {
        "expression" => ("expression", object.text("expression")?),
        "arithmetic" => ("fields", arithmetic(&mut object, 0)?),
        "HLLSketchEstimate" => {
            let figure = estimate(&mut object)?;
            return another_figure(object, query, name, figure);
        }
        "KllDoublesSketchToQuantile" => {
            let share = object.optional_double("fraction")?;
            let share = share.ok_or_else(|| object.refused("fraction", "is missing"))?;
            return another_figure(object, query, name, SketchFigure::Quantile { share });
        }
        "thetaSketchEstimate" => {
            let set = theta_set(object.object("field")?, 0)?;
            object.end()?;
            query.sets.push((name, set, SketchFigure::Estimate));
            return Ok(());
        }
        "thetaSketchSetOp" => {
            let set = theta_set_of(&mut object, 0)?;
            object.end()?;
            query.sets.push((name, set, SketchFigure::Bytes));
            return Ok(());
        }
        other => {
            let why = format!(
                "is `{other}`: say expression, arithmetic, HLLSketchEstimate, thetaSketchEstimate, thetaSketchSetOp \
                 or KllDoublesSketchToQuantile"
            );
            return Err(object.refused("type", &why));
        }
    };
    let expression = object.placed(place, Expression::parse(&text))?;
    object.end()?;
    query.post_aggregations.push((name, expression));
    Ok(())
}

/// Another figure of the sketch of an aggregation, whose name `field` has.
fn another_figure(
    mut object: Object,
    query: &mut Query,
    name: String,
    figure: SketchFigure,
) -> Result<()> {
    let mut field = object.object("field")?;
    let kind = field.text("type")?;
    let of = field_access(field, &kind)?;
    let found = query.aggregations.iter().find(|known| known.name == of);
    let kind = match (found.map(|known| known.kind), figure) {
        (
            Some(AggregationKind::Hll { lg_k, texts, .. }),
            SketchFigure::Estimate | SketchFigure::Rounded,
        ) => AggregationKind::Hll { lg_k, texts, figure },
        (Some(AggregationKind::Kll { k, .. }), SketchFigure::Quantile { .. }) => {
            AggregationKind::Kll { k, figure }
        }
        _ => {
            let why = format!("is `{of}`: no aggregation of that name has such a sketch");
            return Err(object.refused("field", &why));
        }
    };
    object.end()?;
    let found = found.expect("it has a kind").clone();
    query.aggregations.push(Aggregation { name, kind, ..found });
    Ok(())
}

/// The name that a `fieldAccess` has.
fn field_access(mut field: Object, kind: &str) -> Result<String> {
    if !matches!(kind, "fieldAccess" | "finalizingFieldAccess") {
        return Err(field.refused("type", &format!("is `{kind}`: say fieldAccess")));
    }
    let name = field.text("fieldName")?;
    field.ignore(&["name"]);
    field.end()?;
    Ok(name)
}

fn theta_set(mut field: Object, depth: usize) -> Result<ThetaSet> {
    let kind = field.text("type")?;
    if kind != "thetaSketchSetOp" {
        return field_access(field, &kind).map(ThetaSet::Of);
    }
    let set = theta_set_of(&mut field, depth)?;
    field.ignore(&["name"]);
    field.end()?;
    Ok(set)
}

/// The set that a `thetaSketchSetOp` makes.
fn theta_set_of(object: &mut Object, depth: usize) -> Result<ThetaSet> {
    if depth > 16 {
        return Err(object.refused("fields", "nest deeper than 16 levels"));
    }
    // The size is the largest of the sketches.
    object.ignore(&["size"]);
    let sets = object.objects("fields")?.into_iter().map(|field| theta_set(field, depth + 1));
    let mut sets: Vec<ThetaSet> = sets.collect::<Result<_>>()?;
    if sets.len() < 2 {
        return Err(object.refused("fields", "are less than two"));
    }
    Ok(match object.text("func")?.as_str() {
        "UNION" => ThetaSet::Union(sets),
        "INTERSECT" => ThetaSet::Intersection(sets),
        "NOT" => {
            let first = sets.remove(0);
            ThetaSet::Difference(Box::new(first), sets)
        }
        other => {
            let why = format!("is `{other}`: say UNION, INTERSECT or NOT");
            return Err(object.refused("func", &why));
        }
    })
}

/// The expression of an arithmetic post-aggregation. Its divisions are those of doubles.
fn arithmetic(object: &mut Object, depth: usize) -> Result<String> {
    if depth > 16 {
        return Err(object.refused("fields", "nest deeper than 16 levels"));
    }
    let operator = object.text("fn")?;
    if !matches!(operator.as_str(), "+" | "-" | "*" | "/" | "quotient") {
        let why = format!("is `{operator}`: say +, -, *, / or quotient");
        return Err(object.refused("fn", &why));
    }
    let operator = if operator == "quotient" { "/" } else { &operator };
    let mut parts = Vec::new();
    for mut field in object.objects("fields")? {
        let part = match field.text("type")?.as_str() {
            "fieldAccess" | "finalizingFieldAccess" => {
                let name = field.text("fieldName")?;
                format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
            }
            "constant" => match field.take("value") {
                Some(Json::Number(number)) => number.to_string(),
                _ => return Err(field.refused("value", "is no number")),
            },
            "arithmetic" => arithmetic(&mut field, depth + 1)?,
            other => {
                let why = format!("is `{other}`: say fieldAccess, constant or arithmetic");
                return Err(field.refused("type", &why));
            }
        };
        field.ignore(&["name"]);
        field.end()?;
        parts.push(if operator == "/" { format!("cast({part}, 'DOUBLE')") } else { part });
    }
    if parts.is_empty() {
        return Err(object.refused("fields", "is empty"));
    }
    Ok(format!("({})", parts.join(&format!(" {operator} "))))
}

fn dimension(path: &str, json: Json) -> Result<DimensionSpec> {
    if let Json::String(name) = json {
        return Ok(name.as_str().into());
    }
    let mut object = Object::new(path, json, Error::Query)?;
    if let Some(kind) = object.optional_text("type")?
        && kind != "default"
    {
        return Err(object.refused("type", &format!("is `{kind}`: only default is known")));
    }
    let dimension = object.text("dimension")?;
    let output = object.optional_text("outputName")?.unwrap_or_else(|| dimension.clone());
    object.ignore(&["outputType"]);
    object.end()?;
    Ok(DimensionSpec { dimension, output })
}

fn top_n(object: &mut Object) -> Result<Query> {
    let json = object.take("dimension").ok_or_else(|| object.refused("dimension", "is missing"))?;
    let dimension = dimension("dimension", json)?;
    let metric = match object.take("metric") {
        Some(Json::String(name)) => TopNMetric::Greatest(name),
        Some(json) => {
            let mut metric = Object::new("metric", json, Error::Query)?;
            let found = match metric.text("type")?.as_str() {
                "numeric" => TopNMetric::Greatest(metric.text("metric")?),
                "inverted" => TopNMetric::Least(metric.text("metric")?),
                "dimension" => {
                    metric.ignore(&["ordering", "previousStop"]);
                    TopNMetric::Dimension
                }
                other => {
                    let why = format!("is `{other}`: say numeric, inverted or dimension");
                    return Err(metric.refused("type", &why));
                }
            };
            metric.end()?;
            found
        }
        None => return Err(object.refused("metric", "is missing")),
    };
    let threshold = count(object, "threshold")?;
    let threshold = threshold.ok_or_else(|| object.refused("threshold", "is missing"))?;
    let mut query = Query::top_n(dimension, metric, threshold);
    grouped(object, &mut query)?;
    Ok(query)
}

fn group_by(object: &mut Object) -> Result<Query> {
    let mut dimensions = Vec::new();
    for (at, json) in object.list("dimensions")?.into_iter().enumerate() {
        dimensions.push(dimension(&format!("dimensions[{at}]"), json)?);
    }
    let mut subtotals = Vec::new();
    for json in object.optional_list("subtotalsSpec")?.unwrap_or_default() {
        let names: Vec<String> = serde_json::from_value(json)
            .map_err(|_| object.refused("subtotalsSpec", "is no list of lists of names"))?;
        subtotals.push(names);
    }
    let mut query = Query::of(Kind::GroupBy { subtotals });
    query.dimensions = dimensions;
    grouped(object, &mut query)?;
    if let Some(having) = object.take("having") {
        query.having = Some(filter::from_json("having", having, Error::Query)?);
    }
    if let Some(mut spec) = object.optional_object("limitSpec")? {
        if let Some(kind) = spec.optional_text("type")?
            && kind != "default"
        {
            return Err(spec.refused("type", &format!("is `{kind}`: only default is known")));
        }
        query.limit = count(&mut spec, "limit")?;
        query.offset = count(&mut spec, "offset")?.unwrap_or(0);
        let path = spec.at("columns");
        for (at, json) in spec.optional_list("columns")?.unwrap_or_default().into_iter().enumerate()
        {
            query.order.push(order_by(&format!("{path}[{at}]"), json)?);
        }
        spec.end()?;
    }
    Ok(query)
}

fn order_by(path: &str, json: Json) -> Result<OrderBy> {
    if let Json::String(column) = json {
        return Ok(OrderBy { column, descending: false });
    }
    let mut object = Object::new(path, json, Error::Query)?;
    let column = object.text("dimension")?;
    let descending = match object.optional_text("direction")?.as_deref() {
        None | Some("ascending") => false,
        Some("descending") => true,
        Some(other) => {
            let why = format!("is `{other}`: say ascending or descending");
            return Err(object.refused("direction", &why));
        }
    };
    // Values are compared as what they are.
    object.ignore(&["dimensionOrder"]);
    object.end()?;
    Ok(OrderBy { column, descending })
}

fn scan(object: &mut Object) -> Result<Query> {
    let order = match object.optional_text("order")?.as_deref() {
        None | Some("none" | "ascending") => ScanOrder::Ascending,
        Some("descending") => ScanOrder::Descending,
        Some(other) => {
            let why = format!("is `{other}`: say ascending, descending or none");
            return Err(object.refused("order", &why));
        }
    };
    let form = match object.optional_text("resultFormat")?.as_deref() {
        None | Some("list") => ScanForm::List,
        Some("compactedList") => ScanForm::CompactedList,
        Some(other) => {
            let why = format!("is `{other}`: say list or compactedList");
            return Err(object.refused("resultFormat", &why));
        }
    };
    let mut query = Query::of(Kind::Scan { columns: object.texts("columns")?, order, form });
    query.limit = count(object, "limit")?;
    query.offset = count(object, "offset")?.unwrap_or(0);
    Ok(query)
}

/// A scan in pages. Where the next one begins stands in the one before, as `pagingIdentifiers`.
fn select(object: &mut Object) -> Result<Query> {
    let order = match object.flag("descending", false)? {
        true => ScanOrder::Descending,
        false => ScanOrder::Ascending,
    };
    let mut columns = Vec::new();
    for (at, json) in
        object.optional_list("dimensions")?.unwrap_or_default().into_iter().enumerate()
    {
        let DimensionSpec { dimension, output } = dimension(&format!("dimensions[{at}]"), json)?;
        if output != dimension {
            let why = format!("calls `{dimension}` by another name: rename it afterwards");
            return Err(object.refused("dimensions", &why));
        }
        columns.push(dimension);
    }
    columns.extend(object.texts("metrics")?);
    if !columns.is_empty() {
        columns.insert(0, crate::schema::TIME_COLUMN.to_owned());
    }
    if let Some(granularity) = object.placed_query(granularity_of_json)?
        && !granularity.is_all()
    {
        return Err(object.refused("granularity", "is not `all`"));
    }
    let mut paging = object.object("pagingSpec")?;
    let threshold = count(&mut paging, "threshold")?;
    let threshold = threshold.ok_or_else(|| paging.refused("threshold", "is missing"))?;
    let from_next = paging.flag("fromNext", true)?;
    let mut query = Query::of(Kind::Scan { columns, order, form: ScanForm::Select });
    query.limit = Some(threshold);
    if let Some(mut identifiers) = paging.optional_object("pagingIdentifiers")? {
        if let Some(last) = count(&mut identifiers, SEGMENT)? {
            query.offset = last.saturating_add(usize::from(from_next));
        }
        identifiers.end()?;
    }
    paging.end()?;
    Ok(query)
}

fn search(object: &mut Object) -> Result<Query> {
    let dimensions = object.texts("searchDimensions")?;
    let mut spec = object.object("query")?;
    let case_sensitive = match spec.text("type")?.as_str() {
        "insensitive_contains" => false,
        "contains" => spec.flag("caseSensitive", false)?,
        other => {
            let why = format!("is `{other}`: say insensitive_contains or contains");
            return Err(spec.refused("type", &why));
        }
    };
    let text = spec.text("value")?;
    spec.end()?;
    object.ignore(&["granularity", "sort"]);
    let mut query = Query::of(Kind::Search { dimensions, text, case_sensitive });
    query.limit = count(object, "limit")?;
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_milliseconds_and_none_without_any() {
        let query = |context: &str| {
            query(&format!(r#"{{"queryType": "timeBoundary", "context": {context}}}"#))
        };
        for (context, expected) in [
            ("null", None),
            ("{}", None),
            (r#"{"timeout": null}"#, None),
            (r#"{"timeout": 0}"#, None),
            (r#"{"timeout": 1500, "queryId": "a", "priority": 1}"#, Some(1_500)),
        ] {
            let timeout = query(context).expect(context).timeout;
            assert_eq!(timeout, expected.map(Duration::from_millis), "{context}");
        }
        for (context, why) in [
            (r#"{"timeout": -1}"#, "`context.timeout` is -1, not a whole number from 0"),
            (r#"{"timeout": "1"}"#, "`context.timeout` is \"1\", not a whole number from 0"),
            (r#"{"queryId": 7}"#, "`context.queryId` is a number, not a text"),
        ] {
            assert_eq!(query(context).map(|_| ()), Err(Error::Query(why.to_owned())));
        }
    }
}

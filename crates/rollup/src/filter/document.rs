//! Filters, written as Druid's native queries write them.

use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};

use super::Filter;
use crate::time::iso;

impl Filter {
    /// The document that [`from_json`](Self::from_json) reads as this filter.
    pub(crate) fn to_document(&self) -> Json {
        let all = |parts: &[Filter]| parts.iter().map(Filter::to_document).collect::<Vec<_>>();
        match self {
            Filter::True => json!({"type": "true"}),
            Filter::False => json!({"type": "false"}),
            Filter::And(parts) => json!({"type": "and", "fields": all(parts)}),
            Filter::Or(parts) => json!({"type": "or", "fields": all(parts)}),
            Filter::Not(part) => json!({"type": "not", "field": part.to_document()}),
            Filter::In { column, values } => {
                json!({"type": "in", "dimension": column, "values": values})
            }
            Filter::IsNull { column } => json!({"type": "null", "column": column}),
            Filter::Bound { column, lower, lower_strict, upper, upper_strict, numeric } => json!({
                "type": "range", "column": column,
                "lower": lower, "lowerOpen": lower_strict,
                "upper": upper, "upperOpen": upper_strict,
                "matchValueType": if *numeric { "DOUBLE" } else { "STRING" },
            }),
            Filter::Like { column, pattern, escape } => {
                json!({"type": "like", "dimension": column, "pattern": pattern, "escape": escape})
            }
            Filter::Regex { column, pattern } => {
                json!({"type": "regex", "dimension": column, "pattern": pattern})
            }
            Filter::Contains { column, text, case_sensitive } => json!({
                "type": "search", "dimension": column,
                "query": {"type": "contains", "value": text, "caseSensitive": case_sensitive},
            }),
            Filter::Interval { column, intervals } => {
                let time = |time: i64| iso(time, &TimeZone::UTC);
                let intervals: Vec<String> = intervals
                    .iter()
                    .map(|interval| format!("{}/{}", time(interval.start), time(interval.end)))
                    .collect();
                json!({"type": "interval", "dimension": column, "intervals": intervals})
            }
            Filter::Columns(columns) => json!({"type": "columnComparison", "dimensions": columns}),
            Filter::Expression(expression) => {
                json!({"type": "expression", "expression": expression.text()})
            }
        }
    }
}

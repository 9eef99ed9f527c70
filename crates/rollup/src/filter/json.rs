//! Filters as Druid's native queries write them.

use serde_json::Value as Json;

use super::{FILTER_DEPTH_MAX, Filter};
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::json::Object;
use crate::time::interval::Interval;
use crate::value::Value;

/// Reads a filter that lies at `path`.
pub(crate) fn filter(path: &str, json: Json, make: fn(String) -> Error) -> Result<Filter> {
    at_depth(path, json, make, 0)
}

fn at_depth(path: &str, json: Json, make: fn(String) -> Error, depth: usize) -> Result<Filter> {
    if depth > FILTER_DEPTH_MAX {
        return Err(make(format!("`{path}` nests deeper than {FILTER_DEPTH_MAX} levels")));
    }
    let mut object = Object::new(path, json, make)?;
    let kind = object.text("type")?;
    object.ignore(&["filterTuning"]);
    let filter = match kind.as_str() {
        "and" | "or" => {
            let at = object.at("fields");
            let parts = object.list("fields")?.into_iter().enumerate();
            let parts = parts
                .map(|(number, part)| at_depth(&format!("{at}[{number}]"), part, make, depth + 1))
                .collect::<Result<_>>()?;
            if kind == "and" { Filter::And(parts) } else { Filter::Or(parts) }
        }
        "not" => {
            let at = object.at("field");
            let part = object.take("field").ok_or_else(|| object.refused("field", "is missing"))?;
            Filter::not(at_depth(&at, part, make, depth + 1)?)
        }
        "true" => Filter::True,
        "false" => Filter::False,
        "selector" => {
            Filter::In { column: object.text("dimension")?, values: vec![object.value("value")?] }
        }
        "equals" => {
            let column = object.text("column")?;
            object.ignore(&["matchValueType"]);
            let value = object.value("matchValue")?;
            if value.is_null() {
                return Err(object.refused("matchValue", "is null: ask by the filter `null`"));
            }
            Filter::In { column, values: vec![value] }
        }
        "in" => Filter::In { column: column(&mut object)?, values: values(&mut object, "values")? },
        "null" | "isnull" => Filter::IsNull { column: column(&mut object)? },
        "bound" => {
            let column = object.text("dimension")?;
            let (lower, upper) = (bound(&mut object, "lower")?, bound(&mut object, "upper")?);
            let lower_strict = object.flag("lowerStrict", false)?;
            let upper_strict = object.flag("upperStrict", false)?;
            let numeric = match object.optional_text("ordering")?.as_deref() {
                None | Some("lexicographic") => false,
                Some("numeric") => true,
                Some(other) => {
                    let why = format!("is `{other}`: say lexicographic or numeric");
                    return Err(object.refused("ordering", &why));
                }
            };
            Filter::Bound { column, lower, lower_strict, upper, upper_strict, numeric }
        }
        "range" => {
            let column = object.text("column")?;
            let (lower, upper) = (bound(&mut object, "lower")?, bound(&mut object, "upper")?);
            let lower_strict = object.flag("lowerOpen", false)?;
            let upper_strict = object.flag("upperOpen", false)?;
            let numeric = match object.optional_text("matchValueType")?.as_deref() {
                Some("STRING") => false,
                Some("LONG" | "DOUBLE" | "FLOAT") => true,
                Some(other) => {
                    let why = format!("is `{other}`: say STRING, LONG or DOUBLE");
                    return Err(object.refused("matchValueType", &why));
                }
                None => [&lower, &upper]
                    .iter()
                    .any(|bound| matches!(bound, Some(Value::Long(_) | Value::Double(_)))),
            };
            Filter::Bound { column, lower, lower_strict, upper, upper_strict, numeric }
        }
        "like" => Filter::Like {
            column: object.text("dimension")?,
            pattern: object.text("pattern")?,
            escape: match object.optional_text("escape")? {
                None => None,
                Some(escape) if escape.chars().count() == 1 => escape.chars().next(),
                Some(_) => return Err(object.refused("escape", "is not one sign")),
            },
        },
        "regex" => {
            Filter::Regex { column: object.text("dimension")?, pattern: object.text("pattern")? }
        }
        "search" => {
            let column = object.text("dimension")?;
            let mut query = object.object("query")?;
            let case_sensitive = match query.text("type")?.as_str() {
                "contains" => query.flag("caseSensitive", false)?,
                "insensitive_contains" => false,
                other => {
                    let why = format!("is `{other}`: say contains or insensitive_contains");
                    return Err(query.refused("type", &why));
                }
            };
            let text = query.text("value")?;
            query.end()?;
            Filter::Contains { column, text, case_sensitive }
        }
        "interval" => {
            let column = object.text("dimension")?;
            let intervals = object.texts("intervals")?;
            let intervals = intervals.iter().map(|text| Interval::parse(text)).collect();
            Filter::Interval { column, intervals: object.placed("intervals", intervals)? }
        }
        "columnComparison" => Filter::Columns(object.texts("dimensions")?),
        "expression" => {
            let text = object.text("expression")?;
            Filter::Expression(object.placed("expression", Expression::parse(&text))?)
        }
        // What `having` has for figures.
        "equalTo" => {
            let (column, value) = (object.text("aggregation")?, object.value("value")?);
            Filter::In { column, values: vec![value] }
        }
        "greaterThan" | "lessThan" => {
            let (column, value) = (object.text("aggregation")?, Some(object.value("value")?));
            let (lower, upper) = if kind == "greaterThan" { (value, None) } else { (None, value) };
            Filter::Bound {
                column,
                lower,
                lower_strict: true,
                upper,
                upper_strict: true,
                numeric: true,
            }
        }
        "dimSelector" => {
            Filter::In { column: object.text("dimension")?, values: vec![object.value("value")?] }
        }
        "filter" => {
            let at = object.at("filter");
            let part = object.take("filter");
            let part = part.ok_or_else(|| object.refused("filter", "is missing"))?;
            at_depth(&at, part, make, depth + 1)?
        }
        "always" => Filter::True,
        "never" => Filter::False,
        other => {
            let why = format!(
                "is `{other}`: say and, or, not, selector, equals, in, null, bound, range, like, \
                 regex, search, interval, columnComparison, expression, true or false"
            );
            return Err(object.refused("type", &why));
        }
    };
    object.end()?;
    Ok(filter)
}

/// Druid's filters say `dimension` or `column`.
fn column(object: &mut Object) -> Result<String> {
    let name = if object.has("column") { "column" } else { "dimension" };
    object.text(name)
}

fn bound(object: &mut Object, name: &str) -> Result<Option<Value<'static>>> {
    Ok(Some(object.value(name)?).filter(|bound| !bound.is_null()))
}

fn values(object: &mut Object, name: &str) -> Result<Vec<Value<'static>>> {
    let list = object.list(name)?;
    list.into_iter().map(|json| object.value_of(name, json)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(json: &str, value: Value<'static>) -> bool {
        let filter = Filter::from_json(json).unwrap_or_else(|error| panic!("{json}: {error}"));
        let row = |name: &str| if name == "x" { value.clone() } else { Value::Null };
        filter.compile().expect("patterns can be read").matches(&row)
    }

    #[test]
    fn each_kind_takes_what_it_says() {
        let list = Value::List(vec!["a".into(), "b".into()]);
        let cases: [(&str, &[Value<'static>], &[Value<'static>]); 13] = [
            (
                r#"{"type":"selector","dimension":"x","value":"5"}"#,
                &["5".into(), 5.into(), Value::Double(5.0)],
                &["5.0".into(), Value::Null, 6.into()],
            ),
            (
                r#"{"type":"selector","dimension":"x","value":null}"#,
                &[Value::Null, Value::List(vec![])],
                &["".into(), "null".into()],
            ),
            (
                r#"{"type":"in","dimension":"x","values":["b",null,7]}"#,
                &["b".into(), Value::Null, 7.into(), "7".into(), list.clone()],
                &["c".into(), 8.into()],
            ),
            (
                r#"{"type":"bound","dimension":"x","lower":"9","upper":"10","ordering":"numeric"}"#,
                &[9.into(), "9.5".into(), 10.into()],
                &["x".into(), 11.into(), Value::Null],
            ),
            (
                r#"{"type":"bound","dimension":"x","lower":"a","lowerStrict":true,"upper":"c","upperStrict":true}"#,
                &["ab".into(), "b".into(), list.clone()],
                &["a".into(), "c".into(), Value::Null],
            ),
            (
                r#"{"type":"range","column":"x","matchValueType":"LONG","lower":1,"upper":3,"upperOpen":true}"#,
                &[1.into(), Value::Double(2.5)],
                &[3.into()],
            ),
            (
                r#"{"type":"like","dimension":"x","pattern":"a\\%_%","escape":"\\"}"#,
                &["a%b".into(), "a%bcd\n".into()],
                &["a%".into(), "ab%".into()],
            ),
            (
                r#"{"type":"regex","dimension":"x","pattern":"b+$"}"#,
                &["abb".into()],
                &["ba".into()],
            ),
            (
                r#"{"type":"search","dimension":"x","query":{"type":"insensitive_contains","value":"OAK"}}"#,
                &["soak".into()],
                &["elm".into()],
            ),
            (
                r#"{"type":"not","field":{"type":"selector","dimension":"x","value":"a"}}"#,
                &["b".into(), "".into()],
                &["a".into(), Value::Null, list],
            ),
            (
                r#"{"type":"not","field":{"type":"not","field":{"type":"selector","dimension":"x","value":"a"}}}"#,
                &["a".into()],
                &["b".into(), Value::Null],
            ),
            (
                r#"{"type":"interval","dimension":"x","intervals":["1970-01-01/PT1S"]}"#,
                &[0.into(), 999.into()],
                &[1000.into(), Value::Null],
            ),
            (
                r#"{"type":"expression","expression":"x * 2 > 5"}"#,
                &[3.into()],
                &[2.into(), Value::Null, "x".into()],
            ),
        ];
        for (json, taken, left) in cases {
            for value in taken {
                assert!(takes(json, value.clone()), "{json} takes {value:?}");
            }
            for value in left {
                assert!(!takes(json, value.clone()), "{json} leaves {value:?}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (json, named) in [
            (r#"{"type":"selektor"}"#, "`filter.type` is `selektor`"),
            (r#"{"type":"selector","value":"5"}"#, "`filter.dimension` is missing"),
            (r#"{"type":"null","column":"x","colour":1}"#, "`filter.colour` is not known here"),
            (
                r#"{"type":"and","fields":[{"type":"in","dimension":"x","values":5}]}"#,
                "`filter.fields[0].values` is a number, not a list",
            ),
            (r#"{"type":"expression","expression":"1 +"}"#, "`filter.expression` cannot be"),
            (
                r#"{"type":"selector","dimension":"x","value":"5","extractionFn":{}}"#,
                "extractionFn",
            ),
            (r#"[]"#, "`filter` is a list, not an object"),
        ] {
            let error = Filter::from_json(json).expect_err(json).to_string();
            assert!(error.contains(named), "{error}");
        }
        let deep = format!(
            "{}{{\"type\":\"true\"}}{}",
            r#"{"type":"not","field":"#.repeat(FILTER_DEPTH_MAX + 1),
            "}".repeat(FILTER_DEPTH_MAX + 1)
        );
        assert!(Filter::from_json(&deep).is_err());
        let unreadable = Filter::from_json(r#"{"type":"regex","dimension":"x","pattern":"("}"#);
        assert!(unreadable.expect("JSON").compile().is_err());
    }
}

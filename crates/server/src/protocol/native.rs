//! The table that a native query of Druid is about: its `dataSource`.

use serde_json::Value as Json;

/// The name of the table, if the query names one. What else is in the query is not looked at.
pub(crate) fn data_source(query: &[u8]) -> Result<Option<String>, String> {
    let json: Json =
        serde_json::from_slice(query).map_err(|error| format!("the query is no JSON: {error}"))?;
    match json.get("dataSource") {
        None => Ok(None),
        Some(Json::String(name)) => Ok(Some(name.clone())),
        Some(Json::Object(source)) => match (source.get("type"), source.get("name")) {
            (Some(Json::String(kind)), Some(Json::String(name))) if kind == "table" => {
                Ok(Some(name.clone()))
            }
            _ => Err(OTHER.to_owned()),
        },
        Some(_) => Err(OTHER.to_owned()),
    }
}

const OTHER: &str = "the query's dataSource is no table: name one; unions, joins, lookups and \
                     queries in its place are not known";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_in_two_ways() {
        for (query, expected) in [
            (r#"{"dataSource": "edits"}"#, Some("edits")),
            (r#"{"dataSource": {"type": "table", "name": "edits"}}"#, Some("edits")),
            (r#"{"queryType": "scan"}"#, None),
        ] {
            assert_eq!(data_source(query.as_bytes()), Ok(expected.map(str::to_owned)), "{query}");
        }
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for query in [
            r#"{"dataSource": 7}"#,
            r#"{"dataSource": null}"#,
            r#"{"dataSource": ["a", "b"]}"#,
            r#"{"dataSource": {"type": "union", "dataSources": ["a", "b"]}}"#,
            r#"{"dataSource": {"type": "table"}}"#,
        ] {
            assert_eq!(data_source(query.as_bytes()), Err(OTHER.to_owned()), "{query}");
        }
        for query in ["", "{", "\u{7f}", "{}{}"] {
            let refused = data_source(query.as_bytes()).expect_err(query);
            assert!(refused.starts_with("the query is no JSON: "), "{refused}");
        }
        let deep = "[".repeat(100_000);
        assert!(data_source(deep.as_bytes()).is_err());
    }
}

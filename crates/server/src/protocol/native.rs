//! What is read of a native query of Druid before it is one of a table: its `dataSource` and its `queryId`.

use serde_json::Value as Json;

/// The query as JSON.
pub(crate) fn json(query: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(query).map_err(|error| format!("the query is no JSON: {error}"))
}

/// The name that the client has given the query, if it is a text.
pub(crate) fn query_id(query: &Json) -> Option<&str> {
    query.get("context")?.get("queryId")?.as_str()
}

/// The name of the table, if the query names one. What else is in the query is not looked at.
pub(crate) fn data_source(query: &Json) -> Result<Option<String>, String> {
    match query.get("dataSource") {
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
            let json = json(query.as_bytes()).expect(query);
            assert_eq!(data_source(&json), Ok(expected.map(str::to_owned)), "{query}");
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
            let json = json(query.as_bytes()).expect(query);
            assert_eq!(data_source(&json), Err(OTHER.to_owned()), "{query}");
        }
        for query in ["", "{", "\u{7f}", "{}{}"] {
            let refused = json(query.as_bytes()).expect_err(query);
            assert!(refused.starts_with("the query is no JSON: "), "{refused}");
        }
        let deep = "[".repeat(100_000);
        assert!(json(deep.as_bytes()).is_err());
    }
}

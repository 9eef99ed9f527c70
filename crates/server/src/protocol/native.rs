//! What is read of a native query of Druid before it is one of a table: its `dataSource`, and of its `context`
//! the `queryId` and the `timeout`.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value as Json;

/// A query of which nothing else has been read. What is none by more than its outline is refused when it is
/// answered.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Outline {
    data_source: Json,
    context: Json,
}

impl Outline {
    /// Reads a query.
    pub(crate) fn read(query: &[u8]) -> Result<Outline, String> {
        match serde_json::from_slice(query) {
            Ok(outline) => Ok(outline),
            // It is JSON so far, and no query: what reads it whole says why.
            Err(error) if error.is_data() => Ok(Outline::default()),
            Err(error) => Err(format!("the query is no JSON: {error}")),
        }
    }

    /// The name that the client has given the query, if it is a text.
    pub(crate) fn query_id(&self) -> Option<&str> {
        self.context.get("queryId")?.as_str()
    }

    /// How long the query may take; none with 0, as Druid has it.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        match self.context.get("timeout")?.as_u64()? {
            0 => None,
            millis => Some(Duration::from_millis(millis)),
        }
    }

    /// The name of the table, if the query names one.
    pub(crate) fn data_source(&self) -> Result<Option<&str>, String> {
        match &self.data_source {
            Json::Null => Ok(None),
            Json::String(name) => Ok(Some(name)),
            Json::Object(source) => match (source.get("type"), source.get("name")) {
                (Some(Json::String(kind)), Some(Json::String(name))) if kind == "table" => {
                    Ok(Some(name))
                }
                _ => Err(OTHER.to_owned()),
            },
            _ => Err(OTHER.to_owned()),
        }
    }
}

const OTHER: &str = "the query's dataSource is no table: name one; unions, joins, lookups and \
                     queries in its place are not known";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Outline {
        Outline::read(query.as_bytes()).expect(query)
    }

    #[test]
    fn tables_are_named_in_two_ways() {
        for (query, expected) in [
            (r#"{"dataSource": "edits"}"#, Some("edits")),
            (r#"{"dataSource": {"type": "table", "name": "edits"}}"#, Some("edits")),
            (r#"{"queryType": "scan"}"#, None),
            (r#"{"dataSource": null}"#, None),
            ("[]", None),
        ] {
            assert_eq!(read(query).data_source(), Ok(expected), "{query}");
        }
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for query in [
            r#"{"dataSource": 7}"#,
            r#"{"dataSource": ["a", "b"]}"#,
            r#"{"dataSource": {"type": "union", "dataSources": ["a", "b"]}}"#,
            r#"{"dataSource": {"type": "table"}}"#,
        ] {
            assert_eq!(read(query).data_source(), Err(OTHER.to_owned()), "{query}");
        }
        for query in ["", "{", "\u{7f}", "{}{}"] {
            let refused = Outline::read(query.as_bytes()).expect_err(query);
            assert!(refused.starts_with("the query is no JSON: "), "{refused}");
        }
        // As deep as it likes where it is not read.
        let deep = |field: &str| format!("{{\"{field}\": {}", "[".repeat(100_000));
        for field in ["dataSource", "context", "filter"] {
            assert!(Outline::read(deep(field).as_bytes()).is_err());
        }
    }

    #[test]
    fn contexts_name_queries_and_say_how_long_they_may_take() {
        for (context, name, millis) in [
            (r#"{"queryId": "a", "timeout": 1500}"#, Some("a"), Some(1_500)),
            (r#"{"queryId": 7, "timeout": -1}"#, None, None),
            (r#"{"timeout": 0}"#, None, None),
            ("7", None, None),
        ] {
            let outline = read(&format!("{{\"filter\": {{}}, \"context\": {context}}}"));
            let millis = millis.map(Duration::from_millis);
            assert_eq!((outline.query_id(), outline.timeout()), (name, millis), "{context}");
        }
    }
}

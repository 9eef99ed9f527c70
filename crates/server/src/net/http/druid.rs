//! Requests about roll-ups, as commands.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::{Value as Json, json};

use super::body::Room;
use super::failure::Failure;
use super::visit::Visit;
use super::{Door, replies, text};
use crate::clients::Origin;
use crate::protocol::native;

/// Where a client finds the name again that it gave a query.
const QUERY_ID: HeaderName = HeaderName::from_static("x-druid-query-id");

type Answer = Result<Response<Full<Bytes>>, Failure>;

/// What a path is about.
#[derive(Debug, PartialEq, Eq)]
enum Route<'p> {
    Query,
    Sql,
    Sources,
    Source(&'p str),
    Ingest(&'p str),
}

impl Route<'_> {
    /// The path's route; a slash at its end is none.
    fn of(path: &str) -> Option<Route<'_>> {
        match path.strip_suffix('/').unwrap_or(path) {
            "/druid/v2" => Some(Route::Query),
            "/druid/v2/sql" => Some(Route::Sql),
            "/druid/v2/datasources" => Some(Route::Sources),
            path => match path.strip_prefix("/druid/v2/datasources/") {
                Some(name) => Some(Route::Source(name)),
                None => path.strip_prefix("/ingest/").map(Route::Ingest),
            },
        }
    }
}

/// Whether a path is one about roll-ups, or would be.
pub(super) fn is_about(path: &str) -> bool {
    ["/druid", "/ingest"].iter().any(|begin| {
        path.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

pub(super) async fn answer(
    door: &Door,
    request: Request<Incoming>,
    origin: Origin,
) -> Response<Full<Bytes>> {
    answer_route(door, request, origin).await.unwrap_or_else(Failure::into_response)
}

async fn answer_route(door: &Door, request: Request<Incoming>, origin: Origin) -> Answer {
    let (head, body) = request.into_parts();
    let Some(route) = Route::of(head.uri.path()) else {
        let why = "there are POST /druid/v2, GET /druid/v2/datasources, \
                   GET /druid/v2/datasources/NAME and POST /ingest/NAME";
        return Err(Failure::new(StatusCode::NOT_FOUND, why));
    };
    let (method, allowed) = match route {
        Route::Query | Route::Sql | Route::Ingest(_) => (Method::POST, "POST"),
        Route::Sources | Route::Source(_) => (Method::GET, "GET"),
    };
    if head.method != method {
        return Err(Failure::method(allowed));
    }
    // Before the body is read: a client that may say nothing sends nothing.
    let visit = Visit::begin(door, origin, &head.headers)?;
    match route {
        Route::Query => {
            let is_pretty = head.uri.query().is_some_and(|query| {
                query.split('&').any(|part| part.split('=').next() == Some("pretty"))
            });
            expect_json(&head.headers)?;
            let form = Form::of(&head.headers, is_pretty);
            let (query, room) = door.bodies.read(body).await?;
            ask(visit, &query, room, form).await
        }
        Route::Sql => {
            let why = "SQL is not known here: send a native query to /druid/v2";
            Err(Failure::new(StatusCode::NOT_IMPLEMENTED, why))
        }
        Route::Sources => {
            let reply = visit.call(&[b"SW.LIST", b"ENGINE", b"ROLLUP"], Room::default()).await?;
            as_json(&reply)
        }
        Route::Source(name) => {
            let reply = visit.call(&[b"SW.INFO", name.as_bytes()], Room::default()).await?;
            columns(&reply)
        }
        Route::Ingest(name) => {
            let format = format(&head.headers)?;
            let (rows, room) = door.bodies.read(body).await?;
            let args = [&b"SW.INGEST"[..], name.as_bytes(), b"FORMAT", format, &rows];
            as_json(&visit.call(&args, room).await?)
        }
    }
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    /// With line ends and indents.
    Pretty,
    Csv,
}

impl Form {
    fn of(headers: &HeaderMap, is_pretty: bool) -> Form {
        match is_pretty {
            _ if header(headers, &ACCEPT).contains("text/csv") => Form::Csv,
            true => Form::Pretty,
            false => Form::Json,
        }
    }
}

/// A header in small letters; empty without it.
fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_ascii_lowercase()
}

/// The type of the body, without its parameters.
fn content_type(headers: &HeaderMap) -> String {
    let value = header(headers, &CONTENT_TYPE);
    value.split(';').next().unwrap_or_default().trim().to_owned()
}

/// Pages in a browser cannot send this type to a server that is not theirs without asking it first.
fn expect_json(headers: &HeaderMap) -> Result<(), Failure> {
    match content_type(headers).as_str() {
        "application/json" => Ok(()),
        other => {
            let why = format!("Content-Type is `{other}`: a query is `application/json`");
            Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
        }
    }
}

/// The form of rows, as SW.INGEST names it.
fn format(headers: &HeaderMap) -> Result<&'static [u8], Failure> {
    match content_type(headers).as_str() {
        "application/json" | "application/x-ndjson" | "application/jsonl" => Ok(b"JSON"),
        "text/csv" => Ok(b"CSV"),
        other => {
            let why = format!(
                "Content-Type is `{other}`: rows are `application/x-ndjson`, an object a line, or \
                 `text/csv` with the names of columns in the first"
            );
            Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
        }
    }
}

/// The answer to a query, or its refusal, with the name that the client has given it.
async fn ask(visit: Visit, query: &[u8], room: Room, form: Form) -> Answer {
    let json = native::json(query).map_err(refused)?;
    let id = native::query_id(&json).map(HeaderValue::from_str).transpose().map_err(|_| {
        let why = "context.queryId is answered in a header: make it of letters, digits and signs of ASCII";
        refused(why.to_owned())
    })?;
    let table = native::data_source(&json);
    drop(json);
    let answer = ask_table(visit, table, query, room, form).await;
    let mut response = answer.unwrap_or_else(Failure::into_response);
    if let Some(id) = id {
        response.headers_mut().insert(QUERY_ID, id);
    }
    Ok(response)
}

fn refused(why: String) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, why)
}

async fn ask_table(
    visit: Visit,
    table: Result<Option<String>, String>,
    query: &[u8],
    room: Room,
    form: Form,
) -> Answer {
    let table = table.map_err(refused)?.ok_or_else(|| {
        refused("the query has no dataSource: it is the name of a table".to_owned())
    })?;
    let word: &[u8] = if form == Form::Csv { b"CSV" } else { b"JSON" };
    let reply = visit.call(&[b"SW.QUERY", table.as_bytes(), query, b"FORMAT", word], room).await?;
    let place = replies::bulk(&reply).ok_or_else(unreadable)?;
    let answer = Bytes::from(reply).slice(place);
    match form {
        Form::Json => Ok(text(StatusCode::OK, "application/json", answer)),
        Form::Csv => Ok(text(StatusCode::OK, "text/csv; charset=utf-8", answer)),
        Form::Pretty => {
            let json: Json = serde_json::from_slice(&answer).map_err(|_| unreadable())?;
            Ok(text(StatusCode::OK, "application/json", format!("{json:#}\n")))
        }
    }
}

fn as_json(reply: &[u8]) -> Answer {
    let json = replies::json(reply).ok_or_else(unreadable)?;
    Ok(text(StatusCode::OK, "application/json", json.to_string()))
}

/// The names of dimensions and metrics in the reply of `SW.INFO`.
fn columns(reply: &[u8]) -> Answer {
    let info = replies::json(reply).ok_or_else(unreadable)?;
    let names = |of: &str| {
        let columns = info.get(of)?.as_array()?;
        columns.iter().map(|column| column.get("name").cloned()).collect::<Option<Vec<Json>>>()
    };
    let (Some(dimensions), Some(metrics)) = (names("dimensions"), names("metrics")) else {
        let why = "the table is no roll-up: it has keys and values";
        return Err(Failure::new(StatusCode::NOT_FOUND, why));
    };
    let columns = json!({ "dimensions": dimensions, "metrics": metrics });
    Ok(text(StatusCode::OK, "application/json", columns.to_string()))
}

/// A reply that is not what its command answers.
fn unreadable() -> Failure {
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_routes() {
        for (path, route) in [
            ("/druid/v2", Some(Route::Query)),
            ("/druid/v2/", Some(Route::Query)),
            ("/druid/v2/sql", Some(Route::Sql)),
            ("/druid/v2/datasources", Some(Route::Sources)),
            ("/druid/v2/datasources/edits", Some(Route::Source("edits"))),
            ("/ingest/edits/", Some(Route::Ingest("edits"))),
            ("/druid/v1", None),
            ("/druid", None),
            ("/ingest", None),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
            assert!(is_about(path), "{path}");
        }
        assert!(!is_about("/druids") && !is_about("/metrics") && !is_about("/"));
    }
}

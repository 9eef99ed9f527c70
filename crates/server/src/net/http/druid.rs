//! Requests about roll-ups, as commands.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value as Json, json};

use super::body::Room;
use super::failure::Failure;
use super::visit::Visit;
use super::{Door, header, replies, text};
use crate::clients::Origin;
use crate::protocol::native::Outline;

/// Where a client finds the name again that it gave a query.
const QUERY_ID: HeaderName = HeaderName::from_static("x-druid-query-id");

type Answer = Result<Response<Full<Bytes>>, Failure>;

/// What a path is about. Names are bytes: signs may be written as numbers there.
#[derive(Debug, PartialEq, Eq)]
enum Route {
    Query,
    Sql,
    Sources,
    Source(Vec<u8>),
    Ingest(Vec<u8>),
    /// Queries under way, by the name that their client has given them.
    Named(Vec<u8>),
}

impl Route {
    /// The path's route; a slash at its end is none.
    fn of(path: &str) -> Option<Route> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let name = |prefix: &str| {
            let name = path.strip_prefix(prefix).filter(|name| !name.contains('/'))?;
            Some(percent_decode_str(name).collect::<Vec<u8>>())
        };
        match path {
            "/druid/v2" => Some(Route::Query),
            "/druid/v2/sql" => Some(Route::Sql),
            "/druid/v2/datasources" => Some(Route::Sources),
            _ => name("/druid/v2/datasources/")
                .map(Route::Source)
                .or_else(|| name("/ingest/").map(Route::Ingest))
                .or_else(|| name("/druid/v2/").map(Route::Named)),
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
        let why = "there are POST /druid/v2, DELETE /druid/v2/ID, GET /druid/v2/datasources, \
                   GET /druid/v2/datasources/NAME and POST /ingest/NAME";
        return Err(Failure::new(StatusCode::NOT_FOUND, why));
    };
    let (method, allowed) = match route {
        Route::Query | Route::Sql | Route::Ingest(_) => (Method::POST, "POST"),
        Route::Sources | Route::Source(_) => (Method::GET, "GET"),
        Route::Named(_) => (Method::DELETE, "DELETE"),
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
            let reply = visit.call(&[b"SW.INFO", &name], Room::default()).await?;
            columns(&reply)
        }
        Route::Ingest(name) => {
            let format = format(&head.headers)?;
            let (rows, room) = door.bodies.read(body).await?;
            let args = [&b"SW.INGEST"[..], &name, b"FORMAT", format, &rows];
            as_json(&visit.call(&args, room).await?)
        }
        Route::Named(name) => {
            // As Druid has it: a query that has ended is no error.
            visit.call(&[b"SW.CANCEL", b"NAME", &name], Room::default()).await?;
            Ok(text(StatusCode::ACCEPTED, "application/json", ""))
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
    #[cfg(feature = "arrow")]
    Arrow,
}

/// Streams of Arrow, in requests and answers.
#[cfg(feature = "arrow")]
const ARROW: &str = "application/vnd.apache.arrow.stream";

impl Form {
    fn of(headers: &HeaderMap, is_pretty: bool) -> Form {
        let accept = header(headers, &ACCEPT);
        match is_pretty {
            _ if accept.contains("text/csv") => Form::Csv,
            #[cfg(feature = "arrow")]
            _ if accept.contains(ARROW) => Form::Arrow,
            true => Form::Pretty,
            false => Form::Json,
        }
    }

    /// As SW.QUERY names it.
    fn word(self) -> &'static [u8] {
        match self {
            Form::Json | Form::Pretty => b"JSON",
            Form::Csv => b"CSV",
            #[cfg(feature = "arrow")]
            Form::Arrow => b"ARROW",
        }
    }
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
        "application/msgpack" | "application/x-msgpack" | "application/vnd.msgpack" => {
            Ok(b"MSGPACK")
        }
        #[cfg(feature = "arrow")]
        ARROW => Ok(b"ARROW"),
        other => {
            let why = format!(
                "Content-Type is `{other}`: rows are `application/x-ndjson`, an object a line, \
                 `text/csv` with the names of columns in the first, `application/vnd.msgpack`, or \
                 `application/vnd.apache.arrow.stream`"
            );
            Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
        }
    }
}

/// The answer to a query, or its refusal, with the name that the client has given it.
async fn ask(visit: Visit, query: &[u8], room: Room, form: Form) -> Answer {
    let outline = Outline::read(query).map_err(refused)?;
    let id = outline.query_id().map(HeaderValue::from_str).transpose().map_err(|_| {
        let why = "context.queryId is answered in a header: make it of letters, digits and signs of ASCII";
        refused(why.to_owned())
    })?;
    let answer = ask_table(visit, &outline, query, room, form).await;
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
    outline: &Outline,
    query: &[u8],
    room: Room,
    form: Form,
) -> Answer {
    let table = outline.data_source().map_err(refused)?.ok_or_else(|| {
        refused("the query has no dataSource: it is the name of a table".to_owned())
    })?;
    let args = [&b"SW.QUERY"[..], table.as_bytes(), query, b"FORMAT", form.word()];
    let reply = visit.call(&args, room).await?;
    let place = replies::bulk(&reply).ok_or_else(unreadable)?;
    let answer = Bytes::from(reply).slice(place);
    match form {
        Form::Json => Ok(text(StatusCode::OK, "application/json", answer)),
        Form::Csv => Ok(text(StatusCode::OK, "text/csv; charset=utf-8", answer)),
        #[cfg(feature = "arrow")]
        Form::Arrow => Ok(text(StatusCode::OK, ARROW, answer)),
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
            ("/druid/v2/datasources/edits", Some(Route::Source(b"edits".to_vec()))),
            ("/ingest/edits/", Some(Route::Ingest(b"edits".to_vec()))),
            ("/ingest/a%20b%2Fc", Some(Route::Ingest(b"a b/c".to_vec()))),
            ("/druid/v2/by%20page", Some(Route::Named(b"by page".to_vec()))),
            ("/druid/v2/datasources/edits/x", None),
            ("/druid/v2/a/b", None),
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

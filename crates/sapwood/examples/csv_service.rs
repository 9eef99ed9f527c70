//! A CSV file as a service: its rows in a typed table, asked over HTTP by key and in SQL.
//!
//! ```sh
//! cargo run -p sapwood --example csv_service                            # asks itself
//! cargo run -p sapwood --example csv_service -- --serve 127.0.0.1:8080  # curl 127.0.0.1:8080/departures/U6
//! ```

mod asked;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use sapwood::row::Row;
use sapwood::schema::Value;
use sapwood::sql::{self, Outcome};
use sapwood::{Db, OrderedTableOptions, Rows};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/csv_service/departures.csv");
const REQUESTS: [&str; 3] = ["GET /departures/U6", "GET /departures/U9", "GET /waiting"];

/// A row of the file, of the table, and of an answer.
#[derive(Row, serde::Deserialize, serde::Serialize)]
struct Departure {
    #[row(key)]
    line: String,
    #[row(key)]
    minute: u16,
    stop: String,
    waiting: Option<u32>,
}

#[tokio::main]
async fn main() -> asked::Result<()> {
    asked::run(service(FILE)?, &REQUESTS).await
}

fn service(file: &str) -> asked::Result<Router> {
    let db = Db::in_memory();
    let options = OrderedTableOptions::default().schema(Departure::schema());
    db.create_ordered_table("departures", options)?;
    let departures = db.rows("departures")?.typed::<Departure>()?;
    for departure in csv::Reader::from_path(file)?.deserialize::<Departure>() {
        departures.put(&departure?)?;
    }
    let router = Router::new().route("/departures/{line}", get(of_line)).with_state(departures);
    Ok(router.merge(Router::new().route("/waiting", get(waiting)).with_state(db)))
}

type Answer<T> = Result<Json<Vec<T>>, (StatusCode, String)>;

fn failed(error: impl std::fmt::Display) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

/// The departures of a line, by minute: rows lie in the order of their keys.
async fn of_line(
    State(all): State<Rows<Departure>>,
    Path(line): Path<String>,
) -> Answer<Departure> {
    let found = all.range((&*line,)..=(&*line,)).collect::<sapwood::Result<_>>();
    found.map(Json).map_err(failed)
}

/// In SQL. A statement that looks at a large table is one for `spawn_blocking`.
async fn waiting(State(db): State<Db>) -> Answer<(String, i128)> {
    let select = "select stop, sum(waiting) from departures group by stop order by 2 desc";
    let Outcome::Rows(rows) = db.sql(select).map_err(failed)? else {
        unreachable!("a select has rows")
    };
    let pair = |row| match (rows.value(row, 0)?, rows.value(row, 1)?) {
        (stop, Value::Int(waiting)) => Ok((stop.to_string(), waiting)),
        (stop, _) => Ok((stop.to_string(), 0)),
    };
    (0..rows.len()).map(pair).collect::<sql::Result<_>>().map(Json).map_err(failed)
}

#[tokio::test]
async fn rows_of_the_file_are_answered() -> asked::Result<()> {
    let answers = asked::ask(service(FILE)?, &REQUESTS).await?;
    assert!(
        answers[0].starts_with(r#"200 [{"line":"U6","minute":485,"stop":"Museum","waiting":20},"#)
    );
    assert!(answers[0].ends_with(r#"{"line":"U6","minute":505,"stop":"Museum","waiting":null}]"#));
    assert_eq!(answers[1..], ["200 []", r#"200 [["Harbour",35],["Museum",32],["Airport",9]]"#]);
    Ok(())
}

//! Counters behind HTTP: an axum service that counts the views of pages.
//!
//! ```sh
//! cargo run -p sapwood --example views                            # asks itself
//! cargo run -p sapwood --example views -- --serve 127.0.0.1:8080  # curl -X POST 127.0.0.1:8080/views/oaks
//! ```

mod asked;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use sapwood::aggregate::Aggregate;
use sapwood::{Db, HashTable, HashTableOptions};

#[tokio::main]
async fn main() -> asked::Result<()> {
    let requests = [
        "POST /views/oaks",
        "POST /views/oaks",
        "POST /views/elms",
        "GET /views/oaks",
        "GET /views",
    ];
    asked::run(service()?, &requests).await
}

/// All handlers share one table in memory. They call it in place: a count takes less than a microsecond.
fn service() -> sapwood::Result<Router> {
    let options = HashTableOptions::default().fields("key(page:str), views:i64le".parse()?);
    let views = Db::in_memory().create_hash_table("views", options)?;
    let router = Router::new().route("/views/{page}", post(count).get(views_of));
    Ok(router.route("/views", get(views_of_all)).with_state(views))
}

type Answer = Result<Json<i64>, (StatusCode, String)>;

fn failed(error: sapwood::Error) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

/// The counter changes where it lies: of requests at the same time none is lost.
async fn count(State(views): State<HashTable>, Path(page): Path<String>) -> Answer {
    views.add(page, 1).map(Json).map_err(failed)
}

async fn views_of(State(views): State<HashTable>, Path(page): Path<String>) -> Answer {
    let count = views.get_counter(page).map_err(failed)?;
    count.map(Json).ok_or((StatusCode::NOT_FOUND, "not seen".to_owned()))
}

/// A figure of all pages may take long, and has a thread of its own that may.
async fn views_of_all(State(views): State<HashTable>) -> Answer {
    let sum = move || {
        let query = views.query()?.aggregates(Aggregate::list("sum(views)")?);
        let answer = views.aggregate(&query)?;
        Ok(answer.value(0, "sum(views)")?.try_into().unwrap_or(0))
    };
    let sum = tokio::task::spawn_blocking(sum).await.expect("the query does not panic");
    sum.map(Json).map_err(failed)
}

#[tokio::test]
async fn it_counts() -> asked::Result<()> {
    let requests = ["POST /views/a", "POST /views/a", "GET /views/a", "GET /views/b", "GET /views"];
    let answers = asked::ask(service()?, &requests).await?;
    assert_eq!(answers, ["200 1", "200 2", "200 2", "404 not seen", "200 2"]);
    Ok(())
}

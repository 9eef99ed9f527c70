//! Sockets, and what runs beside them.
//!
//! | module | holds |
//! |---|---|
//! | `connection` | a session behind a stream of bytes |
//! | `http`, `metrics` | metrics, health, and queries of roll-ups over HTTP |
//! | [`tls`] | certificates |
//! | `listener` | addresses, and the connections that come there |
//! | `working` | a job while a thread that serves no clients does it |
//! | `protected` | clients of other machines, which are not served without a password |
//! | `housekeeping` | what is done by time: keys end, memory is looked at |
//!
//! The sockets are tokio's, over epoll, on threads that take work from each other: measured with a
//! bare server that answers PING to 50 connections, it was ahead of a loop over mio on each core
//! and of a tokio runtime on each core at every length of pipeline. `docs/design/server.md` has
//! io_uring beside epoll.

mod connection;
mod housekeeping;
mod http;
mod listener;
mod metrics;
mod protected;
pub mod tls;
mod working;

pub use connection::serve;
pub use housekeeping::Housekeeping;
pub use http::Http;
pub use listener::{Listeners, Server};

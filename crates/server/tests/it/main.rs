//! The integration tests of the server, one binary.

mod admin;
mod client;
mod glob;
mod oracle;
mod reply;
mod request;
mod tls;
mod transactions;
mod walks;

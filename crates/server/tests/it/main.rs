//! The integration tests of the server, one binary.

mod glob;
mod reply;
mod request;

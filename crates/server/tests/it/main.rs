//! The integration tests of the server, one binary.

mod client;
mod glob;
mod oracle;
mod reply;
mod request;
mod transactions;
mod users;
mod users_beside_redis;
mod users_rules;
mod walks;

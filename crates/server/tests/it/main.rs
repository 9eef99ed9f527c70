//! The integration tests of the server, one binary.

mod admin;
mod beside_redis;
mod client;
mod clients;
mod cut_anywhere;
mod failures;
mod glob;
mod histories;
mod oracle;
mod pubsub;
mod random_beside_redis;
mod reply;
mod request;
mod saves;
mod sessions;
mod sockets;
mod table_figures;
mod table_oracle;
mod table_refusals;
mod tables;
mod tls;
mod transactions;
mod users;
mod users_beside_redis;
mod users_rules;
mod walks;

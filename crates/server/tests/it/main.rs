//! The integration tests of the server, one binary.

mod client;
mod glob;
mod oracle;
mod reply;
mod request;
mod table_figures;
mod table_oracle;
mod table_refusals;
mod tables;
mod transactions;
mod walks;

//! Rules of the workspace that the compiler does not check.
#![forbid(unsafe_code)]

mod boundaries;
mod circles;
mod commands;
mod dependencies;
mod documents;
mod duckdb;
mod english;
mod facade;
mod invariants;
mod markdown;
mod names;
mod storeys;
mod workspace;

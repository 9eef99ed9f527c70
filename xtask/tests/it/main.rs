//! Rules of the workspace that the compiler does not check.
#![forbid(unsafe_code)]

mod boundaries;
mod commands;
mod dependencies;
mod documents;
mod duckdb;
mod english;
mod facade;
mod invariants;
mod markdown;
mod names;
mod rust;
mod storeys;
mod workspace;

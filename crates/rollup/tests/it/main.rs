//! Tests of the roll-up index as its users see it.

mod ingestion;
mod model;
mod oracle;
mod queries;
mod snapshots;

//! Tests of the roll-up index as its users see it.

#[cfg(feature = "arrow")]
mod arrow;
mod datasketches;
mod ingestion;
mod made_up;
mod message_pack;
mod model;
mod oracle;
#[cfg(feature = "parquet")]
mod parquet;
mod queries;
mod salvage;
mod snapshots;
mod wikipedia;

//! The promises of pools, transactions and trees.

mod crashes;
mod damage;
mod defects;
mod memory;
mod model;
mod readers;
mod streams;
mod together;
mod transactions;

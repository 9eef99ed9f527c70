//! The promises of pools, transactions and trees.

mod crashes;
mod damage;
mod defects;
mod golden;
mod info;
mod lasting;
mod memory;
mod model;
mod rank;
mod readers;
mod salvage;
mod streams;
mod together;
mod transactions;

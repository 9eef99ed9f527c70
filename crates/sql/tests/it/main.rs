//! Statements over tables in memory.

mod changes;
mod memory;
mod refusals;
mod selects;

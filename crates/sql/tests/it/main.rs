//! Statements over tables in memory.

mod changes;
mod dictionaries;
mod memory;
mod refusals;
mod selects;

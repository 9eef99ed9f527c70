//! Statements over tables in memory.

mod aggregates;
mod changes;
mod dictionaries;
mod functions;
mod memory;
mod numbers;
mod parameters;
mod refusals;
mod selects;

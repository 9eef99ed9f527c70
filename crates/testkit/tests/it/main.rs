//! The checkers can fail: each catches engines that are wrong on purpose, and histories by hand
//! that no right engine could have.

mod histories;
mod keyed;
mod rounds;
mod scans;
mod streams;

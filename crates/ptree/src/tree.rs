//! Trees: keys and values in order.

pub(crate) mod btree;
pub(crate) mod crit_bit;
pub(crate) mod entry;
pub(crate) mod red_black;
pub(crate) mod structure;

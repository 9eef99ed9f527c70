//! Live facts: rows fold into them as they come in, and queries read them meanwhile.

pub(crate) mod dictionary;
pub(crate) mod facts;
pub(crate) mod history;
pub(crate) mod key;
pub(crate) mod state;

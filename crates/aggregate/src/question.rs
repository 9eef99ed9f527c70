//! The question: what a query says, and its text forms.

pub(crate) mod aggregate;
pub(crate) mod group;
pub(crate) mod key_list;
pub(crate) mod layout;
pub(crate) mod predicate;
pub(crate) mod query;
pub(crate) mod selection;
pub(crate) mod syntax;

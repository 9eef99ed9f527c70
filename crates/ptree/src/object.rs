//! Objects: their names, and the word that each begins with.
//!
//! ```text
//! header, the first word of an object
//!  63   62   48 47      32 31                    0
//! +----+--------+----------+-----------------------+
//! |look| unused | type     | slot                  |
//! +----+--------+----------+-----------------------+
//! ```
//! The *slot* means something to an open transaction alone, says where it keeps its copy of the
//! object, and is believed only if what lies there names the object (Briggs and Torczon: "An
//! efficient representation for sparse sets", 1993). So it need never be reset, and whatever a file
//! holds there does no harm.
//!
//! Without *look* no open transaction sees the object otherwise than it is: none has a copy of it, or
//! has freed it. With it, the slot tells. It may be left over as well.

use std::fmt;

use sapwood_mem::sync::{Ordering, RawAtomicU64};

/// A 64-bit word of the heap, shared between a writer and readers.
pub(crate) type Word = RawAtomicU64;

/// The name of an object: the number of its first word, counted from the beginning of the heap. It
/// stays the same for the life of the object. (PMDK's `PMEMoid`, without the pool's number.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(u64);

impl ObjectId {
    /// No object.
    pub const NULL: ObjectId = ObjectId(0);

    /// The object that begins at a word.
    pub const fn new(word: u64) -> ObjectId {
        ObjectId(word)
    }

    /// The number of its first word.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// Whether this names no object.
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0.saturating_mul(8))
    }
}

/// The type of an object: a number that its owner chose, by which a walk tells objects apart.
/// Those from [`ObjectType::FIRST_RESERVED`] on are the engine's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectType(pub u16);

impl ObjectType {
    /// The first number that the engine uses itself.
    pub const FIRST_RESERVED: u16 = 0xff00;
    /// The head of a tree.
    pub(crate) const TREE_HEAD: ObjectType = ObjectType(0xff00);
    /// A key and its value.
    pub(crate) const RECORD: ObjectType = ObjectType(0xff01);
    /// A node of a B-tree.
    pub(crate) const BTREE_NODE: ObjectType = ObjectType(0xff02);
    /// A node of a crit-bit tree.
    pub(crate) const CRIT_BIT_NODE: ObjectType = ObjectType(0xff03);
    /// A node of a red-black tree.
    pub(crate) const RED_BLACK_NODE: ObjectType = ObjectType(0xff04);
}

/// The header of an object of this type, of which no transaction has a copy.
#[inline]
pub(crate) fn header(of: ObjectType) -> u64 {
    u64::from(of.0) << 32
}

/// The type that a header says.
#[inline]
pub(crate) fn type_of(header: u64) -> ObjectType {
    ObjectType((header >> 32) as u16)
}

/// The slot that a header says.
#[inline]
pub(crate) fn slot_of(header: u64) -> usize {
    header as u32 as usize
}

/// A header with another slot.
#[inline]
pub(crate) fn with_slot(header: u64, slot: u32) -> u64 {
    header & !u64::from(u32::MAX) | u64::from(slot)
}

/// The bit of a header that makes a transaction look at the slot.
pub(crate) const LOOK: u64 = 1 << 63;

/// A word of an object as a reader or its writer sees it. Relaxed: a version tells whether what
/// was read together belongs together.
#[inline]
pub(crate) fn load(word: &Word) -> u64 {
    word.load(Ordering::Relaxed)
}

/// A row of a table of bytes: where a field begins, how long it is, its name and its meaning.
#[cfg(test)]
pub(crate) type LayoutRow = (u32, u32, &'static str, &'static str);

/// The bits of a header, for the table of bytes.
#[cfg(test)]
pub(crate) fn layout() -> Vec<LayoutRow> {
    let kind = header(ObjectType(u16::MAX));
    let slot = with_slot(0, u32::MAX);
    vec![
        (
            slot.trailing_zeros(),
            slot.count_ones(),
            "slot",
            "of an open transaction; believed by none else",
        ),
        (
            kind.trailing_zeros(),
            kind.count_ones(),
            "type",
            "what the object is; from 0xff00 on the engine's own",
        ),
        (48, 16, "unused", "whatever it is"),
    ]
}

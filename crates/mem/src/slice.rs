//! Slices: the word that names a piece of an arena, and the size classes.
//!
//! ```text
//! SliceRef, one 64-bit word
//!  63      62 61      54 53           33 32            9 8         0
//! +----------+----------+---------------+---------------+-----------+
//! | 2 tags   | reserved | offset / 8    | block         | class     |
//! +----------+----------+---------------+---------------+-----------+
//! ```
//! The tags are free for the owner of the word (a chunk marks frozen and
//! removed entries with them); reserved bits are zero; a class is never zero,
//! so the word zero names no slice.

/// Slices start and end on multiples of this.
pub const GRANULE_BYTES: usize = 8;
/// Up to here there is a size class for every multiple of [`GRANULE_BYTES`].
const EXACT_BYTES_MAX: usize = 2048;
const EXACT_CLASSES: usize = EXACT_BYTES_MAX / GRANULE_BYTES;
/// Beyond [`EXACT_BYTES_MAX`], classes a doubling: at most 1/16 is lost to rounding.
const STEPS_PER_DOUBLING: usize = 16;
/// Largest slice that shares a block with others, whatever the block's size.
pub const SHARED_BYTES_MAX: usize = 256 << 10;

const CLASS_BITS: u32 = 9;
const BLOCK_BITS: u32 = 24;
const OFFSET_BITS: u32 = 21;
const BLOCK_SHIFT: u32 = CLASS_BITS;
const OFFSET_SHIFT: u32 = CLASS_BITS + BLOCK_BITS;

/// Largest block: what the offset field can reach.
pub const BLOCK_BYTES_MAX: usize = GRANULE_BYTES << OFFSET_BITS;
/// Blocks an arena can have at a time.
pub(crate) const BLOCKS_MAX: usize = 1 << BLOCK_BITS;

/// How large a slice is: a small number that stands for a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Class(u16);

impl Class {
    /// A slice with a mapping of its own; its size is its block's.
    pub(crate) const OWN_MAPPING: Class = Class((1 << CLASS_BITS) - 1);

    /// The smallest class that holds `bytes`, for `bytes` up to [`SHARED_BYTES_MAX`].
    #[inline]
    pub(crate) fn for_bytes(bytes: usize) -> Class {
        debug_assert!(bytes <= SHARED_BYTES_MAX);
        if bytes <= EXACT_BYTES_MAX {
            return Class(bytes.div_ceil(GRANULE_BYTES).max(1) as u16);
        }
        // bytes in (base, 2 * base] for a power of two base >= EXACT_BYTES_MAX.
        let base_log2 = (bytes - 1).ilog2();
        let base = 1usize << base_log2;
        let step_bytes = base / STEPS_PER_DOUBLING;
        let step = (bytes - base).div_ceil(step_bytes);
        let doubling = (base_log2 - EXACT_BYTES_MAX.ilog2()) as usize;
        Class((EXACT_CLASSES + doubling * STEPS_PER_DOUBLING + step) as u16)
    }

    /// Bytes of a slice of this class; not for [`Class::OWN_MAPPING`].
    #[inline]
    pub(crate) fn bytes(self) -> usize {
        debug_assert!(self != Class::OWN_MAPPING);
        let class = self.0 as usize;
        if class <= EXACT_CLASSES {
            return class * GRANULE_BYTES;
        }
        let above = class - EXACT_CLASSES - 1;
        let base = EXACT_BYTES_MAX << (above / STEPS_PER_DOUBLING);
        base + (above % STEPS_PER_DOUBLING + 1) * (base / STEPS_PER_DOUBLING)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names a slice of an [`Arena`](crate::Arena): its block, where in it, and its size class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SliceRef(u64);

impl SliceRef {
    /// The word's two highest bits, which a holder may use; never set in a `SliceRef`.
    pub const TAGS: u64 = 0b11 << 62;

    pub(crate) fn new(class: Class, block: u32, offset: usize) -> SliceRef {
        debug_assert!((block as usize) < BLOCKS_MAX && offset < BLOCK_BYTES_MAX);
        debug_assert!(offset.is_multiple_of(GRANULE_BYTES));
        SliceRef(
            u64::from(class.0)
                | u64::from(block) << BLOCK_SHIFT
                | ((offset / GRANULE_BYTES) as u64) << OFFSET_SHIFT,
        )
    }

    /// The word to store.
    #[inline]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The slice a stored word names, whatever its tags; `None` for the word zero.
    #[inline]
    pub fn from_word(word: u64) -> Option<SliceRef> {
        let bare = word & !SliceRef::TAGS;
        (bare != 0).then_some(SliceRef(bare))
    }

    /// Tells sizes apart: slices of one arena with equal numbers are of one size, but for those that
    /// are too large to share a block.
    #[inline]
    pub fn size_class(self) -> usize {
        self.class().index()
    }

    /// Whether the slice lies behind another one of its size, with at most one between them.
    #[inline]
    pub fn follows(self, before: SliceRef) -> bool {
        let class = self.class();
        class == before.class()
            && class != Class::OWN_MAPPING
            && self.block() == before.block()
            && self.offset() > before.offset()
            && self.offset() - before.offset() <= 2 * class.bytes()
    }

    #[inline]
    pub(crate) fn class(self) -> Class {
        Class((self.0 & ((1 << CLASS_BITS) - 1)) as u16)
    }

    #[inline]
    pub(crate) fn block(self) -> u32 {
        (self.0 >> BLOCK_SHIFT) as u32 & (BLOCKS_MAX as u32 - 1)
    }

    #[inline]
    pub(crate) fn offset(self) -> usize {
        (self.0 >> OFFSET_SHIFT) as usize % (1 << OFFSET_BITS) * GRANULE_BYTES
    }
}

/// The byte table of the word and of the size classes, as `docs/design/layout/mem.txt` shows it.
pub fn layout_table() -> String {
    use std::fmt::Write;
    let mut table = String::from("SliceRef (64 bits)\n  bits   field     meaning\n");
    let rows = [
        (0, CLASS_BITS, "class", "size class, never 0; 511: a mapping of its own"),
        (BLOCK_SHIFT, BLOCK_BITS, "block", "index into the arena's block table"),
        (OFFSET_SHIFT, OFFSET_BITS, "offset", "offset in the block, in units of 8 bytes"),
        (OFFSET_SHIFT + OFFSET_BITS, 8, "reserved", "zero"),
        (62, 2, "tags", "free for the holder of the word"),
    ];
    for (shift, bits, field, meaning) in rows {
        let _ = writeln!(table, "  {:>2}..{:<2} {field:<9} {meaning}", shift, shift + bits);
    }
    table.push_str("\nSize classes\n  class  bytes\n");
    for class in [1, 2, 139, 256, 257, 272, 273, 368] {
        let _ = writeln!(table, "  {class:>5}  {}", Class(class).bytes());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_is_asked_and_little_more() {
        let mut previous = 0;
        for bytes in 1..=SHARED_BYTES_MAX {
            let class = Class::for_bytes(bytes);
            assert!(class < Class::OWN_MAPPING);
            assert!(class.bytes() >= bytes, "{bytes} in {class:?}");
            assert!(class.bytes() >= previous, "classes grow");
            let lost = class.bytes() - bytes;
            assert!(
                lost < GRANULE_BYTES || lost * STEPS_PER_DOUBLING <= bytes,
                "{bytes} loses {lost}"
            );
            assert_eq!(Class::for_bytes(class.bytes()), class);
            previous = class.bytes();
        }
    }

    #[test]
    fn words_keep_their_parts() {
        for (class, block, offset) in
            [(1, 0, 0), (511, BLOCKS_MAX as u32 - 1, BLOCK_BYTES_MAX - 8), (139, 77, 1112)]
        {
            let slice = SliceRef::new(Class(class), block, offset);
            assert_eq!(slice.word() & SliceRef::TAGS, 0);
            let back = SliceRef::from_word(slice.word() | SliceRef::TAGS).expect("not zero");
            assert_eq!((back.class(), back.block(), back.offset()), (Class(class), block, offset));
        }
        assert_eq!(SliceRef::from_word(SliceRef::TAGS), None);
    }

    /// The document cannot drift: `cargo xtask layout --bless` writes it anew.
    #[test]
    fn layout_is_the_documented_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/layout/mem.txt");
        let table = super::layout_table();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &table).expect("docs/design/layout can be written");
        }
        let documented = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(
            table, documented,
            "run `cargo xtask layout --bless` and look at the difference"
        );
    }
}

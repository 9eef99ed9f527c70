//! Offsets, masks and shifts of records, chunks and inner nodes.
//!
//! The tables that [`layout_table`] prints are pinned in
//! `docs/design/layout/chunkmap.txt` by a test.

use sapwood_mem::sync::RawAtomicU64;
use sapwood_mem::sync::counter::AtomicU64;

/// Longest key, bytes.
pub const KEY_BYTES_MAX: usize = 64 << 10;
/// Longest value, bytes.
pub const VALUE_BYTES_MAX: usize = 256 << 20;

/// Record: one slice with header, key and value.
///
/// ```text
///  0        8                 8 + pad8(key_len)
///  +--------+-----------------+------------------------+--------+
///  | header | key, padded     | value                  | room   |
///  +--------+-----------------+------------------------+--------+
/// ```
pub(crate) mod record {
    use super::KEY_BYTES_MAX;
    use super::VALUE_BYTES_MAX;

    pub(crate) const HEADER_BYTES: usize = 8;
    pub(crate) const KEY_LEN_BITS: u32 = 16;
    pub(crate) const VALUE_LEN_SHIFT: u32 = KEY_LEN_BITS;
    pub(crate) const VALUE_LEN_BITS: u32 = 29;
    pub(crate) const READERS_SHIFT: u32 = VALUE_LEN_SHIFT + VALUE_LEN_BITS;
    pub(crate) const READERS_BITS: u32 = 15;
    pub(crate) const READER: u64 = 1 << READERS_SHIFT;
    /// As many as the count can tell.
    pub(crate) const READERS_MAX: u64 = (1 << READERS_BITS) - 1;
    /// The highest bit of the count. So many readers stay for as long as they like; further ones go
    /// in for as long as it takes to copy the record, so that the count never stays at its end.
    pub(crate) const CROWDED: u64 = 1 << (READERS_SHIFT + READERS_BITS - 1);
    /// The writer copies the bytes elsewhere as they are, and waits for no thread; with [`EXCLUSIVE`], it has closed the
    /// record, which is dead soon.
    pub(crate) const MOVING: u64 = 1 << 60;
    /// Removed or superseded; never cleared.
    pub(crate) const DEAD: u64 = 1 << 61;
    /// The writer changes the bytes in place, or has closed the record: readers wait.
    pub(crate) const EXCLUSIVE: u64 = 1 << 62;
    /// A writer has the record: other writers wait.
    pub(crate) const WRITER: u64 = 1 << 63;

    const _: () = assert!(READERS_SHIFT + READERS_BITS == 60);
    const _: () = assert!(KEY_BYTES_MAX == 1 << KEY_LEN_BITS);
    const _: () = assert!(VALUE_BYTES_MAX < 1 << VALUE_LEN_BITS);

    /// Offset of the value.
    #[inline]
    pub(crate) fn value_offset(key_len: usize) -> usize {
        HEADER_BYTES + key_len.next_multiple_of(8)
    }

    /// Bytes of a record.
    #[inline]
    pub(crate) fn bytes(key_len: usize, value_len: usize) -> usize {
        value_offset(key_len) + value_len
    }
}

/// The first byte of a node, which says its kind. Zero is never valid.
pub(crate) const KIND_CHUNK: u8 = 1;
pub(crate) const KIND_INNER: u8 = 2;

/// Every key that is routed to the chunk has its prefix.
pub(crate) const PREFIX_BY_BOUNDS: u8 = 1;
/// The shape is exact of the sorted keys.
pub(crate) const EXACT: u8 = 2;

/// No two of the sorted entries have the same abbreviation.
pub(crate) const DISTINCT: u8 = 4;

/// Beside the count of tombstones: the shape is not exact of a key that came to the delta.
pub(crate) const INEXACT_CAME: u64 = 1 << 63;
/// Beside the count of tombstones: the chunk is about to be replaced, and no sum keeps its count from here on.
pub(crate) const REPLACING: u64 = 1 << 62;
/// Beside the count of tombstones: the [ticket](crate::node::ticket) of the count that a sum above may have.
pub(crate) const TICKET_SHIFT: u32 = 32;
pub(crate) const TICKET_BITS: u32 = 30;
/// The count of tombstones in its word.
pub(crate) const TOMBSTONES: u64 = (1 << TICKET_SHIFT) - 1;
const _: () = assert!(TICKET_SHIFT + TICKET_BITS == REPLACING.trailing_zeros());

/// "There is no bound on this side", in place of a length.
pub(crate) const UNBOUNDED: u32 = u32::MAX;

/// Head of a chunk, one cache line; behind it fingerprints, samples, groups of
/// sorted entries, delta words, delta abbreviations, then the bytes of low, high,
/// prefix and tail.
#[repr(C)]
pub(crate) struct ChunkHead {
    pub(crate) kind: u8,
    /// [`PREFIX_BY_BOUNDS`], [`EXACT`], [`DISTINCT`].
    pub(crate) flags: u8,
    /// Bytes of the template of a shape; 0: the plain shape.
    pub(crate) span: u16,
    pub(crate) sorted_len: u32,
    pub(crate) delta_cap: u16,
    /// Bytes of the tail of an exact shape.
    pub(crate) tail_len: u16,
    pub(crate) prefix_len: u32,
    pub(crate) low_len: u32,
    pub(crate) high_len: u32,
    /// Walks over all of the chunk, and how scattered its records are: see `cluster`.
    pub(crate) walks: AtomicU64,
    /// 1 while a rebalance owns the chunk.
    pub(crate) claim: RawAtomicU64,
    /// Words tombstoned so far, [`INEXACT_CAME`], [`REPLACING`], and a ticket.
    pub(crate) tombstones: RawAtomicU64,
    /// Positions that a shape picks.
    pub(crate) picks: [u8; 8],
    /// Knowledge of the first end in the low half, of the last one in the high half ([`Edge`](crate::node::chunk::Edge)).
    pub(crate) edges: RawAtomicU64,
}

/// Head of an inner node; behind it samples, the prefix, separator abbreviations, child words, ends of the separators,
/// then their bytes.
#[repr(C)]
pub(crate) struct InnerHead {
    pub(crate) kind: u8,
    pub(crate) height: u8,
    /// Children; separators are one fewer.
    pub(crate) len: u32,
    pub(crate) prefix_len: u32,
    pub(crate) children_offset: u32,
    /// 1 while a thread changes children or replaces the node.
    pub(crate) latch: RawAtomicU64,
    /// Bit 0: the node was replaced; above, the sum of the entries below it, where that is known.
    pub(crate) state: RawAtomicU64,
}

const _: () = assert!(size_of::<ChunkHead>() == 64);
const _: () = assert!(size_of::<InnerHead>() == 32);
const _: () = assert!(align_of::<ChunkHead>() == 8 && align_of::<InnerHead>() == 8);

/// Slots whose fingerprints share one word.
pub(crate) const FINGERPRINTS_PER_WORD: usize = 8;

/// Sorted entries of a group: two cache lines of abbreviations and two of words.
pub(crate) const GROUP_ENTRIES: usize = 16;
pub(crate) const GROUP_BYTES: usize = GROUP_ENTRIES * 16;

/// Offsets inside a chunk of given sizes.
///
/// ```text
///  +------+--------------+----------+---------+---------+-----+-------+--------+-------+
///  | head | fingerprints | template | samples | group 0 | ... | delta | delta  | low   |
///  |      | of the delta |          |         |         |     | words | abbrs. | high  |
///  +------+--------------+----------+---------+---------+-----+-------+--------+ prefix|
///                                                 |                            | tail  |
///                                                 |                            +-------+
///                             16 abbreviations, 16 words
/// ```
/// A sample is the first abbreviation of a group. Head, fingerprints and samples
/// lie together and are asked for at once; one group follows from them: so a
/// search waits for memory twice, not once for each halving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkLayout {
    pub(crate) fingerprints: usize,
    pub(crate) template: usize,
    pub(crate) samples: usize,
    pub(crate) groups: usize,
    pub(crate) delta_words: usize,
    pub(crate) delta_abbreviations: usize,
    pub(crate) bytes: usize,
}

impl ChunkLayout {
    #[inline]
    pub(crate) fn new(sorted_len: usize, delta_cap: usize, span: usize) -> ChunkLayout {
        let group_count = sorted_len.div_ceil(GROUP_ENTRIES);
        let fingerprints = size_of::<ChunkHead>();
        let template = fingerprints + delta_cap.div_ceil(FINGERPRINTS_PER_WORD) * 8;
        let samples = template + span.next_multiple_of(8);
        let groups = (samples + group_count * 8).next_multiple_of(64);
        let delta_words = groups + group_count * GROUP_BYTES;
        let delta_abbreviations = delta_words + delta_cap * 8;
        let bytes = delta_abbreviations + delta_cap * 8;
        ChunkLayout {
            fingerprints,
            template,
            samples,
            groups,
            delta_words,
            delta_abbreviations,
            bytes,
        }
    }

    /// Offset of the abbreviation of a sorted entry.
    #[inline]
    pub(crate) fn sorted_abbreviation(&self, at: usize) -> usize {
        self.groups + at / GROUP_ENTRIES * GROUP_BYTES + at % GROUP_ENTRIES * 8
    }

    /// Offset of the word of a sorted entry.
    #[inline]
    pub(crate) fn sorted_word(&self, at: usize) -> usize {
        self.sorted_abbreviation(at) + GROUP_ENTRIES * 8
    }
}

/// Offsets inside an inner node of `len` children, whose separators share a prefix.
///
/// ```text
///  +------+---------+--------+---------------+----------+------+------------+
///  | head | samples | prefix | abbreviations | children | ends | separators |
///  +------+---------+--------+---------------+----------+------+------------+
/// ```
/// A sample is the first of 16 abbreviations, as in a chunk: a search waits for the first lines, then for those of 16
/// abbreviations and their children. Samples and the last group are filled up, so that searches have one length. A node
/// of one group has no samples, and is not filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InnerLayout {
    pub(crate) abbreviations: usize,
    pub(crate) children: usize,
    pub(crate) ends: usize,
    pub(crate) bytes: usize,
}

/// Most children of an inner node.
pub(crate) const FANOUT_MAX: usize = GROUP_ENTRIES * GROUP_ENTRIES;

impl InnerLayout {
    pub(crate) const SAMPLES: usize = size_of::<InnerHead>();

    #[inline]
    pub(crate) fn new(len: usize, prefix_len: usize) -> InnerLayout {
        let separators = len - 1;
        let (abbreviations, children) = if Self::has_samples(len) {
            let abbreviations = (Self::prefix(len) + prefix_len).next_multiple_of(64);
            (abbreviations, abbreviations + separators.next_multiple_of(GROUP_ENTRIES) * 8)
        } else {
            let abbreviations = (Self::prefix(len) + prefix_len).next_multiple_of(8);
            (abbreviations, abbreviations + separators * 8)
        };
        let ends = children + len * 8;
        let bytes = ends + separators * 4;
        InnerLayout { abbreviations, children, ends, bytes }
    }

    /// Whether there is more than one group of abbreviations.
    #[inline]
    pub(crate) fn has_samples(len: usize) -> bool {
        len > GROUP_ENTRIES + 1
    }

    /// Offset of the prefix.
    #[inline]
    pub(crate) fn prefix(len: usize) -> usize {
        Self::SAMPLES + if Self::has_samples(len) { FANOUT_MAX / GROUP_ENTRIES * 8 } else { 0 }
    }
}

/// The word of an entry, taken apart.
///
/// ```text
///  63       62          61                       0
/// +--------+-----------+-------------------------+
/// | frozen | tombstone | SliceRef of the record  |
/// +--------+-----------+-------------------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// Nothing was ever here.
    Empty,
    /// The record was removed; the entry stays unused until a rebalance.
    Tombstone,
    /// The record, which may be dead.
    Record(sapwood_mem::SliceRef),
}

pub(crate) const FROZEN: u64 = 1 << 63;
pub(crate) const TOMBSTONE: u64 = 1 << 62;
const _: () = assert!(sapwood_mem::SliceRef::TAGS == FROZEN | TOMBSTONE);

impl EntryState {
    #[inline]
    pub(crate) fn of(word: u64) -> EntryState {
        if word & TOMBSTONE != 0 {
            return EntryState::Tombstone;
        }
        match sapwood_mem::SliceRef::from_word(word) {
            None => EntryState::Empty,
            Some(slice) => EntryState::Record(slice),
        }
    }
}

/// The byte tables, as `docs/design/layout/chunkmap.txt` shows them.
pub fn layout_table() -> String {
    use std::fmt::Write;
    use std::mem::offset_of;
    let mut table = String::from("Record header (64 bits)\n  bits   field      meaning\n");
    let bits = [
        (0, record::KEY_LEN_BITS, "key_len", "bytes of the key, less one"),
        (record::VALUE_LEN_SHIFT, record::VALUE_LEN_BITS, "value_len", "bytes of the value"),
        (
            record::READERS_SHIFT,
            record::READERS_BITS,
            "readers",
            "readers inside; beyond half of the range each copies and leaves",
        ),
        (
            record::MOVING.ilog2(),
            1,
            "moving",
            "the writer moves the record, or has closed it: waiting for it is always short",
        ),
        (record::DEAD.ilog2(), 1, "dead", "removed or superseded; never cleared"),
        (
            record::EXCLUSIVE.ilog2(),
            1,
            "exclusive",
            "bytes change in place, or the record is closed: readers wait",
        ),
        (record::WRITER.ilog2(), 1, "writer", "a writer has the record: writers wait"),
    ];
    for (shift, width, field, meaning) in bits {
        let _ = writeln!(table, "  {:>2}..{:<2} {field:<10} {meaning}", shift, shift + width);
    }
    let _ = writeln!(table, "\nRecord\n  offset       part");
    let _ = writeln!(table, "  0            header\n  8            key, padded to 8 bytes");
    let _ = writeln!(table, "  8 + pad(key) value, then room up to the size class");
    let _ = writeln!(table, "\nEntry word (64 bits)");
    let _ = writeln!(table, "  0..62  SliceRef of the record; zero: empty");
    let _ =
        writeln!(table, "  {}     tombstone\n  {}     frozen", TOMBSTONE.ilog2(), FROZEN.ilog2());
    let mut head = |title: &str, bytes: usize, rows: &[(usize, &str, &str)]| {
        let _ = writeln!(table, "\n{title} ({bytes} bytes)\n  offset  field             meaning");
        for (offset, field, meaning) in rows {
            let _ = writeln!(table, "  {offset:>6}  {field:<17} {meaning}");
        }
    };
    head(
        "Chunk head",
        size_of::<ChunkHead>(),
        &[
            (offset_of!(ChunkHead, kind), "kind", "1"),
            (
                offset_of!(ChunkHead, flags),
                "flags",
                "1: the bounds imply the prefix; 2: the shape is exact; 4: no sorted abbreviations are equal",
            ),
            (offset_of!(ChunkHead, span), "span", "bytes of the shape's template"),
            (offset_of!(ChunkHead, sorted_len), "sorted_len", "entries of the sorted part"),
            (offset_of!(ChunkHead, delta_cap), "delta_cap", "entries the delta has room for"),
            (offset_of!(ChunkHead, tail_len), "tail_len", "bytes of an exact shape's tail"),
            (offset_of!(ChunkHead, prefix_len), "prefix_len", "bytes that the keys share"),
            (offset_of!(ChunkHead, low_len), "low_len", "bytes of the lower bound; 2^32 - 1: none"),
            (
                offset_of!(ChunkHead, high_len),
                "high_len",
                "bytes of the upper bound; 2^32 - 1: none",
            ),
            (
                offset_of!(ChunkHead, walks),
                "walks",
                "walks over all of it, 4 bytes; how many records lie apart, 4 bytes",
            ),
            (offset_of!(ChunkHead, claim), "claim", "1 while a rebalance owns the chunk"),
            (
                offset_of!(ChunkHead, tombstones),
                "tombstones",
                "0..32 words tombstoned so far; 32..62 ticket; 62 being replaced; 63 an inexact key came",
            ),
            (
                offset_of!(ChunkHead, picks),
                "picks",
                "positions behind the prefix that the shape picks",
            ),
            (
                offset_of!(ChunkHead, edges),
                "edges",
                "of the first end, then the last: sorted tombstones (2 bytes), delta entries read, the nearest of them",
            ),
        ],
    );
    head(
        "Inner head",
        size_of::<InnerHead>(),
        &[
            (offset_of!(InnerHead, kind), "kind", "2"),
            (offset_of!(InnerHead, height), "height", "levels down to the chunks"),
            (offset_of!(InnerHead, len), "len", "children; separators are one fewer"),
            (offset_of!(InnerHead, prefix_len), "prefix_len", "bytes that the separators share"),
            (
                offset_of!(InnerHead, children_offset),
                "children_offset",
                "where the child words begin",
            ),
            (offset_of!(InnerHead, latch), "latch", "1 while a thread changes the children"),
            (
                offset_of!(InnerHead, state),
                "state",
                "bit 0: once replaced; 1..2: sum below unknown, being counted, known; 3..: ticket or sum",
            ),
        ],
    );
    let chunk = ChunkLayout::new(512, 64, 0);
    let _ = writeln!(table, "\nChunk of 512 sorted entries and a delta of 64\n  offset  part");
    for (offset, part) in [
        (0, "head"),
        (chunk.fingerprints, "fingerprints, one byte an entry of the delta"),
        (chunk.template, "template of the shape, padded to 8 bytes; here of none"),
        (chunk.samples, "samples: the first abbreviation of each group"),
        (chunk.groups, "groups: 16 sorted abbreviations, then their 16 words"),
        (chunk.delta_words, "delta words"),
        (chunk.delta_abbreviations, "delta abbreviations"),
        (chunk.bytes, "bytes of low, high, prefix and tail"),
    ] {
        let _ = writeln!(table, "  {offset:>6}  {part}");
    }
    let inner = InnerLayout::new(256, 0);
    let _ = writeln!(table, "\nInner node of 256 children\n  offset  part");
    for (offset, part) in [
        (0, "head"),
        (InnerLayout::SAMPLES, "samples: every sixteenth abbreviation"),
        (InnerLayout::prefix(256), "the prefix; here of none"),
        (inner.abbreviations, "separator abbreviations"),
        (inner.children, "child words"),
        (inner.ends, "ends of the separators, u32"),
        (inner.bytes, "bytes of the separators"),
    ] {
        let _ = writeln!(table, "  {offset:>6}  {part}");
    }
    table
}

#[cfg(test)]
mod tests {
    /// The document cannot drift: `cargo xtask layout --bless` writes it anew.
    #[test]
    fn layout_is_the_documented_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/layout/chunkmap.txt");
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

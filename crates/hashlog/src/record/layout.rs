//! Offsets, masks and shifts of slots, buckets and records.
//!
//! The tables that `layout_table` prints are pinned in `docs/design/layout/hashlog.txt` by a
//! test.

use crate::record::address::Address;

/// Longest key, bytes.
pub const KEY_BYTES_MAX: usize = (1 << lengths::KEY_BITS) - 1;

/// Slot of a bucket: names the newest record of all keys that share its bucket and tag.
///
/// ```text
///  63        62     61     60     59             45 44                                        0
///  +---------+------+------+------+----------------+-------------------------------------------+
///  |tentative|frozen|shared|parity| 1 and tag bits | address in units of 8 B; 0: slot is empty |
///  +---------+------+------+------+----------------+-------------------------------------------+
/// ```
/// The tag is the hash's bits from the bucket's depth up. A split of the bucket uses one of them
/// up, so the field holds as many as are known below a leading 1: at first all 14.
pub(crate) mod slot {
    use super::Address;

    pub(crate) const ADDRESS_BITS: u32 = 45;
    pub(crate) const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;
    pub(crate) const FIELD_SHIFT: u32 = ADDRESS_BITS;
    pub(crate) const FIELD_BITS: u32 = 15;
    pub(crate) const FIELD_MASK: u64 = (1 << FIELD_BITS) - 1;
    /// Known bits of a fresh tag.
    pub(crate) const TAG_BITS: u32 = FIELD_BITS - 1;
    /// The scan of a bucket compares this many; the few buckets with slots that know fewer say so.
    pub(crate) const SCAN_BITS: u32 = 8;
    pub(crate) const SCAN_TAG_MASK: u64 = ((1 << SCAN_BITS) - 1) << FIELD_SHIFT;
    pub(crate) const SCAN_MASK: u64 = SCAN_TAG_MASK | PARITY | TENTATIVE;
    /// A quick look takes no slot that is any of these.
    pub(crate) const UNSURE: u64 = TENTATIVE | FROZEN | SHARED;
    pub(crate) const QUICK_MASK: u64 = SCAN_TAG_MASK | UNSURE;
    /// Lowest bit of the depth that the tag begins at, so that a word from before a split of the
    /// bucket equals none from after it.
    pub(crate) const PARITY: u64 = 1 << 60;
    /// The record may be of a key of another bucket: its chain was dealt out to both.
    pub(crate) const SHARED: u64 = 1 << 61;
    /// The bucket is being split: the slot changes no more until it is.
    pub(crate) const FROZEN: u64 = 1 << 62;
    /// Its insert is not decided: for other threads the slot is taken and names nothing.
    pub(crate) const TENTATIVE: u64 = 1 << 63;

    /// The word of a slot whose tag knows `bits` bits of `tag`, in a bucket of this depth.
    #[inline]
    pub(crate) fn word(depth: u32, tag: u64, bits: u32, address: Address) -> u64 {
        let field = (1 << bits) | (tag & ((1 << bits) - 1));
        parity(depth) | (field << FIELD_SHIFT) | address.units()
    }

    /// The same slot naming another record, of a key of its own bucket.
    #[inline]
    pub(crate) fn with_address(word: u64, address: Address) -> u64 {
        (word & !(ADDRESS_MASK | UNSURE)) | address.units()
    }

    #[inline]
    pub(crate) fn parity(depth: u32) -> u64 {
        u64::from(depth & 1) << PARITY.ilog2()
    }

    /// The tag that a hash has in a bucket of this depth.
    #[inline]
    pub(crate) fn tag_of(hash: u64, depth: u32) -> u64 {
        (hash >> depth) & ((1 << TAG_BITS) - 1)
    }

    #[inline]
    pub(crate) fn address(word: u64) -> Address {
        Address::from_units(word & ADDRESS_MASK)
    }

    /// Number of known tag bits.
    #[inline]
    pub(crate) fn known_bits(word: u64) -> u32 {
        ((word >> FIELD_SHIFT) & FIELD_MASK).ilog2()
    }

    /// The known tag bits.
    #[inline]
    pub(crate) fn tag(word: u64) -> u64 {
        ((word >> FIELD_SHIFT) & FIELD_MASK) & !(1 << known_bits(word))
    }

    /// Number of low tag bits that the slot knows and that are those of a tag.
    pub(crate) fn common_bits(word: u64, full: u64) -> u32 {
        known_bits(word).min((tag(word) ^ full).trailing_zeros())
    }

    /// Whether the word is one that a bucket can hold.
    pub(crate) fn is_whole(word: u64) -> bool {
        let field = (word >> FIELD_SHIFT) & FIELD_MASK;
        word & (TENTATIVE | FROZEN) == 0 && field != 0 && word & ADDRESS_MASK != 0
    }

    /// Whether a key with this tag may be in the slot's chain. False for empty slots.
    #[inline]
    pub(crate) fn agrees(word: u64, tag: u64) -> bool {
        let field = (word >> FIELD_SHIFT) & FIELD_MASK;
        let full = (1 << TAG_BITS) | tag;
        field == full || (field != 0 && field >> TAG_BITS == 0 && agrees_shortened(field, tag))
    }

    #[cold]
    fn agrees_shortened(field: u64, tag: u64) -> bool {
        let known = field.ilog2();
        (field ^ tag) & ((1 << known) - 1) == 0
    }

    const _: () = assert!(FIELD_SHIFT + FIELD_BITS == PARITY.ilog2());
    const _: () = assert!(SCAN_BITS < TAG_BITS);
}

/// Bucket: one cache line of seven slots and a link word.
///
/// ```text
///  link word:  63     62     61   60     59 .. 48   47                    8   7 .. 6   5 .. 0
///              frozen short  1    packed 0          overflow bucket + 1       0        depth
/// ```
pub(crate) mod bucket {
    pub(crate) const BYTES: usize = 64;
    /// Fewer in a model, which tries every state of each that a scan may see.
    pub(crate) const SLOTS: usize = if cfg!(loom) { 3 } else { 7 };
    pub(crate) const LINK: usize = 7;
    pub(crate) const OVERFLOW_SHIFT: u32 = 8;
    pub(crate) const OVERFLOW_MASK: u64 = ((1 << 40) - 1) << OVERFLOW_SHIFT;
    /// Lowest: the link word itself can be shifted by.
    pub(crate) const DEPTH_MASK: u64 = 63;
    /// Slots of the chain know fewer bits than a scan compares.
    pub(crate) const SHORT: u64 = 1 << 62;
    /// Set in the first bucket of every chain: in a slot it would be one of `slot::UNSURE`, so that
    /// no quick look takes the link for a slot.
    pub(crate) const NO_SLOT: u64 = 1 << 61;
    /// Flips when the slots of the chain are packed into fewer buckets.
    pub(crate) const PACKED: u64 = 1 << 60;
    /// The bucket is being split or packed.
    pub(crate) const FROZEN: u64 = 1 << 63;

    const _: () = assert!((LINK + 1) * 8 == BYTES && SLOTS <= LINK);
    const _: () = assert!(NO_SLOT & super::slot::UNSURE != 0);
}

/// First word of every record.
///
/// ```text
///  63         62 .. 50   49         48      47    46          45     44                      0
///  tombstone  readers    exclusive  writer  late  superseded  valid  previous address in chain
/// ```
pub(crate) mod control {
    use super::{Address, slot};

    pub(crate) const PREVIOUS_MASK: u64 = slot::ADDRESS_MASK;
    /// Previous address of a record that was never published.
    pub(crate) const NOWHERE: u64 = PREVIOUS_MASK;
    /// Set in every record: a zero word is room that holds none.
    pub(crate) const VALID: u64 = 1 << 45;
    /// Not the newest of its key any more, or never published.
    pub(crate) const SUPERSEDED: u64 = 1 << 46;
    /// Its key is absent.
    pub(crate) const TOMBSTONE: u64 = 1 << 63;
    /// Superseded after a snapshot or a sweep began that went on: a hint to look closer.
    pub(crate) const LATE: u64 = 1 << 47;
    /// A writer has the record: other writers wait.
    pub(crate) const WRITER: u64 = 1 << 48;
    /// The writer changes the value in place: readers wait. Of a fixed record: a thread holds it,
    /// and others that write in place wait.
    pub(crate) const EXCLUSIVE: u64 = 1 << 49;
    pub(crate) const READERS_SHIFT: u32 = 50;
    const READERS_BITS: u32 = 13;
    pub(crate) const READER: u64 = 1 << READERS_SHIFT;
    /// The readers and writers of the record; without meaning once it is stored.
    pub(crate) const LOCKS: u64 = WRITER | EXCLUSIVE | READERS_MAX << READERS_SHIFT;
    /// From here readers wait for one to leave.
    pub(crate) const READERS_MAX: u64 = (1 << READERS_BITS) - 1;

    const _: () = assert!(LOCKS & (LATE | TOMBSTONE) == 0);
    const _: () = assert!(READERS_SHIFT + READERS_BITS == TOMBSTONE.ilog2());

    #[inline]
    pub(crate) fn previous(word: u64) -> Address {
        Address::from_units(word & PREVIOUS_MASK)
    }

    #[inline]
    pub(crate) fn readers(word: u64) -> u64 {
        (word >> READERS_SHIFT) & READERS_MAX
    }
}

/// Second word of a record of variable length: key length, value length, room for the value.
pub(crate) mod lengths {
    pub(crate) const KEY_BITS: u32 = 14;
    pub(crate) const VALUE_BITS: u32 = 25;
    pub(crate) const VALUE_SHIFT: u32 = KEY_BITS;
    pub(crate) const ROOM_SHIFT: u32 = KEY_BITS + VALUE_BITS;

    #[inline]
    pub(crate) fn word(key_len: usize, value_len: usize, room: usize) -> u64 {
        key_len as u64 | (value_len as u64) << VALUE_SHIFT | (room as u64) << ROOM_SHIFT
    }

    #[inline]
    pub(crate) fn key_len(word: u64) -> usize {
        (word & ((1 << KEY_BITS) - 1)) as usize
    }

    #[inline]
    pub(crate) fn value_len(word: u64) -> usize {
        ((word >> VALUE_SHIFT) & ((1 << VALUE_BITS) - 1)) as usize
    }

    #[inline]
    pub(crate) fn room(word: u64) -> usize {
        (word >> ROOM_SHIFT) as usize
    }

    const _: () = assert!(ROOM_SHIFT + VALUE_BITS == 64);
}

/// Record of a key and a value of 8 bytes each.
pub(crate) mod fixed {
    pub(crate) const KEY: usize = 8;
    pub(crate) const VALUE: usize = 16;
    pub(crate) const BYTES: usize = 24;
}

/// Record of variable length: control, lengths, key padded to 8, value padded to 8.
pub(crate) mod variable {
    pub(crate) const LENGTHS: usize = 8;
    pub(crate) const KEY: usize = 16;

    #[inline]
    pub(crate) fn value_offset(key_len: usize) -> usize {
        KEY + key_len.next_multiple_of(8)
    }

    #[inline]
    pub(crate) fn bytes(key_len: usize, room: usize) -> usize {
        value_offset(key_len) + room.next_multiple_of(8)
    }
}

/// The bit tables, as `docs/design/layout/hashlog.txt` shows them.
#[cfg(test)]
fn layout_table() -> String {
    use std::fmt::Write;
    let mut table = String::new();
    // Fields by their lowest bit and their width.
    let mut bits = |title: &str, rows: &[(u32, u32, &str, &str)]| {
        let _ = writeln!(table, "{title} (64 bits)\n  bits    field        meaning");
        for (shift, width, field, meaning) in rows {
            let _ = writeln!(table, "  {shift:>2}..{:<2}  {field:<11}  {meaning}", shift + width);
        }
        let _ = writeln!(table);
    };
    let mask = |mask: u64| (mask.trailing_zeros(), mask.count_ones());
    let (address_shift, address_bits) = mask(slot::ADDRESS_MASK);
    let flag = u64::ilog2;
    bits(
        "Slot",
        &[
            (
                address_shift,
                address_bits,
                "address",
                "newest record, in units of 8 bytes; 0: empty",
            ),
            (slot::FIELD_SHIFT, slot::FIELD_BITS, "tag", "a 1, then the tag bits that are known"),
            (flag(slot::PARITY), 1, "parity", "lowest bit of the depth"),
            (flag(slot::SHARED), 1, "shared", "the record may belong to another bucket"),
            (flag(slot::FROZEN), 1, "frozen", "the bucket is being split or packed"),
            (flag(slot::TENTATIVE), 1, "tentative", "an insert that is not decided"),
        ],
    );
    let (overflow_shift, overflow_bits) = mask(bucket::OVERFLOW_MASK);
    let depth_bits = bucket::DEPTH_MASK.count_ones();
    bits(
        "Link word of a bucket",
        &[
            (0, depth_bits, "depth", "low hash bits that all keys share"),
            (
                overflow_shift,
                overflow_bits,
                "overflow",
                "number of the next bucket, plus 1; 0: none",
            ),
            (flag(bucket::PACKED), 1, "packed", "flips when the chain is packed"),
            (flag(bucket::NO_SLOT), 1, "no slot", "set in the first bucket of a chain"),
            (flag(bucket::SHORT), 1, "short", "some slot knows fewer than 8 tag bits"),
            (flag(bucket::FROZEN), 1, "frozen", "the bucket is being split or packed"),
        ],
    );
    let (previous_shift, previous_bits) = mask(control::PREVIOUS_MASK);
    bits(
        "Control word of a record",
        &[
            (
                previous_shift,
                previous_bits,
                "previous",
                "next older record; all ones: never published",
            ),
            (flag(control::VALID), 1, "valid", "set in every record"),
            (flag(control::SUPERSEDED), 1, "superseded", "not the newest of its key, or never was"),
            (
                flag(control::LATE),
                1,
                "late",
                "superseded while a snapshot or a sweep went on: ask the chain",
            ),
            (flag(control::WRITER), 1, "writer", "writers wait; means nothing once stored"),
            (flag(control::EXCLUSIVE), 1, "exclusive", "readers wait; means nothing once stored"),
            (
                control::READERS_SHIFT,
                control::READERS_MAX.count_ones(),
                "readers",
                "readers inside; means nothing once stored",
            ),
            (flag(control::TOMBSTONE), 1, "tombstone", "the key is absent"),
        ],
    );
    bits(
        "Lengths word of a variable record",
        &[
            (0, lengths::KEY_BITS, "key", "bytes of the key"),
            (lengths::VALUE_SHIFT, lengths::VALUE_BITS, "value", "bytes of the value"),
            (
                lengths::ROOM_SHIFT,
                lengths::VALUE_BITS,
                "room",
                "bytes that a value may grow to in place",
            ),
        ],
    );
    let mut bytes = |title: String, rows: &[(usize, &str)]| {
        let _ = writeln!(table, "{title}\n  offset  part");
        for (offset, part) in rows {
            let _ = writeln!(table, "  {offset:>6}  {part}");
        }
    };
    bytes(
        format!("Bucket ({} bytes)", bucket::BYTES),
        &[(0, "7 slots, 8 bytes each"), (bucket::LINK * 8, "link word")],
    );
    bytes(
        format!("\nFixed record ({} bytes)", fixed::BYTES),
        &[(0, "control word"), (fixed::KEY, "key"), (fixed::VALUE, "value")],
    );
    bytes(
        format!(
            "\nVariable record of a key of 11 bytes and room for 16 ({} bytes)",
            variable::bytes(11, 16)
        ),
        &[
            (0, "control word"),
            (variable::LENGTHS, "lengths word"),
            (variable::KEY, "key, padded to 8 bytes"),
            (variable::value_offset(11), "value, padded to 8 bytes"),
        ],
    );
    table
}

#[cfg(test)]
mod tests {
    /// The document cannot drift: `cargo xtask layout --bless` writes it anew.
    #[test]
    fn layout_is_the_documented_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/layout/hashlog.txt");
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

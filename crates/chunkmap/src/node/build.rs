//! The writing of chunks and inner nodes, before they are published.

use sapwood_mem::sync::RawAtomicU64;
use sapwood_mem::sync::counter::AtomicU64;
use sapwood_mem::{Arena, OutOfMemory, SliceRef};

use crate::layout::{
    ChunkHead, ChunkLayout, DISTINCT, EXACT, FANOUT_MAX, FINGERPRINTS_PER_WORD, GROUP_ENTRIES,
    InnerHead, InnerLayout, KIND_CHUNK, KIND_INNER, PREFIX_BY_BOUNDS, TOMBSTONE, UNBOUNDED,
};
use crate::node::abbreviation::{abbreviate_foreign, common_prefix_len};
use crate::node::chunk::Gathered;
use crate::node::inner::Child;
use crate::node::record::Record;
use crate::node::shape::{SPAN_MAX, Shape, pick_varying};
use crate::node::ticket::Ticket;

/// The contents of a new chunk.
pub(crate) struct ChunkPlan<'a> {
    pub(crate) low: Option<&'a [u8]>,
    pub(crate) high: Option<&'a [u8]>,
    pub(crate) delta_cap: usize,
    /// In key order (I-SORTED).
    pub(crate) entries: &'a [Gathered],
    /// The shape that the entries' abbreviations were made with, if all were made
    /// with the same. If it is exact, it is so of all entries.
    pub(crate) abbreviated_with: Option<Shape<'a>>,
    /// Whether that shape, or another one, may be exact of the entries although it is not known to be.
    pub(crate) may_be_exact: bool,
    /// The ticket to begin with: of chunks in whose place this one comes.
    pub(crate) ticket: Option<Ticket>,
}

/// Writes a chunk.
///
/// # Safety
/// The entries' slices are live records of `arena`.
pub(crate) unsafe fn write_chunk(
    arena: &Arena,
    plan: &ChunkPlan<'_>,
) -> Result<SliceRef, OutOfMemory> {
    debug_assert!(plan.low.zip(plan.high).is_none_or(|(low, high)| low < high), "I-BOUNDS");
    // SAFETY: the caller's.
    let key = |entry: &Gathered| unsafe { Record::new(arena.ptr(entry.slice)) }.key();
    // A removed record can still be there beside its successor of the same key.
    debug_assert!(plan.entries.is_sorted_by_key(key), "I-SORTED");
    debug_assert!(
        plan.entries.first().is_none_or(|first| plan.low.is_none_or(|low| low <= key(first)))
    );
    debug_assert!(
        plan.entries.last().is_none_or(|last| plan.high.is_none_or(|high| key(last) < high))
    );
    let implied: &[u8] = match (plan.low, plan.high) {
        (Some(low), Some(high)) => &low[..common_prefix_len(low, high)],
        _ => &[],
    };
    let keys = || plan.entries.iter().map(key);
    let mut tails = [[0; SPAN_MAX]; 2];
    let [kept_tail, made_tail] = &mut tails;
    // Abbreviations of another shape stay in order; they are made anew, which
    // reads every key, only where more than one in eight no longer tells its key from
    // the one before, or where a shape is looked for that gives the keys.
    let kept = plan.abbreviated_with.filter(|_| ties(plan.entries) * 8 <= plan.entries.len());
    let kept = match kept {
        Some(shape) if shape.tail.is_none() && plan.may_be_exact => {
            shape.exact_of(keys(), kept_tail)
        }
        kept => kept,
    };
    let mut template = [0; SPAN_MAX];
    let shape = match (kept, plan.entries) {
        (Some(shape), _) => shape,
        (None, [first, .., last]) => {
            let prefix = &key(first)[..common_prefix_len(key(first), key(last))];
            match pick_varying(keys(), prefix.len(), &mut template) {
                Some((picks, span)) => {
                    Shape { prefix, picks, template: &template[..span], tail: None }
                }
                None => Shape::plain(prefix),
            }
        }
        (None, _) => Shape::plain(implied),
    };

    let exact = match kept {
        Some(_) => None,
        None => shape.exact_of(keys(), made_tail),
    };
    let shape = exact.unwrap_or(shape);
    let abbreviated: Vec<Gathered>;
    let entries = match kept {
        Some(_) => plan.entries,
        None => {
            let anew = |of: &Gathered| Gathered { abbreviation: shape.abbreviate(key(of)), ..*of };
            abbreviated = plan.entries.iter().map(anew).collect();
            &abbreviated
        }
    };
    let distinct = if ties(entries) == 0 { DISTINCT } else { 0 };

    let (low_bytes, high_bytes) = (plan.low.unwrap_or_default(), plan.high.unwrap_or_default());
    let layout = ChunkLayout::new(plan.entries.len(), plan.delta_cap, shape.template.len());
    let tail = shape.tail.unwrap_or_default();
    let behind = [low_bytes, high_bytes, shape.prefix, tail];
    let bytes = layout.bytes + behind.iter().map(|part| part.len()).sum::<usize>();
    // Whole cache lines start on one.
    let slice = arena.alloc(bytes.next_multiple_of(64))?;
    let base = arena.ptr(slice);
    let is_implied = if implied.starts_with(shape.prefix) { PREFIX_BY_BOUNDS } else { 0 };
    let is_exact = if shape.tail.is_some() { EXACT } else { 0 };
    let bound_len = |bound: Option<&[u8]>| bound.map_or(UNBOUNDED, |bytes| bytes.len() as u32);
    // SAFETY: the slice is ours alone and holds everything the layout says.
    unsafe {
        let head = base.cast::<ChunkHead>();
        (&raw mut (*head).kind).write(KIND_CHUNK);
        (&raw mut (*head).span).write(shape.template.len() as u16);
        (&raw mut (*head).sorted_len).write(plan.entries.len() as u32);
        (&raw mut (*head).delta_cap).write(plan.delta_cap as u16);
        (&raw mut (*head).tail_len).write(tail.len() as u16);
        (&raw mut (*head).prefix_len).write(shape.prefix.len() as u32);
        (&raw mut (*head).low_len).write(bound_len(plan.low));
        (&raw mut (*head).high_len).write(bound_len(plan.high));
        (&raw mut (*head).flags).write(is_implied | is_exact | distinct);
        (&raw mut (*head).walks).write(AtomicU64::new(0));
        (&raw mut (*head).picks).write(shape.picks);
        RawAtomicU64::init(&raw mut (*head).claim, 0);
        RawAtomicU64::init(&raw mut (*head).tombstones, Ticket::word(plan.ticket));
        RawAtomicU64::init(&raw mut (*head).edges, 0);
        for group in 0..plan.delta_cap.div_ceil(FINGERPRINTS_PER_WORD) {
            RawAtomicU64::init(base.add(layout.fingerprints + group * 8).cast(), 0);
        }
        for at in 0..plan.delta_cap {
            RawAtomicU64::init(base.add(layout.delta_words + at * 8).cast(), 0);
            RawAtomicU64::init(base.add(layout.delta_abbreviations + at * 8).cast(), 0);
        }
        // INVARIANT: I-SORTED: the plan's entries are in key order, and abbreviations keep it.
        for (group, entries) in entries.chunks(GROUP_ENTRIES).enumerate() {
            let first = group * GROUP_ENTRIES;
            let abbreviations = base.add(layout.sorted_abbreviation(first)).cast::<u64>();
            let words = base.add(layout.sorted_word(first)).cast::<RawAtomicU64>();
            for (at, entry) in entries.iter().enumerate() {
                abbreviations.add(at).write(entry.abbreviation);
                RawAtomicU64::init(words.add(at), entry.slice.word());
            }
            // The last group is filled up with what no search stops at.
            for at in entries.len()..GROUP_ENTRIES {
                abbreviations.add(at).write(u64::MAX);
                RawAtomicU64::init(words.add(at), TOMBSTONE);
            }
            let sample = base.add(layout.samples).cast::<u64>().add(group);
            sample.write(entries[0].abbreviation);
        }
        base.add(layout.template)
            .copy_from_nonoverlapping(shape.template.as_ptr(), shape.template.len());
        let mut end = base.add(layout.bytes);
        for part in behind {
            end.copy_from_nonoverlapping(part.as_ptr(), part.len());
            end = end.add(part.len());
        }
    }
    Ok(slice)
}

/// Entries that share their abbreviations with those before them.
fn ties(entries: &[Gathered]) -> usize {
    entries.windows(2).filter(|pair| pair[0].abbreviation == pair[1].abbreviation).count()
}

/// Writes an inner node over `children`; the separator of the first is not kept.
pub(crate) fn write_inner(
    arena: &Arena,
    height: u8,
    children: &[Child<'_>],
) -> Result<SliceRef, OutOfMemory> {
    assert!((1..=FANOUT_MAX).contains(&children.len()), "as many children as an inner node has");
    let separators = || children[1..].iter().map(|child| child.separator);
    debug_assert!(separators().is_sorted_by(|low, high| low < high), "separators divide the keys");
    let prefix = match children {
        [_, first, .., last] => {
            &first.separator[..common_prefix_len(first.separator, last.separator)]
        }
        _ => &[],
    };
    let layout = InnerLayout::new(children.len(), prefix.len());
    let bytes = layout.bytes + separators().map(<[u8]>::len).sum::<usize>();
    let slice = arena.alloc(bytes.next_multiple_of(64))?;
    let base = arena.ptr(slice);
    // SAFETY: the slice is ours alone and holds everything the layout says.
    unsafe {
        let head = base.cast::<InnerHead>();
        (&raw mut (*head).kind).write(KIND_INNER);
        (&raw mut (*head).height).write(height);
        (&raw mut (*head).len).write(children.len() as u32);
        (&raw mut (*head).prefix_len).write(prefix.len() as u32);
        (&raw mut (*head).children_offset).write(layout.children as u32);
        RawAtomicU64::init(&raw mut (*head).latch, 0);
        RawAtomicU64::init(&raw mut (*head).state, 0);
        for (at, child) in children.iter().enumerate() {
            RawAtomicU64::init(base.add(layout.children + at * 8).cast(), child.node.word());
        }
        let mut end = 0;
        for (at, separator) in separators().enumerate() {
            let bytes = base.add(layout.bytes + end);
            bytes.copy_from_nonoverlapping(separator.as_ptr(), separator.len());
            end += separator.len();
            base.add(layout.ends + at * 4).cast::<u32>().write(end as u32);
        }
        let abbreviations = base.add(layout.abbreviations).cast::<u64>();
        for (at, separator) in separators().enumerate() {
            abbreviations.add(at).write(abbreviate_foreign(separator, prefix));
        }
        if InnerLayout::has_samples(children.len()) {
            // No search stops at what is filled up.
            for at in separators().len()..separators().len().next_multiple_of(GROUP_ENTRIES) {
                abbreviations.add(at).write(u64::MAX);
            }
            let samples = base.add(InnerLayout::SAMPLES).cast::<u64>();
            for group in 0..FANOUT_MAX / GROUP_ENTRIES {
                let first = group * GROUP_ENTRIES;
                let sample = if first < separators().len() {
                    abbreviations.add(first).read()
                } else {
                    u64::MAX
                };
                samples.add(group).write(sample);
            }
        }
        base.add(InnerLayout::prefix(children.len()))
            .copy_from_nonoverlapping(prefix.as_ptr(), prefix.len());
    }
    Ok(slice)
}

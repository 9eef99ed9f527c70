use std::collections::BTreeMap;

use super::*;

fn check_sums(arena: &Arena) {
    let stats = arena.stats();
    let sum = stats.live_bytes + stats.free_bytes + stats.waste_bytes;
    assert_eq!(stats.reserved_bytes, sum, "{stats:?}");
}

/// Nothing lives in it any more, and no memory is kept.
#[track_caller]
fn gives_all_back(arena: &Arena) {
    check_sums(arena);
    assert_eq!(arena.stats().live_bytes, 0);
    arena.trim();
    assert_eq!(arena.stats().reserved_bytes, 0);
}

/// Live slices never overlap, keep their bytes, and every byte is accounted for.
#[test]
fn slices_keep_their_bytes() {
    for block_bytes in [4096, 64 << 10, 2 << 20] {
        let arena = Arena::new(ArenaOptions { block_bytes, ..ArenaOptions::default() });
        let mut rng = 7u64;
        let mut live: Vec<(SliceRef, usize, u8)> = Vec::new();
        for step in 0..20_000u64 {
            rng = rng.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let grow = step < 10_000;
            if live.is_empty() || (rng >> 60) < if grow { 10 } else { 6 } {
                let exponent = (rng >> 20) % 13;
                let bytes = 1 + (rng >> 33) as usize % (1 << exponent).max(16);
                let slice = arena.alloc(bytes).expect("no budget");
                assert!(arena.capacity(slice) >= bytes);
                let mark = step as u8;
                // SAFETY: I-LIVE: the slice has room for `bytes`.
                unsafe { arena.ptr(slice).write_bytes(mark, bytes) };
                live.push((slice, bytes, mark));
            } else {
                let (slice, bytes, mark) = live.swap_remove((rng >> 33) as usize % live.len());
                // SAFETY: I-LIVE: until the `free` below; `bytes` were written.
                unsafe {
                    let stored = std::slice::from_raw_parts(arena.ptr(slice), bytes);
                    assert!(stored.iter().all(|byte| *byte == mark));
                    arena.free(slice);
                }
            }
            if step % 1000 == 0 {
                check_sums(&arena);
            }
        }
        let mut ranges = BTreeMap::new();
        for (slice, ..) in &live {
            ranges.insert(arena.ptr(*slice) as usize, arena.capacity(*slice));
        }
        assert_eq!(ranges.len(), live.len());
        let ends = ranges.iter().map(|(base, bytes)| base + bytes);
        assert!(ends.zip(ranges.keys().skip(1)).all(|(end, next)| end <= *next));
        for (slice, ..) in live {
            // SAFETY: I-LIVE: freed once, and not read any more.
            unsafe { arena.free(slice) };
        }
        gives_all_back(&arena);
    }
}

#[test]
fn memory_of_one_size_serves_every_other() {
    let arena = Arena::new(ArenaOptions::default());
    let mut most = 0;
    for bytes in (16..4000).step_by(40) {
        let slices: Vec<_> =
            (0..(8 << 20) / bytes).map(|_| arena.alloc(bytes).expect("no budget")).collect();
        most = most.max(arena.stats().reserved_bytes);
        for slice in slices {
            // SAFETY: I-LIVE: freed once, and not read.
            unsafe { arena.free(slice) };
        }
    }
    assert!(most <= 14 << 20, "8 MiB at a time took {most} bytes");
}

#[test]
fn threads_free_what_others_allocated() {
    let arena = Arena::new(ArenaOptions { block_bytes: 64 << 10, ..ArenaOptions::default() });
    let (send, receive) = std::sync::mpsc::sync_channel::<(SliceRef, usize)>(64);
    let receive = Mutex::new(receive);
    std::thread::scope(|scope| {
        for thread in 0..3usize {
            let (send, arena) = (send.clone(), &arena);
            scope.spawn(move || {
                for i in 0..5000usize {
                    let bytes = 8 + (i * 37 + thread * 11) % 900;
                    let slice = arena.alloc(bytes).expect("no budget");
                    // SAFETY: I-LIVE: ours until sent.
                    unsafe { arena.ptr(slice).write_bytes(bytes as u8, bytes) };
                    send.send((slice, bytes)).expect("receivers outlive senders");
                }
            });
        }
        drop(send);
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = receive.lock().expect("no panics").recv();
                    let Ok((slice, bytes)) = next else { break };
                    // SAFETY: sent to this thread alone, which frees it.
                    unsafe {
                        let stored = std::slice::from_raw_parts(arena.ptr(slice), bytes);
                        assert!(stored.iter().all(|byte| *byte == bytes as u8));
                        arena.free(slice);
                    }
                }
            });
        }
    });
    assert_eq!(arena.stats().live_bytes, 0);
    check_sums(&arena);
}

#[test]
fn at_the_budget_freed_slices_serve_again() {
    let arena = Arena::new(ArenaOptions { budget: Some(1 << 20), ..ArenaOptions::default() });
    let mut slices = Vec::new();
    let refused = loop {
        match arena.alloc(1000) {
            Ok(slice) => slices.push(slice),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.budget, 1 << 20);
    assert!(refused.used > (1 << 20) * 9 / 10, "{refused}");
    assert!(arena.alloc(1 << 20).is_err(), "a large slice does not fit either");
    // SAFETY: I-LIVE: freed once, and not read.
    unsafe { arena.free(slices.pop().expect("about a thousand")) };
    assert!(arena.alloc(1000).is_ok());
    for slice in slices {
        // SAFETY: as above.
        unsafe { arena.free(slice) };
    }
    let large = arena.alloc(700 << 10).expect("the freed blocks make room");
    // SAFETY: as above.
    unsafe { arena.free(large) };
}

fn free_all(arena: &Arena, slices: impl IntoIterator<Item = SliceRef>) {
    for slice in slices {
        // SAFETY: I-LIVE: freed once, and no thread reads it.
        unsafe { arena.free(slice) };
    }
}

/// One in eight slices of `bytes_of`, here and there in many blocks.
fn sparse(arena: &Arena, bytes_of: impl Fn(usize) -> usize) -> Vec<SliceRef> {
    let slices: Vec<_> =
        (0..20_000).map(|at| arena.alloc(bytes_of(at)).expect("no budget")).collect();
    let (kept, gone): (Vec<_>, Vec<_>) =
        slices.into_iter().enumerate().partition(|(at, _)| at * 7 % 8 == 0);
    free_all(arena, gone.into_iter().map(|(_, slice)| slice));
    kept.into_iter().map(|(_, slice)| slice).collect()
}

#[test]
fn drained_blocks_take_nothing_new_and_go_back_when_they_are_empty() {
    for block_bytes in [4096, 64 << 10, 2 << 20] {
        for bytes_of in [|_| 200, |at: usize| at * 37 % 2_000] {
            let arena = Arena::new(ArenaOptions { block_bytes, ..ArenaOptions::default() });
            let mut slices = sparse(&arena, bytes_of);
            let before = arena.stats();
            assert!(!arena.begin_drain(before.reserved_bytes), "not all of it can go");
            assert!(arena.begin_drain(before.reserved_bytes / 2));
            for slice in &mut slices {
                let moved = arena.alloc_elsewhere(arena.capacity(*slice)).expect("no budget");
                assert!(!arena.is_drained(moved), "new slices go elsewhere");
                let gone = match arena.is_drained(*slice) {
                    true => std::mem::replace(slice, moved),
                    false => moved,
                };
                free_all(&arena, [gone]);
            }
            check_sums(&arena);
            assert!(arena.end_drain());
            assert!(!arena.end_drain(), "it has ended");
            arena.trim();
            let after = arena.stats();
            assert_eq!(after.live_bytes, before.live_bytes);
            let told = format!("blocks of {block_bytes}: {before:?}, then {after:?}");
            assert!(after.reserved_bytes * 2 <= before.reserved_bytes, "{told}");
            free_all(&arena, slices);
            gives_all_back(&arena);
        }
    }
}

/// Blocks that are being emptied serve again before anything is refused.
#[test]
fn a_drain_ends_where_the_budget_does() {
    let options = ArenaOptions { block_bytes: 64 << 10, ..ArenaOptions::default() };
    let arena = Arena::new(ArenaOptions { budget: Some(1 << 20), ..options });
    let mut slices = Vec::new();
    while let Ok(slice) = arena.alloc(200) {
        slices.push(slice);
    }
    let full = slices.len();
    let kept = slices.iter().step_by(8).copied().collect::<Vec<_>>();
    slices.retain(|slice| !kept.contains(slice));
    free_all(&arena, slices);
    assert!(arena.begin_drain(1));
    let mut fresh = Vec::new();
    while let Ok(slice) = arena.alloc_elsewhere(200) {
        assert!(!arena.is_drained(slice));
        fresh.push(slice);
    }
    assert!(fresh.len() + kept.len() < full / 2, "most of it is drained");
    while let Ok(slice) = arena.alloc(200) {
        fresh.push(slice);
    }
    assert_eq!(fresh.len() + kept.len(), full, "all of it serves");
    assert!(!arena.end_drain(), "it has ended by itself");
    free_all(&arena, fresh.into_iter().chain(kept));
    check_sums(&arena);
}

/// Slices in a row lie one behind the other, whatever was freed before and comes in between, and
/// what they leave serves other slices.
#[test]
fn rows_lie_together_and_their_holes_serve() {
    for block_bytes in [64 << 10, 2 << 20] {
        for bytes in [24, 200, 1_112] {
            let arena = Arena::new(ArenaOptions { block_bytes, ..ArenaOptions::default() });
            let kept = sparse(&arena, |_| bytes);
            let mut row: Vec<SliceRef> = Vec::new();
            let mut between = Vec::new();
            for at in 0..2_000 {
                row.push(arena.alloc_in_row(bytes).expect("no budget"));
                if at % 3 == 0 {
                    between.push(arena.alloc(bytes).expect("no budget"));
                }
            }
            check_sums(&arena);
            let together = row.windows(2).filter(|pair| pair[1].follows(pair[0])).count();
            // A row ends where its span does, which is an eighth of the size's at first.
            assert!(together > 1_800, "{together} of {} in blocks of {block_bytes}", row.len());
            let mut bases: Vec<_> = row.iter().chain(&between).chain(&kept).collect();
            bases.sort_unstable_by_key(|slice| arena.ptr(**slice));
            let apart = |pair: &[&SliceRef]| {
                arena.ptr(*pair[0]).wrapping_add(arena.capacity(*pair[0])) <= arena.ptr(*pair[1])
            };
            assert!(bases.windows(2).all(apart), "I-APART");
            // Every second one goes: as many fit in without more memory.
            let before = arena.stats();
            let (gone, stay): (Vec<_>, Vec<_>) =
                row.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
            free_all(&arena, gone.into_iter().map(|(_, slice)| slice));
            let holes = arena.stats().free_bytes / arena.capacity(stay[0].1) as u64;
            let mut filled = Vec::new();
            while arena.stats().free_bytes > before.free_bytes && filled.len() < holes as usize {
                filled.push(arena.alloc(bytes).expect("no budget"));
            }
            assert!(filled.len() >= 1_000);
            assert_eq!(arena.stats().reserved_bytes, before.reserved_bytes);
            free_all(&arena, filled.into_iter().chain(between).chain(kept));
            free_all(&arena, stay.into_iter().map(|(_, slice)| slice));
            gives_all_back(&arena);
        }
    }
}

/// Slices in a row come from no drained block, and a row's end serves others before memory is refused.
#[test]
fn rows_end_with_a_drain_and_with_the_budget() {
    let options = ArenaOptions { block_bytes: 64 << 10, ..ArenaOptions::default() };
    let arena = Arena::new(ArenaOptions { budget: Some(1 << 20), ..options });
    let mut slices = Vec::new();
    while let Ok(slice) = arena.alloc(200) {
        slices.push(slice);
    }
    let full = slices.len();
    assert!(arena.alloc_in_row(200).is_err(), "no span is to be had");
    free_all(&arena, slices.drain(..full / 2));
    slices.push(arena.alloc_in_row(200).expect("a half is free"));
    while let Ok(slice) = arena.alloc(200) {
        slices.push(slice);
    }
    assert!(slices.len() >= full, "the row's end serves, too");
    // Half of it is sparse, and half of it free.
    let kept: Vec<_> = slices[..full / 2].iter().step_by(8).copied().collect();
    slices.retain(|slice| !kept.contains(slice));
    free_all(&arena, slices);
    let first = arena.alloc_in_row(200).expect("most is free");
    assert!(arena.begin_drain(1));
    let second = arena.alloc_in_row(200).expect("most is free");
    assert!(!arena.is_drained(second));
    check_sums(&arena);
    free_all(&arena, [first, second].into_iter().chain(kept));
    arena.end_drain();
    gives_all_back(&arena);
}

/// Sparse spans are emptied into others of their size; what lies beside them stays, and serves in a row.
#[test]
fn drained_spans_serve_other_sizes_when_they_are_empty() {
    for block_bytes in [16 << 10, 64 << 10, 2 << 20] {
        let arena = Arena::new(ArenaOptions { block_bytes, ..ArenaOptions::default() });
        let row: Vec<_> = (0..2_000).map(|_| arena.alloc_in_row(200).expect("no budget")).collect();
        let mut slices = sparse(&arena, |_| 200);
        let before = arena.stats();
        assert!(!arena.begin_drain_spans(before.reserved_bytes), "not all of it can go");
        assert!(arena.begin_drain_spans(before.free_bytes / 2));
        assert!(row.iter().all(|slice| !arena.is_drained(*slice)), "full spans stay");
        let drained = slices.iter().filter(|slice| arena.is_drained(**slice)).count();
        assert!(drained > slices.len() / 2, "{drained} of {}", slices.len());
        for slice in slices.iter_mut().filter(|slice| arena.is_drained(**slice)) {
            let moved = arena.alloc_elsewhere(200).expect("no budget");
            assert!(!arena.is_drained(moved), "new slices go elsewhere");
            free_all(&arena, [std::mem::replace(slice, moved)]);
        }
        check_sums(&arena);
        let after = arena.stats();
        let freed = after.extent_bytes - before.extent_bytes.min(after.extent_bytes)
            + (before.reserved_bytes - after.reserved_bytes);
        assert!(freed * 4 > before.free_bytes, "{before:?}, then {after:?}");
        assert_eq!(after.live_bytes, before.live_bytes);
        assert!(arena.end_drain());
        assert!(slices.iter().all(|slice| !arena.is_drained(*slice)), "it has ended");
        free_all(&arena, slices.into_iter().chain(row));
        gives_all_back(&arena);
    }
}

/// Idle blocks are few beside what is mapped, also while that becomes less.
#[test]
fn idle_blocks_are_an_eighth_at_most_or_one() {
    let options = ArenaOptions { block_bytes: 64 << 10, ..ArenaOptions::default() };
    let arena = Arena::new(options);
    let mut slices: Vec<_> = (0..400).map(|_| arena.alloc(32 << 10).expect("no budget")).collect();
    while let Some(slice) = slices.pop() {
        free_all(&arena, [slice]);
        let stats = arena.stats();
        let most = (stats.reserved_bytes / 8).max(64 << 10);
        // Beside idle blocks, half of the one that is being emptied is free.
        assert!(stats.free_bytes <= most + (32 << 10), "{stats:?}");
    }
}

#[test]
fn an_unused_arena_maps_nothing() {
    let stats = Arena::new(ArenaOptions::default()).stats();
    assert_eq!(stats.reserved_bytes, 0);
    assert!(stats.table_bytes < 16 << 10, "{stats:?}");
}

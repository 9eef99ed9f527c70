//! Kernels: the inner loops over many numbers.
//!
//! Loops over lanes: contiguous words of 64 bits, one an object, of a run that fits into the first
//! cache. They are written so that the compiler makes vector code of them, once for each set of vector
//! instructions that the processor may have ([`Level`]). A lane holds a whole number of up to 64 bits
//! as an unsigned one in the same order: signed ones have their sign bit flipped. A mask has all bits
//! of a lane set, or none.

use sapwood_mem::vector::Level;

use crate::value::comparison::Comparison;
use crate::value::number::{Form, Number, Order};

/// Objects of a run: 8 KiB a column.
pub(crate) const RUN: usize = 1024;

pub(crate) type Lanes = [u64; RUN];

/// The sign bit of a lane.
pub(crate) const SIGN: u64 = 1 << 63;

/// The lane of an object that has no value, in a column where that may be. A value that would have this lane has none
/// there.
pub(crate) const MISSING: u64 = u64::MAX;

/// Reads a number from the beginning of each item into the lanes. `bytes` begin with the first item,
/// and all of the lanes' items lie in them.
pub(crate) fn gather(level: Level, number: Number, bytes: &[u8], stride: usize, lanes: &mut [u64]) {
    match number.bytes() {
        1 => load(bytes, stride, lanes, |item| u8::from_le_bytes(item).into()),
        2 => load(bytes, stride, lanes, |item| u16::from_le_bytes(item).into()),
        4 => load(bytes, stride, lanes, |item| u32::from_le_bytes(item).into()),
        _ => load(bytes, stride, lanes, u64::from_le_bytes),
    }
    order(level, lanes, number);
}

/// The lane of one number, of which `bytes` begin with the bytes.
pub(crate) fn lane(number: Number, bytes: &[u8]) -> u64 {
    let raw = match number.bytes() {
        1 => first(bytes, |item| u8::from_le_bytes(item).into()),
        2 => first(bytes, |item| u16::from_le_bytes(item).into()),
        4 => first(bytes, |item| u32::from_le_bytes(item).into()),
        _ => first(bytes, u64::from_le_bytes),
    };
    ordered(number, raw)
}

/// A loop of its own for distances that are common, so that the compiler knows them.
fn load<const WIDTH: usize>(
    bytes: &[u8],
    stride: usize,
    lanes: &mut [u64],
    read: impl Fn([u8; WIDTH]) -> u64,
) {
    match stride {
        8 => load_at::<WIDTH, 8>(bytes, lanes, read),
        16 => load_at::<WIDTH, 16>(bytes, lanes, read),
        24 => load_at::<WIDTH, 24>(bytes, lanes, read),
        32 => load_at::<WIDTH, 32>(bytes, lanes, read),
        _ => {
            for (lane, item) in lanes.iter_mut().zip(bytes.chunks(stride)) {
                *lane = first(item, &read);
            }
        }
    }
}

fn load_at<const WIDTH: usize, const STRIDE: usize>(
    bytes: &[u8],
    lanes: &mut [u64],
    read: impl Fn([u8; WIDTH]) -> u64,
) {
    let (items, rest) = bytes.as_chunks::<STRIDE>();
    for (lane, item) in lanes.iter_mut().zip(items) {
        *lane = first(item, &read);
    }
    // The last item may end where the bytes do.
    if let Some(lane) = lanes.get_mut(items.len()) {
        *lane = first(rest, &read);
    }
}

#[inline(always)]
fn first<const WIDTH: usize>(item: &[u8], read: impl Fn([u8; WIDTH]) -> u64) -> u64 {
    read(*item.first_chunk().expect("items are as wide as the numbers read from them"))
}

/// From bytes, read as if the least significant came first, to a lane.
#[inline(always)]
fn ordered(number: Number, raw: u64) -> u64 {
    // To the upper end, where the sign bit of every width is that of a lane.
    let shift = 64 - 8 * number.bytes() as u32;
    let upper = match number.order() {
        Order::Little => raw << shift,
        Order::Big | Order::Ordered => raw.swap_bytes(),
    };
    match (number.form(), number.order()) {
        (Form::Signed, Order::Ordered) => {
            ((upper ^ SIGN).cast_signed() >> shift).cast_unsigned() ^ SIGN
        }
        (Form::Signed, _) => (upper.cast_signed() >> shift).cast_unsigned() ^ SIGN,
        (Form::Unsigned | Form::Float, _) => upper >> shift,
    }
}

/// Declares loops, each compiled for every set of vector instructions.
macro_rules! kernels {
    ($(
        $(#[doc = $doc:literal])*
        fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block
    )*) => {$(
        $(#[doc = $doc])*
        pub(crate) fn $name(level: Level, $($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn inner($($argument: $type),*) $(-> $result)? $body
            level.run(
                #[inline(always)]
                || inner($($argument),*),
            )
        }
    )*};
}

kernels! {
    /// Makes lanes of raw bytes.
    fn order(lanes: &mut [u64], number: Number) {
        match (number.form(), number.order(), number.bytes()) {
            (Form::Unsigned, Order::Little, _) => {}
            (Form::Signed, Order::Little, 8) => lanes.iter_mut().for_each(|lane| *lane ^= SIGN),
            _ => lanes.iter_mut().for_each(|lane| *lane = ordered(number, *lane)),
        }
    }

    /// The sum of the lanes, in two halves that cannot overflow in a run.
    fn sum(lanes: &[u64]) -> u128 {
        debug_assert!(lanes.len() <= RUN);
        let (mut low, mut high) = (0, 0);
        for lane in lanes {
            low += lane & 0xFFFF_FFFF;
            high += lane >> 32;
        }
        (u128::from(high) << 32) + u128::from(low)
    }

    /// The sum of the lanes under the mask.
    fn sum_masked(lanes: &[u64], mask: &[u64]) -> u128 {
        debug_assert!(lanes.len() <= RUN);
        let (mut low, mut high) = (0, 0);
        for (lane, mask) in lanes.iter().zip(mask) {
            let lane = lane & mask;
            low += lane & 0xFFFF_FFFF;
            high += lane >> 32;
        }
        (u128::from(high) << 32) + u128::from(low)
    }

    /// The least lane; the greatest number if there is none.
    fn least(lanes: &[u64]) -> u64 {
        lanes.iter().fold(u64::MAX, |least, &lane| least.min(lane))
    }

    /// The same under the mask.
    fn least_masked(lanes: &[u64], mask: &[u64]) -> u64 {
        lanes.iter().zip(mask).fold(u64::MAX, |least, (lane, mask)| least.min(lane | !mask))
    }

    /// The greatest lane; zero if there is none.
    fn greatest(lanes: &[u64]) -> u64 {
        lanes.iter().fold(0, |greatest, &lane| greatest.max(lane))
    }

    /// The same under the mask.
    fn greatest_masked(lanes: &[u64], mask: &[u64]) -> u64 {
        lanes.iter().zip(mask).fold(0, |greatest, (lane, mask)| greatest.max(lane & mask))
    }

    /// How many lanes the mask has.
    fn count(mask: &[u64]) -> u64 {
        mask.iter().map(|mask| mask & 1).sum()
    }

    /// Sets the mask of each lane that compares so with `constant`, which is beyond all lanes perhaps.
    fn compare(lanes: &[u64], comparison: Comparison, constant: i128, mask: &mut [u64]) {
        let Ok(constant) = u64::try_from(constant) else {
            // Every lane is on the same side of it.
            let order = 0.cmp(&constant);
            return mask.fill(mask_of(comparison.holds(order)));
        };
        macro_rules! each {
            ($compare:expr) => {
                for (mask, lane) in mask.iter_mut().zip(lanes) {
                    *mask = mask_of($compare(lane, &constant));
                }
            };
        }
        match comparison {
            Comparison::Equal => each!(u64::eq),
            Comparison::NotEqual => each!(u64::ne),
            Comparison::Less => each!(u64::lt),
            Comparison::LessOrEqual => each!(u64::le),
            Comparison::Greater => each!(u64::gt),
            Comparison::GreaterOrEqual => each!(u64::ge),
        }
    }

    /// Sets the mask of each lane that compares so with the other one at its place.
    fn compare_pairs(lanes: &[u64], others: &[u64], comparison: Comparison, mask: &mut [u64]) {
        macro_rules! each {
            ($compare:expr) => {
                for ((mask, lane), other) in mask.iter_mut().zip(lanes).zip(others) {
                    *mask = mask_of($compare(lane, other));
                }
            };
        }
        match comparison {
            Comparison::Equal => each!(u64::eq),
            Comparison::NotEqual => each!(u64::ne),
            Comparison::Less => each!(u64::lt),
            Comparison::LessOrEqual => each!(u64::le),
            Comparison::Greater => each!(u64::gt),
            Comparison::GreaterOrEqual => each!(u64::ge),
        }
    }

    /// Sets the mask of each lane that is one of `set`, which ascends.
    fn among(lanes: &[u64], set: &[u64], mask: &mut [u64]) {
        for (mask, lane) in mask.iter_mut().zip(lanes) {
            *mask = mask_of(set.binary_search(lane).is_ok());
        }
    }

    /// Keeps of the mask the lanes that have a value.
    fn present(lanes: &[u64], mask: &mut [u64]) {
        for (mask, lane) in mask.iter_mut().zip(lanes) {
            *mask &= mask_of(*lane != MISSING);
        }
    }

    /// Makes a mask of lanes: those that agree with `equals` in the bits of `bits`.
    fn agree(lanes: &mut [u64], bits: u64, equals: u64) {
        lanes.iter_mut().for_each(|lane| *lane = mask_of(*lane & bits == equals));
    }

    /// Sets the mask of each object whose bit is set, from object `begin` on.
    fn spread(bits: &[u64], begin: usize, mask: &mut [u64]) {
        for (at, mask) in (begin..).zip(mask) {
            *mask = mask_of(bits[at / 64] >> (at % 64) & 1 == 1);
        }
    }

    /// Keeps of the mask the lanes from `first` to `last`.
    fn within(lanes: &[u64], first: u64, last: u64, mask: &mut [u64]) {
        for (mask, lane) in mask.iter_mut().zip(lanes) {
            *mask &= mask_of(*lane >= first) & mask_of(*lane <= last);
        }
    }

    /// Sets the bit of each lane that the mask has. There are bits for all.
    fn pack(mask: &[u64], bits: &mut [u64]) {
        for (mask, bits) in mask.chunks(64).zip(bits) {
            *bits = mask.iter().enumerate().fold(0, |bits, (at, mask)| bits | (mask & 1) << at);
        }
    }

    /// Keeps what both masks have.
    fn and(mask: &mut [u64], other: &[u64]) {
        mask.iter_mut().zip(other).for_each(|(mask, other)| *mask &= other);
    }

    /// Adds what the other mask has.
    fn or(mask: &mut [u64], other: &[u64]) {
        mask.iter_mut().zip(other).for_each(|(mask, other)| *mask |= other);
    }

    /// The sum of the values, in two halves that cannot overflow: there are below 2^31.
    fn sum_signed(values: &[i64]) -> i128 {
        let (mut low, mut high) = (0, 0);
        for value in values {
            low += value.cast_unsigned() & 0xFFFF_FFFF;
            high += value >> 32;
        }
        (i128::from(high) << 32) + i128::from(low)
    }

    /// The sum of the words, signed numbers, and the least and the greatest of them and of `extremes`.
    /// There are below 2^31.
    fn span_of_words(words: &[[u8; 8]], extremes: (i64, i64)) -> (i128, (i64, i64)) {
        let (mut low, mut high) = (0, 0);
        let (mut least, mut greatest) = extremes;
        for word in words {
            let value = i64::from_le_bytes(*word);
            low += value.cast_unsigned() & 0xFFFF_FFFF;
            high += value >> 32;
            least = least.min(value);
            greatest = greatest.max(value);
        }
        ((i128::from(high) << 32) + i128::from(low), (least, greatest))
    }

    /// Adds to each word, a signed number, one of two parts: `more` where the key lies below a word, most
    /// significant byte first. Answers how many got that, the sum of the words before, of which there are
    /// below 2^31, and whether one left 64 bits and so is another now.
    fn add_below(keys: &[[u8; 8]], below: u64, parts: (i64, i64), words: &mut [[u8; 8]]) -> (u64, i128, bool) {
        let (mut got_more, mut low, mut high, mut overflows) = (0, 0, 0, 0);
        let (least, more) = parts;
        for (key, word) in keys.iter().zip(words) {
            let is_below = u64::from_be_bytes(*key) < below;
            let part = if is_below { more } else { least };
            let before = i64::from_le_bytes(*word);
            let after = before.wrapping_add(part);
            *word = after.to_le_bytes();
            got_more += u64::from(is_below);
            overflows |= (before ^ after) & (part ^ after);
            low += before.cast_unsigned() & 0xFFFF_FFFF;
            high += before >> 32;
        }
        (got_more, (i128::from(high) << 32) + i128::from(low), overflows < 0)
    }

    /// Writes `chosen` for each key that lies below a word, most significant byte first, and `other`
    /// for those that do not. Answers how many do.
    fn choose_below(keys: &[[u8; 8]], word: u64, chosen: i64, other: i64, out: &mut [i64]) -> u64 {
        let mut count = 0;
        for (out, key) in out.iter_mut().zip(keys) {
            let is_below = u64::from_be_bytes(*key) < word;
            *out = if is_below { chosen } else { other };
            count += u64::from(is_below);
        }
        count
    }

    /// How many keys lie below `first`, most significant byte first. Those from there to `last`, which
    /// are to be few, are appended.
    fn part_words(keys: &[[u8; 8]], first: u64, last: u64, between: &mut Vec<u64>) -> u64 {
        let (blocks, rest) = keys.as_chunks::<16>();
        let is_between = |word: &u64| (first..=last).contains(word);
        let mut below = 0;
        for block in blocks {
            let words = block.map(u64::from_be_bytes);
            let mut any = 0;
            for word in words {
                below += u64::from(word < first);
                any |= u64::from(word >= first) & u64::from(word <= last);
            }
            if any != 0 {
                // Which of them is one cannot be foreseen, so that there is no branch for it.
                let (mut found, mut len) = ([0; 16], 0);
                for word in words {
                    found[len % 16] = word;
                    len += usize::from(is_between(&word));
                }
                between.extend_from_slice(&found[..len]);
            }
        }
        let words = || rest.iter().map(|key| u64::from_be_bytes(*key));
        between.extend(words().filter(is_between));
        below + words().map(|word| u64::from(word < first)).sum::<u64>()
    }

    /// Keeps what the mask has not.
    fn not(mask: &mut [u64]) {
        mask.iter_mut().for_each(|mask| *mask = !*mask);
    }
}

/// Moves the lanes that the mask has to the front, in their order, and says how many there are.
pub(crate) fn compact(lanes: &mut [u64], mask: &[u64]) -> usize {
    let mut len = 0;
    for at in 0..lanes.len().min(mask.len()) {
        // Written always and kept if it counts: no branch to guess wrong.
        lanes[len] = lanes[at];
        len += (mask[at] & 1) as usize;
    }
    len
}

#[inline(always)]
fn mask_of(is_set: bool) -> u64 {
    u64::from(is_set).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn level() -> Level {
        Level::detected()
    }

    #[test]
    fn lanes_are_what_numbers_are_read_as() {
        let bytes: Vec<u8> =
            (0_u8..=255).cycle().map(|byte| byte.wrapping_mul(167)).take(300).collect();
        for form in [
            "u8", "i8", "u16le", "i16be", "i16ord", "u32be", "i32le", "i32ord", "u64le", "i64le",
            "i64be", "i64ord", "u64ord",
        ] {
            let number: Number = form.parse().expect("a number");
            for stride in [8, 11, 16, 24, 32] {
                for count in [1, 2, 7] {
                    let len = (count - 1) * stride + number.bytes();
                    let mut lanes = vec![0; count];
                    gather(Level::detected(), number, &bytes[..len], stride, &mut lanes);
                    for at in 0..count {
                        let item = &bytes[at * stride..][..number.bytes()];
                        let bias = if number.form() == Form::Signed { i128::from(SIGN) } else { 0 };
                        let lane = i128::from(lanes[at]) - bias;
                        assert_eq!(super::lane(number, item), lanes[at]);
                        assert_eq!(number.read(item), Ok(Value::Int(lane)), "{form} {stride} {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn words_are_parted_as_one_by_one() {
        let words: Vec<u64> =
            (0..1_003_u64).map(|at| at.wrapping_mul(0x9E37_79B9_97F4_A7C1)).collect();
        let keys: Vec<[u8; 8]> = words.iter().map(|word| word.to_be_bytes()).collect();
        for (first, last) in [(0, 0), (0, u64::MAX), (1 << 63, (1 << 63) + (1 << 57)), (9, 8)] {
            let mut between = vec![7];
            let below = part_words(level(), &keys, first, last, &mut between);
            let expected: Vec<u64> =
                words.iter().copied().filter(|word| (first..=last).contains(word)).collect();
            assert_eq!((between[0], &between[1..]), (7, &expected[..]));
            assert_eq!(below as usize, words.iter().filter(|word| **word < first).count());
            let mut parts = vec![0; keys.len()];
            let chosen = choose_below(level(), &keys, first, 5, -6, &mut parts);
            let part = |word: &u64| if *word < first { 5 } else { -6 };
            let mut sums: Vec<[u8; 8]> = (0..keys.len() as i64).map(i64::to_le_bytes).collect();
            let before = (keys.len() * (keys.len() - 1) / 2) as i128;
            let added = add_below(level(), &keys, first, (-6, 5), &mut sums);
            assert_eq!(added, (below, before, false));
            let expected = words.iter().zip(0..).map(|(word, at)| at + part(word));
            assert!(sums.iter().map(|sum| i64::from_le_bytes(*sum)).eq(expected));
            sums[7] = i64::MAX.to_le_bytes();
            assert!(add_below(level(), &keys, first, (1, 1), &mut sums).2);
            assert_eq!((chosen, parts), (below, words.iter().map(part).collect()));
        }
        for values in [vec![], vec![i64::MIN; 5], vec![i64::MAX; 9], vec![-1, 1, -1 << 32, 77]] {
            let sum = values.iter().map(|value| i128::from(*value)).sum();
            assert_eq!(sum_signed(level(), &values), sum);
            let words: Vec<[u8; 8]> = values.iter().map(|value| value.to_le_bytes()).collect();
            let extremes = values
                .iter()
                .fold((3, 3), |(least, greatest), value| (least.min(*value), greatest.max(*value)));
            assert_eq!(span_of_words(level(), &words, (3, 3)), (sum, extremes));
        }
    }

    #[test]
    fn sums_and_extremes_go_under_the_mask() {
        let lanes: Vec<u64> = (0..RUN as u64).map(|lane| u64::MAX - lane * 3).collect();
        let mask: Vec<u64> = (0..RUN).map(|at| mask_of(at % 3 == 1)).collect();
        let all = || lanes.iter().map(|&lane| u128::from(lane));
        assert_eq!(sum(level(), &lanes), all().sum());
        assert_eq!(sum_masked(level(), &lanes, &mask), all().skip(1).step_by(3).sum());
        assert_eq!((least(level(), &lanes), greatest(level(), &lanes)), (lanes[RUN - 1], u64::MAX));
        assert_eq!(least_masked(level(), &lanes, &mask), lanes[RUN - 3]);
        assert_eq!(greatest_masked(level(), &lanes, &mask), lanes[1]);
        assert_eq!(count(level(), &mask), 341);
    }

    #[test]
    fn masks_are_packed_and_lanes_compacted() {
        for (len, picks) in [(RUN, 3), (70, 1), (64, 2), (1, 5), (0, 1)] {
            let mask: Vec<u64> = (0..len).map(|at| mask_of(at % picks == 0)).collect();
            let mut bits = vec![7; len.div_ceil(64)];
            pack(level(), &mask, &mut bits);
            let picked = |at: usize| bits[at / 64] >> (at % 64) & 1 == 1;
            assert!((0..len).all(|at| picked(at) == (at % picks == 0)));
            let mut lanes: Vec<u64> = (0..len as u64).collect();
            let count = compact(&mut lanes, &mask);
            let expected: Vec<u64> = (0..len as u64).step_by(picks).collect();
            assert_eq!(lanes[..count], expected);
        }
        let mut mask = [u64::MAX, u64::MAX, 0, u64::MAX];
        within(level(), &[4, 5, 6, 8], 5, 7, &mut mask);
        assert_eq!(mask, [0, u64::MAX, 0, 0]);
    }

    #[test]
    fn comparisons_reach_beyond_the_lanes() {
        let lanes = [0, 5, u64::MAX];
        for (comparison, constant, expected) in [
            (Comparison::Less, 5, [true, false, false]),
            (Comparison::LessOrEqual, 5, [true, true, false]),
            (Comparison::Greater, 5, [false, false, true]),
            (Comparison::GreaterOrEqual, 5, [false, true, true]),
            (Comparison::Equal, 5, [false, true, false]),
            (Comparison::NotEqual, 5, [true, false, true]),
            (Comparison::Greater, -1, [true; 3]),
            (Comparison::Less, -1, [false; 3]),
            (Comparison::Less, 1 << 64, [true; 3]),
            (Comparison::Equal, 1 << 64, [false; 3]),
            (Comparison::NotEqual, -1, [true; 3]),
        ] {
            let mut mask = [7; 3];
            compare(level(), &lanes, comparison, constant, &mut mask);
            assert_eq!(mask, expected.map(mask_of), "{comparison:?} {constant}");
        }
    }
}

//! The apportionment of a total by weights.
//!
//! The method of largest remainders (Hamilton's): each exact share is rounded down, and as many units
//! as are missing go to the objects with the greatest remainders, ties to lesser keys. Only the bounds
//! between the objects that get a unit and the others are looked for, so nothing is sorted as a whole.

use num_bigint::BigUint;

use sapwood_engine::HeldKeys;

use super::chunk::{Chunk, Ints};
use super::collect::Collected;
use super::select::{Bound, least_keys};

/// The parts of the magnitude of a total, equally: what each object gets, and the key below which
/// objects get one more. An error is the key of an object that was collected twice.
pub(super) fn equally(
    magnitude: u128,
    all: &mut Collected,
    held: Option<&dyn HeldKeys>,
) -> Result<(u128, Bound), Box<[u8]>> {
    let count = all.tally.matched;
    let (base, rest) = (magnitude / u128::from(count), magnitude % u128::from(count));
    // Less than the count, so it fits.
    let guessed = all.guessed.take().filter(|_| rest > 0);
    let guessed = guessed.and_then(|guessed| guessed.least(count, rest as u64));
    let chunks = &all.chunks;
    let least = || least_keys(chunks, held, || keys(chunks), count as usize, rest as usize);
    Ok((base, guessed.unwrap_or_else(least)?))
}

/// The parts of the magnitude of a total in proportion to the chunks' weights, whose sum is not zero.
/// An error is the key of an object that was collected twice.
pub(super) fn in_proportion(
    magnitude: u128,
    chunks: &[Chunk],
    weight_sum: u128,
    weight_max: u64,
) -> Result<Vec<Ints>, Box<[u8]>> {
    let narrow = u64::try_from(magnitude).ok().zip(u64::try_from(weight_sum).ok());
    if let Some((magnitude, weight_sum)) = narrow
        && magnitude.checked_mul(weight_max).is_some()
    {
        return hand_out(magnitude.into(), chunks, |weight| {
            let product = magnitude * weight;
            (u128::from(product / weight_sum), product % weight_sum)
        });
    }
    if magnitude.checked_mul(weight_max.into()).is_some() {
        return hand_out(magnitude, chunks, |weight| {
            let product = magnitude * u128::from(weight);
            (product / weight_sum, product % weight_sum)
        });
    }
    let small = |number: BigUint| u128::try_from(number).expect("at most the magnitude or the sum");
    let divisor = BigUint::from(weight_sum);
    hand_out(magnitude, chunks, |weight| {
        let product = BigUint::from(magnitude) * weight;
        (small(&product / &divisor), small(&product % &divisor))
    })
}

/// Divides for each weight, and hands out what the quotients leave of the magnitude. An error is the key
/// of an object that was collected twice.
fn hand_out<R: Copy + Ord + Default>(
    magnitude: u128,
    chunks: &[Chunk],
    divide: impl Fn(u64) -> (u128, R),
) -> Result<Vec<Ints>, Box<[u8]>> {
    let mut remainders = Vec::new();
    let mut parts = Vec::with_capacity(chunks.len());
    let mut left = magnitude;
    for chunk in chunks {
        let quotients = chunk.weights.iter().map(|&weight| {
            let (quotient, remainder) = divide(weight);
            left -= quotient;
            remainders.push(remainder);
            // At most the magnitude of a total, below 2^127 or just that.
            quotient.cast_signed()
        });
        parts.push(quotients.collect::<Ints>());
    }
    // Remainders below the sum of the weights add up to what is left, times that: it is less than one
    // unit for each object whose remainder is not zero.
    let left = left as usize;
    debug_assert!(left <= remainders.iter().filter(|&&rest| rest > R::default()).count());
    let mut bound = R::default();
    let mut among_equals = Bound::All;
    if left > 0 {
        let mut order = remainders.clone();
        let (above, &mut at_bound, _) =
            order.select_nth_unstable_by(left - 1, |one, other| other.cmp(one));
        bound = at_bound;
        let units = left - above.iter().filter(|&&remainder| remainder > bound).count();
        let equals = || {
            let all = keys(chunks).zip(&remainders);
            all.filter(|&(_, &remainder)| remainder == bound).map(|(key, _)| key)
        };
        let count = remainders.iter().filter(|&&remainder| remainder == bound).count();
        among_equals = least_keys(&[], None, equals, count, units)?;
    }
    if left > 0 {
        let mut remainders = remainders.into_iter();
        for (chunk, parts) in chunks.iter().zip(&mut parts) {
            for (at, remainder) in remainders.by_ref().take(chunk.keys.len()).enumerate() {
                if remainder > bound
                    || remainder == bound && among_equals.is_above(chunk.keys.get(at))
                {
                    parts.increment(at);
                }
            }
        }
    }
    Ok(parts)
}

fn keys(chunks: &[Chunk]) -> impl Iterator<Item = &[u8]> {
    chunks.iter().flat_map(|chunk| (0..chunk.keys.len()).map(|at| chunk.keys.get(at)))
}

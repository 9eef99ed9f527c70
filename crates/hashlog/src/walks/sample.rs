//! An entry at random, by a number that the caller has drawn.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::index::IndexShape;
use crate::ops::store::Store;
use crate::record::{Form, hash};
use crate::walks::places::Places;
use crate::walks::resumable::BUCKETS_MAX;

impl Store {
    /// An entry of the bucket that the lowest bits of a number name, chosen by its other bits; where
    /// there is none, of the next few buckets that have one. `None` where no bucket has.
    ///
    /// A bucket that is not split yet has the keys of two and comes out twice as often.
    pub(crate) fn sample<F: Form>(&self, random: u64) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let (number, _) = IndexShape::new(self.index.count()).number_and_depth(random);
        // From there to the end; then from the beginning, and again to the end: a key that is there
        // throughout is met, though a bucket was split in between.
        for number in [number, 0] {
            let (mut next, mut buckets) = (Some(Places::reversed(number)), 1);
            while let Some(first) = next {
                let run = Places::of_buckets(first, buckets, self.index.count());
                if let Some(entry) = self.sample_places::<F>(run, random)? {
                    return Ok(Some(entry));
                }
                next = run.next();
                buckets = (2 * buckets).min(BUCKETS_MAX);
            }
        }
        Ok(None)
    }

    /// One of the entries of a run of places, each as likely as the others.
    fn sample_places<F: Form>(
        &self,
        run: Places,
        random: u64,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let (mut chosen, mut met) = (None, 0_u64);
        let _all = self.walk_places::<F, ()>(run, &mut |key, value| {
            met += 1;
            // The last of n replaces those before by a chance of 1 in n (Vitter's reservoir).
            let drawn = hash::of_word(random.wrapping_add(met));
            if (u128::from(drawn) * u128::from(met)) >> u64::BITS == 0 {
                chosen = Some((key.to_vec(), value.to_vec()));
            }
            ControlFlow::Continue(())
        })?;
        Ok(chosen)
    }
}

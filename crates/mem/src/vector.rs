//! Loops compiled once for each set of vector instructions.
//!
//! A program for any x86-64 may use but 128-bit vectors. [`Level::run`] compiles a loop for wider ones too, and
//! runs the form of the processor at hand. On other architectures the baseline has all there is.

use std::sync::LazyLock;

/// The widest vector instructions of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Baseline,
    /// x86-64-v3: 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// x86-64-v4: 512 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

static DETECTED: LazyLock<Level> = LazyLock::new(|| Level(detect()));

impl Level {
    /// The level of this processor, detected once.
    ///
    /// # Example
    ///
    /// ```
    /// let numbers = [1_u64, 2, 3];
    /// let sum: u64 = sapwood_mem::vector::Level::detected().run(
    ///     #[inline(always)]
    ///     || numbers.iter().sum(),
    /// );
    /// assert_eq!(sum, 6);
    /// ```
    #[inline]
    pub fn detected() -> Self {
        *DETECTED
    }

    /// Runs `work`, compiled for this level. Only what is inlined into it gains, so mark it `#[inline(always)]`.
    #[inline]
    pub fn run<R>(self, work: impl FnOnce() -> R) -> R {
        match self.0 {
            Set::Baseline => work(),
            // SAFETY: only `detect` makes a level, of a processor that has all of its instructions.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { with_avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { with_avx512(work) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
fn with_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn with_avx512<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Set {
    macro_rules! has {
        ($($feature:tt)*) => { $(is_x86_feature_detected!($feature))&&* };
    }
    let has_avx2 = has!("avx2" "bmi1" "bmi2" "fma" "lzcnt" "popcnt");
    match has_avx2 {
        true if has!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl") => Set::Avx512,
        true => Set::Avx2,
        false => Set::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Set {
    Set::Baseline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_up_to_the_processor_runs_the_same_work() {
        let numbers: Vec<u64> = (0..1_000).collect();
        let detected = Level::detected().0;
        let mut sets = vec![Set::Baseline];
        #[cfg(target_arch = "x86_64")]
        sets.extend(match detected {
            Set::Baseline => &[][..],
            Set::Avx2 => &[Set::Avx2],
            Set::Avx512 => &[Set::Avx2, Set::Avx512],
        });
        assert!(sets.contains(&detected));
        for set in sets {
            let sum = Level(set).run(
                #[inline(always)]
                || numbers.iter().map(|number| number.rotate_left(7) & 0xFFFF).sum::<u64>(),
            );
            assert_eq!(
                sum,
                numbers.iter().map(|number| (number << 7) & 0xFFFF).sum::<u64>(),
                "{set:?}"
            );
        }
    }
}

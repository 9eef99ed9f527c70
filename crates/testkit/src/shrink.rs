//! Delta debugging: the operations of a failing stream that matter.
//!
//! A. Zeller, R. Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002, section 3:
//! leave out ever smaller pieces for as long as the rest still fails.

/// Shorter streams are tried until they have run this many operations together: seconds.
const OPS_MAX: usize = 1_000_000;

/// A short sub-sequence of `ops` that still fails: leaving out any one more operation of it makes
/// it pass, unless `OPS_MAX` ran out before.
pub fn minimal<T: Clone>(ops: &[T], fails: impl Fn(&[T]) -> bool) -> Vec<T> {
    let mut kept = ops.to_vec();
    let mut piece = kept.len().div_ceil(2);
    let mut ops_run = 0;
    while piece > 0 && !kept.is_empty() {
        let mut begin = 0;
        let before = kept.len();
        while begin < kept.len() {
            let limit = (begin + piece).min(kept.len());
            let without = [&kept[..begin], &kept[limit..]].concat();
            ops_run += without.len();
            if ops_run > OPS_MAX {
                return kept;
            }
            if fails(&without) {
                kept = without;
            } else {
                begin = limit;
            }
        }
        // At single operations, go on until a whole pass removes nothing.
        if piece > 1 {
            piece = piece.div_ceil(2).min(kept.len().max(1));
        } else if kept.len() == before {
            break;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::minimal;

    #[test]
    fn what_does_not_matter_goes() {
        let ops: Vec<u32> = (0..1000).collect();
        let needs = |ops: &[u32]| [17, 500, 998].iter().all(|n| ops.contains(n));
        assert_eq!(minimal(&ops, needs), [17, 500, 998]);
        assert_eq!(minimal(&ops, |ops| ops.len() >= 7).len(), 7);
        assert_eq!(minimal(&ops, |_| true), [0u32; 0]);
    }
}

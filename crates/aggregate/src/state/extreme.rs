//! The least and the greatest value.

use std::cmp::Ordering;

use crate::value::Value;

/// Which end of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Least,
    Greatest,
}

impl Side {
    /// Whether what compares so with what is kept takes its place.
    pub(super) fn prefers(self, order: Ordering) -> bool {
        match self {
            Side::Least => order.is_lt(),
            Side::Greatest => order.is_gt(),
        }
    }
}

/// Keeps the better of two. Equal values have one form once they are kept, so it does not matter
/// which of them came first.
#[inline]
pub(super) fn push(best: &mut Option<Value<'static>>, side: Side, value: &Value<'_>) {
    let is_better = best.as_ref().is_none_or(|best| side.prefers(value.cmp(best)));
    if is_better {
        *best = Some(value.clone().canonical().into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_kept_in_one_form() {
        let float = |value| Value::float(value).expect("not NaN");
        let mut seen = Vec::new();
        for values in [[float(2.0), Value::Int(2)], [Value::Int(2), float(2.0)]] {
            let mut best = None;
            for value in values.iter().chain(&[Value::Int(7), Value::from("text")]) {
                push(&mut best, Side::Least, value);
            }
            seen.push(format!("{best:?}"));
        }
        assert_eq!(seen, ["Some(Int(2))", "Some(Int(2))"]);
        let mut best = None;
        for value in [float(-0.0), float(f64::INFINITY), Value::Int(1)] {
            push(&mut best, Side::Greatest, &value);
        }
        assert_eq!(best, Some(float(f64::INFINITY)));
    }
}

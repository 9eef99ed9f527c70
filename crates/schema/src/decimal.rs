//! Exact numbers: units of a power of ten.

/// Powers of ten that 128 bits hold.
pub const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1_i128; 39];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Reads `-12.50`: its units, and how many digits stand behind the point. `None` if it is no number, or has more
/// than 38 digits.
pub fn decimal_of_text(text: &str) -> Option<(i128, u8)> {
    let (is_negative, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mut units, mut scale, mut count, mut behind) = (0_i128, 0_u8, 0_usize, false);
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                units = units.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                count += 1;
                if behind {
                    scale = scale.checked_add(1)?;
                }
            }
            b'.' if !behind => behind = true,
            _ => return None,
        }
    }
    let fits = count > 0 && units < POWERS_OF_TEN[38] && scale <= 38;
    fits.then_some((if is_negative { -units } else { units }, scale))
}

/// Writes units as a number with so many digits behind the point.
pub fn decimal_to_text(units: i128, scale: u8, out: &mut String) {
    use std::fmt::Write;
    if scale == 0 {
        write!(out, "{units}").expect("a string takes everything");
        return;
    }
    let power = 10_u128.pow(u32::from(scale));
    let all = units.unsigned_abs();
    let sign = if units < 0 { "-" } else { "" };
    let (whole, rest) = (all / power, all % power);
    write!(out, "{sign}{whole}.{rest:0width$}", width = usize::from(scale))
        .expect("a string takes everything");
}

/// The units of another scale; those that fall away are rounded, halves away from zero. `None` if 128 bits
/// do not hold them.
pub fn rescale(units: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        let power = *POWERS_OF_TEN.get(usize::from(to - from))?;
        return units.checked_mul(power);
    }
    let Some(&power) = POWERS_OF_TEN.get(usize::from(from - to)) else { return Some(0) };
    let (whole, rest) = (units / power, units % power);
    let is_up = rest.unsigned_abs() >= power.unsigned_abs() / 2;
    Some(if is_up { whole + units.signum() } else { whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_written() {
        for (text, units, scale) in
            [("0", 0, 0), ("-12.50", -1250, 2), (".5", 5, 1), ("5.", 5, 0), ("-0.001", -1, 3)]
        {
            assert_eq!(decimal_of_text(text), Some((units, scale)), "{text}");
        }
        for text in ["", ".", "-", "1.2.3", "1e3", " 1", &"9".repeat(39)] {
            assert_eq!(decimal_of_text(text), None, "{text}");
        }
        for (units, scale, text) in
            [(0, 2, "0.00"), (-1, 3, "-0.001"), (-1250, 2, "-12.50"), (7, 0, "7")]
        {
            let mut out = String::new();
            decimal_to_text(units, scale, &mut out);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (units, from, to, expected) in [
            (125, 2, 1, Some(13)),
            (-125, 2, 1, Some(-13)),
            (124, 2, 1, Some(12)),
            (5, 0, 3, Some(5000)),
            (i128::MAX, 0, 1, None),
        ] {
            assert_eq!(rescale(units, from, to), expected);
        }
    }
}

//! Figures for people: counts, bytes, times and rates, with their units.

use std::time::Duration;

/// `336,776`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 row`, `2 rows`.
pub(crate) fn plural(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(number as u64))
}

/// `29.6 MiB`; exact below 1 KiB.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let mut scaled = number as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", UNITS[unit])
}

/// `1.25 ms`: three digits in the unit that suits.
pub(crate) fn time(duration: Duration) -> String {
    let nanos = duration.as_nanos() as f64;
    let (scaled, unit) = match nanos {
        ns if ns < 1e3 => return format!("{nanos:.0} ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(scaled))
}

/// `1.35 M rows/s`.
pub(crate) fn rate(number: u64, what: &str, duration: Duration) -> String {
    let (scaled, prefix) = match per_second(number, duration) {
        rate if rate >= 1e6 => (rate / 1e6, "M "),
        rate if rate >= 1e3 => (rate / 1e3, "K "),
        rate => (rate, ""),
    };
    format!("{} {prefix}{what}/s", three_digits(scaled))
}

/// Of a duration too short to measure, the rate at one nanosecond.
pub(crate) fn per_second(number: u64, duration: Duration) -> f64 {
    number as f64 / duration.as_secs_f64().max(1e-9)
}

fn three_digits(number: f64) -> String {
    match number {
        n if n >= 100.0 => format!("{n:.0}"),
        n if n >= 10.0 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

/// What cannot be printed as it is (control characters, line ends) escaped, and long text cut.
pub(crate) fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut out = String::from("`");
    for (index, char) in text.chars().enumerate() {
        if index == CHARS_MAX {
            out.push_str("...");
            break;
        }
        match char {
            c if c.is_control() || c == '\u{FFFD}' => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out.push('`');
    out
}

/// A number of bytes as people type it: `500`, `64K`, `1.5GiB`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err("units are K, M, G and T (of 1024)".to_owned()),
    };
    match number.parse::<f64>() {
        Ok(number) => Ok((number * scale as f64) as u64),
        Err(_) => Err("a number of bytes is expected, such as 64M or 1.5G".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (336_776, "336,776"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn bytes_have_binary_units() {
        for (number, text) in [
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (31_053_850, "29.6 MiB"),
            (u64::MAX, "16384.0 PiB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn times_and_rates_keep_three_digits() {
        for (nanos, text) in [
            (5, "5 ns"),
            (1_500, "1.50 us"),
            (123_456, "123 us"),
            (12_345_678, "12.3 ms"),
            (2_000_000_000, "2.00 s"),
        ] {
            assert_eq!(time(Duration::from_nanos(nanos)), text);
        }
        assert_eq!(rate(1_350_000, "rows", Duration::from_secs(1)), "1.35 M rows/s");
        assert_eq!(rate(5, "rows", Duration::from_secs(10)), "0.50 rows/s");
        assert_eq!(rate(1, "rows", Duration::ZERO), "1000 M rows/s");
    }

    #[test]
    fn byte_sizes_are_read() {
        assert_eq!(parse_bytes("500"), Ok(500));
        assert_eq!(parse_bytes("64K"), Ok(65_536));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(1_610_612_736));
        for bad in ["", "M", "1X", "-1", "1.2.3"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn quoting_escapes_and_cuts() {
        assert_eq!(quoted("a\tb\u{1b}"), "`a\\tb\\u{1b}`");
        assert_eq!(quoted(&"x".repeat(100)), format!("`{}...`", "x".repeat(60)));
    }
}

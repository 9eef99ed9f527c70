//! Figures for people: counts, bytes, times and rates, with their units.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use bstr::{ByteSlice, ByteVec};
use comfy_table::{Cell, Table, presets};
use sapwood::files::words::disturbs;
pub(crate) use sapwood::files::words::{bytes, count, plural, quoted, shown};

/// A table as all commands print theirs: columns two blanks apart, no lines, easy to cut.
pub(crate) fn table(header: impl IntoIterator<Item = impl Into<Cell>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// Writes a table, without the blanks that would end its lines.
pub(crate) fn write_table(table: &Table, out: &mut impl Write) -> io::Result<()> {
    table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

/// A row of a table of Markdown.
pub(crate) fn markdown_row<'c>(cells: impl Iterator<Item = Cow<'c, str>>) -> String {
    let mut row = "|".to_owned();
    for cell in cells {
        row.extend([" ", &cell.replace('|', "\\|"), " |"]);
    }
    row
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

/// The values of a key, with commas between.
pub(crate) fn shown_list(values: &[String]) -> String {
    values.iter().map(|value| shown(value)).collect::<Vec<_>>().join(",")
}

/// Text out of a file for a line on a terminal: line ends and what steers terminals (control
/// characters, changes of direction) escaped.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(disturbs) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for char in text.chars() {
        if disturbs(char) {
            out.extend(char.escape_default());
        } else {
            out.push(char);
        }
    }
    Cow::Owned(out)
}

/// Bytes as text: what a terminal does not show stands as `\xE2`, `\n` or `\0`, and `\` as `\\`.
pub(crate) fn escaped_bytes(bytes: &[u8]) -> String {
    let mut out = String::new();
    for char in bytes.escape_bytes() {
        if disturbs(char) {
            char.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| out += &format!("\\x{byte:02X}"));
        } else {
            out.push(char);
        }
    }
    out
}

/// The bytes that [`escaped_bytes`] wrote so.
pub(crate) fn unescaped_bytes(text: &str) -> Vec<u8> {
    Vec::unescape_bytes(text)
}

/// A number of bytes as people type it: `500`, `64K`, `1.5GiB`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    const EXPECTED: &str = "a number of bytes is expected, such as 64M or 1.5G";
    const TOO_LARGE: &str = "that is 16 EiB or more, beyond every memory";
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
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !are_digits(fraction) {
        return Err(EXPECTED.to_owned());
    }
    // Below one unit, so that no float is too large for it.
    let part = match fraction.is_empty() {
        true => 0,
        false => {
            let part: f64 = format!("0.{fraction}").parse().map_err(|_| EXPECTED)?;
            (part * scale as f64) as u64
        }
    };
    let whole = if whole.is_empty() { Ok(0) } else { whole.parse::<u64>() };
    // All that can be wrong with digits is that they are too many.
    let bytes = whole.ok().and_then(|whole| whole.checked_mul(scale)?.checked_add(part));
    bytes.ok_or_else(|| TOO_LARGE.to_owned())
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
        assert_eq!(parse_bytes(".5K"), Ok(512));
        assert_eq!(parse_bytes("2.K"), Ok(2048));
        assert_eq!(parse_bytes("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_bytes("16777215.5T"), Ok(u64::MAX - (1 << 39) + 1));
        for bad in ["", ".", "M", "1X", "-1", "1.2.3"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
        for large in ["99999999999999999999999", "18446744073709551616", "16777216T", "1e9G"] {
            let refused = parse_bytes(large).expect_err(large);
            assert!(refused.contains("16 EiB") || large.contains('e'), "{large}: {refused}");
        }
    }

    #[test]
    fn quoting_escapes_and_cuts() {
        assert_eq!(quoted("a\tb\u{1b}"), "`a\\tb\\u{1b}`");
        assert_eq!(escaped("\u{1b}[31m\u{202e}x\n"), "\\u{1b}[31m\\u{202e}x\\n");
        assert_eq!(escaped("é, 1"), "é, 1");
        assert_eq!(quoted(&"x".repeat(100)), format!("`{}...`", "x".repeat(60)));
    }
}

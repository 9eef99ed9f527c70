//! Numbers and names as messages have them.

/// `336,776`.
pub fn count(number: u64) -> String {
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
pub fn plural(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(number as u64))
}

/// `29.6 MiB`; exact below 1 KiB.
pub fn bytes(number: u64) -> String {
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

/// [`shown`] in backquotes, for names and single values.
pub fn quoted(text: &str) -> String {
    format!("`{}`", shown(text))
}

/// Text whose signs that steer terminals are escaped, cut where it is long.
pub fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut out = String::new();
    for (index, char) in text.chars().enumerate() {
        if index == CHARS_MAX {
            out.push_str("...");
            break;
        }
        match char {
            c if disturbs(c) || c == '\u{FFFD}' => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// True of signs that steer terminals: control characters, changes of direction.
pub fn disturbs(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

//! Days and moments as texts of a given form: `strftime`.

use std::fmt::Write;

use sapwood_schema::Precision;

use super::Field;
use crate::kind::Kind;

/// A form: texts, and signs that stand for parts of a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Format(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// A number with at least so many digits.
    Number(Number, usize),
    Word(Word),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Of(Field),
    /// The last two digits of the year as it is written: of -44 they are 44.
    ShortYear,
    /// From 1 to 12.
    Hour12,
    /// A fraction of the second: the first three, six or nine digits behind the point.
    Fraction(u32),
    /// The weeks that began with this day in the year: 0 is Sunday, 1 Monday.
    Weeks(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Day { is_short: bool },
    Month { is_short: bool },
    Half,
}

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The signs that there are, for messages.
const SIGNS: &str = "%Y %y %m %d %j %H %I %M %S %p %g %f %n %a %A %b %B %u %w %U %W %V %G %%, and %-m and its like \
     without leading zeros";

impl Format {
    /// Reads a form.
    pub(crate) fn of_text(text: &str) -> Result<Format, String> {
        let mut pieces = Vec::new();
        let mut words = String::new();
        let mut signs = text.chars();
        while let Some(sign) = signs.next() {
            if sign != '%' {
                words.push(sign);
                continue;
            }
            let (mut name, mut is_padded) = (signs.next(), true);
            if name == Some('-') {
                (name, is_padded) = (signs.next(), false);
            }
            let Some(piece) = name.and_then(|name| Piece::of_sign(name, is_padded)) else {
                let name: String = name.into_iter().collect();
                return Err(format!("`%{name}` stands for no part of a moment: there are {SIGNS}"));
            };
            if let Piece::Text(more) = piece {
                words.push_str(&more);
                continue;
            }
            if !words.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut words)));
            }
            pieces.push(piece);
        }
        if !words.is_empty() {
            pieces.push(Piece::Text(words));
        }
        Ok(Format(pieces))
    }

    /// Appends a day or a moment.
    pub(crate) fn write(&self, value: i64, kind: &Kind, out: &mut Vec<u8>) {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(words) => text.push_str(words),
                Piece::Number(number, digits) => {
                    let number = number.of(value, kind);
                    write!(text, "{number:0digits$}").expect("a string takes everything");
                }
                Piece::Word(word) => text.push_str(word.of(value, kind)),
            }
        }
        out.extend_from_slice(text.as_bytes());
    }
}

impl Piece {
    fn of_sign(sign: char, is_padded: bool) -> Option<Piece> {
        let number = |number: Number, digits: usize| {
            Some(Piece::Number(number, if is_padded { digits } else { 1 }))
        };
        let of = |field: Field, digits: usize| number(Number::Of(field), digits);
        match sign {
            'm' => of(Field::Month, 2),
            'd' => of(Field::Day, 2),
            'j' => of(Field::DayOfYear, 3),
            'H' => of(Field::Hour, 2),
            'I' => number(Number::Hour12, 2),
            'M' => of(Field::Minute, 2),
            'S' => of(Field::Second, 2),
            'y' => number(Number::ShortYear, 2),
            _ if !is_padded => None,
            'Y' => of(Field::Year, 4),
            'G' => of(Field::IsoYear, 4),
            'V' => of(Field::Week, 2),
            'U' => number(Number::Weeks(0), 2),
            'W' => number(Number::Weeks(1), 2),
            'u' => of(Field::IsoDayOfWeek, 1),
            'w' => of(Field::DayOfWeek, 1),
            'g' => number(Number::Fraction(1_000), 3),
            'f' => number(Number::Fraction(1_000_000), 6),
            'n' => number(Number::Fraction(1_000_000_000), 9),
            'a' => Some(Piece::Word(Word::Day { is_short: true })),
            'A' => Some(Piece::Word(Word::Day { is_short: false })),
            'b' | 'h' => Some(Piece::Word(Word::Month { is_short: true })),
            'B' => Some(Piece::Word(Word::Month { is_short: false })),
            'p' => Some(Piece::Word(Word::Half)),
            '%' => Some(Piece::Text("%".to_owned())),
            _ => None,
        }
    }
}

impl Number {
    fn of(self, value: i64, kind: &Kind) -> i64 {
        match self {
            Number::Of(field) => field.of(value, kind),
            Number::ShortYear => Field::Year.of(value, kind).abs() % 100,
            Number::Hour12 => (Field::Hour.of(value, kind) + 11) % 12 + 1,
            Number::Fraction(parts) => {
                let ticks = match kind {
                    Kind::Timestamp(precision) => precision.ticks(),
                    _ => Precision::Seconds.ticks(),
                };
                let fraction = i128::from(value.rem_euclid(ticks)) * i128::from(parts);
                (fraction / i128::from(ticks)) as i64
            }
            Number::Weeks(first) => {
                let of_year = Field::DayOfYear.of(value, kind) - 1;
                let since = (Field::DayOfWeek.of(value, kind) - first).rem_euclid(7);
                (of_year - since + 7) / 7
            }
        }
    }
}

impl Word {
    fn of(self, value: i64, kind: &Kind) -> &'static str {
        let cut = |word: &'static str, is_short: bool| if is_short { &word[..3] } else { word };
        match self {
            Word::Day { is_short } => {
                cut(DAYS[Field::DayOfWeek.of(value, kind) as usize], is_short)
            }
            Word::Month { is_short } => {
                cut(MONTHS[Field::Month.of(value, kind) as usize - 1], is_short)
            }
            Word::Half if Field::Hour.of(value, kind) < 12 => "AM",
            Word::Half => "PM",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood_schema::{date_of_text, timestamp_of_text};

    #[test]
    fn moments_are_written_in_a_form() {
        let kind = Kind::Timestamp(Precision::Micros);
        for (moment, form, expected) in [
            ("2013-01-05 17:45:01.001002", "%Y-%m-%dT%H:%M:%S.%f", "2013-01-05T17:45:01.001002"),
            ("2013-01-05 17:45:01.001002", "%y%j %-d.%-m. %g %n", "13005 5.1. 001 001002000"),
            ("-0044-03-15", "%y", "44"),
            ("2013-01-05 00:05:00", "%I:%M %p, %-I", "12:05 AM, 12"),
            ("2013-01-05 12:05:00", "%I %p %a %A %b %B", "12 PM Sat Saturday Jan January"),
            ("2013-12-30 00:00:00", "%G-W%V-%u %w %U %W", "2014-W01-1 1 52 52"),
            ("2012-01-01 00:00:00", "%U %W 100%%", "01 00 100%"),
            ("1969-12-31 23:59:59.5", "%S %g é", "59 500 é"),
        ] {
            let at = timestamp_of_text(moment, Precision::Micros).expect("a moment");
            let mut out = Vec::new();
            Format::of_text(form).expect("a form").write(at, &kind, &mut out);
            assert_eq!(String::from_utf8(out).as_deref(), Ok(expected), "{moment} {form}");
        }
        let mut out = Vec::new();
        let day = date_of_text("2013-01-05").expect("a day");
        Format::of_text("%d %H %f").expect("a form").write(day.into(), &Kind::Date, &mut out);
        assert_eq!(out, b"05 00 000000");
        for form in ["%", "%q", "%-", "%-Y"] {
            assert!(Format::of_text(form).is_err_and(|what| what.contains("%Y %y")), "{form}");
        }
    }
}

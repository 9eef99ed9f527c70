//! Habits of programs for tables that are no CSV, or no values that a column here can have. Notices
//! tell them, since rows would look right.

/// Rows that are looked at.
pub(crate) const ROWS: usize = 100;

/// Words for bytes that are no UTF-8, and what to do.
pub(crate) const NOT_UTF8: &str = "is not UTF-8: if it is Latin-1, as older programs write, \
     `iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW` makes it so";

/// The delimiter that Excel's first line `sep=;` names, and the offset behind that line.
pub(crate) fn delimiter_line(text: &[u8]) -> Option<(u8, usize)> {
    let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
    let line = &text[..end];
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    let (name, delimiter) = line.split_at_checked(4)?;
    let [delimiter] = delimiter else { return None };
    let is_two = text[end..].starts_with(b"\r\n");
    name.eq_ignore_ascii_case(b"sep=").then_some((*delimiter, end + 1 + usize::from(is_two)))
}

/// Looks for a blank line with others behind it.
pub(crate) fn has_blank_line(rows: &[u8]) -> bool {
    let rows = rows.trim_ascii_end();
    let lines = rows.split(|byte| *byte == b'\n');
    let mut lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    !rows.is_empty() && lines.any(<[u8]>::is_empty)
}

/// The notice of a column of text whose values all are numbers or days in another way of writing.
pub(crate) fn notice<'t>(name: &str, texts: impl Iterator<Item = &'t str>) -> Option<String> {
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty() && *text != "NA").collect();
    let are_all = |is: fn(&str) -> bool| !texts.is_empty() && texts.iter().all(|text| is(text));
    let shown = crate::words::shown(name);
    if are_all(is_number) && texts.iter().any(|text| text.contains(',')) {
        return Some(format!(
            "`{shown}` has numbers with decimal commas, and is text: in SQL \
             `cast(replace(replace(\"{shown}\", '.', ''), ',', '.') as double)` computes with them"
        ));
    }
    are_all(is_day).then(|| {
        format!(
            "`{shown}` has days as {}, and is text: days are read as 2013-01-31; in SQL \
             `cast(substring(\"{shown}\", 7, 4) || '-' || substring(\"{shown}\", 4, 2) || '-' || \
             substring(\"{shown}\", 1, 2) as date)` makes them so",
            texts[0]
        )
    })
}

/// True of a number with a comma in front of its fraction, maybe with points between thousands.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = text.split_once(',').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let mut groups = whole.split('.');
    let first = groups.next().unwrap_or_default();
    let are_thousands = groups.clone().all(|group| group.len() == 3 && is_digits(group));
    let is_grouped = groups.next().is_some();
    is_digits(first) && are_thousands && (!is_grouped || first.len() <= 3) && is_digits(fraction)
}

/// True of a day as `31.01.2013`.
fn is_day(text: &str) -> bool {
    let mut parts = text.split('.');
    let mut is_next = |len: usize, most: u32| {
        parts.next().is_some_and(|part| {
            part.len() == len && part.parse::<u32>().is_ok_and(|it| (1..=most).contains(&it))
        })
    };
    is_next(2, 31) && is_next(2, 12) && is_next(4, 9999) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_a_delimiter_are_known() {
        for (text, expected) in [
            ("sep=;\na;b\n", Some((b';', 6))),
            ("SEP=\t\r\na\tb", Some((b'\t', 7))),
            ("\"sep=,\"\na,b", Some((b',', 8))),
            ("sep=;;\na", None),
            ("sep=;", None),
            ("sepal,b\n", None),
            ("", None),
        ] {
            assert_eq!(delimiter_line(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn other_ways_of_writing_are_told() {
        for (texts, says) in [
            (&["1,5", "-0,25", "", "1.234,5"][..], Some("decimal commas")),
            (&["1,5", "x"], None),
            (&["12", "13"], None),
            (&["31.01.2013", "NA"], Some("days as 31.01.2013")),
            (&["31.13.2013"], None),
            (&["1.2.3"], None),
            (&[], None),
        ] {
            let said = notice("price", texts.iter().copied());
            assert_eq!(said.is_some(), says.is_some(), "{texts:?}: {said:?}");
            assert!(said.unwrap_or_default().contains(says.unwrap_or_default()), "{texts:?}");
        }
        assert!(has_blank_line(b"1\n\n2\n") && has_blank_line(b"1\r\n\r\n2"));
        assert!(!has_blank_line(b"1\n2\n\n") && !has_blank_line(b""));
    }
}

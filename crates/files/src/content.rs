//! The format that a name or the first bytes tell.

use std::path::Path;

use crate::blocks::byte_order_mark;
use crate::format::Format;
use crate::habits;
use crate::options::ReadOptions;
use crate::packing::ending;
use crate::records::Splitter;

/// The bytes that are looked at.
pub(crate) const HEAD_BYTES: usize = 256 << 10;

/// Records that tell the delimiter.
const RECORDS_MAX: usize = 100;

/// The delimiters that are tried: where two are as good, the first is taken.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// How the bytes of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detected {
    Csv { delimiter: u8 },
    Json(Layout),
    Parquet,
    ArrowFile,
    ArrowStream,
    MessagePack,
}

/// How objects of JSON stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One a line.
    Lines,
    /// One behind the other, on any number of lines.
    Values,
    /// As items of an array.
    Array,
}

impl Detected {
    /// Of a file with this name that begins so; the options may say more.
    pub(crate) fn of(path: &Path, head: &[u8], options: &ReadOptions) -> Result<Detected, String> {
        let said = options.delimiter;
        let text = &head[byte_order_mark(head)..];
        let csv = || {
            let named = habits::delimiter_line(text).map(|(delimiter, _)| delimiter);
            Detected::Csv { delimiter: said.or(named).unwrap_or_else(|| delimiter(text)) }
        };
        let arrow = || match head.starts_with(b"ARROW1") {
            true => Detected::ArrowFile,
            false => Detected::ArrowStream,
        };
        if head.starts_with(&[0xFF, 0xFE]) || head.starts_with(&[0xFE, 0xFF]) {
            return Err(
                "it is UTF-16: `iconv -f UTF-16 -t UTF-8 FILE > NEW` makes it UTF-8".to_owned()
            );
        }
        match options.format {
            Some(Format::Csv) => return Ok(csv()),
            Some(Format::Jsonl) => return Ok(Detected::Json(Layout::Lines)),
            Some(Format::MessagePack) => return Ok(Detected::MessagePack),
            Some(Format::Parquet) => return Ok(Detected::Parquet),
            Some(Format::Arrow) => return Ok(arrow()),
            None => {}
        }
        Ok(match ending(path).as_str() {
            "csv" => csv(),
            "tsv" => Detected::Csv { delimiter: said.unwrap_or(b'\t') },
            "jsonl" | "ndjson" => Detected::Json(Layout::Lines),
            "json" => Detected::Json(layout(text)),
            "parquet" => Detected::Parquet,
            "arrow" | "arrows" | "feather" => arrow(),
            "msgpack" | "mpk" => Detected::MessagePack,
            _ if head.starts_with(b"PAR1") => Detected::Parquet,
            _ if head.starts_with(b"ARROW1") => Detected::ArrowFile,
            _ if head.starts_with(&[0xFF; 4]) => Detected::ArrowStream,
            _ if is_binary(text) && is_message_pack(head) => Detected::MessagePack,
            _ if is_binary(text) && !text.contains(&0) => {
                return Err(format!("it {}", habits::NOT_UTF8));
            }
            _ if is_binary(text) => {
                return Err("its bytes are no text and no format that is known; CSV (also with \
                            `;`, tab or `|`), JSON, JSON lines, MessagePack, Parquet and Arrow can be \
                            read, also packed as .gz or .zst"
                    .to_owned());
            }
            _ if is_json(text) => Detected::Json(layout(text)),
            _ => csv(),
        })
    }
}

/// Whether bytes are no text, whose last character may be cut.
fn is_binary(head: &[u8]) -> bool {
    let is_cut = |error: std::str::Utf8Error| {
        error.error_len().is_none() && error.valid_up_to() + 4 > head.len()
    };
    head.contains(&0) || std::str::from_utf8(head).is_err_and(|error| !is_cut(error))
}

/// True of a map whose first name is a text.
fn is_message_pack(head: &[u8]) -> bool {
    let name = match head {
        [0x81..=0x8F, name, ..] | [0xDE, _, _, name, ..] | [0xDF, _, _, _, _, name, ..] => *name,
        _ => return false,
    };
    matches!(name, 0xA0..=0xBF | 0xD9..=0xDB)
}

fn is_json(head: &[u8]) -> bool {
    let mut signs = head.iter().filter(|byte| !byte.is_ascii_whitespace());
    matches!(
        (signs.next(), signs.next()),
        (Some(b'{'), Some(b'"' | b'}')) | (Some(b'['), Some(b'{' | b']'))
    )
}

fn layout(head: &[u8]) -> Layout {
    let head = head.trim_ascii_start();
    if head.starts_with(b"[") {
        return Layout::Array;
    }
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match serde_json::from_slice::<serde_json::Value>(first) {
        Ok(_) => Layout::Lines,
        Err(_) if head.is_empty() => Layout::Lines,
        Err(_) => Layout::Values,
    }
}

/// The delimiter by which most records have as many fields as the first, of which there are several.
fn delimiter(head: &[u8]) -> u8 {
    let score = |delimiter: u8| {
        let (mut at, mut width, mut agree, mut all) = (0, 0, 0_u64, 0_u64);
        while let Ok(Some((fields, behind))) = Splitter::first(delimiter, &head[at..]) {
            at += behind;
            // The last record may be cut.
            let is_cut = at == head.len() && head.len() >= HEAD_BYTES;
            if all > 0 && is_cut || all == RECORDS_MAX as u64 {
                break;
            }
            width = if all == 0 { fields.len() } else { width };
            agree += u64::from(fields.len() == width);
            all += 1;
        }
        match width {
            0 | 1 => (0, 0),
            width => (agree * 1000 / all.max(1), width),
        }
    };
    let best = DELIMITERS.iter().rev().max_by_key(|delimiter| score(**delimiter));
    *best.expect("there are delimiters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_found() {
        for (text, expected) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2,5\n", b';'),
            ("a\tb c\n1,2\t2\n", b'\t'),
            ("a|b|c\n1|2,|3\n", b'|'),
            ("a\n1\n", b','),
            ("", b','),
            ("\"a;x\",b\n1,2\n", b','),
            ("a;\"b,\nc,d\"\n1;2\n", b';'),
            ("name, first;age\nx;1\ny;2", b';'),
        ] {
            assert_eq!(delimiter(text.as_bytes()) as char, expected as char, "{text:?}");
        }
    }

    #[test]
    fn formats_are_told_by_names_and_by_contents() {
        let csv = Some(Detected::Csv { delimiter: b',' });
        for (name, head, expected) in [
            ("a.csv", &b"{\"a\n"[..], csv),
            ("a.TSV.gz", b"a,b\n", Some(Detected::Csv { delimiter: b'\t' })),
            ("a.txt", b"a,b\n1,2\n", csv),
            ("-", b"", csv),
            ("a.json", b"\xEF\xBB\xBF [\n{", Some(Detected::Json(Layout::Array))),
            ("a.json", b"{\"a\": 1}\n{\"a\"", Some(Detected::Json(Layout::Lines))),
            ("a.json", b"{\n\"a\": 1}", Some(Detected::Json(Layout::Values))),
            ("a.ndjson", b"[", Some(Detected::Json(Layout::Lines))),
            ("a", b"{\"a\": 1}", Some(Detected::Json(Layout::Lines))),
            ("a", b"[x],b\n1,2\n", csv),
            ("a", b"PAR1\0\0", Some(Detected::Parquet)),
            ("a.msgpack", b"", Some(Detected::MessagePack)),
            ("a", b"\x82\xA1a\x01", Some(Detected::MessagePack)),
            ("a", b"ARROW1\0\0", Some(Detected::ArrowFile)),
            ("a", b"\xFF\xFF\xFF\xFF\0", Some(Detected::ArrowStream)),
            ("a.feather", b"ARROW1\0\0", Some(Detected::ArrowFile)),
            ("a", b"sep=|\na,b|c\n1|2\n", Some(Detected::Csv { delimiter: b'|' })),
            ("a.csv", b"\xFF\xFEa\0", None),
            ("a", b"caf\xE9,b\n1,2\n", None),
            ("a", b"a\0b", None),
            ("a", b"\x89PNG\r\n", None),
            ("a", "a,b\n1,\u{DF}".as_bytes().split_last().expect("bytes").1, csv),
        ] {
            let shown = String::from_utf8_lossy(head);
            assert_eq!(
                Detected::of(Path::new(name), head, &ReadOptions::default()).ok(),
                expected,
                "{name} {shown}"
            );
        }
    }
}

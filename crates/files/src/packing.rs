//! Packing of files by gzip and Zstandard, which the first bytes tell, and endings of names.

use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

/// The packing of the bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// None.
    Plain,
    /// `.gz`.
    Gzip,
    /// `.zst`.
    Zstd,
}

impl Packing {
    /// The packing that the name of a file tells.
    pub(crate) fn of_name(path: &Path) -> Packing {
        match extension(path).as_str() {
            "zst" => Packing::Zstd,
            "gz" => Packing::Gzip,
            _ => Packing::Plain,
        }
    }
}

/// The bytes of a reader, unpacked where their first ones say that they are packed by gzip or Zstandard.
///
/// # Errors
/// An error of the reader.
pub fn unpack(mut packed: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut head = Vec::with_capacity(ZSTD_MAGIC.len());
    packed.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut head)?;
    let is_zstd = head.starts_with(&ZSTD_MAGIC);
    let is_gzip = head.starts_with(&GZIP_MAGIC);
    let whole = Cursor::new(head).chain(packed);
    Ok(if is_zstd {
        Box::new(zstd::stream::read::Decoder::new(whole)?)
    } else if is_gzip {
        Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(whole)))
    } else {
        Box::new(whole)
    })
}

/// The ending of a name in small letters, but for that of the packing.
pub fn ending(path: &Path) -> String {
    match Packing::of_name(path) {
        Packing::Plain => extension(path),
        Packing::Gzip | Packing::Zstd => extension(&path.with_extension("")),
    }
}

/// The ending of a name in small letters.
pub fn extension(path: &Path) -> String {
    path.extension()
        .map(|extension| extension.to_string_lossy().to_ascii_lowercase())
        .unwrap_or_default()
}

/// The words of an error without the number that the operating system has for it.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn unpacked(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        unpack(Cursor::new(bytes))?.read_to_end(&mut out)?;
        Ok(out)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("a vector takes everything");
        encoder.finish().expect("a vector takes everything")
    }

    fn zstandard(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).expect("a vector takes everything")
    }

    #[test]
    fn packing_is_told_by_the_first_bytes() {
        for plain in [&b""[..], b"a", b"a,b\n1,2\n"] {
            assert_eq!(unpacked(plain.to_vec()).expect("plain"), plain);
            assert_eq!(unpacked(zstandard(plain)).expect("zstd"), plain);
            assert_eq!(unpacked(gzip(plain)).expect("gzip"), plain);
        }
    }

    #[test]
    fn several_frames_are_one_file() {
        let (first, second) = (&b"a,b\n"[..], &b"1,2\n"[..]);
        assert_eq!(
            unpacked([zstandard(first), zstandard(second)].concat()).expect("zstd"),
            b"a,b\n1,2\n"
        );
        assert_eq!(unpacked([gzip(first), gzip(second)].concat()).expect("gzip"), b"a,b\n1,2\n");
    }

    #[test]
    fn a_cut_file_is_an_error() {
        let bytes: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
        for packed in [zstandard(&bytes), gzip(&bytes)] {
            for end in [6, packed.len() / 2, packed.len() - 1] {
                assert!(unpacked(packed[..end].to_vec()).is_err(), "cut at {end}");
            }
        }
    }
}

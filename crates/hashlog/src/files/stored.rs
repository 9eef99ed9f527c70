//! Stored structures: the bytes in the files of a log.
//!
//! Every stored structure begins with the same 16 bytes: a magic that tells its kind, the version
//! of the format, and a checksum of everything behind them, padding included. So a reader knows of
//! each byte that it is what was written, before it looks at what it says. Numbers are little
//! endian. `docs/design/disk.md` draws the files, `docs/design/layout/disk.txt` is the table of
//! this module, and a test compares the two.
//!
//! Bytes from a file are untrusted until [`check`] has passed them, and numbers in them until
//! their reader has compared them with what it knows.

use std::mem::offset_of;
use std::sync::Arc;

use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, File, checksum, is_later_version};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Error, Result};

/// Version of all formats here. Stored: readers refuse later ones, so give new ones new numbers.
pub(crate) const VERSION: u32 = 3;
/// The first version that is still read. It had no identity, and zeros where a table's number is.
pub(crate) const VERSION_MIN: u32 = 2;

/// What a structure is. Stored: do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// First block of a log part.
    PartHeader,
    /// What lies in a page of a log part.
    PageTrailer,
    /// The one block of a checkpoint's manifest.
    Manifest,
    /// First block of an index image.
    ImageHeader,
    /// Some words of an index image.
    ImageChunk,
    /// Last block of an index image.
    ImageEnd,
    /// One of the two blocks of a table's identity.
    Identity,
}

impl Kind {
    fn magic(self) -> [u8; 8] {
        *match self {
            Kind::PartHeader => b"SWhlPart",
            Kind::PageTrailer => b"SWhlPage",
            Kind::Manifest => b"SWhlMani",
            Kind::ImageHeader => b"SWhlImag",
            Kind::ImageChunk => b"SWhlImCh",
            Kind::ImageEnd => b"SWhlImEn",
            Kind::Identity => b"SWhlIden",
        }
    }

    /// For messages.
    fn name(self) -> &'static str {
        match self {
            Kind::PartHeader => "the header of a log part",
            Kind::PageTrailer => "the trailer of a page",
            Kind::Manifest => "a checkpoint's manifest",
            Kind::ImageHeader => "the header of an index image",
            Kind::ImageChunk => "a chunk of an index image",
            Kind::ImageEnd => "the end of an index image",
            Kind::Identity => "a table's identity",
        }
    }
}

/// Declares a stored structure, and for the test the rows of its table.
macro_rules! stored {
    ($(#[doc = $what:literal])+ $name:ident {
        $($(#[doc = $meaning:literal])+ $field:ident: $type:ty,)+
    }) => {
        $(#[doc = $what])+
        #[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub(crate) struct $name {
            $($(#[doc = $meaning])+ pub(crate) $field: $type,)+
        }

        #[cfg(test)]
        impl $name {
            pub(crate) fn table() -> String {
                let mut table = format!("{} ({} bytes)\n", stringify!($name), size_of::<$name>());
                table += "  offset  bytes  field             meaning\n";
                $(
                    table += &format!(
                        "  {:6}  {:5}  {:16}  {}\n",
                        std::mem::offset_of!($name, $field),
                        size_of::<$type>(),
                        stringify!($field),
                        concat!($($meaning),+).trim(),
                    );
                )+
                table
            }
        }
    };
}

stored! {
    /// What every structure begins with.
    Envelope {
        /// kind of structure
        magic: [u8; 8],
        /// version of the format
        version: U32,
        /// CRC-32 of the bytes before this field, xor that of all bytes behind it
        checksum: U32,
    }
}

stored! {
    /// First block of a log part; the rest of the block is zero.
    PartHeader {
        /// magic, version, checksum
        envelope: Envelope,
        /// bytes of a page: 64 B to 32 MiB, a power of two
        page_bytes: U64,
        /// number of the first page
        first_page: U64,
        /// pages of a part
        page_count: U64,
        /// which table
        table_id: U64,
    }
}

stored! {
    /// What lies in a page. A CRC-32 for each block of the page's area follows, the last one of
    /// used bytes only, zero for blocks that are not used; then zeros to the end of the block.
    PageTrailer {
        /// magic, version, checksum
        envelope: Envelope,
        /// number of the page
        page: U64,
        /// the higher of a page's two trailers is the newer
        generation: U64,
        /// bytes of the page that count
        used: U64,
        /// zero
        reserved: U64,
    }
}

stored! {
    /// A complete checkpoint; the rest of the block is zero.
    ManifestBytes {
        /// magic, version, checksum
        envelope: Envelope,
        /// number of the checkpoint, from 1
        number: U64,
        /// which table
        table_id: U64,
        /// 1 variable, 2 fixed 8 bytes
        layout: U32,
        /// 1 with an index image of its own, 2 without
        extent: U32,
        /// bytes of a page
        page_bytes: U64,
        /// first log address
        begin: U64,
        /// log address behind the last record
        end: U64,
        /// number of the checkpoint with the index image
        image: U64,
        /// log address that the image covers
        image_end: U64,
        /// entries of the table
        entries: U64,
        /// bytes the checkpoint wrote
        written_bytes: U64,
    }
}

stored! {
    /// First block of an index image; the rest of the block is zero.
    ImageHeader {
        /// magic, version, checksum
        envelope: Envelope,
        /// number of the checkpoint
        number: U64,
        /// the index's own: buckets, log address in units of 8 bytes, which table
        params: [U64; 8],
    }
}

stored! {
    /// Some words of an index image; they follow, then zeros to the end of the block.
    ImageChunk {
        /// magic, version, checksum
        envelope: Envelope,
        /// number of the chunk, from 0
        sequence: U64,
        /// words that follow
        count: U64,
    }
}

stored! {
    /// Last block of an index image; the rest of the block is zero.
    ImageEnd {
        /// magic, version, checksum
        envelope: Envelope,
        /// chunks before this one
        sequence: U64,
        /// words of the image
        count: U64,
    }
}

stored! {
    /// Which table it is, and how far it came; the rest of the block is zero.
    IdentityBytes {
        /// magic, version, checksum
        envelope: Envelope,
        /// which table
        table_id: U64,
        /// the higher of the two blocks is the newer
        generation: U64,
        /// number of the newest complete checkpoint, 0 without any
        newest: U64,
    }
}

/// Bytes in front of what the checksum covers.
const ENVELOPE_BYTES: usize = size_of::<Envelope>();

impl Envelope {
    /// To be filled in by [`seal`].
    pub(crate) fn unsealed() -> Envelope {
        Envelope { magic: [0; 8], version: U32::ZERO, checksum: U32::ZERO }
    }
}

/// Puts `structure` in front of `bytes`, which hold what follows it, and seals all of them.
pub(crate) fn seal<T: IntoBytes + Immutable>(kind: Kind, structure: &T, bytes: &mut [u8]) {
    bytes[..size_of::<T>()].copy_from_slice(structure.as_bytes());
    let mut envelope =
        Envelope { magic: kind.magic(), version: VERSION.into(), checksum: U32::ZERO };
    envelope.checksum = sum(&envelope, &bytes[ENVELOPE_BYTES..]).into();
    bytes[..ENVELOPE_BYTES].copy_from_slice(envelope.as_bytes());
}

/// The checksum of a structure whose envelope says so, and goes on with `behind`. One flipped bit
/// makes version 2 of 3: so the version is in the sum, which it was not in 2.
fn sum(envelope: &Envelope, behind: &[u8]) -> u32 {
    match envelope.version.get() {
        VERSION_MIN => checksum(behind),
        _ => checksum(&envelope.as_bytes()[..offset_of!(Envelope, checksum)]) ^ checksum(behind),
    }
}

/// The envelope of a structure in a build where no checksum counts.
#[cfg(fuzzing)]
pub(crate) fn envelope_of(kind: Kind) -> [u8; ENVELOPE_BYTES] {
    let mut bytes = [0; ENVELOPE_BYTES];
    seal(kind, &Envelope::unsealed(), &mut bytes);
    bytes
}

/// Bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Counted from the first byte that was checked.
    pub(crate) offset: u64,
    pub(crate) what: String,
    /// The version of the format, where it is one that came later.
    newer: Option<u32>,
}

impl Damage {
    pub(crate) fn new(offset: usize, what: impl Into<String>) -> Damage {
        Damage { offset: offset as u64, what: what.into(), newer: None }
    }

    /// Damage to structure that begins at `base` of `file`.
    pub(crate) fn in_file(self, file: &str, base: u64) -> Error {
        let Damage { offset, what, newer } = self;
        let file = file.to_owned();
        match newer {
            Some(found) => Error::Newer { file, found, known: VERSION },
            None => Error::Corrupt { file, offset: base + offset, what },
        }
    }

    /// Refuses bytes of a later version of the format.
    pub(crate) fn expect_known(&self, file: &str) -> Result<()> {
        match self.newer {
            Some(_) => Err(self.clone().in_file(file, 0)),
            None => Ok(()),
        }
    }
}

/// The damage where files of two tables lie in one folder.
pub(crate) fn of_another_table(offset: usize, what: &str) -> Damage {
    Damage::new(offset, format!("this {what} is of another table"))
}

/// The structure in front of `bytes`, all of which were sealed with it.
pub(crate) fn check<T>(kind: Kind, bytes: &[u8]) -> std::result::Result<T, Damage>
where
    T: FromBytes + KnownLayout + Immutable,
{
    let Ok((structure, _)) = T::read_from_prefix(bytes) else {
        return Err(Damage::new(bytes.len(), format!("{} is cut off", kind.name())));
    };
    let (envelope, behind) =
        Envelope::read_from_prefix(bytes).expect("every structure begins with one");
    if envelope.magic != kind.magic() {
        return Err(Damage::new(0, format!("these bytes do not begin {}", kind.name())));
    }
    let found = envelope.version.get();
    if !(VERSION_MIN..=VERSION).contains(&found) {
        let newer = is_later_version(found, VERSION).then_some(found);
        let what = format!(
            "{} has format version {found}, and this program reads {VERSION_MIN} to {VERSION}",
            kind.name()
        );
        return Err(Damage { newer, ..Damage::new(offset_of!(Envelope, version), what) });
    }
    if envelope.checksum != sum(&envelope, behind) {
        let why = format!("the checksum does not match the bytes of {}", kind.name());
        // The first that only the checksum tells about.
        return Err(Damage::new(offset_of!(Envelope, version), why));
    }
    Ok(structure)
}

/// As [`check`], of a structure with zeros behind it.
pub(crate) fn check_alone<T>(kind: Kind, bytes: &[u8]) -> std::result::Result<T, Damage>
where
    T: FromBytes + KnownLayout + Immutable,
{
    let structure = check(kind, bytes)?;
    check_zeros(bytes, size_of::<T>())?;
    Ok(structure)
}

/// Whether bytes are zero from some place on, so that nothing is read that is not understood.
pub(crate) fn check_zeros(bytes: &[u8], from: usize) -> std::result::Result<(), Damage> {
    match bytes[from..].iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(at) => Err(Damage::new(from + at, "bytes that should be zero are not")),
    }
}

/// Kinds of files, by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// `log-<first page>.part`
    Part,
    /// `log-<first page>.unfinished`, a copy of a part being written
    UnfinishedPart,
    /// `checkpoint-<number>.manifest`
    Manifest,
    /// `checkpoint-<number>.unfinished`, a manifest being written
    UnfinishedManifest,
    /// `index-<number>.image`
    Image,
}

impl FileKind {
    fn affixes(self) -> (&'static str, &'static str) {
        match self {
            FileKind::Part => ("log-", ".part"),
            FileKind::UnfinishedPart => ("log-", ".unfinished"),
            FileKind::Manifest => ("checkpoint-", ".manifest"),
            FileKind::UnfinishedManifest => ("checkpoint-", ".unfinished"),
            FileKind::Image => ("index-", ".image"),
        }
    }

    /// The name of file `number`.
    pub(crate) fn file_name(self, number: impl Into<u64>) -> String {
        let ((prefix, suffix), number) = (self.affixes(), number.into());
        format!("{prefix}{number:016x}{suffix}")
    }

    /// The number in the name of a file of this kind.
    fn number_in(self, name: &str) -> Option<u64> {
        let (prefix, suffix) = self.affixes();
        let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
        let number = u64::from_str_radix(digits, 16).ok()?;
        // One spelling a number.
        (self.file_name(number) == name).then_some(number)
    }

    /// The numbers of all files of this kind, ascending.
    pub(crate) fn list<N: From<u64>>(self, disk: &dyn Disk) -> Result<Vec<N>> {
        Ok(self.among(&names(disk)?))
    }

    /// The numbers of those of this kind, ascending.
    pub(crate) fn among<N: From<u64>>(self, names: &[String]) -> Vec<N> {
        let mut numbers: Vec<_> = names.iter().filter_map(|name| self.number_in(name)).collect();
        numbers.sort_unstable();
        numbers.into_iter().map(N::from).collect()
    }

    /// Makes file `number`, in place of one that was left behind.
    pub(crate) fn create(self, disk: &dyn Disk, number: impl Into<u64>) -> Result<Arc<dyn File>> {
        let name = self.file_name(number);
        let made = match disk.create(&name) {
            Err(cause) if cause.kind() == std::io::ErrorKind::AlreadyExists => {
                disk.remove(&name).and_then(|()| disk.create(&name))
            }
            made => made,
        };
        made.map_err(|cause| Error::io(format!("create {name} in {}", disk.place()), &cause))
    }

    /// Opens file `number`.
    ///
    /// # Errors
    /// `Corrupt` when it is missing: the caller knows that it was written.
    pub(crate) fn open(self, disk: &dyn Disk, number: impl Into<u64>) -> Result<Arc<dyn File>> {
        let name = self.file_name(number);
        disk.open(&name).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => {
                let what = format!("the file is missing from {}", disk.place());
                Error::Corrupt { file: name, offset: 0, what }
            }
            _ => Error::io(format!("open {name} in {}", disk.place()), &cause),
        })
    }

    /// Removes file `number`, if it is there.
    pub(crate) fn remove(self, disk: &dyn Disk, number: impl Into<u64>) -> Result<()> {
        let name = self.file_name(number);
        match disk.remove(&name) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io(format!("remove {name} from {}", disk.place()), &cause))
            }
            _ => Ok(()),
        }
    }
}

/// The names of all files.
pub(crate) fn names(disk: &dyn Disk) -> Result<Vec<String>> {
    disk.list().map_err(|cause| Error::io(format!("list the files of {}", disk.place()), &cause))
}

/// Makes the names of files last.
pub(crate) fn sync_names(disk: &dyn Disk) -> Result<()> {
    disk.sync().map_err(|cause| Error::io(format!("sync the names in {}", disk.place()), &cause))
}

/// The meaning of a failed read: a file that ends too early is corrupt, all else is the disk's.
pub(crate) fn read_error(name: &str, offset: u64, bytes: usize, cause: &std::io::Error) -> Error {
    match cause.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            let what = format!("the file ends within the {bytes} bytes that should follow");
            Error::Corrupt { file: name.to_owned(), offset, what }
        }
        _ => Error::io(format!("read {bytes} bytes at {offset} of {name}"), cause),
    }
}

/// Reads blocks from a file, whole.
pub(crate) fn read(file: &dyn File, name: &str, offset: u64, into: &mut Blocks) -> Result<()> {
    let bytes = into.bytes().len();
    file.read_at(offset, into).map_err(|cause| read_error(name, offset, bytes, &cause))
}

/// One block from a file.
pub(crate) fn read_block(file: &dyn File, name: &str, offset: u64) -> Result<Blocks> {
    let mut block = Blocks::new(BLOCK_BYTES);
    read(file, name, offset, &mut block)?;
    Ok(block)
}

/// The length of a file.
pub(crate) fn file_bytes(file: &dyn File, name: &str) -> Result<u64> {
    file.bytes().map_err(|cause| Error::io(format!("ask for the length of {name}"), &cause))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use sapwood_disk::SimDisk;

    /// Rounds of a randomised test: `SEEDS` where it is set, for long runs.
    pub(crate) fn rounds(default: u32) -> u32 {
        let set = std::env::var("SEEDS").ok();
        set.map_or(default, |seeds| seeds.parse().expect("SEEDS is a number"))
    }

    /// Compares what is written now with the file that was written when this version was new.
    /// `GOLDEN=write` writes the latter: for a new version of a format.
    pub(crate) fn assert_golden(name: &str, written: &[u8]) {
        let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var("GOLDEN").is_ok_and(|what| what == "write") {
            std::fs::write(&path, written).expect("the golden file can be written");
        }
        let golden = std::fs::read(&path).expect("the golden file is there");
        assert!(golden == written, "{name}: version {VERSION} is written differently now");
    }

    #[test]
    fn the_table_in_the_documents_is_this_one() {
        let tables = [
            Envelope::table(),
            PartHeader::table(),
            PageTrailer::table(),
            ManifestBytes::table(),
            ImageHeader::table(),
            ImageChunk::table(),
            ImageEnd::table(),
            IdentityBytes::table(),
        ];
        let table = tables.join("\n");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/layout/disk.txt");
        let documented = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(documented, table, "copy the table into docs/design/layout/disk.txt");
    }

    #[test]
    fn a_flipped_bit_anywhere_is_noticed() {
        let mut bytes = vec![0; 600];
        bytes[500] = 9;
        let header = PartHeader {
            envelope: Envelope::unsealed(),
            page_bytes: 64.into(),
            first_page: 8.into(),
            page_count: 4.into(),
            table_id: 1.into(),
        };
        seal(Kind::PartHeader, &header, &mut bytes);
        let checked: PartHeader = check(Kind::PartHeader, &bytes).expect("as sealed");
        assert_eq!(checked.first_page, 8);
        assert!(check::<PartHeader>(Kind::ImageHeader, &bytes).is_err(), "another kind");
        for at in 0..bytes.len() {
            bytes[at] ^= 0x10;
            assert!(check::<PartHeader>(Kind::PartHeader, &bytes).is_err(), "byte {at}");
            bytes[at] ^= 0x10;
        }
        for len in 0..bytes.len() {
            assert!(check::<PartHeader>(Kind::PartHeader, &bytes[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn names_and_numbers_are_one_to_one() {
        for kind in
            [FileKind::Part, FileKind::Manifest, FileKind::UnfinishedManifest, FileKind::Image]
        {
            for number in [0, 1, 0xabc, u64::MAX] {
                assert_eq!(kind.number_in(&kind.file_name(number)), Some(number));
            }
        }
        for name in [
            "",
            "log-",
            "log-.part",
            "log-1.part",
            "log-000000000000000G.part",
            "log-00000000000000AB.part",
            "log-+000000000000001.part",
            "log-00000000000000001.part",
            "checkpoint-0000000000000001.part",
            "log-0000000000000001.part.x",
        ] {
            assert_eq!(FileKind::Part.number_in(name), None, "{name}");
        }
    }

    #[test]
    fn left_behind_files_are_replaced_and_foreign_ones_left_alone() {
        let disk = SimDisk::new();
        disk.plant("index-0000000000000007.image", b"torn").expect("planted");
        disk.plant("notes.txt", b"mine").expect("planted");
        let file = FileKind::Image.create(&disk, 7_u64).expect("made anew");
        assert_eq!(file_bytes(&*file, "it").expect("a length"), 0);
        assert_eq!(FileKind::Image.list::<u64>(&disk).expect("names"), [7]);
        FileKind::Image.remove(&disk, 7_u64).expect("removed");
        FileKind::Image.remove(&disk, 7_u64).expect("gone already");
        assert_eq!(disk.list().expect("names"), ["notes.txt"]);
        let missing = FileKind::Image.open(&disk, 7_u64).expect_err("gone");
        assert!(matches!(missing, Error::Corrupt { .. }), "{missing}");
    }
}

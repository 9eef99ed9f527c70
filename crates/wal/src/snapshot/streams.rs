//! Bytes that lie together, packed where that saves some.

use integer_encoding::VarInt;
use sapwood_disk::checksum;

use crate::frame::{number, split};

/// Values up to this width lie by planes.
const PLANES_MAX: usize = 16;

/// Packed bytes of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    /// Before they were packed.
    pub(super) bytes: usize,
    /// As many mean that they are as they were.
    pub(super) packed: usize,
    checksum: u32,
}

impl Stream {
    /// Appends bytes to `out`, packed.
    pub(super) fn pack(bytes: &[u8], out: &mut Vec<u8>) -> Stream {
        let begin = out.len();
        let most = lz4_flex::block::get_maximum_output_size(bytes.len());
        out.resize(begin + most, 0);
        match lz4_flex::block::compress_into(bytes, &mut out[begin..]) {
            Ok(packed) if packed < bytes.len() => out.truncate(begin + packed),
            _ => {
                out.truncate(begin);
                out.extend_from_slice(bytes);
            }
        }
        let packed = &out[begin..];
        Stream { bytes: bytes.len(), packed: packed.len(), checksum: checksum(packed) }
    }

    pub(super) fn encode(&self, head: &mut Vec<u8>) {
        push(self.bytes as u64, head);
        push(self.packed as u64, head);
        head.extend_from_slice(&self.checksum.to_le_bytes());
    }

    pub(super) fn decode(head: &mut &[u8]) -> Option<Stream> {
        let bytes = usize::try_from(number(head)?).ok()?;
        let packed = usize::try_from(number(head)?).ok()?;
        let checksum = u32::from_le_bytes(split(head, 4)?.try_into().ok()?);
        // LZ4 makes no more of a byte: such a length would be made up.
        let is_possible = packed <= bytes && bytes / 256 <= packed;
        is_possible.then_some(Stream { bytes, packed, checksum })
    }

    /// What was packed, or what is wrong with it.
    pub(super) fn unpack(&self, packed: Vec<u8>) -> Result<Vec<u8>, &'static str> {
        if checksum(&packed) != self.checksum {
            return Err("a checksum is wrong");
        }
        if self.packed == self.bytes {
            return Ok(packed);
        }
        match lz4_flex::block::decompress(&packed, self.bytes) {
            Ok(bytes) if bytes.len() == self.bytes => Ok(bytes),
            _ => Err("it cannot be decompressed"),
        }
    }
}

/// Appends a number of as many bytes as it needs.
pub(super) fn push(number: u64, out: &mut Vec<u8>) {
    let mut encoded = [0; 10];
    let len = number.encode_var(&mut encoded);
    out.extend_from_slice(&encoded[..len]);
}

/// Values of one width, by planes if they are narrow.
pub(super) fn to_planes(values: &[u8], width: usize, planes: &mut Vec<u8>) {
    planes.clear();
    if !(2..=PLANES_MAX).contains(&width) {
        planes.extend_from_slice(values);
        return;
    }
    for plane in 0..width {
        planes.extend(values.iter().skip(plane).step_by(width));
    }
}

/// Takes the next bytes of each entry, so many from where it begins, as [`to_planes`] has them.
pub(super) fn take_planes(bytes: &[u8], begins: &mut [usize], width: usize, planes: &mut Vec<u8>) {
    fn take<const W: usize>(bytes: &[u8], begins: &mut [usize], planes: &mut Vec<u8>) {
        planes.clear();
        planes.resize(begins.len() * W, 0);
        let mut parts = planes.chunks_exact_mut(begins.len());
        let mut planes: [&mut [u8]; W] = std::array::from_fn(|_| parts.next().expect("a plane"));
        for (at, begin) in begins.iter_mut().enumerate() {
            let value = bytes[*begin..].first_chunk::<W>().expect("the entry is as long");
            for (plane, byte) in planes.iter_mut().zip(value) {
                plane[at] = *byte;
            }
            *begin += W;
        }
    }
    match width {
        1 => take::<1>(bytes, begins, planes),
        2 => take::<2>(bytes, begins, planes),
        4 => take::<4>(bytes, begins, planes),
        8 => take::<8>(bytes, begins, planes),
        16 => take::<16>(bytes, begins, planes),
        _ => {
            let mut values = Vec::with_capacity(begins.len() * width);
            for begin in begins {
                values.extend_from_slice(&bytes[*begin..*begin + width]);
                *begin += width;
            }
            to_planes(&values, width, planes);
        }
    }
}

/// The reverse of [`to_planes`].
pub(super) fn from_planes(planes: Vec<u8>, width: usize) -> Vec<u8> {
    fn interleave<const W: usize>(planes: &[u8]) -> Vec<u8> {
        let count = planes.len() / W;
        let planes: [&[u8]; W] = std::array::from_fn(|plane| &planes[plane * count..][..count]);
        let mut values = Vec::with_capacity(count * W);
        values.extend((0..count).flat_map(|at| planes.map(|plane| plane[at])));
        values
    }
    match width {
        2 => interleave::<2>(&planes),
        4 => interleave::<4>(&planes),
        8 => interleave::<8>(&planes),
        16 => interleave::<16>(&planes),
        3..PLANES_MAX => {
            let count = planes.len() / width;
            let place = |at: usize| planes[at % width * count + at / width];
            (0..planes.len()).map(place).collect()
        }
        _ => planes,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn planes_are_taken_back(width in 1_usize..40, count in 0_usize..50, seed: u64) {
            let mut random = fastrand::Rng::with_seed(seed);
            let values: Vec<u8> = (0..width * count).map(|_| random.u8(..)).collect();
            let mut planes = Vec::new();
            to_planes(&values, width, &mut planes);
            prop_assert_eq!(from_planes(planes, width), values);
        }

        #[test]
        fn planes_of_entries_are_those_of_their_values(width in 0_usize..20, count in 1_usize..50, seed: u64) {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut bytes, mut begins, mut values) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..count {
                bytes.extend((0..random.usize(0..5)).map(|_| 0xFF));
                begins.push(bytes.len());
                bytes.extend((0..width).map(|_| random.u8(..)));
                values.extend_from_slice(&bytes[begins[begins.len() - 1]..]);
            }
            let ends: Vec<usize> = begins.iter().map(|begin| begin + width).collect();
            let (mut planes, mut expected) = (Vec::new(), Vec::new());
            take_planes(&bytes, &mut begins, width, &mut planes);
            to_planes(&values, width, &mut expected);
            prop_assert_eq!(planes, expected);
            prop_assert_eq!(begins, ends);
        }

        #[test]
        fn streams_are_unpacked(bytes: Vec<u8>, repeats in 1_usize..50) {
            let bytes = bytes.repeat(repeats);
            let (mut packed, mut head) = (vec![7], Vec::new());
            let stream = Stream::pack(&bytes, &mut packed);
            stream.encode(&mut head);
            let read = Stream::decode(&mut &head[..]).expect("it was encoded");
            prop_assert_eq!(read.unpack(packed[1..].to_vec()), Ok(bytes));
        }
    }
}

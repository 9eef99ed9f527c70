//! Opening makes sure of what it reads.
//!
//! An earlier life may have ended without a sync, or by one that failed. After the latter the page cache can
//! have what the media lack, and take it for written: a later sync succeeds and does nothing. So whatever no
//! life knew to last is written again, the same bytes to the same place, before it is synced and relied upon.

use std::io;

use super::format::{self, PART_HEADER_BYTES};
use super::read::Read;
use crate::{CachedFile, Disk};

/// Bytes that are written again in one go.
const STEP_BYTES: u64 = 1 << 20;

/// Makes all that was read last.
pub(super) fn renew(disk: &dyn Disk, prefix: &str, read: &mut Read) -> io::Result<()> {
    let mut is_renamed = false;
    let ends: Vec<_> = read.parts.iter().skip(1).map(|part| part.first).chain([read.end]).collect();
    for (part, end) in read.parts.iter_mut().zip(ends) {
        // A sync that got beyond its first record had its header, too, and its name.
        let is_known = part.first < read.durable;
        if is_known && end <= read.durable {
            continue;
        }
        let place = |lsn| PART_HEADER_BYTES + (lsn - part.first);
        write_again(&*part.file, if is_known { place(read.durable) } else { 0 }, place(end))?;
        part.file.sync()?;
        if !is_known {
            // A name is made to last by another one; the header says which part it is.
            let name = format::name(prefix, read.next_number);
            read.next_number += 1;
            disk.rename(&part.name, &name)?;
            read.names.retain(|old| *old != part.name);
            part.name = name;
            is_renamed = true;
        }
    }
    if is_renamed {
        disk.sync()?;
    }
    read.durable = read.end;
    Ok(())
}

fn write_again(file: &dyn CachedFile, from: u64, to: u64) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut at = from;
    while at < to {
        bytes.resize((to - at).min(STEP_BYTES) as usize, 0);
        file.read_at(at, &mut bytes)?;
        file.write_at(at, &bytes)?;
        at += bytes.len() as u64;
    }
    Ok(())
}

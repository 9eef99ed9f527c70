//! The files of a table that nothing needs, judged from the stored formats, which
//! `docs/design/layout/disk.txt` describes, and not by the code that writes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sapwood::HashTable;

/// Where a manifest says whose index image it needs.
const IMAGE_OFFSET: usize = 64;

/// Names of files in the folder of an open table that are neither its own (options, identity,
/// locks), nor of the log, nor a manifest that the table lists, nor an image that such a manifest
/// names.
pub(crate) fn of_table(folder: &Path, table: &HashTable) -> Result<Vec<String>, String> {
    let unread = |what: &Path, cause| format!("cannot read {}: {cause}", what.display());
    let kept = table.checkpoints().map_err(|e| e.to_string())?;
    let mut needed: BTreeSet<String> =
        ["options", "table.identity", ".lock", ".readers"].map(str::to_owned).into();
    for info in kept {
        let manifest = format!("checkpoint-{:016x}.manifest", info.number);
        let path = folder.join(&manifest);
        let bytes = fs::read(&path).map_err(|e| unread(&path, e))?;
        let image = bytes.get(IMAGE_OFFSET..IMAGE_OFFSET + 8).map(<[u8; 8]>::try_from);
        let Some(Ok(image)) = image else {
            return Err(format!("{} is too short", path.display()));
        };
        needed.insert(format!("index-{:016x}.image", u64::from_le_bytes(image)));
        needed.insert(manifest);
    }
    let mut left = Vec::new();
    for file in fs::read_dir(folder).map_err(|e| unread(folder, e))? {
        let name = file.map_err(|e| unread(folder, e))?.file_name().to_string_lossy().into_owned();
        let of_log = name.starts_with("log-") && name.ends_with(".part");
        if !of_log && !needed.contains(&name) {
            left.push(name);
        }
    }
    left.sort();
    Ok(left)
}

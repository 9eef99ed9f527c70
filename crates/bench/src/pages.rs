//! Memory on 2 MiB pages for baselines and for the off-heap peer, without unsafe code.

use memmap2::MmapMut;

use crate::resident::available_bytes;

/// Writes into so many bytes and gives them back: a virtual machine gets memory from its host when it first writes there,
/// which must not count as the time of what is loaded first. Half of what the machine has left at most.
pub(crate) fn touch(bytes: usize) {
    const PAGE: usize = 4 << 10;
    let most = available_bytes().unwrap_or_default() as usize / 2;
    let bytes = bytes.min(most);
    if bytes > 0 {
        let mut map = map_huge(bytes);
        map.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    }
}

/// Zeroed memory on 2 MiB pages where the system gives them, else on 4 KiB ones.
pub(crate) fn map_huge(bytes: usize) -> MmapMut {
    let map = MmapMut::map_anon(bytes)
        .expect("the system gives memory: choose fewer entries if it does not");
    #[cfg(target_os = "linux")]
    let _refused = map.advise(memmap2::Advice::HugePage);
    map
}

//! Memory on 2 MiB pages for baselines and for the off-heap peer, without unsafe code.

use memmap2::MmapMut;

/// Zeroed memory on 2 MiB pages where the system gives them, else on 4 KiB ones.
pub(crate) fn map_huge(bytes: usize) -> MmapMut {
    let map = MmapMut::map_anon(bytes)
        .expect("the system gives memory: choose fewer entries if it does not");
    #[cfg(target_os = "linux")]
    let _refused = map.advise(memmap2::Advice::HugePage);
    map
}

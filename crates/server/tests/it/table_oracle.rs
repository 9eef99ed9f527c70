//! Streams of commands on tables of each kind against a map.

use proptest::prelude::*;

use crate::table_map::check;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 64 } else { 512 }))]

    #[test]
    fn tables_of_each_kind_are_maps(bytes in prop::collection::vec(any::<u8>(), 1..800)) {
        check(&bytes);
    }
}

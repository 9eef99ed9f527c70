//! The table of bytes, `docs/design/layout/ptree.txt`, which is printed from the code.

use std::fmt::Write;

use crate::object::LayoutRow;
use crate::tree::{btree, crit_bit, entry, red_black, structure};
use crate::{heap, object, redo, superblock};

fn table(title: &str, unit: &str, rows: &[LayoutRow]) -> String {
    let mut table = format!("{title}\n  {unit:<10}  field        meaning\n");
    let mut end = 0;
    for &(first, count, field, meaning) in rows {
        assert!(first >= end && count > 0, "{title}: {field} is behind those before it");
        end = first + count;
        let place = match count {
            1 => first.to_string(),
            _ => format!("{first}..{}", end),
        };
        let _ = writeln!(table, "  {place:<10}  {field:<11}  {meaning}");
    }
    table + "\n"
}

fn tables() -> String {
    let [zone, descriptor, kind, root] = heap::layout::layout();
    let [b, record] = entry::layout();
    let [leaf, inner] = btree::layout();
    let [crit_bit_node, crit_bit_link] = crit_bit::layout();
    let [red_black_node, red_black_link] = red_black::layout();
    let classes = heap::layout::CLASSES.iter().map(u16::to_string).collect::<Vec<_>>();
    [
        "Words have 8 bytes, little endian; bits are counted from the lowest.\n\n".to_owned(),
        table("Superblock", "bytes", &superblock::layout()),
        table("Zone (256 MiB)", "chunks", &zone),
        table("Descriptor of a chunk", "words", &descriptor),
        table("Kind of a chunk", "bits", &kind),
        format!("Size classes, in words\n  {}\n\n", classes.join(" ")),
        table("Header of an object", "bits", &object::layout()),
        table("Root", "words", &root),
        table("Head of a tree", "words", &structure::layout()),
        table("b of an entry of byte keys", "bits", &b),
        table("Record of a key of 19 bytes and a value of 1 to 8", "words", &record),
        table("Leaf of a B-tree", "words", &leaf),
        table("Inner node of a B-tree", "words", &inner),
        table("Node of a crit-bit tree", "words", &crit_bit_node),
        table("Link of a crit-bit tree", "bits", &crit_bit_link),
        table("Node of a red-black tree", "words", &red_black_node),
        table("Link of a red-black tree", "bits", &red_black_link),
        table("Change in a record of the log", "bits", &redo::layout()),
    ]
    .concat()
}

/// The document cannot drift: `cargo xtask layout --bless` writes it anew.
#[test]
fn layout_is_the_documented_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/layout/ptree.txt");
    let tables = tables();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &tables).expect("docs/design/layout can be written");
    }
    let documented = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(tables, documented, "run `cargo xtask layout --bless` and look at the difference");
}

//! stub
use super::entry::{Entry, Probe};
use super::structure::*;
use crate::error::Result;
use crate::object::{ObjectId, ObjectType, load};
use crate::transaction::Transaction;
use crate::view::View;
use std::cmp::Ordering;
use std::ops::Bound;
pub(crate) struct RedBlack;
fn node(view: &impl View, at: u64) -> Result<(u64, Entry)> {
    let w = view.object(ObjectId::new(at), 4)?;
    Ok((load(&w[1]), Entry { a: load(&w[2]), b: load(&w[3]) }))
}
fn seek(view: &impl View, head: &Head, key: Probe<'_>) -> Result<(u64, u64, Option<Entry>)> {
    let (mut prev, mut at) = (0, head.root);
    for _ in 0..100000 {
        if at == 0 {
            break;
        }
        let (next, e) = node(view, at)?;
        match head.layout.compare(view, key, e)? {
            Ordering::Equal => return Ok((prev, at, Some(e))),
            Ordering::Less => break,
            Ordering::Greater => {
                prev = at;
                at = next;
            }
        }
    }
    Ok((prev, at, None))
}
impl Structure for RedBlack {
    fn find(view: &impl View, head: &Head, key: Probe<'_>) -> Result<Option<Entry>> {
        Ok(seek(view, head, key)?.2)
    }
    fn place(tx: &Transaction<'_>, head: &Head, key: Probe<'_>) -> Result<Option<(Place, Entry)>> {
        let (_, at, e) = seek(tx, head, key)?;
        Ok(e.map(|e| (Place { node: ObjectId::new(at), slot: 0 }, e)))
    }
    fn insert(
        tx: &Transaction<'_>,
        head: &mut Head,
        key: Probe<'_>,
        make: impl FnOnce() -> Result<Entry>,
    ) -> Result<Inserted> {
        let (prev, at, e) = seek(tx, head, key)?;
        if let Some(e) = e {
            return Ok(Inserted::There(Place { node: ObjectId::new(at), slot: 0 }, e));
        }
        let e = make()?;
        let (id, n) = tx.make(ObjectType::BTREE_NODE, 4)?;
        n.set(1, at);
        n.set(2, e.a);
        n.set(3, e.b);
        if prev == 0 {
            head.set_root(tx, id.word())?;
        } else {
            tx.edit(ObjectId::new(prev), 4)?.set(1, id.word());
        }
        head.set_count(tx, head.count + 1)?;
        Ok(Inserted::New)
    }
    fn set(tx: &Transaction<'_>, _head: &Head, place: Place, entry: Entry) -> Result<()> {
        tx.edit(place.node, 4)?.set(3, entry.b);
        Ok(())
    }
    fn remove(tx: &Transaction<'_>, head: &mut Head, key: Probe<'_>) -> Result<Option<Entry>> {
        let (prev, at, e) = seek(tx, head, key)?;
        let Some(e) = e else { return Ok(None) };
        let (next, _) = node(tx, at)?;
        if prev == 0 {
            head.set_root(tx, next)?;
        } else {
            tx.edit(ObjectId::new(prev), 4)?.set(1, next);
        }
        tx.free(ObjectId::new(at))?;
        head.set_count(tx, head.count - 1)?;
        Ok(Some(e))
    }
    fn walk(
        view: &impl View,
        head: &Head,
        from: Bound<Probe<'_>>,
        direction: Direction,
        tell: &mut dyn FnMut(Entry) -> Result<Flow>,
    ) -> Result<()> {
        let mut all = Vec::new();
        let mut at = head.root;
        for _ in 0..100000 {
            if at == 0 {
                break;
            }
            let (n, e) = node(view, at)?;
            all.push(e);
            at = n;
        }
        if direction == Direction::Descending {
            all.reverse();
        }
        for e in all {
            let (p, inc) = match from {
                Bound::Unbounded => {
                    if tell(e)?.is_break() {
                        return Ok(());
                    }
                    continue;
                }
                Bound::Included(p) => (p, true),
                Bound::Excluded(p) => (p, false),
            };
            let o = head.layout.compare(view, p, e)?;
            let ok = match (o, direction) {
                (Ordering::Equal, _) => inc,
                (Ordering::Less, Direction::Ascending)
                | (Ordering::Greater, Direction::Descending) => true,
                _ => false,
            };
            if ok && tell(e)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }
    fn check(
        view: &impl View,
        head: &Head,
        tell: &mut dyn FnMut(ObjectId) -> Result<()>,
        entry: &mut dyn FnMut(Entry) -> Result<()>,
    ) -> Result<()> {
        let mut at = head.root;
        for _ in 0..100000 {
            if at == 0 {
                break;
            }
            let (n, e) = node(view, at)?;
            entry(e)?;
            tell(ObjectId::new(at))?;
            at = n;
        }
        Ok(())
    }
    fn build(
        tx: &Transaction<'_>,
        head: &mut Head,
        entries: &mut dyn Iterator<Item = Result<Entry>>,
    ) -> Result<()> {
        let mut last = 0;
        for e in entries {
            let e = e?;
            let (id, n) = tx.make(ObjectType::BTREE_NODE, 4)?;
            n.set(1, 0);
            n.set(2, e.a);
            n.set(3, e.b);
            if last == 0 {
                head.set_root(tx, id.word())?;
            } else {
                tx.edit(ObjectId::new(last), 4)?.set(1, id.word());
            }
            last = id.word();
            head.set_count(tx, head.count + 1)?;
        }
        Ok(())
    }
}

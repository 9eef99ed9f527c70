//! Transactions: several changes as one, or none of them.
//!
//! A transaction changes copies. The first change to an object takes a copy of it into the memory of
//! a [`Lane`], later ones find that copy by the object's header in constant time,
//! however often and in whatever overlap an object is changed. A new object is written where it will
//! be: nothing leads there yet. So the heap holds what is committed, and nothing else, at any time:
//! an abort forgets the copies, and a page of the heap may be written to disk whenever. (That is a
//! redo log; PMDK changes in place and keeps the old words in an undo log, which must be durable
//! before each first change.)
//!
//! A commit is one record in the log. Then the copies' changed words are stored to the heap, under
//! the versions of the trees that they belong to.

use std::cell::Cell;
use std::marker::PhantomData;

use sapwood_mem::sync::Ordering;

use crate::commit::Commit;
use crate::error::{Error, Result};
use crate::heap::layout::{self, CHUNK_WORDS, Class, Kind, SHARED_WORDS_MAX};
use crate::heap::{self, is_taken, object_words};
use crate::lane::{BoxedLane, Lane, Touched, What};
use crate::object::{LOOK, ObjectId, ObjectType, Word, header, load, slot_of, type_of, with_slot};
use crate::pool::Inner;
use crate::redo::Redo;
use crate::view::{View, outside};

mod commit;

pub use commit::Unsettled;

/// Changes that become visible and durable together, at [`Transaction::commit`], or not at all.
///
/// *Isolation*: the transaction holds each tree that it changes until it ends, against other
/// transactions; readers see the tree as it was before until the commit, and all of it afterwards.
/// A transaction sees its own changes. One that is dropped is aborted.
///
/// *Thread safety*: a transaction stays in its thread; any number of threads may have some each. A
/// thread that would wait for a tree which another transaction of its own holds is told so
/// ([`Error::Reentrant`]).
#[derive(Debug)]
pub struct Transaction<'p> {
    pub(crate) pool: &'p Inner,
    /// Always there but while the transaction ends.
    lane: Option<BoxedLane>,
    aborted: Cell<bool>,
    /// Whether a closure runs that decides about a value.
    closure: Cell<bool>,
    /// One thread uses it: the trees that it holds are that thread's.
    _of_one_thread: PhantomData<*const ()>,
}

/// An object that a transaction may change.
#[derive(Clone, Copy)]
pub(crate) struct Edit<'t> {
    words: &'t [Word],
    mask: &'t [Word],
}

impl<'t> Edit<'t> {
    /// The object as the transaction sees it.
    #[inline]
    pub(crate) fn words(self) -> &'t [Word] {
        self.words
    }

    /// One of its words.
    #[inline]
    pub(crate) fn get(self, index: usize) -> u64 {
        load(&self.words[index])
    }

    /// Sets one of its words, of which the first is not the caller's.
    #[inline]
    pub(crate) fn set(self, index: usize, value: u64) {
        debug_assert!(index > 0, "the header is not set");
        self.words[index].store(value, Ordering::Relaxed);
        let mask = &self.mask[index / 64];
        mask.store(load(mask) | 1 << (index % 64), Ordering::Relaxed);
    }
}

impl View for Transaction<'_> {
    #[inline]
    fn object(&self, id: ObjectId, words: usize) -> Result<&[Word]> {
        let found = self.pool.space.get(id.index(), words);
        let Some(found) = found.filter(|found| !id.is_null() && !found.is_empty()) else {
            return Err(outside(id, words));
        };
        // A transaction that has touched nothing need not wait for headers.
        if self.lane().is_untouched() {
            return Ok(found);
        }
        let header = load(&found[0]);
        if header & LOOK == 0 {
            return Ok(found);
        }
        self.look(id, header, found)
    }
}

impl<'p> Transaction<'p> {
    pub(crate) fn new(pool: &'p Inner, lane: BoxedLane) -> Transaction<'p> {
        Transaction {
            pool,
            lane: Some(lane),
            aborted: Cell::new(false),
            closure: Cell::new(false),
            _of_one_thread: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn lane(&self) -> &Lane {
        self.lane.as_deref().expect("the transaction has not ended")
    }

    #[inline]
    fn touched_at(&self, id: ObjectId, header: u64) -> Option<Touched<'_>> {
        self.lane().find(slot_of(header), id)
    }

    /// An object whose header says that a transaction may have touched it.
    fn look<'t>(&'t self, id: ObjectId, header: u64, found: &'t [Word]) -> Result<&'t [Word]> {
        let Some(touched) = self.touched_at(id, header) else { return Ok(found) };
        match touched.what() {
            What::Copied => {
                touched.copy().get(..found.len()).ok_or_else(|| outside(id, found.len()))
            }
            What::Made => Ok(found),
            What::Freed | What::Gone => Err(Error::NoObject(id)),
        }
    }

    /// An object of so many words, to be changed. A transaction that changes objects
    /// of a tree holds it.
    #[inline]
    pub(crate) fn edit(&self, id: ObjectId, words: usize) -> Result<Edit<'_>> {
        let found = self.pool.space.get(id.index(), words);
        let Some(found) = found.filter(|found| !id.is_null() && !found.is_empty()) else {
            return Err(outside(id, words));
        };
        let Some(touched) = self.touched_at(id, load(&found[0])) else {
            return self.copy(id, found);
        };
        let words = match touched.what() {
            What::Copied => touched.copy().get(..words),
            What::Made => Some(found).filter(|found| found.len() <= touched.len()),
            What::Freed | What::Gone => return Err(Error::NoObject(id)),
        };
        let words = words.ok_or_else(|| outside(id, found.len()))?;
        Ok(Edit { words, mask: touched.mask() })
    }

    fn copy(&self, id: ObjectId, found: &[Word]) -> Result<Edit<'_>> {
        self.check()?;
        let touched = self.touch(id, found, What::Copied)?;
        let words = touched.copy();
        for (word, found) in words.iter().zip(found) {
            word.store(load(found), Ordering::Relaxed);
        }
        Ok(Edit { words, mask: touched.mask() })
    }

    /// Notes that an object is the transaction's own from now on.
    #[inline]
    fn touch(&self, id: ObjectId, found: &[Word], what: What) -> Result<Touched<'_>> {
        let (slot, touched) = self.lane().note(id, found.len(), what)?;
        let look = if what == What::Made { 0 } else { LOOK };
        found[0].store(with_slot(load(&found[0]), slot) | look, Ordering::Relaxed);
        Ok(touched)
    }

    /// Makes an object of so many words, its header included. They hold anything until they are set,
    /// and what is not set is not kept.
    pub(crate) fn make(
        &self,
        object_type: ObjectType,
        words: usize,
    ) -> Result<(ObjectId, Edit<'_>)> {
        self.check()?;
        if words == 0 || words > layout::OBJECT_WORDS_MAX {
            return Err(Error::ObjectLength { words, most: layout::OBJECT_WORDS_MAX });
        }
        let id = match words <= SHARED_WORDS_MAX {
            true => self.take_slot(Class::of(words))?,
            false => self.take_chunks(words.div_ceil(CHUNK_WORDS))?,
        };
        let found = self.pool.space.get(id.index(), words).ok_or_else(|| outside(id, words))?;
        found[0].store(header(object_type), Ordering::Relaxed);
        let mask = self.touch(id, found, What::Made)?.mask();
        mask[0].store(1, Ordering::Relaxed);
        Ok((id, Edit { words: found, mask }))
    }

    #[inline]
    fn take_slot(&self, class: Class) -> Result<ObjectId> {
        let mut runs = self.lane().runs.borrow_mut();
        let run = &mut runs[usize::from(class.0)];
        if let Some(id) = run.as_mut().and_then(|run| run.take(class)) {
            return Ok(id);
        }
        let mut fresh = self.pool.take_run(class)?;
        let id = fresh.take(class).ok_or_else(|| Error::corrupt(0, "a run came without slots"))?;
        *run = Some(fresh);
        Ok(id)
    }

    fn take_chunks(&self, count: usize) -> Result<ObjectId> {
        let chunk = self.pool.take_chunks(count)?;
        Ok(ObjectId::new(layout::first_word(chunk) as u64))
    }

    /// Frees an object. It is there for others until the commit.
    pub(crate) fn free(&self, id: ObjectId) -> Result<()> {
        self.check()?;
        let first = self.pool.space.get(id.index(), 1).filter(|_| !id.is_null());
        let first = first.ok_or_else(|| outside(id, 1))?;
        let touched = self.touched_at(id, load(&first[0]));
        match touched.map(|touched| (touched, touched.what())) {
            Some((touched, What::Made)) => {
                touched.become_what(What::Gone);
                first[0].store(load(&first[0]) | LOOK, Ordering::Relaxed);
                return Ok(());
            }
            Some((touched, What::Copied)) => touched.become_what(What::Freed),
            Some((_, What::Freed | What::Gone)) => return Err(Error::NoObject(id)),
            None => {
                self.touch(id, first, What::Freed)?;
            }
        }
        let words = object_words(&self.pool.space, id)?;
        if !is_taken(&self.pool.space, id)? {
            return Err(Error::corrupt(id.index(), "an object in use is counted as free"));
        }
        let chunks = (words > SHARED_WORDS_MAX).then_some(words / CHUNK_WORDS);
        self.lane().freed.borrow_mut().push((id, chunks));
        Ok(())
    }

    /// # Errors
    /// [`Error::Aborted`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.aborted.get() { Err(Error::Aborted) } else { Ok(()) }
    }

    /// Runs a closure of the user, which may read in the transaction, and changes nothing there.
    pub(crate) fn in_closure<R>(&self, run: impl FnOnce() -> R) -> R {
        struct Ends<'c>(&'c Cell<bool>, bool);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let _ends = Ends(&self.closure, self.closure.replace(true));
        run()
    }

    pub(crate) fn is_in_closure(&self) -> bool {
        self.closure.get()
    }

    /// Runs `change` as a part of this transaction. Where it fails, all of the transaction is
    /// aborted: nested transactions are flat.
    ///
    /// # Errors
    /// That of `change`; from then on [`Error::Aborted`], whatever is called.
    pub fn nested<R>(&self, change: impl FnOnce(&Transaction<'p>) -> Result<R>) -> Result<R> {
        self.check()?;
        let done = change(self);
        if done.is_err() {
            self.aborted.set(true);
        }
        done
    }

    /// Makes all changes visible and durable, as far as the pool's [`Durability`] says.
    ///
    /// [`Durability`]: crate::Durability
    ///
    /// # Errors
    /// [`Error::Aborted`] after a nested transaction that failed; [`Error::Io`], after which it may
    /// be that the changes are there when the pool is opened again. Nothing changes otherwise.
    pub fn commit(self) -> Result<Commit> {
        self.commit_unsettled()?.settle()
    }

    /// As [`commit`](Self::commit), and leaves it to the caller to wait for what the pool's durability
    /// wants: readers see the changes once this returns.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_unsettled(self) -> Result<Unsettled<'p>> {
        self.commit_as(false)
    }

    /// `ends_group` as of [`SharedLog::append`](sapwood_disk::log::SharedLog::append).
    pub(crate) fn commit_as(mut self, ends_group: bool) -> Result<Unsettled<'p>> {
        self.check()?;
        let lane = self.lane();
        let mut redo = lane.redo.borrow_mut();
        let mut made = false;
        for object in lane.touched() {
            match object.what() {
                What::Copied => {
                    let words = object.copy();
                    for_each_set_run(object.mask(), |run| {
                        redo.store(object.id().index() + run.start, &words[run]);
                    });
                }
                What::Made => {
                    self.log_made(object, &mut redo)?;
                    made = true;
                }
                What::Freed | What::Gone => {}
            }
        }
        redo.begin_allocations();
        let mut bits = Bits::default();
        if made {
            for object in lane.touched().filter(|object| object.what() == What::Made) {
                bits.taken(object.id(), object.len(), &mut redo);
            }
        }
        bits.flush(&mut redo, Redo::set_bits);
        for &(id, _) in self.lane().freed.borrow().iter() {
            bits.freed(id, &self.pool.space, &mut redo)?;
        }
        bits.flush(&mut redo, Redo::clear_bits);
        drop(redo);
        let pool = self.pool;
        let published = pool.publish(&self, ends_group)?;
        self.end(Outcome::Committed);
        Ok(Unsettled { pool, published })
    }

    /// Logs what was set of a new object.
    fn log_made(&self, object: Touched<'_>, redo: &mut Redo) -> Result<()> {
        let id = object.id();
        let words = self.pool.space.get(id.index(), object.len());
        let words = words.ok_or_else(|| outside(id, object.len()))?;
        // Without the slot, which belongs to this transaction alone.
        words[0].store(header(type_of(load(&words[0]))), Ordering::Relaxed);
        for_each_set_run(object.mask(), |run| {
            redo.store(id.index() + run.start, &words[run]);
        });
        Ok(())
    }

    /// The redo record, which a commit has filled.
    pub(crate) fn redo(&self) -> std::cell::Ref<'_, Redo> {
        self.lane().redo.borrow()
    }

    /// Stores the changed words of all copies to the heap, and tells the ranges of words that are
    /// new or changed.
    pub(crate) fn store_copies(&self, mut changed: impl FnMut(usize, usize)) {
        for object in self.lane().touched() {
            let at = object.id().index();
            match object.what() {
                What::Copied => {
                    let Some(heap) = self.pool.space.get(at, object.len()) else { continue };
                    let words = object.copy();
                    for_each_set_run(object.mask(), |run| {
                        for (to, from) in heap[run.clone()].iter().zip(&words[run.clone()]) {
                            to.store(load(from), Ordering::Relaxed);
                        }
                        changed(at + run.start, run.len());
                    });
                    heap[0].store(load(&heap[0]) & !LOOK, Ordering::Relaxed);
                }
                What::Made => changed(at, object.len()),
                What::Freed | What::Gone => {}
            }
        }
    }

    /// What was freed, for the heap.
    pub(crate) fn freed(&self) -> std::cell::Ref<'_, Vec<(ObjectId, Option<usize>)>> {
        self.lane().freed.borrow()
    }

    /// Whether the heap's readers would notice a commit.
    pub(crate) fn is_visible(&self) -> bool {
        let of_others = |object: Touched<'_>| matches!(object.what(), What::Copied | What::Freed);
        self.lane().touched().any(of_others)
    }

    /// Forgets all changes. Dropping the transaction does the same.
    pub fn abort(self) {}

    fn end(&mut self, outcome: Outcome) {
        let Some(mut lane) = self.lane.take() else { return };
        let unused = |what: What| match outcome {
            Outcome::Committed => what == What::Gone,
            Outcome::Aborted => matches!(what, What::Made | What::Gone),
        };
        let slots = lane.touched().filter(|object| unused(object.what()));
        self.pool.take_back(slots.map(|object| (object.id(), object.len())));
        let gone = match outcome {
            Outcome::Committed => lane.removed.get_mut(),
            Outcome::Aborted => lane.created.get_mut(),
        };
        for tree in gone.drain(..) {
            self.pool.forget_tree(&tree);
        }
        for tree in lane.held.get_mut().drain(..) {
            tree.release();
        }
        lane.reset();
        self.pool.give_lane(lane);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Committed,
    Aborted,
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.end(Outcome::Aborted);
    }
}

/// Bits of one bitmap word that are collected before they are logged.
#[derive(Debug, Default)]
struct Bits {
    word: usize,
    mask: u64,
}

impl Bits {
    fn add(&mut self, word: usize, mask: u64, redo: &mut Redo, log: fn(&mut Redo, usize, u64)) {
        if self.word != word {
            self.flush(redo, log);
            self.word = word;
        }
        self.mask |= mask;
    }

    fn flush(&mut self, redo: &mut Redo, log: fn(&mut Redo, usize, u64)) {
        if self.mask != 0 {
            log(redo, self.word, self.mask);
        }
        *self = Bits::default();
    }

    fn taken(&mut self, id: ObjectId, words: usize, redo: &mut Redo) {
        let chunk = layout::chunk_of(id.index());
        if words > SHARED_WORDS_MAX {
            let chunks = words.div_ceil(CHUNK_WORDS);
            redo.store_word(layout::descriptor(chunk), Kind::Large { chunks }.stored());
            for rest in chunk + 1..chunk + chunks {
                redo.store_word(layout::descriptor(rest), Kind::Rest.stored());
            }
            return;
        }
        let slot = id.index() % CHUNK_WORDS / Class::of(words).words();
        let (word, mask) = layout::bit(chunk, slot);
        self.add(word, mask, redo, Redo::set_bits);
    }

    fn freed(
        &mut self,
        id: ObjectId,
        space: &sapwood_mem::words::Words,
        redo: &mut Redo,
    ) -> Result<()> {
        let chunk = layout::chunk_of(id.index());
        match heap::kind(space, chunk)? {
            Kind::Run(class) => {
                let (word, mask) = layout::bit(chunk, id.index() % CHUNK_WORDS / class.words());
                self.add(word, mask, redo, Redo::clear_bits);
            }
            Kind::Large { chunks } => {
                for freed in chunk..chunk + chunks {
                    redo.store_word(layout::descriptor(freed), Kind::Free.stored());
                }
            }
            Kind::Free | Kind::Rest => return Err(Error::NoObject(id)),
        }
        Ok(())
    }
}

/// Tells each run of set bits.
fn for_each_set_run(mask: &[Word], mut tell: impl FnMut(std::ops::Range<usize>)) {
    let mut open: Option<std::ops::Range<usize>> = None;
    for (index, bits) in mask.iter().enumerate() {
        let mut bits = load(bits);
        while bits != 0 {
            let from = bits.trailing_zeros() as usize;
            let len = (!(bits >> from)).trailing_zeros() as usize;
            let start = index * 64 + from;
            match &mut open {
                Some(run) if run.end == start => run.end += len,
                _ => {
                    if let Some(run) = open.replace(start..start + len) {
                        tell(run);
                    }
                }
            }
            let done = from + len;
            bits = if done >= 64 { 0 } else { bits >> done << done };
        }
    }
    if let Some(run) = open {
        tell(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_bits_are_told_once_and_joined_across_words() {
        let words = sapwood_mem::words::Words::new(1 << 21, 1 << 21).expect("address space");
        words.grow(8).expect("a page");
        let mask = words.get(0, 4).expect("four words");
        let told = |bits: [u64; 4]| {
            for (word, bits) in mask.iter().zip(bits) {
                word.store(bits, Ordering::Relaxed);
            }
            let mut told = Vec::new();
            for_each_set_run(mask, |run| told.push(run));
            told
        };
        assert!(told([0, 0, 0, 0]).is_empty());
        assert_eq!(told([0b1011, 0, 0, 0]), [0..2, 3..4]);
        assert_eq!(told([1 << 63, 1, 0, 1 << 63]), [63..65, 255..256]);
        assert_eq!(told([u64::MAX; 4]), vec![0..256]);
    }
}

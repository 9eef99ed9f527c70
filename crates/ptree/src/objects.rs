//! Objects of users: bytes of any length, with a type, that transactions make, change and free.
//!
//! ```text
//! header | length in bytes | bytes, in words, little endian
//! ```

use crate::error::{Error, Result};
use crate::heap::layout::{OBJECT_WORDS_MAX, ROOT, ROOT_OBJECT, ROOT_WORDS};
use crate::heap::object_words;
use crate::object::{ObjectId, ObjectType, load, type_of};
use crate::pool::Pool;
use crate::transaction::Transaction;
use crate::view::View;

/// Words in front of an object's bytes.
const HEAD_WORDS: usize = 2;

impl Transaction<'_> {
    /// Makes an object of a type below [`ObjectType::FIRST_RESERVED`], with these bytes.
    ///
    /// ```
    /// use sapwood_ptree::{ObjectType, Pool, PoolOptions};
    ///
    /// let pool = Pool::in_memory(PoolOptions::default())?;
    /// let id = pool.transaction(|tx| {
    ///     let id = tx.make_object(ObjectType(1), b"acorn")?;
    ///     tx.set_root(id)?;
    ///     Ok(id)
    /// })?;
    /// assert_eq!(pool.root()?, Some(id));
    /// assert_eq!(pool.read_object(id)?, (ObjectType(1), b"acorn".to_vec()));
    /// # Ok::<(), sapwood_ptree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Options`] for a reserved type, [`Error::ObjectLength`], and as of
    /// [`Transaction::put`].
    pub fn make_object(&self, object_type: ObjectType, bytes: &[u8]) -> Result<ObjectId> {
        self.check()?;
        if object_type.0 >= ObjectType::FIRST_RESERVED {
            return Err(Error::Options(format!(
                "type {} is reserved: those below {} are free",
                object_type.0,
                ObjectType::FIRST_RESERVED
            )));
        }
        self.hold_objects()?;
        let (id, object) = self.make(object_type, HEAD_WORDS + bytes.len().div_ceil(8))?;
        object.set(1, bytes.len() as u64);
        for (index, bytes) in bytes.chunks(8).enumerate() {
            object.set(HEAD_WORDS + index, word(bytes));
        }
        Ok(id)
    }

    /// Changes bytes of an object in place. Words that stay the same are not logged.
    ///
    /// # Errors
    /// [`Error::NoObject`], and as of [`Transaction::put`].
    pub fn update_object<R>(&self, id: ObjectId, update: impl FnOnce(&mut [u8]) -> R) -> Result<R> {
        let (_, mut bytes) = self.read_object(id)?;
        let answer = update(&mut bytes);
        let object = self.edit(id, HEAD_WORDS + bytes.len().div_ceil(8))?;
        for (index, bytes) in bytes.chunks(8).enumerate() {
            if object.get(HEAD_WORDS + index) != word(bytes) {
                object.set(HEAD_WORDS + index, word(bytes));
            }
        }
        Ok(answer)
    }

    /// The type and the bytes of an object, with the changes of this transaction.
    ///
    /// # Errors
    /// As of [`Transaction::update_object`].
    pub fn read_object(&self, id: ObjectId) -> Result<(ObjectType, Vec<u8>)> {
        self.check()?;
        self.hold_objects()?;
        read(self, id)
    }

    /// Frees an object.
    ///
    /// # Errors
    /// As of [`Transaction::update_object`].
    pub fn free_object(&self, id: ObjectId) -> Result<()> {
        self.read_object(id)?;
        self.free(id)
    }

    /// Makes an object the pool's root, by which a program finds all others; [`ObjectId::NULL`] for
    /// none.
    ///
    /// # Errors
    /// As of [`Transaction::update_object`].
    pub fn set_root(&self, id: ObjectId) -> Result<()> {
        match id.is_null() {
            true => {
                self.check()?;
                self.hold_objects()?;
            }
            false => drop(self.read_object(id)?),
        }
        self.edit(ROOT, ROOT_WORDS)?.set(ROOT_OBJECT, id.word());
        Ok(())
    }

    /// One transaction at a time changes objects of users.
    fn hold_objects(&self) -> Result<()> {
        self.hold(&self.pool.tree_state(ROOT, ""))
    }
}

impl Pool {
    /// The object that [`Transaction::set_root`] named last.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn root(&self) -> Result<Option<ObjectId>> {
        let view = self.inner.committed();
        let id = ObjectId::new(load(&view.object(ROOT, ROOT_WORDS)?[ROOT_OBJECT]));
        Ok(Some(id).filter(|id| !id.is_null()))
    }

    /// The type and the bytes of an object, of one moment.
    ///
    /// # Errors
    /// [`Error::NoObject`], [`Error::Corrupt`].
    pub fn read_object(&self, id: ObjectId) -> Result<(ObjectType, Vec<u8>)> {
        let state = self.inner.tree_state(ROOT, "");
        let view = self.inner.committed();
        loop {
            let moment = state.version.read();
            let seen = object_words(&self.inner.space, id).and_then(|_| read(&view, id));
            if state.version.is_still(moment) {
                return seen;
            }
        }
    }
}

fn read(view: &impl View, id: ObjectId) -> Result<(ObjectType, Vec<u8>)> {
    let head = view.object(id, HEAD_WORDS)?;
    let (object_type, len) = (type_of(load(&head[0])), load(&head[1]) as usize);
    if object_type.0 >= ObjectType::FIRST_RESERVED {
        return Err(Error::NoObject(id));
    }
    let words = HEAD_WORDS + len.div_ceil(8);
    if words > OBJECT_WORDS_MAX {
        return Err(Error::corrupt(id.index(), "an object is too long"));
    }
    let mut bytes = Vec::with_capacity(len);
    for word in &view.object(id, words)?[HEAD_WORDS..] {
        bytes.extend_from_slice(&load(word).to_le_bytes());
    }
    bytes.truncate(len);
    Ok((object_type, bytes))
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

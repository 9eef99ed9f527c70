//! Dictionaries: the texts of a dimension, and the number of each.
//!
//! Numbers are given out in the order in which texts appear, so their order is not that of the texts.
//! Number 0 is null. A row with several texts has the number of a list, whose bytes are a mark that no
//! UTF-8 text has and the numbers of its elements, ascending by their texts; the elements are texts of
//! the same dictionary.

use std::borrow::Cow;
use std::sync::PoisonError;
#[cfg(not(loom))]
use std::sync::{RwLock, RwLockReadGuard};

use hashbrown::HashTable;
#[cfg(loom)]
use loom::sync::{RwLock, RwLockReadGuard};
use xxhash_rust::xxh3::xxh3_64;

use crate::value::Value;

/// The number of null.
pub(crate) const NULL: u32 = 0;

/// The first byte of a list. No UTF-8 text has it.
const LIST: u8 = 0xFF;

/// The texts of a dimension. Threads add to it and read it at once.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    entries: RwLock<Entries>,
}

/// The entries, under the lock.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Numbers, by their bytes.
    table: HashTable<u32>,
    /// Where the bytes of number n + 1 end.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

/// The entries, which do not change meanwhile.
pub(crate) type EntriesRead<'d> = RwLockReadGuard<'d, Entries>;

/// There is no number left: 2^32 different values.
#[derive(Debug)]
pub(crate) struct DictionaryFull;

impl From<DictionaryFull> for crate::Error {
    fn from(_full: DictionaryFull) -> crate::Error {
        crate::Error::Input("a dimension has more than 2^32 different values".to_owned())
    }
}

impl Dictionary {
    /// The entries, to read many of them.
    pub(crate) fn read(&self) -> EntriesRead<'_> {
        // Entries are whole between any two of their steps that can fail.
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a text, or of a list that [`list_bytes`] wrote; a new one if it is new.
    pub(crate) fn intern(&self, bytes: &[u8]) -> Result<u32, DictionaryFull> {
        let hash = xxh3_64(bytes);
        if let Some(id) = self.read().find(hash, bytes) {
            return Ok(id);
        }
        self.entries.write().unwrap_or_else(PoisonError::into_inner).add(hash, bytes)
    }

    /// Gives back what is kept free for more.
    pub(crate) fn trim(&self) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let Entries { table, ends, bytes } = &mut *entries;
        ends.shrink_to_fit();
        bytes.shrink_to_fit();
        table.shrink_to_fit(|&id| xxh3_64(slice(ends, bytes, id)));
    }
}

impl Entries {
    /// The number of a text, or of a list that [`list_bytes`] wrote; a new one if it is new.
    pub(crate) fn intern(&mut self, bytes: &[u8]) -> Result<u32, DictionaryFull> {
        self.add(xxh3_64(bytes), bytes)
    }

    fn find(&self, hash: u64, bytes: &[u8]) -> Option<u32> {
        self.table.find(hash, |&id| self.bytes(id) == bytes).copied()
    }

    /// The number of a text, if it has one.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn id(&self, bytes: &[u8]) -> Option<u32> {
        self.find(xxh3_64(bytes), bytes)
    }

    fn add(&mut self, hash: u64, bytes: &[u8]) -> Result<u32, DictionaryFull> {
        // Another thread may have been quicker.
        if let Some(id) = self.find(hash, bytes) {
            return Ok(id);
        }
        let id = u32::try_from(self.ends.len() + 1).map_err(|_| DictionaryFull)?;
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        let Entries { table, ends, bytes } = self;
        table.insert_unique(hash, id, |&id| xxh3_64(slice(ends, bytes, id)));
        Ok(id)
    }

    fn bytes(&self, id: u32) -> &[u8] {
        slice(&self.ends, &self.bytes, id)
    }

    /// How many numbers there are, null not counted: they are 1 to this.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether one of them stands for several texts.
    #[cfg(feature = "parquet")]
    pub(crate) fn has_lists(&self) -> bool {
        (1..=self.len() as u32).any(|id| self.bytes(id).first() == Some(&LIST))
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let table = self.table.capacity() * (size_of::<u32>() + 1);
        (table + self.ends.capacity() * size_of::<usize>() + self.bytes.capacity()) as u64
    }

    /// What a number stands for.
    pub(crate) fn entry(&self, id: u32) -> Entry<'_> {
        if id == NULL {
            return Entry::Null;
        }
        match self.bytes(id) {
            [LIST, ids @ ..] => Entry::List(Ids(ids)),
            text => {
                Entry::Text(std::str::from_utf8(text).expect("texts are UTF-8 when they come in"))
            }
        }
    }

    /// The text of a number that is none of a list; `None` of null.
    pub(crate) fn text(&self, id: u32) -> Option<&str> {
        match self.entry(id) {
            Entry::Text(text) => Some(text),
            Entry::Null | Entry::List(_) => None,
        }
    }
}

fn slice<'b>(ends: &[usize], bytes: &'b [u8], id: u32) -> &'b [u8] {
    let at = id as usize - 1;
    let start = if at == 0 { 0 } else { ends[at - 1] };
    &bytes[start..ends[at]]
}

/// What a number stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry<'d> {
    Null,
    Text(&'d str),
    List(Ids<'d>),
}

/// The numbers of the elements of a list; 0 is null.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids<'d>(&'d [u8]);

impl<'d> Ids<'d> {
    /// Numbers of 4 bytes each, little endian.
    pub(crate) fn new(bytes: &'d [u8]) -> Ids<'d> {
        Ids(bytes)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.0.as_chunks::<4>().0;
        words.iter().map(|word| u32::from_le_bytes(*word))
    }
}

/// The bytes of a list of numbers.
pub(crate) fn list_bytes(ids: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + 4 * ids.len());
    bytes.push(LIST);
    bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
    bytes
}

/// The number of a value of a dimension of texts.
pub(crate) fn number_of(
    value: &Value<'_>,
    intern: &mut dyn FnMut(&[u8]) -> std::result::Result<u32, DictionaryFull>,
) -> std::result::Result<u32, DictionaryFull> {
    let Value::List(values) = value else {
        return value.to_text().map_or(Ok(NULL), |text| intern(text.as_bytes()));
    };
    match values.as_slice() {
        [] => return Ok(NULL),
        [one] if !matches!(one, Value::List(_)) => return number_of(one, intern),
        _ => {}
    }
    let mut texts: Vec<_> = values.iter().map(Value::to_text).collect();
    texts.sort_unstable();
    let number = |text: &Option<Cow<'_, str>>| {
        text.as_ref().map_or(Ok(NULL), |text| intern(text.as_bytes()))
    };
    let ids: Vec<u32> = texts.iter().map(number).collect::<std::result::Result<_, _>>()?;
    intern(&list_bytes(&ids))
}

/// The numbers that one thread knows already, so that it need not ask for them under a lock.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    table: HashTable<Known>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    hash: u64,
    start: usize,
    len: u32,
    id: u32,
}

/// A cache that has so many bytes of texts begins anew.
const CACHE_BYTES_MAX: usize = 16 << 20;

impl Cache {
    /// The number of a text.
    #[inline]
    pub(crate) fn intern(
        &mut self,
        dictionary: &Dictionary,
        bytes: &[u8],
    ) -> Result<u32, DictionaryFull> {
        let hash = xxh3_64(bytes);
        let found = self.table.find(hash, |known| {
            known.hash == hash && &self.bytes[known.start..][..known.len as usize] == bytes
        });
        if let Some(known) = found {
            return Ok(known.id);
        }
        self.intern_slow(dictionary, hash, bytes)
    }

    #[cold]
    fn intern_slow(
        &mut self,
        dictionary: &Dictionary,
        hash: u64,
        bytes: &[u8],
    ) -> Result<u32, DictionaryFull> {
        let id = dictionary.intern(bytes)?;
        if self.bytes.len() + bytes.len() > CACHE_BYTES_MAX {
            *self = Cache::default();
        }
        let known = Known { hash, start: self.bytes.len(), len: bytes.len() as u32, id };
        self.bytes.extend_from_slice(bytes);
        self.table.insert_unique(hash, known, |known| known.hash);
        Ok(id)
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use super::*;

    /// Threads that meet the same new texts at once agree on numbers, which are dense; a thread that knows a number
    /// finds its text, also while the dictionary grows and is trimmed.
    #[test]
    fn loom_dictionary_growth() {
        loom::model(|| {
            let dictionary = Arc::new(Dictionary::default());
            let known = dictionary.intern(b"oak").expect("room");
            let other = {
                let dictionary = Arc::clone(&dictionary);
                loom::thread::spawn(move || {
                    let mut cache = Cache::default();
                    let texts: [&[u8]; 3] = [b"elm", b"ash", b"oak"];
                    let ids = texts.map(|text| cache.intern(&dictionary, text).expect("room"));
                    dictionary.trim();
                    ids
                })
            };
            let mut cache = Cache::default();
            let texts: [&[u8]; 2] = [b"ash", b"elm"];
            let mut mine = [0; 2];
            for (id, text) in mine.iter_mut().zip(texts) {
                *id = cache.intern(&dictionary, text).expect("room");
                let entries = dictionary.read();
                assert_eq!(entries.text(*id).map(str::as_bytes), Some(text));
                assert_eq!(entries.text(known), Some("oak"));
            }
            let [elm, ash, oak] = other.join().expect("no panic");
            assert_eq!((mine, oak), ([ash, elm], known));
            let mut all = [oak, ash, elm];
            all.sort_unstable();
            assert_eq!((all, dictionary.read().len()), ([1, 2, 3], 3));
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn texts_have_one_number_each() {
        let dictionary = Dictionary::default();
        let mut cache = Cache::default();
        let mut intern = |text: &str| cache.intern(&dictionary, text.as_bytes()).expect("room");
        assert_eq!([intern("oak"), intern(""), intern("oak"), intern("elm")], [1, 2, 1, 3]);
        let list = dictionary.intern(&list_bytes(&[3, 1])).expect("room");
        let entries = dictionary.read();
        assert_eq!((entries.len(), entries.text(2), entries.text(0)), (4, Some(""), None));
        assert_eq!(entries.id(b"elm"), Some(3));
        match entries.entry(list) {
            Entry::List(ids) => assert_eq!(ids.iter().collect::<Vec<_>>(), [3, 1]),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn threads_agree_on_numbers() {
        let dictionary = Dictionary::default();
        let texts: Vec<String> =
            (0..5_000).map(|number| format!("text {}", number % 1_000)).collect();
        let ids: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let work = |shift: usize| {
                let (texts, dictionary) = (&texts, &dictionary);
                scope.spawn(move || {
                    let mut cache = Cache::default();
                    let mut ids = vec![0; texts.len()];
                    for at in 0..texts.len() {
                        let at = (at + shift) % texts.len();
                        ids[at] = cache.intern(dictionary, texts[at].as_bytes()).expect("room");
                    }
                    ids
                })
            };
            let threads: Vec<_> = (0..4).map(|thread| work(thread * 1_250)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(ids.windows(2).all(|pair| pair[0] == pair[1]));
        let entries = dictionary.read();
        assert_eq!(entries.len(), 1_000);
        for (id, text) in ids[0].iter().zip(&texts) {
            assert_eq!(entries.text(*id), Some(text.as_str()));
        }
    }
}

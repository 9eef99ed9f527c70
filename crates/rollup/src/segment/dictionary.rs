//! The dictionary of a dimension of texts in a segment.
//!
//! | part | bytes |
//! |---|---|
//! | texts | 4: how many |
//! | lists | 4: how many |
//! | where each ends | 8 each |
//! | all texts, then all lists | their bytes |
//!
//! Number 0 is null. Texts follow in the order of their bytes, then lists, each as the numbers of its elements, 4
//! bytes each, in the order of these.

use super::bytes::Reader;
use crate::error::Result;
use crate::live::dictionary::{Entries, Entry, Ids, NULL};

/// The words of a dictionary where they lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentTexts<'s> {
    texts: usize,
    ends: &'s [[u8; 8]],
    bytes: &'s [u8],
}

impl<'s> SegmentTexts<'s> {
    /// Finds the parts of a dictionary, without a look at its words.
    pub(super) fn find(mut reader: Reader<'s>) -> Result<SegmentTexts<'s>> {
        let texts = reader.u32()? as usize;
        let lists = reader.u32()? as usize;
        let ends = reader.u64s(texts + lists)?;
        Ok(SegmentTexts { texts, ends, bytes: reader.rest() })
    }

    /// Checks all words, after which none needs a look again.
    pub(super) fn check(reader: &Reader<'s>) -> Result<()> {
        let found = SegmentTexts::find(reader.clone())?;
        let corrupt = |what: String| Err(reader.corrupt(format!("the dictionary: {what}")));
        let mut begin = 0;
        for (at, end) in found.ends.iter().enumerate() {
            let end = u64::from_le_bytes(*end);
            let word = usize::try_from(end).ok().and_then(|end| found.bytes.get(begin..end));
            let Some(word) = word else {
                return corrupt(format!("word {} does not lie in it", at + 1));
            };
            begin = end as usize;
            let is_good = match at < found.texts {
                true => std::str::from_utf8(word).is_ok(),
                false => {
                    let (ids, rest) = word.as_chunks::<4>();
                    let in_texts = |id: &[u8; 4]| u32::from_le_bytes(*id) as usize <= found.texts;
                    rest.is_empty() && ids.iter().all(in_texts)
                }
            };
            if !is_good {
                return corrupt(format!("word {} is none", at + 1));
            }
        }
        match begin == found.bytes.len() {
            true => Ok(()),
            false => corrupt("its words end before it does".to_owned()),
        }
    }

    /// How many numbers there are, null not counted: they are 1 to this.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether one of them stands for several texts.
    #[cfg(feature = "parquet")]
    pub(crate) fn has_lists(&self) -> bool {
        self.texts < self.ends.len()
    }

    /// What a number stands for.
    pub(crate) fn entry(&self, id: u32) -> Entry<'s> {
        if id == NULL {
            return Entry::Null;
        }
        let at = id as usize - 1;
        let end = |at: usize| u64::from_le_bytes(self.ends[at]) as usize;
        let word = &self.bytes[if at == 0 { 0 } else { end(at - 1) }..end(at)];
        match at < self.texts {
            true => Entry::Text(std::str::from_utf8(word).expect("`check` has looked at it")),
            false => Entry::List(Ids::new(word)),
        }
    }
}

/// Writes the words that some numbers stand for, and returns the new number of each old one; 0 of those that are not
/// used.
pub(super) fn build(
    out: &mut Vec<u8>,
    entries: &Entries,
    used: impl Iterator<Item = u32>,
) -> Vec<u32> {
    let mut is_used = vec![false; entries.len() + 1];
    used.for_each(|id| is_used[id as usize] = true);
    let mut lists = Vec::new();
    for id in 1..is_used.len() as u32 {
        if is_used[id as usize]
            && let Entry::List(ids) = entries.entry(id)
        {
            lists.push(id);
            ids.iter().for_each(|id| is_used[id as usize] = true);
        }
    }
    let ids = 1..is_used.len() as u32;
    let mut texts: Vec<(&str, u32)> = ids
        .filter(|&id| is_used[id as usize])
        .filter_map(|id| entries.text(id).map(|text| (text, id)))
        .collect();
    texts.sort_unstable();
    let mut new = vec![NULL; is_used.len()];
    for ((_, old), id) in texts.iter().zip(1..) {
        new[*old as usize] = id;
    }
    // Numbers of texts have the order of the texts from here on, so that lists have that of their elements.
    let elements = |old: u32| -> Vec<u32> {
        match entries.entry(old) {
            Entry::List(ids) => ids.iter().map(|id| new[id as usize]).collect(),
            Entry::Null | Entry::Text(_) => Vec::new(),
        }
    };
    let mut lists: Vec<(Vec<u32>, u32)> =
        lists.into_iter().map(|old| (elements(old), old)).collect();
    lists.sort_unstable();
    out.extend_from_slice(&(texts.len() as u32).to_le_bytes());
    out.extend_from_slice(&(lists.len() as u32).to_le_bytes());
    let lens = texts.iter().map(|(text, _)| text.len());
    let mut end = 0;
    for len in lens.chain(lists.iter().map(|(ids, _)| ids.len() * 4)) {
        end += len as u64;
        out.extend_from_slice(&end.to_le_bytes());
    }
    texts.iter().for_each(|(text, _)| out.extend_from_slice(text.as_bytes()));
    for ((ids, old), id) in lists.iter().zip(texts.len() as u32 + 1..) {
        out.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
        new[*old as usize] = id;
    }
    new
}

/// Gives the words of a dictionary of a segment numbers of another one: by number, the other number.
pub(super) fn intern(texts: SegmentTexts<'_>, entries: &mut Entries) -> Result<Vec<u32>> {
    let mut numbers = Vec::with_capacity(texts.len() + 1);
    for id in 0..=texts.len() as u32 {
        numbers.push(match texts.entry(id) {
            Entry::Null => NULL,
            Entry::Text(text) => entries.intern(text.as_bytes())?,
            Entry::List(ids) => {
                let ids: Vec<u32> = ids.iter().map(|id| numbers[id as usize]).collect();
                entries.intern(&crate::live::dictionary::list_bytes(&ids))?
            }
        });
    }
    Ok(numbers)
}

//! The way back of pages into memory that were there before the log was opened.

use sapwood_disk::Blocks;

use crate::error::Result;
use crate::files::page::for_each_stored;
use crate::log::Share;
use crate::ops::store::Store;
use crate::record::address::PageNumber;
use crate::record::layout::control;
use crate::record::{Form, word_at};

impl Store {
    /// Reads pages back into memory that were there before the log was opened, unless the caller is
    /// pinned. What cannot be read stays on the disk: a caller that asks for it gets the error.
    pub(crate) fn read_back<F: Form>(&self, share: Share) {
        let mut blocks = Blocks::default();
        self.log.read_back(share, |next| {
            let put_back =
                self.read_stored::<F>(next.page, &mut blocks).and_then(|(used, stale)| {
                    let stored = &blocks.bytes()[..used];
                    self.log.put_back(next, stored, &stale, self.bytes_beside())
                });
            put_back == Ok(true)
        });
    }

    /// Reads a page; answers how many of its bytes are used, and what of its records' control words
    /// says nothing in memory.
    fn read_stored<F: Form>(
        &self,
        page: PageNumber,
        into: &mut Blocks,
    ) -> Result<(usize, Vec<(usize, u64)>)> {
        let parts = self.log.parts.as_ref().expect("only stored pages come back");
        let used = parts.read_page(page, into)?;
        let mut stale = Vec::new();
        let _all =
            for_each_stored::<F, ()>(&into.bytes()[..self.log.page_bytes], 0, |offset, record| {
                let word = word_at(record, 0).expect("a record has a control word");
                // Superseded after the cut, as far as this history goes: not at all.
                let late = match word & control::LATE {
                    0 => 0,
                    _ => control::LATE | control::SUPERSEDED,
                };
                stale.push((offset, late | control::LOCKS));
                Ok(std::ops::ControlFlow::Continue(()))
            })?;
        Ok((used, stale))
    }
}

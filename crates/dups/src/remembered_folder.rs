//! Compares the current files of a folder with the files that the index contains for this folder.

use crate::blob::{BlobDecoder, BlobEntry};
use crate::table::{Identity, RememberedFile};
use std::collections::HashMap;

/// Looks up files in a folder's block from the index. In an unchanged folder, the walk finds files in the order of the
/// block, so each lookup is fast.
pub(crate) struct Recall<'a> {
    next: Option<BlobDecoder<'a>>,
    block: Option<&'a [u8]>,
    by_name: Option<HashMap<&'a [u8], BlobEntry<'a>>>,
    complete: bool,
}

impl<'a> Recall<'a> {
    pub fn new(block: Option<&'a [u8]>) -> Self {
        let next = block.and_then(|block| BlobDecoder::new(block).ok());
        Self {
            complete: next.is_some(),
            block: next.is_some().then_some(block).flatten(),
            next,
            by_name: None,
        }
    }

    /// Returns the remembered data of a file if its state is unchanged.
    pub fn find(
        &mut self,
        name: &[u8],
        id: Identity,
        allocated: Option<u64>,
        fsid: i64,
    ) -> Option<RememberedFile> {
        let entry = self.entry(name);
        match entry {
            Some(entry) if entry.id == id && entry.fsid == fsid && !entry.fresh => {
                // Some file systems report a file's disk usage with a delay (ZFS, delayed allocation).
                self.complete &= entry.allocated == allocated;
                Some(RememberedFile {
                    generation: entry.generation,
                    hash: entry.hash,
                    share: entry.share,
                })
            }
            _ => {
                self.complete = false;
                None
            }
        }
    }

    /// Skips a file whose state is not trusted.
    pub fn forget(&mut self, name: &[u8]) {
        self.complete = false;
        let _ = self.entry(name);
    }

    fn entry(&mut self, name: &[u8]) -> Option<BlobEntry<'a>> {
        if self.by_name.is_none() {
            match self.next.as_mut()?.next() {
                Some(Ok(entry)) if entry.name == name => return Some(entry),
                _ => {
                    self.complete = false;
                    let all = BlobDecoder::new(self.block?).ok()?;
                    self.by_name = Some(all.flatten().map(|one| (one.name, one)).collect());
                }
            }
        }
        self.by_name.as_ref()?.get(name).copied()
    }

    /// Returns whether the folder contains exactly the files of its block, all unchanged.
    pub fn was_complete(&mut self) -> bool {
        let exhausted = match &mut self.next {
            Some(decoder) => decoder.next().is_none(),
            None => false,
        };
        self.complete && exhausted
    }
}

//! Stores each hash once and assigns it a number.

use crate::store::SpillArray;
use crate::table::{Files, Hash, NO_HASH, index};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Marks an empty slot. (The number `u32::MAX` is never assigned, see [`crate::table::NO_HASH`].)
const FREE: u64 = u64::MAX;

/// Hash table of all hashes, each with a number.
#[derive(Default, Debug)]
pub(crate) struct Contents {
    /// Hashes, indexed by their numbers.
    hashes: SpillArray<Hash>,
    /// Hash table with open addressing; its length is a power of two. A slot contains the first 32 bits of the
    /// hash above its number, or [`FREE`].
    slots: SpillArray<u64>,
}

impl Contents {
    /// Returns the number of different contents.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns the hash with this number.
    pub fn hash(&self, number: u32) -> Option<&Hash> {
        self.hashes.get(number as usize)
    }

    /// Returns the number of a hash and adds the hash if it is new.
    pub fn add(&mut self, hash: Hash) -> u32 {
        if self.hashes.len() * 4 >= self.slots.len() * 3 {
            self.lengthen((self.slots.len() * 2).max(1024));
        }
        let tag = hash_tag(&hash);
        let mask = self.slots.len() - 1;
        let mut at = tag as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == FREE {
                self.hashes.push(hash);
                let number = index(self.hashes.len() - 1);
                self.slots[at] = u64::from(tag) << 32 | u64::from(number);
                return number;
            }
            let number = slot as u32;
            if (slot >> 32) as u32 == tag && self.hashes[number as usize] == hash {
                return number;
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns the numbers of several hashes and adds new hashes. The lookups are independent of each other, so that
    /// the CPU can overlap their memory accesses.
    pub fn add_all(&mut self, hashes: &[Hash], mut take: impl FnMut(u32)) {
        for some in hashes.chunks(AT_ONCE) {
            let mut found = [None; AT_ONCE];
            let mask = self.slots.len().wrapping_sub(1);
            for (hash, found) in some.iter().zip(&mut found) {
                let slot = self.slots.get(hash_tag(hash) as usize & mask);
                *found = slot.copied().filter(|slot| *slot != FREE);
            }
            for (hash, found) in some.iter().zip(&mut found) {
                *found = found.filter(|slot| self.hashes[*slot as u32 as usize] == *hash);
            }
            for (hash, found) in some.iter().zip(found) {
                take(found.map_or_else(|| self.add(*hash), |slot| slot as u32));
            }
        }
    }

    /// Reserves space for a total of this many hashes.
    pub fn expect(&mut self, number: usize) {
        let wanted = number.saturating_add(number / 3).next_power_of_two();
        if number > 0 && wanted > self.slots.len() {
            self.lengthen(wanted);
        }
    }

    fn lengthen(&mut self, length: usize) {
        let old = std::mem::take(&mut self.slots);
        self.slots.resize(length, FREE);
        for slot in old.iter().filter(|slot| **slot != FREE) {
            let mut at = (slot >> 32) as usize & (length - 1);
            while self.slots[at] != FREE {
                at = (at + 1) & (length - 1);
            }
            self.slots[at] = *slot;
        }
    }
}

/// Number of lookups whose memory accesses overlap.
const AT_ONCE: usize = 16;

/// Returns the first bytes of a hash, which are uniformly distributed.
fn hash_tag(hash: &Hash) -> u32 {
    hash.first_chunk()
        .map_or(0, |head| u32::from_le_bytes(*head))
}

/// Number of hashes that are sent to the thread at once.
const BATCH: usize = 4096;
/// Maximum number of batches in the queue.
const WAITING: usize = 8;

/// Numbers hashes on a separate thread, because each lookup waits for memory several times.
pub(crate) struct Numbering<'scope> {
    batch: Vec<Hash>,
    hand_over: SyncSender<Vec<Hash>>,
    thread: ScopedJoinHandle<'scope, (Contents, SpillArray<u32>)>,
}

impl<'scope> Numbering<'scope> {
    /// Starts the thread; `expected` is the approximate number of hashes.
    pub fn begin<'env>(scope: &'scope Scope<'scope, 'env>, expected: usize) -> Self {
        let (hand_over, batches) = sync_channel::<Vec<Hash>>(WAITING);
        let thread = scope.spawn(move || {
            let mut contents = Contents::default();
            contents.expect(expected);
            let mut numbers = SpillArray::default();
            for batch in batches {
                contents.add_all(&batch, |number| numbers.push(number));
            }
            (contents, numbers)
        });
        Self {
            batch: Vec::with_capacity(BATCH),
            hand_over,
            thread,
        }
    }

    /// Queues the hash of the next file. Returns a temporary number for the file.
    pub fn add(&mut self, hash: Hash) -> u32 {
        self.batch.push(hash);
        if self.batch.len() == BATCH {
            let full = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
            // Sending fails only after a panic, which is passed on at the end.
            let _ = self.hand_over.send(full);
        }
        0
    }

    /// Replaces the temporary numbers of all files by the final ones, in order.
    pub fn finish(self, files: &mut Files) {
        let _ = self.hand_over.send(self.batch);
        drop(self.hand_over);
        let (contents, numbers) = crate::pool::join(self.thread);
        let marked = files.files.iter_mut().filter(|file| file.hash != NO_HASH);
        for (file, number) in marked.zip(numbers.iter()) {
            file.hash = *number;
        }
        files.contents = contents;
    }
}

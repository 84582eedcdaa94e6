//! Growable arrays that move from memory to a file when they become long, so that ten million files need little memory.
//! The kernel can evict the pages of the file without swap space.
//!
//! The file is unnamed and disappears with the process. Its blocks are allocated before use, because a full disk under
//! a mapping would end the process with SIGBUS. If allocation fails, the array stays in memory.

use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Maximum size of an array in memory, in bytes.
const LIMIT: usize = 32 * 1024 * 1024;

/// Values without pointers or destructors, which can be stored in a mapped file.
pub trait Plain: Copy + 'static {}
impl<T: Copy + 'static> Plain for T {}

/// A growable array, usable as a slice.
pub struct SpillArray<T> {
    place: Place<T>,
    /// Size in bytes at which the array moves to a file.
    limit: usize,
}

enum Place<T> {
    Memory(Vec<T>),
    File(Mapping<T>),
}

impl<T> Default for SpillArray<T> {
    fn default() -> Self {
        Self::with_limit(LIMIT)
    }
}

impl<T> SpillArray<T> {
    fn with_limit(limit: usize) -> Self {
        Self {
            place: Place::Memory(Vec::new()),
            limit,
        }
    }
}

impl<T: Plain> SpillArray<T> {
    /// Appends a value to the array.
    pub fn push(&mut self, value: T) {
        self.reserve(1);
        match &mut self.place {
            Place::Memory(values) => values.push(value),
            Place::File(mapping) => mapping.push(value),
        }
    }

    /// Appends several values to the array.
    pub fn extend_from_slice(&mut self, values: &[T]) {
        self.reserve(values.len());
        match &mut self.place {
            Place::Memory(own) => own.extend_from_slice(values),
            Place::File(mapping) => values.iter().for_each(|value| mapping.push(*value)),
        }
    }

    /// Resizes the array and fills new elements with `value`.
    pub fn resize(&mut self, length: usize, value: T) {
        self.truncate(length);
        self.reserve(length - self.len());
        match &mut self.place {
            Place::Memory(own) => own.resize(length, value),
            Place::File(mapping) => (mapping.length..length).for_each(|_| mapping.push(value)),
        }
    }

    /// Shortens the array to at most `length`.
    pub fn truncate(&mut self, length: usize) {
        match &mut self.place {
            Place::Memory(values) => values.truncate(length),
            Place::File(mapping) => mapping.length = mapping.length.min(length),
        }
    }

    /// Reserves room for more values. Moves the array to a file if necessary.
    fn reserve(&mut self, more: usize) {
        let wanted = self.len() + more;
        let bytes = wanted.saturating_mul(size_of::<T>());
        match &mut self.place {
            Place::Memory(values) => {
                if bytes <= self.limit {
                    return;
                }
                if let Some(mut mapping) = Mapping::new(wanted.saturating_mul(2)) {
                    for value in &*values {
                        mapping.push(*value);
                    }
                    self.place = Place::File(mapping);
                } else {
                    // The disk has no room, so stay in memory and do not try again at every step.
                    self.limit = bytes.saturating_mul(2);
                }
            }
            Place::File(mapping) => {
                if wanted <= mapping.capacity {
                    return;
                }
                if !mapping.grow(wanted.saturating_mul(2)) {
                    let mut values = Vec::with_capacity(wanted.saturating_mul(2));
                    values.extend_from_slice(mapping.values());
                    self.limit = usize::MAX;
                    self.place = Place::Memory(values);
                }
            }
        }
    }
}

impl<T> Deref for SpillArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.place {
            Place::Memory(values) => values,
            Place::File(mapping) => mapping.values(),
        }
    }
}

impl<T> DerefMut for SpillArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.place {
            Place::Memory(values) => values,
            Place::File(mapping) => mapping.values_mut(),
        }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for SpillArray<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Plain> FromIterator<T> for SpillArray<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut store = Self::default();
        values.into_iter().for_each(|value| store.push(value));
        store
    }
}

/// Array of values in an unnamed mapped file.
struct Mapping<T> {
    file: OwnedFd,
    base: std::ptr::NonNull<T>,
    length: usize,
    capacity: usize,
}

// SAFETY: the mapping belongs to this value alone, as the buffer of a Vec does to the Vec.
unsafe impl<T: Send> Send for Mapping<T> {}
// SAFETY: as above; shared references only read.
unsafe impl<T: Sync> Sync for Mapping<T> {}

impl<T> Mapping<T> {
    fn new(capacity: usize) -> Option<Self> {
        let file = create_unnamed_file()?;
        let base = map(&file, capacity)?;
        Some(Self {
            file,
            base,
            length: 0,
            capacity,
        })
    }

    /// Maps a longer file, which also releases the memory of the previous mapping.
    fn grow(&mut self, capacity: usize) -> bool {
        let Some(base) = map(&self.file, capacity) else {
            return false;
        };
        unmap(self.base, self.capacity);
        (self.base, self.capacity) = (base, capacity);
        true
    }

    fn push(&mut self, value: T) {
        assert!(self.length < self.capacity, "room was made before");
        // SAFETY: below the capacity, so within the mapping, which is aligned to a page.
        unsafe { self.base.add(self.length).write(value) };
        self.length += 1;
    }

    fn values(&self) -> &[T] {
        // SAFETY: `length` values were written there and nobody else has the file.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.length) }
    }

    fn values_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.length) }
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        unmap(self.base, self.capacity);
    }
}

/// Returns the directory for large temporary files: `$TMPDIR`, else /var/tmp (hier(7)); /tmp is often in
/// memory.
pub(crate) fn temporary_folder() -> PathBuf {
    std::env::var_os("TMPDIR")
        .filter(|one| !one.is_empty())
        .map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

pub(crate) fn create_unnamed_file() -> Option<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(temporary_folder(), flags, Mode::from_raw_mode(0o600)).ok()
}

fn byte_size<T>(capacity: usize) -> Option<usize> {
    capacity
        .checked_mul(size_of::<T>())
        .filter(|size| *size > 0)
}

/// Allocates the blocks of a file and maps them.
fn map<T>(file: &OwnedFd, capacity: usize) -> Option<std::ptr::NonNull<T>> {
    let size = byte_size::<T>(capacity)?;
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, size as u64).ok()?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice; the file is ours alone and is
    // never made shorter.
    let base = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            size,
            access,
            MapFlags::SHARED,
            file,
            0,
        )
    };
    std::ptr::NonNull::new(base.ok()?.cast())
}

fn unmap<T>(base: std::ptr::NonNull<T>, capacity: usize) {
    if let Some(size) = byte_size::<T>(capacity) {
        // SAFETY: exactly what `map` returned for this capacity, and no reference to it is left.
        let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u64),
        Extend(Vec<u64>),
        Resize(usize, u64),
        Truncate(usize),
        Sort,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            any::<u64>().prop_map(Step::Push),
            proptest::collection::vec(any::<u64>(), 0..300).prop_map(Step::Extend),
            (0..2000_usize, any::<u64>()).prop_map(|(length, value)| Step::Resize(length, value)),
            (0..2000_usize).prop_map(Step::Truncate),
            Just(Step::Sort),
        ]
    }

    proptest! {
        /// Behaves like a Vec, in memory, in a file, and when it moves to a file.
        #[test]
        fn like_a_vec(steps in proptest::collection::vec(step(), 0..40), limit in 0..4000_usize) {
            let mut store = SpillArray::with_limit(limit);
            let mut model: Vec<u64> = Vec::new();
            for step in steps {
                match step {
                    Step::Push(value) => { store.push(value); model.push(value); }
                    Step::Extend(values) => { store.extend_from_slice(&values); model.extend(values); }
                    Step::Resize(length, value) => { store.resize(length, value); model.resize(length, value); }
                    Step::Truncate(length) => { store.truncate(length); model.truncate(length); }
                    Step::Sort => { store.sort_unstable(); model.sort_unstable(); }
                }
                prop_assert_eq!(&store[..], &model[..]);
            }
        }
    }

    #[test]
    fn long_arrays_lie_in_a_file() {
        let mut store = SpillArray::with_limit(1000);
        for value in 0..100_000_u64 {
            store.push(value);
        }
        assert!(matches!(store.place, Place::File(_)));
        assert!(store.iter().copied().eq(0..100_000));
    }
}

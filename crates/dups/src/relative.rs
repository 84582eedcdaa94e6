//! Many small files of one size, told apart without hashing what they have in common: each is described
//! by where it differs from one of them, and by BLAKE3 of its bytes from the first difference to the
//! last. Two files with the same description are equal.

use crate::table::Hash;
use std::sync::OnceLock;

/// The content that others are described by.
#[derive(Default)]
pub(crate) struct Pivot(OnceLock<Box<[u8]>>);

/// Bytes compared at once in search of a difference.
const STEP: usize = 1024;

impl Pivot {
    /// Describes a content. The first one that any thread brings becomes the pivot; all must have
    /// the same length.
    pub fn key(&self, content: &[u8]) -> Hash {
        let pivot = self.0.get_or_init(|| content.into());
        let begin = first_difference(pivot, content);
        let end = content.len() - last_difference(&pivot[begin..], &content[begin..]);
        let mut hasher = blake3::Hasher::new();
        // First, because BLAKE3 is slow on what does not begin at a multiple of its chunks.
        hasher.update(&content[begin..end]);
        hasher.update(&(begin as u64).to_le_bytes());
        // Pivots of different sizes have nothing to do with each other.
        hasher.update(&(content.len() as u64).to_le_bytes());
        *hasher.finalize().as_bytes()
    }
}

/// How many bytes are equal at the beginning.
fn first_difference(a: &[u8], b: &[u8]) -> usize {
    let pairs = a.chunks(STEP).zip(b.chunks(STEP));
    let equal = pairs.take_while(|(one, two)| one == two).count() * STEP;
    let equal = equal.min(a.len());
    let rest = a[equal..].iter().zip(&b[equal..]);
    equal + rest.take_while(|(one, two)| one == two).count()
}

/// How many bytes are equal at the end.
fn last_difference(a: &[u8], b: &[u8]) -> usize {
    let pairs = a.rchunks(STEP).zip(b.rchunks(STEP));
    let equal = pairs.take_while(|(one, two)| one == two).count() * STEP;
    let equal = equal.min(a.len());
    let left = a.len() - equal;
    let rest = a[..left].iter().rev().zip(b[..left].iter().rev());
    equal + rest.take_while(|(one, two)| one == two).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Descriptions are equal exactly when contents are.
        #[test]
        fn equal_keys_mean_equal_contents(
            length in 1..5000_usize,
            flips in proptest::collection::vec(
                proptest::collection::vec((any::<u16>(), 0..3_u8), 0..4), 2..12),
        ) {
            let pivot = Pivot::default();
            let contents: Vec<Vec<u8>> = flips.iter().map(|flips| {
                let mut content: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
                for (at, by) in flips {
                    content[usize::from(*at) % length] ^= by;
                }
                content
            }).collect();
            let keys: Vec<Hash> = contents.iter().map(|content| pivot.key(content)).collect();
            for (a, left) in contents.iter().enumerate() {
                for (b, right) in contents.iter().enumerate() {
                    prop_assert_eq!(left == right, keys[a] == keys[b]);
                }
            }
        }
    }

    #[test]
    fn sizes_are_kept_apart() {
        let keys = [10, 11, 12].map(|length| Pivot::default().key(&vec![0; length]));
        assert!(keys[0] != keys[1] && keys[1] != keys[2]);
    }
}

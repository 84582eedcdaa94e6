//! Random choices of a session: the order within pairs, and the rows of a screen. All choices follow from the seed of
//! the session. Each stage has a separate random stream, so that no random number is used twice and a resumed session
//! makes the same choices.

use assay_model::trial::Side;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Returns the seed of a stage from its name and number.
pub(crate) fn derive(seed: u64, stage: &str, number: u32) -> u64 {
    // FNV-1a, 64 bits.
    let stream = stage
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(stream ^ u64::from(number));
    random.random()
}

/// Returns which side of a pair is measured first; `number` counts from 1. Trials use the same
/// generator (`assay_measure::trials`).
pub(crate) fn first_side(seed: u64, number: u32) -> Side {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let coins = (0..number).map(|_| random.random::<bool>());
    match coins.last() {
        Some(true) => Side::Changed,
        _ => Side::Now,
    }
}

/// Returns the numbers 0 to `n` − 1 in a random order that depends on the seed (Fisher and Yates).
pub(crate) fn shuffle(seed: u64, n: usize) -> Vec<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut all: Vec<usize> = (0..n).collect();
    for at in (1..n).rev() {
        all.swap(at, random.random_range(0..=at));
    }
    all
}

//! The shuffle that determines the order of all randomised measurements.

use rand::seq::SliceRandom as _;

/// Shuffles the items. Every order is equally likely. The same state of the random generator gives the same order.
pub fn shuffle<T>(things: &mut [T], random: &mut rand_chacha::ChaCha8Rng) {
    things.shuffle(random);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng as _;

    fn of(seed: u64) -> Vec<u32> {
        let mut things: Vec<u32> = (0..8).collect();
        shuffle(&mut things, &mut ChaCha8Rng::seed_from_u64(seed));
        things
    }

    /// Stored seeds must give the same order in every later version.
    #[test]
    fn a_seed_gives_the_same_order_for_ever() {
        assert_eq!(of(1), [3, 4, 5, 2, 7, 1, 6, 0]);
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn every_thing_comes_first_about_as_often() {
        let mut first = [0u32; 8];
        for seed in 0..8000 {
            first[of(seed)[0] as usize] += 1;
        }
        // Binomial with n = 8000 and p = 1/8: five standard deviations are 148.
        assert!(first.iter().all(|n| n.abs_diff(1000) < 148), "{first:?}");
    }
}

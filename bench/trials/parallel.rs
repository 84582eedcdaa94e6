//! Repetitions on all processors, the same whatever their number: each has its own seed.

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use std::thread;

/// What each of `n` repetitions returns, in order. The generator of each is seeded by its number
/// and the name of the cell.
pub fn repeat<T: Send>(
    cell: &str,
    n: usize,
    work: impl Fn(u64, &mut ChaCha8Rng) -> T + Sync,
) -> Vec<T> {
    // FNV-1a, 64 bits.
    let stream = cell.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let one = |number: usize| {
        let mut random = ChaCha8Rng::seed_from_u64(number as u64);
        random.set_stream(stream);
        work(number as u64, &mut random)
    };
    let threads = thread::available_parallelism().map_or(1, |n| n.get());
    let mut parts: Vec<Vec<T>> = thread::scope(|scope| {
        let one = &one;
        let workers: Vec<_> = (0..threads)
            .map(|at| scope.spawn(move || (at..n).step_by(threads).map(one).collect::<Vec<T>>()))
            .collect();
        // A worker that panicked has said why.
        workers
            .into_iter()
            .flat_map(|worker| worker.join())
            .collect()
    });
    for part in &mut parts {
        part.reverse();
    }
    (0..n)
        .filter_map(|at| parts.get_mut(at % threads)?.pop())
        .collect()
}

//! Divides a step among several generators.

use crate::step::{Manner, Shape};
use assay_model::web::Pace;

/// The part of a step that one generator carries out.
pub(super) struct Share {
    pub(super) shape: Shape,
    pub(super) manner: Manner,
    /// Delay after the common start, in microseconds. The delays interleave the evenly spaced requests of several
    /// generators.
    pub(super) after_us: i64,
}

/// Divides a step into parts for at most `generators` generators, and at most one generator per connection.
pub(super) fn orders(manner: &Manner, shape: Shape, generators: usize) -> Vec<Share> {
    let all = u32::try_from(generators).unwrap_or(u32::MAX);
    let count = all.min(shape.connections).max(1);
    let each = f64::from(count);
    (0..count)
        .map(|which| {
            let more = u32::from(which < shape.connections % count);
            let (pace, after_us) = match shape.pace {
                Pace::Constant { per_s } => (
                    Pace::Constant {
                        per_s: per_s / each,
                    },
                    (f64::from(which) * 1e6 / per_s) as i64,
                ),
                // Independent Poisson processes add up to a Poisson process.
                Pace::Poisson { per_s } => (
                    Pace::Poisson {
                        per_s: per_s / each,
                    },
                    0,
                ),
                Pace::Closed | Pace::Replay { .. } => (shape.pace, 0),
            };
            Share {
                shape: Shape {
                    connections: shape.connections / count + more,
                    pace,
                    ..shape
                },
                manner: Manner {
                    seed: manner.seed.wrapping_add(u64::from(which) << 40),
                    ..*manner
                },
                after_us,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn shares(connections: u32, pace: Pace, generators: usize) -> Vec<Share> {
        let manner = Manner {
            shuffled: false,
            requests_per_connection: None,
            washout: Duration::ZERO,
            window: Duration::from_secs(1),
            limit: Duration::from_secs(1),
            threads: None,
            seed: 7,
        };
        let shape = Shape {
            target: 0,
            round: 0,
            connections,
            pace,
            share: None,
        };
        orders(&manner, shape, generators)
    }

    #[test]
    fn nothing_is_lost_and_nobody_has_no_connection() {
        for (connections, generators) in [(1, 3), (3, 3), (7, 3), (256, 3), (2, 20)] {
            let all = shares(connections, Pace::Closed, generators);
            let sum: u32 = all.iter().map(|one| one.shape.connections).sum();
            assert_eq!(sum, connections);
            assert!(all.iter().all(|one| one.shape.connections > 0));
            assert_eq!(all.len(), generators.min(connections as usize));
        }
        let all = shares(2, Pace::Constant { per_s: 100.0 }, 3);
        let rates: Vec<_> = all.iter().map(|one| one.shape.pace).collect();
        assert_eq!(rates, [Pace::Constant { per_s: 50.0 }; 2]);
        // 50 per second each; the second generator starts half an interval later.
        assert_eq!((all[0].after_us, all[1].after_us), (0, 10_000));
        assert_ne!(all[0].manner.seed, all[1].manner.seed);
    }
}

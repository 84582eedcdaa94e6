//! Simulates a film player and finds the times at which the film would have stalled.

use serde::{Deserialize, Serialize};

/// Properties of a film that the simulation needs.
#[derive(Clone, Copy, Debug)]
pub struct Film {
    /// Playing time of one piece, in microseconds.
    pub piece_us: u64,
    /// Playing time that must be buffered before the film starts and before it continues after a stall, in
    /// microseconds.
    pub start_us: u64,
    /// End of the simulation, in microseconds from the start.
    pub until_us: u64,
}

/// Quality of the playback for the viewer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Played {
    /// Start of the film, in microseconds from the start of the run; `None` if it never started.
    pub began_us: Option<u64>,
    /// Stalls, each with start and end in microseconds from the start.
    pub stops: Vec<(u64, u64)>,
}

impl Played {
    /// Returns the total time of the stalls, in microseconds.
    #[must_use]
    pub fn stood_us(&self) -> u64 {
        self.stops.iter().map(|(from, to)| to - from).sum()
    }
}

/// Simulates the playback of a film. `there` contains the arrival time of each piece in microseconds, in the order of
/// the film. The simulation ends at a piece that never arrived.
#[must_use]
pub fn play(film: Film, there: &[Option<u64>]) -> Played {
    let mut played = Played::default();
    let piece = film.piece_us.max(1);
    // Number of buffered pieces at the start, at least one.
    let ahead = usize::try_from(film.start_us.div_ceil(piece))
        .unwrap_or(usize::MAX)
        .max(1);
    // Time since which the player waits, or at which the played pieces end.
    let (mut at, mut next) = (0u64, 0usize);
    // Time at which all pieces up to this one have arrived.
    let mut sofar = 0;
    let all: Vec<Option<u64>> = there
        .iter()
        .map(|time| {
            sofar = time.map(|time| time.max(sofar))?;
            Some(sofar)
        })
        .take_while(Option::is_some)
        .collect();
    let when = |piece: usize| all.get(piece).copied().flatten();
    while at < film.until_us {
        // The player waits until the buffer is full enough, or until the end.
        let enough = when(next.saturating_add(ahead - 1)).filter(|time| *time < film.until_us);
        let from = at;
        at = enough.map_or(film.until_us, |time| time.max(at));
        match played.began_us {
            None => played.began_us = enough.map(|_| at),
            Some(_) if at > from => played.stops.push((from, at)),
            Some(_) => {}
        }
        // The player continues while the next piece is there.
        while at < film.until_us && when(next).is_some_and(|time| time <= at) {
            at = at.saturating_add(piece);
            next += 1;
        }
    }
    played
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn film(until_us: u64) -> Film {
        Film {
            piece_us: 100,
            start_us: 200,
            until_us,
        }
    }

    #[test]
    fn what_is_in_time_is_played_without_a_stop() {
        let there: Vec<Option<u64>> = (0..10).map(|i| Some(i * 100 + 50)).collect();
        let played = play(film(1000), &there);
        assert_eq!((played.began_us, played.stops), (Some(150), vec![]));
    }

    #[test]
    fn a_late_piece_stops_it_until_two_are_there_again() {
        let there = [10, 20, 30, 900, 950, 960, 970].map(Some);
        let played = play(film(1200), &there);
        assert_eq!(played.began_us, Some(20));
        // Three pieces last until 320; the fourth and fifth arrive at 950.
        assert_eq!(played.stops, [(320, 950)]);
    }

    #[test]
    fn a_piece_that_never_comes_ends_it() {
        let played = play(film(1000), &[Some(10), Some(20), None, Some(30)]);
        assert_eq!(played.stops, [(220, 1000)]);
        assert_eq!(play(film(1000), &[]), Played::default());
    }

    proptest! {
        #[test]
        fn time_is_waiting_playing_or_standing(
            there in prop::collection::vec(prop::option::weighted(0.95, 0u64..3000), 0..40),
            until in 1u64..4000,
        ) {
            let played = play(film(until), &there);
            let mut last = played.began_us.unwrap_or(0);
            for (from, to) in &played.stops {
                prop_assert!(last <= *from && from < to && *to <= until);
                last = *to;
            }
            prop_assert!(played.began_us.is_some() || played.stops.is_empty());
        }
    }
}

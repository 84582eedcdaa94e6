//! Checks whether a file or device contains anything but zeroes. Reads the start, the end, and sampled positions. Data
//! at the start or end are always found, but sparse data may be missed: if data cover 1 % of a device, 256 samples find
//! them with a probability of 92 %.

use crate::overwrite::{Found, formats};
use assay_host::held::Held;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use rustix::fs::{Advice, OFlags, SeekFrom};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

/// Number of bytes that are read at the start and at the end.
const EDGE: u64 = 1 << 20;
/// Number of bytes that are read at each sampled position.
const PROBE: usize = 4096;
/// Number of pseudo-random positions that are read, in addition to the powers of two.
const PROBES: usize = 256;
/// Timeout of the reads. The content of a slower device counts as unknown.
const LONGEST: Duration = Duration::from_secs(60);
/// Maximum number of positions that a message lists.
const NAMED: usize = 3;
/// Minimum number of distinct byte values for which 4096 bytes look random. Random bytes hardly ever have fewer.
const RANDOM: usize = 240;

/// Describes the content of a target that is not empty, and how to continue.
pub(crate) fn look(held: &Held) -> Found {
    let failed = |error: io::Error| format!("what is on it: {error}");
    let file = held
        .reopen(OFlags::RDONLY)
        .map_err(|error| error.to_string())?;
    let size = rustix::fs::seek(&file, SeekFrom::End(0)).map_err(|error| failed(error.into()))?;
    // Disables read-ahead, so that no data of the user stay in the page cache.
    let _ = rustix::fs::fadvise(&file, 0, None, Advice::Random);
    let found = read_content(&file, size, Instant::now);
    let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
    let found = found.map_err(failed)?;
    Ok(found
        .map(|found| {
            format!(
                "not empty: {found}; `hexdump -C -s {} -n 256 {}` shows it; if all of it may be lost, say --destroy-unknown-data as well",
                found.first,
                held.shown().display()
            )
        })
        .into_iter()
        .collect())
}

/// What the sampled data contain.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    known: Vec<String>,
    /// Offset of the first byte read that is not zero.
    first: u64,
    /// Offsets of the sampled positions whose bytes are not all zero.
    places: Vec<u64>,
    random: bool,
}

impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.known.is_empty() {
            return f.write_str(&self.known.join(", "));
        }
        let kind = match self.random {
            true => "data that look random, as encrypted or compressed ones do,",
            false => "data",
        };
        let named: Vec<String> = self.places.iter().take(NAMED).map(u64::to_string).collect();
        write!(f, "{kind} at byte {}", named.join(", "))?;
        match self.places.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and in {more} other places"),
        }
    }
}

fn read_content(file: &File, size: u64, now: impl Fn() -> Instant) -> io::Result<Option<Content>> {
    let begun = now();
    let head = read(file, 0, size.min(EDGE))?;
    let tail_at = size.saturating_sub(EDGE);
    let tail = read(file, tail_at, size - tail_at)?;
    let mut places = Vec::new();
    let mut random = false;
    for (at, bytes) in [(0, &head), (tail_at, &tail)] {
        if let Some(place) = first_nonzero(bytes) {
            places.push(at + place as u64);
            random |= looks_random(&bytes[place..]);
        }
    }
    for at in sample_positions(size) {
        if now() - begun > LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "reading {PROBES} places of it takes more than {} s",
                    LONGEST.as_secs()
                ),
            ));
        }
        let bytes = read(file, at, PROBE as u64)?;
        if let Some(place) = first_nonzero(&bytes) {
            places.push(at + place as u64);
            random |= looks_random(&bytes);
        }
    }
    places.sort_unstable();
    places.dedup();
    let Some(&first) = places.first() else {
        return Ok(None);
    };
    Ok(Some(Content {
        known: formats::known(&head, &tail, size),
        first,
        places,
        random,
    }))
}

/// Returns the sampled positions between start and end: every power of two, and pseudo-random positions. The positions
/// depend only on the size, so that a second check reads the same ones.
fn sample_positions(size: u64) -> Vec<u64> {
    let end = size.saturating_sub(EDGE);
    if end <= EDGE {
        return Vec::new();
    }
    let powers = (0..u64::BITS).map(|power| 1u64 << power);
    let mut places: Vec<u64> = powers.filter(|at| (EDGE..end).contains(at)).collect();
    let mut random = ChaCha8Rng::seed_from_u64(size);
    // The modulo bias is less than one in 2^20 on the largest disk.
    let somewhere = || (EDGE + random.next_u64() % (end - EDGE)) / PROBE as u64 * PROBE as u64;
    places.extend(std::iter::repeat_with(somewhere).take(PROBES));
    places.sort_unstable();
    places.dedup();
    places
}

fn read(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

fn first_nonzero(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte != 0)
}

/// Returns whether the bytes contain almost all 256 values, as 4096 random bytes do.
fn looks_random(bytes: &[u8]) -> bool {
    let mut seen = [false; 256];
    for byte in bytes.iter().take(PROBE) {
        seen[usize::from(*byte)] = true;
    }
    seen.iter().filter(|seen| **seen).count() >= RANDOM
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64, at: &[(u64, &[u8])]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        for (at, bytes) in at {
            file.write_all_at(bytes, *at).unwrap();
        }
        file
    }

    fn found(size: u64, at: &[(u64, &[u8])]) -> Option<Content> {
        read_content(&file(size, at), size, Instant::now).unwrap()
    }

    #[test]
    fn zeroes_are_nothing_whatever_the_size() {
        for size in [
            0,
            1,
            511,
            4096,
            EDGE,
            EDGE + 1,
            2 * EDGE,
            3 * EDGE + 7,
            1 << 40,
        ] {
            assert_eq!(found(size, &[]), None, "{size}");
        }
    }

    #[test]
    fn one_byte_at_an_edge_is_found() {
        for size in [1u64, 4096, EDGE + 1, 5 * EDGE, 1 << 40] {
            for at in [0, size - 1, size.min(EDGE) - 1, size.saturating_sub(EDGE)] {
                let content = found(size, &[(at, b"x")]).unwrap();
                assert_eq!(content.first, at, "{size}");
            }
        }
    }

    #[test]
    fn powers_of_two_and_much_data_between_are_found() {
        assert_eq!(found(1 << 40, &[(1 << 35, b"x")]).unwrap().first, 1 << 35);
        let many = vec![7u8; 8 << 20];
        let content = found(64 << 20, &[(20 << 20, &many)]).unwrap();
        assert!(content.places.len() > 10 && !content.random);
    }

    #[test]
    fn places_cover_all_of_it() {
        let size = 1u64 << 40;
        let places = sample_positions(size);
        assert!(places.len() >= PROBES);
        for tenth in 0..10 {
            let range = size / 10 * tenth..size / 10 * (tenth + 1);
            assert!(places.iter().any(|at| range.contains(at)), "{tenth}");
        }
        assert!(places.iter().all(|at| at + PROBE as u64 <= size));
        assert_eq!(places, sample_positions(size));
    }

    #[test]
    fn random_data_look_so_and_text_does_not() {
        let mut bytes = vec![0; PROBE];
        ChaCha8Rng::seed_from_u64(1).fill_bytes(&mut bytes);
        assert!(found(1 << 30, &[(0, &bytes)]).unwrap().random);
        let text = b"nothing but words\n".repeat(300);
        assert!(!found(1 << 30, &[(0, &text)]).unwrap().random);
    }

    #[test]
    fn a_device_that_answers_slowly_is_not_waited_for() {
        let begun = Instant::now();
        let calls = std::cell::Cell::new(0u32);
        let slow = || {
            calls.set(calls.get() + 1);
            begun + Duration::from_secs(7) * calls.get()
        };
        let size = 1 << 30;
        let error = read_content(&file(size, &[]), size, slow).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(calls.get() < 20);
    }
}

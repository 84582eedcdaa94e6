//! Numbered records with checksums for durability tests. They are written inside the guest and checked outside.
//!
//! This file is compiled into assay and into the agent, so it uses only the standard library.

/// Size of a record in bytes: one page, so that two records never share a sector.
pub const SIZE: usize = 4096;

/// Returns the record with this number. It contains the number, the seed, and bytes derived from both. Therefore a
/// torn, old or misplaced record is detected at every byte.
#[must_use]
pub fn record(seed: u64, number: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SIZE);
    bytes.extend_from_slice(b"assaylog");
    bytes.extend_from_slice(&seed.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    // SplitMix64 (Steele, Lea, Flood 2014): fast, and all records differ.
    let mut state = seed ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03);
    while bytes.len() < SIZE {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bytes.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
    }
    bytes
}

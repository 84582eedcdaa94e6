//! Numbered, checksummed records of a durability log: written inside the guest, looked for outside.
//!
//! Compiled into assay and into the agent; the standard library alone.

/// Size of a record in bytes: one page, so that no record shares a sector with another.
pub const SIZE: usize = 4096;

/// The record of this number: its number and seed, then bytes that follow from both. Every byte can
/// be told, so a torn, stale or misplaced record is recognised.
#[must_use]
pub fn record(seed: u64, number: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SIZE);
    bytes.extend_from_slice(b"assaylog");
    bytes.extend_from_slice(&seed.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    // SplitMix64 (Steele, Lea, Flood 2014): cheap, and no two records are alike.
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

//! Boot program of a guest without a kernel. The program receives commands over the serial line. It reads and writes
//! its disks with one request at a time, and measures the total time with the ACPI timer.

use assay_model::Bytes;
use serde::Deserialize;

/// Machine code of `serve.S`, assembled with GNU as 2.40. The rest of the boot sector is zeros and a signature.
const CODE: [u8; 284] = [
    0x31, 0xc0, 0x8e, 0xd8, 0x8e, 0xd0, 0xbc, 0x00, 0x7c, 0xfc, 0xb8, 0x00, 0x10, 0x8e, 0xc0, 0x31,
    0xff, 0xb9, 0x00, 0x40, 0x66, 0x69, 0xc0, 0x0d, 0x66, 0x19, 0x00, 0x66, 0x05, 0x5f, 0xf3, 0x6e,
    0x3c, 0x66, 0xab, 0xe2, 0xef, 0xb0, 0x52, 0xe8, 0xd6, 0x00, 0xba, 0xfd, 0x03, 0xec, 0xa8, 0x01,
    0x75, 0x04, 0xfb, 0xf4, 0xeb, 0xf4, 0xbb, 0x34, 0x7d, 0xb9, 0x1c, 0x00, 0xba, 0xfd, 0x03, 0xec,
    0xa8, 0x01, 0x74, 0xfb, 0xba, 0xf8, 0x03, 0xec, 0x88, 0x07, 0x43, 0xe2, 0xef, 0x66, 0x31, 0xc0,
    0x66, 0xa3, 0x28, 0x7d, 0x66, 0xa3, 0x2c, 0x7d, 0x66, 0xa3, 0x30, 0x7d, 0x66, 0xa1, 0x3c, 0x7d,
    0x66, 0x0f, 0xaf, 0x06, 0x44, 0x7d, 0x66, 0x03, 0x06, 0x48, 0x7d, 0x66, 0x23, 0x06, 0x40, 0x7d,
    0x66, 0xa3, 0x3c, 0x7d, 0x66, 0x0f, 0xb7, 0x0e, 0x36, 0x7d, 0x89, 0x0e, 0x16, 0x7d, 0x66, 0xf7,
    0xe1, 0x66, 0xa3, 0x1c, 0x7d, 0xba, 0x08, 0x06, 0x66, 0xed, 0x66, 0xa3, 0x24, 0x7d, 0xbe, 0x14,
    0x7d, 0x8a, 0x26, 0x35, 0x7d, 0x30, 0xc0, 0x8a, 0x16, 0x34, 0x7d, 0xcd, 0x13, 0x73, 0x05, 0x66,
    0xff, 0x06, 0x2c, 0x7d, 0xba, 0x08, 0x06, 0x66, 0xed, 0x66, 0x2b, 0x06, 0x24, 0x7d, 0x66, 0x25,
    0xff, 0xff, 0xff, 0x00, 0x66, 0x01, 0x06, 0x28, 0x7d, 0x66, 0xff, 0x06, 0x30, 0x7d, 0x66, 0xa1,
    0x4c, 0x7d, 0x66, 0x39, 0x06, 0x28, 0x7d, 0x73, 0x07, 0x66, 0xff, 0x0e, 0x38, 0x7d, 0x75, 0x8c,
    0xb0, 0x44, 0xe8, 0x2b, 0x00, 0x66, 0xa1, 0x30, 0x7d, 0xe8, 0x11, 0x00, 0x66, 0xa1, 0x2c, 0x7d,
    0xe8, 0x0a, 0x00, 0x66, 0xa1, 0x28, 0x7d, 0xe8, 0x03, 0x00, 0xe9, 0x3d, 0xff, 0xb9, 0x08, 0x00,
    0x66, 0xc1, 0xc0, 0x04, 0x50, 0x24, 0x0f, 0x04, 0x61, 0xe8, 0x04, 0x00, 0x58, 0xe2, 0xf1, 0xc3,
    0x52, 0x50, 0xba, 0xfd, 0x03, 0xec, 0xa8, 0x20, 0x74, 0xfb, 0x58, 0xba, 0xf8, 0x03, 0xee, 0x5a,
    0xc3, 0x8d, 0x74, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10,
];
/// Frequency of the ACPI timer in ticks per second.
const TICKS: f64 = 3_579_545.0;
/// Length of an answer in bytes: one letter, then three numbers of eight characters each.
pub(super) const ANSWER: usize = 25;
/// Multiplier and increment of a linear congruential generator modulo a power of two. The generator visits every block
/// exactly once (Numerical Recipes, 2nd edition, 7.1).
const SCATTERED: (u32, u32) = (1_664_525, 1_013_904_223);
const ONE_BY_ONE: (u32, u32) = (1, 1);

/// Requests that the guest sends to measure a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Requests {
    /// Whether the requests write; else they read.
    pub write: bool,
    /// Size of a request in bytes.
    pub block: Bytes,
    /// Whether every block is visited once in a scattered order; else the blocks are visited in sequence.
    #[serde(default)]
    pub random: bool,
    /// Maximum number of requests.
    pub count: u32,
}

impl Requests {
    /// Returns whether the size of a request is supported. The BIOS supports up to 127 sectors, the program up to 64
    /// KiB.
    pub fn fits(&self) -> bool {
        let sectors = self.block.0 / 512;
        self.block.0.is_multiple_of(512) && (1..=127).contains(&sectors) && self.count > 0
    }

    /// Encodes the requests as a command for the program. `drive` is the BIOS disk number, `size` the used part of the
    /// disk in bytes, and `time` the seconds after which no request starts.
    pub fn command(&self, drive: u8, size: Bytes, time: f64, seed: u64) -> Vec<u8> {
        let sectors = u16::try_from(self.block.0 / 512).unwrap_or(1);
        let blocks = u32::try_from(size.0 / self.block.0)
            .unwrap_or(u32::MAX)
            .max(1);
        // The generator needs a power of two.
        let mask = (1 << blocks.ilog2()) - 1;
        let (multiplier, increment) = match self.random {
            true => SCATTERED,
            false => ONE_BY_ONE,
        };
        let index = (seed ^ (seed >> 32)) as u32 & mask;
        let limit = (time * TICKS).clamp(1.0, f64::from(u32::MAX >> 1)) as u32;
        let mut bytes = vec![drive, if self.write { 0x43 } else { 0x42 }];
        bytes.extend(sectors.to_le_bytes());
        for number in [self.count, index, mask, multiplier, increment, limit] {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }
}

/// Result of the requests, as the program reported it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Served {
    /// Number of finished requests.
    pub done: u32,
    /// Number of failed requests among the finished ones.
    pub failed: u32,
    /// Total duration in seconds, measured by the program.
    pub seconds: f64,
}

impl Served {
    /// Parses an answer of the program; `None` if the answer is malformed.
    pub fn read(text: &str) -> Option<Self> {
        let letters = text
            .strip_prefix('D')
            .filter(|rest| rest.len() == ANSWER - 1)?;
        let number = |at: usize| {
            let mut letters = letters.bytes().skip(8 * at).take(8);
            letters.try_fold(0u32, |sum, letter| {
                let digit = letter.checked_sub(b'a').filter(|digit| *digit < 16)?;
                Some(sum << 4 | u32::from(digit))
            })
        };
        Some(Self {
            done: number(0)?,
            failed: number(1)?,
            seconds: f64::from(number(2)?) / TICKS,
        })
    }
}

/// Returns the content of the boot disk.
pub(super) fn boot_disk() -> Vec<u8> {
    super::program::boot_sector_disk(&CODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_holds_what_the_program_reads_where_it_reads_it() {
        let wanted = Requests {
            write: true,
            block: Bytes(4096),
            random: true,
            count: 258,
        };
        assert!(wanted.fits());
        let bytes = wanted.command(0x82, Bytes(16 << 20), 1.0, 3);
        assert_eq!(bytes.len(), 28);
        assert_eq!(bytes[..8], [0x82, 0x43, 8, 0, 2, 1, 0, 0]);
        // Block 3 of 4096 comes first.
        assert_eq!(bytes[8..16], [3, 0, 0, 0, 0xff, 0x0f, 0, 0]);
        assert_eq!(bytes[24..], 3_579_545u32.to_le_bytes());
        let too_much = Requests {
            block: Bytes(64 << 10),
            ..wanted
        };
        assert!(!too_much.fits());
    }

    #[test]
    fn every_block_comes_once_in_a_scattered_order() {
        let mask = 255u32;
        let mut index = 7u32;
        let mut seen = std::collections::BTreeSet::new();
        let mut neighbours = 0;
        for _ in 0..=mask {
            let next = index.wrapping_mul(SCATTERED.0).wrapping_add(SCATTERED.1) & mask;
            neighbours += u32::from(next.abs_diff(index) == 1);
            index = next;
            seen.insert(index);
        }
        assert_eq!(seen.len(), 256);
        assert!(neighbours < 8, "{neighbours}");
    }

    #[test]
    fn an_answer_is_read_or_refused() {
        let served = Served::read("Daaaaaaapaaaaaaabaaaaaaaa").unwrap();
        assert_eq!((served.done, served.failed), (15, 1));
        assert_eq!(Served::read("Daaaaaaapaaaaaaabaaaaaaa"), None);
        assert_eq!(Served::read("Daaaaaaapaaaaaaabaaaaaaaz"), None);
        assert_eq!(Served::read(""), None);
    }
}

//! Boot program of the nested guest. The program needs no kernel, so it starts within seconds even if both guests are
//! emulated.

/// Size of one request in bytes.
pub(super) const REQUEST: u64 = 32 << 10;
/// Size of a sector in bytes.
const SECTOR: usize = 512;
/// Offset of the request count in the boot sector, in bytes.
const COUNT: usize = 504;
/// Machine code of `fill.S`, assembled with GNU as 2.40. The boot sector ends with zeros, the count and a signature.
const CODE: [u8; 92] = [
    0x31, 0xc0, 0x8e, 0xd8, 0x8e, 0xd0, 0xbc, 0x00, 0x7c, 0xfc, 0xb8, 0x00, 0x10, 0x8e, 0xc0, 0x66,
    0xa1, 0x5c, 0x7c, 0x66, 0x40, 0x31, 0xff, 0xba, 0x40, 0x00, 0xb9, 0x80, 0x00, 0x66, 0xf3, 0xab,
    0x66, 0x40, 0x4a, 0x75, 0xf5, 0xc7, 0x06, 0x56, 0x7c, 0x40, 0x00, 0xbe, 0x54, 0x7c, 0xb8, 0x00,
    0x43, 0xb2, 0x81, 0xcd, 0x13, 0xb0, 0x2e, 0x73, 0x02, 0xb0, 0x45, 0xe6, 0xe9, 0x66, 0x83, 0x06,
    0x5c, 0x7c, 0x40, 0x66, 0xff, 0x0e, 0xf8, 0x7d, 0x75, 0xc5, 0xb0, 0x44, 0xe6, 0xe9, 0xf4, 0xeb,
    0xfd, 0x8d, 0x74, 0x00, 0x10, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x10,
];

/// Returns a boot disk whose program writes this many requests.
pub(super) fn boot_disk(requests: u32) -> Vec<u8> {
    let mut disk = boot_sector_disk(&CODE);
    disk[COUNT..COUNT + 4].copy_from_slice(&requests.to_le_bytes());
    disk
}

/// Returns a disk whose boot sector contains this machine code.
pub(super) fn boot_sector_disk(code: &[u8]) -> Vec<u8> {
    // SeaBIOS recognises disks of at least 1 MiB.
    let mut disk = vec![0; 1 << 20];
    disk[..code.len()].copy_from_slice(code);
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    disk
}

/// Report of the program on its requests, read from the program's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProgramReport {
    /// For each request, in order, whether it was completed.
    pub done: Vec<bool>,
    /// Whether the program reported its end.
    pub ended: bool,
}

impl ProgramReport {
    pub fn read(text: &str) -> Self {
        let requests = text.bytes().filter(|byte| matches!(byte, b'.' | b'E'));
        Self {
            done: requests.map(|byte| byte == b'.').collect(),
            ended: text.contains('D'),
        }
    }
}

/// Compares a disk's content, which arrives in pieces, with the data that the program wrote.
#[derive(Default)]
pub(super) struct Check {
    rest: Vec<u8>,
    sector: u32,
    good: Vec<bool>,
}

impl Check {
    pub fn add(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
        let whole = self.rest.len() / SECTOR * SECTOR;
        for sector in self.rest[..whole].chunks_exact(SECTOR) {
            let word = (self.sector + 1).to_le_bytes();
            let good = sector.chunks_exact(4).all(|four| four == word);
            if (u64::from(self.sector) * SECTOR as u64).is_multiple_of(REQUEST) {
                self.good.push(true);
            }
            if let Some(last) = self.good.last_mut() {
                *last &= good;
            }
            self.sector += 1;
        }
        self.rest.drain(..whole);
    }

    /// Returns for each possible request whether all of its data is on the disk.
    pub fn end(self) -> Vec<bool> {
        self.good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_disk_carries_the_count_and_the_signature() {
        let disk = boot_disk(0x0102_0304);
        assert_eq!(disk.len(), 1 << 20);
        assert_eq!(disk[COUNT..COUNT + 8], [4, 3, 2, 1, 0, 0, 0x55, 0xaa]);
    }

    #[test]
    fn what_is_missing_is_found_whatever_the_pieces() {
        let sectors = u32::try_from(3 * REQUEST).unwrap() / 512;
        let mut disk: Vec<u8> = (1..=sectors)
            .flat_map(|number| number.to_le_bytes().repeat(128))
            .collect();
        let second = usize::try_from(REQUEST).unwrap();
        disk[second + 1000] ^= 1;
        for size in [1, 511, 4096, 65_537] {
            let mut check = Check::default();
            for piece in disk.chunks(size) {
                check.add(piece);
            }
            assert_eq!(check.end(), [true, false, true], "{size}");
        }
    }

    #[test]
    fn the_program_tells_done_from_failed_and_its_end() {
        let said = ProgramReport::read("..E.");
        assert_eq!(said.done, [true, true, false, true]);
        assert!(!said.ended);
        assert!(ProgramReport::read(".D").ended);
    }
}

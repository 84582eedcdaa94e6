//! Runs a QEMU inside the guest. assay drives the disk of this nested QEMU through the registers of the controller,
//! without a nested operating system.
//!
//! The device, the block layer and the error policy are those of the real QEMU; only the requests come from assay.
//! assay reads and writes I/O ports with QEMU's monitor commands `i` and `o`, while the CPU of the nested machine halts
//! at its first instruction. An operating system would use the same registers, but would take minutes to boot in nested
//! emulation.

use crate::record::{SIZE, record};
use crate::{Guest, LabError};
use assay_qemu::{Qmp, QmpError};
use serde_json::{Value, json};
use std::io::BufReader;
use std::path::Path;
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Maximum time for an answer of the nested QEMU, which is emulated.
const QEMU_ANSWERS_WITHIN: Duration = Duration::from_secs(120);
/// Time limit after which the nested QEMU is killed.
const LONGEST: Duration = Duration::from_secs(1800);
/// Address of the DMA descriptors in the nested machine's memory. The records follow them.
const DESCRIPTORS: u32 = 1 << 20;
const RECORDS: u32 = 2 << 20;
/// File in the guest that contains the nested machine's memory.
const BLOB: &str = "/run/assay-records";
/// File in the guest that contains the firmware of the nested machine.
const FIRMWARE: &str = "/run/assay-halt";
/// Address of the bus master registers (Intel 82371SB, PIIX3, 2.5). assay sets this address, as firmware would.
const BUS_MASTER: u16 = 0xc000;
/// Address of the first ATA channel's registers.
const ATA: u16 = 0x1f0;

/// Result of a request to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Fine,
    /// The request failed. Contains the drive's status and error registers.
    Failed(u8, u8),
    /// QEMU paused the nested machine, and the request is still waiting.
    Paused,
}

/// The disk of a nested machine, driven through QEMU's monitor.
pub(super) struct Drive {
    pub(super) qmp: Qmp,
}

impl Drive {
    /// Starts a QEMU in the guest with one IDE disk on this block node. QEMU ends when its standard input is closed.
    pub(super) fn start<'scope, 'env: 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        guest: &'env Guest,
        node: &Value,
        records: u64,
        seed: u64,
    ) -> Result<Self, LabError> {
        guest.push_bytes(&guest_memory(seed, records), Path::new(BLOB), 0o600)?;
        guest.push_bytes(&idle_firmware(), Path::new(FIRMWARE), 0o600)?;
        let mut node = node.clone();
        node["node-name"] = json!("disk");
        let argv = [
            "qemu-system-x86_64",
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-machine",
            "pc,accel=tcg",
            "-m",
            "64",
            "-bios",
            FIRMWARE,
            "-device",
            &format!("loader,file={BLOB},addr={DESCRIPTORS:#x},force-raw=on"),
            "-blockdev",
            &node.to_string(),
            "-device",
            "ide-hd,drive=disk,bus=ide.0,unit=0",
            "-qmp",
            "stdio",
        ]
        .map(str::to_owned);
        // The other end of the pipe detects its end.
        let program = guest.converse(scope, argv.into(), LONGEST);
        let reader = Box::new(BufReader::new(program.says));
        let qmp = Qmp::over(reader, Box::new(program.hears), QEMU_ANSWERS_WITHIN)?;
        let mut drive = Self { qmp };
        drive.enable()?;
        Ok(drive)
    }

    /// Configures the device as firmware does: sets the address of the bus master registers, and permits DMA.
    fn enable(&mut self) -> Result<(), LabError> {
        // PCI configuration mechanism 1: bus 0, device 1, function 1.
        const IDE: u32 = 0x8000_0900;
        self.out('w', 0xcf8, IDE | 0x20)?;
        self.out('w', 0xcfc, u32::from(BUS_MASTER) | 1)?;
        self.out('w', 0xcf8, IDE | 0x04)?;
        self.out('h', 0xcfc, 0x0005)
    }

    /// Writes a value to an I/O port. `size` is `b` for one byte, `h` for two, `w` for four.
    fn out(&mut self, size: char, port: u16, value: u32) -> Result<(), LabError> {
        let line = format!("o/{size} {port:#x} {value:#x}");
        self.monitor(&line).map(drop)
    }

    fn read(&mut self, port: u16) -> Result<u8, LabError> {
        let said = self.monitor(&format!("i/b {port:#x}"))?;
        parse_port_byte(&said).ok_or_else(|| refused_command("i", format!("{said:?} is no byte")))
    }

    fn monitor(&mut self, line: &str) -> Result<String, LabError> {
        let arguments = json!({ "command-line": line });
        let said = self.qmp.execute("human-monitor-command", arguments)?;
        Ok(said.as_str().unwrap_or_default().to_owned())
    }

    /// Starts to write a record to its position on the disk, by DMA (ATA WRITE DMA).
    pub(super) fn begin_write(&mut self, number: u64) -> Result<(), LabError> {
        let sectors = SIZE as u64 / 512;
        let address = number * sectors;
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let byte = |shift: u32| u32::try_from(address >> shift & 0xff).unwrap_or(0);
        self.out('w', BUS_MASTER + 4, DESCRIPTORS + number * 8)?;
        // Status bits of an earlier request are cleared by writing ones.
        self.out('b', BUS_MASTER + 2, 0x06)?;
        self.out('b', ATA + 6, 0xe0 | byte(24) & 0x0f)?;
        self.out('b', ATA + 2, u32::try_from(sectors).unwrap_or(0))?;
        self.out('b', ATA + 3, byte(0))?;
        self.out('b', ATA + 4, byte(8))?;
        self.out('b', ATA + 5, byte(16))?;
        self.out('b', ATA + 7, 0xca)?;
        self.out('b', BUS_MASTER, 0x01)
    }

    /// Starts a flush (ATA FLUSH CACHE).
    pub(super) fn begin_flush(&mut self) -> Result<(), LabError> {
        self.out('b', BUS_MASTER, 0x00)?;
        self.out('b', ATA + 7, 0xe7)
    }

    /// Waits until the request is done, or until QEMU pauses the machine.
    pub(super) fn wait(&mut self) -> Result<Done, LabError> {
        const ERR: u8 = 0x01;
        const BUSY_OR_DATA: u8 = 0x88;
        let deadline = Instant::now() + QEMU_ANSWERS_WITHIN;
        while Instant::now() < deadline {
            let status = self.qmp.execute("query-status", json!({}))?;
            if status["status"] == "io-error" {
                return Ok(Done::Paused);
            }
            let active = self.read(BUS_MASTER + 2)? & 1 != 0;
            let status = self.read(ATA + 7)?;
            if status & ERR != 0 {
                return Ok(Done::Failed(status, self.read(ATA + 1)?));
            }
            if !active && status & BUSY_OR_DATA == 0 {
                return Ok(Done::Fine);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let busy = format!("the drive was busy for {} s", QEMU_ANSWERS_WITHIN.as_secs());
        Err(refused_command("write", busy))
    }
}

fn refused_command(command: &str, reason: String) -> LabError {
    LabError::Qmp(QmpError::Refused {
        command: command.to_owned(),
        reason,
    })
}

/// Returns the content of the nested machine's memory: the DMA descriptors (address, length, last-in-table: 82371SB,
/// 2.5.4) and the records that they refer to.
fn guest_memory(seed: u64, records: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let size = u32::try_from(SIZE).unwrap_or(0);
    for number in 0..u32::try_from(records).unwrap_or(u32::MAX) {
        bytes.extend((RECORDS + number * size).to_le_bytes());
        bytes.extend((0x8000_0000 | size).to_le_bytes());
    }
    bytes.resize((RECORDS - DESCRIPTORS) as usize, 0);
    bytes.extend((0..records).flat_map(|number| record(seed, number)));
    bytes
}

/// Returns firmware that does nothing. At the CPU's start address (Intel SDM 3A, 10.1.4) it contains `cli; hlt` and a
/// `jmp` back.
fn idle_firmware() -> Vec<u8> {
    let mut bytes = vec![0; 64 << 10];
    bytes[0xfff0..0xfff4].copy_from_slice(&[0xfa, 0xf4, 0xeb, 0xfd]);
    bytes
}

/// Parses the value in an answer of the monitor, such as `portb[0x01f7] = 0x50`.
fn parse_port_byte(said: &str) -> Option<u8> {
    let (_, value) = said.rsplit_once("0x")?;
    u8::from_str_radix(value.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monitor_tells_bytes() {
        // QEMU 7.2.22.
        assert_eq!(parse_port_byte("portb[0x01f7] = 0x50\r\n"), Some(0x50));
        assert_eq!(parse_port_byte("portb[0x01f7] = 0x5000\r\n"), None);
        assert_eq!(parse_port_byte("unknown command: 'i'\r\n"), None);
    }

    #[test]
    fn each_descriptor_points_to_its_record() {
        let bytes = guest_memory(7, 3);
        let at = (RECORDS - DESCRIPTORS) as usize;
        assert_eq!(bytes.len(), at + 3 * SIZE);
        let address = u32::from_le_bytes(bytes[16..20].try_into().unwrap());
        assert_eq!(
            u32::from_le_bytes(bytes[20..24].try_into().unwrap()),
            0x8000_1000
        );
        let from = (address - DESCRIPTORS) as usize;
        assert_eq!(bytes[from..from + SIZE], record(7, 2)[..]);
    }
}

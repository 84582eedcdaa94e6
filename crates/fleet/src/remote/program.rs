//! The program file that is copied to a remote machine.

use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// Maximum size of a program in bytes. A debug build has some hundred million bytes.
const LARGEST: u64 = 1 << 30;

/// A program that can be copied to a machine.
#[derive(Debug)]
pub struct Program {
    /// Path of the program on this machine.
    pub path: PathBuf,
    /// Size of the program in bytes.
    pub size: u64,
    /// SHA-256 of the content in hexadecimal. This hash is used because every machine has `sha256sum`.
    pub sha256: String,
    /// Processor architecture that can run the program, as `uname -m` prints it; `None` if unknown.
    pub machine: Option<&'static str>,
    file: File,
}

impl Program {
    /// Opens a program and reads it once.
    ///
    /// # Errors
    /// The file cannot be read, is not a program, or is too large.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        if size > LARGEST {
            return Err(io::Error::other("it is larger than 1 GiB"));
        }
        let mut head = [0; 20];
        file.read_exact(&mut head)
            .map_err(|_| io::Error::other("it is no program"))?;
        if !head.starts_with(b"\x7fELF") {
            return Err(io::Error::other("it is no program"));
        }
        file.seek(SeekFrom::Start(0))?;
        let mut sum = Sha256::new();
        let mut buffer = vec![0; 256 << 10];
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let count = file.read(&mut buffer[..most])?;
            if count == 0 {
                return Err(io::Error::other("it became shorter while it was read"));
            }
            sum.update(&buffer[..count]);
            left -= count as u64;
        }
        Ok(Self {
            path: path.to_owned(),
            size,
            sha256: sum
                .finalize()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
            machine: machine(&head),
            file,
        })
    }

    /// Opens the same program for another connection, with its own file position.
    ///
    /// # Errors
    /// The errors of open(2).
    pub fn again(&self) -> io::Result<Self> {
        Ok(Self {
            path: self.path.clone(),
            sha256: self.sha256.clone(),
            file: File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?,
            ..*self
        })
    }

    /// Returns a reader of the content from the start.
    ///
    /// # Errors
    /// The errors of lseek(2).
    pub(crate) fn rewind(&mut self) -> io::Result<io::Take<&mut File>> {
        self.file.seek(SeekFrom::Start(0))?;
        Ok((&mut self.file).take(self.size))
    }
}

/// Returns the processor architecture of an ELF program (`e_machine`, elf(5)).
fn machine(head: &[u8; 20]) -> Option<&'static str> {
    let number = match head[5] {
        2 => u16::from_be_bytes([head[18], head[19]]),
        _ => u16::from_le_bytes([head[18], head[19]]),
    };
    match number {
        0x3e => Some("x86_64"),
        0xb7 => Some("aarch64"),
        0x28 => Some("arm"),
        0x03 => Some("x86"),
        0xf3 => Some("riscv"),
        _ => None,
    }
}

/// Returns the processor architecture that an output of `uname -m` stands for.
#[must_use]
pub(crate) fn family(uname: &str) -> Option<&'static str> {
    match uname {
        "x86_64" | "amd64" => Some("x86_64"),
        "aarch64" | "arm64" => Some("aarch64"),
        _ if uname.starts_with("arm") => Some("arm"),
        "i386" | "i486" | "i586" | "i686" => Some("x86"),
        _ if uname.starts_with("riscv") => Some("riscv"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_for_this_machine() {
        let me = Program::open(Path::new("/proc/self/exe")).unwrap();
        assert_eq!(me.machine, family(std::env::consts::ARCH));
        assert_eq!(me.sha256.len(), 64);
    }

    #[test]
    fn what_is_no_program_is_not_sent() {
        for path in ["/etc/passwd", "/dev/null", "/", "/nonexistent"] {
            assert!(Program::open(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn what_uname_says() {
        assert_eq!(family("armv7l"), Some("arm"));
        assert_eq!(family("i686"), Some("x86"));
        assert_eq!(family("s390x"), None);
    }
}

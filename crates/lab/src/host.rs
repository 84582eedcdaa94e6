//! Implements the host interface for a guest, so that facts can be collected and changes made as on any machine.

use crate::error::LabError;
use crate::guest::Guest;
use assay_host::{
    CommandOutput, DeviceNumber, FileKind, Host, HostError, Limits, MAX_BYTES, Stat, StatFs,
};
use assay_protocol::PathLook;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Error numbers ENOENT and ENOTDIR: the path does not exist.
const ABSENT: [i32; 2] = [2, 20];

fn with_path(path: &Path, error: LabError) -> HostError {
    match error {
        LabError::Refused { errno, .. } if ABSENT.contains(&errno) => HostError::NotFound {
            path: path.to_owned(),
        },
        LabError::Refused { errno, reason, .. } => HostError::Path {
            path: path.to_owned(),
            errno: (errno != 0).then_some(errno),
            reason,
        },
        other => HostError::Path {
            path: path.to_owned(),
            errno: None,
            reason: other.to_string(),
        },
    }
}

fn to_device_number(device: u64) -> DeviceNumber {
    DeviceNumber {
        major: rustix::fs::major(device),
        minor: rustix::fs::minor(device),
    }
}

impl Guest {
    fn whole(&self, look: PathLook, path: &Path) -> Result<(Vec<u8>, Vec<u64>), HostError> {
        let mut bytes = Vec::new();
        let mut much = false;
        let numbers = self.look(look, path, &mut |piece| {
            much |= bytes.len() + piece.len() > MAX_BYTES;
            if !much {
                bytes.extend_from_slice(piece);
            }
        });
        let numbers = numbers.map_err(|error| with_path(path, error))?;
        match much {
            true => Err(HostError::Path {
                path: path.to_owned(),
                errno: None,
                reason: format!("longer than {} MiB", MAX_BYTES >> 20),
            }),
            false => Ok((bytes, numbers)),
        }
    }

    fn path(&self, look: PathLook, path: &Path) -> Result<PathBuf, HostError> {
        let (bytes, _) = self.whole(look, path)?;
        Ok(OsString::from_vec(bytes).into())
    }
}

impl Host for Guest {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        Ok(self.whole(PathLook::Read, path)?.0)
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        let mut names = Vec::new();
        let listed = self.look(PathLook::List, dir, &mut |name| {
            names.push(OsString::from_vec(name.to_vec()));
        });
        listed.map_err(|error| with_path(dir, error))?;
        names.sort();
        Ok(names)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.path(PathLook::Link, path)
    }

    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.path(PathLook::RealPath, path)
    }

    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        let (_, numbers) = self.whole(PathLook::Stat, path)?;
        let [kind, size, dev, rdev] = numbers[..] else {
            return Err(HostError::Path {
                path: path.to_owned(),
                errno: None,
                reason: "the agent's answer is not understood".to_owned(),
            });
        };
        Ok(Stat {
            kind: match kind {
                0 => FileKind::Directory,
                1 => FileKind::Regular,
                2 => FileKind::BlockDevice,
                _ => FileKind::Other,
            },
            size,
            dev: to_device_number(dev),
            rdev: to_device_number(rdev),
        })
    }

    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        // Fundamental block size, blocks, blocks for an unprivileged writer: stat(1).
        let argv = ["stat", "--file-system", "--format=%S %b %a", "--"].map(OsStr::new);
        let mut argv = argv.to_vec();
        argv.push(path.as_os_str());
        let output = Host::run(self, &argv, Limits::default())?;
        let refuse = || HostError::Path {
            path: path.to_owned(),
            errno: None,
            reason: output.complaint(),
        };
        if !output.success() {
            return Err(refuse());
        }
        let text = output.text();
        let numbers: Vec<u64> = text
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        match numbers[..] {
            [size, total, available] => Ok(StatFs {
                total: total.saturating_mul(size),
                available: available.saturating_mul(size),
            }),
            _ => Err(refuse()),
        }
    }

    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        self.whole(PathLook::Exclusive, path).map(drop)
    }

    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError> {
        // Emulation needs far longer than a real CPU.
        let limits = Limits {
            timeout: limits.timeout.max(Duration::from_secs(60)),
        };
        Guest::run(self, argv, limits).map_err(|error| match error {
            LabError::NoCommand(name) => HostError::NoCommand { name },
            LabError::Timeout { argv, limit } => HostError::Timeout { argv, limit },
            other => HostError::Command {
                argv: argv
                    .iter()
                    .map(|word| word.to_string_lossy())
                    .collect::<Vec<_>>()
                    .join(" "),
                reason: other.to_string(),
            },
        })
    }

    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        self.path(PathLook::Which, Path::new(name)).ok()
    }
}

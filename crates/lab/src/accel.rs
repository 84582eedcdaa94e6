//! Decides whether guests use hardware virtualisation (KVM) or emulation (TCG).

use crate::console;
use crate::emulator;
use crate::error::LabError;
use crate::image::Image;
use crate::state::GuestRegistry;
use assay_host::process::{Dies, Running};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How the guest's CPU instructions are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accel {
    /// By the CPU itself (KVM).
    Kvm,
    /// By QEMU's emulator (TCG).
    Tcg,
}

impl Accel {
    /// Returns QEMU's name for the accelerator.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

/// The selected accelerator and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The selected accelerator.
    pub accel: Accel,
    /// Why KVM is not used; `None` if it is used.
    pub why: Option<String>,
}

/// Cached result of the KVM test. It is valid until the machine boots again or the image changes.
#[derive(Serialize, Deserialize)]
struct Known {
    boot: String,
    image: String,
    choice: Choice,
}

/// Tests whether KVM works by booting the guest's kernel on it. An existing `/dev/kvm` proves nothing. If a hypervisor
/// emulates KVM, the device can be opened and used, but the guest then fails at an instruction that the hypervisor
/// cannot emulate.
///
/// # Errors
/// QEMU is missing or the state directory cannot be used.
pub fn choose(image: &Image, state: &GuestRegistry) -> Result<Choice, LabError> {
    let why_not = match File::options().read(true).write(true).open("/dev/kvm") {
        Ok(_) => None,
        Err(error) => Some(format!("/dev/kvm: {error}")),
    };
    if why_not.is_some() {
        return Ok(Choice {
            accel: Accel::Tcg,
            why: why_not,
        });
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let path = state.root().join("kvm.json");
    let known = fs::read(&path)
        .ok()
        .and_then(|text| serde_json::from_slice::<Known>(&text).ok())
        .filter(|known| known.boot == boot && known.image == image.hash());
    if let Some(known) = known {
        return Ok(known.choice);
    }
    let why = probe(image)?;
    let choice = Choice {
        accel: if why.is_none() {
            Accel::Kvm
        } else {
            Accel::Tcg
        },
        why,
    };
    let known = Known {
        boot,
        image: image.hash(),
        choice: choice.clone(),
    };
    if let Ok(text) = serde_json::to_vec(&known) {
        // Only a cache: without it the next start tests again.
        let _ = fs::write(&path, text);
    }
    Ok(choice)
}

/// Boots the guest's kernel without a root file system. Returns `None` if KVM works, that is, if the kernel gets far
/// enough to report the missing root file system. Otherwise returns a description of the failure.
fn probe(image: &Image) -> Result<Option<String>, LabError> {
    /// Maximum time until a kernel without a root file system reports this.
    const PROBE_LIMIT: Duration = Duration::from_secs(15);
    // Unnamed files in memory: a killed process leaves nothing.
    let (console, log) = create_memory_file()?;
    let (complaint, said) = create_memory_file()?;
    let copy = |file: &OwnedFd| file.try_clone().map_err(LabError::io(&log));
    let mut command = Command::new(emulator::QEMU);
    command
        .args([
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-display",
            "none",
        ])
        .args([
            "-machine",
            "pc,accel=kvm",
            "-cpu",
            "host",
            "-smp",
            "1",
            "-m",
            "256",
        ])
        .arg("-kernel")
        .arg(image.kernel())
        .args(["-append", "console=ttyS0 panic=-1"])
        .args(["-chardev", "stdio,id=console,signal=off"])
        .args(["-serial", "chardev:console"])
        .stdin(Stdio::null())
        .stdout(copy(&console)?)
        .stderr(copy(&complaint)?);
    let qemu = Running::start(command, Dies::WithThread);
    let qemu = qemu.map_err(emulator::start_error)?;
    let deadline = Instant::now() + PROBE_LIMIT;
    let why = loop {
        if console::find_panic(&log).is_some() {
            break None;
        }
        match qemu.wait(Duration::from_millis(50)) {
            Ok(false) if Instant::now() < deadline => {}
            Ok(false) => {
                break Some(format!(
                    "/dev/kvm exists, but a kernel got nowhere on it in {} s",
                    PROBE_LIMIT.as_secs()
                ));
            }
            // The panic may have been written just before the end.
            _ if console::find_panic(&log).is_some() => break None,
            _ => {
                let said = fs::read_to_string(&said).unwrap_or_default();
                let line = said
                    .lines()
                    .find(|line| line.contains("KVM"))
                    .or(said.lines().next());
                break Some(format!(
                    "/dev/kvm exists, but a kernel died on it: {}",
                    line.unwrap_or("QEMU says nothing").trim()
                ));
            }
        }
    };
    Ok(why)
}

/// Creates a file in memory. Another process can write to the file, and this process can read it by its path.
fn create_memory_file() -> Result<(OwnedFd, PathBuf), LabError> {
    let file = rustix::fs::memfd_create("probe", rustix::fs::MemfdFlags::CLOEXEC)
        .map_err(|error| LabError::io(Path::new("a file in memory"))(error.into()))?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok((file, path.into()))
}

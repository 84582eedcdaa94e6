//! A running guest: connects to it, creates its disk files, and ends it.

use crate::accel::{Accel, Choice};
use crate::channel::Channel;
use crate::console;
use crate::disk::{Disk, Throttle};
use crate::error::LabError;
use crate::files::{self, DiskFiles};
use crate::state::{self, GuestDirectory, GuestEntry, GuestRegistry};
use assay_host::held::Held;
use assay_host::process::Running;
use assay_host::{KnownFile, Limits};
use assay_loads::Cancel;
use assay_protocol::PORTS;
use assay_qemu::Qmp;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A running guest. Dropping this value ends the guest, unless the guest is detached. QEMU also ends with the thread
/// that booted the guest.
#[derive(Debug)]
pub struct Guest {
    pub(crate) place: GuestDirectory,
    pub(crate) entry: GuestEntry,
    pub(crate) accel: Choice,
    pub(crate) qemu: Option<Running>,
    pub(crate) cancel: Cancel,
    pub(crate) channels: Mutex<Vec<Channel>>,
    /// Open files of the guest's disks that are outside its directory.
    pub(crate) held: Vec<Held>,
}

impl Guest {
    /// Connects to the detached guest with this name.
    ///
    /// # Errors
    /// The guest does not exist.
    pub fn attach(state: &GuestRegistry, name: &str, cancel: &Cancel) -> Result<Self, LabError> {
        let (place, entry) = state.find(name)?;
        let accel = match entry.accel.as_str() {
            "kvm" => Accel::Kvm,
            _ => Accel::Tcg,
        };
        Ok(Self {
            place,
            entry,
            accel: Choice { accel, why: None },
            qemu: None,
            cancel: cancel.clone(),
            channels: Mutex::default(),
            held: Vec::new(),
        })
    }

    /// Returns the registry entry of the guest.
    #[must_use]
    pub fn entry(&self) -> &GuestEntry {
        &self.entry
    }

    /// Returns the accelerator, and the reason if it is not KVM.
    #[must_use]
    pub fn accel(&self) -> &Choice {
        &self.accel
    }

    /// Returns the host file that contains a disk's data.
    #[must_use]
    pub fn disk_file(&self, disk: &Disk) -> PathBuf {
        files::disk_file_names(&self.place.dir, disk)
            .held(&self.held)
            .data
    }

    /// Returns the paths of a disk's initial content and of the log of its writes; `None` if writes are not logged.
    #[must_use]
    pub fn disk_log(&self, disk: &Disk) -> Option<(PathBuf, PathBuf)> {
        let logged = files::disk_file_names(&self.place.dir, disk)
            .held(&self.held)
            .logged;
        logged.map(|files| (files.first, files.log))
    }

    /// Creates the files of a disk. Keeps files outside the guest's directory open, and records their identity, so that
    /// they can be found after they were moved.
    pub(crate) fn make(&mut self, disk: &Disk, names: DiskFiles) -> Result<DiskFiles, LabError> {
        let (entry, place) = (&mut self.entry, &self.place);
        let made = files::create(disk, names, &mut |file| {
            let name = file.shown().file_name().unwrap_or_default();
            let known = KnownFile::of(file.file())?;
            entry
                .known
                .insert(name.to_string_lossy().into_owned(), known);
            place.enter(entry)
        })?;
        self.held.extend(made.held);
        Ok(made.files)
    }

    /// Returns the guest's directory, which is removed with the guest.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.place.dir
    }

    /// Returns the first line of QEMU's standard error; `None` if it is empty.
    pub(crate) fn complaint(&self) -> Option<String> {
        let text = fs::read_to_string(self.place.dir.join("stderr")).ok()?;
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        Some(line.trim_start_matches("qemu-system-x86_64: ").to_owned())
    }

    /// Returns the last lines of the guest's console.
    #[must_use]
    pub fn console(&self) -> String {
        console::read_tail(&self.console_log(), 12)
    }

    fn console_log(&self) -> PathBuf {
        self.place.dir.join("console.log")
    }

    /// Returns the length of the console output so far, in bytes.
    #[must_use]
    pub fn said(&self) -> u64 {
        fs::metadata(self.console_log()).map_or(0, |file| file.len())
    }

    /// Returns which process the guest's kernel killed for lack of memory, if any. Considers only console output after
    /// the first `said` bytes (see [`Guest::said`]).
    #[must_use]
    pub fn killed_since(&self, said: u64) -> Option<String> {
        console::find_oom_kill(&self.console_log(), said)
    }

    /// Checks that the guest runs and that the user has not interrupted.
    pub fn watch(&self) -> Result<(), LabError> {
        if self.cancel.is_cancelled() {
            return Err(LabError::Interrupted);
        }
        if self.entry.alive() {
            return Ok(());
        }
        let why = console::find_panic(&self.console_log())
            .or_else(|| self.complaint())
            .unwrap_or_else(|| "QEMU ended".to_owned());
        Err(LabError::Gone {
            why,
            console: self.console(),
        })
    }

    /// Returns a free channel to the agent. On a new channel, assay first exchanges a greeting with the agent.
    pub(crate) fn channel(&self) -> Result<Channel, LabError> {
        /// Time limit for the first greeting of a booted guest.
        const GREETED_WITHIN: Duration = Duration::from_secs(60);
        let deadline = Instant::now() + GREETED_WITHIN;
        loop {
            self.watch()?;
            let idle = self
                .channels
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop();
            if let Some(channel) = idle {
                return Ok(channel);
            }
            if let Some(mut channel) = Channel::open(&self.place.dir)? {
                return match channel.greet(GREETED_WITHIN, &|| self.watch())? {
                    true => Ok(channel),
                    false => Err(self.silent(GREETED_WITHIN)),
                };
            }
            if Instant::now() > deadline {
                return Err(LabError::Busy(PORTS));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stores a channel that is no longer in use, for later requests.
    pub(crate) fn put_back(&self, channel: Channel) {
        self.channels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(channel);
    }

    /// Drops the stored channels, which are unusable after a reboot.
    pub(crate) fn forget_channels(&self) {
        self.channels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Checks that a disk with this name exists.
    pub(crate) fn check_disk(&self, name: &str) -> Result<(), LabError> {
        if self.entry.disks.iter().any(|(known, _)| known == name) {
            return Ok(());
        }
        let known: Vec<_> = self.entry.disks.iter().map(|(name, _)| &**name).collect();
        Err(LabError::Disk {
            name: name.to_owned(),
            source: match known.as_slice() {
                [] => "the guest has no disks".into(),
                known => format!("the guest has no such disk; it has {}", known.join(", ")).into(),
            },
        })
    }

    /// Builds the error for a running guest that did not answer within `after`. The guest is paused because the host
    /// has no space, or it hangs.
    pub(crate) fn silent(&self, after: Duration) -> LabError {
        let status = self.qmp("query-status", serde_json::json!({}));
        let paused = status.is_ok_and(|status| status["status"] == "io-error");
        match paused {
            true => LabError::Gone {
                why:
                    "QEMU paused it because the host refused a write, most likely for lack of space"
                        .to_owned(),
                console: self.console(),
            },
            false => LabError::Silent {
                after,
                why: console::find_panic(&self.console_log())
                    .or_else(|| self.killed_since(0))
                    .unwrap_or_else(|| "it hangs, or gets too little of the processors".to_owned()),
                console: self.console(),
            },
        }
    }

    /// Runs a command of QEMU's monitor and returns the result.
    ///
    /// # Errors
    /// QEMU refuses the command, or has ended.
    pub fn qmp(&self, command: &str, arguments: Value) -> Result<Value, LabError> {
        Ok(self.monitor()?.execute(command, arguments)?)
    }

    /// Connects to QEMU's monitor, which serves one connection at a time.
    pub fn monitor(&self) -> Result<Qmp, LabError> {
        let monitor = Qmp::connect(&self.place.dir.join("qmp"));
        // The end of the guest is the better reason.
        monitor.map_err(|error| self.watch().err().unwrap_or_else(|| error.into()))
    }

    /// Changes the speed limit of a disk at run time. The disk must have been booted with a throttle; limits of 0
    /// remove the limit.
    ///
    /// # Errors
    /// QEMU refuses, or has ended.
    pub fn set_throttle(&self, disk: &Disk, throttle: Throttle) -> Result<(), LabError> {
        let arguments = serde_json::json!({
            "path": format!("/objects/{}", disk.throttle_name()),
            "property": "limits", "value": throttle.limits(),
        });
        self.qmp("qom-set", arguments).map(drop)
    }

    /// Shuts the guest down, or kills it after `limit`. Removes everything that belongs to the guest.
    ///
    /// # Errors
    /// A file or process cannot be removed.
    pub fn shutdown(mut self, limit: Duration) -> Result<(), LabError> {
        let deadline = Instant::now() + limit;
        let argv = ["systemctl", "poweroff", "--no-block"].map(OsStr::new);
        let asked = self.run(&argv, Limits { timeout: limit });
        while asked.is_ok() && self.entry.alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.end()
    }

    /// Kills the guest immediately and removes everything that belongs to it.
    ///
    /// # Errors
    /// A file or process cannot be removed.
    pub fn kill(mut self) -> Result<(), LabError> {
        self.end()
    }

    /// Kills QEMU as in a power cut: data in QEMU's memory is lost. The disks remain until the guest is dropped.
    pub fn cut_power(&mut self) {
        if let Some(mut qemu) = self.qemu.take() {
            let _ = qemu.kill();
        }
    }

    /// Ends QEMU after it has written all data to the disks' files. The guest's operating system is not shut down.
    /// Kills QEMU after `limit`. The disks remain until the guest is dropped.
    ///
    /// # Errors
    /// QEMU has already ended.
    pub fn quit(&mut self, limit: Duration) -> Result<(), LabError> {
        let deadline = Instant::now() + limit;
        self.qmp("quit", serde_json::json!({}))?;
        while self.entry.alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.cut_power();
        Ok(())
    }

    fn end(&mut self) -> Result<(), LabError> {
        self.cut_power();
        self.forget_channels();
        state::remove(&self.place.dir)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.place.owner.is_some() {
            // Remaining files are removed at the next start.
            let _ = self.end();
        }
    }
}

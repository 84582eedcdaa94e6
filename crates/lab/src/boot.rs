//! Boots a guest.

use crate::accel::{Choice, choose};
use crate::channel::Channel;
use crate::command;
use crate::cpio;
use crate::disk_guard::Claims;
use crate::emulator;
use crate::error::LabError;
use crate::files;
use crate::guest::Guest;
use crate::image::Image;
use crate::options::GuestOptions;
use crate::state::{GuestEntry, GuestRegistry};
use crate::tools;
use assay_host::process::{self, Dies, Running};
use assay_host::{Host as _, Limits, LiveHost, ProcessId};
use assay_loads::Cancel;
use assay_protocol::PORTS;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The agent program that runs in guests.
pub(crate) static AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent"));
/// Number of bytes that must be free on the host for a guest's changes to its root file system. Scratch disks need
/// additional space as they fill.
const SPACE: u64 = 512 << 20;
impl Guest {
    /// Boots a guest and waits until its agent answers.
    ///
    /// # Errors
    /// QEMU, space or a disk is missing, the guest does not boot, or the user interrupted. Nothing remains
    /// then.
    pub fn boot(
        image: &Image,
        options: &GuestOptions,
        state: &GuestRegistry,
        cancel: &Cancel,
    ) -> Result<Self, LabError> {
        if AGENT.is_empty() {
            return Err(LabError::NoAgent);
        }
        options.check(state)?;
        let accel = match options.accel {
            Some(accel) => Choice { accel, why: None },
            None => choose(image, state)?,
        };
        check_space(state)?;
        let place = state.add(&options.name)?;
        let entry = GuestEntry {
            name: options.name.clone(),
            detached: false,
            pid: 0,
            start_time: 0,
            accel: accel.accel.name().to_owned(),
            memory_mib: options.memory_mib(),
            cpus: options.cpus(),
            disks: options
                .disks
                .iter()
                .map(|disk| (disk.name.clone(), disk.size))
                .collect(),
            image: image.hash(),
            files: files::list_outside_files(&place.dir, &options.disks),
            known: BTreeMap::new(),
        };
        // From here on, dropping the guest removes everything.
        let mut guest = Self {
            place,
            entry,
            accel,
            qemu: None,
            cancel: cancel.clone(),
            channels: Mutex::default(),
            held: Vec::new(),
        };
        guest.place.enter(&guest.entry)?;
        guest.start(image, options)?;
        guest.wait_for_agent(options.boot_limit)?;
        if options.assay.is_some() {
            guest.install(&tools::INSTALL)?;
        }
        if options.detached {
            guest.entry.detached = true;
            guest.place.enter(&guest.entry)?;
            guest.place.owner = None;
        }
        Ok(guest)
    }

    fn start(&mut self, image: &Image, options: &GuestOptions) -> Result<(), LabError> {
        let dir = self.place.dir.clone();
        let (from, initrd) = (image.initrd(), dir.join("initrd"));
        let mut bytes = fs::read(&from).map_err(LabError::io(&from))?;
        // An archive starts at a multiple of four bytes; zeros before it are skipped.
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(cpio::one_file("assay-agent", AGENT));
        fs::write(&initrd, bytes).map_err(LabError::io(&initrd))?;
        let claims = Claims::take(options)?;
        let mut disks = Vec::new();
        for disk in &options.disks {
            let mut names = files::disk_file_names(&dir, disk);
            let claimed = claims.paths(disk);
            if let Some((ours, _)) = &claimed {
                names.data.clone_from(ours);
            }
            let mut made = self.make(disk, names)?;
            if let Some((_, inherited)) = claimed {
                made.data = inherited;
            }
            disks.push((disk.clone(), made));
        }
        if let Some(program) = &options.assay {
            tools::make(program, &dir)?;
        }
        let arguments = command::qemu_arguments(image, options, self.accel.accel, &disks)?;
        let complaint = dir.join("stderr");
        let stderr = File::create(&complaint).map_err(LabError::io(&complaint))?;
        let mut command = Command::new(emulator::QEMU);
        command
            .args(arguments)
            .current_dir(&dir)
            // The unnamed file for changes to the root file system is created here.
            .env("TMPDIR", &dir)
            .stdout(Stdio::null())
            .stderr(stderr);
        process::hand_over(&mut command, claims.into_files());
        let dies = match options.detached {
            true => Dies::OnItsOwn,
            // The disks may be on a mount that only this thread sees.
            false => Dies::WithThread,
        };
        let qemu = Running::start(command, dies).map_err(emulator::start_error)?;
        self.entry.pid = qemu.pid();
        self.entry.start_time = ProcessId::of(qemu.pid()).map_or(0, |id| id.start);
        self.qemu = Some(qemu);
        self.place.enter(&self.entry)
    }

    /// Connects as soon as QEMU has created its sockets, then waits until the agent answers.
    fn wait_for_agent(&self, limit: Duration) -> Result<(), LabError> {
        let deadline = Instant::now() + limit;
        let told = |error: LabError| match error {
            LabError::Gone { why, console } => match self.complaint() {
                Some(reason) if console.is_empty() => LabError::Qemu(explain(reason).into()),
                _ => LabError::Boot {
                    why: match console.contains(NO_ROOT) {
                        true => format!("it finds no root file system{DAMAGED}"),
                        false => why,
                    },
                    console,
                },
            },
            other => other,
        };
        while !self.place.dir.join(format!("port.{}", PORTS - 1)).exists() {
            self.watch().map_err(told)?;
            std::thread::sleep(Duration::from_millis(20));
        }
        let opened = Channel::open(&self.place.dir).or_else(|refused| {
            // QEMU creates its sockets before it checks everything else. If it then ends, its own message is
            // more informative.
            let seen = Instant::now() + Duration::from_secs(1);
            while Instant::now() < seen {
                self.watch().map_err(told)?;
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(refused)
        });
        let mut channel = opened?.ok_or(LabError::Busy(PORTS))?;
        let left = deadline.saturating_duration_since(Instant::now());
        self.greeted(&mut channel, left).map_err(told)?;
        self.put_back(channel);
        self.settle().map_err(told)
    }

    /// Waits until the agent of a booting guest answers.
    pub(crate) fn greet(&self, limit: Duration) -> Result<(), LabError> {
        let mut channel = Channel::open(&self.place.dir)?.ok_or(LabError::Busy(PORTS))?;
        self.greeted(&mut channel, limit)?;
        self.put_back(channel);
        self.settle()
    }

    fn greeted(&self, channel: &mut Channel, limit: Duration) -> Result<(), LabError> {
        match channel.greet(limit, &|| self.watch())? {
            true => Ok(()),
            false => Err(LabError::Boot {
                why: format!("no answer within {} s", limit.as_secs()),
                console: self.console(),
            }),
        }
    }

    /// Waits until udev has created the links in /dev/disk.
    fn settle(&self) -> Result<(), LabError> {
        let settle = ["udevadm", "settle", "--timeout=240"].map(OsStr::new);
        let limits = Limits {
            timeout: Duration::from_secs(300),
        };
        self.run(&settle, limits).map(drop)
    }

    /// Runs commands in the guest; each of them must succeed.
    pub(crate) fn install(&self, commands: &[&[&str]]) -> Result<(), LabError> {
        let limits = Limits {
            timeout: Duration::from_secs(300),
        };
        for command in commands {
            let argv: Vec<_> = command.iter().map(OsStr::new).collect();
            let output = self.run(&argv, limits)?;
            if !output.success() {
                return Err(LabError::Boot {
                    why: format!("{}: {}", command.join(" "), output.complaint()),
                    console: self.console(),
                });
            }
        }
        Ok(())
    }
}

fn check_space(state: &GuestRegistry) -> Result<(), LabError> {
    let path = state.root();
    let found = LiveHost.statfs(path).ok();
    match found.map(|found| found.available) {
        Some(free) if free < SPACE => Err(LabError::Space {
            path: path.to_owned(),
            free,
            need: SPACE,
            variable: "ASSAY_STATE",
        }),
        _ => Ok(()),
    }
}

/// Message of the guest's initramfs if the image contains no usable root file system.
const NO_ROOT: &str = "Failed to mount /dev/vda as root file system";
const DAMAGED: &str = ": the guest image is damaged; remove its directory, which `assay lab list` \
    names, then `assay lab build` makes it anew";

/// Appends advice to the reason of a failed boot, if the reason is a known one.
fn explain(reason: String) -> String {
    let way_out = match &reason {
        reason if reason.contains("no slot") => {
            ": take fewer disks, or bus=virtio-scsi, whose disks share one"
        }
        reason if reason.contains("linux kernel too old") || reason.contains("kernel image") => {
            DAMAGED
        }
        _ => "",
    };
    reason + way_out
}

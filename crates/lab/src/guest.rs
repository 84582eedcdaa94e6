//! A guest: booted, talked to, ended.

use crate::accel::{Accel, Choice, choose};
use crate::channel::{Channel, connect};
use crate::child;
use crate::command::{self, DiskFiles, Logged};
use crate::console;
use crate::cpio;
use crate::disk::{Disk, Format, SECRET, Throttle};
use crate::error::LabError;
use crate::image::Image;
use crate::qmp::Qmp;
use crate::sparse;
use crate::state::{self, Entry, Place, State, scratch_prefix};
use crate::tools;
use crate::wire::PORTS;
use assay_host::{Host as _, Limits, Live};
use assay_instruments::Cancel;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The agent, as it runs in guests.
pub(crate) static AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent"));
/// Room for a guest's changes to its root file system; scratch disks come on top as they fill.
const SPACE: u64 = 512 << 20;
/// Least memory with which the guest boots.
const LEAST_MEMORY: u32 = 256;

/// What a guest is to be like.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name: letters, digits, dashes, at most 32.
    pub name: String,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Virtual processors.
    pub cpus: u32,
    /// QEMU's model of the processor, with features as `-cpu` takes them (`Haswell,-aes`); the
    /// host's own (KVM) or all that can be emulated (TCG) when none.
    pub cpu_model: Option<String>,
    /// The assay that is put into the guest as `/usr/local/bin/assay`, with its loader and
    /// libraries; it runs whatever C library it was linked to.
    pub assay: Option<PathBuf>,
    /// Its disks besides the root.
    pub disks: Vec<Disk>,
    /// KVM or TCG; found out when none.
    pub accel: Option<Accel>,
    /// Longest time until its agent answers.
    pub boot_limit: Duration,
    /// Whether it runs on when this process ends.
    pub detached: bool,
}

impl Options {
    /// A small guest without disks: 1 GiB, two processors, five minutes to boot (an emulated guest
    /// on a busy machine needs its time).
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            memory_mib: 1024,
            cpus: 2,
            cpu_model: None,
            assay: None,
            disks: Vec::new(),
            accel: None,
            boot_limit: Duration::from_secs(300),
            detached: false,
        }
    }

    pub(crate) fn memory_mib(&self) -> u32 {
        self.memory_mib.max(LEAST_MEMORY)
    }

    pub(crate) fn cpus(&self) -> u32 {
        self.cpus.max(1)
    }
}

/// A running guest. Unless it was booted as detached, it ends when this is dropped, and QEMU dies
/// with the thread that booted it.
#[derive(Debug)]
pub struct Guest {
    place: Place,
    entry: Entry,
    accel: Choice,
    child: Option<Child>,
    cancel: Cancel,
    channels: Mutex<Vec<Channel>>,
}

impl Guest {
    /// Boots a guest and waits until it answers.
    ///
    /// # Errors
    /// No QEMU, no room, a disk that cannot be had, a guest that does not come up, or interrupted;
    /// nothing is left then.
    pub fn boot(
        image: &Image,
        options: &Options,
        state: &State,
        cancel: &Cancel,
    ) -> Result<Self, LabError> {
        if AGENT.is_empty() {
            return Err(LabError::NoAgent);
        }
        let accel = match options.accel {
            Some(accel) => Choice { accel, why: None },
            None => choose(image, state)?,
        };
        check_space(state)?;
        let place = state.add(&options.name)?;
        let entry = Entry {
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
            files: outside(&place.dir, &options.disks),
        };
        // From here on dropping the guest removes all there is of it.
        let mut guest = Self {
            place,
            entry,
            accel,
            child: None,
            cancel: cancel.clone(),
            channels: Mutex::default(),
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

    /// The detached guest of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn attach(state: &State, name: &str, cancel: &Cancel) -> Result<Self, LabError> {
        let (place, entry) = state.find(name)?;
        let accel = match entry.accel.as_str() {
            "kvm" => Accel::Kvm,
            _ => Accel::Tcg,
        };
        Ok(Self {
            place,
            entry,
            accel: Choice { accel, why: None },
            child: None,
            cancel: cancel.clone(),
            channels: Mutex::default(),
        })
    }

    /// What is known of it.
    #[must_use]
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// What runs its instructions, and why it is not KVM.
    #[must_use]
    pub fn accel(&self) -> &Choice {
        &self.accel
    }

    /// The file that holds a disk's data on the host.
    #[must_use]
    pub fn disk_file(&self, disk: &Disk) -> PathBuf {
        disk_files(&self.place.dir, disk).data
    }

    /// What a disk held at first, and the log of its writes, when it has one.
    #[must_use]
    pub fn disk_log(&self, disk: &Disk) -> Option<(PathBuf, PathBuf)> {
        let logged = disk_files(&self.place.dir, disk).logged;
        logged.map(|files| (files.first, files.log))
    }

    /// Its directory; it goes with the guest.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.place.dir
    }

    fn start(&mut self, image: &Image, options: &Options) -> Result<(), LabError> {
        let dir = self.place.dir.clone();
        let (from, initrd) = (image.initrd(), dir.join("initrd"));
        let mut bytes = fs::read(&from).map_err(LabError::io(&from))?;
        // An archive begins at a multiple of four bytes; zeros in between are skipped.
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(cpio::one_file("assay-agent", AGENT));
        fs::write(&initrd, bytes).map_err(LabError::io(&initrd))?;
        let mut disks = Vec::new();
        for disk in &options.disks {
            disk.check()?;
            let files = disk_files(&dir, disk);
            create(disk, &files)?;
            disks.push((disk.clone(), files));
        }
        if let Some(program) = &options.assay {
            tools::make(program, &dir)?;
        }
        let arguments = command::arguments(image, options, self.accel.accel, &disks)?;
        let complaint = dir.join("stderr");
        let stderr = File::create(&complaint).map_err(LabError::io(&complaint))?;
        let mut command = Command::new(command::QEMU);
        command
            .args(arguments)
            .current_dir(&dir)
            // The nameless file for changes to the root file system is made here.
            .env("TMPDIR", &dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr);
        if options.detached {
            child::survive_us(&mut command);
        } else {
            // Out of reach of the terminal's Ctrl-C: we end it ourselves.
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            child::die_with_us(&mut command);
        }
        let child = command.spawn().map_err(command::start_error)?;
        self.entry.pid = child.id();
        self.entry.start_time = child::start_time(child.id()).unwrap_or(0);
        self.child = Some(child);
        self.place.enter(&self.entry)
    }

    /// Connects as soon as QEMU has made its sockets, then waits for the agent.
    fn wait_for_agent(&self, limit: Duration) -> Result<(), LabError> {
        let deadline = Instant::now() + limit;
        let told = |error: LabError| match error {
            LabError::Gone { why, console } => match self.complaint() {
                Some(reason) if console.is_empty() => LabError::Qemu(reason),
                _ => LabError::Boot { why, console },
            },
            other => other,
        };
        while !self.place.dir.join(format!("port.{}", PORTS - 1)).exists() {
            self.watch().map_err(told)?;
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut channel = Channel::open(&self.place.dir)?.ok_or(LabError::Busy(PORTS))?;
        let left = deadline.saturating_duration_since(Instant::now());
        if !channel.greet(left, &|| self.watch()).map_err(told)? {
            return Err(LabError::Boot {
                why: format!("no answer within {} s", limit.as_secs()),
                console: self.console(),
            });
        }
        self.put_back(channel);
        // Links of disks in /dev/disk are made by then.
        let settle = ["udevadm", "settle", "--timeout=60"].map(OsStr::new);
        let limits = Limits {
            timeout: Duration::from_secs(90),
        };
        self.run(&settle, limits).map_err(told)?;
        Ok(())
    }

    /// Runs commands that have to succeed.
    fn install(&self, commands: &[&[&str]]) -> Result<(), LabError> {
        let limits = Limits {
            timeout: Duration::from_secs(90),
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

    /// What QEMU itself said.
    fn complaint(&self) -> Option<String> {
        let text = fs::read_to_string(self.place.dir.join("stderr")).ok()?;
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        Some(line.trim_start_matches("qemu-system-x86_64: ").to_owned())
    }

    /// The last lines of the guest's console.
    #[must_use]
    pub fn console(&self) -> String {
        console::tail(&self.place.dir.join("console.log"), 12)
    }

    /// Whether it lives and is still wanted.
    pub(crate) fn watch(&self) -> Result<(), LabError> {
        if self.cancel.is_cancelled() {
            return Err(LabError::Interrupted);
        }
        if self.entry.alive() {
            return Ok(());
        }
        let why = console::verdict(&self.place.dir.join("console.log"))
            .or_else(|| self.complaint())
            .unwrap_or_else(|| "QEMU ended".to_owned());
        Err(LabError::Gone {
            why,
            console: self.console(),
        })
    }

    /// A channel that nobody uses, greeted when it is new.
    pub(crate) fn channel(&self) -> Result<Channel, LabError> {
        const PATIENCE: Duration = Duration::from_secs(60);
        let deadline = Instant::now() + PATIENCE;
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
                return match channel.greet(PATIENCE, &|| self.watch())? {
                    true => Ok(channel),
                    false => Err(self.silent(PATIENCE)),
                };
            }
            if Instant::now() > deadline {
                return Err(LabError::Busy(PORTS));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Keeps a channel on which nothing goes on any more.
    pub(crate) fn put_back(&self, channel: Channel) {
        self.channels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(channel);
    }

    /// It lives but says nothing: paused for lack of space on the host, or hung.
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
                console: self.console(),
            },
        }
    }

    /// Runs a command of QEMU's monitor and returns what it returns.
    ///
    /// # Errors
    /// QEMU refuses, or is gone.
    pub fn qmp(&self, command: &str, arguments: Value) -> Result<Value, LabError> {
        let stream = connect(&self.place.dir, "qmp").map_err(|error| {
            self.watch()
                .err()
                .unwrap_or_else(|| LabError::io(&self.place.dir.join("qmp"))(error))
        })?;
        Qmp::new(stream)?.execute(command, arguments)
    }

    /// Changes how slow a disk is, while the guest runs. Only a disk that was booted with a throttle
    /// can be changed; limits of 0 let it go free.
    ///
    /// # Errors
    /// QEMU refuses, or is gone.
    pub fn set_throttle(&self, disk: &Disk, throttle: Throttle) -> Result<(), LabError> {
        let arguments = serde_json::json!({
            "path": format!("/objects/{}", disk.throttle_name()),
            "property": "limits", "value": throttle.limits(),
        });
        self.qmp("qom-set", arguments).map(drop)
    }

    /// Asks the guest to shut down and waits; ends it after `limit` in any case, and removes all
    /// that belongs to it.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn shutdown(mut self, limit: Duration) -> Result<(), LabError> {
        let deadline = Instant::now() + limit;
        let argv = ["systemctl", "poweroff", "--no-block"].map(OsStr::new);
        let asked = self.run(&argv, Limits { timeout: limit });
        while asked.is_ok() && self.entry.alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.end()
    }

    /// Ends the guest at once, as a power cut would, and removes all that belongs to it.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn kill(mut self) -> Result<(), LabError> {
        self.end()
    }

    /// Kills QEMU and leaves the disks in place until the guest is dropped: a power cut.
    pub fn cut_power(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn end(&mut self) -> Result<(), LabError> {
        self.cut_power();
        self.channels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        state::remove(&self.place.dir)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.place.owner.is_some() {
            // What cannot be removed now is swept at the next start.
            let _ = self.end();
        }
    }
}

fn check_space(state: &State) -> Result<(), LabError> {
    let path = state.root();
    let found = Live.statfs(path).ok();
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

fn disk_files(guest: &Path, disk: &Disk) -> DiskFiles {
    let (dir, prefix) = match &disk.dir {
        Some(dir) => (dir.as_path(), scratch_prefix(guest)),
        None => (guest, "disk-".to_owned()),
    };
    let file = |ending: &str| dir.join(format!("{prefix}{}.{ending}", disk.name));
    DiskFiles {
        data: file("img"),
        logged: disk.logged.then(|| Logged {
            first: file("first"),
            log: file("log"),
        }),
    }
}

/// Files that will lie outside the guest's directory, absolute.
fn outside(guest: &Path, disks: &[Disk]) -> Vec<PathBuf> {
    let outside = disks.iter().filter(|disk| disk.dir.is_some());
    outside
        .flat_map(|disk| {
            let files = disk_files(guest, disk);
            let logged = files.logged.map(|logged| [logged.first, logged.log]);
            std::iter::once(files.data).chain(logged.into_iter().flatten())
        })
        .collect()
}

/// Makes the files of a disk; one that is there already is somebody else's.
fn create(disk: &Disk, files: &DiskFiles) -> Result<(), LabError> {
    create_empty(&files.data, disk.size)?;
    if disk.format != Format::Raw {
        format(disk, &files.data)?;
    }
    if let Some(content) = &disk.content {
        sparse::copy(content, &files.data)?;
    }
    if let Some(Logged { first, log }) = &files.logged {
        create_empty(log, 0)?;
        create_empty(first, disk.size)?;
        if disk.format != Format::Raw || disk.content.is_some() {
            sparse::copy(&files.data, first)?;
        }
    }
    Ok(())
}

fn create_empty(path: &Path, size: u64) -> Result<(), LabError> {
    File::create_new(path)
        .and_then(|file| file.set_len(size))
        .map_err(LabError::io(path))
}

/// Writes what a format needs besides the data.
fn format(disk: &Disk, path: &Path) -> Result<(), LabError> {
    let mut argv: Vec<OsString> = ["create", "-q", "-f"].map(OsString::from).into();
    argv.push(disk.format.name().into());
    match disk.format {
        Format::Raw => {}
        Format::Qcow2 {
            cluster,
            preallocated,
            extended_l2,
            lazy_refcounts,
        } => {
            let on = |flag| if flag { "on" } else { "off" };
            let preallocation = if preallocated { "metadata" } else { "off" };
            let options = format!(
                "cluster_size={cluster},preallocation={preallocation},extended_l2={},lazy_refcounts={}",
                on(extended_l2),
                on(lazy_refcounts)
            );
            argv.extend(["-o".into(), options.into()]);
        }
        Format::Luks => {
            // A short key derivation: this is about reading and writing, not about unlocking.
            let secret = format!("secret,id=secret,data={SECRET}");
            let options = "key-secret=secret,iter-time=10";
            argv.extend([
                "--object".into(),
                secret.into(),
                "-o".into(),
                options.into(),
            ]);
        }
    }
    argv.extend([path.into(), disk.size.to_string().into()]);
    let mut made = qemu_img(&argv, &disk.name);
    // QEMU times its key stretching by getrusage, and gives up when a kernel that counts CPU time
    // in ticks shows none (crypto/pbkdf.c, qcrypto_pbkdf2_count_iters).
    for _ in 0..20 {
        match &made {
            Err(LabError::Disk { reason, .. }) if reason.contains("accurate CPU usage") => {
                let _ = std::fs::remove_file(path);
                made = qemu_img(&argv, &disk.name);
            }
            _ => break,
        }
    }
    made
}

/// Runs `qemu-img` for a disk.
pub(crate) fn qemu_img(arguments: &[OsString], disk: &str) -> Result<(), LabError> {
    let mut argv = vec![OsStr::new("qemu-img")];
    argv.extend(arguments.iter().map(OsString::as_os_str));
    let limits = Limits {
        timeout: Duration::from_secs(300),
    };
    let refused = |reason: String| LabError::Disk {
        name: disk.to_owned(),
        reason,
    };
    let output = Live
        .run(&argv, limits)
        .map_err(|error| match error.is_absent() {
            true => LabError::Missing {
                tool: "qemu-img",
                package: "qemu-utils",
            },
            false => refused(error.to_string()),
        })?;
    match output.success() {
        true => Ok(()),
        false => Err(refused(output.complaint())),
    }
}

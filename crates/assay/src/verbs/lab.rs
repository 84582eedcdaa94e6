//! `assay lab`: throwaway guests with real ZFS.

mod crypto;
mod full;
mod measure;
mod plug;
mod powercut;
mod progress;
mod shell;

use crate::cli::Status;
use crate::context::on_signals;
use crate::context::{print, state_dir};
use anyhow::Context as _;
use assay_lab::{Accel, Cache, Disk, Guest, Image, Options, Output, State, Zfs};
use assay_model::{Bytes, Nanos};
use clap::{Subcommand, ValueEnum};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// Throwaway guests: real ZFS and virtual disks of any kind, without touching this machine
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab run --disk 1G --disk 1G -- zpool create tank mirror vdb vdc
                                  boot a guest, run this in it, remove the guest
  assay lab up --disk 1G --disk 1G,bus=nvme,cache=none
                                  a guest that stays
  assay lab run -- zpool status   a command in it; its exit status is assay's
  assay lab ssh                   a shell in it
  assay lab list
  assay lab down                  the guest and its disks are gone

The image is Debian with ZFS, fio, cryptsetup, LVM, XFS and btrfs. It is built once, as root, in
some minutes, and kept in $XDG_CACHE_HOME/assay/lab (ASSAY_LAB_CACHE names another place). Guests
have no network. `assay lab` needs qemu-system-x86 and qemu-utils, and mmdebstrap for the image.")]
pub struct Args {
    #[command(subcommand)]
    verb: LabVerb,
}

#[derive(Subcommand)]
enum LabVerb {
    /// Build the guest image now, instead of with the first guest
    Build(Build),
    /// Boot a guest that stays
    Up(Up),
    /// Run a command in a guest: in the one that is up, else in a new one that goes afterwards
    Run(Run),
    /// A shell in a guest
    Ssh(Ssh),
    /// Guests that are up, and images
    List(Json),
    /// Remove a guest and its disks
    Down(Down),
    /// Plug new disks into a guest that is up
    Plug(plug::Plug),
    /// Pull disks out of a guest that is up
    Unplug(plug::Unplug),
    /// Measure virtual disks against each other
    Measure(measure::Measure),
    /// Cut the power and look for what the guest was told is durable
    PowerCut(powercut::PowerCut),
    /// Let the host run out of space under a guest, and look what becomes of the guest
    Full(full::Full),
    /// Compare what encryption costs in guests with different processors
    Crypto(crypto::Crypto),
}

#[derive(clap::Args)]
struct Json {
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Build {
    /// OpenZFS of the image: that of Debian stable, or the newer one of its backports
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ZfsArg::Stable)]
    zfs: ZfsArg,
    #[command(flatten)]
    json: Json,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZfsArg {
    /// 2.1
    Stable,
    /// 2.3
    Backports,
}

impl From<ZfsArg> for Zfs {
    fn from(named: ZfsArg) -> Self {
        match named {
            ZfsArg::Stable => Self::Stable,
            ZfsArg::Backports => Self::Backports,
        }
    }
}

/// What a new guest is like.
#[derive(clap::Args)]
struct Machine {
    /// A new empty disk: SIZE[,bus=virtio-blk|virtio-scsi|sata|ide|nvme][,cache=writeback|none|
    /// writethrough|directsync|unsafe][,format=raw|qcow2|luks][,aio=threads|native|io_uring]
    /// [,werror=report|stop|enospc][,iothread][,dir=DIR|,device=DEVICE][,iops=N][,bps=SIZE][,name=NAME] (may be repeated)
    #[arg(long, value_name = "SIZE[,…]")]
    disk: Vec<String>,
    /// Allow that block devices given as device= lose what they hold
    #[arg(long)]
    destroy_data: bool,
    /// Memory
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    memory: Bytes,
    /// Virtual processors
    #[arg(long, value_name = "N", default_value_t = 2)]
    cpus: u32,
    /// OpenZFS of the guest: that of Debian stable, or the newer one of its backports
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ZfsArg::Stable)]
    zfs: ZfsArg,
    /// QEMU's model of the processor, as its -cpu takes it: `Nehalem`, `Haswell,-aes`; the host's own,
    /// or all that can be emulated, when left out
    #[arg(long, value_name = "MODEL")]
    cpu: Option<String>,
    /// Do not bring this assay along as /usr/local/bin/assay
    #[arg(long)]
    no_assay: bool,
    /// kvm or tcg; found out when left out
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    accel: Option<AccelArg>,
}

#[derive(ValueEnum, Clone, Copy)]
pub(super) enum AccelArg {
    Kvm,
    Tcg,
}

impl From<AccelArg> for Accel {
    fn from(arg: AccelArg) -> Self {
        match arg {
            AccelArg::Kvm => Self::Kvm,
            AccelArg::Tcg => Self::Tcg,
        }
    }
}

#[derive(clap::Args)]
struct Up {
    /// Its name
    #[arg(default_value = "lab")]
    name: String,
    #[command(flatten)]
    machine: Machine,
    #[command(flatten)]
    json: Json,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab run -- zpool status -v
  assay lab run --fresh --disk 512M -- mkfs.xfs /dev/vdb
  assay lab run --input -- sh -s < script.sh")]
struct Run {
    /// The guest; not needed when just one is up
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
    /// A new guest even when one is up; so do --disk, --cpu and --zfs backports
    #[arg(long, conflicts_with = "guest")]
    fresh: bool,
    /// Give the command our standard input
    #[arg(short, long)]
    input: bool,
    /// Kill the command after this
    #[arg(long, value_name = "TIME")]
    timeout: Option<Nanos>,
    #[command(flatten)]
    machine: Machine,
    /// The command and its arguments
    #[arg(required = true, last = true)]
    command: Vec<OsString>,
}

#[derive(clap::Args)]
struct Ssh {
    /// The guest; not needed when just one is up
    name: Option<String>,
}

#[derive(clap::Args)]
struct Down {
    /// The guests; not needed when just one is up
    names: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

/// Exit status of a command that was killed (SIGKILL).
const KILLED: i32 = 128 + 9;

/// Runs `assay lab`.
///
/// # Errors
/// On wrong usage, a missing tool, or a guest that does not come up or goes away.
pub fn run(args: Args) -> anyhow::Result<Status> {
    let lab = Lab::open()?;
    match args.verb {
        LabVerb::Build(build) => lab.build(&build),
        LabVerb::Up(up) => lab.up(&up),
        LabVerb::Run(run) => lab.run(&run),
        LabVerb::Ssh(ssh) => lab.ssh(ssh.name.as_deref()),
        LabVerb::List(json) => lab.list(json.json),
        LabVerb::Down(down) => lab.down(&down),
        LabVerb::Plug(args) => lab.plug(&args),
        LabVerb::Unplug(args) => lab.unplug(&args),
        LabVerb::Measure(args) => measure::measure(&lab, &args),
        LabVerb::Crypto(args) => crypto::crypto(&lab, &args),
        LabVerb::Full(args) => full::full(&lab, &args),
        LabVerb::PowerCut(args) => powercut::power_cut(&lab, &args),
    }
}

pub(super) struct Lab {
    pub(super) state: State,
    cache: Cache,
    pub(super) cancel: assay_instruments::Cancel,
}

impl Lab {
    pub(super) fn open() -> anyhow::Result<Self> {
        let state = State::open(&state_dir()?)?;
        for name in state.sweep()? {
            eprintln!("removed what was left of guest {name}");
        }
        Ok(Self {
            state,
            cache: Cache::new(&cache_dir()?),
            cancel: on_signals()?,
        })
    }

    pub(super) fn image(&self, zfs: ZfsArg) -> anyhow::Result<Image> {
        let cache = self.cache.with(zfs.into());
        if let Some(image) = cache.find() {
            return Ok(image);
        }
        let mut shown = progress::Progress::new();
        let built = cache.build(&mut |progress| shown.tell(&progress), &self.cancel);
        shown.end();
        Ok(built?)
    }

    fn build(&self, build: &Build) -> anyhow::Result<Status> {
        let image = self.image(build.zfs)?;
        let packages = image.packages();
        print(&match build.json.json {
            true => format!(
                "{}\n",
                json!({
                    "schema": 1, "image": image.hash(), "dir": image.dir(),
                    "packages": packages, "disk_bytes": image.disk_bytes(),
                })
            ),
            false => format!(
                "guest image {}: {}, {} on disk; its packages: {}\n",
                image.hash(),
                image.dir().display(),
                Bytes(image.disk_bytes()),
                packages.display()
            ),
        })?;
        Ok(Status::Ok)
    }

    fn options(&self, name: &str, machine: &Machine) -> anyhow::Result<Options> {
        let mut options = Options::new(name);
        options.cpus = machine.cpus;
        options.cpu_model.clone_from(&machine.cpu);
        options.destroy_data = machine.destroy_data;
        options.memory_mib = u32::try_from(machine.memory.0 >> 20)
            .with_context(|| format!("{} of memory is too much", machine.memory))?;
        options.accel = machine.accel.map(Into::into);
        for (index, text) in machine.disk.iter().enumerate() {
            options
                .disks
                .push(disk(text, &format!("disk{}", index + 1))?);
        }
        Ok(options)
    }

    /// Where the user named no disk: these.
    fn usual(&self, options: &mut Options, disks: &[&str]) -> anyhow::Result<()> {
        if options.disks.is_empty() {
            for (index, text) in disks.iter().enumerate() {
                let disk = Disk::parse(text, &format!("disk{}", index + 1))?;
                options.disks.push(disk);
            }
        }
        Ok(())
    }

    fn boot(&self, name: &str, machine: &Machine, detached: bool) -> anyhow::Result<Guest> {
        let mut options = self.options(name, machine)?;
        options.detached = detached;
        if !machine.no_assay {
            let us = std::env::current_exe().context("where this assay lies")?;
            options.assay = Some(us);
        }
        let image = self.image(machine.zfs)?;
        let shown = progress::spinner("booting a guest");
        let booted = Guest::boot(&image, &options, &self.state, &self.cancel);
        shown.finish_and_clear();
        let guest = booted?;
        emulation_note(&guest, machine);
        Ok(guest)
    }

    fn up(&self, up: &Up) -> anyhow::Result<Status> {
        let guest = self.boot(&up.name, &up.machine, true)?;
        let entry = guest.entry();
        print(&match up.json.json {
            true => format!("{}\n", entry_json(entry)),
            false => format!(
                "guest {0} is up: `assay lab ssh {0}` for a shell, `assay lab down {0}` removes it\n",
                entry.name
            ),
        })?;
        Ok(Status::Ok)
    }

    /// The guest that was named, or the only one; none when none is up.
    fn chosen(&self, name: Option<&str>) -> anyhow::Result<Option<Guest>> {
        let names = self.up_names();
        let name = match (name, names.as_slice()) {
            (Some(name), _) => name,
            (None, []) => return Ok(None),
            (None, [only]) => only,
            (None, many) => anyhow::bail!("which guest? {} are up", many.join(", ")),
        };
        Ok(Some(Guest::attach(&self.state, name, &self.cancel)?))
    }

    fn up_names(&self) -> Vec<String> {
        let entries = self.state.list().into_iter();
        entries
            .filter(|entry| entry.detached)
            .map(|entry| entry.name)
            .collect()
    }

    fn run(&self, run: &Run) -> anyhow::Result<Status> {
        let machine = &run.machine;
        let special = machine.cpu.is_some() || machine.zfs != ZfsArg::Stable;
        let fresh = run.fresh || special || !machine.disk.is_empty();
        let guest = match fresh && run.guest.is_none() {
            true => None,
            false => self.chosen(run.guest.as_deref())?,
        };
        let guest = match guest {
            Some(guest) => guest,
            None => self.boot(&format!("run-{}", std::process::id()), &run.machine, false)?,
        };
        let argv: Vec<&OsStr> = run.command.iter().map(OsString::as_os_str).collect();
        let input = run.input.then(shell::standard_input);
        let limit = run.timeout.map(Duration::from);
        let mut failed = None;
        let status = guest.stream(&argv, limit, input, &mut |output| {
            let written = pass_on(output);
            if let Err(error) = written {
                failed.get_or_insert(error);
                self.cancel.cancel();
            }
        });
        if matches!(status, Ok(KILLED))
            && let Some(why) = guest.verdict()
        {
            eprintln!("note: {why}");
        }
        drop(guest);
        if let Some(error) = failed {
            return Err(error.into());
        }
        shell::exit(status?)
    }

    fn ssh(&self, name: Option<&str>) -> anyhow::Result<Status> {
        let guest = self.chosen(name)?;
        let guest = guest.context("no guest is up: `assay lab up` boots one")?;
        shell::open(&guest)
    }

    fn list(&self, as_json: bool) -> anyhow::Result<Status> {
        let guests = self.state.list();
        let images = self.cache.all();
        if as_json {
            let guests: Vec<_> = guests.iter().map(entry_json).collect();
            let images: Vec<_> = images
                .iter()
                .map(|image| {
                    json!({
                        "image": image.hash(), "dir": image.dir(),
                        "disk_bytes": image.disk_bytes(),
                        "current": image.zfs().is_some(),
                        "zfs": image.zfs().map(Zfs::name),
                    })
                })
                .collect();
            print(&format!(
                "{}\n",
                json!({ "schema": 1, "guests": guests, "images": images })
            ))?;
            return Ok(Status::Ok);
        }
        let mut text = String::new();
        for entry in &guests {
            let disks: Vec<_> = entry
                .disks
                .iter()
                .map(|(name, size)| format!("{name} {}", Bytes(*size)))
                .collect();
            text += &format!(
                "guest {}  {}{}, {} cpus, {}, process {}{}{}\n",
                entry.name,
                Zfs::of(&entry.image)
                    .map_or(String::new(), |zfs| format!("OpenZFS of {}, ", zfs.name())),
                entry.accel,
                entry.cpus,
                Bytes(u64::from(entry.memory_mib) << 20),
                entry.pid,
                if disks.is_empty() { "" } else { ", disks " },
                disks.join(", ")
            );
        }
        if guests.is_empty() {
            text += "no guest is up\n";
        }
        for image in &images {
            let note = match image.zfs() {
                Some(zfs) => format!("OpenZFS of {}", zfs.name()),
                None => "of another version of assay".to_owned(),
            };
            text += &format!(
                "image {}  {}, {}, {note}\n",
                image.hash(),
                image.dir().display(),
                Bytes(image.disk_bytes())
            );
        }
        print(&text)?;
        Ok(Status::Ok)
    }

    fn down(&self, down: &Down) -> anyhow::Result<Status> {
        let names = match (down.all, down.names.as_slice()) {
            (true, _) => self.up_names(),
            (false, []) => {
                let guest = self.chosen(None)?;
                let guest = guest.context("no guest is up")?;
                vec![guest.entry().name.clone()]
            }
            (false, names) => names.to_vec(),
        };
        for name in names {
            Guest::attach(&self.state, &name, &self.cancel)?.kill()?;
            print(&format!("guest {name} is gone\n"))?;
        }
        Ok(Status::Ok)
    }
}

/// A disk as the user wrote it, its directory absolute.
fn disk(text: &str, name: &str) -> anyhow::Result<Disk> {
    let mut disk = Disk::parse(text, name)?;
    if let Some(dir) = &mut disk.dir {
        *dir = std::path::absolute(&*dir)?;
    }
    Ok(disk)
}

/// An emulated guest says so, unless that was asked for.
fn emulation_note(guest: &Guest, machine: &Machine) {
    if guest.accel().accel == Accel::Tcg && machine.accel.is_none() {
        let why = guest.accel().why.as_deref().unwrap_or("KVM is not there");
        eprintln!(
            "note: the guest is emulated ({why}); compare its figures with each other, not with real machines"
        );
    }
}

fn entry_json(entry: &assay_lab::Entry) -> serde_json::Value {
    let disks: Vec<_> = entry
        .disks
        .iter()
        .map(|(name, size)| json!({ "name": name, "bytes": size }))
        .collect();
    json!({
        "name": entry.name, "detached": entry.detached, "pid": entry.pid, "accel": entry.accel,
        "memory_mib": entry.memory_mib, "cpus": entry.cpus, "disks": disks, "image": entry.image,
    })
}

fn pass_on(output: Output<'_>) -> std::io::Result<()> {
    match output {
        Output::Out(bytes) => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        }
        Output::Err(bytes) => std::io::stderr().lock().write_all(bytes),
    }
}

/// Where images are kept: `$ASSAY_LAB_CACHE`, else `$XDG_CACHE_HOME/assay/lab`.
fn cache_dir() -> anyhow::Result<PathBuf> {
    if let Some(dir) = std::env::var_os("ASSAY_LAB_CACHE").filter(|dir| !dir.is_empty()) {
        return Ok(std::path::absolute(PathBuf::from(dir))?);
    }
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| {
            let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
            Some(PathBuf::from(home).join(".cache"))
        })
        .context("neither HOME nor XDG_CACHE_HOME is set; set ASSAY_LAB_CACHE to a directory")?;
    Ok(base.join("assay/lab"))
}

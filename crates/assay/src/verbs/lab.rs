//! `assay lab`: throwaway guests with real ZFS.

mod crypto;
mod full;
mod image;
mod list;
mod machine;
mod measure;
mod net;
mod plug;
mod powercut;
mod progress;
mod session;
mod shell;

use crate::cli::{Global, Status};
use crate::context::{on_signals, state_dir};
use anyhow::Context as _;
use assay_lab::{Accel, Cache, Guest, LabError, State};
use clap::Subcommand;
use machine::Machine;
pub(super) use machine::{AccelArg, ZfsArg};

/// Throwaway guests: real ZFS and virtual disks of any kind, without touching this machine
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab run --disk 1G --disk 1G -- zpool create tank mirror vdb vdc
                                  boot a guest, run this in it, remove the guest
  assay lab up --disk 1G --disk 1G,bus=nvme,cache=none
                                  a guest that stays
  assay lab run -- zpool status   a command in it; its exit status is assay's
  assay lab run -- assay facts    this very assay runs in it as well
  assay lab ssh                   a shell in it
  assay lab plug 1G,bus=nvme      one more disk, while it runs
  assay lab list
  assay lab down                  the guest and its disks are gone
  assay lab net four              four people behind a long queue, without a guest

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
    Build(image::Build),
    /// Boot a guest that stays
    Up(session::Up),
    /// Run a command in a guest: in the one that is up, else in a new one that goes afterwards
    Run(session::Run),
    /// A shell in a guest
    Ssh(session::Ssh),
    /// Guests that are up, and images
    List(list::List),
    /// Remove a guest and its disks
    Down(session::Down),
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
    /// Many people behind one bottleneck: what does each of them notice?
    Net(net::Net),
}

/// Runs `assay lab`.
///
/// # Errors
/// On wrong usage, a missing tool, or a guest that does not come up or goes away.
pub fn run(args: Args, global: &Global) -> anyhow::Result<Status> {
    let lab = Lab::open()?;
    let ended = match args.verb {
        LabVerb::Net(args) => net::run(&lab, &args, global),
        LabVerb::Build(build) => lab.build(&build),
        LabVerb::Up(up) => lab.up(&up),
        LabVerb::Run(run) => lab.run(&run),
        LabVerb::Ssh(ssh) => lab.ssh(&ssh),
        LabVerb::List(list) => lab.list(&list),
        LabVerb::Down(down) => lab.down(&down),
        LabVerb::Plug(args) => lab.plug(&args),
        LabVerb::Unplug(args) => lab.unplug(&args),
        LabVerb::Measure(args) => measure::measure(&lab, &args),
        LabVerb::Crypto(args) => crypto::crypto(&lab, &args),
        LabVerb::Full(args) => full::full(&lab, &args),
        LabVerb::PowerCut(args) => powercut::power_cut(&lab, &args),
    };
    match ended {
        // Whatever fails after Ctrl-C fails of it; our own output is no matter of guests.
        Err(error) if lab.cancel.is_cancelled() && error.is::<LabError>() => {
            Err(LabError::Interrupted.into())
        }
        ended => ended,
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
        crate::sweep::guests_said(&state.sweep()?);
        let cache = Cache::of_user()?;
        if cache.tidy() {
            eprintln!("removed what was left of a build of the guest image");
        }
        Ok(Self {
            state,
            cache,
            cancel: on_signals()?,
        })
    }

    fn boot(&self, name: &str, machine: &Machine, detached: bool) -> anyhow::Result<Guest> {
        let mut options = machine.options(name, &[])?;
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

//! `assay lab`: runs temporary guests with real ZFS.

mod copy;
mod crypto;
pub(super) mod documents;
mod full;
mod image;
mod list;
mod machine;
mod measure;
mod net;
mod open;
mod plug;
mod powercut;
mod progress;
mod reboot;
mod session;
mod shell;
mod stall;

use crate::global::Global;
use crate::status::Status;
use assay_lab::LabError;
use clap::Subcommand;
pub(super) use machine::{AccelArg, ZfsArg};
pub(super) use open::Lab;

/// Run throwaway guests with real ZFS and virtual disks
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
  assay lab cp job.fio :/root/    a file into it, and `assay lab cp :/root/out.json .` out of it
  assay lab plug 1G,bus=nvme      one more disk, while it runs
  assay lab reboot                reboot it; its disks stay
  assay lab snapshot before       take a snapshot; `assay lab restore before` restores it
  assay lab stall disk1 --every 5s --length 300ms
                                  a disk that answers nothing for a while, again and again
  assay lab list
  assay lab down                  the guest and its disks are gone
  assay lab net four              four people behind a long queue, without a guest

The image is Debian with ZFS, fio, cryptsetup, LVM, XFS and btrfs. `assay lab build` builds it, as
root, in some minutes; other verbs ask before they build it, or need --yes. It is kept in
$XDG_CACHE_HOME/assay/lab (ASSAY_LAB_CACHE names another place). Guests have no network.
`assay lab` needs qemu-system-x86 and qemu-utils, and mmdebstrap for the image.")]
pub struct Args {
    #[command(subcommand)]
    verb: LabVerb,
}

#[derive(Subcommand)]
enum LabVerb {
    /// Build the guest image now instead of with the first guest
    Build(image::Build),
    /// Pack the guest image into a file for other machines
    Pack(image::Pack),
    /// Install a guest image that `assay lab pack` wrote
    Fetch(image::Fetch),
    /// Boot a guest that stays up
    Up(session::Up),
    /// Run a command in the running guest, or in a temporary one
    Run(session::Run),
    /// Open a shell in a guest
    Ssh(session::Ssh),
    /// List running guests and images
    List(list::List),
    /// Remove a guest and its disks
    Down(session::Down),
    /// Plug new disks into a running guest
    Plug(plug::Plug),
    /// Unplug disks from a running guest
    Unplug(plug::Unplug),
    /// Copy a file into a guest or out of it
    Cp(copy::Copy),
    /// Reboot a guest
    Reboot(reboot::Restart),
    /// Take a snapshot of a guest: memory, root and disks
    Snapshot(reboot::Keep),
    /// Restore a snapshot of a guest
    Restore(reboot::Restore),
    /// Stall disks of a guest regularly, as a failing disk does
    Stall(stall::Stall),
    /// Compare virtual disks by measuring them
    Measure(measure::Measure),
    /// Cut the power of a guest and check which durable writes survived
    PowerCut(powercut::PowerCut),
    /// Fill the host's disk under a guest and check what survives
    Full(full::Full),
    /// Compare what encryption costs with different guest processors
    Crypto(crypto::Crypto),
    /// Simulate many people behind one bottleneck
    Net(net::Net),
}

/// Runs `assay lab`.
///
/// # Errors
/// Wrong usage, a missing tool, or a guest that does not boot or stops.
pub fn run(args: Args, global: &Global) -> anyhow::Result<Status> {
    let lab = Lab::open()?;
    let ended = match args.verb {
        LabVerb::Net(args) => net::run(&lab, &args, global),
        LabVerb::Build(build) => lab.build(&build),
        LabVerb::Pack(pack) => lab.pack(&pack),
        LabVerb::Fetch(fetch) => lab.fetch(&fetch),
        LabVerb::Up(up) => lab.up(&up),
        LabVerb::Run(run) => lab.run(&run),
        LabVerb::Ssh(ssh) => lab.ssh(&ssh),
        LabVerb::List(list) => lab.list(&list),
        LabVerb::Down(down) => lab.down(&down),
        LabVerb::Plug(args) => lab.plug(&args),
        LabVerb::Unplug(args) => lab.unplug(&args),
        LabVerb::Cp(args) => lab.copy(&args),
        LabVerb::Reboot(args) => lab.reboot(&args),
        LabVerb::Snapshot(args) => lab.snapshot(&args),
        LabVerb::Restore(args) => lab.restore(&args),
        LabVerb::Stall(args) => lab.stall(&args),
        LabVerb::Measure(args) => measure::measure(&lab, &args),
        LabVerb::Crypto(args) => crypto::crypto(&lab, &args),
        LabVerb::Full(args) => full::full(&lab, &args),
        LabVerb::PowerCut(args) => powercut::power_cut(&lab, &args),
    };
    match ended {
        // After Ctrl-C it causes every error of a guest, but not errors of the output.
        Err(error) if lab.cancel.is_cancelled() && error.is::<LabError>() => {
            Err(LabError::Interrupted.into())
        }
        ended => ended,
    }
}

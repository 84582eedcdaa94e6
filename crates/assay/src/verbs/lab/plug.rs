//! `assay lab plug` and `unplug`: adds disks to a running guest and removes them.

use super::documents::{self, Plugged, PluggedDisk};
use super::open::Lab;
use crate::context::print;
use crate::status::Status;
use anyhow::Context as _;
use assay_lab::Guest;
use assay_model::SCHEMA_VERSION;

/// Arguments of `assay lab plug`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab plug 1G 1G,bus=nvme,cache=none
  assay lab plug 512M,bus=virtio-scsi,name=spare --guest lab")]
pub(super) struct Plug {
    /// New empty disks, as for `lab up --disk`; virtio or nvme
    #[arg(required = true, value_name = "SIZE[,…]")]
    disks: Vec<String>,
    /// Use this guest; not needed if exactly one is running
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Arguments of `assay lab unplug`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab unplug disk2                    as one pulls a drive out: nobody asks whether it is in use
  assay lab unplug spare --guest nas")]
pub(super) struct Unplug {
    /// Names of disks, as `assay lab list` shows them
    #[arg(required = true, value_name = "DISK")]
    disks: Vec<String>,
    /// Use this guest; not needed if exactly one is running
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
}

impl Lab {
    /// Returns the guest with this name; without a name, the only running guest.
    pub(super) fn running(&self, name: Option<&str>) -> anyhow::Result<Guest> {
        let guest = self.chosen(name)?;
        guest.context("no guest is running: boot one with `assay lab up`")
    }

    pub(super) fn plug(&self, plug: &Plug) -> anyhow::Result<Status> {
        let mut guest = self.running(plug.guest.as_deref())?;
        let mut plugged = Vec::new();
        for text in &plug.disks {
            let disk = super::machine::disk(text, &free_name(&guest))?;
            guest.plug(&disk)?;
            let device = guest.devices(&[&disk.name])?.remove(0);
            if !plug.json {
                print(&format!(
                    "disk {} is {} in guest {}\n",
                    disk.name,
                    device.display(),
                    guest.entry().name
                ))?;
            }
            plugged.push(PluggedDisk::of(&disk, device));
        }
        if plug.json {
            print(&documents::printed(&Plugged {
                schema: SCHEMA_VERSION,
                guest: guest.entry().name.clone(),
                disks: plugged,
            })?)?;
        }
        Ok(Status::Ok)
    }

    pub(super) fn unplug(&self, unplug: &Unplug) -> anyhow::Result<Status> {
        let mut guest = self.running(unplug.guest.as_deref())?;
        for disk in &unplug.disks {
            guest.unplug(disk)?;
            print(&format!("disk {disk} is gone\n"))?;
        }
        Ok(Status::Ok)
    }
}

/// Returns the first unused name of disk1, disk2, ….
fn free_name(guest: &Guest) -> String {
    let taken = |name: &String| guest.entry().disks.iter().any(|(known, _)| known == name);
    let names = (1..).map(|number| format!("disk{number}"));
    names
        .into_iter()
        .find(|name| !taken(name))
        .unwrap_or_default()
}

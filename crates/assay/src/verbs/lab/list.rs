//! `assay lab list`: lists running guests and guest images.

use super::documents;
use super::open::Lab;
use crate::context::print;
use crate::status::Status;
use assay_lab::Zfs;
use assay_model::Bytes;

#[derive(clap::Args)]
pub(super) struct List {
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl Lab {
    pub(super) fn list(&self, list: &List) -> anyhow::Result<Status> {
        let guests = self.state.list();
        let images = self.cache.all();
        if list.json {
            print(&documents::printed(&documents::List::of(&guests, &images))?)?;
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
                "guest {}  {}{}, {} cpu{}, {}, process {}{}{}\n",
                entry.name,
                Zfs::of(&entry.image)
                    .map_or(String::new(), |zfs| format!("OpenZFS of {}, ", zfs.name())),
                entry.accel,
                entry.cpus,
                if entry.cpus == 1 { "" } else { "s" },
                Bytes(u64::from(entry.memory_mib) << 20),
                entry.pid,
                if disks.is_empty() { "" } else { ", disks " },
                disks.join(", ")
            );
        }
        if guests.is_empty() {
            text += "no guest is up\n";
        }
        if images.is_empty() {
            text += "no guest image yet: the first guest builds it, or `assay lab build`\n";
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
}

//! Defines the options of a new guest.

use anyhow::Context as _;
use assay_lab::{Accel, Disk, GuestOptions, LEAST_MEMORY, Zfs};
use assay_model::Bytes;
use clap::ValueEnum;

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) enum ZfsArg {
    /// OpenZFS 2.1
    Stable,
    /// OpenZFS 2.3
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

/// Options of a new guest.
#[derive(clap::Args)]
pub(super) struct Machine {
    /// Add an empty disk: SIZE and options after commas (repeatable)
    ///
    /// bus=virtio-blk|virtio-scsi|sata|ide|nvme  cache=writeback|none|writethrough|directsync|unsafe
    /// aio=threads|native|io_uring  format=raw|qcow2|luks  cluster=SIZE  preallocation  extended_l2
    /// lazy_refcounts  discard=on|off  iothread  queues=N  werror=report|stop|enospc  iops=N  bps=SIZE
    /// eio=OFFSET+LENGTH, a range that returns I/O errors
    /// dir=DIR, or device=DEVICE (its data is lost)  name=NAME
    #[arg(long, value_name = "SIZE[,…]", verbatim_doc_comment)]
    pub(super) disk: Vec<String>,
    /// Allow overwriting block devices given as device=
    #[arg(long)]
    pub(super) destroy_data: bool,
    /// With --destroy-data: also overwrite unknown data on devices
    #[arg(long, requires = "destroy_data")]
    pub(super) destroy_unknown_data: bool,
    /// Set the memory
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub(super) memory: Bytes,
    /// Set the number of virtual processors
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(super) cpus: u32,
    /// Choose OpenZFS for the guest: from Debian stable or backports
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ZfsArg::Stable)]
    pub(super) zfs: ZfsArg,
    /// Build a missing guest image without asking
    #[arg(long)]
    pub(super) yes: bool,
    /// Set QEMU's CPU model, such as Haswell,-aes [default: the host's]
    #[arg(long, value_name = "MODEL")]
    pub(super) cpu: Option<String>,
    /// Do not copy this assay to /usr/local/bin/assay in the guest
    #[arg(long)]
    pub(super) no_assay: bool,
    /// Run guests with kvm or tcg [default: detected]
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    pub(super) accel: Option<AccelArg>,
}

#[derive(ValueEnum, Clone, Copy)]
pub(in crate::verbs) enum AccelArg {
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

impl Machine {
    /// Returns the options of a guest. If the user gave no disk, the guest gets the disks `usual`.
    pub(super) fn options(&self, name: &str, usual: &[&str]) -> anyhow::Result<GuestOptions> {
        let mut options = GuestOptions::new(name);
        options.cpus = self.cpus;
        options.cpu_model.clone_from(&self.cpu);
        options.destroy_data = self.destroy_data;
        options.destroy_unknown_data = self.destroy_unknown_data;
        options.memory_mib = u32::try_from(self.memory.0 >> 20).with_context(|| {
            format!(
                "cannot start a guest with {} of memory: it is too much",
                self.memory
            )
        })?;
        anyhow::ensure!(
            options.memory_mib >= LEAST_MEMORY,
            "--memory {}: a guest needs {LEAST_MEMORY} MiB to boot",
            self.memory
        );
        options.accel = self.accel.map(Into::into);
        let named: Vec<_> = self.disk.iter().map(String::as_str).collect();
        let disks = if named.is_empty() { usual } else { &named };
        for (index, text) in disks.iter().enumerate() {
            options
                .disks
                .push(disk(text, &format!("disk{}", index + 1))?);
        }
        Ok(options)
    }
}

/// Parses a disk option, and makes its directory absolute.
pub(super) fn disk(text: &str, name: &str) -> anyhow::Result<Disk> {
    let mut disk = Disk::parse(text, name)?;
    if let Some(dir) = &mut disk.dir {
        *dir = std::path::absolute(&*dir)?;
    }
    Ok(disk)
}

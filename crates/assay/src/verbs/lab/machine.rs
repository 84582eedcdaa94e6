//! What a new guest is like, as one says it on the command line.

use anyhow::Context as _;
use assay_lab::{Accel, Disk, LEAST_MEMORY, Options, Zfs};
use assay_model::Bytes;
use clap::ValueEnum;

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) enum ZfsArg {
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
pub(super) struct Machine {
    /// A new empty disk (may be repeated): its size, and after commas
    /// bus=virtio-blk|virtio-scsi|sata|ide|nvme  cache=writeback|none|writethrough|directsync|unsafe
    /// aio=threads|native|io_uring  format=raw|qcow2|luks  cluster=SIZE  preallocation  extended_l2
    /// lazy_refcounts  discard=on|off  iothread  queues=N  werror=report|stop|enospc  iops=N  bps=SIZE
    /// eio=OFFSET+LENGTH, which gives I/O errors there
    /// dir=DIR, or device=DEVICE (which loses what it holds)  name=NAME
    #[arg(long, value_name = "SIZE[,…]", verbatim_doc_comment)]
    pub(super) disk: Vec<String>,
    /// Allow that block devices given as device= lose what they hold
    #[arg(long)]
    pub(super) destroy_data: bool,
    /// With --destroy-data: also when they are not all zeroes and may hold somebody's data
    #[arg(long, requires = "destroy_data")]
    pub(super) destroy_unknown_data: bool,
    /// Memory
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub(super) memory: Bytes,
    /// Virtual processors
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(super) cpus: u32,
    /// OpenZFS of the guest: that of Debian stable, or the newer one of its backports
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ZfsArg::Stable)]
    pub(super) zfs: ZfsArg,
    /// QEMU's model of the processor, as its -cpu takes it: `Nehalem`, `Haswell,-aes`; the host's own,
    /// or all that can be emulated, when left out
    #[arg(long, value_name = "MODEL")]
    pub(super) cpu: Option<String>,
    /// Do not bring this assay along as /usr/local/bin/assay
    #[arg(long)]
    pub(super) no_assay: bool,
    /// kvm or tcg; found out when left out
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
    /// A guest like this; where the user named no disk, with the usual ones.
    pub(super) fn options(&self, name: &str, usual: &[&str]) -> anyhow::Result<Options> {
        let mut options = Options::new(name);
        options.cpus = self.cpus;
        options.cpu_model.clone_from(&self.cpu);
        options.destroy_data = self.destroy_data;
        options.destroy_unknown_data = self.destroy_unknown_data;
        options.memory_mib = u32::try_from(self.memory.0 >> 20)
            .with_context(|| format!("{} of memory is too much", self.memory))?;
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

/// A disk as the user wrote it, its directory absolute.
pub(super) fn disk(text: &str, name: &str) -> anyhow::Result<Disk> {
    let mut disk = Disk::parse(text, name)?;
    if let Some(dir) = &mut disk.dir {
        *dir = std::path::absolute(&*dir)?;
    }
    Ok(disk)
}

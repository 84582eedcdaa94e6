//! The collectors, one file per source of facts, and the list of the collectors that only read files.

pub(crate) mod btrfs;
pub(crate) mod cgroup;
pub(crate) mod cpu;
pub(crate) mod daemons;
pub(crate) mod disk;
pub(crate) mod dm;
pub(crate) mod dovecot;
pub(crate) mod ext4;
pub(crate) mod fstab;
pub(crate) mod kernel;
pub(crate) mod lvm;
pub(crate) mod memory;
pub(crate) mod modprobe;
pub(crate) mod mounts;
pub(crate) mod nginx;
pub(crate) mod proxmox_guests;
pub(crate) mod services;
pub(crate) mod sshd;
pub(crate) mod sysctl;
pub(crate) mod thermal;
pub(crate) mod tools;
pub(crate) mod trim;
pub(crate) mod virtualisation;
pub(crate) mod vm;
pub(crate) mod xfs;
pub(crate) mod zfs;

use crate::gather::Gather;

/// Runs the collectors that only read files and start no program, one after the other.
pub(crate) fn of_files(g: &mut Gather<'_>, identity: bool) {
    kernel::collect(g, identity);
    cpu::collect(g);
    memory::collect(g);
    sysctl::collect(g);
    modprobe::collect(g);
    fstab::collect(g);
    cgroup::collect(g);
    thermal::collect(g);
    zfs::collect(g);
    btrfs::collect(g);
    disk::collect(g, identity);
    sshd::collect(g);
    nginx::collect(g);
    dovecot::collect(g);
}

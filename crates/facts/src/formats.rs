//! Parsers of the output of tools and of configuration files. They work on text and do not access a machine.

pub mod crypt;
pub mod image;
pub mod libvirt;
pub mod limits;
pub mod lvm;
pub mod mdstat;
pub mod module_parameter;
pub mod proxmox;
pub mod qemu;
pub mod zpool;
pub mod zpool_health;

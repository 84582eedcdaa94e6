//! btrfs: computes how many bytes a set of devices can store, by replaying the chunk allocator.
//!
//! No formula gives the usable space of btrfs: first `mkfs.btrfs` and later the kernel allocate chunks one after
//! another, always on the devices with the most free space. [`simulate_filesystem`] does the same: [`mkfs`] creates the
//! chunks of a new file system, [`kernel`] adds data chunks until no more fits.

mod kernel;
mod mkfs;
mod profile;
mod sort;
mod space;

pub use profile::Profile;
pub use space::{DeviceUse, Filesystem, simulate_filesystem};

//! btrfs: how many bytes can be stored on a set of devices, by replaying its chunk allocator.
//!
//! btrfs has no formula for usable space: `mkfs.btrfs` and then the kernel cut chunks off the
//! devices one after another, always from those with most free space, and what fits is what comes
//! out. [`simulate`] does the same: [`mkfs`] the chunks that exist in a new file system,
//! [`kernel`] every data chunk until none fits.

mod kernel;
mod mkfs;
mod profile;
mod sort;
mod space;

pub use profile::Profile;
pub use space::{DeviceUse, Filesystem, simulate_filesystem};

//! Throwaway guests under QEMU: builds the image once, boots guests, communicates with them, and removes them.
//!
//! A guest is Debian with ZFS and storage tools. It has no network: assay communicates with its own agent over
//! virtio-serial. The root file system of the image never changes. The guest's disks are new and are removed with the
//! guest. Nothing remains of a guest, even if assay is killed.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate builds images and runs guests"
)]

mod accel;
mod agent_requests;
mod boot;
mod builder;
mod cachedir;
mod channel;
mod child;
mod command;
pub mod console;
mod converse;
pub mod counters;
mod cpio;
mod devices;
pub mod disk;
mod disk_guard;
mod emulator;
mod error;
pub mod experiments;
mod files;
mod guest;
mod host;
mod image;
pub mod network_bed;
mod options;
mod plug;
mod reboot;
mod recipe;
pub mod record;
mod snapshot;
pub mod sparse;
mod spec;
mod stall;
mod state;
mod steps;
mod tools;

pub use accel::{Accel, Choice, choose as choose_accel};
pub use agent_requests::{CommandOutputPart, FIO_START_AND_END};
pub use assay_protocol::Sync;
pub use converse::{Conversation, ConversationEnd, End, ProgramInput, ProgramOutput};
pub use disk::Disk;
pub use error::LabError;
pub use files::{qemu_img, run_here};
pub use guest::Guest;
pub use image::{Cache, Image, pack_image};
pub use options::{GuestOptions, LEAST_MEMORY};
pub use reboot::Reboot;
pub use recipe::Zfs;
pub use snapshot::GuestSnapshot;
pub use stall::{Stalled, Stalls};
pub use state::{GuestDirectory, GuestEntry, GuestRegistry};
pub use steps::BuildProgress;

#[cfg(test)]
mod tests;

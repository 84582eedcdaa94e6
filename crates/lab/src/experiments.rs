//! Experiments with guests: virtual disks against each other, what a power cut or a full disk leaves of
//! what was acknowledged, what encryption costs per model of the processor.
//!
//! The guests themselves are `assay_lab`'s. Whether a durable write is durable is asked here
//! ([`powercut`], [`full`]); of images without a guest `assay_changes::side_by_side` asks it, because trials need the answer.
#![allow(
    clippy::disallowed_methods,
    reason = "experiments make and read the files that disks are made of"
)]

pub mod crypto;
pub mod disks;
pub mod full_disk;
mod pool;
pub mod powercut;
mod small_filesystem;
pub mod writelog;

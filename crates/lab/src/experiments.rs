//! Experiments with guests: a comparison of virtual disks, data loss after a power cut or on a full disk, and the cost
//! of encryption per CPU model.
//!
//! `assay_lab` provides the guests. [`powercut`] and [`full`] test whether writes that were acknowledged as durable
//! survive. The same test for images without a guest is in `assay_changes::side_by_side`, because trials need its
//! result.
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

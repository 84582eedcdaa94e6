//! Experiments with guests: comparison of virtual disks, data loss after a power cut or on a full disk, and
//! the cost of encryption per CPU model.
//!
//! The guests come from `assay_lab`. [`powercut`] and [`full`] test whether durable writes are durable. For
//! images without a guest, `assay_changes::side_by_side` tests this, because trials need the result.
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

//! Plans storage: capacity, layout, distribution of writes, clones, caches, durability.
//!
//! The crate performs no I/O. Its input consists of sizes, options and recorded output of tools; its output consists of
//! figures. The formulas come from the sources of OpenZFS and btrfs, which are cited at each use. Tests compare the
//! results with measured pools in `fixtures/`.

pub mod btrfs;
pub mod cache;
pub mod capacity;
pub mod clones;
pub mod distribute;
pub mod durability;
pub mod error;
pub mod layout;
pub mod lsblk;
pub mod size;
pub mod zfs;

pub use error::PlannerError;

//! Storage planning: capacity, layout, write distribution, clone lineage, caches, durability.
//!
//! Pure: sizes, recorded tool output and options in, figures out. Formulas are those of the
//! OpenZFS and btrfs sources, cited where they are used, and are checked against measured pools in
//! `fixtures/`.

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

//! ZFS pools: computes exactly what `zpool list` and `zfs list` would print.

mod disk;
mod pool;
mod spec;
mod vdev;
mod version;
mod zvol;

pub use disk::partition_bytes;
pub use pool::{Capacity, Class, Pool, PoolVdev, VdevCapacity};
pub use spec::parse as parse_spec;
pub use vdev::{DEFLATE_BLOCK, DRAID_MAX_CHILDREN, Geometry, MIN_DEVICE, VdevKind, vdev_geometry};
pub use version::Version;
pub use zvol::{block_pointer_bytes, zvol_refreservation};

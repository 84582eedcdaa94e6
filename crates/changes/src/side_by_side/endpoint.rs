//! Where an arm is made, and where it is found.

use assay_model::Bytes;
use std::path::PathBuf;

/// Where an arm is made.
#[derive(Clone, Debug)]
pub struct ArmSite {
    /// An existing directory, on the storage that is to be measured.
    pub dir: PathBuf,
    /// Name of the arm, `now` or `changed`: letters, digits, `-` and `_`. It gets a directory of its
    /// own in `dir`.
    pub name: String,
    /// Bytes to measure on: size of the virtual disk, or of the file inside the file system.
    pub size: Bytes,
}

/// What a load is pointed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A file or block device with [`Place::size`] bytes written, inside the arm. Nobody else may
    /// change what the path leads to as long as the arm is there.
    Path(PathBuf),
    /// An NBD export behind a unix socket. Its path leads through a descriptor of this process. For
    /// programs that take no such path, link to it from the load's work directory.
    Nbd {
        /// The socket.
        socket: PathBuf,
        /// Name of the export.
        export: String,
    },
    /// A server on this machine.
    Address {
        /// Address, without brackets.
        host: String,
        /// TCP port.
        port: u16,
    },
}

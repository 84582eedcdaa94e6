//! Where an arm (one of two compared objects) is built, and the endpoint that it provides for the load.

use assay_model::Bytes;
use std::path::PathBuf;

/// Where an arm is built, and how large it is.
#[derive(Clone, Debug)]
pub struct ArmSite {
    /// An existing directory on the storage to be measured.
    pub dir: PathBuf,
    /// Name of the arm, `now` or `changed`. The arm gets its own directory in `dir`, so the name may contain only
    /// letters, digits, `-` and `_`.
    pub name: String,
    /// Number of bytes to measure: size of the virtual disk, or of the file inside the file system.
    pub size: Bytes,
}

/// What a load is directed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A file or block device inside the arm, with [`ArmSite::size`] bytes written. No other program may
    /// replace the file while the arm exists.
    Path(PathBuf),
    /// An NBD export on a Unix socket. The path of the socket contains a file descriptor of this process. For
    /// programs that do not accept such a path, create a symbolic link in the load's working directory.
    Nbd {
        /// Path of the Unix socket.
        socket: PathBuf,
        /// Name of the export on this socket.
        export: String,
    },
    /// A server on this machine.
    Address {
        /// Host name or address, without brackets.
        host: String,
        /// TCP port on which the server listens.
        port: u16,
    },
}

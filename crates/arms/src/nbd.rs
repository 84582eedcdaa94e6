//! The NBD protocol (github.com/NetworkBlockDevice/nbd, doc/proto.md): what is common to the
//! client that fills and checks images, and to the disk with a volatile cache.

pub(crate) mod client;

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

pub(crate) use client::Client;

pub(crate) const MAGIC: u64 = 0x4e42_444d_4147_4943;
pub(crate) const OPTION: u64 = 0x4948_4156_454f_5054;
pub(crate) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST: u32 = 0x2560_9513;
pub(crate) const REPLY: u32 = 0x6744_6698;
pub(crate) const OPT_GO: u32 = 7;
pub(crate) const REP_ACK: u32 = 1;
pub(crate) const REP_INFO: u32 = 3;
pub(crate) const INFO_EXPORT: u16 = 0;
pub(crate) const CMD_READ: u16 = 0;
pub(crate) const CMD_WRITE: u16 = 1;
pub(crate) const CMD_DISCONNECT: u16 = 2;
pub(crate) const CMD_FLUSH: u16 = 3;
pub(crate) const FLAG_FUA: u16 = 1;

/// Connects to a unix socket whose path may be longer than the 107 bytes of a `sockaddr_un`: the
/// directory is opened, and named by its descriptor.
pub(crate) fn connect(socket: &Path) -> io::Result<UnixStream> {
    use rustix::fs::{Mode, OFlags};
    use std::os::fd::AsRawFd as _;
    let dir = socket.parent().unwrap_or(Path::new("."));
    let name = socket.file_name().unwrap_or_default();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(dir, flags, Mode::empty())?;
    let near = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string());
    UnixStream::connect(near.join(name))
}

//! Unnamed network namespaces and TUN devices. Both disappear with their last descriptor, so they never remain after
//! assay has ended.

#![allow(
    unsafe_code,
    reason = "a TUN device is made by ioctl alone, and unshare concerns the thread that calls it"
)]

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::thread;

/// A network namespace. It exists while this value or a process in the namespace exists.
#[derive(Debug)]
pub struct Netns {
    fd: OwnedFd,
}

impl Netns {
    /// Creates a namespace. Its only interface is a loopback interface that is down.
    ///
    /// # Errors
    /// As unshare(2): CAP_SYS_ADMIN is missing.
    pub fn new() -> io::Result<Self> {
        let made = thread::spawn(|| {
            // SAFETY: only this thread changes, and it ends here; descriptors stay shared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
        });
        match made.join() {
            Ok(fd) => Ok(Self { fd: fd? }),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Runs `work` in the namespace in a separate thread. Threads and programs that `work` starts are in the namespace,
    /// too.
    ///
    /// # Errors
    /// As setns(2).
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let handle = scope.spawn(|| {
                self.enter()?;
                Ok(work())
            });
            match handle.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Moves the calling thread into the namespace permanently.
    ///
    /// # Errors
    /// As setns(2).
    pub fn enter(&self) -> io::Result<()> {
        let kind = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(self.fd.as_fd(), kind)?)
    }

    /// Returns a path of the namespace for programs. It is valid while this value exists.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_raw_fd()).into()
    }
}

/// Request number of the ioctl that creates a TUN device: `_IOW('T', 202, int)` (linux/if_tun.h).
const TUNSETIFF: u32 = 0x4004_54ca;
const IFF_TUN: i16 = 0x0001;
const IFF_NO_PI: i16 = 0x1000;

/// Creates a TUN device in the network namespace of the calling thread. Packets written to the file arrive in the
/// namespace. Packets that the namespace sends can be read from the file. The device is down and has no address. Reads
/// and writes do not block.
///
/// # Errors
/// /dev/net/tun is missing, the name is in use or longer than 15 bytes, or CAP_NET_ADMIN is missing.
pub fn create_tun(name: &str) -> io::Result<File> {
    // SAFETY: an all-zero ifreq is a valid value of a struct of bytes and integers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = IFF_TUN | IFF_NO_PI;
    let device = File::options()
        .read(true)
        .write(true)
        .open("/dev/net/tun")?;
    // SAFETY: TUNSETIFF reads and writes an ifreq, which lives here.
    let done = unsafe {
        libc::ioctl(
            device.as_raw_fd(),
            TUNSETIFF as libc::Ioctl,
            &raw mut request,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    rustix::io::ioctl_fionbio(&device, true)?;
    Ok(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_its_own_interfaces_and_takes_them_along() {
        let Ok(namespace) = Netns::new() else {
            assay_testing::skipped("root", "network namespaces cannot be made");
            return;
        };
        let interfaces = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        if !std::path::Path::new("/dev/net/tun").exists() {
            assay_testing::skipped("tun", "there is no /dev/net/tun");
            return;
        }
        let device = namespace.inside(|| create_tun("assay0").unwrap()).unwrap();
        assert!(namespace.inside(interfaces).unwrap().contains("assay0"));
        assert!(!interfaces().contains("assay0"));
        assert!(namespace.inside(|| create_tun("assay0").is_err()).unwrap());
        drop(device);
        assert!(!namespace.inside(interfaces).unwrap().contains("assay0"));
        assert!(create_tun(&"x".repeat(16)).is_err());
    }
}

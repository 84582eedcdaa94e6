//! Resolves host names in the same way as other programs of this machine.
//!
//! Runs the system's `getent` instead of calling the C library of assay. A static binary cannot load the modules of
//! `nsswitch.conf` (mDNS, LDAP, sssd), or would load modules of another version. The C library is used only if `getent`
//! is not installed.

use crate::{Host as _, HostError, Limits, LiveHost};
use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc;
use std::time::Duration;

/// Exit status of getent(1) for an unknown key.
const UNKNOWN: i32 = 2;

/// Returns the addresses of a host with a port, each once, in the order in which a client should try them (RFC 6724).
/// If `host` is already an address, returns this address.
///
/// # Errors
/// `NotFound`: the name has no address. `TimedOut`: no answer in time. `InvalidInput`: not a name. Others: the resolver
/// cannot be used.
pub fn resolve_addresses(host: &str, port: u16, within: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    if host.is_empty() || host.starts_with('-') || host.contains('\0') {
        let why = format!("`{}` is no name of a host", host.escape_debug());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let limits = Limits { timeout: within };
    // Without -A, getent omits families in which the machine has only a loopback address: ::1 of `localhost`
    // on a machine without other IPv6.
    let every = ["getent", "-A", "ahosts", host].map(OsStr::new);
    let mut asked = LiveHost.run(&every, limits);
    if let Ok(output) = &asked
        && !output.success()
        && output.status != UNKNOWN
    {
        // glibc before 2.38 does not support -A.
        asked = LiveHost.run(&["getent", "ahosts", host].map(OsStr::new), limits);
    }
    let found = match asked {
        Ok(output) if output.success() => read(&output.text()),
        Ok(output) if output.status == UNKNOWN => Vec::new(),
        Ok(output) => return Err(io::Error::other(format!("getent: {}", output.complaint()))),
        Err(HostError::Timeout { .. }) => return Err(io::ErrorKind::TimedOut.into()),
        Err(error) if error.is_absent() => by_library(host, within)?,
        Err(error) => return Err(io::Error::other(error)),
    };
    match found.is_empty() {
        true => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the name has no address",
        )),
        false => Ok(found
            .into_iter()
            .map(|address| (address, port).into())
            .collect()),
    }
}

/// Parses lines `ADDRESS  STREAM  NAME`. There is one line per address and socket type; all types have the same
/// addresses.
fn read(text: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in text.lines() {
        let word = line.split_whitespace().next().unwrap_or_default();
        if let Ok(address) = word.parse()
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

/// Resolves a name with the C library in a separate thread. If the thread does not answer in time, assay stops waiting,
/// because a thread cannot be ended.
fn by_library(host: &str, within: Duration) -> io::Result<Vec<IpAddr>> {
    let (sender, receiver) = mpsc::channel();
    let asked = (host.to_owned(), 0);
    std::thread::spawn(move || {
        let found = asked.to_socket_addrs().map(|found| {
            let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
            addresses.dedup();
            addresses
        });
        // Nobody receives the result after the time limit.
        let _ = sender.send(found);
    });
    receiver
        .recv_timeout(within)
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of getent of glibc 2.36.
    const AHOSTS: &str = "2001:db8::7     STREAM www.example.org\n2001:db8::7     DGRAM  \n\
                          2001:db8::7     RAW    \n192.0.2.4       STREAM \n192.0.2.4       DGRAM  \n";

    #[test]
    fn each_address_is_read_once_and_in_order() {
        let expected: Vec<IpAddr> = ["2001:db8::7", "192.0.2.4"]
            .map(|a| a.parse().unwrap())
            .into();
        assert_eq!(read(AHOSTS), expected);
        assert_eq!(read("no address here\n\n"), Vec::<IpAddr>::new());
    }

    #[test]
    fn an_address_asks_nobody() {
        let found = resolve_addresses("2001:db8::1", 25, Duration::ZERO).unwrap();
        assert_eq!(found, ["[2001:db8::1]:25".parse().unwrap()]);
    }

    #[test]
    fn the_machine_knows_its_own_name() {
        let within = Duration::from_secs(30);
        let found = resolve_addresses("localhost", 80, within).unwrap();
        assert!(
            found
                .iter()
                .all(|address| address.ip().is_loopback() && address.port() == 80)
        );
        let mut asked: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
        let mut library = by_library("localhost", within).unwrap();
        for list in [&mut asked, &mut library] {
            list.sort();
            list.dedup();
        }
        assert_eq!(asked, library);
    }

    #[test]
    fn what_is_no_name_is_not_handed_to_a_program() {
        for name in ["", "-s", "--service=files", "a\0b"] {
            let error = resolve_addresses(name, 1, Duration::from_secs(1)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
    }

    #[test]
    fn a_name_that_nobody_knows_is_not_found() {
        let error = resolve_addresses("assay.invalid", 1, Duration::from_secs(60)).unwrap_err();
        let kinds = [io::ErrorKind::NotFound, io::ErrorKind::TimedOut];
        assert!(kinds.contains(&error.kind()), "{error}");
    }
}

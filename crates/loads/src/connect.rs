//! Opens connections without blocking, so that the wait can be cancelled.

use crate::Cancel;
use crate::measured::LOOK;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Starts a non-blocking connection. The socket becomes writable on success and on failure; `TcpStream::take_error`
/// distinguishes the two.
pub(crate) fn begin(address: &SocketAddr) -> io::Result<TcpStream> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    // A request must not wait for the acknowledgement of the previous one (Nagle).
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Waits for a connection and makes it blocking. Fails with `TimedOut` at the deadline, and with `Interrupted` when
/// cancelled.
pub(crate) fn wait(
    address: &SocketAddr,
    deadline: Instant,
    cancel: &Cancel,
) -> io::Result<TcpStream> {
    let stream = begin(address)?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if cancel.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let slice = to_timespec(left.min(LOOK));
        match poll(&mut [PollFd::new(&stream, PollFlags::OUT)], Some(&slice)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    stream.set_nonblocking(false)?;
    Ok(stream)
}

pub(crate) fn to_timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

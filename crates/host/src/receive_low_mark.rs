//! Sets how many bytes must arrive before a socket becomes readable (`SO_RCVLOWAT`, socket(7)).

#![allow(unsafe_code, reason = "rustix has no SO_RCVLOWAT")]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Makes the kernel report the socket as readable only if at least `bytes` bytes are waiting; the default is 1. The end
/// of the stream and errors are reported at once.
///
/// # Errors
/// Not a socket, or the kernel rejects the number.
pub fn set_receive_low_mark(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: `bytes` is live and as long as the length says; the kernel only reads it.
    let failed = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of_val(&bytes) as libc::socklen_t,
        )
    };
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn fewer_bytes_do_not_wake() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        set_receive_low_mark(&receiver, 6).unwrap();
        let is_readable = |wait: i64| {
            let wait = Timespec {
                tv_sec: wait,
                tv_nsec: 20_000_000,
            };
            poll(&mut [PollFd::new(&receiver, PollFlags::IN)], Some(&wait)).unwrap() > 0
        };
        sender.write_all(b"hello").unwrap();
        assert!(!is_readable(0));
        sender.write_all(b"!").unwrap();
        assert!(is_readable(10));
        set_receive_low_mark(&receiver, 100).unwrap();
        assert!(!is_readable(0));
        drop(sender);
        assert!(is_readable(10));
        assert!(set_receive_low_mark(std::fs::File::open("/dev/null").unwrap(), 1).is_err());
    }
}

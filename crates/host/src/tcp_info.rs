//! Reads the kernel's counters of a TCP connection (`TCP_INFO`, tcp(7)).

#![allow(unsafe_code, reason = "rustix has no TCP_INFO")]

use std::os::fd::{AsFd, AsRawFd as _};

/// Segments with data that this side of a connection has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentSegments {
    /// All segments, including retransmissions.
    pub sent: u64,
    /// Retransmitted segments.
    pub again: u64,
}

/// Words of `struct tcp_info` up to `tcpi_data_segs_out` (linux/tcp.h); later versions only append fields.
const WORDS: usize = 40;
/// Position of `tcpi_total_retrans`, in words of four bytes.
const TOTAL_RETRANS: usize = 25;
/// Position of `tcpi_data_segs_out`, in words of four bytes; Linux 4.6 and newer.
const DATA_SEGS_OUT: usize = 39;

/// Returns the segments sent on a connection; `None` if it is not a TCP connection, or the kernel is older
/// than 4.6.
#[must_use]
pub fn sent_segments(connection: impl AsFd) -> Option<SentSegments> {
    let mut words = [0u32; WORDS];
    let mut length = libc::socklen_t::try_from(size_of_val(&words)).ok()?;
    // SAFETY: `words` is live and as long as `length` says; the kernel writes at most that much, and then how much
    // it wrote to `length`.
    let failed = unsafe {
        libc::getsockopt(
            connection.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut words).cast(),
            &raw mut length,
        )
    };
    if failed != 0 || (length as usize) < size_of_val(&words) {
        return None;
    }
    Some(SentSegments {
        sent: words[DATA_SEGS_OUT].into(),
        again: words[TOTAL_RETRANS].into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn what_was_written_was_sent_in_segments() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        assert_eq!(sent_segments(&sender).unwrap().sent, 0);
        sender.write_all(b"one").unwrap();
        receiver.read_exact(&mut [0; 3]).unwrap();
        let seen = sent_segments(&sender).unwrap();
        assert!(seen.sent >= 1 && seen.again <= seen.sent, "{seen:?}");
        assert_eq!(sent_segments(&receiver).unwrap().sent, 0);
        assert_eq!(sent_segments(UdpSocket::bind("127.0.0.1:0").unwrap()), None);
    }
}

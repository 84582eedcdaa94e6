//! Reads the kernel's counters of a TCP connection (`TCP_INFO`, tcp(7)).

#![allow(unsafe_code, reason = "rustix has no TCP_INFO")]

use std::os::fd::{AsFd, AsRawFd as _};

/// Number of TCP segments with data that this side of a connection sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentSegments {
    /// Number of all segments, including retransmissions.
    pub sent: u64,
    /// Number of retransmitted segments.
    pub again: u64,
}

/// Number of words of `struct tcp_info` up to `tcpi_bytes_retrans` (linux/tcp.h). Later versions only append fields.
const WORDS: usize = 54;
/// Position of `tcpi_total_retrans`, in words of four bytes.
const TOTAL_RETRANS: usize = 25;
/// Position of `tcpi_bytes_acked`, a number of two words. Linux 4.1 and newer.
const BYTES_ACKED: usize = 30;
/// Position of `tcpi_data_segs_out`, in words of four bytes. Linux 4.6 and newer.
const DATA_SEGS_OUT: usize = 39;
/// Position of `tcpi_bytes_sent`, a number of two words. Linux 4.19 and newer.
const BYTES_SENT: usize = 50;
/// Position of `tcpi_bytes_retrans`, a number of two words. Linux 4.19 and newer.
const BYTES_RETRANS: usize = 52;
/// `TCP_ESTABLISHED`, a value of `tcpi_state`, which is the first byte (include/net/tcp_states.h).
const ESTABLISHED: u32 = 1;

/// Returns the number of segments that were sent on a connection. `None` if it is not a TCP connection, or if the
/// kernel is older than 4.6.
#[must_use]
pub fn sent_segments(connection: impl AsFd) -> Option<SentSegments> {
    let words = read_words(connection, DATA_SEGS_OUT + 1)?;
    Some(SentSegments {
        sent: words[DATA_SEGS_OUT].into(),
        again: words[TOTAL_RETRANS].into(),
    })
}

/// Returns whether the peer has closed or reset a connection; `None` if it is not a TCP connection.
#[must_use]
pub fn is_closed_by_peer(connection: impl AsFd) -> Option<bool> {
    let words = read_words(connection, 1)?;
    Some(u32::from(words[0].to_ne_bytes()[0]) != ESTABLISHED)
}

/// Returns whether the peer's kernel has acknowledged all bytes that were sent on a connection. This also works after
/// the connection has ended. `None` if it is not a TCP connection, or if the kernel is older than 4.19.
#[must_use]
pub fn has_peer_received_all(connection: impl AsFd) -> Option<bool> {
    let words = read_words(connection, WORDS)?;
    let number = |at: usize| {
        let [low, high] = match cfg!(target_endian = "little") {
            true => [words[at], words[at + 1]],
            false => [words[at + 1], words[at]],
        };
        u64::from(high) << 32 | u64::from(low)
    };
    let sent = number(BYTES_SENT).saturating_sub(number(BYTES_RETRANS));
    // The first byte that the kernel counts as acknowledged is that of the handshake.
    Some(number(BYTES_ACKED) >= sent)
}

/// Reads at least `least` words of `struct tcp_info`; `None` if the kernel returns fewer.
fn read_words(connection: impl AsFd, least: usize) -> Option<[u32; WORDS]> {
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
    (failed == 0 && length as usize >= 4 * least).then_some(words)
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

    #[test]
    fn a_request_that_the_peer_took_is_told_from_one_that_crossed_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pair = || {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            client.write_all(b"one").unwrap();
            server.read_exact(&mut [0; 3]).unwrap();
            server.write_all(b"answer").unwrap();
            client.read_exact(&mut [0; 6]).unwrap();
            (client, server)
        };
        let (mut client, mut server) = pair();
        assert_eq!(is_closed_by_peer(&client), Some(false));
        client.write_all(b"two").unwrap();
        server.read_exact(&mut [0; 3]).unwrap();
        drop(server);
        assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
        assert_eq!(has_peer_received_all(&client), Some(true));
        let (mut client, server) = pair();
        drop(server);
        // The end arrives before the request is sent.
        assert_eq!(client.peek(&mut [0]).unwrap(), 0);
        assert_eq!(is_closed_by_peer(&client), Some(true));
        client.write_all(b"two").unwrap();
        let _ = client.read(&mut [0; 9]);
        assert_eq!(has_peer_received_all(&client), Some(false));
    }
}

//! Lists the sockets of this thread's network namespace with their queues (sock_diag(7)). Module `waits` assigns the
//! sockets to servers and interprets their queues.

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use rustix::net::{recv, send, socket_with};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// States of TCP sockets (include/net/tcp_states.h).
const ESTABLISHED: u8 = 1;
const CONNECTING: u8 = 2;
const LISTENING: u8 = 10;
/// Maximum size of one netlink message from the kernel in bytes. The kernel uses a page or 32 KiB, whichever is larger
/// (netlink(7)).
const BUFFER: usize = 64 << 10;
/// Time limit for receiving one part of the list.
const PATIENCE: Duration = Duration::from_secs(1);
/// Protocol number IPPROTO_TCP.
const TCP: u8 = 6;

/// State of a TCP socket, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// The socket listens for connections.
    Listening,
    /// The connection is being established.
    Connecting,
    /// The connection is established.
    Established,
}

/// A TCP socket of the kernel's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    pub state: TcpState,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub inode: u32,
    /// Id of the user who created the socket.
    pub user: u32,
    /// Number of bytes that were received but not read.
    pub unread: u32,
    /// Number of bytes that were written but not acknowledged by the peer.
    pub unacknowledged: u32,
    /// Whether the socket may be waiting for an answer, because it sent data after it last received data, or has never
    /// received data.
    pub asked: bool,
}

/// A UNIX stream socket of the kernel's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unix {
    pub inode: u32,
    /// Inode of the peer socket; 0 until the connection is accepted.
    pub peer: u32,
    /// Path of the socket; `None` without a path. An accepted socket has the path of its listener.
    pub path: Option<String>,
    pub listening: bool,
    /// Inodes of the sockets whose connections are not yet accepted; only for a listener.
    pub pending: Vec<u32>,
    /// Number of bytes that were received but not read.
    pub unread: u32,
}

/// Lists TCP sockets that listen, are connecting or are connected.
///
/// # Errors
/// The kernel refuses the request or does not support sock_diag.
pub fn list_tcp() -> io::Result<Vec<Tcp>> {
    let mut found = Vec::new();
    for family in [
        libc_family(AddressFamily::INET),
        libc_family(AddressFamily::INET6),
    ] {
        let states: u32 = 1 << ESTABLISHED | 1 << CONNECTING | 1 << LISTENING;
        // Bit N-1 requests attribute N; INET_DIAG_INFO is attribute 2.
        let mut body = vec![family, TCP, 1 << 1, 0];
        body.extend(states.to_ne_bytes());
        body.extend([0; 48]);
        for message in dump(&body)? {
            found.extend(read_tcp(&message));
        }
    }
    Ok(found)
}

/// Lists UNIX stream sockets that listen or are connected.
///
/// # Errors
/// The kernel refuses the request or does not support sock_diag.
pub fn list_unix() -> io::Result<Vec<Unix>> {
    /// Flags that request names, peers, pending connections and queues (UDIAG_SHOW_*).
    const SHOW: u32 = 1 | 4 | 8 | 16;
    let states: u32 = 1 << ESTABLISHED | 1 << LISTENING;
    let mut body = vec![libc_family(AddressFamily::UNIX), 0, 0, 0];
    for word in [states, 0, SHOW, 0, 0] {
        body.extend(word.to_ne_bytes());
    }
    let messages = dump(&body)?;
    Ok(messages
        .iter()
        .filter_map(|message| read_unix(message))
        .collect())
}

fn libc_family(family: AddressFamily) -> u8 {
    family.as_raw() as u8
}

/// Requests a list (SOCK_DIAG_BY_FAMILY), and returns its messages without their headers.
fn dump(body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    const BY_FAMILY: u16 = 20;
    /// Flags of the request: NLM_F_REQUEST and NLM_F_DUMP.
    const FLAGS: u16 = 0x301;
    let socket: OwnedFd = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    let mut request = Vec::with_capacity(16 + body.len());
    request.extend((16 + body.len() as u32).to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(FLAGS.to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
    send(&socket, &request, SendFlags::empty())?;
    let mut found = Vec::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        let (_, length) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        match split_messages(&buffer[..length.min(BUFFER)], &mut found)? {
            true => {}
            false => return Ok(found),
        }
    }
}

/// Adds the messages of one part of a list. Returns whether more parts follow.
fn split_messages(mut bytes: &[u8], found: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    if bytes.is_empty() {
        return Ok(false);
    }
    while let (Some(length), Some(kind)) = (word(bytes, 0), half(bytes, 4)) {
        let length = length as usize;
        let Some(message) = bytes.get(16..length) else {
            return Ok(false);
        };
        match kind {
            DONE => return Ok(false),
            ERROR => {
                let number = word(message, 0).map_or(0, |number| (number as i32).wrapping_neg());
                return Err(io::Error::from_raw_os_error(number));
            }
            _ => found.push(message.to_vec()),
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

/// Returns the attributes of a message, which start at offset `at`, each with its type and bytes.
fn attributes(bytes: &[u8], at: usize) -> Vec<(u16, &[u8])> {
    let mut rest = bytes.get(at..).unwrap_or_default();
    let mut found = Vec::new();
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let length = usize::from(length);
        let Some(value) = rest.get(4..length) else {
            break;
        };
        found.push((kind, value));
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// Parses a `struct inet_diag_msg` (include/uapi/linux/inet_diag.h).
fn read_tcp(message: &[u8]) -> Option<Tcp> {
    const INFO: u16 = 2;
    /// Length of the structure in bytes, after which the attributes follow.
    const LENGTH: usize = 72;
    let state = match *message.get(1)? {
        ESTABLISHED => TcpState::Established,
        CONNECTING => TcpState::Connecting,
        LISTENING => TcpState::Listening,
        _ => return None,
    };
    let family = *message.first()?;
    let address = |port: usize, ip: usize| {
        let port = u16::from_be_bytes(message.get(port..port + 2)?.try_into().ok()?);
        let ip: IpAddr = match family == libc_family(AddressFamily::INET) {
            true => <[u8; 4]>::try_from(message.get(ip..ip + 4)?).ok()?.into(),
            false => {
                let ip: [u8; 16] = message.get(ip..ip + 16)?.try_into().ok()?;
                Ipv6Addr::from(ip).to_canonical()
            }
        };
        Some(SocketAddr::new(ip, port))
    };
    let attributes = attributes(message, LENGTH);
    let info = attributes.iter().find(|(kind, _)| *kind == INFO);
    // Fields of struct tcp_info: milliseconds since data was last sent and received, and total bytes received.
    let asked = info.is_some_and(|(_, info)| {
        let came = word(info, 128).zip(word(info, 132));
        let later = word(info, 44).zip(word(info, 52));
        came == Some((0, 0)) || later.is_some_and(|(sent, received)| sent < received)
    });
    Some(Tcp {
        state,
        local: address(4, 8)?,
        remote: address(6, 24)?,
        inode: word(message, 68)?,
        user: word(message, 64)?,
        unread: word(message, 56)?,
        unacknowledged: word(message, 60)?,
        asked,
    })
}

/// Parses a `struct unix_diag_msg` (include/uapi/linux/unix_diag.h).
fn read_unix(message: &[u8]) -> Option<Unix> {
    const STREAM: u8 = 1;
    const LENGTH: usize = 16;
    if *message.get(1)? != STREAM {
        return None;
    }
    let mut found = Unix {
        inode: word(message, 4)?,
        listening: *message.get(2)? == LISTENING,
        ..Unix::default()
    };
    for (kind, value) in attributes(message, LENGTH) {
        match kind {
            0 if !value.is_empty() => {
                let end = value.iter().skip(1).position(|byte| *byte == 0);
                let name = &value[..end.map_or(value.len(), |end| end + 1)];
                // The name of an abstract socket starts with a zero byte.
                found.path = Some(String::from_utf8_lossy(name).replace('\0', "@"));
            }
            2 => found.peer = word(value, 0)?,
            3 => {
                let words = value.chunks_exact(4).filter_map(|bytes| word(bytes, 0));
                found.pending = words.collect();
            }
            4 => found.unread = word(value, 0)?,
            _ => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn both_ends_of_a_connection_are_listed_with_what_is_unread() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let (server, _) = listener.accept().unwrap();
        client.write_all(b"question").unwrap();
        let all = list_tcp().unwrap();
        let of = |local: SocketAddr| all.iter().filter(move |one| one.local == local);
        let states: Vec<TcpState> = of(address).map(|one| one.state).collect();
        assert!(states.contains(&TcpState::Listening) && states.contains(&TcpState::Established));
        let accepted = of(address).find(|one| one.state == TcpState::Established);
        let accepted = accepted.unwrap();
        assert_eq!(
            (accepted.unread, accepted.remote),
            (8, client.local_addr().unwrap())
        );
        let own = of(client.local_addr().unwrap()).next().unwrap();
        assert_eq!((own.remote, own.unread), (address, 0));
        assert!(own.inode > 0 && own.inode != accepted.inode);
        drop(server);
    }

    #[test]
    fn the_other_end_of_a_local_socket_is_known_before_and_after_it_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let name = path.to_str().unwrap();
        let listed = |all: &[Unix]| {
            let one = all
                .iter()
                .find(|one| one.listening && one.path.as_deref() == Some(name));
            one.unwrap().clone()
        };
        let before = listed(&list_unix().unwrap());
        assert_eq!(before.pending.len(), 1, "{before:?}");
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(b"answer").unwrap();
        let all = list_unix().unwrap();
        assert!(listed(&all).pending.is_empty());
        let own = all
            .iter()
            .find(|one| one.inode == before.pending[0])
            .unwrap();
        assert_eq!(own.unread, 6, "{own:?}");
        let other = all.iter().find(|one| one.inode == own.peer).unwrap();
        assert_eq!(other.path.as_deref(), Some(name));
        drop(client);
    }

    #[test]
    fn a_list_that_is_cut_short_is_no_list() {
        assert!(read_tcp(&[2, 1, 0]).is_none());
        assert!(read_unix(&[1, 1]).is_none());
        assert!(attributes(&[200, 0, 1, 0, 5], 0).is_empty());
        let mut found = Vec::new();
        assert!(!split_messages(&[255, 0, 0, 0, 20, 0], &mut found).unwrap());
        assert!(found.is_empty());
    }
}

//! Non-blocking connections to a server, plain or with TLS.

use crate::tls::Tls;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, connect, recv, socket_with};
use rustls::ClientConnection;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A non-blocking connection to a server, plain or with TLS.
pub struct Stream {
    pub tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

/// Reason why a connection ended.
#[derive(Debug)]
pub enum Broken {
    Io(io::Error),
    Tls(rustls::Error),
    /// The server does not support the requested protocol. Contains a description for users.
    Protocol(&'static str),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rustls::Error> for Broken {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error)
    }
}

const NO_HTTP2: &str =
    "the server does not agree to HTTP/2 (ALPN): leave HTTP/2 out, or enable it there";

impl Broken {
    /// Replaces the error if only HTTP/2 was offered. A server without HTTP/2 refuses the handshake (RFC 7301, section
    /// 3.2) or, like Apache, selects a protocol that was not offered.
    pub fn offering_http2(self) -> Self {
        use rustls::{AlertDescription, Error, PeerMisbehaved};
        match self {
            Self::Tls(
                Error::AlertReceived(AlertDescription::NoApplicationProtocol)
                | Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol),
            ) => Self::Protocol(NO_HTTP2),
            other => other,
        }
    }
}

/// What a read from a connection returned.
pub enum ReadOutcome {
    /// Number of bytes read into the buffer, and whether these were all available bytes.
    Bytes(usize, bool),
    /// Number of bytes discarded in the kernel, and whether these were all available bytes.
    Skipped(u64, bool),
    /// No bytes are available now.
    Nothing,
    /// The server has closed its side of the connection.
    End,
}

impl Stream {
    /// Starts a connection. The socket becomes writable on success or failure; `TcpStream::take_error`
    /// distinguishes them.
    pub fn begin(address: &SocketAddr, tls: Option<&Tls>) -> Result<Self, Broken> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket =
            socket_with(family, SocketType::STREAM, flags, None).map_err(io::Error::from)?;
        match connect(&socket, address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let tcp = TcpStream::from(socket);
        // A request must not wait for the acknowledgement of the previous one (Nagle).
        tcp.set_nodelay(true)?;
        let tls = match tls {
            None => None,
            Some(tls) => {
                let mut connection = ClientConnection::new(tls.config.clone(), tls.name.clone())?;
                connection.set_buffer_limit(None);
                Some(Box::new(connection))
            }
        };
        Ok(Self { tcp, tls })
    }

    /// Continues the TLS handshake. Returns whether the handshake is complete; always true without TLS.
    pub fn shake_hands(&mut self) -> Result<bool, Broken> {
        let Some(tls) = &mut self.tls else {
            return Ok(true);
        };
        loop {
            while tls.wants_write() {
                match tls.write_tls(&mut self.tcp) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
            }
            if !tls.is_handshaking() {
                return Ok(true);
            }
            match tls.read_tls(&mut self.tcp) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(_) => {
                    if let Err(error) = tls.process_new_packets() {
                        // The alert informs the server.
                        let _ = tls.write_tls(&mut self.tcp);
                        return Err(error.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Checks that the handshake negotiated HTTP/2. Without TLS nothing is checked, because the user requested HTTP/2.
    pub fn agreed_on_http2(&self) -> Result<(), Broken> {
        match self.tls.as_ref().map(|tls| tls.alpn_protocol()) {
            None | Some(Some(b"h2")) => Ok(()),
            Some(_) => Err(Broken::Protocol(NO_HTTP2)),
        }
    }

    /// Returns whether a TLS session was resumed.
    pub fn resumed(&self) -> bool {
        let kind = self.tls.as_ref().and_then(|tls| tls.handshake_kind());
        kind == Some(rustls::HandshakeKind::Resumed)
    }

    /// Sends as much of `bytes` as possible, and returns the number of accepted bytes. With TLS, all bytes are accepted
    /// and buffered; [`Stream::flush`] returns whether they were sent.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let written = match &mut self.tls {
            None => rustix::io::write(&self.tcp, bytes).map_err(io::Error::from),
            Some(tls) => tls.writer().write(bytes),
        };
        match written {
            Ok(n) => Ok(n),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends buffered bytes. Returns whether all of them were sent.
    pub fn flush(&mut self) -> Result<bool, Broken> {
        let Some(tls) = &mut self.tls else {
            return Ok(true);
        };
        while tls.wants_write() {
            match tls.write_tls(&mut self.tcp) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Reads available bytes. Without TLS, up to `uninteresting` bytes are discarded in the kernel (`MSG_TRUNC`,
    /// tcp(7)), which avoids a copy. With TLS, all bytes must be decrypted into the buffer.
    pub fn read(&mut self, buffer: &mut [u8], uninteresting: u64) -> Result<ReadOutcome, Broken> {
        if let Some(tls) = &mut self.tls {
            return read_tls(tls, &mut self.tcp, buffer);
        }
        let most = usize::try_from(uninteresting)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let came = match uninteresting {
            0 => rustix::io::read(&self.tcp, &mut buffer[..FIRST]).map(|n| (n, FIRST)),
            _ => recv(&self.tcp, &mut buffer[..most], RecvFlags::TRUNC).map(|(_, n)| (n, most)),
        };
        match came {
            Ok((0, _)) => Ok(ReadOutcome::End),
            Ok((n, asked)) if uninteresting == 0 => Ok(ReadOutcome::Bytes(n, n < asked)),
            Ok((n, asked)) => Ok(ReadOutcome::Skipped(n as u64, n < asked)),
            Err(rustix::io::Errno::AGAIN) => Ok(ReadOutcome::Nothing),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Closes the connection with a reset. A normal close would leave thousands of connections in TIME_WAIT, until the
    /// local ports are used up. This would be a limit of the generator and not of the server.
    pub fn cut(self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.tcp, Some(Duration::ZERO));
    }
}

/// Maximum bytes per read if the bytes may contain a head.
const FIRST: usize = 32 << 10;
/// Maximum number of bytes that are discarded at once. The buffer has this size, but without TLS its pages beyond
/// [`FIRST`] are never touched.
pub const BUFFER: usize = 1 << 20;

/// Number of TLS bytes per read from the kernel. rustls alone would read only 4 KiB at a time.
const RECORDS: usize = 64 << 10;

/// Maximum length of a TLS record in bytes: 16 KiB of data (RFC 8446, section 5.1), plus overhead.
const LONGEST_RECORD: usize = 17 << 10;

/// Reads from a TLS connection. Decrypted data is written to the front of the buffer, encrypted data to its second
/// half.
fn read_tls(
    tls: &mut ClientConnection,
    tcp: &mut TcpStream,
    buffer: &mut [u8],
) -> Result<ReadOutcome, Broken> {
    let half = buffer.len() / 2;
    let (plain, records) = buffer.split_at_mut(half);
    // Leaves room for the decrypted content, including the rest of an earlier record.
    let asked = RECORDS.min(half.saturating_sub(LONGEST_RECORD));
    loop {
        match take_plain(tls, plain)? {
            Plain::End => return Ok(ReadOutcome::End),
            Plain::Bytes(0) => {}
            Plain::Bytes(n) => return Ok(ReadOutcome::Bytes(n, false)),
        }
        // Errors in earlier bytes are reported after all valid data before them.
        tls.process_new_packets()?;
        let came = match tcp.read(&mut records[..asked]) {
            Ok(came) => came,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(ReadOutcome::Nothing);
            }
            Err(error) => return Err(error.into()),
        };
        let mut left = &records[..came];
        if left.is_empty() {
            // Tells rustls that the stream has ended.
            tls.read_tls(&mut left)?;
            continue;
        }
        let (mut all, mut more) = (0, came == asked);
        while !left.is_empty() {
            tls.read_tls(&mut left)?;
            match tls.process_new_packets() {
                Ok(state) => more |= state.peer_has_closed(),
                Err(_) if all > 0 => return Ok(ReadOutcome::Bytes(all, false)),
                Err(error) => return Err(error.into()),
            }
            match take_plain(tls, &mut plain[all..])? {
                Plain::Bytes(n) => all += n,
                Plain::End => break,
            }
        }
        if all > 0 {
            return Ok(ReadOutcome::Bytes(all, !more));
        }
    }
}

enum Plain {
    Bytes(usize),
    End,
}

/// Moves all decrypted data into the buffer.
fn take_plain(tls: &mut ClientConnection, buffer: &mut [u8]) -> Result<Plain, Broken> {
    let mut all = 0;
    loop {
        match tls.reader().read(&mut buffer[all..]) {
            Ok(0) if all > 0 || buffer.is_empty() => return Ok(Plain::Bytes(all)),
            Ok(0) => return Ok(Plain::End),
            Ok(n) => all += n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Plain::Bytes(all));
            }
            // Closed without close_notify: the data is truncated or ends here.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(match all {
                    0 => Plain::End,
                    all => Plain::Bytes(all),
                });
            }
            Err(error) => return Err(error.into()),
        }
    }
}

//! Bytes to and from a server, plain or through TLS. Nothing here waits.

use crate::tls::Tls;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, connect, recv, socket_with};
use rustls::ClientConnection;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection.
pub struct Stream {
    pub tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

/// Why a stream does not go on.
#[derive(Debug)]
pub enum Broken {
    Io(io::Error),
    Tls(rustls::Error),
    /// The server does not speak what was asked for.
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
    /// The same, where HTTP/2 alone was offered: a server without it refuses the handshake (RFC 7301,
    /// section 3.2), or chooses what was not offered, as Apache does.
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

/// What a read brought.
pub enum ReadOutcome {
    /// So many bytes are in the buffer; whether all of what is there now was taken.
    Bytes(usize, bool),
    /// So many bytes were thrown away.
    Skipped(u64, bool),
    /// Nothing is there now.
    Nothing,
    /// The end.
    End,
}

impl Stream {
    /// Begins a connection. It is writable when it is there or has failed; `TcpStream::take_error`
    /// tells which.
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
        // A request must not wait for the answer to the one before (Nagle).
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

    /// Goes on with the handshake; whether it is over. At once without TLS.
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
                        // The alert tells the server why.
                        let _ = tls.write_tls(&mut self.tcp);
                        return Err(error.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether HTTP/2 was agreed on in the handshake; without TLS it is known before.
    pub fn agreed_on_http2(&self) -> Result<(), Broken> {
        match self.tls.as_ref().map(|tls| tls.alpn_protocol()) {
            None | Some(Some(b"h2")) => Ok(()),
            Some(_) => Err(Broken::Protocol(NO_HTTP2)),
        }
    }

    /// Whether the session of an earlier connection was continued.
    pub fn resumed(&self) -> bool {
        let kind = self.tls.as_ref().and_then(|tls| tls.handshake_kind());
        kind == Some(rustls::HandshakeKind::Resumed)
    }

    /// Sends what it can of `bytes`; how many were taken. With TLS all are, and [`Stream::flush`] tells
    /// whether they have left.
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

    /// Whether everything has left.
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

    /// Takes what is there. Up to `uninteresting` bytes that nobody looks at are thrown away in the
    /// kernel (`MSG_TRUNC`, tcp(7)); they are received like others and cost no copy. Through TLS they are
    /// decrypted and put into the buffer.
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

    /// Closes with a reset: the waiting states (TIME_WAIT) of thousands of connections would use up the
    /// local ports of this machine, which is a limit of the generator and not of the server.
    pub fn cut(self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.tcp, Some(Duration::ZERO));
    }
}

/// Bytes that are read where a head or something else of interest is expected.
const FIRST: usize = 32 << 10;
/// Bytes that are thrown away at once. The buffer is as large, and its pages are never touched beyond
/// [`FIRST`] without TLS.
pub const BUFFER: usize = 1 << 20;

/// Bytes of TLS that are taken from the kernel at once: rustls by itself asks for 4 KiB.
const RECORDS: usize = 64 << 10;

/// A record holds at most 16 KiB (RFC 8446, section 5.1).
const LONGEST_RECORD: usize = 17 << 10;

/// What is plain goes to the front of the buffer, and what is not to its second half.
fn read_tls(
    tls: &mut ClientConnection,
    tcp: &mut TcpStream,
    buffer: &mut [u8],
) -> Result<ReadOutcome, Broken> {
    let half = buffer.len() / 2;
    let (plain, records) = buffer.split_at_mut(half);
    // What these hold when they are decrypted, with the rest of a record that came before, has room.
    let asked = RECORDS.min(half.saturating_sub(LONGEST_RECORD));
    loop {
        match take_plain(tls, plain)? {
            Plain::End => return Ok(ReadOutcome::End),
            Plain::Bytes(0) => {}
            Plain::Bytes(n) => return Ok(ReadOutcome::Bytes(n, false)),
        }
        // What was wrong with earlier bytes, after all that was good before it.
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
            // It knows then that this is the end.
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

/// All that is decrypted.
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
            // Closed without a notice (close_notify): what came is cut short, or ends here.
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

//! Remote procedure calls over TCP (RFC 5531), with the user and group of AUTH_SYS.

use super::xdr::{Arguments, Results};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Time limit for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Time limit for sending a call, and for its whole reply. A server that sends single bytes does not extend the limit.
const REPLY_LIMIT: Duration = Duration::from_secs(60);
/// Maximum duration of one system call, so that an interruption by the user is noticed.
const STOP_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum length of a reply in bytes.
const LONGEST: usize = 8 << 20;
/// Ports that only root may use. Servers refuse others unless the export is `insecure`.
const LOW_PORTS: std::ops::RangeInclusive<u16> = 600..=1023;

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum CallError {
    /// The connection failed.
    Io(io::Error),
    /// The server does not know the program or its version.
    NoProgram,
    /// The server does not accept the user, or the port of the client.
    Auth(u32),
    /// The reply is damaged, or the server could not decode the call.
    Damaged,
    /// The user interrupted.
    Stopped,
}

impl From<io::Error> for CallError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A procedure: program, version and number.
pub(super) type Procedure = (u32, u32, u32);

/// User and group of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub uid: u32,
    pub gid: u32,
}

/// A connection to one program of a server.
pub(super) struct RpcConnection {
    stream: TcpStream,
    caller: Caller,
    next: u32,
    /// [`REPLY_LIMIT`], or less in tests.
    limit: Duration,
}

impl RpcConnection {
    /// Connects; as root from a low port.
    pub fn open(address: SocketAddr, caller: Caller) -> Result<Self, CallError> {
        let low = match rustix::process::geteuid().is_root() {
            true => connect_from_low_port(address)?,
            false => None,
        };
        let stream = match low {
            Some(stream) => stream,
            None => TcpStream::connect_timeout(&address, CONNECT)?,
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STOP_INTERVAL))?;
        stream.set_write_timeout(Some(STOP_INTERVAL))?;
        Ok(Self {
            stream,
            caller,
            next: std::process::id(),
            limit: REPLY_LIMIT,
        })
    }

    /// Calls a procedure and waits for its results.
    pub fn call(
        &mut self,
        procedure: Procedure,
        arguments: &Arguments,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, CallError> {
        let asked = self.send(procedure, arguments, stop)?;
        let end = Instant::now() + self.limit;
        loop {
            let (answered, results) = self.receive_until(end, stop)?;
            if answered == asked {
                return Ok(results);
            }
        }
    }

    /// Sends a call; returns its number.
    pub fn send(
        &mut self,
        procedure: Procedure,
        arguments: &Arguments,
        stop: &dyn Fn() -> bool,
    ) -> Result<u32, CallError> {
        self.next = self.next.wrapping_add(1);
        let (program, version, number) = procedure;
        let credential = Arguments::default()
            .number(0)
            .bytes(b"assay")
            .number(self.caller.uid)
            .number(self.caller.gid)
            .number(0);
        let head = Arguments::default()
            .number(self.next)
            .number(0)
            .number(2)
            .number(program)
            .number(version)
            .number(number)
            .number(1)
            .bytes(&credential.0)
            .number(0)
            .number(0);
        let length = head.0.len() + arguments.0.len();
        let last = 1 << 31 | u32::try_from(length).unwrap_or(0);
        let mut record = Vec::with_capacity(4 + length);
        record.extend(last.to_be_bytes());
        record.extend(&head.0);
        record.extend(&arguments.0);
        self.write_until(&record, Instant::now() + self.limit, stop)?;
        Ok(self.next)
    }

    fn write_until(
        &mut self,
        mut bytes: &[u8],
        end: Instant,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), CallError> {
        while !bytes.is_empty() {
            check_time(end, stop)?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if is_temporary(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Receives the next reply: the number of its call, and the results.
    pub fn receive(&mut self, stop: &dyn Fn() -> bool) -> Result<(u32, Vec<u8>), CallError> {
        self.receive_until(Instant::now() + self.limit, stop)
    }

    fn receive_until(
        &mut self,
        end: Instant,
        stop: &dyn Fn() -> bool,
    ) -> Result<(u32, Vec<u8>), CallError> {
        let mut record = Vec::new();
        loop {
            let mut head = [0; 4];
            self.fill(&mut head, end, stop)?;
            let head = u32::from_be_bytes(head);
            let length = (head & !(1 << 31)) as usize;
            let begin = record.len();
            if begin + length > LONGEST {
                return Err(CallError::Damaged);
            }
            record.resize(begin + length, 0);
            self.fill(&mut record[begin..], end, stop)?;
            if head >> 31 == 1 {
                break;
            }
        }
        let mut reply = Results(&record);
        let number = reply.number().ok_or(CallError::Damaged)?;
        check_reply(&mut reply)?;
        let rest = record.len() - reply.0.len();
        Ok((number, record.split_off(rest)))
    }

    fn fill(
        &mut self,
        bytes: &mut [u8],
        end: Instant,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), CallError> {
        let mut done = 0;
        while done < bytes.len() {
            check_time(end, stop)?;
            match self.stream.read(&mut bytes[done..]) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(got) => done += got,
                Err(error) if is_temporary(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Fails if the user interrupted, or if the time is over.
fn check_time(end: Instant, stop: &dyn Fn() -> bool) -> Result<(), CallError> {
    if stop() {
        return Err(CallError::Stopped);
    }
    match Instant::now() >= end {
        true => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        false => Ok(()),
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}

/// Reads the head of a reply up to the results.
fn check_reply(reply: &mut Results) -> Result<(), CallError> {
    let mut next = || reply.number().ok_or(CallError::Damaged);
    if next()? != 1 {
        return Err(CallError::Damaged);
    }
    if next()? != 0 {
        return Err(match next()? {
            1 => CallError::Auth(next()?),
            _ => CallError::Damaged,
        });
    }
    next()?;
    reply.bytes(400).ok_or(CallError::Damaged)?;
    match reply.number().ok_or(CallError::Damaged)? {
        0 => Ok(()),
        1 | 2 => Err(CallError::NoProgram),
        _ => Err(CallError::Damaged),
    }
}

/// Connects from a port that only root may use; `None` if this machine allows none.
fn connect_from_low_port(address: SocketAddr) -> io::Result<Option<TcpStream>> {
    let (family, any): (_, IpAddr) = match address {
        SocketAddr::V4(_) => (AddressFamily::INET, Ipv4Addr::UNSPECIFIED.into()),
        SocketAddr::V6(_) => (AddressFamily::INET6, Ipv6Addr::UNSPECIFIED.into()),
    };
    for port in LOW_PORTS.rev() {
        let end = socket(family, SocketType::STREAM, None)?;
        set_socket_timeout(&end, Timeout::Send, Some(CONNECT))?;
        match bind(&end, &SocketAddr::new(any, port)) {
            Ok(()) => {}
            Err(rustix::io::Errno::ADDRINUSE) => continue,
            Err(_) => return Ok(None),
        }
        match connect(&end, &address) {
            Ok(()) => return Ok(Some(TcpStream::from(end))),
            // An earlier connection from this port is not forgotten yet.
            Err(rustix::io::Errno::ADDRNOTAVAIL | rustix::io::Errno::ADDRINUSE) => {}
            // The time limit.
            Err(rustix::io::Errno::INPROGRESS) => {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_without_results_are_distinguished() {
        let reply = |numbers: &[u32]| {
            let all = numbers
                .iter()
                .fold(Arguments::default(), |all, one| all.number(*one));
            check_reply(&mut Results(&all.0))
        };
        assert!(reply(&[1, 0, 0, 0, 0]).is_ok());
        assert!(matches!(
            reply(&[1, 0, 0, 0, 2, 4, 4]),
            Err(CallError::NoProgram)
        ));
        assert!(matches!(reply(&[1, 1, 1, 5]), Err(CallError::Auth(5))));
        assert!(matches!(reply(&[1, 0, 0]), Err(CallError::Damaged)));
        assert!(matches!(reply(&[0, 0, 0, 0, 0]), Err(CallError::Damaged)));
    }

    /// Connects to a server that sends these bytes again and again, one every 10 ms.
    fn trickling(bytes: &'static [u8]) -> RpcConnection {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            for byte in bytes.iter().cycle() {
                if peer.write_all(&[*byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        RpcConnection {
            stream: TcpStream::connect(address).unwrap(),
            caller: Caller { uid: 0, gid: 0 },
            next: 0,
            limit: Duration::from_millis(500),
        }
    }

    #[test]
    fn attack_a_server_that_sends_single_bytes_ends_at_the_limit() {
        // The parts of a long record, and empty parts without a last one.
        for bytes in [&[0, 1, 0, 0][..], &[0]] {
            let result = trickling(bytes).call((1, 1, 1), &Arguments::default(), &|| false);
            let Err(CallError::Io(error)) = result else {
                panic!("{result:?}");
            };
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            let mut stopped = trickling(bytes);
            stopped.limit = REPLY_LIMIT;
            let begin = Instant::now();
            let stop = || begin.elapsed() > Duration::from_millis(200);
            let result = stopped.call((1, 1, 1), &Arguments::default(), &stop);
            assert!(matches!(result, Err(CallError::Stopped)), "{result:?}");
        }
    }
}

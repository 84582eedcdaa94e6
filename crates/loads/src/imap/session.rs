//! One IMAP session over a socket.

use super::ImapRequest;
use super::server_replies::{LineBuffer, Login, Next, TooLong};
use crate::Cancel;
use crate::connect;
use crate::measured::{LOOK, LoadError};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// An IMAP session after the sign-in.
pub struct ImapSession(Line);

/// Signs in; returns `None` when cancelled.
pub fn login(
    request: &ImapRequest,
    addresses: &[SocketAddr],
    start: Instant,
    cancel: &Cancel,
) -> Result<Option<ImapSession>, LoadError> {
    let deadline = start + Duration::from(request.timing.limit);
    let Some(mut line) = Line::connect(request, addresses, deadline, cancel)? else {
        return Ok(None);
    };
    match line.login(request, cancel) {
        Ok(()) => Ok(Some(ImapSession(line))),
        Err(Stop::Cancelled) => Ok(None),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Io(source)) => Err(LoadError::Connection {
            address: request.address.clone(),
            source,
        }),
        Err(Stop::Late) => Err(LoadError::TimedOut {
            what: format!("IMAP login at {}", request.address),
            limit: request.timing.limit,
        }),
    }
}

impl ImapSession {
    /// Sends LOGOUT, and waits a short time until the server closes the connection. Returns the total number of
    /// received bytes.
    pub fn logout(mut self) -> u64 {
        let line = &mut self.0;
        line.deadline = Instant::now() + Duration::from_secs(1);
        let never = Cancel::default();
        if line.stream.write_all(b"a2 LOGOUT\r\n").is_ok() {
            while line
                .next(&never)
                .is_ok_and(|answer| !answer.starts_with("a2 "))
            {}
        }
        line.received
    }
}

/// Reason why a sign-in ended early.
enum Stop {
    Cancelled,
    Late,
    Io(io::Error),
    Failed(LoadError),
}

struct Line {
    stream: TcpStream,
    lines: LineBuffer,
    deadline: Instant,
    received: u64,
}

impl Line {
    fn connect(
        request: &ImapRequest,
        addresses: &[SocketAddr],
        deadline: Instant,
        cancel: &Cancel,
    ) -> Result<Option<Self>, LoadError> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match connect::wait(address, deadline, cancel) {
                Ok(stream) => {
                    return Ok(Some(Self {
                        stream,
                        lines: LineBuffer::default(),
                        deadline,
                        received: 0,
                    }));
                }
                Err(error) => last = error,
            }
        }
        if cancel.is_cancelled() {
            return Ok(None);
        }
        Err(match last.kind() {
            io::ErrorKind::TimedOut => LoadError::TimedOut {
                what: format!("connection to {}", request.address),
                limit: request.timing.limit,
            },
            _ => LoadError::NotListening {
                address: request.address.clone(),
                source: last,
            },
        })
    }

    fn login(&mut self, request: &ImapRequest, cancel: &Cancel) -> Result<(), Stop> {
        let mut login = Login::new(request.user.as_bytes(), &request.password.0);
        loop {
            let answer = self.next(cancel)?;
            match login.take(&answer) {
                Next::Wait => {}
                Next::Send(bytes) => self.stream.write_all(&bytes).map_err(Stop::Io)?,
                Next::Done => return Ok(()),
                Next::Refused(answer) => {
                    return Err(Stop::Failed(LoadError::LoginRefused {
                        address: request.address.clone(),
                        answer,
                    }));
                }
                Next::Wrong { answer, expected } => {
                    return Err(Stop::Failed(LoadError::WrongAnswer {
                        what: request.address.clone(),
                        why: format!("answered `{answer}`, expected {expected}"),
                    }));
                }
            }
        }
    }

    /// Returns the next line without its end.
    fn next(&mut self, cancel: &Cancel) -> Result<String, Stop> {
        loop {
            let line = self.lines.next().map_err(|TooLong| {
                Stop::Failed(LoadError::WrongAnswer {
                    what: "IMAP server".to_owned(),
                    why: "a line of more than 64 KiB".to_owned(),
                })
            })?;
            if let Some(line) = line {
                return Ok(line);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if cancel.is_cancelled() {
                return Err(Stop::Cancelled);
            }
            if left.is_zero() {
                return Err(Stop::Late);
            }
            let slice = left.clamp(Duration::from_millis(1), LOOK);
            self.stream
                .set_read_timeout(Some(slice))
                .map_err(Stop::Io)?;
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(Stop::Io(io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => {
                    self.received += n as u64;
                    self.lines.push(&bytes[..n]);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::Interrupted => {}
                    _ => return Err(Stop::Io(error)),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_password_is_in_no_debug_output() {
        let secret = super::super::Secret::new("hunter2");
        assert!(!format!("{secret:?}").contains("hunter2"));
    }
}

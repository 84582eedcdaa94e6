//! One IMAP session: bytes out, lines in.

use super::Request;
use crate::Cancel;
use crate::connect;
use crate::measured::{LOOK, LoadError};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest line taken from a server.
const LONGEST: usize = 64 << 10;

/// A session that is logged in.
pub struct Session(Line);

/// Logs in; `None` when cancelled.
pub fn login(
    request: &Request,
    addresses: &[SocketAddr],
    start: Instant,
    cancel: &Cancel,
) -> Result<Option<Session>, LoadError> {
    let deadline = start + Duration::from(request.timing.limit);
    let Some(mut line) = Line::connect(request, addresses, deadline, cancel)? else {
        return Ok(None);
    };
    match line.login(request, cancel) {
        Ok(()) => Ok(Some(Session(line))),
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

impl Session {
    /// Says goodbye, waits a little for the end, and tells how many bytes came in all.
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

/// Why a login ended early.
enum Stop {
    Cancelled,
    Late,
    Io(io::Error),
    Failed(LoadError),
}

struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
    deadline: Instant,
    received: u64,
}

impl Line {
    fn connect(
        request: &Request,
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
                        buffer: Vec::new(),
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

    fn login(&mut self, request: &Request, cancel: &Cancel) -> Result<(), Stop> {
        let wrong = |answer: &str, expected: &str| {
            Stop::Failed(LoadError::WrongAnswer {
                what: request.address.clone(),
                why: format!("answered `{answer}`, expected {expected}"),
            })
        };
        let greeting = self.next(cancel)?;
        if !greeting.starts_with("* OK") {
            return Err(wrong(&greeting, "an IMAP greeting, `* OK`"));
        }
        for part in command(request.user.as_bytes(), &request.password.0) {
            if let Some(literal) = part.literal {
                self.stream.write_all(&part.bytes).map_err(Stop::Io)?;
                self.until_ready(request, cancel)?;
                self.stream.write_all(&literal).map_err(Stop::Io)?;
            } else {
                self.stream.write_all(&part.bytes).map_err(Stop::Io)?;
            }
        }
        loop {
            let answer = self.next(cancel)?;
            match answer.strip_prefix("a1 ") {
                Some(answer) if answer.starts_with("OK") => return Ok(()),
                Some(answer) => return Err(refused(request, answer)),
                None if answer.starts_with("* BYE") => return Err(refused(request, &answer)),
                None if answer.starts_with("* ") => {}
                None => return Err(wrong(&answer, "`a1 OK`")),
            }
        }
    }

    /// Waits for the server to ask for a literal.
    fn until_ready(&mut self, request: &Request, cancel: &Cancel) -> Result<(), Stop> {
        loop {
            let answer = self.next(cancel)?;
            if answer.starts_with('+') {
                return Ok(());
            }
            if !answer.starts_with("* ") || answer.starts_with("* BYE") {
                return Err(refused(request, &answer));
            }
        }
    }

    /// The next line without its end.
    fn next(&mut self, cancel: &Cancel) -> Result<String, Stop> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
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
                    self.buffer.extend(&bytes[..n]);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::Interrupted => {}
                    _ => return Err(Stop::Io(error)),
                },
            }
            if self.buffer.len() > LONGEST {
                let why = "a line of more than 64 KiB".to_owned();
                let what = "IMAP server".to_owned();
                return Err(Stop::Failed(LoadError::WrongAnswer { what, why }));
            }
        }
    }
}

fn refused(request: &Request, answer: &str) -> Stop {
    Stop::Failed(LoadError::LoginRefused {
        address: request.address.clone(),
        answer: answer.to_owned(),
    })
}

/// What is sent at once; a literal follows when the server says it is ready.
#[derive(Debug, PartialEq)]
struct Part {
    bytes: Vec<u8>,
    literal: Option<Vec<u8>>,
}

/// The LOGIN command in as few parts as the arguments allow.
fn command(user: &[u8], password: &[u8]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut bytes = b"a1 LOGIN".to_vec();
    for argument in [user, password] {
        bytes.push(b' ');
        match quoted(argument) {
            Some(quoted) => bytes.extend(quoted),
            None => {
                bytes.extend(format!("{{{}}}\r\n", argument.len()).as_bytes());
                parts.push(Part {
                    bytes: std::mem::take(&mut bytes),
                    literal: Some(argument.to_vec()),
                });
            }
        }
    }
    bytes.extend(b"\r\n");
    parts.push(Part {
        bytes,
        literal: None,
    });
    parts
}

/// A quoted string (RFC 3501, section 9: `quoted`); only 7-bit text without line ends can be one.
fn quoted(argument: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![b'"'];
    for &byte in argument {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b'\r' | b'\n' | 0 | 0x80.. => return None,
            byte => out.push(byte),
        }
    }
    out.push(b'"');
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_arguments_go_in_one_write() {
        let parts = command(b"ann", b"a \"b\\c");
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].bytes, b"a1 LOGIN \"ann\" \"a \\\"b\\\\c\"\r\n");
    }

    #[test]
    fn others_are_literals() {
        let parts = command("änn".as_bytes(), b"x\ny");
        assert_eq!(parts[0].bytes, b"a1 LOGIN {4}\r\n");
        assert_eq!(parts[0].literal.as_deref(), Some("änn".as_bytes()));
        assert_eq!(parts[1].bytes, b" {3}\r\n");
        assert_eq!(parts[2].bytes, b"\r\n");
    }

    #[test]
    fn a_password_is_in_no_debug_output() {
        let secret = super::super::Secret::new("hunter2");
        assert!(!format!("{secret:?}").contains("hunter2"));
    }
}

//! Logs in over IMAP or SMTP as a mail program does: greeting, capabilities, login; for IMAP also opens the mailbox.

use crate::watch::{PreparedWatch, WatchedServer};
use crate::{Login, LoginError, LoginPart, activity};
use assay_host::resolve;
use assay_http::Tls;
use assay_model::Nanos;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Mail protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// IMAP 4 (RFC 9051).
    Imap,
    /// SMTP submission (RFC 6409).
    Smtp,
}

/// Credentials. `Debug` hides the password.
#[derive(Clone)]
pub struct User {
    /// Name.
    pub name: String,
    /// Password.
    pub password: String,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "User({})", self.name)
    }
}

/// Address of a mail server.
#[derive(Clone, Debug)]
pub struct MailTarget {
    /// Host.
    pub host: String,
    /// Port.
    pub port: u16,
    /// TLS configuration if TLS starts with the first byte (implicit TLS); `None` without it.
    pub tls: Option<Tls>,
}

/// Maximum bytes of a line.
const LONGEST: u64 = 64 << 10;
/// Maximum lines of an answer.
const LINES: usize = 10_000;

/// Logs in once. Without a user, stops before the authentication.
///
/// # Errors
/// The login is refused or exceeds its time limit.
pub fn login(
    protocol: Protocol,
    target: &MailTarget,
    user: Option<&User>,
    server: &WatchedServer,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Login, LoginError> {
    let prepared = PreparedWatch::new(server);
    let begin = Instant::now();
    let watch = prepared.start(None, begin);
    let mut talk = Talk {
        name: format!("{}:{}", target.host, target.port),
        deadline: Instant::now() + limit,
        limit,
        stop,
        login: Login::default(),
        since: begin,
        part: LoginPart::Name,
    };
    let ended = talk.all(protocol, target, user);
    let waited = talk.part.clone();
    if ended.is_err() {
        talk.enter(LoginPart::Answer);
    }
    talk.login.shares = activity::divide_among_parts(&watch.finish(), &talk.login.phases);
    match ended {
        Ok(()) => Ok(talk.login),
        Err(Stop::Late) => Err(LoginError::TimedOut {
            target: talk.name,
            limit: limit.into(),
            waited,
            so_far: Box::new(talk.login),
        }),
        Err(Stop::Told) => Err(LoginError::Interrupted),
        Err(Stop::Refused(why)) => Err(LoginError::Refused {
            target: talk.name,
            said: vec![why.clone()],
            why,
            so_far: Box::new(talk.login),
        }),
    }
}

enum Stop {
    Late,
    Told,
    Refused(String),
}

struct Talk<'a> {
    name: String,
    deadline: Instant,
    limit: Duration,
    stop: &'a dyn Fn() -> bool,
    login: Login,
    since: Instant,
    part: LoginPart,
}

type Lines = BufReader<Box<dyn Both>>;

/// A connection with an absolute deadline: a server that sends single bytes slowly cannot extend it.
struct Until {
    stream: TcpStream,
    deadline: Instant,
}

impl Until {
    fn look(&self) -> io::Result<()> {
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Read for Until {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.look()?;
        self.stream.read(into)
    }
}

impl Write for Until {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.look()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

trait Both: Read + Write {}
impl<T: Read + Write> Both for T {}

impl Talk<'_> {
    fn all(
        &mut self,
        protocol: Protocol,
        target: &MailTarget,
        user: Option<&User>,
    ) -> Result<(), Stop> {
        let addresses = resolve::resolve_addresses(&target.host, target.port, self.limit)
            .map_err(|error| Stop::Refused(format!("no address for this host: {error}")))?;
        self.enter(LoginPart::Tcp);
        let mut connected = None;
        for address in addresses {
            let begin = Instant::now();
            match TcpStream::connect_timeout(&address, self.left()?) {
                Ok(stream) => {
                    connected = Some(stream);
                    break;
                }
                Err(error) => {
                    let tried = (address.to_string(), begin.elapsed().into());
                    self.login.clues.unanswered.push(tried);
                    self.login.remarks.push(format!("{address}: {error}"));
                }
            }
        }
        let said = || self.login.remarks.last().cloned().unwrap_or_default();
        let stream = connected.ok_or_else(|| Stop::Refused(said()))?;
        // A waiting read checks regularly whether to stop.
        let slice = Some(Duration::from_millis(50));
        let left = self.left()?;
        let timeouts = stream
            .set_read_timeout(slice)
            .and_then(|()| stream.set_write_timeout(Some(left)))
            .and_then(|()| stream.set_nodelay(true));
        timeouts.map_err(|error| Stop::Refused(error.to_string()))?;
        let stream = Until {
            stream,
            deadline: self.deadline,
        };
        let both: Box<dyn Both> = match &target.tls {
            None => Box::new(stream),
            Some(tls) => {
                self.enter(LoginPart::Tls);
                let client = tls
                    .client()
                    .map_err(|error| Stop::Refused(error.to_string()))?;
                let mut stream = rustls::StreamOwned::new(client, stream);
                while stream.conn.is_handshaking() {
                    match stream.conn.complete_io(&mut stream.sock) {
                        Ok(_) => {}
                        Err(error) => self.again(&error)?,
                    }
                }
                Box::new(stream)
            }
        };
        let mut lines = BufReader::new(both);
        self.enter(LoginPart::Banner);
        match protocol {
            Protocol::Imap => self.imap(&mut lines, user),
            Protocol::Smtp => self.smtp(&mut lines, user),
        }
    }

    fn imap(&mut self, lines: &mut Lines, user: Option<&User>) -> Result<(), Stop> {
        let greeting = self.line(lines)?;
        if !greeting.starts_with("* OK") && !greeting.starts_with("* PREAUTH") {
            return Err(Stop::Refused(greeting));
        }
        self.enter(LoginPart::User);
        self.tagged(lines, "a1", "CAPABILITY")?;
        if let Some(user) = user {
            self.enter(LoginPart::Method("LOGIN".to_owned()));
            let login = format!(
                "LOGIN {} {}",
                quote_string(&user.name)?,
                quote_string(&user.password)?
            );
            self.tagged(lines, "a2", &login)?;
            self.enter(LoginPart::Session);
            self.tagged(lines, "a3", "EXAMINE INBOX")?;
        }
        self.enter(LoginPart::Answer);
        // Logging out closes the session on the server. The answer is not awaited.
        let _ = lines.get_mut().write_all(b"a4 LOGOUT\r\n");
        Ok(())
    }

    fn tagged(&mut self, lines: &mut Lines, tag: &str, command: &str) -> Result<(), Stop> {
        self.send(lines, &format!("{tag} {command}\r\n"))?;
        for _ in 0..LINES {
            let line = self.line(lines)?;
            if let Some(rest) = line.strip_prefix(tag) {
                return match rest.trim_start().starts_with("OK") {
                    true => Ok(()),
                    false => Err(Stop::Refused(rest.trim().to_owned())),
                };
            }
        }
        Err(Stop::Refused("an answer without an end".to_owned()))
    }

    fn smtp(&mut self, lines: &mut Lines, user: Option<&User>) -> Result<(), Stop> {
        self.reply(lines)?;
        self.enter(LoginPart::User);
        self.send(lines, "EHLO assay.invalid\r\n")?;
        self.reply(lines)?;
        if let Some(user) = user {
            self.enter(LoginPart::Method("AUTH PLAIN".to_owned()));
            let plain = encode_base64(format!("\0{}\0{}", user.name, user.password).as_bytes());
            self.send(lines, &format!("AUTH PLAIN {plain}\r\n"))?;
            self.reply(lines)?;
        }
        self.enter(LoginPart::Answer);
        let _ = lines.get_mut().write_all(b"QUIT\r\n");
        Ok(())
    }

    /// Reads a reply. Its last line has a space after the code (RFC 5321 section 4.2.1).
    fn reply(&mut self, lines: &mut Lines) -> Result<(), Stop> {
        for _ in 0..LINES {
            let line = self.line(lines)?;
            if line.as_bytes().get(3) == Some(&b'-') {
                if self.part == LoginPart::Banner {
                    let greeted = Nanos::from(self.since.elapsed());
                    self.login.clues.greeted.get_or_insert(greeted);
                }
                continue;
            }
            return match line.as_bytes().first() {
                Some(b'2' | b'3') => Ok(()),
                _ => Err(Stop::Refused(line)),
            };
        }
        Err(Stop::Refused("an answer without an end".to_owned()))
    }

    fn send(&mut self, lines: &mut Lines, text: &str) -> Result<(), Stop> {
        let stream = lines.get_mut();
        stream
            .write_all(text.as_bytes())
            .and_then(|()| stream.flush())
            .map_err(|error| Stop::Refused(error.to_string()))
    }

    fn line(&mut self, lines: &mut Lines) -> Result<String, Stop> {
        let mut bytes = Vec::new();
        loop {
            let room = LONGEST.saturating_sub(bytes.len() as u64);
            match lines.by_ref().take(room).read_until(b'\n', &mut bytes) {
                Ok(0) if room == 0 => {
                    return Err(Stop::Refused("a line without an end".to_owned()));
                }
                Ok(0) => return Err(Stop::Refused("the server closed the connection".to_owned())),
                Ok(_) if bytes.ends_with(b"\n") => {
                    return Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned());
                }
                Ok(_) => {}
                Err(error) => self.again(&error)?,
            }
        }
    }

    /// Returns an error unless the interrupted read may be repeated before the deadline.
    fn again(&self, error: &io::Error) -> Result<(), Stop> {
        let waits = matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
        );
        match waits {
            true => self.left().map(|_| ()),
            false => Err(Stop::Refused(error.to_string())),
        }
    }

    fn left(&self) -> Result<Duration, Stop> {
        if (self.stop)() {
            return Err(Stop::Told);
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(Stop::Late),
            false => Ok(left),
        }
    }

    fn enter(&mut self, part: LoginPart) {
        let now = Instant::now();
        let ended = std::mem::replace(&mut self.part, part);
        self.login.add(ended, Nanos::from(now - self.since));
        self.since = now;
    }
}

/// Formats a quoted string (RFC 9051 section 4.3).
fn quote_string(text: &str) -> Result<String, Stop> {
    if text.bytes().any(|byte| !(b' '..0x7f).contains(&byte)) {
        let why = "a name or password with other than printable ASCII cannot be sent as LOGIN";
        return Err(Stop::Refused(why.to_owned()));
    }
    Ok(format!(
        "\"{}\"",
        text.replace('\\', "\\\\").replace('"', "\\\"")
    ))
}

/// Encodes base64 (RFC 4648 section 4).
fn encode_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let mut all = [0; 3];
        all[..three.len()].copy_from_slice(three);
        let number = u32::from_be_bytes([0, all[0], all[1], all[2]]);
        for digit in 0..4 {
            let value = number >> (18 - 6 * digit) & 63;
            out.push(match digit <= three.len() as u32 {
                true => char::from(DIGITS[value as usize]),
                false => '=',
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_4648() {
        let all = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        for (length, expected) in all.into_iter().enumerate() {
            assert_eq!(encode_base64(&b"foobar"[..length]), expected);
        }
    }

    #[test]
    fn what_cannot_be_quoted_is_not_sent() {
        assert!(quote_string("a\r\nb").is_err() && quote_string("ä").is_err());
        assert_eq!(quote_string("a\"b\\").ok().unwrap(), "\"a\\\"b\\\\\"");
        let user = User {
            name: "ann".to_owned(),
            password: "hunter2".to_owned(),
        };
        assert!(!format!("{user:?}").contains("hunter2"));
    }
}

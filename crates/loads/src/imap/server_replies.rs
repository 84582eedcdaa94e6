//! Interprets the lines of an IMAP server and determines the next command (RFC 3501), without I/O.

use std::collections::VecDeque;

/// Maximum length of a server's line in bytes.
const LONGEST: usize = 64 << 10;

/// Splits received bytes into lines.
#[derive(Default)]
pub struct LineBuffer {
    buffer: Vec<u8>,
    /// Number of bytes that were already searched for a line end.
    looked: usize,
}

/// Error: a line exceeds the maximum length.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl LineBuffer {
    /// Adds received bytes to the buffer.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend(bytes);
    }

    /// Returns the next line without its line end; `None` if no complete line has arrived.
    pub fn next(&mut self) -> Result<Option<String>, TooLong> {
        let new = self.buffer.iter().skip(self.looked);
        let end = new.copied().position(|byte| byte == b'\n');
        match end.map(|end| self.looked + end) {
            Some(end) if end <= LONGEST => {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                self.looked = 0;
                Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
            }
            None if self.buffer.len() <= LONGEST => {
                self.looked = self.buffer.len();
                Ok(None)
            }
            _ => Err(TooLong),
        }
    }
}

/// State of a sign-in, from the greeting to the tagged answer.
pub struct Login {
    to_send: VecDeque<Part>,
    /// Literal that is sent when the server requests it with `+`; `None` if there is no such literal.
    literal: Option<Vec<u8>>,
    greeted: bool,
    /// Password in plain and in encoded form. Both are removed from messages of the server before they are shown.
    hidden: [String; 2],
}

/// What the client does after a line of the server.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for the next line, because this line is irrelevant.
    Wait,
    /// Send these bytes to the server.
    Send(Vec<u8>),
    /// The sign-in succeeded.
    Done,
    /// The server refused the sign-in. Contains the server's message.
    Refused(String),
    /// The line is not valid IMAP at this point of the sign-in.
    Wrong {
        /// The invalid line of the server.
        answer: String,
        /// Description of a line that would have been valid.
        expected: &'static str,
    },
}

impl Login {
    pub fn new(user: &[u8], password: &[u8]) -> Self {
        Self {
            to_send: login_command(user, password).into(),
            literal: None,
            greeted: false,
            hidden: [
                password.to_vec(),
                quote_argument(password).unwrap_or_default(),
            ]
            .map(|bytes| {
                let text = String::from_utf8_lossy(&bytes);
                // The end of a line is removed as well.
                text.trim_matches('"').trim_end().to_owned()
            }),
        }
    }

    /// Processes a line of the server and returns the next action.
    pub fn take(&mut self, line: &str) -> Next {
        let news = line.starts_with("* ") && !line.starts_with("* BYE");
        if !self.greeted {
            self.greeted = true;
            return match line.starts_with("* OK") {
                true => self.send(Vec::new()),
                false => self.wrong(line, "an IMAP greeting, `* OK`"),
            };
        }
        if let Some(literal) = self.literal.take() {
            return match line.starts_with('+') {
                true => self.send(literal),
                false if news => {
                    self.literal = Some(literal);
                    Next::Wait
                }
                false => self.refused(line),
            };
        }
        match line.strip_prefix("a1 ") {
            Some(answer) if answer.starts_with("OK") => Next::Done,
            Some(answer) => self.refused(answer),
            None if news => Next::Wait,
            None if line.starts_with("* BYE") => self.refused(line),
            None => self.wrong(line, "`a1 OK`"),
        }
    }

    fn refused(&self, answer: &str) -> Next {
        Next::Refused(self.without_password(answer))
    }

    fn wrong(&self, answer: &str, expected: &'static str) -> Next {
        let answer = self.without_password(answer);
        Next::Wrong { answer, expected }
    }

    fn without_password(&self, answer: &str) -> String {
        let holds = |hidden: &String| !hidden.is_empty() && answer.contains(hidden);
        match self.hidden.iter().any(holds) {
            true => "(an answer that holds the password)".to_owned(),
            false => answer.to_owned(),
        }
    }

    /// Returns `bytes` followed by the next part of the command, if there is one.
    fn send(&mut self, mut bytes: Vec<u8>) -> Next {
        if let Some(part) = self.to_send.pop_front() {
            bytes.extend(part.bytes);
            self.literal = part.literal;
        }
        Next::Send(bytes)
    }
}

/// Part of a command: bytes to send immediately, and a literal to send when the server requests it.
#[derive(Debug, PartialEq)]
struct Part {
    bytes: Vec<u8>,
    literal: Option<Vec<u8>>,
}

/// Splits the LOGIN command into parts. A part ends where an argument must be sent as a literal.
fn login_command(user: &[u8], password: &[u8]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut bytes = b"a1 LOGIN".to_vec();
    for argument in [user, password] {
        bytes.push(b' ');
        match quote_argument(argument) {
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

/// Encodes an argument as a quoted string (RFC 3501, section 9: `quoted`). Returns `None` unless the argument is 7-bit
/// text without line ends.
fn quote_argument(argument: &[u8]) -> Option<Vec<u8>> {
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
        let parts = login_command(b"ann", b"a \"b\\c");
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].bytes, b"a1 LOGIN \"ann\" \"a \\\"b\\\\c\"\r\n");
    }

    #[test]
    fn others_are_literals() {
        let parts = login_command("änn".as_bytes(), b"x\ny");
        assert_eq!(parts[0].bytes, b"a1 LOGIN {4}\r\n");
        assert_eq!(parts[0].literal.as_deref(), Some("änn".as_bytes()));
        assert_eq!(parts[1].bytes, b" {3}\r\n");
        assert_eq!(parts[2].bytes, b"\r\n");
    }

    #[test]
    fn a_literal_is_sent_when_the_server_is_ready_for_it() {
        let mut login = Login::new("änn".as_bytes(), b"x\ny");
        assert_eq!(
            login.take("* OK hello"),
            Next::Send(b"a1 LOGIN {4}\r\n".to_vec())
        );
        assert_eq!(login.take("* 3 EXISTS"), Next::Wait);
        assert_eq!(
            login.take("+ go"),
            Next::Send("änn {3}\r\n".as_bytes().to_vec())
        );
        assert_eq!(login.take("+ go"), Next::Send(b"x\ny\r\n".to_vec()));
        assert_eq!(login.take("a1 OK in"), Next::Done);
    }

    #[test]
    fn a_server_that_goes_on_after_it_said_no_gets_no_password() {
        for no in ["a1 NO", "* BYE", "x"] {
            let mut login = Login::new("änn".as_bytes(), b"hunter2");
            login.take("* OK hello");
            assert_eq!(login.take(no), Next::Refused(no.to_owned()));
        }
    }

    #[test]
    fn a_password_that_the_server_says_again_is_not_repeated() {
        for answer in [
            "a1 NO ann/hunter2",
            "* BYE hunter2",
            "a1 LOGIN ann \"hunter2\"",
        ] {
            let mut login = Login::new(b"ann", b"hunter2");
            login.take("* OK hello");
            let said = login.take(answer);
            assert!(
                matches!(said, Next::Refused(_) | Next::Wrong { .. }),
                "{said:?}"
            );
            assert!(!format!("{said:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_line_without_end_is_not_taken() {
        let mut lines = LineBuffer::default();
        lines.push(b"* OK\r\nrest");
        assert_eq!(lines.next(), Ok(Some("* OK".to_owned())));
        assert_eq!(lines.next(), Ok(None));
        lines.push(&vec![b'x'; LONGEST]);
        assert_eq!(lines.next(), Err(TooLong));
    }
}

//! Where an HTTP/1.1 response ends (RFC 9112, sections 6 and 7), fed piece by piece.

/// Longest head taken, and longest line between chunks.
const LONGEST_HEAD: usize = 64 << 10;
const LONGEST_LINE: usize = 8 << 10;
const HEADERS: usize = 96;

/// A whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Bytes of the body, without the framing of chunks.
    pub body: u64,
    /// Whether the connection can carry another request.
    pub reusable: bool,
}

/// What is wrong with a response, for people.
pub type Wrong = &'static str;

/// Reads one response.
#[derive(Debug, Default)]
pub struct Reader {
    /// The head as far as it came, when it came in pieces.
    head: Vec<u8>,
    frame: Frame,
    answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Frame {
    #[default]
    Head,
    /// So many bytes are left.
    Length(u64),
    Chunked(Chunk),
    UntilEnd,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Chunk {
    /// In the line with the size; what was read of it, and bytes of the line.
    Size {
        size: Option<u64>,
        extension: bool,
        line: usize,
    },
    Data(u64),
    /// Before the line end after the data.
    DataEnd {
        carriage_return: bool,
    },
    /// After the last chunk: whether the line has anything, and bytes of all lines.
    Trailer {
        empty: bool,
        bytes: usize,
    },
}

const SIZE: Chunk = Chunk::Size {
    size: None,
    extension: false,
    line: 0,
};

impl Reader {
    /// Whether anything of the response has come.
    pub fn started(&self) -> bool {
        self.answer.is_some() || !self.head.is_empty()
    }

    /// Takes the next bytes; gives the response when they end it.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Answer>, Wrong> {
        if self.frame != Frame::Head {
            return self.body(bytes);
        }
        if self.head.is_empty() {
            return self.begin(bytes);
        }
        self.head.extend(bytes);
        let head = std::mem::take(&mut self.head);
        self.begin(&head)
    }

    /// The connection has ended: gives the response if that is how it ends.
    pub fn end(&mut self) -> Result<Answer, Wrong> {
        match (self.frame, self.answer) {
            (Frame::UntilEnd, Some(answer)) => Ok(answer),
            _ if self.started() => Err("the connection was closed in the middle of the answer"),
            _ => Err("the connection was closed without an answer"),
        }
    }

    fn begin(&mut self, bytes: &[u8]) -> Result<Option<Answer>, Wrong> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if bytes.len() > LONGEST_HEAD => {
                return Err("a head of more than 64 KiB");
            }
            Ok(httparse::Status::Partial) => {
                self.head = bytes.to_vec();
                return Ok(None);
            }
            Err(_) => return Err("it is not HTTP"),
        };
        let (status, version) = (response.code.unwrap_or(0), response.version.unwrap_or(0));
        if (100..200).contains(&status) {
            return self.feed(&bytes[length..]);
        }
        let (frame, reusable) = framing(status, version, response.headers)?;
        self.frame = frame;
        self.answer = Some(Answer {
            status,
            body: 0,
            reusable,
        });
        self.body(&bytes[length..])
    }

    fn body(&mut self, bytes: &[u8]) -> Result<Option<Answer>, Wrong> {
        let Some(answer) = &mut self.answer else {
            return Ok(None);
        };
        let ended = match &mut self.frame {
            Frame::Head => false,
            Frame::UntilEnd => {
                answer.body += bytes.len() as u64;
                false
            }
            Frame::Length(left) => {
                let length = bytes.len() as u64;
                if length > *left {
                    return Err("more bytes than Content-Length says");
                }
                *left -= length;
                answer.body += length;
                *left == 0
            }
            Frame::Chunked(chunk) => chunks(chunk, bytes, &mut answer.body)?,
        };
        Ok(ended.then_some(*answer))
    }
}

/// How the body is framed, and whether the connection goes on after it.
fn framing(
    status: u16,
    version: u8,
    headers: &[httparse::Header<'_>],
) -> Result<(Frame, bool), Wrong> {
    let mut length: Option<u64> = None;
    let mut chunked = false;
    let mut coded = false;
    let mut reusable = version == 1;
    for header in headers {
        let tokens = || {
            header
                .value
                .split(|&byte| byte == b',')
                .map(<[u8]>::trim_ascii)
        };
        let has = |token: &[u8]| tokens().any(|t| t.eq_ignore_ascii_case(token));
        if header.name.eq_ignore_ascii_case("content-length") {
            for token in tokens() {
                let number = std::str::from_utf8(token).ok().and_then(|t| t.parse().ok());
                let number: u64 = number.ok_or("Content-Length is not a number")?;
                if length.is_some_and(|length| length != number) {
                    return Err("two values of Content-Length");
                }
                length = Some(number);
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            coded = true;
            chunked = tokens()
                .next_back()
                .is_some_and(|t| t.eq_ignore_ascii_case(b"chunked"));
        } else if header.name.eq_ignore_ascii_case("connection") {
            reusable = !has(b"close") && (reusable || has(b"keep-alive"));
        }
    }
    Ok(match (status, chunked, coded, length) {
        (204 | 304, ..) => (Frame::Length(0), reusable),
        (_, true, ..) => (Frame::Chunked(SIZE), reusable),
        (_, false, false, Some(length)) => (Frame::Length(length), reusable),
        _ => (Frame::UntilEnd, false),
    })
}

/// Whether these bytes end the last chunk.
fn chunks(chunk: &mut Chunk, mut bytes: &[u8], body: &mut u64) -> Result<bool, Wrong> {
    while let Some((&byte, rest)) = bytes.split_first() {
        match chunk {
            Chunk::Data(left) => {
                let taken = (bytes.len() as u64).min(*left);
                *body += taken;
                *left -= taken;
                bytes = &bytes[taken as usize..];
                if *left == 0 {
                    *chunk = Chunk::DataEnd {
                        carriage_return: false,
                    };
                }
                continue;
            }
            Chunk::DataEnd { carriage_return } => match (*carriage_return, byte) {
                (false, b'\r') => *carriage_return = true,
                (true, b'\n') => *chunk = SIZE,
                _ => return Err("a chunk is longer than its size says"),
            },
            Chunk::Size {
                size,
                extension,
                line,
            } => {
                *line += 1;
                match byte {
                    b'\n' => {
                        *chunk = match size.ok_or("a chunk without a size")? {
                            0 => Chunk::Trailer {
                                empty: true,
                                bytes: 0,
                            },
                            size => Chunk::Data(size),
                        };
                    }
                    _ if *line > LONGEST_LINE => return Err("a line of more than 8 KiB"),
                    _ if *extension => {}
                    b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' => {
                        let digit = char::from(byte).to_digit(16).unwrap_or(0);
                        let bigger = size.unwrap_or(0).checked_mul(16);
                        let bigger = bigger.and_then(|size| size.checked_add(u64::from(digit)));
                        *size = Some(bigger.ok_or("a chunk of more than 2^64 bytes")?);
                    }
                    b';' | b' ' | b'\t' | b'\r' => *extension = true,
                    _ => return Err("the size of a chunk is not a number"),
                }
            }
            Chunk::Trailer { empty, bytes } => {
                *bytes += 1;
                match byte {
                    b'\n' if *empty => {
                        return match rest.is_empty() {
                            true => Ok(true),
                            false => Err("more bytes after the last chunk"),
                        };
                    }
                    b'\n' => *empty = true,
                    b'\r' => {}
                    _ if *bytes > LONGEST_HEAD => return Err("a trailer of more than 64 KiB"),
                    _ => *empty = false,
                }
            }
        }
        bytes = rest;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The answer when the bytes come in these pieces, and then the end.
    fn read(pieces: &[&[u8]]) -> Result<Answer, Wrong> {
        let mut reader = Reader::default();
        for piece in pieces {
            if let Some(answer) = reader.feed(piece)? {
                return Ok(answer);
            }
        }
        reader.end()
    }

    const CHUNKED: &[u8] =
        b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nTransfer-Encoding: chunked\r\n\
        Connection: keep-alive\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nX: y\r\n\r\n";
    const FIXED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    const OLD: &[u8] = b"HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\nnothing";

    #[test]
    fn framings() {
        let answer = |status, body, reusable| {
            Ok(Answer {
                status,
                body,
                reusable,
            })
        };
        assert_eq!(read(&[CHUNKED]), answer(200, 15, true));
        assert_eq!(read(&[FIXED]), answer(200, 5, false));
        assert_eq!(read(&[OLD]), answer(404, 7, false));
        assert_eq!(
            read(&[b"HTTP/1.1 204 No Content\r\n\r\n"]),
            answer(204, 0, true)
        );
        assert_eq!(
            read(&[b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]),
            answer(200, 0, true)
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (bytes, why) in [
            (&b""[..], "without an answer"),
            (b"HTTP/1.1 200 O", "in the middle"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                "in the middle",
            ),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!",
                "more bytes",
            ),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
                "not a number",
            ),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
                "two values",
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
                "size of a chunk",
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
                "longer than",
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx",
                "after the last",
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
                "2^64",
            ),
        ] {
            let error = read(&[bytes]).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            which in 0usize..3,
            cuts in prop::collection::vec(0usize..200, 0..12),
        ) {
            let bytes = [CHUNKED, FIXED, OLD][which];
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[bytes]));
        }

        #[test]
        fn garbage_never_panics(
            garbage in prop::collection::vec(any::<u8>(), 0..200),
            at in 0usize..150,
        ) {
            let _ = read(&[&garbage]);
            let at = at.min(CHUNKED.len());
            let _ = read(&[&CHUNKED[..at], &garbage, &CHUNKED[at..]]);
        }
    }
}

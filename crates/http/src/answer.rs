//! Parses HTTP/1.1 responses (RFC 9112, sections 6 and 7) that arrive in pieces, and finds the end of each response.
//!
//! `httparse` parses the heads. Servers send the same head repeatedly; only the date in the head changes, once per
//! second. Therefore a head whose bytes equal the last valid head is not parsed again.

/// Maximum length of a head, and of a line between chunks, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
const LONGEST_LINE: usize = 8 << 10;
const HEADERS: usize = 256;
/// Maximum length of a head that is remembered for comparison with the next head, in bytes.
const LONGEST_REMEMBERED: usize = 4 << 10;
/// Number of bytes that are kept from the start of a body if its hash is requested.
const KEPT: usize = 4 << 10;
/// Maximum number of interim responses (1xx) before the final response.
const MOST_INTERIM: u32 = 64;

/// A complete HTTP/1.1 response, without its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// HTTP status code of the response.
    pub status: u16,
    /// Length of the body in bytes, without chunk framing.
    pub body: u64,
    /// Whether the connection can carry another request.
    pub reusable: bool,
    /// BLAKE3 hash of the body; `None` if it was not requested.
    pub hash: Option<[u8; 32]>,
}

/// Fault of an HTTP/1.1 response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The server closed the connection before it sent any byte.
    Nothing,
    /// The server closed the connection in the middle of the response.
    Short,
    /// The bytes are not HTTP, or the framing is invalid.
    Form(&'static str),
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "the connection was closed without an answer",
            Self::Short => "the connection was closed in the middle of the answer",
            Self::Form(why) => why,
        })
    }
}

impl From<&'static str> for Wrong {
    fn from(why: &'static str) -> Self {
        Self::Form(why)
    }
}

/// Bytes and meaning of the last parsed head. All connections of a thread share this memory.
#[derive(Debug, Default)]
pub struct Memory {
    bytes: Vec<u8>,
    head_only: bool,
    meaning: Option<(u16, Frame, bool)>,
}

impl Memory {
    fn recall(&self, bytes: &[u8], head_only: bool) -> Option<(usize, u16, Frame, bool)> {
        let (status, frame, reusable) = self.meaning?;
        (self.head_only == head_only && bytes.starts_with(&self.bytes)).then_some((
            self.bytes.len(),
            status,
            frame,
            reusable,
        ))
    }
}

/// Parser of one response, which receives the bytes in pieces.
#[derive(Debug, Default)]
pub struct Reader {
    /// Bytes of an incomplete head.
    head: Vec<u8>,
    /// Whether the request was HEAD. Then the response has no body, whatever its head declares.
    head_only: bool,
    interim: u32,
    frame: Frame,
    status: u16,
    reusable: bool,
    body: Body,
    /// Whether the head is complete.
    begun: bool,
    /// Whether at least one byte has arrived.
    started: bool,
}

/// Body of a response, as far as it has arrived.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) bytes: u64,
    hasher: Option<Box<blake3::Hasher>>,
    /// First bytes of the body; empty unless a hash is requested.
    pub(crate) start: Vec<u8>,
}

impl Body {
    /// Creates an empty body. `hash` is whether a hash is requested.
    pub(crate) fn new(hash: bool) -> Self {
        Self {
            hasher: hash.then(Box::default),
            ..Self::default()
        }
    }

    pub(crate) fn hash(&self) -> Option<[u8; 32]> {
        let hasher = self.hasher.as_ref();
        hasher.map(|hasher| hasher.finalize().into())
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
            let room = KEPT.saturating_sub(self.start.len()).min(bytes.len());
            self.start.extend_from_slice(&bytes[..room]);
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Frame {
    #[default]
    Head,
    /// The body has a known length. Contains the number of missing bytes.
    Length(u64),
    Chunked(Chunk),
    UntilEnd,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Chunk {
    /// The parser is in the line with the chunk size. Contains the value and the number of bytes of this line until
    /// now.
    Size {
        size: Option<u64>,
        extension: bool,
        line: usize,
    },
    Data(u64),
    /// The parser is before the line end that follows a chunk.
    DataEnd {
        carriage_return: bool,
    },
    /// The parser is after the last chunk. Contains whether the current line has content, and the number of bytes of
    /// all trailer lines until now.
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
    /// Prepares the reader for the response to another request. `head_only` is whether this is a HEAD request, and
    /// `hash` whether a hash of the body is requested.
    pub fn restart(&mut self, head_only: bool, hash: bool) {
        self.head.clear();
        self.head_only = head_only;
        self.interim = 0;
        self.frame = Frame::Head;
        self.body.bytes = 0;
        self.body.start.clear();
        self.body.hasher = hash.then(Box::default);
        self.begun = false;
        self.started = false;
    }

    /// Returns whether a byte of the response has arrived.
    #[must_use]
    pub fn started(&self) -> bool {
        self.started
    }

    /// Returns the status of the response; `None` before the head has arrived.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.begun.then_some(self.status)
    }

    /// Returns the first 4 KiB of the body; empty if the hash of the body was not requested.
    #[must_use]
    pub fn start(&self) -> &[u8] {
        &self.body.start
    }

    /// Returns how many of the next bytes can be discarded, because they belong to a body whose hash was not requested.
    #[must_use]
    pub fn uninteresting(&self) -> u64 {
        match self.frame {
            _ if self.body.hasher.is_some() => 0,
            Frame::Length(left) | Frame::Chunked(Chunk::Data(left)) => left,
            Frame::UntilEnd => u64::MAX,
            _ => 0,
        }
    }

    /// Counts body bytes that were discarded. Returns the response if these bytes complete it.
    pub fn skip(&mut self, bytes: u64) -> Option<HttpResponse> {
        self.body.bytes += bytes;
        match &mut self.frame {
            Frame::Length(left) => *left = left.saturating_sub(bytes),
            Frame::Chunked(chunk) => {
                if let Chunk::Data(left) = chunk {
                    *left = left.saturating_sub(bytes);
                    if *left == 0 {
                        *chunk = Chunk::DataEnd {
                            carriage_return: false,
                        };
                    }
                }
            }
            Frame::Head | Frame::UntilEnd => {}
        }
        (self.frame == Frame::Length(0)).then(|| self.answer())
    }

    /// Processes the next bytes. Returns the response if these bytes complete it.
    ///
    /// # Errors
    /// The bytes are not HTTP, the framing is invalid, or more bytes arrived than the head declared.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        memory: &mut Memory,
    ) -> Result<Option<HttpResponse>, Wrong> {
        self.started |= !bytes.is_empty();
        if self.begun {
            return self.take_body(bytes);
        }
        if self.head.is_empty() {
            return self.take_head(bytes, memory);
        }
        // A head that arrives byte by byte is parsed only at possible line ends.
        self.head.extend_from_slice(bytes);
        if !bytes.contains(&b'\n') && self.head.len() <= LONGEST_HEAD {
            return Ok(None);
        }
        let head = std::mem::take(&mut self.head);
        self.take_head(&head, memory)
    }

    /// Processes the end of the connection. Returns the response if the end completes it.
    ///
    /// # Errors
    /// The response is incomplete.
    pub fn end(&self) -> Result<HttpResponse, Wrong> {
        match (self.frame, self.started) {
            (Frame::UntilEnd, _) => Ok(self.answer()),
            (_, true) => Err(Wrong::Short),
            (_, false) => Err(Wrong::Nothing),
        }
    }

    fn answer(&self) -> HttpResponse {
        HttpResponse {
            status: self.status,
            body: self.body.bytes,
            reusable: self.reusable,
            hash: self.body.hash(),
        }
    }

    fn take_head(
        &mut self,
        mut bytes: &[u8],
        memory: &mut Memory,
    ) -> Result<Option<HttpResponse>, Wrong> {
        loop {
            if let Some((length, status, frame, reusable)) = memory.recall(bytes, self.head_only) {
                (self.status, self.frame, self.reusable) = (status, frame, reusable);
                self.begun = true;
                return self.take_body(&bytes[length..]);
            }
            let Some(length) = self.read_head(bytes, memory)? else {
                self.head = bytes.to_vec();
                return Ok(None);
            };
            bytes = &bytes[length..];
            if self.begun {
                return self.take_body(bytes);
            }
            self.interim += 1;
            if self.interim > MOST_INTERIM {
                return Err("more than 64 interim responses".into());
            }
            if bytes.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Parses a head and returns its length; `None` if the head is incomplete. Skips interim heads (1xx).
    fn read_head(&mut self, bytes: &[u8], memory: &mut Memory) -> Result<Option<usize>, Wrong> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length <= LONGEST_HEAD => length,
            Ok(httparse::Status::Partial) if bytes.len() <= LONGEST_HEAD => return Ok(None),
            Ok(_) => return Err("a head of more than 64 KiB".into()),
            Err(httparse::Error::TooManyHeaders) => return Err("more than 256 headers".into()),
            Err(_) => return Err("it is not HTTP".into()),
        };
        let (status, version) = (response.code.unwrap_or(0), response.version.unwrap_or(0));
        match status {
            101 => return Err("the server changed to another protocol".into()),
            100..200 => return Ok(Some(length)),
            _ => {}
        }
        let (frame, reusable) = framing(status, version, response.headers, self.head_only)?;
        (self.status, self.frame, self.reusable) = (status, frame, reusable);
        self.begun = true;
        if length <= LONGEST_REMEMBERED {
            memory.bytes.clear();
            memory.bytes.extend_from_slice(&bytes[..length]);
            memory.head_only = self.head_only;
            memory.meaning = Some((status, frame, reusable));
        }
        Ok(Some(length))
    }

    fn take_body(&mut self, bytes: &[u8]) -> Result<Option<HttpResponse>, Wrong> {
        let ended = match &mut self.frame {
            Frame::Head => false,
            Frame::UntilEnd => {
                self.body.take(bytes);
                false
            }
            Frame::Length(left) => {
                let length = bytes.len() as u64;
                if length > *left {
                    return Err("more bytes than the head says".into());
                }
                *left -= length;
                self.body.take(bytes);
                *left == 0
            }
            Frame::Chunked(chunk) => chunks(chunk, bytes, &mut self.body)?,
        };
        Ok(ended.then(|| self.answer()))
    }
}

/// Determines the framing of the body, and whether the connection stays open.
fn framing(
    status: u16,
    version: u8,
    headers: &[httparse::Header<'_>],
    head_only: bool,
) -> Result<(Frame, bool), Wrong> {
    let mut length: Option<u64> = None;
    let mut chunked = false;
    let mut coded = false;
    let (mut close, mut keep) = (false, version == 1);
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
                let digits = !token.is_empty() && token.iter().all(u8::is_ascii_digit);
                let number = std::str::from_utf8(token).ok().filter(|_| digits);
                let number: u64 = number
                    .and_then(|text| text.parse().ok())
                    .ok_or("Content-Length is not a number")?;
                if length.is_some_and(|length| length != number) {
                    return Err("two values of Content-Length".into());
                }
                length = Some(number);
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            coded = true;
            chunked = tokens()
                .next_back()
                .is_some_and(|t| t.eq_ignore_ascii_case(b"chunked"));
        } else if header.name.eq_ignore_ascii_case("connection") {
            close |= has(b"close");
            keep |= has(b"keep-alive");
        }
    }
    let reusable = keep && !close;
    Ok(match (status, chunked, coded, length) {
        _ if head_only => (Frame::Length(0), reusable),
        (204 | 304, ..) => (Frame::Length(0), reusable),
        (_, true, ..) => (Frame::Chunked(SIZE), reusable),
        (_, false, false, Some(length)) => (Frame::Length(length), reusable),
        _ => (Frame::UntilEnd, false),
    })
}

/// Processes bytes of a chunked body. Returns whether the last chunk is complete.
fn chunks(chunk: &mut Chunk, mut bytes: &[u8], body: &mut Body) -> Result<bool, Wrong> {
    while let Some((&byte, rest)) = bytes.split_first() {
        match chunk {
            Chunk::Data(left) => {
                let taken = (bytes.len() as u64).min(*left);
                body.take(&bytes[..taken as usize]);
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
                _ => return Err("a chunk is longer than its size says".into()),
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
                    _ if *line > LONGEST_LINE => return Err("a line of more than 8 KiB".into()),
                    _ if *extension => {}
                    b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' => {
                        let digit = char::from(byte).to_digit(16).unwrap_or(0);
                        let bigger = size.unwrap_or(0).checked_mul(16);
                        let bigger = bigger.and_then(|size| size.checked_add(u64::from(digit)));
                        *size = Some(bigger.ok_or("a chunk of more than 2^64 bytes")?);
                    }
                    b';' | b' ' | b'\t' | b'\r' => *extension = true,
                    _ => return Err("the size of a chunk is not a number".into()),
                }
            }
            Chunk::Trailer { empty, bytes } => {
                *bytes += 1;
                match byte {
                    b'\n' if *empty => {
                        return match rest.is_empty() {
                            true => Ok(true),
                            false => Err("more bytes after the last chunk".into()),
                        };
                    }
                    b'\n' => *empty = true,
                    b'\r' => {}
                    _ if *bytes > LONGEST_HEAD => {
                        return Err("a trailer of more than 64 KiB".into());
                    }
                    _ => *empty = false,
                }
            }
        }
        bytes = rest;
    }
    Ok(false)
}

#[cfg(test)]
#[path = "answer/tests.rs"]
mod tests;

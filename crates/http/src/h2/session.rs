//! One HTTP/2 connection. Encodes requests and processes received frames.

mod answers;
mod control;

use super::frame::{self, Head};
use super::hpack::Decoder;
use crate::answer::{Body, HttpResponse};
use crate::request::Request;
use assay_model::web::FailureKind;
use std::sync::Arc;

/// Client preface (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Receive window of each stream and of the connection, in bytes. A window is enlarged again when half of it is used.
/// So it limits the rate only on very long fast paths.
const WINDOW: u32 = 16 << 20;
/// Initial send window in bytes (RFC 9113, section 6.9.2).
const FIRST_WINDOW: i64 = 65_535;
/// Maximum number of streams before the server's SETTINGS arrive. Servers should permit at least 100 (RFC 9113, section
/// 6.5.2).
const FIRST_STREAMS: u32 = 100;
/// Number of bytes in the outbox up to which more body data is added.
const OUTBOX: usize = 64 << 10;
/// Maximum size of the outbox in bytes. Otherwise a server that does not read would make the outbox grow without limit.
const LONGEST_OUTBOX: usize = 1 << 20;

/// What happened to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The request was answered.
    Answer {
        /// Slot of the request, from [`H2Session::ask`].
        place: u32,
        /// Complete answer of the server.
        answer: HttpResponse,
    },
    /// The request failed. Other requests of the connection continue.
    Failed {
        /// Slot of the request, from [`H2Session::ask`].
        place: u32,
        /// Kind of the failure, by which failures are counted.
        kind: FailureKind,
        /// Description of the failure.
        why: String,
    },
    /// The server closes the connection and has not processed the request. Therefore the request may be sent again.
    Left {
        /// Slot of the request, from [`H2Session::ask`].
        place: u32,
    },
}

/// Reason why an HTTP/2 connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H2Fault {
    /// Kind of failure for the requests in flight.
    pub kind: FailureKind,
    /// Description of the reason.
    pub why: String,
    /// Error code that the GOAWAY to the server contains.
    code: u32,
}

impl H2Fault {
    fn new(kind: FailureKind, code: u32, why: impl Into<String>) -> Self {
        Self {
            kind,
            why: why.into(),
            code,
        }
    }

    /// Builds the fault for a PROTOCOL_ERROR.
    fn protocol(why: impl Into<String>) -> Self {
        Self::new(FailureKind::NotHttp, 1, why)
    }

    fn size(why: &'static str) -> Self {
        Self::new(FailureKind::NotHttp, 6, why)
    }
}

/// A request in flight and its stream.
#[derive(Debug)]
struct Stream {
    id: u32,
    place: u32,
    head_only: bool,
    /// Status of the answer; `None` before its head has arrived.
    status: Option<u16>,
    length: Option<u64>,
    interim: u32,
    body: Body,
    /// Receive window: number of bytes that the server may still send.
    receivable: i64,
    /// Send window: number of bytes that the client may still send.
    sendable: i64,
    /// Body of the request with the position of its unsent part; `None` if nothing is left to send.
    upload: Option<(Arc<[u8]>, usize)>,
}

impl Stream {
    fn uploads(&self) -> bool {
        self.upload
            .as_ref()
            .is_some_and(|(body, sent)| *sent < body.len())
    }
}

/// A DATA frame whose payload is being received.
#[derive(Clone, Copy, Debug)]
struct Data {
    head: Head,
    left: usize,
    /// Length of the padding at the end of the frame; `None` until it is known.
    padding: Option<usize>,
}

/// One HTTP/2 connection with all its streams.
#[derive(Debug)]
pub struct H2Session {
    outbox: Vec<u8>,
    sent: usize,
    /// Bytes of an incomplete frame.
    kept: Vec<u8>,
    data: Option<Data>,
    /// An incomplete head: its frame header, its bytes until now, and the number of its frames.
    block: Option<(Head, Vec<u8>, u32)>,
    decoder: Decoder,
    known: answers::Known,
    /// Streams in ascending order of their numbers.
    streams: Vec<Stream>,
    /// Whether a stream may have unsent body data.
    uploading: bool,
    next: u32,
    /// Whether the server's SETTINGS have arrived.
    greeted: bool,
    most_streams: Option<u32>,
    first_window: i64,
    sendable: i64,
    receivable: i64,
    /// Error code and reason if the server accepts no more requests (GOAWAY).
    gone: Option<(u32, String)>,
    /// Headers of the last answer; `None` if they were not requested.
    headers: Option<Vec<(String, String)>>,
    /// First bytes of the last answer's body, if headers are requested.
    start: Vec<u8>,
}

impl H2Session {
    /// Creates a session for a new connection. `headers` is whether to keep the headers of answers.
    #[must_use]
    pub fn new(headers: bool) -> Self {
        let mut outbox = PREFACE.to_vec();
        let mut settings = Vec::new();
        // No pushes (2), window of each stream (4).
        for (setting, value) in [(2_u16, 0), (4, WINDOW)] {
            settings.extend_from_slice(&setting.to_be_bytes());
            settings.extend_from_slice(&value.to_be_bytes());
        }
        frame::write(&mut outbox, frame::SETTINGS, 0, 0, &settings);
        let more = WINDOW - FIRST_WINDOW as u32;
        frame::number(&mut outbox, frame::WINDOW_UPDATE, 0, more);
        Self {
            outbox,
            sent: 0,
            kept: Vec::new(),
            data: None,
            block: None,
            decoder: Decoder::default(),
            known: answers::Known::default(),
            streams: Vec::new(),
            uploading: false,
            next: 1,
            greeted: false,
            most_streams: Some(FIRST_STREAMS),
            first_window: FIRST_WINDOW,
            sendable: FIRST_WINDOW,
            receivable: i64::from(WINDOW),
            gone: None,
            headers: headers.then(Vec::new),
            start: Vec::new(),
        }
    }

    /// Returns the outbox: bytes that must be sent to the server.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.outbox[self.sent..]
    }

    /// Removes bytes that were sent from the outbox.
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= self.outbox.len() {
            self.outbox.clear();
            self.sent = 0;
        }
        self.upload();
    }

    /// Returns whether another request can be sent now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let most = self.most_streams.unwrap_or(u32::MAX);
        self.takes_more() && (self.streams.len() as u64) < u64::from(most)
    }

    /// Returns whether the connection still accepts requests, now or later.
    #[must_use]
    pub fn takes_more(&self) -> bool {
        self.gone.is_none() && self.next < u32::MAX >> 1
    }

    /// Returns whether no request is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// Returns the server's limit of concurrent streams; `None` without a limit, or before its SETTINGS have arrived.
    #[must_use]
    pub fn most_streams(&self) -> Option<u32> {
        self.most_streams
    }

    /// Returns the headers of the last answer; empty if they were not requested.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        self.headers.as_deref().unwrap_or_default()
    }

    /// Takes the first 4 KiB of the last body; empty if headers were not requested.
    #[must_use]
    pub fn take_start(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.start)
    }

    /// Returns the memory that the session uses in bytes, without requests and hashed bodies.
    #[must_use]
    pub fn held(&self) -> usize {
        let block = self.block.as_ref().map_or(0, |(_, bytes, _)| bytes.len());
        self.outbox.len() + self.kept.len() + block + self.decoder.size()
    }

    /// Encodes a request into the outbox. `place` identifies the request in events.
    pub fn ask(&mut self, place: u32, request: &Request) {
        let id = self.next;
        self.next += 2;
        self.uploading |= !request.body.is_empty();
        let upload = (!request.body.is_empty()).then(|| (Arc::clone(&request.body), 0));
        let mut kind = frame::HEADERS;
        let mut flags = match upload {
            None => frame::END_STREAM,
            Some(_) => 0,
        };
        let mut pieces = request.bytes.chunks(frame::LONGEST).peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                flags |= frame::END_HEADERS;
            }
            frame::write(&mut self.outbox, kind, flags, id, piece);
            (kind, flags) = (frame::CONTINUATION, 0);
        }
        self.streams.push(Stream {
            id,
            place,
            head_only: request.head,
            status: None,
            length: None,
            interim: 0,
            body: Body::new(request.expect.hash.is_some() || self.headers.is_some()),
            receivable: i64::from(WINDOW),
            sendable: self.first_window,
            upload,
        });
        self.upload();
    }

    /// Cancels the request of a slot.
    pub fn cancel(&mut self, place: u32) {
        if let Some(at) = self.streams.iter().position(|one| one.place == place) {
            let stream = self.streams.remove(at);
            frame::number(&mut self.outbox, frame::RST_STREAM, stream.id, 8);
        }
    }

    /// Returns the slots of requests in flight, each with whether a part of its answer has arrived.
    pub fn places(&self) -> impl Iterator<Item = (u32, bool)> {
        self.streams
            .iter()
            .map(|one| (one.place, one.status.is_some() || one.interim > 0))
    }

    /// Returns the status of an incomplete answer, and whether a part of the request's body waits for the send window.
    #[must_use]
    pub fn state(&self, place: u32) -> (Option<u16>, bool) {
        let stream = self.streams.iter().find(|one| one.place == place);
        stream.map_or((None, false), |stream| {
            let shut = stream.sendable <= 0 || self.sendable <= 0;
            (stream.status, stream.uploads() && shut)
        })
    }

    /// Returns the reason that the server gave when it closed the connection.
    #[must_use]
    pub fn gone(&self) -> Option<&str> {
        self.gone.as_ref().map(|(_, why)| why.as_str())
    }

    /// Processes received bytes and appends events.
    ///
    /// # Errors
    /// The server violated the protocol. Then the outbox ends with a GOAWAY that describes the violation, and requests
    /// in flight get no answer.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) -> Result<(), H2Fault> {
        let fed = self.take(bytes, events).and_then(|()| {
            match self.outbox.len() - self.sent > LONGEST_OUTBOX {
                // ENHANCE_YOUR_CALM.
                true => Err(H2Fault::new(
                    FailureKind::NotHttp,
                    11,
                    "the server asks without end (PING, SETTINGS) and reads no reply",
                )),
                false => Ok(()),
            }
        });
        if let Err(fault) = &fed {
            let mut payload = [0; 8];
            payload[4..].copy_from_slice(&fault.code.to_be_bytes());
            frame::write(&mut self.outbox, frame::GOAWAY, 0, 0, &payload);
        }
        fed
    }

    fn take(&mut self, mut bytes: &[u8], events: &mut Vec<StreamEvent>) -> Result<(), H2Fault> {
        while !bytes.is_empty() {
            if self.data.is_some() {
                self.take_data(&mut bytes, events)?;
                continue;
            }
            // Complete frames are parsed in place.
            let whole = match self.kept.is_empty() {
                true => bytes.first_chunk().map(Head::read),
                false => None,
            };
            if let Some(head) = whole {
                self.check(&head)?;
                let end = frame::HEAD + head.length;
                if head.kind == frame::DATA {
                    bytes = &bytes[frame::HEAD..];
                    self.begin_data(head, events)?;
                    continue;
                }
                if let Some(payload) = bytes.get(frame::HEAD..end) {
                    bytes = &bytes[end..];
                    self.frame(&head, payload, events)?;
                    continue;
                }
            }
            let head = self.kept.first_chunk().map(Head::read);
            let end = head.map_or(frame::HEAD, |head| frame::HEAD + head.length);
            let (piece, rest) = bytes.split_at((end - self.kept.len()).min(bytes.len()));
            self.kept.extend_from_slice(piece);
            bytes = rest;
            let Some(head) = self.kept.first_chunk().map(Head::read) else {
                continue;
            };
            self.check(&head)?;
            if head.kind == frame::DATA {
                self.kept.clear();
                self.begin_data(head, events)?;
            } else if self.kept.len() == frame::HEAD + head.length {
                let kept = std::mem::take(&mut self.kept);
                self.frame(&head, &kept[frame::HEAD..], events)?;
                self.kept = kept;
                self.kept.clear();
            }
        }
        Ok(())
    }

    /// Checks rules that apply to every frame.
    fn check(&self, head: &Head) -> Result<(), H2Fault> {
        if !self.greeted && (head.kind != frame::SETTINGS || head.has(frame::ACK)) {
            return Err(H2Fault::new(
                FailureKind::NoHttp2,
                1,
                "it does not speak HTTP/2 on this port: what came first are no settings",
            ));
        }
        if head.length > frame::LONGEST {
            return Err(H2Fault::size("a frame of more than 16 KiB"));
        }
        let inside = self.block.as_ref().map(|(head, ..)| head.stream);
        let goes_on = head.kind == frame::CONTINUATION;
        match inside {
            Some(stream) if !goes_on || stream != head.stream => {
                Err(H2Fault::protocol("another frame within a head"))
            }
            None if goes_on => Err(H2Fault::protocol("CONTINUATION without a head before it")),
            _ => Ok(()),
        }
    }

    fn frame(
        &mut self,
        head: &Head,
        payload: &[u8],
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), H2Fault> {
        match head.kind {
            frame::HEADERS | frame::CONTINUATION => self.head(head, payload, events),
            frame::RST_STREAM => self.reset(head, payload, events),
            frame::SETTINGS => self.settings(head, payload),
            frame::PUSH_PROMISE => Err(H2Fault::protocol("PUSH_PROMISE, though pushes are off")),
            frame::PING => self.ping(head, payload),
            frame::GOAWAY => self.goaway(head, payload, events),
            frame::WINDOW_UPDATE => self.window(head, payload, events),
            frame::PRIORITY if payload.len() != 5 => {
                Err(H2Fault::size("PRIORITY that is not of 5 bytes"))
            }
            // Unknown types are ignored (RFC 9113, section 4.1).
            _ => Ok(()),
        }
    }

    /// Returns the index of an open stream.
    fn find(&self, id: u32) -> Option<usize> {
        self.streams.binary_search_by_key(&id, |one| one.id).ok()
    }

    /// Returns the index of a frame's stream. Returns `None` for a closed stream, because frames for a closed stream
    /// are ignored.
    ///
    /// # Errors
    /// The stream was never opened.
    fn opened(&self, head: &Head) -> Result<Option<usize>, H2Fault> {
        match head.stream % 2 == 1 && head.stream < self.next {
            true => Ok(self.find(head.stream)),
            false => Err(H2Fault::protocol(format!(
                "a frame of kind {} on stream {}, which nobody opened",
                head.kind, head.stream
            ))),
        }
    }

    /// Ends a stream, and adds an event for the failure of its request.
    fn fail(
        &mut self,
        at: usize,
        kind: FailureKind,
        code: Option<u32>,
        why: impl Into<String>,
        events: &mut Vec<StreamEvent>,
    ) {
        let stream = self.streams.remove(at);
        if let Some(code) = code {
            frame::number(&mut self.outbox, frame::RST_STREAM, stream.id, code);
        }
        events.push(StreamEvent::Failed {
            place: stream.place,
            kind,
            why: why.into(),
        });
    }
}

//! One connection: requests that are asked, frames that come.

mod answers;
mod control;

use super::frame::{self, Head};
use super::hpack::Decoder;
use crate::answer::{Body, HttpResponse};
use crate::request::Request;
use assay_model::web::FailureKind;
use std::sync::Arc;

/// What a client says first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes that the server may send before it hears that they were taken, on a stream and on all of them.
/// They are opened again at half of it, so that they are no limit but on the longest fat links.
const WINDOW: u32 = 16 << 20;
/// Bytes that may be sent without a word of the server (RFC 9113, section 6.9.2).
const FIRST_WINDOW: i64 = 65_535;
/// Streams that are opened before the server has said how many it takes: no server should take fewer
/// (RFC 9113, section 6.5.2).
const FIRST_STREAMS: u32 = 100;
/// Bytes of bodies that wait to be sent.
const OUTBOX: usize = 64 << 10;
/// Bytes that a server may make us wait to send, while it does not read.
const LONGEST_OUTBOX: usize = 1 << 20;

/// What has become of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// It was answered.
    Answer {
        /// Whose request.
        place: u32,
        /// The answer.
        answer: HttpResponse,
    },
    /// It has failed; the others go on.
    Failed {
        /// Whose request.
        place: u32,
        /// How.
        kind: FailureKind,
        /// In words.
        why: String,
    },
    /// The server ends the connection in order, and has not looked at this request: it may be sent again.
    Left {
        /// Whose request.
        place: u32,
    },
}

/// Why a connection does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H2Fault {
    /// How its requests fail.
    pub kind: FailureKind,
    /// In words.
    pub why: String,
    /// What the server is told (GOAWAY).
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

    /// Against the rules in general.
    fn protocol(why: impl Into<String>) -> Self {
        Self::new(FailureKind::NotHttp, 1, why)
    }

    fn size(why: &'static str) -> Self {
        Self::new(FailureKind::NotHttp, 6, why)
    }
}

/// A request under way.
#[derive(Debug)]
struct Stream {
    id: u32,
    place: u32,
    head_only: bool,
    /// Of its answer, once the head is there.
    status: Option<u16>,
    length: Option<u64>,
    interim: u32,
    body: Body,
    /// Bytes that the server may still send.
    receivable: i64,
    /// Bytes that we may still send.
    sendable: i64,
    /// What is left of the request's body.
    upload: Option<(Arc<[u8]>, usize)>,
}

impl Stream {
    fn uploads(&self) -> bool {
        self.upload
            .as_ref()
            .is_some_and(|(body, sent)| *sent < body.len())
    }
}

/// A body whose bytes are on their way.
#[derive(Clone, Copy, Debug)]
struct Data {
    head: Head,
    left: usize,
    /// How much at the end of it is padding, once known.
    padding: Option<usize>,
}

/// One connection with all its streams.
#[derive(Debug)]
pub struct H2Session {
    outbox: Vec<u8>,
    sent: usize,
    /// A frame that came in pieces.
    kept: Vec<u8>,
    data: Option<Data>,
    /// A head that is not whole: its frame, what came, frames.
    block: Option<(Head, Vec<u8>, u32)>,
    decoder: Decoder,
    known: answers::Known,
    /// In ascending order of their numbers.
    streams: Vec<Stream>,
    /// Some of them may have more of a body to send.
    uploading: bool,
    next: u32,
    /// Settings have come.
    greeted: bool,
    most_streams: Option<u32>,
    first_window: i64,
    sendable: i64,
    receivable: i64,
    /// The server takes no more requests; why.
    gone: Option<(u32, String)>,
    /// Headers of the last answer, where they are wanted.
    headers: Option<Vec<(String, String)>>,
    /// The start of its body then.
    start: Vec<u8>,
}

impl H2Session {
    /// Of a connection that was just made. Headers of answers are kept where they are wanted.
    #[must_use]
    pub fn new(headers: bool) -> Self {
        let mut outbox = PREFACE.to_vec();
        let mut settings = Vec::new();
        // No pushes (2), the window of each stream (4).
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

    /// What is to be sent.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.outbox[self.sent..]
    }

    /// So much of it is sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= self.outbox.len() {
            self.outbox.clear();
            self.sent = 0;
        }
        self.upload();
    }

    /// Whether another request may be asked now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let most = self.most_streams.unwrap_or(u32::MAX);
        self.takes_more() && (self.streams.len() as u64) < u64::from(most)
    }

    /// Whether another request may be asked ever.
    #[must_use]
    pub fn takes_more(&self) -> bool {
        self.gone.is_none() && self.next < u32::MAX >> 1
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// Streams that the server takes at once, after its settings; none when it sets no limit.
    #[must_use]
    pub fn most_streams(&self) -> Option<u32> {
        self.most_streams
    }

    /// Headers of the last answer, where they are wanted.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        self.headers.as_deref().unwrap_or_default()
    }

    /// The first 4 KiB of the last body, where headers are wanted.
    #[must_use]
    pub fn take_start(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.start)
    }

    /// Bytes that are held, but for requests and bodies that are hashed.
    #[must_use]
    pub fn held(&self) -> usize {
        let block = self.block.as_ref().map_or(0, |(_, bytes, _)| bytes.len());
        self.outbox.len() + self.kept.len() + block + self.decoder.size()
    }

    /// Asks.
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

    /// Gives a request up.
    pub fn cancel(&mut self, place: u32) {
        if let Some(at) = self.streams.iter().position(|one| one.place == place) {
            let stream = self.streams.remove(at);
            frame::number(&mut self.outbox, frame::RST_STREAM, stream.id, 8);
        }
    }

    /// The requests under way, and whether something of the answer has come.
    pub fn places(&self) -> impl Iterator<Item = (u32, bool)> {
        self.streams
            .iter()
            .map(|one| (one.place, one.status.is_some() || one.interim > 0))
    }

    /// The status of an answer that is not whole, and whether the body of its request waits for a window.
    #[must_use]
    pub fn state(&self, place: u32) -> (Option<u16>, bool) {
        let stream = self.streams.iter().find(|one| one.place == place);
        stream.map_or((None, false), |stream| {
            let shut = stream.sendable <= 0 || self.sendable <= 0;
            (stream.status, stream.uploads() && shut)
        })
    }

    /// What the server said when it ended the connection.
    #[must_use]
    pub fn gone(&self) -> Option<&str> {
        self.gone.as_ref().map(|(_, why)| why.as_str())
    }

    /// Takes bytes of the server and appends what has become of requests.
    ///
    /// # Errors
    /// The server broke the protocol: what is to be sent ends with a GOAWAY that says so, and requests under
    /// way will not be answered.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) -> Result<(), H2Fault> {
        let fed = self.take(bytes, events).and_then(|()| {
            match self.outbox.len() - self.sent > LONGEST_OUTBOX {
                // Enhance your calm.
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
            // Frames that are here as a whole are read where they are.
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

    /// What holds of every frame.
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
            // Unknown kinds are to be passed over (RFC 9113, section 4.1).
            _ => Ok(()),
        }
    }

    /// Where a stream of ours is.
    fn find(&self, id: u32) -> Option<usize> {
        self.streams.binary_search_by_key(&id, |one| one.id).ok()
    }

    /// A frame of a stream that was never opened is an error; one of a stream that is over is not.
    fn opened(&self, head: &Head) -> Result<Option<usize>, H2Fault> {
        match head.stream % 2 == 1 && head.stream < self.next {
            true => Ok(self.find(head.stream)),
            false => Err(H2Fault::protocol(format!(
                "a frame of kind {} on stream {}, which nobody opened",
                head.kind, head.stream
            ))),
        }
    }

    /// Ends a stream with a failure.
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

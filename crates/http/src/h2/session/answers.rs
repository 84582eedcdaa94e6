//! Processes the frames of answers: heads and bodies.

use super::{Data, H2Fault, H2Session, StreamEvent, WINDOW};
use crate::answer::HttpResponse;
use crate::h2::frame::{self, Head};
use assay_model::web::FailureKind;

/// Maximum encoded length of a head in bytes.
const LONGEST_HEAD: usize = 64 << 10;
const MOST_FRAMES: u32 = 64;
/// Maximum number of interim answers (1xx).
const MOST_INTERIM: u32 = 64;

/// The last decoded head. Equal bytes have the same meaning as long as the decoder's table does not change.
#[derive(Debug, Default)]
pub struct Known {
    bytes: Vec<u8>,
    version: u64,
    meaning: Option<Meaning>,
}

/// The parts of a head that the session needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meaning {
    status: u16,
    length: Option<u64>,
}

impl H2Session {
    /// Processes a HEADERS or CONTINUATION frame, which contains a whole head or a part of one.
    pub(super) fn head(
        &mut self,
        head: &Head,
        payload: &[u8],
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), H2Fault> {
        self.opened(head)?;
        let content = frame::content(head, payload)
            .ok_or_else(|| H2Fault::protocol("a head with more padding than bytes"))?;
        if self.block.is_none() && head.has(frame::END_HEADERS) {
            return self.whole(head, content, events);
        }
        let (first, mut bytes, frames) = self.block.take().unwrap_or((*head, Vec::new(), 0));
        if bytes.len() + content.len() > LONGEST_HEAD || frames >= MOST_FRAMES {
            return Err(H2Fault::new(
                FailureKind::NotHttp,
                11,
                "a head of more than 64 KiB or 64 frames",
            ));
        }
        bytes.extend_from_slice(content);
        match head.has(frame::END_HEADERS) {
            true => self.whole(&first, &bytes, events),
            false => {
                self.block = Some((first, bytes, frames + 1));
                Ok(())
            }
        }
    }

    fn whole(
        &mut self,
        head: &Head,
        block: &[u8],
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), H2Fault> {
        // Decoded even if nobody waits for it, because it changes the table.
        let meaning = self.read(block)?;
        let Some(at) = self.find(head.stream) else {
            return Ok(());
        };
        let stream = &mut self.streams[at];
        let ends = head.has(frame::END_STREAM);
        let wrong = match (stream.status, meaning) {
            (Some(_), _) if ends => return self.end(at, events),
            (Some(_), _) => "a second head",
            (None, Err(why)) => why,
            (None, Ok(meaning)) if (100..200).contains(&meaning.status) => {
                stream.interim += 1;
                match () {
                    () if meaning.status == 101 => "status 101, which HTTP/2 does not have",
                    () if ends => "an interim head that ends the stream",
                    () if stream.interim > MOST_INTERIM => "more than 64 interim responses",
                    () => return Ok(()),
                }
            }
            (None, Ok(meaning)) => {
                stream.status = Some(meaning.status);
                let bodiless = stream.head_only || matches!(meaning.status, 204 | 304);
                stream.length = meaning.length.filter(|_| !bodiless);
                return match ends {
                    true => self.end(at, events),
                    false => Ok(()),
                };
            }
        };
        self.fail(at, FailureKind::NotHttp, Some(1), wrong, events);
        Ok(())
    }

    /// Interprets a head. The outer error ends the connection; the inner error only affects this response.
    fn read(&mut self, block: &[u8]) -> Result<Result<Meaning, &'static str>, H2Fault> {
        let version = self.decoder.version();
        if let Some(meaning) = self.known.meaning
            && self.known.version == version
            && self.known.bytes == block
        {
            return Ok(Ok(meaning));
        }
        let (mut status, mut length) = (None, None);
        let mut wrong = None;
        let mut headers = self.headers.is_some().then(Vec::new);
        let read = self.decoder.read(block, &mut |name, value| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            if let Some(headers) = &mut headers
                && !name.starts_with(b":")
            {
                headers.push((text(name), text(value)));
            }
            match name {
                b":status" if status.is_some() => wrong = Some("two statuses"),
                b":status" => match number(value).filter(|_| value.len() == 3) {
                    Some(number) if number >= 100 => status = Some(number as u16),
                    _ => wrong = Some("a status that is no number of three digits"),
                },
                b"content-length" => match number(value) {
                    None => wrong = Some("Content-Length is not a number"),
                    Some(number) if length.is_some_and(|other| other != number) => {
                        wrong = Some("two values of Content-Length");
                    }
                    Some(number) => length = Some(number),
                },
                _ => {}
            }
        });
        read.map_err(|why| H2Fault::new(FailureKind::NotHttp, 9, why))?;
        let meaning = match (status, wrong) {
            (_, Some(why)) => Err(why),
            // Trailers have no status; their content is ignored.
            (None, None) => Err("a head without a status"),
            (Some(status), None) => Ok(Meaning { status, length }),
        };
        if meaning.is_ok()
            && let Some(headers) = headers
        {
            self.headers = Some(headers);
        }
        let same = self.decoder.version() == version && self.headers.is_none();
        self.known.meaning = meaning.ok().filter(|_| same);
        if self.known.meaning.is_some() {
            self.known.version = version;
            self.known.bytes.clear();
            self.known.bytes.extend_from_slice(block);
        }
        Ok(meaning)
    }

    /// Starts processing a DATA frame.
    pub(super) fn begin_data(
        &mut self,
        head: Head,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), H2Fault> {
        let at = self.opened(&head)?;
        let over = |left: i64| (left < 0).then_some("more bytes than the window allows");
        let length = head.length as i64;
        self.receivable -= length;
        if let Some(why) = over(self.receivable) {
            return Err(H2Fault::new(FailureKind::FlowControl, 3, why));
        }
        // A frame that is too short for its padding.
        if head.has(frame::PADDED) && head.length == 0 {
            return Err(H2Fault::size("DATA without the length of its padding"));
        }
        if let Some(at) = at {
            let stream = &mut self.streams[at];
            stream.receivable -= length;
            if let Some(why) = over(stream.receivable) {
                self.fail(at, FailureKind::FlowControl, Some(3), why, events);
            } else if stream.status.is_none() {
                let why = "a body before its head";
                self.fail(at, FailureKind::NotHttp, Some(1), why, events);
            }
        }
        let padding = (!head.has(frame::PADDED)).then_some(0);
        self.data = Some(Data {
            head,
            left: head.length,
            padding,
        });
        match head.length {
            0 => self.data_ended(&head, events),
            _ => Ok(()),
        }
    }

    /// Processes the available bytes of the current DATA frame.
    pub(super) fn take_data(
        &mut self,
        bytes: &mut &[u8],
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), H2Fault> {
        let Some(mut data) = self.data else {
            return Ok(());
        };
        let Some(padding) = data.padding else {
            let (padding, rest) = bytes.split_first().unwrap_or((&0, &[]));
            *bytes = rest;
            data.left -= 1;
            if usize::from(*padding) > data.left {
                return Err(H2Fault::protocol("more padding than bytes"));
            }
            data.padding = Some(usize::from(*padding));
            self.data = Some(data);
            return match data.left {
                0 => self.data_ended(&data.head, events),
                _ => Ok(()),
            };
        };
        // Padding may arrive in pieces as well.
        let of_body = data.left.saturating_sub(padding);
        let taken = match of_body {
            0 => data.left,
            of_body => of_body,
        };
        let (piece, rest) = bytes.split_at(taken.min(bytes.len()));
        *bytes = rest;
        data.left -= piece.len();
        self.data = Some(data);
        if of_body > 0
            && let Some(at) = self.find(data.head.stream)
        {
            let stream = &mut self.streams[at];
            stream.body.take(piece);
            let most = match stream.head_only {
                true => Some(0),
                false => stream.length,
            };
            if most.is_some_and(|most| stream.body.bytes > most) {
                let why = "more bytes than the head says";
                self.fail(at, FailureKind::NotHttp, Some(1), why, events);
            }
        }
        match data.left {
            0 => self.data_ended(&data.head, events),
            _ => Ok(()),
        }
    }

    fn data_ended(&mut self, head: &Head, events: &mut Vec<StreamEvent>) -> Result<(), H2Fault> {
        self.data = None;
        let half = i64::from(WINDOW / 2);
        let more = |left: &mut i64| {
            let more = i64::from(WINDOW) - *left;
            *left += more;
            more as u32
        };
        if self.receivable < half {
            let more = more(&mut self.receivable);
            frame::number(&mut self.outbox, frame::WINDOW_UPDATE, 0, more);
        }
        let Some(at) = self.find(head.stream) else {
            return Ok(());
        };
        if head.has(frame::END_STREAM) {
            return self.end(at, events);
        }
        let stream = &mut self.streams[at];
        if stream.receivable < half {
            let more = more(&mut stream.receivable);
            frame::number(&mut self.outbox, frame::WINDOW_UPDATE, stream.id, more);
        }
        Ok(())
    }

    /// Processes the end of a response.
    fn end(&mut self, at: usize, events: &mut Vec<StreamEvent>) -> Result<(), H2Fault> {
        let stream = &self.streams[at];
        let body = stream.body.bytes;
        if let Some(length) = stream.length.filter(|length| *length > body) {
            let why = format!("the stream ends after {body} of {length} bytes");
            self.fail(at, FailureKind::ShortBody, None, why, events);
            return Ok(());
        }
        let mut stream = self.streams.remove(at);
        if self.headers.is_some() {
            self.start = std::mem::take(&mut stream.body.start);
        }
        if stream.uploads() {
            // The server needs no more of the request.
            frame::number(&mut self.outbox, frame::RST_STREAM, stream.id, 0);
        }
        events.push(StreamEvent::Answer {
            place: stream.place,
            answer: HttpResponse {
                status: stream.status.unwrap_or_default(),
                body,
                reusable: true,
                hash: stream.body.hash(),
            },
        });
        Ok(())
    }
}

fn number(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| digits)?;
    text.parse().ok()
}

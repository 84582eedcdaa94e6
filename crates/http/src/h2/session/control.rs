//! Processes frames about the connection: SETTINGS, windows, GOAWAY.

use super::{H2Fault, H2Session, OUTBOX, Stream, StreamEvent};
use crate::h2::frame::{self, Head};
use assay_model::web::FailureKind;

/// Maximum size of a window in bytes (RFC 9113, section 6.9.1).
const LARGEST: i64 = (1 << 31) - 1;

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u32::from_be_bytes)
}

fn broken_window(why: &'static str) -> H2Fault {
    H2Fault::new(FailureKind::FlowControl, 3, why)
}

fn broken_settings(code: u32, why: &'static str) -> H2Fault {
    H2Fault::new(FailureKind::Settings, code, why)
}

impl H2Session {
    pub(super) fn settings(&mut self, head: &Head, payload: &[u8]) -> Result<(), H2Fault> {
        if head.stream != 0 {
            return Err(broken_settings(1, "settings of a stream"));
        }
        if head.has(frame::ACK) {
            return match payload.is_empty() {
                true => Ok(()),
                false => Err(broken_settings(
                    6,
                    "settings that were taken, with a payload",
                )),
            };
        }
        if !payload.len().is_multiple_of(6) {
            return Err(broken_settings(6, "settings that are cut"));
        }
        if !self.greeted {
            // Without this setting the number is unlimited.
            self.greeted = true;
            self.most_streams = None;
        }
        for one in payload.chunks_exact(6) {
            let value = word(one, 2).unwrap_or_default();
            match u16::from_be_bytes([one[0], one[1]]) {
                2 if value != 0 => {
                    return Err(broken_settings(1, "a server that asks for pushes"));
                }
                3 => self.most_streams = Some(value),
                4 => {
                    let window = i64::from(value);
                    if window > LARGEST {
                        return Err(broken_settings(3, "a first window of 2 GiB or more"));
                    }
                    let more = window - self.first_window;
                    self.first_window = window;
                    for stream in &mut self.streams {
                        stream.sendable += more;
                        if stream.sendable > LARGEST {
                            return Err(broken_window("a window of 2 GiB or more"));
                        }
                    }
                }
                5 if !(1 << 14..1 << 24).contains(&value) => {
                    return Err(broken_settings(
                        1,
                        "a longest frame of less than 16 KiB or more than 16 MiB",
                    ));
                }
                // Other settings are irrelevant for the short frames that we send.
                _ => {}
            }
        }
        frame::write(&mut self.outbox, frame::SETTINGS, frame::ACK, 0, &[]);
        self.upload();
        Ok(())
    }

    pub(super) fn ping(&mut self, head: &Head, payload: &[u8]) -> Result<(), H2Fault> {
        match (head.stream, payload.len()) {
            (0, 8) if head.has(frame::ACK) => Ok(()),
            (0, 8) => {
                frame::write(&mut self.outbox, frame::PING, frame::ACK, 0, payload);
                Ok(())
            }
            _ => Err(H2Fault::size("PING that is not of 8 bytes, or of a stream")),
        }
    }

    pub(super) fn goaway(
        &mut self,
        head: &Head,
        payload: &[u8],
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), H2Fault> {
        let (Some(last), Some(code), 0) = (word(payload, 0), word(payload, 4), head.stream) else {
            return Err(H2Fault::size("GOAWAY that is cut, or of a stream"));
        };
        let last = last & (u32::MAX >> 1);
        let said = payload[8..].escape_ascii().take(200).map(char::from);
        let said: String = said.collect();
        let why = match said.is_empty() {
            true => format!("GOAWAY: {}", frame::code(code)),
            false => format!("GOAWAY: {} ({said})", frame::code(code)),
        };
        let left = self.streams.partition_point(|one| one.id <= last);
        for stream in self.streams.drain(left..) {
            events.push(match code {
                0 => StreamEvent::Left {
                    place: stream.place,
                },
                _ => StreamEvent::Failed {
                    place: stream.place,
                    kind: FailureKind::GoneAway,
                    why: why.clone(),
                },
            });
        }
        self.gone = Some((code, why));
        Ok(())
    }

    pub(super) fn reset(
        &mut self,
        head: &Head,
        payload: &[u8],
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), H2Fault> {
        let (Some(code), 4) = (word(payload, 0), payload.len()) else {
            return Err(H2Fault::size("RST_STREAM that is not of 4 bytes"));
        };
        if let Some(at) = self.opened(head)? {
            let when = match self.streams[at].status {
                Some(_) => " in the middle of the answer",
                None => "",
            };
            let why = format!("RST_STREAM{when}: {}", frame::code(code));
            self.fail(at, FailureKind::StreamReset, None, why, events);
        }
        Ok(())
    }

    pub(super) fn window(
        &mut self,
        head: &Head,
        payload: &[u8],
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), H2Fault> {
        let (Some(more), 4) = (word(payload, 0), payload.len()) else {
            return Err(H2Fault::size("WINDOW_UPDATE that is not of 4 bytes"));
        };
        let more = i64::from(more & (u32::MAX >> 1));
        if head.stream == 0 {
            self.sendable += more;
            if more == 0 || self.sendable > LARGEST {
                return Err(broken_window(
                    "a window of 2 GiB or more, or one opened by nothing",
                ));
            }
        } else if let Some(at) = self.opened(head)? {
            let stream = &mut self.streams[at];
            stream.sendable += more;
            if more == 0 || stream.sendable > LARGEST {
                let why = "a window of 2 GiB or more, or one opened by nothing";
                self.fail(at, FailureKind::FlowControl, Some(3), why, events);
            }
        }
        self.upload();
        Ok(())
    }

    /// Appends body data to the outbox, as far as the windows permit it and the outbox has room.
    pub(super) fn upload(&mut self) {
        if !self.uploading {
            return;
        }
        self.uploading = false;
        for stream in &mut self.streams {
            while let Some(piece) = piece(stream, self.sendable)
                && self.outbox.len() - self.sent < OUTBOX
                && let Some((body, sent)) = &mut stream.upload
            {
                let end = *sent + piece;
                let flags = match end == body.len() {
                    true => frame::END_STREAM,
                    false => 0,
                };
                let bytes = &body[*sent..end];
                frame::write(&mut self.outbox, frame::DATA, flags, stream.id, bytes);
                *sent = end;
                stream.sendable -= piece as i64;
                self.sendable -= piece as i64;
            }
            self.uploading |= stream.uploads();
        }
    }
}

/// Returns how many bytes of a body can be sent now; `None` if no byte can be sent.
fn piece(stream: &Stream, sendable: i64) -> Option<usize> {
    let (body, sent) = stream.upload.as_ref()?;
    let window = stream.sendable.min(sendable);
    let left = (body.len() - sent).min(frame::LONGEST);
    let piece = left.min(usize::try_from(window).ok()?);
    (piece > 0).then_some(piece)
}

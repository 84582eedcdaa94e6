//! Sends the first request to a server over HTTP/2.

use super::{ProbeError, Probed, Probing};
use crate::answer::HttpResponse;
use crate::h2::{H2Session, StreamEvent};
use crate::request::Request;
use crate::stream::{ReadOutcome, Stream};
use assay_model::web::Protocol;
use rustix::event::PollFlags;

impl Probing<'_> {
    /// Sends a request over a new connection and waits for the answer.
    pub(super) fn http2(
        &self,
        stream: &mut Stream,
        request: &Request,
    ) -> Result<Probed, ProbeError> {
        let mut session = H2Session::new(true);
        session.ask(0, request);
        let answer = self.exchange(stream, &mut session)?;
        Ok(Probed {
            address: self.address,
            answer,
            headers: session.headers().to_vec(),
            start: session.take_start(),
            took: self.begin.elapsed(),
            answered: self.opened.elapsed(),
            protocol: Protocol::Http2,
            most_streams: session.most_streams(),
        })
    }

    fn exchange(
        &self,
        stream: &mut Stream,
        session: &mut H2Session,
    ) -> Result<HttpResponse, ProbeError> {
        let protocol = |why: String| ProbeError::Protocol {
            address: self.address,
            why,
        };
        let broken = |error| self.broken(error);
        let mut buffer = vec![0; 64 << 10];
        let mut events = Vec::new();
        let mut all = 0;
        loop {
            let mut written = 1;
            while written > 0 && stream.flush().map_err(broken)? && !session.output().is_empty() {
                written = stream.write(session.output()).map_err(broken)?;
                session.sent(written);
            }
            let full = !session.output().is_empty() || !stream.flush().map_err(broken)?;
            match self.read(stream, &mut buffer, &mut all)? {
                ReadOutcome::Bytes(n, _) => {
                    let fed = session.feed(&buffer[..n], &mut events);
                    // An answer counts, whatever fails after it.
                    match events.pop() {
                        Some(StreamEvent::Answer { answer, .. }) => return Ok(answer),
                        Some(StreamEvent::Failed { why, .. }) => return Err(protocol(why)),
                        Some(StreamEvent::Left { .. }) => {
                            return Err(protocol(session.gone().unwrap_or("GOAWAY").to_owned()));
                        }
                        None => fed.map_err(|fault| protocol(fault.why))?,
                    }
                }
                ReadOutcome::End => {
                    let why = "the connection was closed without an answer";
                    return Err(protocol(session.gone().unwrap_or(why).to_owned()));
                }
                ReadOutcome::Skipped(..) | ReadOutcome::Nothing => {
                    let flags = match full {
                        true => PollFlags::IN | PollFlags::OUT,
                        false => PollFlags::IN,
                    };
                    self.wait(stream, flags)?;
                }
            }
        }
    }
}

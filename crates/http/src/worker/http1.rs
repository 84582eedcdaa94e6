//! HTTP/1.1, with one request at a time per connection.

use super::failure::{has_crossed_end, has_received_all};
use super::{SPOKEN, Worker};
use crate::answer::HttpResponse;
use crate::connection::ConnectionPhase;
use crate::stream::{ReadOutcome, Stream};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::io;

/// HTTP status with which some servers announce that they close an idle connection.
const REQUEST_TIMEOUT: u16 = 408;

impl Worker<'_> {
    pub(super) fn connect(&mut self, at: usize, now: u64) {
        let address = self.load.addresses[self.address % self.load.addresses.len()];
        self.address += 1;
        let connection = &mut self.connections[at];
        connection.generation = connection.generation.wrapping_add(1);
        connection.answers = 0;
        connection.sent = 0;
        connection.hung_up = false;
        connection.dialled = now;
        let data = EventData::new_u64((at as u64) << 32 | u64::from(connection.generation));
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        connection.phase = ConnectionPhase::Connecting;
        let opened = Stream::begin(&address, self.load.tls.as_ref()).and_then(|stream| {
            epoll::add(&self.epoll, &stream.tcp, data, flags).map_err(io::Error::from)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => connection.stream = Some(stream),
            Err(error) => self.broken(at, error),
        }
    }

    /// Handles an event of a connection: reads and writes until the connection would block.
    pub(super) fn drive(&mut self, at: usize, flags: EventFlags) {
        let connection = &mut self.connections[at];
        let Some(stream) = &mut connection.stream else {
            return;
        };
        connection.hung_up |=
            flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        if connection.phase == ConnectionPhase::Connecting {
            match stream.tcp.take_error() {
                Ok(None) => connection.phase = ConnectionPhase::Shaking,
                Ok(Some(error)) | Err(error) => return self.broken(at, error.into()),
            }
        }
        if connection.phase == ConnectionPhase::Shaking {
            match stream.shake_hands() {
                Ok(true) => {
                    let took = self.now.saturating_sub(connection.dialled);
                    self.tally.connected(self.now, took, stream.resumed());
                    connection.phase = ConnectionPhase::Sending;
                }
                Ok(false) => return,
                Err(error) => return self.broken(at, error),
            }
        }
        match connection.phase {
            ConnectionPhase::Sending => {
                self.send(at);
                // A server may answer before the request is complete, for example refuse a long one. This
                // event may be the only sign.
                if self.connections[at].is_busy() && flags.intersects(SPOKEN) {
                    self.receive(at);
                }
            }
            ConnectionPhase::Reading => self.receive(at),
            // The connection was closed while idle, or unrequested bytes arrived. TLS sends some of its own.
            ConnectionPhase::Free if connection.hung_up => connection.close(),
            ConnectionPhase::Free if flags.contains(EventFlags::IN) && self.load.tls.is_none() => {
                connection.close();
            }
            _ => {}
        }
    }

    pub(super) fn send(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let Some(stream) = &mut connection.stream else {
            return;
        };
        let bytes = &self.load.requests[connection.which].bytes;
        while connection.sent < bytes.len() {
            match stream.write(&bytes[connection.sent..]) {
                Ok(0) => return,
                Ok(n) => connection.sent += n,
                Err(error) => return self.broken(at, error),
            }
        }
        match stream.flush() {
            Ok(true) => connection.phase = ConnectionPhase::Reading,
            Ok(false) => {}
            Err(error) => self.broken(at, error),
        }
    }

    pub(super) fn receive(&mut self, at: usize) {
        loop {
            let connection = &mut self.connections[at];
            let Some(stream) = &mut connection.stream else {
                return;
            };
            let uninteresting = connection.reader.uninteresting();
            let (read, drained) = match stream.read(&mut self.buffer, uninteresting) {
                Ok(ReadOutcome::Bytes(n, drained)) => {
                    self.tally.received += n as u64;
                    connection.came += n as u64;
                    let fed = connection.reader.feed(&self.buffer[..n], &mut self.memory);
                    (fed, drained)
                }
                Ok(ReadOutcome::Skipped(n, drained)) => {
                    self.tally.received += n;
                    connection.came += n;
                    (Ok(connection.reader.skip(n)), drained)
                }
                Ok(ReadOutcome::Nothing) => return,
                Ok(ReadOutcome::End) => {
                    connection.hung_up = true;
                    match connection.reader.end() {
                        Ok(answer) => (Ok(Some(answer)), true),
                        Err(wrong) => (Err(wrong), true),
                    }
                }
                Err(error) => return self.broken(at, error),
            };
            match read {
                Ok(Some(answer)) => return self.answered(at, &answer),
                // A short read has emptied the socket (epoll(7)). A pending end of stream must still be read.
                Ok(None) if drained && !connection.hung_up => return,
                Ok(None) => {}
                Err(wrong) => return self.wrong(at, wrong),
            }
        }
    }

    fn answered(&mut self, at: usize, answer: &HttpResponse) {
        if self.ends_rest(at, answer) {
            return self.reopen(at);
        }
        self.judge(at, answer);
        self.learn_length(at);
        let connection = &mut self.connections[at];
        let request = &self.load.requests[connection.which];
        connection.answers += 1;
        connection.answered = self.now;
        let enough = self.load.requests_per_connection;
        let over = !answer.reusable
            || request.close
            || connection.hung_up
            || connection.phase == ConnectionPhase::Sending
            || enough.is_some_and(|most| connection.answers >= most);
        if over {
            connection.close();
        }
        self.ended(at, self.now);
    }

    /// Returns whether a response with status 408 does not belong to the request, but announces that the server closes
    /// an idle connection (RFC 9110, section 15.5.9).
    fn ends_rest(&self, at: usize, answer: &HttpResponse) -> bool {
        let connection = &self.connections[at];
        let request = &self.load.requests[connection.which];
        answer.status == REQUEST_TIMEOUT
            && request.expect.status != REQUEST_TIMEOUT
            && request.repeatable
            && connection.answers > 0
            && has_crossed_end(
                has_received_all(connection.stream.as_ref()),
                false,
                connection.answered,
                connection.begun,
            )
    }
}

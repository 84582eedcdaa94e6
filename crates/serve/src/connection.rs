//! A connection that is closed if its client stops reading. Without this limit, a slow reader could keep an answer open
//! forever.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// Time after which the connection is closed, if the client accepts no byte in this time.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// A stream whose writes have a time limit.
pub(crate) struct LimitedStream {
    stream: TcpStream,
    /// Timer that runs while a write waits for the client; `None` at other times.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl LimitedStream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            waiting: None,
        }
    }

    /// Returns the result of a write. Returns an error if the write has been pending for [`WRITE_TIMEOUT`].
    fn limit<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for LimitedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

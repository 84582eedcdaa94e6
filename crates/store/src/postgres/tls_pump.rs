//! Forwards bytes between a local socket and a TLS connection, until either side ends.

use rustix::event::{PollFd, PollFlags, poll};
use rustls::ClientConnection;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;

/// Maximum number of bytes that are read at once.
const AT_ONCE: usize = 16 << 10;

/// Forwards bytes until either side ends, then closes the other side.
pub(super) fn pass(mut connection: ClientConnection, tcp: &TcpStream, local: &UnixStream) {
    // Why it ended is of no use to anybody: both sides see that it did.
    let _ = pass_until_end(&mut connection, tcp, local);
    connection.send_close_notify();
    let _ = connection.write_tls(&mut &*tcp);
    let _ = tcp.shutdown(Shutdown::Both);
    let _ = local.shutdown(Shutdown::Both);
}

fn pass_until_end(
    connection: &mut ClientConnection,
    mut tcp: &TcpStream,
    mut local: &UnixStream,
) -> io::Result<()> {
    tcp.set_nonblocking(true)?;
    let mut buffer = [0; AT_ONCE];
    // What came together with the end of the handshake.
    deliver(connection, local, &mut buffer)?;
    loop {
        let mut of_tcp = PollFlags::IN;
        // No more is taken from here than the server takes.
        let mut of_local = PollFlags::IN;
        if connection.wants_write() {
            of_tcp |= PollFlags::OUT;
            of_local = PollFlags::empty();
        }
        let mut waiting = [PollFd::new(tcp, of_tcp), PollFd::new(local, of_local)];
        match poll(&mut waiting, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let (on_tcp, on_local) = (waiting[0].revents(), waiting[1].revents());
        if on_tcp.contains(PollFlags::OUT) {
            match connection.write_tls(&mut tcp) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        if on_tcp.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            match connection.read_tls(&mut tcp) {
                Ok(0) => return Ok(()),
                Ok(_) => {
                    connection.process_new_packets().map_err(io::Error::other)?;
                    deliver(connection, local, &mut buffer)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        if on_local.contains(PollFlags::IN) {
            let count = local.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            connection.writer().write_all(&buffer[..count])?;
        } else if on_local.intersects(PollFlags::HUP | PollFlags::ERR) {
            return Ok(());
        }
    }
}

/// Writes decrypted bytes to the local socket.
fn deliver(
    connection: &mut ClientConnection,
    mut local: &UnixStream,
    buffer: &mut [u8],
) -> io::Result<()> {
    loop {
        match connection.reader().read(buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => local.write_all(&buffer[..count])?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

//! Reading a line on a thread of its own, so that silence can be noticed.

use assay_wire::CHUNK;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, sync_channel};

/// Pieces that wait at most: who sends without end waits for us then.
const WAITING: usize = 64;

/// What comes over a line, in pieces. It ends with the line.
pub(crate) fn listen(mut line: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (tell, heard) = sync_channel(WAITING);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 2 * CHUNK];
        loop {
            match line.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) if tell.send(buffer[..count].to_vec()).is_ok() => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    });
    heard
}

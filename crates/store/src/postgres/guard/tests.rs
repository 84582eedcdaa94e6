//! Tests the limits with servers that are silent, send single bytes slowly, or never stop sending.

use super::*;
use ::postgres::{Client, Config, NoTls};
use std::net::TcpListener;

/// The messages `AuthenticationOk` and `ReadyForQuery`.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
const NOTICE: &[u8] = b"N\0\0\0\x17SNOTICE\0C00000\0Mx\0\0";
/// A message with a row of one column of four bytes.
const ROW: &[u8] = b"D\0\0\0\x0e\0\x01\0\0\0\x04abcd";

const SHORT: Limits = Limits {
    start: Duration::from_millis(700),
    answer: Duration::from_millis(700),
    bytes: 1 << 20,
    notices: 64 << 10,
};

/// How a server behaves after a connection was opened.
type Serve = fn(TcpStream) -> io::Result<()>;

fn welcome(stream: &mut TcpStream) -> io::Result<()> {
    let mut first = [0; 4096];
    let _ = stream.read(&mut first)?;
    stream.write_all(WELCOME)?;
    // Read the request.
    stream.read(&mut first).map(drop)
}

fn silent(stream: TcpStream) -> io::Result<()> {
    let mut all = Vec::new();
    (&stream).read_to_end(&mut all).map(drop)
}

fn endless(mut stream: TcpStream, piece: &[u8], pause: Duration) -> io::Result<()> {
    loop {
        stream.write_all(piece)?;
        std::thread::sleep(pause);
    }
}

const FAST: Duration = Duration::ZERO;
const NOW_AND_THEN: Duration = Duration::from_millis(50);

const OK: &[u8] = b"R\0\0\0\x08\0\0\0\0";

const SERVERS: [(&str, Serve); 10] = [
    ("silent", silent),
    ("a byte now and then", |stream| {
        // A message of 16 MiB that arrives byte by byte.
        (&stream).write_all(b"R\x01\0\0\0")?;
        endless(stream, b"x", NOW_AND_THEN)
    }),
    ("notices at once", |stream| {
        (&stream).write_all(OK)?;
        endless(stream, NOTICE, FAST)
    }),
    ("a notice now and then", |stream| {
        (&stream).write_all(OK)?;
        endless(stream, NOTICE, NOW_AND_THEN)
    }),
    ("a notice of 2 GiB", |stream| {
        (&stream).write_all(OK)?;
        (&stream).write_all(b"N\x7f\xff\xff\xff")?;
        endless(stream, &[b'x'; 4096], FAST)
    }),
    ("silent when asked", |mut stream| {
        welcome(&mut stream)?;
        silent(stream)
    }),
    ("notices when asked", |mut stream| {
        welcome(&mut stream)?;
        endless(stream, NOTICE, FAST)
    }),
    ("a notice now and then when asked", |mut stream| {
        welcome(&mut stream)?;
        endless(stream, NOTICE, NOW_AND_THEN)
    }),
    ("a byte now and then when asked", |mut stream| {
        welcome(&mut stream)?;
        stream.write_all(b"C\x01\0\0\0")?;
        endless(stream, b"x", NOW_AND_THEN)
    }),
    ("rows without end", |mut stream| {
        welcome(&mut stream)?;
        endless(stream, ROW, FAST)
    }),
];

/// Connects to the server and sends a query. Returns the reason if the guard closed the connection, and whether the
/// query failed.
fn ask(address: SocketAddr) -> (Option<String>, bool) {
    let name = address.ip().to_string();
    let place = Place::Tcp { address, name };
    let guard = Guard::connect(&place, None, Duration::from_secs(5), SHORT).unwrap();
    let mut config = Config::new();
    config
        .user("me")
        .dbname("db")
        .host_path(guard.dir())
        .port(Guard::PORT);
    let asked = config
        .connect(NoTls)
        .and_then(|mut client: Client| client.batch_execute("SELECT 1"));
    (guard.reason(), asked.is_err())
}

#[test]
fn attack_a_server_that_is_silent_or_floods_is_cut() {
    let mut held = 0;
    for (name, serve) in SERVERS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || serve(listener.accept()?.0));
        let (reason, failed) = ask(address);
        assert!(failed, "{name}");
        assert!(reason.is_some(), "{name}");
        // The connection was cut, so the server cannot continue.
        let _ = server.join().unwrap();
        held += 1;
    }
    assay_testing::attacked(
        "PostgreSQL servers that do not answer",
        SERVERS.len() as u64,
        held,
    );
}

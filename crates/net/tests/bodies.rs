//! Invited clients that send incomplete bodies, or one byte at a time.

use assay_http::{Tls, Trust};
use assay_net::client::ServerLink;
use assay_net::invite::Invitation;
use assay_net::server::NetServer;
use assay_net::server::budget::MOST_OF_CLIENT;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Length of a body in bytes, slightly less than the maximum length of a record.
const LONG: usize = 23 << 20;
/// Number of bodies that together exceed the limit of a client. The TLS handshakes of all of them must end within
/// seconds.
const BODIES: usize = 12;

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Opens a connection with the token of an invited client, so that the server accepts it.
fn connect(invitation: &Invitation) -> Stream {
    let trust = Trust::Fingerprint(invitation.fingerprint);
    let tls = Tls::new(&invitation.url, &trust, false).unwrap();
    let address = (HERE, invitation.url.port());
    let tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    tcp.set_write_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    StreamOwned::new(tls.client().unwrap(), tcp)
}

/// Begins a request with a body of `length` bytes.
fn begin(stream: &mut Stream, invitation: &Invitation, path: &str, client: &str, length: usize) {
    let token = &invitation.token;
    let client = match client {
        "" => String::new(),
        client => format!("assay-client: {client}\r\n"),
    };
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: h\r\nassay-token: {token}\r\n{client}Content-Length: {length}\r\n\r\n"
    )
    .unwrap();
}

fn status(stream: &mut Stream) -> Option<u16> {
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    std::str::from_utf8(&head[9..]).ok()?.parse().ok()
}

/// Sends most of a body. Returns whether the server accepted the bytes.
fn send_most(stream: &mut Stream) -> bool {
    let piece = vec![b' '; 1 << 20];
    (0..LONG >> 20).all(|_| stream.write_all(&piece).is_ok())
}

fn with_server(test: impl FnOnce(&NetServer, &Invitation) + Send) {
    let server = NetServer::bind((HERE, 0).into(), &[]).unwrap();
    let stop = AtomicBool::new(false);
    let stopped = || stop.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(&stopped).unwrap());
        let invitation = server.for_clients(HERE).unwrap();
        let tested = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            test(&server, &invitation);
        }));
        stop.store(true, Ordering::SeqCst);
        tested.unwrap();
    });
}

/// Joins as a client. Returns the client's number and key in the format of the header.
fn join(invitation: &Invitation) -> String {
    let link = ServerLink::new(invitation).unwrap();
    let mut exchange = link.exchange();
    let join =
        serde_json::json!({ "version": assay_net::wire::VERSION, "name": "x", "agent": "test" });
    let limit = Duration::from_secs(20);
    let joined: serde_json::Value = link
        .post(&mut exchange, "/join", &join, limit, &|| false)
        .unwrap();
    format!("{} {} -", joined["client"], joined["key"].as_str().unwrap())
}

#[test]
fn attack_unfinished_bodies_of_one_client_take_a_share() {
    with_server(|server, invitation| {
        let client = join(invitation);
        let streams: Vec<Stream> = std::thread::scope(|scope| {
            let bodies: Vec<_> = (0..BODIES)
                .map(|_| {
                    scope.spawn(|| {
                        let mut stream = connect(invitation);
                        begin(&mut stream, invitation, "/done", &client, LONG + 1);
                        send_most(&mut stream);
                        stream
                    })
                })
                .collect();
            bodies
                .into_iter()
                .map(|body| body.join().unwrap())
                .collect()
        });
        let used = server.bytes_of_bodies();
        assert!(used <= MOST_OF_CLIENT, "{used}");
        assert!(used > 0, "at least one body is waited for");
        // Another client is served in the meantime.
        let other = join(invitation);
        let mut stream = connect(invitation);
        begin(&mut stream, invitation, "/done", &other, 2);
        stream.write_all(b"{}").unwrap();
        assert_eq!(status(&mut stream), Some(400));
        drop(streams);
    });
}

#[test]
fn attack_no_key_no_long_body() {
    with_server(|server, invitation| {
        let client = join(invitation);
        let (number, key) = client.split_once(' ').unwrap();
        let wrong = format!("{number} {} -", "0".repeat(key.len() - 2));
        for (path, client, refused) in [
            ("/done", "", 413),
            ("/done", wrong.as_str(), 404),
            ("/done", "999 00 -", 404),
            ("/poll", "", 413),
            ("/join", "", 413),
            ("/poll", client.as_str(), 413),
        ] {
            let mut stream = connect(invitation);
            begin(&mut stream, invitation, path, client, LONG);
            // The server answers before the first byte of the body arrives.
            assert_eq!(status(&mut stream), Some(refused), "{path} {client}");
            assert_eq!(server.bytes_of_bodies(), 0);
        }
    });
}

//! Tests Heartbleed on patched, vulnerable and silent servers. Also checks that the probe never requests bytes that it
//! did not send.
#![allow(clippy::disallowed_methods, reason = "tests start real servers")]

mod common;

use assay_probe::heartbleed::Heartbeats;
use assay_probe::{Patience, ProbeError, Starttls, Visit, dtls};
use common::{Keys, lacks, read_record, scan, scan_patiently, scripted, write_record};
use std::io::Write as _;
use std::net::{TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a scripted server handles heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    /// Like OpenSSL 1.0.1: returns as many bytes as the request claims, including memory after the received bytes.
    Vulnerable,
    /// Like OpenSSL 1.0.1g: drops a heartbeat that is shorter than its length field claims.
    Fixed,
    /// Does not answer any heartbeat.
    Quiet,
    /// Ends the handshake with an alert.
    Alert,
    /// Answers with far more bytes than requested.
    Flood,
}

/// Memory of the server after the request, which the probe must never receive.
const SECRET: &[u8; 64] = b"-----BEGIN PRIVATE KEY-----secret-secret-secret-secret-secret---";

/// Returns the answer to a heartbeat as `tls1_process_heartbeat` builds it.
fn heartbeat(server: Server, request: &[u8]) -> Option<Vec<u8>> {
    let length = usize::from(u16::from_be_bytes([request[1], request[2]]));
    let echo = |padding: usize| {
        let mut memory = request[3..].to_vec();
        memory.extend_from_slice(SECRET);
        memory.resize(memory.len().max(length), b'S');
        let mut answer = vec![2, request[1], request[2]];
        answer.extend_from_slice(&memory[..length]);
        answer.resize(answer.len() + padding, 0x99);
        answer
    };
    match server {
        Server::Vulnerable => Some(echo(16)),
        Server::Fixed if 3 + length + 16 <= request.len() => Some(echo(16)),
        Server::Flood => Some(echo(12_000)),
        _ => None,
    }
}

/// Builds a ServerHello of TLS 1.2 with this suite, with heartbeats if requested.
fn server_hello(version: [u8; 2], suite: [u8; 2]) -> Vec<u8> {
    let mut body = version.to_vec();
    body.extend([7; 32]);
    body.push(0);
    body.extend(suite);
    body.push(0);
    body.extend([0, 5, 0, 15, 0, 1, 1]);
    body
}

fn serve(mut stream: TcpStream, server: Server, seen: &Mutex<Vec<Vec<u8>>>) -> std::io::Result<()> {
    let (_, hello) = read_record(&mut stream)?;
    // The server supports only TLS 1.2 with AES-128-CBC and refuses any other hello.
    let is_old = !hello.windows(6).any(|part| part == [0, 43, 0, 3, 2, 3]);
    let offers = hello.windows(2).any(|part| part == [0x00, 0x2f]);
    if hello[4..6] != [3, 3] || !is_old || !offers {
        return write_record(&mut stream, 21, &[2, 40]);
    }
    let body = server_hello([3, 3], [0x00, 0x2f]);
    let mut message = vec![2, 0, 0, body.len() as u8];
    message.extend(body);
    message.extend([14, 0, 0, 0]);
    write_record(&mut stream, 22, &message)?;
    loop {
        let (kind, request) = read_record(&mut stream)?;
        if kind != 24 {
            return Ok(());
        }
        seen.lock().unwrap().push(request.clone());
        if server == Server::Alert {
            return write_record(&mut stream, 21, &[2, 10]);
        }
        if let Some(answer) = heartbeat(server, &request) {
            write_record(&mut stream, 24, &answer)?;
        }
    }
}

fn outcome(server: Server) -> (Heartbeats, Vec<Vec<u8>>, Vec<&'static str>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let address = scripted(move |stream| {
        let _ = serve(stream, server, &kept);
    });
    let patience = Patience {
        answer: Duration::from_millis(1500),
        total: Duration::from_secs(60),
    };
    let report = scan_patiently(address.port(), None, &[], patience);
    let ids = report.remarks.iter().map(|remark| remark.id).collect();
    let seen = seen.lock().unwrap().clone();
    (report.heartbeats, seen, ids)
}

#[test]
fn attack_servers_of_every_kind_and_see_no_foreign_byte() {
    let (mut tried, mut held) = (0, 0);
    for server in [
        Server::Vulnerable,
        Server::Fixed,
        Server::Quiet,
        Server::Alert,
        Server::Flood,
    ] {
        let (found, requests, ids) = outcome(server);
        let expected = match server {
            Server::Vulnerable => found == Heartbeats::Vulnerable,
            Server::Fixed => found == Heartbeats::Fixed,
            Server::Alert => matches!(found, Heartbeats::Refused { .. }),
            Server::Quiet | Server::Flood => matches!(found, Heartbeats::Unknown { .. }),
        };
        assert!(expected, "{server:?}: {found:?}");
        assert_eq!(ids.contains(&"heartbleed"), server == Server::Vulnerable);
        assert!(!requests.is_empty(), "{server:?}");
        for request in &requests {
            tried += 1;
            // The bytes that a vulnerable server would return must not contain its own memory.
            let answer = heartbeat(Server::Vulnerable, request).unwrap();
            let asked = &answer[3..answer.len() - 16];
            assert_eq!(asked, &request[3..3 + asked.len()], "{server:?}");
            held += 1;
        }
    }
    assay_testing::attacked("heartbleed-no-foreign-memory", tried, held);
}

#[test]
fn behind_starttls() {
    let address = scripted(move |mut stream| {
        let mut line = String::new();
        let say = |stream: &mut TcpStream, text: &str| stream.write_all(text.as_bytes());
        let mut hear = |stream: &mut TcpStream| -> std::io::Result<()> {
            use std::io::Read as _;
            line.clear();
            let mut byte = [0];
            while !line.ends_with('\n') {
                stream.read_exact(&mut byte)?;
                line.push(char::from(byte[0]));
            }
            Ok(())
        };
        let mut talk = || -> std::io::Result<()> {
            say(&mut stream, "220 test\r\n")?;
            hear(&mut stream)?;
            say(&mut stream, "250-test\r\n250 STARTTLS\r\n")?;
            hear(&mut stream)?;
            say(&mut stream, "220 go on\r\n")?;
            serve(stream.try_clone()?, Server::Vulnerable, &Mutex::default())
        };
        let _ = talk();
    });
    let report = scan(address.port(), Some(Starttls::Smtp), &[]);
    assert_eq!(report.heartbeats, Heartbeats::Vulnerable);
}

/// Builds a DTLS record.
fn record(kind: u8, sequence: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![kind, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, sequence];
    out.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
    out.extend_from_slice(body);
    out
}

fn fragment(kind: u8, number: u8, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u8;
    let mut out = vec![kind, 0, 0, length, 0, number, 0, 0, 0, 0, 0, length];
    out.extend_from_slice(body);
    out
}

/// Starts a scripted DTLS server that loses the first `lost` datagrams.
fn serve_udp(server: Server, lost: usize) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        let heard = AtomicUsize::new(0);
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            if heard.fetch_add(1, Ordering::Relaxed) < lost {
                continue;
            }
            let (kind, body) = (buffer[0], &buffer[13..length]);
            let answer = match kind {
                22 => {
                    // 12 bytes of header, version, random, an empty session; then the cookie.
                    let cookie = usize::from(body[12 + 2 + 32 + 1]);
                    match cookie {
                        0 => record(22, 0, &fragment(3, 0, &[0xfe, 0xff, 4, 1, 2, 3, 4])),
                        _ => record(
                            22,
                            1,
                            &fragment(2, 1, &server_hello([0xfe, 0xfd], [0x00, 0x2f])),
                        ),
                    }
                }
                24 => match heartbeat(server, body) {
                    Some(answer) => record(24, 2, &answer),
                    None => continue,
                },
                _ => continue,
            };
            let _ = socket.send_to(&answer, from);
        }
    });
    port
}

fn over_udp(port: u16, patience: Patience) -> dtls::Report {
    let target = common::target(port);
    let address = ([127, 0, 0, 1], port).into();
    dtls::scan(&Visit::at(&target, address, patience, [2; 32])).unwrap()
}

#[test]
fn over_udp_with_lost_packets() {
    let patience = Patience {
        answer: Duration::from_secs(6),
        total: Duration::from_secs(30),
    };
    let found = |server, lost| over_udp(serve_udp(server, lost), patience).heartbeats;
    assert_eq!(found(Server::Vulnerable, 0), Heartbeats::Vulnerable);
    assert_eq!(found(Server::Fixed, 1), Heartbeats::Fixed);
    assert!(matches!(
        found(Server::Quiet, 0),
        Heartbeats::Unknown { .. }
    ));
}

/// A real server that supports heartbeats and is not vulnerable.
#[test]
fn gnutls_is_never_called_vulnerable() {
    if lacks(&["gnutls-serv", "openssl"]) {
        return;
    }
    let keys = Keys::rsa();
    let port = common::free_udp_port();
    let mut command = Command::new("gnutls-serv");
    command.args(["--udp", "--heartbeat", "--port", &port.to_string()]);
    command.arg("--x509certfile").arg(keys.cert());
    command.arg("--x509keyfile").arg(keys.key());
    let log = keys.path("gnutls.log");
    let _server = common::Server::start(command, &log);
    let patience = Patience {
        answer: Duration::from_secs(8),
        total: Duration::from_secs(30),
    };
    let target = common::target(port);
    let address = ([127, 0, 0, 1], port).into();
    // Until the server listens, the kernel refuses each packet immediately.
    let report = (0..100)
        .find_map(
            |_| match dtls::scan(&Visit::at(&target, address, patience, [3; 32])) {
                Err(ProbeError::Connect { .. }) => {
                    std::thread::sleep(Duration::from_millis(100));
                    None
                }
                other => Some(other.unwrap()),
            },
        )
        .expect("gnutls-serv answers");
    assert!(report.version.is_some(), "{report:?}");
    assert_ne!(report.heartbeats, Heartbeats::Vulnerable);
    // The server offers heartbeats, so the test covers more than a missing extension.
    assert_ne!(report.heartbeats, Heartbeats::NotOffered, "{report:?}");
    eprintln!("gnutls-serv: {:?}", report.heartbeats);
}

/// `bench/check/heartbleed` builds both programs and runs this test.
#[test]
#[ignore = "needs the programs that bench/check/heartbleed builds"]
fn the_real_code_with_and_without_its_check() {
    let dir = std::env::var("ASSAY_OLD_OPENSSL").expect("ASSAY_OLD_OPENSSL names the programs");
    let keys = Keys::rsa();
    for (program, expected) in [
        ("fixed", Heartbeats::Fixed),
        ("vulnerable", Heartbeats::Vulnerable),
    ] {
        let port = common::free_udp_port();
        let mut command = Command::new(std::path::Path::new(&dir).join(program));
        command.args([
            "s_server",
            "-dtls",
            "-quiet",
            "-accept",
            &format!("127.0.0.1:{port}"),
        ]);
        command
            .arg("-cert")
            .arg(keys.cert())
            .arg("-key")
            .arg(keys.key());
        command.env("OPENSSL_CONF", "/dev/null");
        let _server = common::Server::start(command, &keys.path("server.log"));
        let patience = Patience {
            answer: Duration::from_secs(10),
            total: Duration::from_secs(30),
        };
        std::thread::sleep(Duration::from_secs(2));
        let report = over_udp(port, patience);
        eprintln!("{program}: {report:?}");
        assert_eq!(report.heartbeats, expected, "{program}");
    }
}

//! Targets for the responses of programs that assay talks to: image servers, monitors, mail servers.

use super::seeds::{text_seeds, to_text};
use crate::ParserTarget;
use crate::imap::{LineBuffer, Login, Next};
use crate::nbd::{Client, Disk};
use assay_http::h2::H2Session;
use assay_http::{Method, Request};
use assay_qemu::Qmp;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::time::Duration;

pub(super) fn targets() -> Vec<ParserTarget> {
    vec![
        ParserTarget {
            name: "qmp",
            seeds: text_seeds(&[
                "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n{\"return\": {}}\r\n{\"timestamp\": {\"seconds\": 1}, \"event\": \"RESET\"}\r\n{\"return\": [{\"node-name\": \"a\", \"drv\": \"raw\"}]}\r\n",
                "{\"QMP\": {}}\n{\"return\": {}}\n{\"error\": {\"class\": \"GenericError\", \"desc\": \"no\"}}\n",
            ]),
            run: |bytes| {
                let reader = Box::new(BufReader::new(Cursor::new(bytes.to_vec())));
                let soon = Duration::from_secs(1);
                if let Ok(mut qmp) = Qmp::over(reader, Box::new(io::sink()), soon) {
                    while qmp.execute("query-blockstats", json!({})).is_ok() {}
                    let _ = qmp.take_events();
                }
            },
        },
        ParserTarget {
            name: "http2-answers",
            seeds: http2_seeds(),
            run: http2,
        },
        ParserTarget {
            name: "counters-over-ssh",
            seeds: text_seeds(&[
                "begin 1\nup 5.00\ncpu  10 1 5 900 40 2 3 7 0 0\ncpus 2\noverflows 3\ndrops 4\nt 7 7 5000 60\nticks 7 8 3\nname nginx\nup 5.00\nend 1\nbegin 2\nup 5.01\ncpu  11 1 5 900 40 2 3 7 0 0\ncpus 2\nt 7 7 9000 70\nname nginx\nup 5.01\nend 2\n",
                "begin 1\nup 5.00\ncpu  1 1 1 1 1 1 1 1\ncpus 1\nusage 7\nup 5.01\nend 1\nbegin 2\nup 5.02\ncpu  1 1 1 1 1 1 1 1\ncpus 1\nusage 99\nup 5.02\nend 2\n",
                "begin 1\nsockets\nholds 7\nholds 8\nend 1\nbegin 2\nend 2\n",
            ]),
            run: |bytes| {
                if let Ok(used) = assay_web::told(bytes) {
                    // What is taken can be, and may be printed.
                    assert!(used.window.0 > 0 && !used.what.contains(char::is_control));
                    let cpus = f64::from(used.machine.expect("it is another one").cpus);
                    assert!(used.cpu.0 as f64 <= used.window.0 as f64 * cpus * 1.05 + 50e6);
                }
            },
        },
        ParserTarget {
            name: "proxmox-over-ssh",
            seeds: vec![pvesh_seeds()],
            run: |bytes| {
                if let Ok(inventory) = assay_fleet::Inventory::told_by_proxmox(bytes) {
                    for machine in inventory.all() {
                        for name in [&machine.name, &machine.address] {
                            // ssh gets it as one word, and takes it for a machine.
                            assert!(assay_fleet::session::check_name(name).is_ok());
                        }
                    }
                }
            },
        },
        ParserTarget {
            name: "generator-over-ssh",
            seeds: vec![
                generator_step(),
                br#"{"ready":{"targets":[{"addresses":["192.0.2.1:80"],"consent":{"until":"2030-01-01","most_requests_per_second":5.0,"most_connections":2},"protocol":"http/1.1","streams":1,"remarks":["x"]}],"machine":"m"}}"#.to_vec(),
                br#"{"live":[3,4]}"#.to_vec(),
                br#"{"failed":"no"}"#.to_vec(),
            ],
            run: |bytes| {
                let Some(step) = assay_web::many::told(&to_text(bytes)) else {
                    return;
                };
                let judged = assay_judge::web::judge(&[step], 1);
                let all = serde_json::to_string(&judged).expect("it is JSON");
                assert!(!all.contains("\\u001b"), "control characters pass: {all}");
            },
        },
        ParserTarget {
            name: "nbd-client",
            seeds: vec![
                nbd_server_bytes(&[(3, &export(1 << 20)), (1, &[])]),
                nbd_server_bytes(&[(3, &[0, 3]), (1 << 31 | 1, b"no")]),
            ],
            run: |bytes| {
                if let Ok(mut client) = Client::negotiate(Peer(bytes), "disk") {
                    let mut data = [0; 512];
                    let _ = client.write(0, &data, 1);
                    let _ = client.flush();
                    while client.read(0, &mut data).is_ok() {}
                }
            },
        },
        ParserTarget {
            name: "nbd-server",
            seeds: vec![nbd_client_bytes()],
            run: |bytes| {
                let disk = Disk::new(memory_file(SIZE), memory_file(0)).expect("it is in memory");
                let _ = disk.talk(Peer(bytes));
                let left = memory_file(SIZE);
                for moment in 0..=disk.moment() {
                    // What a power cut leaves is inside the disk.
                    disk.cut(&left, 0, moment)
                        .expect("what was taken can be written");
                }
                let size = left.metadata().expect("it is open").len();
                assert_eq!(size, SIZE, "the disk has grown");
            },
        },
        ParserTarget {
            name: "imap",
            seeds: text_seeds(&[
                "* OK [CAPABILITY IMAP4rev1] ready\r\n+ OK\r\n* CAPABILITY X\r\n+ go\r\na1 OK Logged in\r\n",
                "* OK\n* 3 EXISTS\n+\n* BYE\n",
                "* OK\r\n+ \r\na1 NO [AUTHENTICATIONFAILED] no such user `änn` with s3cret-pass\r\n",
            ]),
            run: imap,
        },
    ]
}

/// Returns the output of `pvesh` on a Proxmox node, with the marks of assay's script.
fn pvesh_seeds() -> Vec<u8> {
    let parts: [(&str, &str); 4] = [
        (
            "resources",
            include_str!("../../../fleet/fixtures/proxmox/resources.json"),
        ),
        (
            "status",
            include_str!("../../../fleet/fixtures/proxmox/status.json"),
        ),
        (
            "guest 100",
            include_str!("../../../fleet/fixtures/proxmox/agent.json"),
        ),
        (
            "guest 200",
            include_str!("../../../fleet/fixtures/proxmox/container.json"),
        ),
    ];
    let all = parts.map(|(what, text)| format!("\nassay-proxmox 1 {what}\n{text}"));
    all.concat().into_bytes()
}

/// Returns the report of a load generator about one step.
fn generator_step() -> Vec<u8> {
    use assay_model::Nanos;
    use assay_model::web::{
        FailureKind, Failures, LinkUse, MachineUse, Measured, Pace, Protocol, Second, Step,
    };
    let measured = Measured {
        window: Nanos(1_000_000_000),
        answers: 3,
        bytes: 30,
        received: 60,
        latency: [(1_000_000, 2), (2_000_000, 1)].into_iter().collect(),
        service: [(1_000_000, 3)].into_iter().collect(),
        failures: vec![Failures {
            kind: FailureKind::Reset,
            count: 1,
            first: "reset".to_owned(),
        }],
        due: 4,
        under_way: 0.5,
        cpu: Nanos(9),
        cpu_waited: Some(Nanos(1)),
        threads: 1,
        connections: 2,
        seconds: vec![Second::default()],
        ..Measured::default()
    };
    let step = Step {
        target: 0,
        round: 0,
        connections: 2,
        protocol: Protocol::Http1,
        streams: 1,
        pace: Pace::Closed,
        share: None,
        measured,
        server: Err("elsewhere".to_owned()),
        link: Ok(LinkUse {
            interface: "eth0".to_owned(),
            received: 1e6,
            sent: 1e5,
            speed: Some(1e6),
        }),
        machine: MachineUse {
            cpus: 2,
            window: Nanos(1_000_000_000),
            busy: Nanos(1_000_000_000),
            ..MachineUse::default()
        },
        parts: Vec::new(),
    };
    let word = json!({"step": {"late_us": 3, "step": step}});
    let seed = word.to_string();
    assert!(
        assay_web::many::told(&seed).is_some(),
        "the seed is understood"
    );
    seed.into_bytes()
}

/// A peer that sends these bytes and discards what it receives.
struct Peer<'a>(&'a [u8]);

impl Read for Peer<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Peer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns frames of a server: settings, a head in two pieces with a Huffman-coded text, padding, trailers, end.
fn http2_seeds() -> Vec<Vec<u8>> {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        out.extend([kind, flags]);
        out.extend(stream.to_be_bytes());
        out.extend(payload);
        out
    };
    let head = b"\x20\x88\x76\x89\xaa\x63\x55\xe5\x80\xae\x17\x97\x07\x5c\x01\x35";
    let whole = [
        frame(4, 0, 0, &[0, 3, 0, 0, 0, 128, 0, 4, 0, 1, 0, 0]),
        frame(4, 1, 0, &[]),
        frame(1, 0, 1, &head[..7]),
        frame(9, 4, 1, &head[7..]),
        frame(0, 8, 1, b"\x02hel\0\0"),
        frame(6, 0, 0, &[7; 8]),
        frame(0, 0, 1, b"lo"),
        frame(8, 0, 0, &[0, 0, 1, 0]),
        frame(1, 5, 1, &[0x40, 1, b'a', 1, b'b']),
    ];
    let cut = [
        frame(4, 0, 0, &[]),
        frame(1, 0x24, 3, &[0, 0, 0, 0, 9, 0x88, 0x7e]),
        frame(3, 0, 1, &[0, 0, 0, 8]),
        frame(7, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0, b'x']),
        frame(0, 1, 3, b"hello"),
    ];
    vec![whole.concat(), cut.concat()]
}

/// Checks that the split into pieces does not change the events, that no request ends twice, and that little memory is
/// used.
fn http2(bytes: &[u8]) {
    let url = assay_http::Url::parse("http://h/").expect("it is one");
    let said = |piece: usize| {
        let mut session = H2Session::new(false);
        let mut events = Vec::new();
        for place in 0..3 {
            let asked = Request::http2(&Method::Get, &url, &[], &[b'x'; 70]);
            session.ask(place, &asked.expect("it can be asked"));
        }
        let mut fed = Ok(());
        for bytes in bytes.chunks(piece) {
            fed = session.feed(bytes, &mut events);
            assert!(
                session.held() < 4 << 20,
                "{} bytes are held",
                session.held()
            );
            if fed.is_err() {
                break;
            }
        }
        assert!(events.len() + session.places().count() <= 3, "{events:?}");
        (events, fed, session.output().to_vec())
    };
    let whole = said(bytes.len().max(1));
    for piece in [1, 7] {
        assert_eq!(said(piece), whole, "in pieces of {piece}");
    }
}

/// Size of the served disk in bytes.
const SIZE: u64 = 1 << 20;

fn memory_file(size: u64) -> File {
    let file = rustix::fs::memfd_create("hostile", rustix::fs::MemfdFlags::CLOEXEC);
    let file = File::from(file.expect("there is memory"));
    file.set_len(size).expect("there is memory");
    file
}

/// Returns the bytes of an NBD server: greeting, replies to one option, replies to a write, a flush and a read.
fn nbd_server_bytes(replies: &[(u32, &[u8])]) -> Vec<u8> {
    let mut said = b"NBDMAGICIHAVEOPT\0\x03".to_vec();
    for (kind, payload) in replies {
        said.extend(0x0003_e889_0455_65a9_u64.to_be_bytes());
        said.extend(7_u32.to_be_bytes());
        said.extend(kind.to_be_bytes());
        said.extend((payload.len() as u32).to_be_bytes());
        said.extend(*payload);
    }
    for cookie in 1..=3_u64 {
        said.extend(0x6744_6698_u32.to_be_bytes());
        said.extend(0_u32.to_be_bytes());
        said.extend(cookie.to_be_bytes());
    }
    said.extend([7; 512]);
    said
}

fn export(size: u64) -> Vec<u8> {
    let mut info = vec![0, 0];
    info.extend(size.to_be_bytes());
    info.extend([0, 1]);
    info
}

/// Returns the bytes of an NBD client: an unknown option, a known option, and one request of each kind.
fn nbd_client_bytes() -> Vec<u8> {
    let mut said = 3_u32.to_be_bytes().to_vec();
    for (option, data) in [(9_u32, &b"x"[..]), (7, b"\0\0\0\x04disk\0\0")] {
        said.extend(b"IHAVEOPT");
        said.extend(option.to_be_bytes());
        said.extend((data.len() as u32).to_be_bytes());
        said.extend(data);
    }
    for (command, flags) in [
        (1_u16, 0_u16),
        (3, 0),
        (1, 1),
        (0, 0),
        (4, 0),
        (6, 1),
        (2, 0),
    ] {
        said.extend(0x2560_9513_u32.to_be_bytes());
        said.extend(flags.to_be_bytes());
        said.extend(command.to_be_bytes());
        said.extend(7_u64.to_be_bytes());
        said.extend(4096_u64.to_be_bytes());
        said.extend(16_u32.to_be_bytes());
        if command == 1 {
            said.extend([5; 16]);
        }
    }
    said
}

const PASSWORD: &str = "s3cret-pass";

/// Checks that the result of a login does not depend on the split of the server's answer into pieces, and that no error
/// message contains the password.
fn imap(bytes: &[u8]) {
    let talk = |size: usize| {
        let (mut lines, mut said) = (LineBuffer::default(), Vec::new());
        let mut login = Login::new("änn".as_bytes(), PASSWORD.as_bytes());
        for piece in bytes.chunks(size) {
            lines.push(piece);
            loop {
                match lines.next() {
                    Ok(Some(line)) => said.push(login.take(&line)),
                    Ok(None) => break,
                    Err(_) => return said,
                }
                if !matches!(said.last(), Some(Next::Wait | Next::Send(_))) {
                    return said;
                }
            }
        }
        said
    };
    let said = talk(bytes.len().max(1));
    assert_eq!(talk(7), said, "whole and in pieces");
    for next in &said {
        if let Next::Refused(answer) | Next::Wrong { answer, .. } = next {
            assert!(!answer.contains(PASSWORD), "{answer}");
            assert_eq!(to_text(answer.as_bytes()), *answer);
        }
    }
}

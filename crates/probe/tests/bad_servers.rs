//! Tests servers that are slow, broken, hostile or of another protocol. Every visit must end in time, use little
//! memory, and report one clear sentence.
#![allow(clippy::disallowed_methods, reason = "tests look at the clock")]

mod common;

use assay_probe::heartbleed::Heartbeats;
use assay_probe::tls::{Question, Roots, Version, VersionState};
use assay_probe::{Patience, ProbeError, Starttls, Target, Visit, http, smb, ssh, tls};
use common::{now, scripted, target};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

const SHORT: Patience = Patience {
    answer: Duration::from_millis(300),
    total: Duration::from_millis(1500),
};

/// Behaviour of a bad server on a connection.
#[derive(Clone, Copy, Debug)]
enum Bad {
    Silent,
    Drip,
    Garbage,
    Endless,
    Zeros,
    HangsUp,
    Resets,
    Smtp,
    EndlessLine,
    EndlessHandshake,
}

const ALL: [Bad; 10] = [
    Bad::Silent,
    Bad::Drip,
    Bad::Garbage,
    Bad::Endless,
    Bad::Zeros,
    Bad::HangsUp,
    Bad::Resets,
    Bad::Smtp,
    Bad::EndlessLine,
    Bad::EndlessHandshake,
];

fn behave(bad: Bad, mut stream: TcpStream) -> std::io::Result<()> {
    let flood = |stream: &mut TcpStream, bytes: &[u8]| -> std::io::Result<()> {
        // Ten gigabytes, if the client reads them all.
        for _ in 0..(10_u64 << 30) / bytes.len() as u64 {
            stream.write_all(bytes)?;
        }
        Ok(())
    };
    let mut seed = [0; 64];
    match bad {
        Bad::Silent => std::thread::sleep(Duration::from_secs(20)),
        Bad::Drip => {
            let start = [22, 3, 3, 0x40, 0, 2, 0, 0x3f, 0xfc];
            for byte in start.iter().chain(std::iter::repeat(&0)).take(30) {
                stream.write_all(&[*byte])?;
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        Bad::Garbage => {
            let _ = stream.read(&mut seed)?;
            seed.iter_mut()
                .for_each(|byte| *byte = byte.wrapping_mul(31).wrapping_add(7));
            stream.write_all(&seed)?;
        }
        Bad::Endless => flood(&mut stream, &[0x5a; 65536])?,
        Bad::Zeros => flood(&mut stream, &[0; 65536])?,
        Bad::HangsUp => drop(stream),
        Bad::Resets => {
            // If a socket is closed with unread bytes, the kernel sends a reset.
            std::thread::sleep(Duration::from_millis(20));
        }
        Bad::Smtp => {
            stream.write_all(b"220 mail.example.org ESMTP\r\n")?;
            let _ = stream.read(&mut seed)?;
            stream.write_all(b"502 no\r\n")?;
            std::thread::sleep(Duration::from_secs(20));
        }
        Bad::EndlessLine => {
            stream.write_all(b"HTTP/1.1 200 ")?;
            flood(&mut stream, &[b'a'; 65536])?;
        }
        Bad::EndlessHandshake => {
            let mut record = vec![22, 3, 3, 0x40, 0];
            record.resize(5 + 0x4000, 0);
            // A message with an announced length of 16 MiB.
            record[5..9].copy_from_slice(&[11, 0xff, 0xff, 0xff]);
            flood(&mut stream, &record)?;
        }
    }
    Ok(())
}

fn start(bad: Bad) -> SocketAddr {
    scripted(move |stream| {
        let _ = behave(bad, stream);
    })
}

fn scan_tls(address: SocketAddr, patience: Patience) -> tls::Report {
    common::scan_patiently(address.port(), None, &[], patience)
}

/// Runs every check on a server and returns the errors.
fn every_check(bad: Bad) -> Vec<String> {
    let address = start(bad);
    let found = scan_tls(address, SHORT);
    assert!(!found.is_tls(), "{bad:?}: {found:?}");
    assert!(
        found
            .versions
            .iter()
            .all(|one| one.state == VersionState::Unknown),
        "{bad:?}"
    );
    assert!(!found.unknown.is_empty(), "{bad:?}");
    assert_eq!(found.remarks, [], "{bad:?}");
    let mut errors = found.unknown;

    let visit = || Visit::begin(&target(address.port()), SHORT, [1; 32]).unwrap();
    for starttls in Starttls::ALL {
        let question = Question {
            starttls: Some(starttls),
            name: None,
            roots: &Roots::these(&[]),
            now: now(),
        };
        let found = tls::certificates(&visit(), &question);
        errors.push(found.expect_err("no certificate").to_string());
    }
    errors.push(ssh::scan(&visit()).expect_err("no SSH").to_string());
    errors.push(smb::scan(&visit()).expect_err("no SMB").to_string());
    let question = http::Question {
        https: false,
        name: None,
        link: None,
        now: now(),
    };
    errors.push(
        http::scan(&visit(), &question)
            .expect_err("no HTTP")
            .to_string(),
    );
    errors
}

#[test]
fn attack_every_check_with_every_bad_server() {
    let (mut tried, mut held) = (0, 0);
    for _ in 0..assay_testing::attack_factor() {
        // The visits mostly wait, so they run in parallel.
        let all = std::thread::scope(|scope| {
            let checks = ALL.map(|bad| {
                scope.spawn(move || {
                    let began = Instant::now();
                    (bad, every_check(bad), began.elapsed())
                })
            });
            checks.map(|check| check.join().unwrap())
        });
        for (bad, errors, took) in all {
            // Twelve visits of at most 1.5 seconds each, plus delays on a busy machine.
            assert!(took < Duration::from_secs(60), "{bad:?}: {took:?}");
            for error in errors {
                tried += 1;
                assert!(!error.is_empty() && error.len() < 400, "{bad:?}: {error}");
                assert!(error.chars().all(|c| !c.is_control()), "{bad:?}: {error}");
                held += 1;
            }
        }
    }
    assay_testing::attacked("probe-bad-servers", tried, held);
}

#[test]
fn never_more_than_two_connections_at_once() {
    let open = Arc::new(AtomicI64::new(0));
    let most = Arc::new(AtomicI64::new(0));
    let (now_open, seen) = (open.clone(), most.clone());
    let address = scripted(move |mut stream| {
        let count = now_open.fetch_add(1, Ordering::SeqCst) + 1;
        seen.fetch_max(count, Ordering::SeqCst);
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).unwrap_or(0);
        std::thread::sleep(Duration::from_millis(30));
        // Counted as closed before the client can notice.
        now_open.fetch_sub(1, Ordering::SeqCst);
        if read > 0 {
            let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 40]);
        }
    });
    let found = scan_tls(address, common::SHORT_WAITS);
    assert!(
        found
            .versions
            .iter()
            .all(|one| one.state == VersionState::Refused),
        "{found:?}"
    );
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[test]
fn a_server_that_hangs_up_half_way_is_not_taken_for_one_that_refuses() {
    let count = Arc::new(AtomicI64::new(0));
    let address = scripted(move |mut stream| {
        let Ok((_, hello)) = common::read_record(&mut stream) else {
            return;
        };
        // The server answers four hellos of TLS 1.2 with the first offered suite and then none, like a
        // firewall that counts.
        let is_13 = hello.windows(7).any(|part| part == [0, 43, 0, 3, 2, 3, 4]);
        if hello[4..6] != [3, 3] || is_13 {
            let _ = common::write_record(&mut stream, 21, &[2, 70]);
            return;
        }
        if count.fetch_add(1, Ordering::SeqCst) >= 4 {
            return;
        }
        let mut message = vec![2, 0, 0, 38, 3, 3];
        message.extend([7; 32]);
        message.push(0);
        // Version, random, an empty session, the length of the list; then the first suite.
        message.extend([hello[41], hello[42]]);
        message.push(0);
        message.extend([14, 0, 0, 0]);
        let _ = common::write_record(&mut stream, 22, &message);
    });
    let found = scan_tls(address, common::SHORT_WAITS);
    let one = found
        .versions
        .iter()
        .find(|one| one.state == VersionState::Offered)
        .unwrap();
    assert_eq!(one.suites.len(), 4, "{found:?}");
    assert!(
        found.unknown.iter().any(|line| line.contains("TLS 1.2")),
        "{:?}",
        found.unknown
    );
}

#[test]
fn hanging_up_on_one_version_and_refusing_the_others_leaves_it_and_heartbleed_unknown() {
    let address = scripted(move |mut stream| {
        let Ok((_, hello)) = common::read_record(&mut stream) else {
            return;
        };
        let is_13 = hello.windows(7).any(|part| part == [0, 43, 0, 3, 2, 3, 4]);
        if hello[4..6] != [3, 3] || is_13 {
            let _ = common::write_record(&mut stream, 21, &[2, 70]);
        }
    });
    let found = scan_tls(address, common::SHORT_WAITS);
    for one in &found.versions {
        let wanted = match one.version {
            Version::Tls12 => VersionState::Unknown,
            _ => VersionState::Refused,
        };
        assert_eq!(one.state, wanted, "{one:?}");
    }
    assert!(
        matches!(found.heartbeats, Heartbeats::Unknown { .. }),
        "{:?}",
        found.heartbeats
    );
    assert_eq!(found.unknown.len(), 2, "{:?}", found.unknown);
}

/// Starts a server that answers with SMB 3.0.2 on the first `answers` connections, and closes all others.
fn smb_302(answers: i64) -> SocketAddr {
    let count = Arc::new(AtomicI64::new(0));
    scripted(move |mut stream| {
        let mut head = [0; 4];
        let _ = stream.read_exact(&mut head);
        let mut message = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]]))];
        let _ = stream.read_exact(&mut message);
        let offered = message.get(100..).unwrap_or_default();
        let takes = message.starts_with(b"\xfeSMB")
            && offered.chunks_exact(2).any(|dialect| dialect == [2, 3]);
        if !takes || count.fetch_add(1, Ordering::SeqCst) >= answers {
            return;
        }
        let mut answer = vec![0, 0, 0, 128];
        answer.extend(b"\xfeSMB");
        answer.resize(4 + 128, 0);
        answer[4 + 66] = 3;
        answer[4 + 68..4 + 70].copy_from_slice(&[2, 3]);
        let _ = stream.write_all(&answer);
    })
}

#[test]
fn smb_that_hangs_up_has_said_no_only_while_it_still_answers() {
    let scan = |answers| {
        let port = smb_302(answers).port();
        smb::scan(&Visit::begin(&target(port), common::SHORT_WAITS, [1; 32]).unwrap()).unwrap()
    };
    let alive = scan(i64::MAX);
    assert_eq!(alive.dialects, ["SMB 3.0.2"]);
    assert_eq!(alive.smb1, VersionState::Refused, "{alive:?}");
    assert!(alive.unknown.is_empty(), "{alive:?}");

    let gone = scan(1);
    assert_eq!(gone.dialects, ["SMB 3.0.2"]);
    assert_eq!(gone.smb1, VersionState::Unknown, "{gone:?}");
    assert_eq!(gone.unknown.len(), 2, "{gone:?}");
}

#[test]
fn addresses_that_refuse_and_addresses_that_answer() {
    let free = common::free_port();
    let error = Visit::begin(&target(free), SHORT, [1; 32]).expect_err("nobody listens");
    assert!(matches!(error, ProbeError::Connect { .. }), "{error}");

    if let Ok(listener) = TcpListener::bind("[::1]:0") {
        let port = listener.local_addr().unwrap().port();
        let target = Target::parse("::1", port).unwrap();
        let visit = Visit::begin(&target, SHORT, [1; 32]).unwrap();
        assert!(visit.place().address.is_ipv6());
        // `localhost` has two addresses; the one that answers is used, and the other is reported.
        let target = Target::parse("localhost", port).unwrap();
        if target.resolve(Duration::from_secs(5)).unwrap().len() > 1 {
            let visit = Visit::begin(&target, SHORT, [1; 32]).unwrap();
            assert!(visit.place().address.is_ipv6());
            assert_eq!(visit.place().others.len(), 1);
        }
    } else {
        assay_testing::skipped("ipv6", "no ::1 here");
    }
    let target = Target::parse("no-such-host.invalid", 443).unwrap();
    let error = Visit::begin(&target, SHORT, [1; 32]).expect_err("no such name");
    let is_expected = matches!(
        error,
        ProbeError::Resolve { .. } | ProbeError::ResolveTime { .. }
    );
    assert!(is_expected, "{error}");
}

//! Tests loads on a real nginx, and on servers with faults.
#![allow(clippy::disallowed_methods, reason = "a test drives real services")]

mod common;

use assay_http::{Expect, Live, Method, ProbeError, Request, Url, probe, run};
use assay_model::web::{FailureKind, Pace};
use assay_testing::servers::nginx::Nginx;
use common::{HELLO, expecting, good, kinds, load, measure, say, server};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

#[test]
fn nginx_answers() {
    // The server closes a connection after 50 requests.
    let Some(nginx) = Nginx::with_files("keepalive_requests 50;") else {
        return;
    };
    for (path, length, connections, keep_alive) in [
        ("/small", 1_000, 8, true),
        ("/small", 1_000, 8, false),
        ("/small", 1_000, 1, true),
        ("/large", 3_000_000, 3, true),
        ("/large", 3_000_000, 3, false),
    ] {
        let url = Url::parse(&nginx.url(path)).unwrap();
        let mut load = load(&nginx.url(path), connections);
        load.requests = vec![Request::new(&Method::Get, &url, &[], b"", keep_alive).unwrap()];
        let expect = Expect {
            length: Some(length),
            ..Expect::default()
        };
        let measured = good(&expecting(load, expect));
        assert_eq!(
            measured.bytes,
            measured.answers * length,
            "{path} {connections} {keep_alive}"
        );
        assert!(measured.received >= measured.bytes);
        if !keep_alive {
            assert!(measured.connections + u64::from(connections) >= measured.answers);
        }
        // A closed loop without pauses: every connection has a request in flight (Little's law).
        let busy = measured.under_way / f64::from(connections);
        assert!((0.95..1.01).contains(&busy), "{busy}");
        let little = measured.rate() * measured.latency.mean().unwrap() / 1e9;
        if path == "/small" {
            assert!((little / measured.under_way - 1.0).abs() < 0.1, "{little}");
        }
    }
}

#[test]
fn methods_bodies_chunks_and_hashes() {
    let config = "ssi on; ssi_types *; location = /gone { return 404; } \
                  location = /moved { return 301 /small; } location = /empty { return 204; }";
    let Some(nginx) = Nginx::with_files(config) else {
        return;
    };
    nginx.file("parsed", 70_000).unwrap();
    let url = Url::parse(&nginx.url("/parsed")).unwrap();
    let head = Request::new(&Method::Head, &url, &[], b"", true).unwrap();
    let mut heads = load(&nginx.url("/parsed"), 2);
    heads.requests = vec![head];
    assert_eq!(good(&heads).bytes, 0);
    for (content, bad) in [(b'x', false), (b'y', true)] {
        let hash = blake3::hash(&vec![content; 70_000]).into();
        let expect = Expect {
            hash: Some(hash),
            length: Some(70_000),
            ..Expect::default()
        };
        let measured = measure(&expecting(load(&nginx.url("/parsed"), 2), expect));
        assert_eq!(measured.answers == 0, bad);
        assert_eq!(kinds(&measured) == [FailureKind::WrongBody], bad);
    }
    for (path, status) in [("/gone", 404), ("/moved", 301), ("/empty", 204)] {
        let measured = measure(&load(&nginx.url(path), 2));
        assert_eq!(
            (measured.answers, kinds(&measured)),
            (0, vec![FailureKind::WrongStatus])
        );
        assert_eq!(measured.percentile(&measured.latency, 50.0), None);
        let expect = Expect {
            status,
            ..Expect::default()
        };
        good(&expecting(load(&nginx.url(path), 2), expect));
    }
}

#[test]
fn an_open_loop_keeps_its_rate_and_counts_what_a_stall_makes_wait() {
    // Every 50th request takes 100 ms on the single connection, so the requests behind it wait too.
    let url = server(|n, stream| {
        if n % 50 == 49 {
            thread::sleep(Duration::from_millis(100));
        }
        say(stream, HELLO)
    });
    let mut load = load(&url, 1);
    load.pace = Pace::Constant { per_s: 200.0 };
    load.window = Duration::from_millis(2000);
    let measured = good(&load);
    assert_eq!(measured.due, 400);
    assert!(measured.latency.count() == 400 && measured.waited > 50);
    // 20 of 50 requests are due within the 100 ms; the service time shows only one in 50.
    let p90 = |h| measured.percentile(h, 90.0).unwrap().0;
    assert!(
        p90(&measured.latency) > 30 * MS,
        "{}",
        p90(&measured.latency)
    );
    assert!(
        p90(&measured.service) < 30 * MS,
        "{}",
        p90(&measured.service)
    );
    load.pace = Pace::Poisson { per_s: 200.0 };
    load.connections = 40;
    let measured = good(&load);
    assert!((300..500).contains(&measured.due) && measured.lateness.count() == measured.due);
}

#[test]
fn what_cannot_be_sent_in_time_is_not_forgotten() {
    let url = server(|_, stream| {
        thread::sleep(Duration::from_millis(20));
        say(stream, HELLO)
    });
    let mut load = load(&url, 1);
    load.pace = Pace::Constant { per_s: 1000.0 };
    load.window = Duration::from_millis(500);
    load.limit = Duration::from_millis(200);
    let measured = measure(&load);
    assert_eq!(measured.due, 500);
    assert!(measured.unsent > 400, "{}", measured.unsent);
    // The requests waited for the single connection, and the result reports this.
    assert!(measured.waited >= measured.unsent);
    assert_eq!(measured.percentile(&measured.latency, 50.0), None);
}

#[test]
fn failures_are_told_apart_and_never_make_a_rate() {
    let replies: [(FailureKind, &'static [u8]); 7] = [
        (
            FailureKind::WrongStatus,
            b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            FailureKind::WrongBody,
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell",
        ),
        (FailureKind::NotHttp, b"what?\r\n"),
        (
            FailureKind::NotHttp,
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
        ),
        (
            FailureKind::ShortBody,
            b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhell",
        ),
        (FailureKind::ShortBody, b"HTTP/1.1 200"),
        (FailureKind::EarlyClose, b""),
    ];
    let expect = Expect {
        length: Some(5),
        ..Expect::default()
    };
    for (kind, bytes) in replies {
        let url = server(move |_, stream| {
            let _ = say(stream, bytes);
            kind == FailureKind::WrongStatus || kind == FailureKind::WrongBody
        });
        let measured = measure(&expecting(load(&url, 2), expect));
        assert_eq!(
            (measured.answers, kinds(&measured)),
            (0, vec![kind]),
            "{bytes:?}"
        );
    }
    // One in two requests fails: the good answers are counted, and failures count as slowest in the median.
    let url = server(|n, stream| {
        say(
            stream,
            if n % 5 < 2 {
                HELLO
            } else {
                b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
            },
        )
    });
    let measured = measure(&expecting(load(&url, 2), expect));
    assert!(measured.answers > 0 && kinds(&measured) == [FailureKind::WrongStatus]);
    assert_eq!(measured.percentile(&measured.latency, 50.0), None);
}

#[test]
fn nobody_there_and_nobody_answering() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let begin = Instant::now();
    let mut gone = load(&format!("http://{free}/"), 3);
    gone.window = Duration::from_secs(20);
    let measured = measure(&gone);
    assert!(measured.gave_up && begin.elapsed() < Duration::from_secs(10));
    assert_eq!(
        (measured.answers, kinds(&measured)),
        (0, vec![FailureKind::Refused])
    );

    let url = server(|_, _| true);
    let mut silent = load(&url, 2);
    silent.limit = Duration::from_millis(100);
    assert_eq!(kinds(&measure(&silent)), [FailureKind::TimedOut]);

    // A listener that accepts no connection: its queue fills, and then connections fail.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = deaf.local_addr().unwrap();
    let mut many = load(&format!("http://{address}/"), 400);
    many.limit = Duration::from_millis(150);
    let measured = measure(&many);
    assert!(
        kinds(&measured).contains(&FailureKind::ConnectTimeout),
        "{:?}",
        measured.failures
    );
}

/// A server may close an idle connection without notice. A request on this connection is sent again, and no request is
/// lost.
#[test]
fn a_server_that_closes_idle_connections_loses_no_request() {
    let url = server(|_, stream| {
        let answered = say(stream, HELLO);
        stream
            .set_read_timeout(Some(Duration::from_millis(600)))
            .unwrap();
        // Usually no request arrives for 600 ms, and the server closes the connection.
        answered && stream.peek(&mut [0]).is_ok_and(|n| n > 0)
    });
    let mut load = load(&url, 1);
    load.pace = assay_model::web::Pace::Constant { per_s: 1.4 };
    load.window = Duration::from_secs(4);
    let measured = good(&load);
    assert!(measured.connections > 1);
}

/// A server receives a request on a connection that was idle, and then closes the connection. This request is lost and
/// counts as a failure.
#[test]
fn requests_that_are_dropped_after_a_rest_are_failures() {
    let url = server(|n, stream| n % 2 == 0 && say(stream, HELLO));
    let mut load = load(&url, 1);
    load.pace = assay_model::web::Pace::Constant { per_s: 1.6 };
    load.window = Duration::from_secs(3);
    let measured = measure(&load);
    assert_eq!(kinds(&measured), [FailureKind::EarlyClose]);
    assert_eq!(measured.reopened, 0);
    assert!(
        measured.failed() >= 2 && measured.answers >= 2,
        "{measured:?}"
    );
}

/// A server that closes a busy connection loses a request, and each loss counts as a failure.
#[test]
fn dropped_requests_are_failures() {
    for (every, what) in [(100, "answered before"), (7, "often")] {
        let url = server(move |n, stream| n % every != every - 1 && say(stream, HELLO));
        let measured = measure(&load(&url, 2));
        let share = measured.failed() as f64 / measured.due as f64;
        let expected = 1.0 / every as f64;
        assert!(
            (0.5 * expected..2.0 * expected).contains(&share),
            "{what}: {share}"
        );
        assert_eq!(kinds(&measured), [FailureKind::EarlyClose], "{what}");
        // The closed loop does not pause: nearly every connection has a request in flight.
        let busy = measured.under_way / 2.0;
        assert!(busy > 0.5, "{what}: {busy}");
        assert_eq!(measured.reopened, 0, "{what}");
    }
}

/// Answers with another status are counted by status.
#[test]
fn statuses_are_counted() {
    const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    const GONE: &[u8] = b"HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n";
    let url = server(|n, stream| match n % 10 {
        3 => say(stream, BUSY),
        7 => say(stream, GONE),
        _ => say(stream, HELLO),
    });
    let measured = measure(&load(&url, 2));
    let statuses: Vec<u16> = measured.statuses.iter().map(|one| one.status).collect();
    assert_eq!(statuses, [404, 503]);
    let counted: u64 = measured.statuses.iter().map(|one| one.count).sum();
    assert_eq!(counted, measured.failed_by(FailureKind::WrongStatus));
    assert!(counted > 0);
}

#[test]
fn a_server_that_dies_is_noticed() {
    let dead = std::sync::Arc::new(AtomicBool::new(false));
    let told = dead.clone();
    let url = server(move |_, stream| !told.load(Ordering::SeqCst) && say(stream, HELLO));
    let mut load = load(&url, 4);
    load.window = Duration::from_secs(1);
    load.threads = 1;
    let measured = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(500));
            dead.store(true, Ordering::SeqCst);
        });
        measure(&load)
    });
    assert!(measured.answers > 0 && kinds(&measured) == [FailureKind::EarlyClose]);
    assert!(!measured.gave_up);
}

#[test]
fn interrupted_at_once() {
    let url = server(|_, stream| say(stream, HELLO));
    let mut load = load(&url, 2);
    load.window = Duration::from_secs(60);
    let begin = Instant::now();
    let stop = || begin.elapsed() > Duration::from_millis(300);
    let measured = run(&load, &Live::default(), &stop).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(5) && measured.interrupted);
    assert!(measured.answers > 0 && measured.window.0 < 1_000 * MS);
    common::check(&measured);
}

#[test]
fn several_addresses_and_a_list_of_urls() {
    let (a, b) = (server(|_, s| say(s, HELLO)), server(|_, s| say(s, HELLO)));
    let mut load = load(&a, 4);
    load.addresses
        .extend(Url::parse(&b).unwrap().resolve().unwrap());
    load.shuffled = true;
    for path in ["/a", "/b"] {
        let url = Url::parse(&a).unwrap().with_path(path).unwrap();
        load.requests
            .push(Request::new(&Method::Get, &url, &[], b"", true).unwrap());
    }
    load.requests_per_connection = Some(3);
    let measured = good(&load);
    assert!(measured.connections >= measured.answers / 3 - 4);
}

#[test]
fn ipv6() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        assay_testing::skipped("ipv6", "no address ::1 here");
        return;
    };
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        use std::io::Read as _;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                while let Ok(1..) = stream.read(&mut [0; 4096]) {
                    say(&mut stream, HELLO);
                }
            });
        }
    });
    good(&load(&url, 2));
}

#[test]
fn a_probe_tells_what_a_server_says() {
    let url = server(|_, stream| {
        say(stream, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nAge: 7\r\nContent-Length: 5\r\n\r\nhello")
    });
    let load = load(&url, 1);
    let ask = |limit| probe(&load.requests[0], load.addresses[0], None, limit, &|| false);
    let probed = ask(Duration::from_secs(5)).unwrap();
    assert_eq!((probed.answer.status, probed.answer.body), (200, 5));
    assert_eq!(
        (probed.header("age"), &probed.start[..]),
        (Some("7"), &b"hello"[..])
    );
    let silent = server(|_, _| true);
    let address = Url::parse(&silent).unwrap().resolve().unwrap()[0];
    let slow = probe(
        &load.requests[0],
        address,
        None,
        Duration::from_millis(100),
        &|| false,
    );
    assert!(matches!(slow, Err(ProbeError::Slow { .. })));
    let _ = TcpStream::connect(address);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let url = server(|_, stream| say(stream, HELLO));
    let good = load(&url, 1);
    let mut bad = vec![good.clone(); 5];
    bad[0].connections = 0;
    bad[1].pace = Pace::Constant { per_s: f64::NAN };
    bad[2].addresses.clear();
    bad[3].requests.clear();
    bad[4].pace = Pace::Poisson { per_s: 0.0 };
    for load in bad {
        assert!(run(&load, &Live::default(), &|| false).is_err());
    }
}

/// After many answers of one length, the kernel only wakes the thread for whole answers. A head and a body that arrive
/// separately are one answer. Shorter and longer answers must be read too.
#[test]
fn answers_of_another_length_after_many_of_one_length_are_read() {
    for other in ["hi", "hello, hello, hello"] {
        let url = server(move |n, stream| {
            let body = if n % 1000 == 999 { other } else { "hello" };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            say(stream, head.as_bytes()) && say(stream, body.as_bytes())
        });
        let mut load = load(&url, 4);
        load.limit = Duration::from_secs(5);
        let measured = good(&load);
        assert!(measured.answers > 0 && measured.failed() == 0);
        // A request that waited for a longer answer would have failed after the limit, and others with it.
        assert!(measured.latency.percentile(100.0).unwrap() < 5000 * MS);
    }
}

/// The mark must not delay an answer that arrives in two parts with a long pause between them.
#[test]
fn a_server_that_becomes_slow_is_read_in_parts() {
    let url = server(|n, stream| {
        let slow = n > 500 && n % 50 == 0;
        let body = if slow { "hello, hello" } else { "hello" };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let said = say(stream, head.as_bytes());
        if slow {
            thread::sleep(Duration::from_millis(30));
        }
        said && say(stream, body.as_bytes())
    });
    let measured = good(&load(&url, 2));
    assert!(measured.answers > 0 && measured.failed() == 0);
}

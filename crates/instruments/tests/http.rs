//! Requests to a real nginx, and to servers that misbehave.
#![allow(clippy::disallowed_methods, reason = "a test drives real services")]

use assay_instruments::http::{Request, run};
use assay_instruments::{Cancel, LoadError, Measured, Timing};
use assay_model::Nanos;
use assay_model::sample::Operation;
use assay_rigs::nginx::Nginx;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

fn request(url: &str, connections: u32, keep_alive: bool) -> Request {
    Request {
        url: url.to_owned(),
        connections,
        keep_alive,
        timing: Timing {
            washout: Nanos(50 * MS),
            runtime: Nanos(250 * MS),
            limit: Nanos(5_000 * MS),
        },
    }
}

fn good(request: &Request) -> Measured {
    let measured = run(request, &Cancel::default()).unwrap();
    assert!(measured.errors.is_empty(), "{:?}", measured.errors);
    assert!(measured.cpu.0 > 0 && measured.cpu <= measured.wall && !measured.cancelled);
    let io = measured.worker.of(Operation::Request).unwrap();
    assert!(io.count > 0 && io.lat.n == io.count && io.lat.histogram.count() == io.count);
    assert!(io.per_s > 0.0 && io.runtime.0 > 0);
    measured
}

#[test]
fn nginx_answers() {
    // The server counts what it was asked, and closes a connection after 50 requests.
    let Some(nginx) = Nginx::with_files("keepalive_requests 50; location = /gone { return 404; }")
    else {
        return;
    };
    for (path, length, connections, keep_alive) in [
        ("/small", 1_000, 8, true),
        ("/small", 1_000, 8, false),
        ("/small", 1_000, 1, true),
        ("/large", 3_000_000, 3, true),
        ("/large", 3_000_000, 3, false),
    ] {
        let measured = good(&request(&nginx.url(path), connections, keep_alive));
        let io = measured.worker.of(Operation::Request).unwrap();
        assert_eq!(
            io.bytes.0,
            io.count * length,
            "{path} {connections} {keep_alive}"
        );
    }
    let error = run(&request(&nginx.url("/gone"), 2, true), &Cancel::default()).unwrap_err();
    assert!(
        matches!(error, LoadError::Status { status: 404, .. }),
        "{error}"
    );
}

#[test]
fn chunked_and_gzip_less() {
    // Server-side includes make nginx send chunks.
    let Some(nginx) = Nginx::with_files("ssi on; ssi_types *;") else {
        return;
    };
    nginx.file("parsed", 70_000).unwrap();
    let measured = good(&request(&nginx.url("/parsed"), 2, true));
    let io = measured.worker.of(Operation::Request).unwrap();
    assert_eq!(io.bytes.0, io.count * 70_000);
}

#[test]
fn nginx_that_goes_away_and_comes_back() {
    let Some(nginx) = Nginx::with_files("") else {
        return;
    };
    let mut request = request(&nginx.url("/small"), 4, true);
    request.timing.runtime = Nanos(900 * MS);
    let reload = nginx.reload();
    let measured = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            let status = std::process::Command::new(&reload[0])
                .args(&reload[1..])
                .status();
            assert!(status.unwrap().success());
        });
        run(&request, &Cancel::default()).unwrap()
    });
    // A reload loses no request: workers close connections at rest only.
    assert!(measured.errors.is_empty(), "{:?}", measured.errors);
    assert!(measured.worker.of(Operation::Request).unwrap().count > 0);
}

#[test]
fn nobody_there() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let gone = request(&format!("http://127.0.0.1:{port}/"), 3, true);
    let error = run(&gone, &Cancel::default()).unwrap_err();
    assert!(matches!(error, LoadError::NotListening { .. }), "{error}");
    for bad in ["https://localhost/", "http://", "localhost:80"] {
        let error = run(&request(bad, 1, true), &Cancel::default()).unwrap_err();
        assert!(matches!(error, LoadError::Request { .. }), "{error}");
    }
}

/// A server that answers each request with what `answer` makes of its number.
fn server(answer: impl Fn(u64, &mut TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answer = std::sync::Arc::new(answer);
    let count = std::sync::Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer, count) = (stream.unwrap(), answer.clone(), count.clone());
            thread::spawn(move || {
                let mut asked = Vec::new();
                let mut buffer = [0; 1024];
                while let Ok(n @ 1..) = stream.read(&mut buffer) {
                    asked.extend(&buffer[..n]);
                    if asked.ends_with(b"\r\n\r\n") {
                        asked.clear();
                        answer(count.fetch_add(1, Ordering::SeqCst), &mut stream);
                    }
                }
            });
        }
    });
    url
}

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn partial_writes_are_put_together() {
    let url = server(|_, stream| {
        stream.set_nodelay(true).unwrap();
        for byte in HELLO {
            stream.write_all(&[*byte]).unwrap();
        }
    });
    let measured = good(&request(&url, 2, true));
    let io = measured.worker.of(Operation::Request).unwrap();
    assert_eq!(io.bytes.0, io.count * 5);
}

#[test]
fn failures_among_answers_are_counted_apart() {
    let url = server(|n, stream| {
        let _ = match n % 4 {
            1 => stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
            2 => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell"),
            3 => stream.write_all(b"what?\r\n"),
            _ => stream.write_all(HELLO),
        };
    });
    let mut request = request(&url, 2, true);
    request.timing.washout = Nanos(0);
    let measured = run(&request, &Cancel::default()).unwrap();
    let kinds: Vec<&str> = measured.errors.iter().map(|errors| errors.kind).collect();
    assert_eq!(kinds, ["status", "wrong-answer"]);
    assert!(
        measured.errors[0].first.contains("status 503"),
        "{:?}",
        measured.errors
    );
    let io = measured.worker.of(Operation::Request).unwrap();
    assert_eq!(io.bytes.0, io.count * 5);
}

#[test]
fn one_that_never_answers_times_out() {
    let url = server(|_, _| {});
    let mut request = request(&url, 2, true);
    request.timing.limit = Nanos(100 * MS);
    let error = run(&request, &Cancel::default()).unwrap_err();
    assert!(matches!(error, LoadError::TimedOut { .. }), "{error}");
}

#[test]
fn closing_at_rest_is_not_a_failure() {
    // Says it keeps the connection, and closes it.
    let url = server(|_, stream| {
        let _ = stream.write_all(HELLO);
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    good(&request(&url, 2, true));
}

#[test]
fn cancelling_does_not_wait_for_the_server() {
    let url = server(|_, _| {});
    let mut request = request(&url, 5, true);
    request.timing.limit = Nanos(60_000 * MS);
    let cancel = Cancel::default();
    let later = cancel.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        later.cancel();
    });
    let start = Instant::now();
    let measured = run(&request, &cancel).unwrap();
    assert!(measured.cancelled && measured.worker.of(Operation::Request).unwrap().count == 0);
    // The limit is a minute; not a measurement, only far from it.
    assert!(start.elapsed() < Duration::from_secs(10));
}

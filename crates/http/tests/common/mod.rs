//! Starts servers with faults, and runs short loads.
#![allow(dead_code, reason = "each test program uses some of it")]

use assay_http::{Expect, HttpLoad, Live, Method, Request, Url, run};
use assay_model::web::{FailureKind, Measured, Pace, Protocol};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Returns a closed loop that runs for a third of a second.
pub fn load(url: &str, connections: u32) -> HttpLoad {
    let url = Url::parse(url).unwrap();
    HttpLoad {
        requests: vec![Request::new(&Method::Get, &url, &[], b"", true).unwrap()],
        shuffled: false,
        addresses: url.resolve().unwrap(),
        tls: None,
        protocol: Protocol::Http1,
        streams: 1,
        connections,
        requests_per_connection: None,
        pace: Pace::Closed,
        listed: [].into(),
        washout: Duration::from_millis(50),
        window: Duration::from_millis(250),
        limit: Duration::from_secs(3),
        threads: 2,
        seed: 1,
    }
}

/// Returns the same load over HTTP/2 with this number of streams per connection.
pub fn http2(url: &str, connections: u32, streams: u32) -> HttpLoad {
    let mut load = load(url, connections);
    let url = Url::parse(url).unwrap();
    load.requests = vec![Request::http2(&Method::Get, &url, &[], b"").unwrap()];
    (load.protocol, load.streams) = (Protocol::Http2, streams);
    load
}

/// Returns the same load with another definition of a good answer.
pub fn expecting(mut load: HttpLoad, expect: Expect) -> HttpLoad {
    let with = |request: Request| request.expecting(expect);
    load.requests = load.requests.into_iter().map(with).collect();
    load
}

pub fn measure(load: &HttpLoad) -> Measured {
    let measured = run(load, &Live::default(), &|| false).unwrap();
    check(&measured);
    measured
}

/// Checks properties that every measurement must have.
pub fn check(measured: &Measured) {
    let failed: u64 = measured
        .failures
        .iter()
        .map(|failures| failures.count)
        .sum();
    assert_eq!(measured.latency.count(), measured.service.count());
    if !measured.interrupted && !measured.gave_up {
        assert_eq!(
            measured.latency.count() + failed + measured.unsent,
            measured.due,
            "{measured:?}"
        );
    }
    let listed: u64 = measured.seconds.iter().map(|second| second.answers).sum();
    assert_eq!(listed, measured.answers);
}

pub fn good(load: &HttpLoad) -> Measured {
    let measured = measure(load);
    assert!(
        measured.failures.is_empty() && measured.unsent == 0,
        "{:?}",
        measured.failures
    );
    assert!(measured.answers > 0 && measured.cpu.0 > 0);
    measured
}

pub fn kinds(measured: &Measured) -> Vec<FailureKind> {
    measured
        .failures
        .iter()
        .map(|failures| failures.kind)
        .collect()
}

/// Starts a server that calls `each` for each connection, and returns its address.
pub fn serve(each: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let each = Arc::new(each);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let _ = stream.set_nodelay(true);
            let each = each.clone();
            thread::spawn(move || each(stream));
        }
    });
    address
}

/// Starts a server that calls `answer` with the number of each request. If `answer` returns false, the server closes
/// the connection.
pub fn server(answer: impl Fn(u64, &mut TcpStream) -> bool + Send + Sync + 'static) -> String {
    let count = AtomicU64::new(0);
    let address = serve(move |mut stream| {
        let mut asked = Vec::new();
        let mut buffer = [0; 1024];
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            asked.extend_from_slice(&buffer[..n]);
            if asked.ends_with(b"\r\n\r\n") {
                asked.clear();
                if !answer(count.fetch_add(1, Ordering::SeqCst), &mut stream) {
                    return;
                }
            }
        }
    });
    format!("http://{address}/")
}

/// Writes bytes. Returns whether the client is still connected.
pub fn say(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

/// Writes a piece repeatedly until the client disconnects.
pub fn for_ever(stream: &mut TcpStream, first: &[u8], piece: &[u8]) -> bool {
    let many = piece.repeat((64 << 10) / piece.len() + 1);
    let _ = stream.set_write_timeout(Some(Duration::from_secs(2)));
    let begin = Instant::now();
    let mut more = say(stream, first);
    while more && begin.elapsed() < Duration::from_secs(10) {
        more = say(stream, &many);
    }
    false
}

/// Checks a load without good answers. It must fail only in these ways, end in time, and use less than 64 MiB.
pub fn is_as_said(
    name: &str,
    mut load: HttpLoad,
    round: u64,
    most: Duration,
    may: &[FailureKind],
) -> bool {
    load.washout = Duration::ZERO;
    load.window = Duration::from_millis(200);
    if round % 2 == 1 {
        load.pace = Pace::Constant { per_s: 50.0 };
    }
    let (begin, before) = (Instant::now(), resident());
    let measured = run(&load, &Live::default(), &|| false).unwrap();
    let took = begin.elapsed();
    let grown = resident().saturating_sub(before);
    let as_said = measured.answers == 0
        && !measured.failures.is_empty()
        && kinds(&measured).iter().all(|kind| may.contains(kind))
        && took < most
        && grown < 64 << 20;
    if !as_said {
        eprintln!("{name}: {:?} in {took:?}, {grown} bytes", measured.failures);
    }
    as_said
}

/// Returns the resident memory of this process in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages = statm.split_whitespace().nth(1).unwrap();
    pages.parse::<u64>().unwrap() * 4096
}

//! Servers that misbehave, and a short load.
#![allow(dead_code, reason = "each test program uses some of it")]

use assay_http::{Expect, Live, Load, Method, Request, Url, run};
use assay_model::web::{FailureKind, Measured, Pace, Protocol};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

pub const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A closed loop of a third of a second.
pub fn load(url: &str, connections: u32) -> Load {
    let url = Url::parse(url).unwrap();
    Load {
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

/// The same over HTTP/2, with so many requests at once on each connection.
pub fn http2(url: &str, connections: u32, streams: u32) -> Load {
    let mut load = load(url, connections);
    let url = Url::parse(url).unwrap();
    load.requests = vec![Request::http2(&Method::Get, &url, &[], b"").unwrap()];
    (load.protocol, load.streams) = (Protocol::Http2, streams);
    load
}

/// The same load with another idea of a good answer.
pub fn expecting(mut load: Load, expect: Expect) -> Load {
    let with = |request: Request| request.expecting(expect);
    load.requests = load.requests.into_iter().map(with).collect();
    load
}

pub fn measure(load: &Load) -> Measured {
    let measured = run(load, &Live::default(), &|| false).unwrap();
    check(&measured);
    measured
}

/// What holds of every measurement.
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

pub fn good(load: &Load) -> Measured {
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

/// A server that answers each request with what `answer` makes of its number; false closes.
pub fn server(answer: impl Fn(u64, &mut TcpStream) -> bool + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (answer, count) = (Arc::new(answer), Arc::new(AtomicU64::new(0)));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (answer, count) = (answer.clone(), count.clone());
            let _ = stream.set_nodelay(true);
            thread::spawn(move || {
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
        }
    });
    url
}

/// Writes, and whether the reader is still there.
pub fn say(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

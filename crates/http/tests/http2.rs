//! Tests HTTP/2 with real servers: nginx, h2o and Apache, with and without TLS.
#![allow(clippy::disallowed_methods, reason = "a test drives real services")]

mod common;

use assay_http::{Expect, HttpLoad, Method, ProbeError, Request, Tls, Trust, Url, probe};
use assay_model::web::{FailureKind, Measured, Pace, Protocol};
use assay_testing::servers::http2::{Http2Server, Http2ServerKind};
use assay_testing::servers::nginx::Nginx;
use common::{expecting, good, http2, kinds, measure};
use std::time::Duration;

fn over_tls(mut load: HttpLoad, url: &str, trust: &Trust) -> HttpLoad {
    let tls = Tls::new(&Url::parse(url).unwrap(), trust, true).unwrap();
    load.tls = Some(tls.speaking(Protocol::Http2));
    load
}

fn long(length: u64) -> Expect {
    Expect {
        length: Some(length),
        hash: Some(blake3::hash(&vec![b'x'; length as usize]).into()),
        ..Expect::default()
    }
}

#[test]
fn real_servers_answer() {
    for kind in Http2ServerKind::ALL {
        let Some(server) = Http2Server::start(kind, "") else {
            continue;
        };
        for (tls, path, length, connections, streams) in [
            (false, "/small", 1_000, 1, 1),
            (false, "/small", 1_000, 4, 1),
            (false, "/small", 1_000, 2, 20),
            (true, "/small", 1_000, 2, 10),
            (false, "/large", 3_000_000, 1, 3),
            (true, "/large", 3_000_000, 2, 2),
        ] {
            let url = server.url(tls, path);
            let mut load = expecting(http2(&url, connections, streams), long(length));
            if tls {
                load = over_tls(load, &url, &Trust::Anything);
            }
            let mut measured = good(&load);
            // On a busy machine a connection may be delayed for a whole window.
            let busy = |measured: &Measured| measured.under_way / f64::from(connections * streams);
            for _ in 0..2 {
                if !(0.9..1.01).contains(&busy(&measured)) {
                    measured = good(&load);
                }
            }
            let what = format!("{kind:?} {url} {connections} {streams}");
            assert_eq!(measured.bytes, measured.answers * length, "{what}");
            assert!(measured.received >= measured.bytes, "{what}");
            // All connections were opened during the washout and carry all later requests.
            assert!(measured.connections <= u64::from(connections), "{what}");
            // A closed loop without pauses: every stream has a request in flight.
            let busy = busy(&measured);
            assert!((0.9..1.01).contains(&busy), "{what}: {busy}");
        }
    }
}

#[test]
fn an_open_loop_counts_what_is_due() {
    let Some(server) = Http2Server::start(Http2ServerKind::Nginx, "") else {
        return;
    };
    let mut load = http2(&server.url(false, "/small"), 3, 4);
    load.pace = Pace::Constant { per_s: 400.0 };
    let measured = good(&load);
    assert_eq!(measured.due, 100);
}

/// A server ends each connection normally (GOAWAY) after some requests. No request may be lost.
#[test]
fn connections_that_end_in_order_lose_nothing() {
    let Some(server) = Http2Server::start(Http2ServerKind::Nginx, "keepalive_requests 20;") else {
        return;
    };
    let measured = good(&http2(&server.url(false, "/small"), 2, 8));
    assert!(measured.connections * 30 > measured.answers);
    let mut load = http2(&server.url(false, "/small"), 2, 1);
    load.requests_per_connection = Some(1);
    let measured = good(&load);
    assert!(measured.connections + 4 >= measured.answers);
}

#[test]
fn a_server_that_takes_few_streams_makes_the_others_wait() {
    let Some(server) =
        Http2Server::start(Http2ServerKind::Nginx, "http2_max_concurrent_streams 2;")
    else {
        return;
    };
    let url = Url::parse(&server.url(false, "/small")).unwrap();
    let mut load = http2(&url.to_string(), 1, 6);
    let asked = probe(
        &load.requests[0],
        load.addresses[0],
        None,
        Duration::from_secs(5),
        &|| false,
    )
    .unwrap();
    assert_eq!(
        (asked.protocol, asked.most_streams, asked.answer.body),
        (Protocol::Http2, Some(2), 1_000)
    );
    assert!(asked.header("last-modified").is_some() && asked.start.starts_with(b"xxx"));
    load.limit = Duration::from_secs(10);
    let measured = measure(&load);
    // Before its settings arrive, the server may refuse requests.
    assert!(measured.answers > 0 && measured.waited > 0);
    let late = kinds(&measured);
    assert!(
        late.is_empty() || late == [FailureKind::StreamReset],
        "{late:?}"
    );
}

#[test]
fn methods_statuses_and_bodies() {
    let config = "location = /gone { return 404; } location = /empty { return 204; } \
                  location = /taken { client_max_body_size 2m; client_body_buffer_size 2m; \
                  proxy_pass http://127.0.0.1:1/; error_page 502 = @ok; } \
                  location @ok { return 200 taken; }";
    let Some(server) = Http2Server::start(Http2ServerKind::Nginx, config) else {
        return;
    };
    let load = |method: &Method, path: &str, body: &[u8]| {
        let url = Url::parse(&server.url(false, path)).unwrap();
        let mut load = http2(&url.to_string(), 1, 3);
        load.requests = vec![Request::http2(method, &url, &[], body).unwrap()];
        load
    };
    assert_eq!(good(&load(&Method::Head, "/large", b"")).bytes, 0);
    let gone = load(&Method::Get, "/gone", b"");
    assert_eq!(kinds(&measure(&gone)), [FailureKind::WrongStatus]);
    let status = Expect {
        status: 204,
        ..Expect::default()
    };
    good(&expecting(load(&Method::Get, "/empty", b""), status));
    let short = Expect {
        length: Some(999),
        ..Expect::default()
    };
    let wrong = expecting(load(&Method::Get, "/small", b""), short);
    assert_eq!(kinds(&measure(&wrong)), [FailureKind::WrongBody]);
    // A body of many windows, which nginx receives completely before it forwards it.
    let post = Method::parse("POST").unwrap();
    let taken = Expect {
        length: Some(5),
        ..Expect::default()
    };
    let measured = good(&expecting(
        load(&post, "/taken", &vec![b'y'; 1 << 20]),
        taken,
    ));
    assert!(measured.reopened == 0);
}

#[test]
fn a_server_without_it_is_an_error() {
    let Some(nginx) = Nginx::with_files("") else {
        return;
    };
    let plain = http2(&nginx.url("/small"), 2, 2);
    assert_eq!(kinds(&measure(&plain)), [FailureKind::NoHttp2]);
    let said = |load: &HttpLoad| {
        let tls = load.tls.as_ref();
        let limit = Duration::from_secs(5);
        probe(&load.requests[0], load.addresses[0], tls, limit, &|| false).unwrap_err()
    };
    assert!(matches!(said(&plain), ProbeError::Protocol { .. }));
    // The same server with TLS and without HTTP/2.
    let Some(server) = Http2Server::start(Http2ServerKind::Apache, "Protocols http/1.1") else {
        return;
    };
    let url = server.url(true, "/small");
    let pem = std::fs::read(server.certificate()).unwrap();
    let refused = over_tls(http2(&url, 2, 2), &url, &Trust::Authorities(pem));
    assert_eq!(kinds(&measure(&refused)), [FailureKind::NoHttp2]);
    let error = said(&refused);
    assert!(error.to_string().contains("ALPN"), "{error}");
    let Some(server) = Http2Server::start(Http2ServerKind::Nginx, "") else {
        return;
    };
    let url = server.url(true, "/small");
    let stranger = over_tls(http2(&url, 2, 2), &url, &Trust::System);
    assert_eq!(kinds(&measure(&stranger)), [FailureKind::Tls]);
}

//! Tests TLS with a real nginx: full and resumed handshakes, trusted and untrusted certificates.
#![allow(clippy::disallowed_methods, reason = "a test drives real services")]

mod common;

use assay_http::{Method, Request, Tls, Trust, Url};
use assay_model::web::FailureKind;
use assay_testing::servers::nginx::Nginx;
use common::{good, kinds, load, measure};
use std::process::Command;

#[test]
fn https() {
    if let Some(lacking) = assay_testing::servers::find_missing(&["nginx", "openssl"], false) {
        return assay_testing::skipped("nginx", format_args!("lacks {lacking}"));
    }
    let dir = tempfile::Builder::new()
        .prefix("assay-rig-")
        .tempdir()
        .unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ])
        .args([
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ])
        .args(["-addext", "basicConstraints=CA:FALSE"])
        .args(["-keyout", &path("key"), "-out", &path("cert")])
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let nginx = Nginx::start(&format!(
        "listen 127.0.0.1:{port} ssl; ssl_certificate {}; ssl_certificate_key {}; \
         ssl_session_cache shared:a:1m;",
        path("cert"),
        path("key")
    ))
    .unwrap();
    nginx.file("page", 40_000).unwrap();
    let url = Url::parse(&format!("https://127.0.0.1:{port}/page")).unwrap();
    let pem = std::fs::read(dir.path().join("cert")).unwrap();
    let with = |trust: &Trust, resume: bool, keep_alive: bool| {
        let mut load = load(&url.to_string(), 3);
        load.tls = Some(Tls::new(&url, trust, resume).unwrap());
        load.requests = vec![Request::new(&Method::Get, &url, &[], b"", keep_alive).unwrap()];
        load
    };
    let measured = good(&with(&Trust::Authorities(pem.clone()), true, true));
    assert_eq!(measured.bytes, measured.answers * 40_000);
    let full = good(&with(&Trust::Anything, false, false));
    assert!(full.resumed == 0 && full.connections > 0 && !full.connect.is_empty());
    let resumed = good(&with(&Trust::Anything, true, false));
    assert!(
        resumed.resumed * 10 > resumed.connections * 9,
        "{} of {}",
        resumed.resumed,
        resumed.connections
    );
    // A certificate that no trusted authority signed.
    let refused = measure(&with(&Trust::System, true, true));
    assert_eq!(
        (refused.answers, kinds(&refused)),
        (0, vec![FailureKind::Tls])
    );
    // TLS to a port with plain HTTP.
    let plain = Url::parse(&nginx.url("/page").replace("http:", "https:")).unwrap();
    let mut load = with(&Trust::Anything, true, true);
    load.addresses = plain.resolve().unwrap();
    assert_eq!(kinds(&measure(&load)), [FailureKind::Tls]);
    assert!(Tls::new(&url, &Trust::Authorities(b"no certificate".to_vec()), true).is_err());
}

//! Tests TLS of real servers, and compares the results with `openssl`.
#![allow(clippy::disallowed_methods, reason = "tests start real servers")]

mod common;

use assay_probe::heartbleed::Heartbeats;
use assay_probe::tls::{Report, SuiteOrder, Version, VersionState};
use common::{Keys, lacks, s_server, scan};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

fn version(report: &Report, version: Version) -> &assay_probe::tls::VersionReport {
    report
        .versions
        .iter()
        .find(|one| one.version == version)
        .unwrap()
}

fn ids(report: &Report) -> BTreeSet<&'static str> {
    report.remarks.iter().map(|remark| remark.id).collect()
}

/// Returns every suite that openssl supports: registered name, openssl's name, and protocol version.
fn known_suites() -> Vec<[String; 3]> {
    let said = common::openssl(&[
        "ciphers",
        "-stdname",
        "-s",
        "-tls1_2",
        "ALL:COMPLEMENTOFALL:@SECLEVEL=0",
    ]);
    let said = String::from_utf8(said).unwrap();
    let words = said
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    words
        .map(|words| [words[0], words[2], words[3]].map(str::to_owned))
        .collect()
}

/// Returns the suites that a server accepts in TLS 1.2. Tests each suite with `openssl s_client`.
fn oracle(port: u16) -> Vec<[String; 3]> {
    let takes = |name: &str| {
        let mut command = Command::new("openssl");
        command.args([
            "s_client",
            "-connect",
            &format!("127.0.0.1:{port}"),
            "-tls1_2",
        ]);
        command.args(["-cipher", &format!("{name}:@SECLEVEL=0")]);
        command
            .env("OPENSSL_CONF", "/dev/null")
            .stdin(Stdio::null());
        command.output().unwrap().status.success()
    };
    let suites = known_suites().into_iter();
    suites.filter(|[_, name, _]| takes(name)).collect()
}

#[test]
fn every_suite_that_openssl_finds_and_no_other() {
    if lacks(&["openssl"]) {
        return;
    }
    let keys = Keys::rsa();
    let server = s_server(
        &keys,
        &["-cipher", "ALL:COMPLEMENTOFALL:@SECLEVEL=0", "-serverpref"],
    );
    let report = scan(server.port, None, &[keys.cert()]);
    let truth = oracle(server.port);
    for (asked, is_in) in [
        (Version::Tls12, &["TLSv1.2", "TLSv1", "SSLv3"][..]),
        (Version::Tls11, &["TLSv1", "SSLv3"]),
        (Version::Tls10, &["TLSv1", "SSLv3"]),
    ] {
        let found = version(&report, asked);
        assert_eq!(found.state, VersionState::Offered, "{found:?}");
        assert_eq!(found.order, Some(SuiteOrder::Server));
        let ours: BTreeSet<&str> = found.suites.iter().map(String::as_str).collect();
        assert_eq!(ours.len(), found.suites.len(), "no suite twice");
        let known = truth
            .iter()
            .filter(|suite| is_in.contains(&suite[2].as_str()));
        let theirs: BTreeSet<&str> = known.map(|suite| suite[0].as_str()).collect();
        assert_eq!(ours, theirs, "{asked:?}");
    }
    assert_eq!(version(&report, Version::Ssl3).state, VersionState::Refused);
    let newest = version(&report, Version::Tls13);
    assert_eq!(newest.suites.len(), 3, "{newest:?}");
    let groups = newest.groups.as_ref().unwrap();
    assert!(groups.contains(&"x25519".to_owned()) && groups.contains(&"secp521r1".to_owned()));
    assert_eq!(report.heartbeats, Heartbeats::NotOffered);
    let ids = ids(&report);
    for id in [
        "tls-old-version",
        "tls-null",
        "tls-anonymous",
        "tls-static-key",
        "tls-dhe",
    ] {
        assert!(ids.contains(id), "{id}: {ids:?}");
    }
    for id in [
        "tls-untrusted",
        "tls-name",
        "tls-expired",
        "tls-rc4",
        "tls-ssl3",
    ] {
        assert!(!ids.contains(id), "{id}: {:?}", report.remarks);
    }
    assert!(report.unknown.is_empty(), "{:?}", report.unknown);
    let [chain] = report.chains.as_slice() else {
        panic!("{:?}", report.chains);
    };
    assert_eq!(chain.der, [common::der(&keys.cert())]);
    assert_eq!(chain.certificates[0].key, "RSA 2048");
}

#[test]
fn nginx_as_it_comes_takes_sixty_connections_at_most() {
    if lacks(&["nginx", "openssl"]) {
        return;
    }
    let keys = Keys::rsa();
    let server = nginx(&keys, "");
    let report = scan(server.port, None, &[keys.cert()]);
    assert!(report.connections <= 60, "{}", report.connections);
    let tls12 = version(&report, Version::Tls12);
    assert!(
        tls12
            .suites
            .contains(&"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384".to_owned())
    );
    assert_eq!(tls12.order, Some(SuiteOrder::Client));
    assert!(report.unknown.is_empty(), "{:?}", report.unknown);
}

/// An nginx server with the ciphers that BCP 195 recommends gets no remark.
#[test]
fn a_good_server_gets_no_remark() {
    if lacks(&["nginx", "openssl"]) {
        return;
    }
    for kind in [
        &["-newkey", "rsa:2048"][..],
        &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    ] {
        let keys = Keys::new(kind);
        let server = nginx(
            &keys,
            "ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20; ssl_protocols TLSv1.2 TLSv1.3;",
        );
        let report = scan(server.port, None, &[keys.cert()]);
        assert_eq!(report.remarks, [], "{report:#?}");
        assert!(report.unknown.is_empty(), "{:?}", report.unknown);
        assert_eq!(report.chains.len(), 1);
        assert_eq!(report.chains[0].untrusted, None);
    }
}

#[test]
fn a_certificate_of_tls_1_3_alone_is_read() {
    if lacks(&["openssl"]) {
        return;
    }
    let keys = Keys::new(&["-newkey", "ed25519"]);
    let server = s_server(&keys, &["-tls1_3"]);
    let report = scan(server.port, None, &[]);
    assert_eq!(
        version(&report, Version::Tls12).state,
        VersionState::Refused
    );
    assert_eq!(report.chains[0].der, [common::der(&keys.cert())]);
    assert!(ids(&report).contains("tls-untrusted"));
}

#[test]
fn what_is_wrong_with_certificates() {
    if lacks(&["openssl"]) {
        return;
    }
    let old = Keys::new(&["-newkey", "rsa:1024"]);
    let server = s_server(&old, &["-cipher", "ALL:@SECLEVEL=0"]);
    assert!(ids(&scan(server.port, None, &[])).contains("tls-small-key"));

    let keys = Keys::rsa();
    let expired = keys.path("expired.pem");
    // Signed again with an expiry date in the past.
    let request = keys.path("request.pem");
    let (key, request, expired) = (keys.key(), request.to_str().unwrap().to_owned(), expired);
    common::openssl(&[
        "req",
        "-new",
        "-key",
        key.to_str().unwrap(),
        "-subj",
        "/CN=other",
        "-out",
        &request,
    ]);
    common::openssl(&[
        "x509",
        "-req",
        "-in",
        &request,
        "-signkey",
        key.to_str().unwrap(),
        "-days",
        "-1",
        "-out",
        expired.to_str().unwrap(),
    ]);
    std::fs::copy(&expired, keys.cert()).unwrap();
    let server = s_server(&keys, &[]);
    let found = scan(server.port, None, &[]);
    assert!(ids(&found).contains("tls-expired"), "{:?}", found.remarks);
    assert!(ids(&found).contains("tls-name"), "{:?}", found.remarks);
}

fn nginx(keys: &Keys, more: &str) -> common::Server {
    let port = common::free_port();
    let dir = keys.dir.path().display();
    let config = keys.path("nginx.conf");
    let user = match rustix::process::geteuid().is_root() {
        true => "user nobody nogroup;",
        false => "",
    };
    let text = format!(
        "{user} worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/error.log; daemon off;
         events {{ }}
         http {{
           access_log off;
           client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
           fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
           server {{
             listen 127.0.0.1:{port} ssl;
             ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
             {more}
             location / {{ return 200 ok; }}
           }}
         }}"
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(assay_testing::servers::find("nginx").unwrap());
    command
        .arg("-c")
        .arg(&config)
        .arg("-e")
        .arg(keys.path("error.log"));
    common::Server::listening(command, &keys.path("nginx.log"), port)
}

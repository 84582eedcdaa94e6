//! Tests certificate chains of real servers, each with one fault. Checks the reported fault and its remedy.
#![allow(clippy::disallowed_methods, reason = "tests start real servers")]

mod common;

use assay_probe::Remark;
use assay_probe::tls::{Distrust, Renegotiation, Report};
use common::{Keys, Server, authority::Authority, lacks, openssl, scan};
use std::path::Path;

fn remark<'a>(report: &'a Report, id: &str) -> Option<&'a Remark> {
    report.remarks.iter().find(|remark| remark.id == id)
}

fn s_server(authority: &Authority, leaf: &str, chain: &[&str], options: &[&str]) -> Server {
    authority.serve(leaf, chain, options)
}

/// Scans a server while trusting the root of the test authority.
fn scan_trusting(authority: &Authority, server: &Server) -> Report {
    scan(server.port, None, &[authority.cert("root")])
}

fn distrust(report: &Report) -> Option<&Distrust> {
    report.chains[0].distrust.as_ref()
}

#[test]
fn a_whole_chain_is_no_finding_and_a_missing_or_a_disordered_one_is() {
    if lacks(&["openssl"]) {
        return;
    }
    let authority = Authority::new();
    authority.intermediate("one", "root", 365);
    authority.intermediate("two", "one", 365);
    authority.server("leaf", "two", &[]);
    let good = scan_trusting(
        &authority,
        &s_server(&authority, "leaf", &["two", "one"], &[]),
    );
    for id in ["tls-untrusted", "tls-chain-order", "tls-chain-stray"] {
        assert!(remark(&good, id).is_none(), "{id}: {:?}", good.remarks);
    }
    // A server may send the root as well.
    let whole = s_server(&authority, "leaf", &["two", "one", "root"], &[]);
    assert!(remark(&scan_trusting(&authority, &whole), "tls-chain-order").is_none());

    let disordered = s_server(&authority, "leaf", &["one", "two"], &[]);
    let found = scan_trusting(&authority, &disordered);
    let order = remark(&found, "tls-chain-order").unwrap();
    assert!(
        order.says.find("CN=two").unwrap() < order.says.find("CN=one").unwrap(),
        "{order:?}"
    );
    assert_eq!(distrust(&found), None);

    let missing = scan_trusting(&authority, &s_server(&authority, "leaf", &[], &[]));
    assert_eq!(
        distrust(&missing),
        Some(&Distrust::MissingIssuer("CN=two".to_owned()))
    );

    let other = Authority::named("other root");
    let stray = {
        std::fs::copy(other.cert("root"), authority.cert("stray")).unwrap();
        s_server(&authority, "leaf", &["two", "one", "stray"], &[])
    };
    let found = scan_trusting(&authority, &stray);
    assert!(remark(&found, "tls-chain-order").is_none());

    // A root that this machine does not have.
    let unknown = s_server(&authority, "leaf", &["two", "one", "root"], &[]);
    let found = scan(unknown.port, None, &[other.cert("root")]);
    assert_eq!(
        distrust(&found),
        Some(&Distrust::UnknownRoot("CN=root".to_owned()))
    );
    assert!(remark(&found, "tls-untrusted").is_some());
}

#[test]
fn an_expired_intermediate_is_named() {
    if lacks(&["openssl"]) {
        return;
    }
    let authority = Authority::new();
    authority.intermediate("old", "root", -1);
    authority.server("leaf", "old", &[]);
    let found = scan_trusting(&authority, &s_server(&authority, "leaf", &["old"], &[]));
    assert!(
        matches!(distrust(&found), Some(Distrust::Expired(name, _)) if name == "CN=old"),
        "{:?}",
        distrust(&found)
    );
    assert!(remark(&found, "tls-expired").is_none());
}

#[test]
fn a_self_signed_certificate_and_one_for_clients_get_a_remedy_of_their_own() {
    if lacks(&["openssl"]) {
        return;
    }
    let mut remedies = Vec::new();
    // `openssl req -x509` sets CA:TRUE.
    for constraint in ["CA:TRUE", "CA:FALSE"] {
        let keys = Keys::new(&["-newkey", "rsa:2048"]);
        let cert = keys.cert();
        let cert = cert.to_str().unwrap();
        openssl(&[
            "req",
            "-x509",
            "-key",
            keys.key().to_str().unwrap(),
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-addext",
            &format!("basicConstraints=critical,{constraint}"),
            "-days",
            "90",
            "-out",
            cert,
        ]);
        let authority = Authority::new();
        let server = common::s_server(&keys, &[]);
        for trusted in [authority.cert("root"), keys.cert()] {
            let found = scan(server.port, None, &[trusted]);
            if let Some(remark) = remark(&found, "tls-untrusted") {
                assert_eq!(distrust(&found), Some(&Distrust::SelfSigned));
                assert!(!remark.says.contains("CaUsed"), "{remark:?}");
                remedies.push(remark.remedy);
            }
        }
    }
    assert!(remedies.len() >= 2);
    let authority = Authority::new();
    authority.server("leaf", "root", &["extendedKeyUsage=clientAuth"]);
    let found = scan_trusting(&authority, &s_server(&authority, "leaf", &[], &[]));
    assert_eq!(distrust(&found), Some(&Distrust::NotForServers));
    remedies.push(remark(&found, "tls-untrusted").unwrap().remedy);
    let missing = Distrust::MissingIssuer(String::new()).remedy();
    assert!(!remedies.contains(&missing), "{remedies:?}");
}

#[test]
fn must_staple_with_and_without_an_ocsp_response() {
    if lacks(&["openssl"]) {
        return;
    }
    let authority = Authority::new();
    authority.server("leaf", "root", &["tlsfeature=status_request"]);
    let response = authority.ocsp_response("leaf", "root");
    let with = ["-status_file", response.to_str().unwrap()];
    for version in [&[][..], &["-tls1_2"]] {
        let options: Vec<&str> = with.iter().chain(version).copied().collect();
        let found = scan_trusting(&authority, &s_server(&authority, "leaf", &[], &options));
        assert_eq!(found.chains[0].stapled, Some(true), "{version:?}");
        assert!(remark(&found, "tls-must-staple").is_none());
        let found = scan_trusting(&authority, &s_server(&authority, "leaf", &[], version));
        assert_eq!(found.chains[0].stapled, Some(false), "{version:?}");
        assert!(remark(&found, "tls-must-staple").is_some());
    }
    // A server without the must-staple extension need not staple.
    authority.server("plain", "root", &[]);
    let found = scan_trusting(
        &authority,
        &s_server(&authority, "plain", &[], &["-tls1_2"]),
    );
    assert!(remark(&found, "tls-must-staple").is_none());
    assert!(found.unknown.is_empty(), "{:?}", found.unknown);
}

#[test]
fn clients_that_may_renegotiate() {
    if lacks(&["openssl"]) {
        return;
    }
    for kind in [
        &["-newkey", "rsa:2048"][..],
        &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    ] {
        let keys = Keys::new(kind);
        for suite in ["ECDHE+AES128", "ECDHE+AES256"] {
            // When its input ends, s_server closes after the handshake, except in the mode that serves pages.
            let open = ["-www", "-tls1_2", "-cipher", suite, "-client_renegotiation"];
            let found = scan(common::s_server(&keys, &open).port, None, &[keys.cert()]);
            assert_eq!(found.renegotiation, Renegotiation::Accepted, "{suite}");
            assert!(remark(&found, "tls-client-renegotiation").is_some());
            let found = scan(
                common::s_server(&keys, &open[..4]).port,
                None,
                &[keys.cert()],
            );
            assert!(
                matches!(found.renegotiation, Renegotiation::Refused { .. }),
                "{suite}: {:?}",
                found.renegotiation
            );
            assert!(found.unknown.is_empty(), "{:?}", found.unknown);
        }
        let found = scan(
            common::s_server(&keys, &["-tls1_3"]).port,
            None,
            &[keys.cert()],
        );
        assert_eq!(found.renegotiation, Renegotiation::NotPossible);
    }
}

#[test]
fn certificates_that_live_too_long() {
    if lacks(&["openssl"]) {
        return;
    }
    // Timestamps of transparency logs, which the certificates of public authorities contain.
    let logged = &["1.3.6.1.4.1.11129.2.4.2=DER:04:02:00:00"][..];
    for (days, extensions, wanted) in [
        (90, &[][..], None),
        (398, &[], None),
        (400, &[], Some("note")),
        (900, &[], Some("weak")),
        (40, logged, None),
        (300, logged, Some("note")),
    ] {
        let authority = Authority::new();
        authority.server_for("leaf", "root", extensions, days);
        let found = scan_trusting(&authority, &s_server(&authority, "leaf", &[], &[]));
        let severity = remark(&found, "tls-long-validity").map(|one| one.severity.name());
        assert_eq!(severity, wanted, "{days}");
    }
}

#[test]
fn an_address_has_to_stand_in_a_certificate_as_an_address() {
    if lacks(&["openssl"]) {
        return;
    }
    for (names, is_for) in [("IP:127.0.0.1", true), ("DNS:127.0.0.1", false)] {
        let authority = Authority::new();
        authority.server("leaf", "root", &[&format!("subjectAltName={names}")]);
        let server = s_server(&authority, "leaf", &[], &[]);
        let visit = common::visit(server.port);
        let question = assay_probe::tls::Question {
            starttls: None,
            name: None,
            roots: &assay_probe::tls::Roots::these(&[common::der(&authority.cert("root"))]),
            now: common::now(),
        };
        let found = assay_probe::tls::scan(&visit, &question);
        assert_eq!(remark(&found, "tls-name").is_none(), is_for, "{names}");
        assert_eq!(found.chains[0].certificates[0].names, ["127.0.0.1"]);
    }
}

#[test]
fn weak_keys_and_signatures_of_authorities_are_named() {
    if lacks(&["openssl"]) {
        return;
    }
    let weak = ["-cipher", "ALL:@SECLEVEL=0"];
    for (kind, digest) in [("rsa:1024", "-sha256"), ("rsa:2048", "-sha1")] {
        let authority = Authority::new();
        authority.intermediate_with("weak", "root", kind, digest);
        authority.signed_with("leaf", "weak", digest);
        let found = scan_trusting(&authority, &s_server(&authority, "leaf", &["weak"], &weak));
        assert!(
            matches!(distrust(&found), Some(Distrust::WeakSignature(..))),
            "{kind} {digest}: {:?}",
            distrust(&found)
        );
        let id = match digest {
            "-sha1" => "tls-signature",
            _ => "tls-small-key",
        };
        assert!(remark(&found, id).is_some(), "{:?}", found.remarks);
    }
    // A curve of 192 bits.
    let keys = Keys::new(&["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime192v1"]);
    let server = common::s_server(&keys, &weak);
    let found = scan(server.port, None, &[keys.cert()]);
    assert!(remark(&found, "tls-small-key").is_some(), "{:?}", found);
}

#[test]
fn a_server_of_tls_1_0_alone() {
    if lacks(&["openssl"]) {
        return;
    }
    let keys = Keys::rsa();
    let options = ["-tls1", "-cipher", "ALL:@SECLEVEL=0"];
    let found = scan(common::s_server(&keys, &options).port, None, &[keys.cert()]);
    for id in ["tls-no-current-version", "tls-old-version"] {
        assert!(remark(&found, id).is_some(), "{id}: {:?}", found.remarks);
    }
    assert!(Path::new(&keys.cert()).exists());
    assert!(matches!(found.renegotiation, Renegotiation::Unknown { .. }));
}

//! Tests real servers of SSH, SMB and HTTP. Compares pins with the results of `openssl`.
#![allow(clippy::disallowed_methods, reason = "tests start real servers")]

mod common;

use assay_probe::tls::VersionState;
use assay_probe::{Severity, http, pins, smb, ssh};
use common::{Keys, Server, free_port, lacks, openssl, scripted, visit};
use std::io::{Read as _, Write as _};
use std::process::Command;

fn sshd(keys: &Keys, more: &str) -> Server {
    let port = free_port();
    let dir = keys.dir.path().display();
    for (kind, bits) in [("rsa", "2048"), ("ed25519", "256"), ("ecdsa", "384")] {
        let file = keys.path(&format!("host_{kind}"));
        if !file.exists() {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-N", "", "-t", kind, "-b", bits, "-f"])
                .arg(&file)
                .status();
            assert!(made.unwrap().success());
        }
    }
    let config = keys.path("sshd_config");
    let text = format!(
        "Port {port}\nListenAddress 127.0.0.1\nPidFile none\nUsePAM no\nStrictModes no\n\
         HostKey {dir}/host_rsa\nHostKey {dir}/host_ed25519\nHostKey {dir}/host_ecdsa\n{more}\n"
    );
    std::fs::write(&config, text).unwrap();
    let _ = std::fs::create_dir("/run/sshd");
    let mut command = Command::new(assay_testing::servers::find("sshd").unwrap());
    command.args(["-D", "-e", "-f"]).arg(&config);
    Server::listening(command, &keys.path("sshd.log"), port)
}

#[test]
fn what_sshd_offers_and_the_keys_it_has() {
    if lacks(&["sshd", "ssh-keygen", "openssl"]) {
        return;
    }
    let keys = Keys::rsa();
    let server = sshd(&keys, "");
    let report = ssh::scan(&visit(server.port)).unwrap();
    assert!(
        report.banner.starts_with("SSH-2.0-OpenSSH"),
        "{}",
        report.banner
    );
    assert!(report.unknown.is_empty(), "{:?}", report.unknown);
    // `ssh-keygen -l`: bits, fingerprint, comment, (KIND).
    for (file, kind) in [
        ("host_rsa", "ssh-rsa"),
        ("host_ed25519", "ssh-ed25519"),
        ("host_ecdsa", "ecdsa-sha2-nistp384"),
    ] {
        let said = Command::new("ssh-keygen")
            .arg("-lf")
            .arg(keys.path(file))
            .output()
            .unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let words: Vec<&str> = said.split_whitespace().collect();
        let found = report
            .host_keys
            .iter()
            .find(|key| key.kind == kind)
            .unwrap();
        assert_eq!(found.fingerprint, words[1]);
        if let Some(bits) = found.bits {
            assert_eq!(bits.to_string(), words[0]);
        }
    }
    assert_eq!(report.host_keys.len(), 3);
    // Debian's own configuration has no serious fault.
    let grave = report
        .remarks
        .iter()
        .filter(|one| one.severity > Severity::Note);
    assert_eq!(
        grave.map(|one| one.id).collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
}

#[test]
fn an_old_sshd_is_told_and_its_keys_are_still_read() {
    if lacks(&["sshd", "ssh-keygen", "openssl"]) {
        return;
    }
    let keys = Keys::rsa();
    for kex in [
        "diffie-hellman-group1-sha1",
        "diffie-hellman-group14-sha1",
        "ecdh-sha2-nistp256",
    ] {
        let server = sshd(
            &keys,
            &format!(
                "KexAlgorithms {kex}\nCiphers aes128-cbc\nMACs hmac-md5\nHostKeyAlgorithms ssh-rsa"
            ),
        );
        let report = ssh::scan(&visit(server.port)).unwrap();
        let ids: Vec<&str> = report.remarks.iter().map(|one| one.id).collect();
        for id in ["ssh-rsa-sha1", "ssh-old-cipher", "ssh-old-mac"] {
            assert!(ids.contains(&id), "{id}: {ids:?}");
        }
        assert_eq!(ids.contains(&"ssh-small-group"), kex.contains("group1-"));
        assert_eq!(report.host_keys.len(), 1, "{kex}: {:?}", report.unknown);
        assert_eq!(report.host_keys[0].bits, Some(2048));
    }
}

fn smbd(keys: &Keys, more: &str) -> Server {
    let port = free_port();
    let dir = keys.dir.path().display();
    let config = keys.path("smb.conf");
    let text = format!(
        "[global]\nsmb ports = {port}\ninterfaces = 127.0.0.1\nbind interfaces only = yes\n\
         private dir = {dir}\nlock directory = {dir}\nstate directory = {dir}\n\
         cache directory = {dir}\npid directory = {dir}\nncalrpc dir = {dir}/ncalrpc\n\
         log file = {dir}/log\ndisable netbios = yes\nload printers = no\n{more}\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(assay_testing::servers::find("smbd").unwrap());
    command
        .args(["-F", "--no-process-group", "--debug-stdout", "-s"])
        .arg(&config);
    Server::listening(command, &keys.path("smbd.log"), port)
}

#[test]
fn dialects_and_signing_of_samba() {
    if lacks(&["smbd", "openssl"]) {
        return;
    }
    let keys = Keys::rsa();
    let server = smbd(&keys, "");
    let report = smb::scan(&visit(server.port)).unwrap();
    assert_eq!(
        report.dialects,
        ["SMB 3.1.1", "SMB 3.0.2", "SMB 3.0", "SMB 2.1", "SMB 2.0.2"]
    );
    assert_eq!(report.smb1, VersionState::Refused);
    assert_eq!(report.signing_required, Some(false));
    assert_eq!(report.encryption, Some(true));
    assert!(report.unknown.is_empty(), "{:?}", report.unknown);
    let ids = |report: &smb::Report| report.remarks.iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(&report), ["smb-signing"]);
    drop(server);

    let server = smbd(
        &keys,
        "server signing = mandatory\nserver max protocol = SMB3_02\nserver min protocol = NT1",
    );
    let report = smb::scan(&visit(server.port)).unwrap();
    assert_eq!(report.signing_required, Some(true));
    assert!(
        !report.dialects.contains(&"SMB 3.1.1"),
        "{:?}",
        report.dialects
    );
    assert_eq!(report.smb1, VersionState::Offered);
    assert_eq!(ids(&report), ["smb1"]);
}

/// Starts an HTTP server that answers each path with the given text.
fn web(answers: &'static [(&'static str, &'static str)]) -> u16 {
    let address = scripted(move |mut stream| {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
            request.push(byte[0]);
        }
        let text = String::from_utf8_lossy(&request).into_owned();
        let path = text.split(' ').nth(1).unwrap_or_default();
        let known = answers.iter().find(|known| known.0 == path);
        let answer = known.map_or("HTTP/1.1 404 Not Found\r\n\r\n", |known| known.1);
        let _ = stream.write_all(answer.as_bytes());
    });
    address.port()
}

fn ask(port: u16, link: Option<&str>) -> http::Report {
    let question = http::Question {
        https: false,
        name: None,
        link,
        now: common::now(),
    };
    http::scan(&visit(port), &question).unwrap()
}

#[test]
fn headers_and_files_of_http() {
    let port = web(&[
        (
            "/",
            "HTTP/1.1 200 OK\r\nServer: nginx/1.2.3\r\nPublic-Key-Pins: pin-sha256=\"a\"; max-age=5\r\n\
             Content-Length: 2\r\n\r\nok",
        ),
        (
            "/.well-known/security.txt",
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nContact: mailto:a@b\nExpires: 2020-01-01T00:00:00Z\n",
        ),
        (
            "/.well-known/assay-consent",
            "HTTP/1.1 200 OK\r\n\r\nassay may test this\n",
        ),
        ("/invoice/7", "HTTP/1.1 200 OK\r\n\r\nseven"),
        ("/invoice/8", "HTTP/1.1 200 OK\r\n\r\neight"),
    ]);
    let report = ask(port, Some("/invoice/7"));
    let ids: Vec<&str> = report.remarks.iter().map(|one| one.id).collect();
    assert_eq!(
        ids,
        [
            "http-hpkp",
            "http-enumerable",
            "http-plain",
            "http-security-txt",
            "http-version"
        ]
    );
    assert!(report.unknown.is_empty(), "{:?}", report.unknown);
}

#[test]
fn a_redirect_to_https_is_as_it_should_be() {
    let port = web(&[(
        "/",
        "HTTP/1.1 301 Moved\r\nLocation: https://localhost/\r\nServer: nginx\r\n\r\n",
    )]);
    let report = ask(port, Some("/invoice/7"));
    assert_eq!(report.remarks, []);
    // Without consent no object was requested, and the report states this.
    assert!(matches!(report.links, Some(http::Links::NoConsent { .. })));
    assert_eq!(report.unknown.len(), 1);
}

#[test]
fn https_of_openssl() {
    if lacks(&["openssl"]) {
        return;
    }
    let keys = Keys::rsa();
    let server = common::s_server(&keys, &["-www"]);
    let question = http::Question {
        https: true,
        name: Some("localhost"),
        link: None,
        now: common::now(),
    };
    let report = http::scan(&visit(server.port), &question).unwrap();
    assert_eq!(report.status, 200);
    let ids: Vec<&str> = report.remarks.iter().map(|one| one.id).collect();
    assert_eq!(ids, ["http-no-hsts", "http-no-csp"]);
}

/// Starts nginx with TLS. Every page has these headers.
fn nginx(keys: &Keys, headers: &str) -> Server {
    let port = free_port();
    let dir = keys.dir.path().display();
    let user = match rustix::process::geteuid().is_root() {
        true => "user nobody nogroup;",
        false => "",
    };
    let text = format!(
        "{user} worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/error.log; daemon off;
         events {{ }}
         http {{
           access_log off; server_tokens off; default_type text/html;
           client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
           fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
           server {{
             listen 127.0.0.1:{port} ssl;
             ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
             add_header Strict-Transport-Security max-age=31536000;
             {headers}
             location / {{ return 200 ok; }}
             location /.well-known/ {{ return 404; }}
           }}
         }}"
    );
    let config = keys.path("nginx.conf");
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(assay_testing::servers::find("nginx").unwrap());
    command.arg("-c").arg(&config);
    command.arg("-e").arg(keys.path("error.log"));
    Server::listening(command, &keys.path("nginx.log"), port)
}

#[test]
fn cookies_and_policies_of_nginx() {
    if lacks(&["nginx", "openssl"]) {
        return;
    }
    let keys = Keys::rsa();
    let ask = |headers: &str| {
        let server = nginx(&keys, headers);
        let question = http::Question {
            https: true,
            name: Some("localhost"),
            link: None,
            now: common::now(),
        };
        http::scan(&visit(server.port), &question).unwrap()
    };
    let ids = |report: &http::Report| report.remarks.iter().map(|one| one.id).collect::<Vec<_>>();
    let good = ask(
        "add_header Set-Cookie '__Host-id=s3cret; Path=/; Secure; HttpOnly; SameSite=Lax';
         add_header Content-Security-Policy \"default-src 'self'\";",
    );
    assert_eq!(ids(&good), [""; 0], "{:?}", good.remarks);
    assert_eq!(good.cookies.len(), 1);
    let bad = ask("add_header Set-Cookie 'id=s3cret; Path=/';
         add_header Set-Cookie 'other=s3cret; SameSite=None; HttpOnly';
         add_header Set-Cookie '__Host-x=s3cret; Path=/; Domain=localhost; Secure; HttpOnly; SameSite=Lax';
         add_header Content-Security-Policy \"script-src 'self' 'unsafe-inline'\";");
    assert_eq!(
        ids(&bad),
        [
            "http-cookie-secure",
            "http-cookie-refused",
            "http-cookie-prefix",
            "http-weak-csp",
            "http-cookie-httponly",
            "http-cookie-samesite"
        ]
    );
    assert_eq!(bad.cookies.len(), 3);
    // Cookie values are secrets and must not appear.
    assert!(!format!("{bad:?}").contains("s3cret"));
}

#[test]
fn pins_are_those_of_openssl() {
    if lacks(&["openssl"]) {
        return;
    }
    for kind in [
        &["-newkey", "rsa:2048"][..],
        &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
        &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
        &["-newkey", "ed25519"],
    ] {
        let keys = Keys::new(kind);
        let path = |name: &str| keys.path(name).to_str().unwrap().to_owned();
        let (key, cert) = (path("key.pem"), path("cert.pem"));
        let (request, public) = (path("request.pem"), path("public.pem"));
        openssl(&[
            "req", "-new", "-key", &key, "-subj", "/CN=x", "-out", &request,
        ]);
        openssl(&["pkey", "-in", &key, "-pubout", "-out", &public]);
        openssl(&[
            "pkey",
            "-in",
            &key,
            "-pubout",
            "-outform",
            "DER",
            "-out",
            &path("public.der"),
        ]);
        openssl(&[
            "x509",
            "-in",
            &cert,
            "-outform",
            "DER",
            "-out",
            &path("cert.der"),
        ]);
        openssl(&[
            "pkey",
            "-in",
            &key,
            "-outform",
            "DER",
            "-out",
            &path("key.der"),
        ]);
        let digest = openssl(&["dgst", "-sha256", "-binary", &path("public.der")]);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        for (file, kind) in [
            (cert, "certificate"),
            (request, "request"),
            (public, "public key"),
            (key.clone(), "private key"),
            (path("cert.der"), "certificate"),
            (path("public.der"), "public key"),
            (path("key.der"), "private key"),
        ] {
            let found = pins::of_file(&std::fs::read(&file).unwrap()).unwrap();
            assert_eq!(found.len(), 1, "{file}");
            assert_eq!((found[0].kind, &found[0].pin.hex), (kind, &hex), "{file}");
            let curl = found[0].pin.curl();
            assert_eq!(curl.len(), "sha256//".len() + 44);
        }
        let locked = path("locked.pem");
        openssl(&[
            "pkey", "-in", &key, "-aes256", "-passout", "pass:x", "-out", &locked,
        ]);
        let error = pins::of_file(&std::fs::read(&locked).unwrap()).unwrap_err();
        assert!(matches!(error, pins::PinError::Encrypted), "{error}");
    }
    assert!(matches!(
        pins::of_file(b"nothing"),
        Err(pins::PinError::Nothing)
    ));
    let cut = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    assert!(matches!(
        pins::of_file(cut),
        Err(pins::PinError::Damaged { .. })
    ));
}

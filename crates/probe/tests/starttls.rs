//! Tests every protocol with STARTTLS, by a scripted start of the protocol in front of openssl's TLS. Also tests real
//! mail servers.
#![allow(clippy::disallowed_methods, reason = "tests start real servers")]

mod common;

use assay_probe::tls::{Version, VersionState};
use assay_probe::{Starttls, tls};
use common::{Keys, Server, free_port, lacks, scan, scripted};
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;

/// A text that the scripted server sends, and the text for which it waits first.
enum Step {
    Hear(&'static [u8]),
    Say(&'static [u8]),
}
use Step::{Hear, Say};

/// Returns the start of the protocol as Postfix, Dovecot, slapd, PostgreSQL, MySQL 8.0, vsftpd and Prosody
/// send it.
fn talk(starttls: Starttls) -> Vec<Step> {
    match starttls {
        Starttls::Smtp => vec![
            Say(b"220-mail.example.org\r\n220 ESMTP Postfix\r\n"),
            Hear(b"EHLO assay.invalid\r\n"),
            Say(b"250-mail.example.org\r\n250-PIPELINING\r\n250-STARTTLS\r\n250 SMTPUTF8\r\n"),
            Hear(b"STARTTLS\r\n"),
            Say(b"220 2.0.0 Ready to start TLS\r\n"),
        ],
        Starttls::Imap => vec![
            Say(b"* OK [CAPABILITY IMAP4rev1 STARTTLS LOGINDISABLED] Dovecot ready.\r\n"),
            Hear(b"a1 STARTTLS\r\n"),
            Say(b"* OK something in between\r\na1 OK Begin TLS negotiation now.\r\n"),
        ],
        Starttls::Pop3 => vec![
            Say(b"+OK Dovecot ready.\r\n"),
            Hear(b"STLS\r\n"),
            Say(b"+OK Begin TLS negotiation now.\r\n"),
        ],
        Starttls::Ldap => vec![
            Hear(b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037"),
            Say(b"\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\x00\x04\x00\x04\x00"),
        ],
        Starttls::Postgres => vec![Hear(b"\0\0\0\x08\x04\xd2\x16\x2f"), Say(b"S")],
        Starttls::Mysql => vec![
            Say(
                b"\x4a\0\0\0\x0a8.0.36\0\x08\0\0\0abcdefgh\0\xff\xff\xff\x02\0\xff\xdf\x15\
                  \0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0caching_sha2_password\0",
            ),
            Hear(
                b"\x20\0\0\x01\0\x8a\0\0\0\0\0\x01\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            ),
        ],
        Starttls::Ftp => vec![
            Say(b"220-Welcome\r\n and more\r\n220 (vsFTPd 3.0.3)\r\n"),
            Hear(b"AUTH TLS\r\n"),
            Say(b"234 Proceed with negotiation.\r\n"),
        ],
        Starttls::Xmpp => vec![
            Hear(
                b"<?xml version='1.0'?><stream:stream to='localhost' version='1.0' \
                  xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>",
            ),
            Say(
                b"<?xml version='1.0'?><stream:stream id='x' xmlns='jabber:client'>\
                  <stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/>\
                  </starttls></stream:features>",
            ),
            Hear(b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
            Say(b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
        ],
    }
}

/// Sends the start of the protocol, then forwards all data to a TLS server.
fn before(starttls: Starttls, tls: u16) -> u16 {
    let address = scripted(move |mut stream| {
        let mut begin = || -> std::io::Result<()> {
            for step in talk(starttls) {
                match step {
                    Say(words) => stream.write_all(words)?,
                    Hear(words) => {
                        let mut heard = vec![0; words.len()];
                        stream.read_exact(&mut heard)?;
                        assert_eq!(heard, words, "{starttls:?}");
                    }
                }
            }
            let to = TcpStream::connect((Ipv4Addr::LOCALHOST, tls))?;
            let (mut from_client, mut to_server) = (stream.try_clone()?, to.try_clone()?);
            let up = std::thread::spawn(move || {
                let _ = std::io::copy(&mut from_client, &mut to_server);
                let _ = to_server.shutdown(std::net::Shutdown::Write);
            });
            let mut from_server = to;
            let _ = std::io::copy(&mut from_server, &mut stream);
            let _ = stream.shutdown(std::net::Shutdown::Both);
            up.join()
                .map_err(|_| std::io::Error::other("the other direction"))
        };
        let _ = begin();
    });
    address.port()
}

#[test]
fn every_protocol_comes_to_tls() {
    if lacks(&["openssl"]) {
        return;
    }
    let keys = Keys::rsa();
    let server = common::s_server(
        &keys,
        &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"],
    );
    for starttls in Starttls::ALL {
        let report = scan(
            before(starttls, server.port),
            Some(starttls),
            &[keys.cert()],
        );
        assert_eq!(
            suites(&report),
            ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
            "{starttls:?}: {report:?}"
        );
        assert!(
            report.unknown.is_empty(),
            "{starttls:?}: {:?}",
            report.unknown
        );
        assert_eq!(report.chains[0].der, [common::der(&keys.cert())]);
    }
}

fn suites(report: &tls::Report) -> &[String] {
    let tls12 = report
        .versions
        .iter()
        .find(|one| one.version == Version::Tls12);
    &tls12.unwrap().suites
}

#[test]
fn dovecot_with_imap_and_pop3() {
    if lacks(&["dovecot", "openssl"]) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        assay_testing::skipped("root", "Dovecot with its own users");
        return;
    }
    let keys = Keys::rsa();
    let (imap, pop3) = (free_port(), free_port());
    let dir = keys.dir.path().display();
    let has_pop3 = std::path::Path::new("/usr/lib/dovecot/pop3-login").exists();
    let protocols = if has_pop3 { "imap pop3" } else { "imap" };
    let listens = |service: &str, plain: &str, port: u16| {
        format!(
            "service {service}-login {{\n  inet_listener {plain} {{\n    address = 127.0.0.1\n    \
             port = {port}\n  }}\n  inet_listener {plain}s {{\n    port = 0\n  }}\n}}\n"
        )
    };
    let mut services = listens("imap", "imap", imap);
    if has_pop3 {
        services.push_str(&listens("pop3", "pop3", pop3));
    }
    let text = format!(
        "base_dir = {dir}/run\nlog_path = {dir}/dovecot.log\nprotocols = {protocols}\n\
         ssl = required\nssl_cert = <{dir}/cert.pem\nssl_key = <{dir}/key.pem\n\
         ssl_min_protocol = TLSv1.2\n\
         passdb {{\n  driver = static\n  args = nopassword=y\n}}\n\
         userdb {{\n  driver = static\n  args = uid=nobody gid=nogroup home=/nonexistent\n}}\n\
         {services}"
    );
    let config = keys.path("dovecot.conf");
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(assay_testing::servers::find("dovecot").unwrap());
    command.arg("-F").arg("-c").arg(&config);
    let _server = Server::listening(command, &keys.path("started.log"), imap);
    for (starttls, port) in [(Starttls::Imap, imap), (Starttls::Pop3, pop3)] {
        if starttls == Starttls::Pop3 && !has_pop3 {
            continue;
        }
        let report = scan(port, Some(starttls), &[keys.cert()]);
        let states: Vec<VersionState> = report.versions.iter().map(|one| one.state).collect();
        use VersionState::{Offered, Refused};
        assert_eq!(
            states,
            [Offered, Offered, Refused, Refused, Refused],
            "{report:?}"
        );
        assert_eq!(report.chains[0].der, [common::der(&keys.cert())]);
        assert!(report.unknown.is_empty(), "{:?}", report.unknown);
    }
}

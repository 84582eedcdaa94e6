//! Targets for the responses of servers that `assay probe` examines, and for files whose keys are pinned.

use crate::ParserTarget;
use assay_probe::tls::{Assembler, TlsAnswer, Until, header};
use assay_probe::{dtls, http, pins, smb, ssh, starttls};

macro_rules! seed {
    ($name:literal) => {
        include_bytes!(concat!("../../../probe/fixtures/", $name)).to_vec()
    };
}

pub(super) fn targets() -> Vec<ParserTarget> {
    vec![
        ParserTarget {
            name: "probe-tls",
            seeds: vec![
                seed!("openssl-3.0.19-tls12.bin"),
                seed!("openssl-3.0.19-tls13.bin"),
                vec![21, 3, 3, 0, 2, 2, 40],
            ],
            run: tls,
        },
        ParserTarget {
            name: "probe-dtls",
            seeds: vec![seed!("gnutls-3.7.9-dtls-cookie.bin"), seed!("gnutls-3.7.9-dtls-hello.bin")],
            run: |bytes| {
                let heard = dtls::datagram(bytes).unwrap_or_default();
                // Each has at least the header of a message or a record of its own.
                assert!(heard.len() <= bytes.len() / 12);
            },
        },
        ParserTarget {
            name: "probe-ssh",
            seeds: vec![seed!("openssh-9.2p1-kexinit.bin"), seed!("openssh-9.2p1-reply.bin")],
            run: |bytes| {
                if let Ok(read) = ssh::algorithms(bytes) {
                    let names = read.kex.iter().chain(&read.ciphers_in).chain(&read.host_keys);
                    assert!(names.map(|name| name.len() + 1).sum::<usize>() <= bytes.len());
                }
                let _ = ssh::host_key(bytes);
            },
        },
        ParserTarget {
            name: "probe-smb",
            seeds: vec![seed!("samba-4.17.12-negotiate.bin"), seed!("samba-4.17.12-smb1.bin")],
            run: smb::read_any,
        },
        ParserTarget {
            name: "probe-starttls",
            seeds: vec![
                b"\x0a8.0.36\0\x08\0\0\0abcdefgh\0\xff\xff\x08\x02\0\xff\xc7".to_vec(),
                vec![2, 1, 1, 0x78, 7, 10, 1, 0, 4, 0, 4, 0],
            ],
            run: starttls::read_any,
        },
        ParserTarget {
            name: "probe-http",
            seeds: vec![
                b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nStrict-Transport-Security: max-age=5\r\n\r\n\
                  Contact: mailto:a@example.org\nExpires: 2027-01-01T00:00:00Z\n"
                    .to_vec(),
            ],
            run: |bytes| {
                if let Ok(answer) = http::parse(bytes, 64) {
                    assert!(answer.body.len() <= 64);
                    let _ = http::SecurityTxt::read(&String::from_utf8_lossy(&answer.body));
                }
            },
        },
        ParserTarget {
            name: "probe-pins",
            seeds: vec![seed!("cert.pem"), seed!("cert.der"), seed!("request.pem")],
            run: |bytes| {
                for pinned in pins::of_file(bytes).unwrap_or_default() {
                    assert_eq!(pinned.pin.hex.len(), 64);
                }
            },
        },
    ]
}

/// Parses TLS records one after another, as they would arrive.
fn tls(bytes: &[u8]) {
    for until in [Until::Hello, Until::Done] {
        let mut assembler = Assembler::new(until);
        let mut rest = bytes;
        while let Some((head, more)) = rest.split_first_chunk::<5>() {
            let Ok((kind, length)) = header(*head) else {
                break;
            };
            let Some((body, more)) = more.split_at_checked(length) else {
                break;
            };
            rest = more;
            match assembler.record(kind, body) {
                Ok(None) => {}
                Ok(Some(TlsAnswer::Flight(flight))) => {
                    let held: usize = flight.chain.iter().map(Vec::len).sum();
                    assert!(held <= bytes.len());
                    break;
                }
                _ => break,
            }
        }
    }
}

//! Tests servers that try to delay the client, to fill its memory or to mislead it.
#![allow(clippy::disallowed_methods, reason = "a test drives real servers")]

mod common;

use assay_http::Expect;
use assay_model::web::FailureKind;
use common::{HELLO, expecting, for_ever, is_as_said, load, say, server};
use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// Writes byte by byte with pauses.
fn slowly(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    for byte in bytes {
        thread::sleep(Duration::from_millis(20));
        if stream.write_all(&[*byte]).is_err() {
            return false;
        }
    }
    true
}

fn reset(stream: &TcpStream) -> bool {
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
    false
}

type Server = fn(&mut TcpStream) -> bool;

/// Hostile servers, each with its behaviour and the permitted kinds of failure.
const HOSTILE: [(&str, Server, &[FailureKind]); 14] = {
    use FailureKind::{NotHttp, Reset, ShortBody, TimedOut, WrongBody, WrongStatus};
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    [
        (
            "endless body",
            |s| for_ever(s, b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
            &[TimedOut],
        ),
        (
            "endless length",
            |s| {
                for_ever(
                    s,
                    b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n",
                    b"x",
                )
            },
            &[TimedOut],
        ),
        (
            "endless chunks",
            |s| for_ever(s, CHUNKED, b"1\r\nx\r\n"),
            &[TimedOut],
        ),
        (
            "endless chunk size",
            |s| for_ever(s, CHUNKED, b"0"),
            &[NotHttp],
        ),
        (
            "endless chunk extension",
            |s| for_ever(s, CHUNKED, b"1;aaaaaaa"),
            &[NotHttp],
        ),
        (
            "endless trailer",
            |s| for_ever(s, CHUNKED, b"0\r\nA: b\r\n"),
            &[NotHttp],
        ),
        (
            "endless head",
            |s| for_ever(s, b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
            &[NotHttp],
        ),
        (
            "endless header",
            |s| for_ever(s, b"HTTP/1.1 200 OK\r\nA: ", b"b"),
            &[NotHttp],
        ),
        (
            "endless interim",
            |s| for_ever(s, b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
            &[NotHttp],
        ),
        ("slow", |s| slowly(s, HELLO), &[TimedOut]),
        ("garbage", |s| for_ever(s, b"", b"\xff\x00\x13"), &[NotHttp]),
        (
            "many answers",
            |s| for_ever(s, b"", HELLO),
            &[NotHttp, WrongBody],
        ),
        (
            "a reset in the middle",
            |s| {
                say(s, b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhell");
                reset(s)
            },
            &[ShortBody, Reset],
        ),
        (
            "it leads elsewhere",
            |s| {
                say(s, b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n")
            },
            &[WrongStatus],
        ),
    ]
};

#[test]
fn attack_by_answers_that_never_end_or_lie() {
    let expect = Expect {
        length: Some(5),
        ..Expect::default()
    };
    let (mut tried, mut held) = (0, 0);
    for round in 0..assay_testing::attack_factor().min(20) {
        for (name, answer, may) in HOSTILE {
            let url = server(move |_, stream| answer(stream));
            let mut load = expecting(load(&url, 3), expect);
            load.limit = Duration::from_millis(150);
            tried += 1;
            held += u64::from(is_as_said(name, load, round, Duration::from_secs(30), may));
        }
    }
    assay_testing::attacked("hostile HTTP answers", tried, held);
}

//! Tests servers that violate HTTP/2, or that try to delay the client, to fill its memory or to mislead it.
#![allow(clippy::disallowed_methods, reason = "a test drives real servers")]

mod common;

use assay_http::Expect;
use assay_model::web::FailureKind;
use common::{expecting, for_ever, http2, is_as_said, kinds, measure, serve};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END: u8 = 1;
const WHOLE: u8 = 4;
/// Encoded header `:status: 200`, as an HPACK index.
const OK: &[u8] = &[0x88];

fn settings() -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[])
}

/// Returns the frames of a complete answer with a body of five bytes.
fn hello(stream: u32) -> Vec<u8> {
    [
        frame(HEADERS, WHOLE, stream, OK),
        frame(DATA, END, stream, b"hello"),
    ]
    .concat()
}

/// Starts a server that sends its settings, and calls `answer` with the stream number of each request. The second part
/// of the answer is repeated until the client disconnects.
fn server(answer: impl Fn(u32) -> (Vec<u8>, Vec<u8>) + Send + Sync + 'static) -> String {
    let address = serve(move |tcp| {
        talk(tcp, &answer);
    });
    format!("http://{address}/")
}

fn talk(mut tcp: TcpStream, answer: &dyn Fn(u32) -> (Vec<u8>, Vec<u8>)) -> Option<()> {
    let _ = tcp.set_write_timeout(Some(Duration::from_secs(2)));
    let mut preface = [0; 24];
    tcp.read_exact(&mut preface).ok()?;
    tcp.write_all(&settings()).ok()?;
    loop {
        let mut head = [0; 9];
        tcp.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut payload = vec![0; length];
        tcp.read_exact(&mut payload).ok()?;
        if head[3] != HEADERS {
            continue;
        }
        let (once, again) = answer(stream);
        if !again.is_empty() && again != b"close" {
            for_ever(&mut tcp, &once, &again);
            return None;
        }
        tcp.write_all(&once).ok()?;
        if again == b"close" {
            return None;
        }
    }
}

fn five() -> Expect {
    Expect {
        length: Some(5),
        ..Expect::default()
    }
}

#[test]
fn a_server_of_our_own_answers() {
    let url = server(|stream| (hello(stream), Vec::new()));
    let measured = common::good(&expecting(http2(&url, 2, 5), five()));
    assert_eq!(measured.bytes, 5 * measured.answers);
    // Padding, priorities, interim heads, trailers, unknown frames, split heads, empty data.
    let url = server(|stream| {
        let odd = [
            frame(HEADERS, WHOLE, stream, &[0x08, 3, b'1', b'0', b'3']),
            frame(HEADERS, 0x28, stream, &[2, 0, 0, 0, 0, 9, 0x88, 0, 0]),
            frame(CONTINUATION, 0, stream, &[]),
            frame(CONTINUATION, WHOLE, stream, &[0x0f, 13, 1, b'5']),
            frame(0x77, 0xff, 99, b"whatever"),
            frame(PING, 0, 0, &[7; 8]),
            frame(DATA, 0, stream, &[]),
            frame(DATA, 8, stream, b"\x02hel--"),
            frame(DATA, 0, stream, b"lo"),
            frame(WINDOW_UPDATE, 0, stream, &[0, 0, 0, 1]),
            frame(HEADERS, WHOLE | END, stream, &[0, 1, b'a', 1, b'b']),
        ];
        (odd.concat(), Vec::new())
    });
    let measured = common::good(&expecting(http2(&url, 1, 3), five()));
    assert_eq!(measured.bytes, 5 * measured.answers);
}

type Answer = fn(u32) -> (Vec<u8>, Vec<u8>);

/// Broken servers, each with its behaviour and the kinds of failure that are counted.
const BROKEN: [(&str, Answer, &[FailureKind]); 25] = {
    use FailureKind::{
        EarlyClose, FlowControl, GoneAway, NotHttp, Reset, Settings, ShortBody, StreamReset,
        TimedOut, WrongStatus,
    };
    [
        (
            "endless CONTINUATION",
            |s| {
                let begin = frame(HEADERS, 0, s, OK);
                (begin, frame(CONTINUATION, 0, s, &[0, 1, b'a', 1, b'b']))
            },
            &[NotHttp],
        ),
        (
            "endless empty CONTINUATION",
            |s| (frame(HEADERS, 0, s, OK), frame(CONTINUATION, 0, s, &[])),
            &[NotHttp],
        ),
        (
            "a huge table",
            // 2^20 bytes.
            |s| {
                (
                    frame(HEADERS, WHOLE, s, &[0x3f, 0xe1, 0xff, 0x3f, 0x88]),
                    Vec::new(),
                )
            },
            &[NotHttp],
        ),
        (
            "an entry of the table that is named without end",
            |s| {
                let mut block = OK.to_vec();
                block.extend([0x40, 1, b'a', 0x7f, 0xa1, 0x1e]);
                block.extend([b'x'; 4000]);
                block.extend([0xbe; 8000]);
                (frame(HEADERS, WHOLE, s, &block), Vec::new())
            },
            &[NotHttp],
        ),
        (
            "an entry that is not there",
            |s| (frame(HEADERS, WHOLE, s, &[0xff, 0x7f]), Vec::new()),
            &[NotHttp],
        ),
        (
            "a push",
            |s| {
                (
                    frame(PUSH_PROMISE, WHOLE, s, &[0, 0, 0, 2, 0x82]),
                    Vec::new(),
                )
            },
            &[NotHttp],
        ),
        (
            "a stream that nobody opened",
            |_| (hello(0x7fff_fffd), Vec::new()),
            &[NotHttp],
        ),
        (
            "a stream of its own",
            |_| (hello(2), Vec::new()),
            &[NotHttp],
        ),
        (
            "a window opened by nothing",
            |_| (frame(WINDOW_UPDATE, 0, 0, &[0; 4]), Vec::new()),
            &[FlowControl],
        ),
        (
            "a window that grows without end",
            |s| {
                (
                    Vec::new(),
                    frame(WINDOW_UPDATE, 0, s, &[0x7f, 255, 255, 255]),
                )
            },
            // The server reads no further requests.
            &[FlowControl, TimedOut],
        ),
        (
            "a first window that is too large",
            |_| {
                (
                    frame(SETTINGS, 0, 0, &[0, 4, 255, 255, 255, 255]),
                    Vec::new(),
                )
            },
            &[Settings],
        ),
        (
            "settings that are cut",
            |_| (frame(SETTINGS, 0, 0, &[0, 4, 0]), Vec::new()),
            &[Settings],
        ),
        (
            "settings without end",
            |_| (Vec::new(), settings()),
            &[NotHttp, TimedOut],
        ),
        (
            "pings without end",
            |_| (Vec::new(), frame(PING, 0, 0, &[1; 8])),
            &[NotHttp, TimedOut],
        ),
        (
            "empty data without end",
            |s| (frame(HEADERS, WHOLE, s, OK), frame(DATA, 0, s, &[])),
            &[TimedOut],
        ),
        (
            "data without end",
            |s| {
                (
                    frame(HEADERS, WHOLE, s, OK),
                    frame(DATA, 0, s, &[b'x'; 16384]),
                )
            },
            // The server does not wait for windows.
            &[TimedOut, FlowControl],
        ),
        (
            "interim heads without end",
            |s| {
                (
                    Vec::new(),
                    frame(HEADERS, WHOLE, s, &[0x08, 3, b'1', b'0', b'3']),
                )
            },
            &[NotHttp, TimedOut],
        ),
        (
            "a frame of 16 MiB",
            |s| (frame(DATA, 0, s, &[0; 16385]), Vec::new()),
            &[NotHttp],
        ),
        (
            "a body before its head",
            |s| (frame(DATA, END, s, b"hello"), Vec::new()),
            &[NotHttp],
        ),
        (
            "less than it says",
            |s| {
                let head = frame(HEADERS, WHOLE, s, &[0x88, 0x0f, 13, 1, b'9']);
                ([head, frame(DATA, END, s, b"hello")].concat(), Vec::new())
            },
            &[ShortBody],
        ),
        (
            "more than it says",
            |s| {
                let head = frame(HEADERS, WHOLE, s, &[0x88, 0x0f, 13, 1, b'2']);
                ([head, frame(DATA, END, s, b"hello")].concat(), Vec::new())
            },
            &[NotHttp],
        ),
        (
            "a stream that is cut",
            |s| {
                let head = frame(HEADERS, WHOLE, s, OK);
                let cut = frame(RST_STREAM, 0, s, &[0, 0, 0, 2]);
                ([head, cut].concat(), Vec::new())
            },
            &[StreamReset],
        ),
        (
            "calm that is asked for",
            |_| {
                let why = [&[0, 0, 0, 0, 0, 0, 0, 11][..], b"too many"].concat();
                (frame(GOAWAY, 0, 0, &why), b"close".to_vec())
            },
            &[GoneAway, Reset],
        ),
        (
            "an end in order, each time",
            |_| (frame(GOAWAY, 0, 0, &[0; 8]), b"close".to_vec()),
            &[GoneAway, Reset],
        ),
        (
            "an end in the middle",
            |s| (frame(HEADERS, WHOLE, s, &[0x8d]), b"close".to_vec()),
            &[ShortBody, EarlyClose, Reset, WrongStatus],
        ),
    ]
};

#[test]
fn attack_by_servers_that_break_http2() {
    let (mut tried, mut held) = (0, 0);
    for round in 0..assay_testing::attack_factor().min(20) {
        for (name, answer, may) in BROKEN {
            let url = server(answer);
            let mut load = expecting(http2(&url, 2, 2), five());
            load.limit = Duration::from_millis(250);
            tried += 1;
            held += u64::from(is_as_said(name, load, round, Duration::from_secs(30), may));
        }
    }
    assay_testing::attacked("hostile HTTP/2 answers", tried, held);
}

#[test]
fn a_body_whose_window_stays_shut_is_told_apart() {
    let url = server(|_| (Vec::new(), Vec::new()));
    let mut load = http2(&url, 1, 1);
    let to = assay_http::Url::parse(&url).unwrap();
    let post = assay_http::Method::parse("POST").unwrap();
    let body = vec![b'x'; 100_000];
    load.requests = vec![assay_http::Request::http2(&post, &to, &[], &body).unwrap()];
    load.limit = Duration::from_millis(200);
    assert_eq!(kinds(&measure(&load)), [FailureKind::FlowControl]);
}

/// Requests that the server did not process before a normal end of the connection are sent again once. Their latency
/// includes the first attempt.
#[test]
fn what_was_left_out_is_asked_again() {
    let url = server(|stream| match stream {
        1 => {
            let last = [0, 0, 0, 1, 0, 0, 0, 0];
            let answer = [hello(1), frame(GOAWAY, 0, 0, &last)].concat();
            (answer, Vec::new())
        }
        _ => (Vec::new(), Vec::new()),
    });
    let mut load = expecting(http2(&url, 1, 2), five());
    load.limit = Duration::from_secs(20);
    let measured = measure(&load);
    assert!(measured.answers > 0 && measured.reopened > 0);
    let all_left_out_twice = measured
        .failures
        .iter()
        .all(|failures| failures.kind == FailureKind::GoneAway);
    assert!(all_left_out_twice, "{:?}", measured.failures);
}

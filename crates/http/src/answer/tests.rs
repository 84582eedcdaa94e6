//! Splits responses into pieces of every size, and compares the result with a parser that receives the whole text.

use super::*;
use proptest::prelude::*;

/// Parses the bytes in these pieces. The connection ends after the last piece.
fn read_with(
    pieces: &[&[u8]],
    head_only: bool,
    memory: &mut Memory,
) -> Result<HttpResponse, Wrong> {
    let mut reader = Reader::default();
    reader.restart(head_only, true);
    for (at, piece) in pieces.iter().enumerate() {
        if let Some(answer) = reader.feed(piece, memory)? {
            return match pieces[at + 1..].iter().all(|piece| piece.is_empty()) {
                true => Ok(answer),
                false => Err("more bytes".into()),
            };
        }
    }
    reader.end()
}

fn read(pieces: &[&[u8]]) -> Result<HttpResponse, Wrong> {
    read_with(pieces, false, &mut Memory::default())
}

/// Reference parser, which keeps everything in memory and uses httparse for heads and chunk sizes.
fn oracle(mut bytes: &[u8], head_only: bool) -> Option<(u16, Vec<u8>, bool)> {
    let mut interim = 0;
    loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = response.parse(bytes).ok()? else {
            return None;
        };
        let (status, rest) = (response.code?, &bytes[length..]);
        if status == 101 {
            return None;
        }
        if (100..200).contains(&status) {
            interim += 1;
            if interim > MOST_INTERIM {
                return None;
            }
            bytes = rest;
            continue;
        }
        let all = |name: &str| -> Vec<String> {
            let of = response
                .headers
                .iter()
                .filter(|h| h.name.eq_ignore_ascii_case(name));
            of.flat_map(|h| {
                let text = String::from_utf8_lossy(h.value).to_ascii_lowercase();
                text.split(',')
                    .map(|t| t.trim_matches([' ', '\t']).to_owned())
                    .collect::<Vec<_>>()
            })
            .collect()
        };
        let connection = all("connection");
        let has = |word: &str| connection.iter().any(|t| t == word);
        let keep = !has("close") && (response.version == Some(1) || has("keep-alive"));
        let mut lengths = Vec::new();
        for text in all("content-length") {
            if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            lengths.push(text.parse::<u64>().ok()?);
        }
        lengths.dedup();
        if lengths.len() > 1 {
            return None;
        }
        let codings = all("transfer-encoding");
        if head_only || status == 204 || status == 304 {
            return rest.is_empty().then(|| (status, Vec::new(), keep));
        }
        if codings.last().is_some_and(|last| last == "chunked") {
            return Some((status, unchunk(rest)?, keep));
        }
        return match (lengths.first(), codings.is_empty()) {
            (Some(&length), true) => {
                (rest.len() as u64 == length).then(|| (status, rest.to_vec(), keep))
            }
            _ => Some((status, rest.to_vec(), false)),
        };
    }
}

fn unchunk(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let Ok(httparse::Status::Complete((used, size))) = httparse::parse_chunk_size(bytes) else {
            return None;
        };
        bytes = &bytes[used..];
        if size == 0 {
            let mut headers = [httparse::EMPTY_HEADER; 16];
            return match httparse::parse_headers(bytes, &mut headers) {
                Ok(httparse::Status::Complete((used, _))) if used == bytes.len() => Some(body),
                _ => None,
            };
        }
        let size = usize::try_from(size).ok()?;
        body.extend_from_slice(bytes.get(..size)?);
        bytes = bytes.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nTransfer-Encoding: chunked\r\n\
    Connection: keep-alive\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nX: y\r\n\r\n";
const FIXED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
const OLD: &[u8] = b"HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\nnothing";
const INTERIM: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\
    Content-Length: 2\r\n\r\nok";
const NONE: &[u8] = b"HTTP/1.1 204 No Content\r\nDate: Sun, 22 Nov 2026 14:00:00 GMT\r\n\r\n";
const REAL: [&[u8]; 5] = [CHUNKED, FIXED, OLD, INTERIM, NONE];

#[test]
fn framings() {
    let of = |bytes: &[u8]| read(&[bytes]).map(|a| (a.status, a.body, a.reusable));
    assert_eq!(of(CHUNKED), Ok((200, 15, true)));
    assert_eq!(of(FIXED), Ok((200, 5, false)));
    assert_eq!(of(OLD), Ok((404, 7, false)));
    assert_eq!(of(INTERIM), Ok((200, 2, true)));
    assert_eq!(of(NONE), Ok((204, 0, true)));
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    let answer = read_with(&[head], true, &mut Memory::default()).unwrap();
    assert_eq!((answer.body, answer.reusable), (0, true));
    assert_eq!(
        read(&[FIXED]).unwrap().hash,
        Some(blake3::hash(b"hello").into())
    );
}

#[test]
fn what_is_wrong_is_told_apart() {
    let many = [&b"HTTP/1.1 100 Continue\r\n\r\n"[..]; 65].concat();
    let long = [&b"HTTP/1.1 200 OK\r\nX: "[..], &[b'x'; 70_000]].concat();
    let lines = [&b"HTTP/1.1 200 OK\r\n"[..], &b"X: y\r\n".repeat(300)].concat();
    for (bytes, short) in [
        (&b"HTTP/1.1 200 O"[..], true),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", true),
        (b"SSH-2.0-OpenSSH_9.2\r\n", false),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!", false),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", false),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", false),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            false,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            false,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
            false,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx",
            false,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
            false,
        ),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", false),
        (&many, false),
        (&long, false),
        (&lines, false),
    ] {
        let wrong = read(&[bytes]).unwrap_err();
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
        assert_eq!(wrong == Wrong::Short, short, "{shown}");
        assert_ne!(wrong, Wrong::Nothing);
        let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
        assert!(read(&bytewise).is_err(), "{shown}");
    }
    assert_eq!(read(&[]), Err(Wrong::Nothing));
}

#[test]
fn what_is_thrown_away_unseen_is_counted() {
    let (mut reader, mut memory) = (Reader::default(), Memory::default());
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc";
    assert_eq!(reader.uninteresting(), 0);
    assert_eq!(reader.feed(head, &mut memory), Ok(None));
    assert_eq!((reader.uninteresting(), reader.skip(900)), (997, None));
    assert_eq!(reader.skip(97).map(|answer| answer.body), Some(1000));
    reader.restart(false, false);
    let chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nx";
    assert_eq!(reader.feed(chunk, &mut memory), Ok(None));
    assert_eq!((reader.uninteresting(), reader.skip(254)), (254, None));
    let end = reader.feed(b"\r\n0\r\n\r\n", &mut memory).unwrap();
    assert_eq!(end.map(|answer| answer.body), Some(255));
}

/// Responses that servers may send, valid and damaged.
fn replies() -> impl Strategy<Value = Vec<u8>> {
    let header = prop_oneof![
        Just("Content-Length: 5".to_owned()),
        Just("content-length: 5, 5".to_owned()),
        Just("Content-Length:".to_owned()),
        Just("Transfer-Encoding: gzip, chunked".to_owned()),
        Just("Transfer-Encoding: gzip".to_owned()),
        Just("Connection: Close".to_owned()),
        Just("Connection: keep-alive, upgrade".to_owned()),
        Just("Date: Sun, 22 Nov 2026 14:00:00 GMT".to_owned()),
        "[A-Za-z-]{1,12}: ?[ -~]{0,20}",
    ];
    let status = prop_oneof![
        Just(200u16),
        Just(204),
        Just(304),
        Just(100),
        Just(404),
        100u16..600
    ];
    let body = prop_oneof![
        Just(&b""[..]),
        Just(&b"hello"[..]),
        Just(&b"5\r\nhello\r\n0\r\n\r\n"[..]),
        Just(&b"1;a=b\r\nx\r\n0\r\nA: b\r\n\r\n"[..]),
        Just(&b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"[..]),
    ];
    (
        0u8..2,
        status,
        prop::collection::vec(header, 0..6),
        body,
        any::<bool>(),
    )
        .prop_map(|(version, status, headers, body, bare)| {
            let end = if bare { "\n" } else { "\r\n" };
            let mut text = format!("HTTP/1.{version} {status} Fine{end}");
            for header in headers {
                text += &format!("{header}{end}");
            }
            text += end;
            [text.as_bytes(), body].concat()
        })
}

/// A response in which one byte is changed, removed or inserted.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let real = prop_oneof![
        replies(),
        prop::sample::select(REAL.to_vec()).prop_map(<[u8]>::to_vec),
    ];
    (real, any::<prop::sample::Index>(), any::<u8>(), 0u8..4).prop_map(
        |(mut bytes, at, byte, how)| {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                _ => {}
            }
            bytes
        },
    )
}

/// Compares both parsers. Each parser may be stricter about chunk sizes and trailers and refuse a response that the
/// other accepts. If both accept a response, the results must be equal.
fn agree(bytes: &[u8], head_only: bool, memory: &mut Memory) -> Result<(), TestCaseError> {
    let ours = read_with(&[bytes], head_only, memory);
    let theirs = oracle(bytes, head_only);
    let chunked = bytes
        .to_ascii_lowercase()
        .windows(7)
        .any(|w| w == b"chunked");
    match (&ours, &theirs) {
        (Ok(answer), Some((status, body, reusable))) => {
            prop_assert_eq!(
                (answer.status, answer.body, answer.reusable),
                (*status, body.len() as u64, *reusable)
            );
            prop_assert_eq!(answer.hash, Some(blake3::hash(body).into()));
        }
        (Err(_), None) => {}
        _ => prop_assert!(chunked, "{:?} {:?}", ours, theirs),
    }
    for cut in 0..=bytes.len() {
        let (a, b) = bytes.split_at(cut);
        let split = read_with(&[a, b], head_only, memory);
        prop_assert_eq!(split.ok(), ours.ok(), "cut at {}", cut);
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_reader_says_what_httparse_says_however_it_is_cut(
        bytes in damaged(),
        head_only in prop::bool::weighted(0.1),
    ) {
        // A remembered head of another response must not change the result.
        let mut memory = Memory::default();
        let _ = read_with(&[FIXED], head_only, &mut memory);
        agree(&bytes, head_only, &mut memory)?;
    }

    #[test]
    fn pieces_make_no_difference(
        which in 0usize..REAL.len(),
        cuts in prop::collection::vec(0usize..200, 0..12),
    ) {
        let bytes = REAL[which];
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        prop_assert_eq!(read(&pieces), read(&[bytes]));
    }
}

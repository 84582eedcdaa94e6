use super::hpack::{Decoder, write};
use super::{H2Session, StreamEvent};
use crate::request::{Method, Request};
use crate::url::Url;
use proptest::prelude::*;

type Headers = Vec<(Vec<u8>, Vec<u8>)>;

fn read(decoder: &mut Decoder, block: &[u8]) -> Result<Headers, &'static str> {
    let mut headers = Vec::new();
    let mut tell = |name: &[u8], value: &[u8]| headers.push((name.to_vec(), value.to_vec()));
    decoder.read(block, &mut tell)?;
    Ok(headers)
}

/// Examples from RFC 7541, appendix C.6: Huffman code, and a table of 256 bytes from which entries are evicted.
#[test]
fn the_examples_of_the_rfc() {
    let hex = |text: &str| -> Vec<u8> {
        let text: String = text.split_whitespace().collect();
        let at = (0..text.len()).step_by(2);
        at.map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
            .collect()
    };
    let mut decoder = Decoder::default();
    let mut first = vec![0x3f, 0xe1, 0x01];
    first.extend(hex(
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
                      2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
    ));
    let headers = read(&mut decoder, &first).unwrap();
    let text = |at: usize| String::from_utf8(headers[at].1.clone()).unwrap();
    assert_eq!(
        [text(0), text(1), text(2), text(3)],
        [
            "302",
            "private",
            "Mon, 21 Oct 2013 20:13:21 GMT",
            "https://www.example.com"
        ]
    );
    assert_eq!(decoder.size(), 222);
    let headers = read(&mut decoder, &hex("4883 640e ffc1 c0bf")).unwrap();
    assert_eq!((headers.len(), &headers[0].1[..]), (4, &b"307"[..]));
    assert_eq!(decoder.size(), 222);
    let third = hex(
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab \
                     77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f \
                     9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    );
    let headers = read(&mut decoder, &third).unwrap();
    assert_eq!(headers[4].1, b"gzip");
    assert_eq!(
        headers[5].1,
        b"foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
    );
    assert_eq!(decoder.size(), 215);
}

#[test]
fn padding_may_come_byte_by_byte() {
    let head = [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
    let data = [
        0, 0, 9, 0, 9, 0, 0, 0, 1, 5, b'h', b'e', b'y', 0, 0, 0, 0, 0,
    ];
    let bytes = [&head[..], &data[..]].concat();
    let (events, fault, _) = said(&mut bytes.chunks(1));
    assert_eq!(fault, None);
    let [StreamEvent::Answer { answer, .. }] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!((answer.status, answer.body), (200, 3));
}

/// A head with instructions for the HPACK table, some of which are invalid.
fn block() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::collection::vec(any::<u8>(), 0..40);
    let literal = (
        prop_oneof![Just(0x40_u8), Just(0), Just(0x10)],
        0_u8..70,
        text.clone(),
        text,
    )
        .prop_map(|(kind, index, name, value)| {
            let mut out = vec![];
            let (most, index) = if kind == 0x40 {
                (63, index)
            } else {
                (15, index % 15)
            };
            out.push(kind | index.min(most - 1));
            if index == 0 {
                out.push(name.len() as u8);
                out.extend(name);
            }
            out.push(value.len() as u8);
            out.extend(value);
            out
        });
    let indexed = (1_u8..80).prop_map(|index| vec![0x80 | index]);
    let piece = prop_oneof![4 => literal, 4 => indexed];
    (
        prop::option::of(0_u8..31),
        prop::collection::vec(piece, 0..12),
    )
        .prop_map(|(size, pieces)| {
            let mut out: Vec<u8> = size.map(|size| 0x20 | size).into_iter().collect();
            out.extend(pieces.concat());
            out
        })
}

proptest! {
    /// Compares the decoder with the decoder of another library. Both decode several heads in sequence with the same
    /// table.
    #[test]
    fn heads_are_read_as_another_decoder_reads_them(
        blocks in prop::collection::vec(block(), 1..6),
    ) {
        let mut ours = Decoder::default();
        let mut theirs = loona_hpack::Decoder::new();
        theirs.set_max_allowed_table_size(4096);
        for block in blocks {
            let version = ours.version();
            match (read(&mut ours, &block), theirs.decode(&block)) {
                (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
                // The other decoder refuses a head that only changes the table size.
                (Ok(ours), Err(_)) if ours.is_empty() => return Ok(()),
                (Err(_), Err(_)) => return Ok(()),
                (ours, theirs) => prop_assert!(false, "{ours:?} but {theirs:?}"),
            }
            // With an equal version, equal bytes have equal meanings.
            if ours.version() == version {
                let once = read(&mut ours, &block).unwrap();
                prop_assert_eq!(read(&mut ours, &block), Ok(once));
            }
            prop_assert!(ours.size() <= 4096);
        }
    }

    /// Tests that the Huffman decoder reads texts from another library's encoder.
    #[test]
    fn huffman_texts_are_read(value in prop::collection::vec(any::<u8>(), 0..200), damage: bool, at: usize) {
        let mut coded = huffman(&value);
        if damage && !coded.is_empty() {
            let at = at % coded.len();
            coded[at] ^= 0x10;
        }
        let mut ours = Vec::new();
        let said = super::huffman::decode(&coded, &mut ours);
        let theirs = loona_hpack::huffman::HuffmanDecoder::new().decode(&coded);
        prop_assert_eq!(said.ok().map(|()| ours), theirs.ok());
    }

    /// Tests that another library's decoder reads the encoded headers.
    #[test]
    fn what_is_written_is_read(headers in prop::collection::vec(("[:a-z-]{1,20}", "[ -~]{0,200}"), 0..10)) {
        let mut block = Vec::new();
        for (name, value) in &headers {
            write(&mut block, name, value);
        }
        let expected: Headers = headers
            .into_iter()
            .map(|(name, value)| (name.into_bytes(), value.into_bytes()))
            .collect();
        prop_assert_eq!(loona_hpack::Decoder::new().decode(&block).unwrap(), expected.clone());
        prop_assert_eq!(read(&mut Decoder::default(), &block).unwrap(), expected);
    }

    /// The result must not depend on how the bytes are split into pieces. The parser must not panic, and must use
    /// little memory.
    #[test]
    fn pieces_make_no_difference(
        frames in prop::collection::vec(frame(), 0..20),
        cuts in prop::collection::vec(1_usize..40, 1..10),
    ) {
        let bytes: Vec<u8> = frames.concat();
        let whole = said(&mut bytes.chunks(bytes.len().max(1)));
        let mut at = 0;
        let mut turns = cuts.iter().cycle();
        let mut pieces = std::iter::from_fn(|| {
            let end = (at + turns.next()?).min(bytes.len());
            let piece = &bytes[at..end];
            at = end;
            (!piece.is_empty()).then_some(piece)
        });
        prop_assert_eq!(said(&mut pieces), whole);
    }
}

fn huffman(text: &[u8]) -> Vec<u8> {
    // The other crate does not encode Huffman texts, so its code table is used.
    super::huffman::encode(text)
}

/// A frame, mostly a valid one.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        Just(vec![0x88]),
        Just(vec![0x88, 0x0f, 13, 1, b'5']),
        Just(vec![0, 0, 0, 1]),
        Just(vec![0; 8]),
        Just(b"hello".to_vec()),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    let stream = prop_oneof![
        Just(0_u32),
        Just(1),
        Just(3),
        Just(5),
        Just(2),
        any::<u32>()
    ];
    (
        0_u8..11,
        prop_oneof![Just(0_u8), Just(4), Just(5), Just(1), any::<u8>()],
        stream,
        payload,
    )
        .prop_map(|(kind, flags, stream, payload)| {
            let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
            out.extend([kind, flags]);
            out.extend(stream.to_be_bytes());
            out.extend(payload);
            out
        })
}

/// Passes these pieces to a session with three requests. Returns the events, the error of the connection, and the bytes
/// to send.
fn said(pieces: &mut dyn Iterator<Item = &[u8]>) -> (Vec<StreamEvent>, Option<String>, Vec<u8>) {
    let url = Url::parse("http://h/").unwrap();
    let mut session = H2Session::new(false);
    for place in 0..3 {
        session.ask(
            place,
            &Request::http2(&Method::Get, &url, &[], b"").unwrap(),
        );
    }
    let mut events = Vec::new();
    let mut fed = session.feed(&[0, 0, 0, 4, 0, 0, 0, 0, 0], &mut events);
    for piece in pieces {
        if fed.is_err() {
            break;
        }
        fed = session.feed(piece, &mut events);
        assert!(session.held() < 2 << 20);
    }
    let places: std::collections::BTreeSet<u32> = events
        .iter()
        .map(|event| match event {
            StreamEvent::Answer { place, .. }
            | StreamEvent::Failed { place, .. }
            | StreamEvent::Left { place } => *place,
        })
        .collect();
    assert_eq!(places.len(), events.len(), "a request ends once");
    (
        events,
        fed.err().map(|fault| fault.why),
        session.output().to_vec(),
    )
}

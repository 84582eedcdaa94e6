//! Tests that frames are recognised, whatever bytes are between them.

use assay_protocol::{AgentRequest, Frame, FrameDecoder, PathLook, Reply, Sync, crc32};
use proptest::collection::vec;
use proptest::prelude::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

fn requests() -> impl Strategy<Value = AgentRequest> {
    prop_oneof![
        Just(AgentRequest::Hello),
        Just(AgentRequest::Kill),
        Just(AgentRequest::Interrupt),
        Just(AgentRequest::Alive),
        bytes().prop_map(AgentRequest::Input),
        bytes().prop_map(AgentRequest::Data),
        (any::<u64>(), any::<bool>(), vec(bytes(), 0..5)).prop_map(|(timeout_ms, input, argv)| {
            AgentRequest::Run {
                timeout_ms,
                input,
                argv,
            }
        }),
        (any::<u32>(), bytes()).prop_map(|(mode, path)| AgentRequest::Put { mode, path }),
        bytes().prop_map(|path| AgentRequest::Look(PathLook::Which, path)),
        (any::<(u64, u64, u64)>(), bytes()).prop_map(|((first, records, seed), path)| {
            AgentRequest::Log {
                sync: Sync::Fsync,
                first,
                records,
                seed,
                path,
            }
        }),
    ]
}

fn replies() -> impl Strategy<Value = Reply> {
    prop_oneof![
        Just(Reply::Hello),
        Just(Reply::TimedOut),
        Just(Reply::NoCommand),
        Just(Reply::Ready),
        Just(Reply::Alive),
        bytes().prop_map(Reply::Out),
        bytes().prop_map(Reply::Err),
        bytes().prop_map(Reply::Piece),
        any::<i32>().prop_map(Reply::Exit),
        any::<u64>().prop_map(Reply::Logged),
        vec(any::<u64>(), 0..5).prop_map(Reply::Done),
        (any::<u32>(), bytes()).prop_map(|(errno, reason)| Reply::Failed { errno, reason }),
    ]
}

/// Generates random bytes, some of which look like the beginning of a frame.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        bytes(),
        bytes().prop_map(|payload| {
            let mut cut = Reply::Out(payload).frame(7).encode();
            cut[5] ^= 0x55;
            cut
        }),
        Just(vec![0xA5, 0x1A, 0xB0, 0x0D]),
        Just(vec![0xA5, 0xA5, 0x1A]),
    ]
}

fn decode(stream: &[u8], piece: usize) -> Vec<Frame> {
    let mut decoder = FrameDecoder::default();
    let mut found = Vec::new();
    for bytes in stream.chunks(piece) {
        decoder.push(bytes);
        for frame in decoder.by_ref() {
            found.push(frame);
        }
    }
    found
}

proptest! {
    #[test]
    fn messages_come_back_as_they_were(request in requests(), reply in replies(), id in any::<u64>()) {
        let frame = request.frame(id);
        prop_assert_eq!(AgentRequest::read(&frame), Some(request));
        prop_assert_eq!(Reply::read(&frame), None);
        let frame = reply.frame(id);
        prop_assert_eq!(Reply::read(&frame), Some(reply));
        prop_assert_eq!(AgentRequest::read(&frame), None);
    }

    #[test]
    fn frames_come_through_garbage_in_any_pieces(
        parts in vec((garbage(), replies()), 1..8),
        piece in 1usize..300,
    ) {
        let mut stream = Vec::new();
        for (index, (garbage, reply)) in parts.iter().enumerate() {
            stream.extend_from_slice(garbage);
            stream.extend_from_slice(&reply.frame(index as u64).encode());
        }
        let expected: Vec<_> = parts
            .iter()
            .enumerate()
            .map(|(index, (_, reply))| reply.frame(index as u64))
            .collect();
        prop_assert_eq!(decode(&stream, piece), expected);
    }

    #[test]
    fn a_damaged_frame_takes_no_other_with_it(
        replies in vec(replies(), 2..6),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        let frames: Vec<_> = replies.iter().map(|reply| reply.frame(1)).collect();
        let first = frames[0].encode();
        let mut stream = first.clone();
        stream[at.index(first.len())] ^= flip;
        for frame in &frames[1..] {
            stream.extend_from_slice(&frame.encode());
        }
        prop_assert_eq!(decode(&stream, 64), frames[1..].to_vec());
    }

    #[test]
    fn hostile_payloads_are_no_message_and_no_panic(kind in any::<u8>(), payload in bytes()) {
        let frame = Frame { request: 0, kind, payload };
        let _ = AgentRequest::read(&frame);
        let _ = Reply::read(&frame);
    }
}

/// Checks the CRC against the check value of CRC-32/ISO-HDLC in the catalogue of parametrised CRC algorithms.
#[test]
fn the_sum_is_the_usual_one() {
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
}

//! Measures an export of a small server of NFS 3 in the test itself.
#![allow(clippy::disallowed_methods, reason = "the test is a server")]

use assay_shares::{ShareError, ShareRequest, ShareUrl, measure_share};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Files of the export by name.
type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A server of mountd and NFS on one port.
struct Server {
    port: u16,
    files: Files,
    /// Procedures of NFS that were called.
    called: Arc<Mutex<Vec<u32>>>,
}

/// How the server behaves.
#[derive(Clone, Copy, Default)]
struct Behaviour {
    /// Status of a WRITE, 0 if it succeeds.
    write_status: u32,
    /// Most bytes that a READ or WRITE transfers; fewer than it offers.
    most: Option<usize>,
    /// Whether NFS 3 is unknown.
    only_nfs_4: bool,
}

impl Server {
    fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            files: Files::default(),
            called: Arc::default(),
        };
        let (files, called) = (Arc::clone(&server.files), Arc::clone(&server.called));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, called) = (Arc::clone(&files), Arc::clone(&called));
                std::thread::spawn(move || serve(stream, behaviour, &files, &called));
            }
        });
        server
    }

    fn url(&self) -> ShareUrl {
        let text = format!("nfs://127.0.0.1:{0}/srv?mountport={0}", self.port);
        ShareUrl::parse(&text).unwrap()
    }

    fn measure(&self) -> Result<assay_shares::ShareResult, ShareError> {
        let records = tempfile::tempdir().unwrap();
        let url = self.url();
        let request = ShareRequest {
            url: &url,
            auth_file: None,
            file_bytes: (3 << 20) + 17,
            rounds: 2,
            records: records.path(),
            file_name: "assay-share-0123456789abcdef",
            seed: 7,
        };
        measure_share(&request, &|| false, &mut |_, _| {})
    }
}

fn number(bytes: &mut &[u8]) -> u32 {
    let (first, rest) = bytes.split_first_chunk().unwrap();
    *bytes = rest;
    u32::from_be_bytes(*first)
}

fn opaque<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let length = number(bytes) as usize;
    let found = &bytes[..length];
    *bytes = &bytes[length.next_multiple_of(4)..];
    found
}

fn add_opaque(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend(bytes);
    out.resize(out.len().next_multiple_of(4), 0);
}

fn serve(mut stream: TcpStream, behaviour: Behaviour, files: &Files, called: &Mutex<Vec<u32>>) {
    let mut head = [0; 4];
    while stream.read_exact(&mut head).is_ok() {
        let mut call = vec![0; (u32::from_be_bytes(head) & 0x7fff_ffff) as usize];
        stream.read_exact(&mut call).unwrap();
        let mut call = &call[..];
        let id = number(&mut call);
        let words: Vec<u32> = (0..5).map(|_| number(&mut call)).collect();
        let (program, procedure) = (words[2], words[4]);
        for _ in 0..2 {
            number(&mut call);
            opaque(&mut call);
        }
        let mut reply: Vec<u8> = [id, 1, 0, 0, 0]
            .iter()
            .flat_map(|n| n.to_be_bytes())
            .collect();
        if behaviour.only_nfs_4 {
            reply.extend(2_u32.to_be_bytes());
        } else {
            reply.extend(0_u32.to_be_bytes());
            match program {
                100_005 => answer_mount(procedure, &mut reply),
                _ => {
                    called.lock().unwrap().push(procedure);
                    answer_nfs(procedure, call, behaviour, files, &mut reply);
                }
            }
        }
        // In two fragments.
        let half = reply.len() / 2;
        for (last, part) in [(0, &reply[..half]), (1_u32 << 31, &reply[half..])] {
            let length = u32::try_from(part.len()).unwrap() | last;
            stream.write_all(&length.to_be_bytes()).unwrap();
            stream.write_all(part).unwrap();
        }
    }
}

fn answer_mount(procedure: u32, reply: &mut Vec<u8>) {
    if procedure == 1 {
        reply.extend(0_u32.to_be_bytes());
        add_opaque(reply, b"root");
        reply.extend([0_u8, 0, 0, 1, 0, 0, 0, 1]);
    }
}

fn answer_nfs(
    procedure: u32,
    mut call: &[u8],
    behaviour: Behaviour,
    files: &Files,
    reply: &mut Vec<u8>,
) {
    let mut add = |numbers: &[u32]| reply.extend(numbers.iter().flat_map(|n| n.to_be_bytes()));
    let mut files = files.lock().unwrap();
    let handle = opaque(&mut call);
    let part = |wanted: usize| wanted.min(behaviour.most.unwrap_or(usize::MAX));
    match procedure {
        // FSINFO: reads and writes of 1 MiB and of 64 KiB.
        19 => add(&[
            0,
            0,
            1 << 20,
            1 << 20,
            4096,
            1 << 16,
            1 << 16,
            4096,
            4096,
            0,
            0,
            0,
            1,
            0,
        ]),
        8 => {
            let name = String::from_utf8(opaque(&mut call).to_vec()).unwrap();
            files.insert(name.clone(), Vec::new());
            add(&[0, 1]);
            add_opaque(reply, name.as_bytes());
            reply.extend([0_u8; 12]);
        }
        7 => {
            let offset =
                (u64::from(number(&mut call)) << 32 | u64::from(number(&mut call))) as usize;
            let (asked, _) = (number(&mut call) as usize, number(&mut call));
            assert!(asked <= 1 << 16, "more than the server offers");
            let data = &opaque(&mut call)[..part(asked)];
            let file = files.get_mut(std::str::from_utf8(handle).unwrap()).unwrap();
            let end = file.len().max(offset + data.len());
            file.resize(end, 0);
            file[offset..offset + data.len()].copy_from_slice(data);
            let count = u32::try_from(data.len()).unwrap();
            add(&[behaviour.write_status, 0, 0, count, 0, 0, 0]);
        }
        6 => {
            let offset =
                (u64::from(number(&mut call)) << 32 | u64::from(number(&mut call))) as usize;
            let asked = number(&mut call) as usize;
            let file = &files[std::str::from_utf8(handle).unwrap()];
            let end = file.len().min(offset + part(asked));
            let count = u32::try_from(end - offset).unwrap();
            add(&[0, 0, count, u32::from(end == file.len())]);
            add_opaque(reply, &file[offset..end]);
        }
        12 => {
            let name = String::from_utf8(opaque(&mut call).to_vec()).unwrap();
            let status = if files.remove(&name).is_some() { 0 } else { 2 };
            add(&[status, 0, 0]);
        }
        21 => add(&[0, 0, 0, 0, 0]),
        other => panic!("procedure {other}"),
    }
}

#[test]
fn an_export_is_written_read_and_left_as_it_was() {
    for most in [None, Some(10_000)] {
        let server = Server::start(Behaviour {
            most,
            ..Behaviour::default()
        });
        let result = server.measure().unwrap();
        assert_eq!(result.transfers.len(), 1);
        let one = &result.transfers[0];
        assert_eq!((one.writes.len(), one.reads.len()), (2, 2));
        assert!(one.writes.iter().chain(&one.reads).all(|rate| *rate > 0.0));
        assert_eq!(result.share, "nfs://127.0.0.1/srv");
        assert!(server.files.lock().unwrap().is_empty());
        let called = server.called.lock().unwrap();
        let count = |procedure| called.iter().filter(|one| **one == procedure).count();
        // A COMMIT for each write of the file.
        assert_eq!((count(8), count(21), count(12)), (2, 2, 2));
    }
}

#[test]
fn a_refusal_names_the_way_out_and_leaves_no_file() {
    let full = Server::start(Behaviour {
        write_status: 28,
        ..Behaviour::default()
    });
    let error = full.measure().unwrap_err().to_string();
    assert!(error.contains("--size"), "{error}");
    assert!(full.files.lock().unwrap().is_empty());
    let newer = Server::start(Behaviour {
        only_nfs_4: true,
        ..Behaviour::default()
    });
    let error = newer.measure().unwrap_err().to_string();
    assert!(error.contains("mount -t nfs 127.0.0.1:/srv"), "{error}");
}

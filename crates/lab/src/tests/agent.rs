//! Tests the agent of the guests by running the same binary on this machine over a socket.

use crate::record::{SIZE, record};
use assay_protocol::{AgentRequest, Frame, FrameDecoder, PathLook, Reply, Sync};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command};
use std::time::Duration;

struct Agent {
    child: Child,
    stream: UnixStream,
    decoder: FrameDecoder,
    request: u64,
    dir: tempfile::TempDir,
}

impl Agent {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("agent");
        std::fs::write(&program, crate::boot::AGENT).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let socket = dir.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let child = Command::new(&program).arg(&socket).spawn().unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Self {
            child,
            stream,
            decoder: FrameDecoder::default(),
            request: 0,
            dir,
        }
    }

    fn send(&mut self, request: &AgentRequest) {
        self.stream
            .write_all(&request.frame(self.request).encode())
            .unwrap();
    }

    fn begin(&mut self, request: &AgentRequest) {
        self.request += 1;
        self.send(request);
    }

    fn receive(&mut self) -> Reply {
        let mut buffer = [0; 4096];
        loop {
            for frame in self.decoder.by_ref() {
                let Frame { request, .. } = frame;
                if request == self.request {
                    return Reply::read(&frame).unwrap();
                }
            }
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the agent hung up");
            self.decoder.push(&buffer[..count]);
        }
    }

    fn run(&mut self, timeout_ms: u64, argv: &[&str]) -> (Vec<u8>, Vec<u8>, Reply) {
        let argv = argv.iter().map(|word| word.as_bytes().to_vec()).collect();
        self.begin(&AgentRequest::Run {
            timeout_ms,
            input: false,
            argv,
        });
        self.finish()
    }

    fn finish(&mut self) -> (Vec<u8>, Vec<u8>, Reply) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        loop {
            match self.receive() {
                Reply::Out(bytes) => out.extend(bytes),
                Reply::Err(bytes) => err.extend(bytes),
                Reply::Ready | Reply::Alive => {}
                other => return (out, err, other),
            }
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn output_and_status_are_kept_apart_even_with_garbage_on_the_line() {
    let mut agent = Agent::start();
    agent
        .stream
        .write_all(b"login: \xA5\x1A\xB0\x0D\xff\xff noise\n")
        .unwrap();
    let (out, err, ended) = agent.run(0, &["sh", "-c", "printf 'a\\0b'; echo no >&2; exit 3"]);
    assert_eq!(
        (out.as_slice(), err.as_slice()),
        (&b"a\0b"[..], &b"no\n"[..])
    );
    assert_eq!(ended, Reply::Exit(3));
    let (_, _, ended) = agent.run(0, &["assay-no-such-command"]);
    assert_eq!(ended, Reply::NoCommand);
    let (_, _, ended) = agent.run(0, &["sh", "-c", "kill -15 $$"]);
    assert_eq!(ended, Reply::Exit(128 + 15));
}

#[test]
fn a_command_that_hangs_is_killed_with_its_children() {
    let mut agent = Agent::start();
    // The inner sleep keeps the pipe open.
    let (_, _, ended) = agent.run(300, &["sh", "-c", "sleep 88.8 & sleep 88.8"]);
    assert_eq!(ended, Reply::TimedOut);
    let (out, _, ended) = agent.run(0, &["echo", "next"]);
    assert_eq!((out.as_slice(), ended), (&b"next\n"[..], Reply::Exit(0)));
}

#[test]
fn a_command_that_says_nothing_is_known_to_run_on() {
    let mut agent = Agent::start();
    agent.begin(&AgentRequest::Run {
        timeout_ms: 0,
        input: false,
        argv: ["sleep", "8"].map(|word| word.as_bytes().to_vec()).into(),
    });
    assert_eq!(agent.receive(), Reply::Alive);
    assert_eq!(agent.finish().2, Reply::Exit(0));
}

#[test]
fn a_greeting_ends_what_an_earlier_conversation_left() {
    let mut agent = Agent::start();
    let argv = ["sh", "-c", "while :; do echo old; done"];
    agent.begin(&AgentRequest::Run {
        timeout_ms: 0,
        input: false,
        argv: argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
    });
    assert!(matches!(agent.receive(), Reply::Out(_)));
    agent.begin(&AgentRequest::Hello);
    assert_eq!(agent.receive(), Reply::Hello);
    let (out, _, _) = agent.run(0, &["echo", "new"]);
    assert_eq!(out, b"new\n");
}

#[test]
fn standard_input_arrives_whole() {
    let mut agent = Agent::start();
    agent.begin(&AgentRequest::Run {
        timeout_ms: 0,
        input: true,
        argv: vec![b"cksum".to_vec()],
    });
    let piece = vec![7; 10_000];
    for _ in 0..20 {
        agent.send(&AgentRequest::Input(piece.clone()));
        assert_eq!(agent.receive(), Reply::Ready);
    }
    agent.send(&AgentRequest::Input(Vec::new()));
    let (out, _, ended) = agent.finish();
    assert_eq!(ended, Reply::Exit(0));
    assert!(
        String::from_utf8(out).unwrap().contains(" 200000"),
        "cksum counts bytes"
    );
}

#[test]
fn files_go_in_and_come_out_as_they_were() {
    let mut agent = Agent::start();
    let path = agent.dir.path().join("name \n with newline");
    let bytes = path.to_str().unwrap().as_bytes().to_vec();
    let content: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    agent.begin(&AgentRequest::Put {
        mode: 0o751,
        path: bytes.clone(),
    });
    for piece in content.chunks(30_000) {
        agent.send(&AgentRequest::Data(piece.to_vec()));
    }
    agent.send(&AgentRequest::Data(Vec::new()));
    assert_eq!(agent.receive(), Reply::Done(Vec::new()));
    agent.begin(&AgentRequest::Look(PathLook::Get, bytes));
    let mut back = Vec::new();
    let mode = loop {
        match agent.receive() {
            Reply::Piece(piece) => back.extend(piece),
            Reply::Done(numbers) => break numbers[0],
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((back == content, mode & 0o777), (true, 0o751));
    agent.begin(&AgentRequest::Look(
        PathLook::Read,
        b"/nonexistent/file".to_vec(),
    ));
    assert!(matches!(agent.receive(), Reply::Failed { errno: 2, .. }));
}

#[test]
fn a_log_holds_what_was_acknowledged() {
    let mut agent = Agent::start();
    let path = agent.dir.path().join("log");
    std::fs::write(&path, "").unwrap();
    agent.begin(&AgentRequest::Log {
        sync: Sync::Dsync,
        first: 0,
        records: 5,
        seed: 9,
        path: path.to_str().unwrap().as_bytes().to_vec(),
    });
    for count in 1..=5 {
        assert_eq!(agent.receive(), Reply::Logged(count));
    }
    assert_eq!(agent.receive(), Reply::Done(Vec::new()));
    let written = std::fs::read(&path).unwrap();
    for (number, found) in written.chunks(SIZE).enumerate() {
        assert_eq!(found, record(9, number as u64), "record {number}");
    }
    assert_eq!(written.len(), 5 * SIZE);
    assert_ne!(record(9, 0), record(10, 0));
}

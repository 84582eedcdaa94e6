//! Starts real and scripted servers on the loopback interface.
#![allow(
    dead_code,
    clippy::disallowed_methods,
    reason = "tests start servers and own their files; each uses a part of this"
)]

pub mod authority;

use assay_host::process::{Dies, Running};
use assay_probe::tls::{Question, Roots};
use assay_probe::{Patience, Starttls, Target, Visit};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limits that are long enough for a busy machine, and short enough for tests that wait for their end.
pub const SHORT_WAITS: Patience = Patience {
    answer: Duration::from_secs(10),
    total: Duration::from_secs(120),
};

pub fn lacks(programs: &[&str]) -> bool {
    assay_testing::servers::skip(programs, false)
}

/// A directory with a key and a certificate for localhost, 127.0.0.1 and ::1.
pub struct Keys {
    pub dir: tempfile::TempDir,
}

impl Keys {
    /// Creates a key; `kind` are the arguments of `openssl req -newkey`.
    pub fn new(kind: &[&str]) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("assay-probe-")
            .tempdir()
            .unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let keys = Self { dir };
        let mut words = vec![
            "req",
            "-x509",
            "-nodes",
            "-days",
            "365",
            "-subj",
            "/CN=localhost",
        ];
        words.extend([
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1",
        ]);
        words.extend(["-addext", "basicConstraints=critical,CA:FALSE"]);
        words.extend(kind);
        let (key, cert) = (keys.key(), keys.cert());
        words.extend([
            "-keyout",
            key.to_str().unwrap(),
            "-out",
            cert.to_str().unwrap(),
        ]);
        openssl(&words);
        keys
    }

    pub fn rsa() -> Self {
        Self::new(&["-newkey", "rsa:2048"])
    }

    pub fn key(&self) -> PathBuf {
        self.dir.path().join("key.pem")
    }

    pub fn cert(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// Runs openssl without the distribution's configuration, which forbids the tested faults.
pub fn openssl(words: &[&str]) -> Vec<u8> {
    let output = Command::new("openssl")
        .args(words)
        .env("OPENSSL_CONF", "/dev/null")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "openssl {words:?}: {said}");
    output.stdout
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

pub fn free_udp_port() -> u16 {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.local_addr().unwrap().port()
}

/// A server process that ends when the test drops it.
pub struct Server {
    pub running: Running,
    pub port: u16,
}

impl Server {
    pub fn start(mut command: Command, log: &Path) -> Running {
        let log = std::fs::File::create(log).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        command.stdin(Stdio::null());
        Running::start(command, Dies::WithAssay).unwrap()
    }

    /// Starts the server and waits until it accepts connections.
    pub fn listening(command: Command, log: &Path, port: u16) -> Self {
        let running = Self::start(command, log);
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "no server: {said}"
            );
            assert!(!running.wait(Duration::ZERO).unwrap(), "it ended: {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { running, port }
    }
}

/// Runs `openssl s_server` with these options.
pub fn s_server(keys: &Keys, options: &[&str]) -> Server {
    let port = free_port();
    let mut command = Command::new("openssl");
    command.args(["s_server", "-quiet", "-accept", &port.to_string()]);
    command
        .arg("-cert")
        .arg(keys.cert())
        .arg("-key")
        .arg(keys.key());
    command.args(options).env("OPENSSL_CONF", "/dev/null");
    Server::listening(command, &keys.path("s_server.log"), port)
}

pub fn target(port: u16) -> Target {
    Target::parse("127.0.0.1", port).unwrap()
}

pub fn visit(port: u16) -> Visit {
    Visit::begin(&target(port), SHORT_WAITS, [1; 32]).unwrap()
}

pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Scans a port on this machine while trusting the certificates in these files.
pub fn scan(
    port: u16,
    starttls: Option<Starttls>,
    trusted: &[PathBuf],
) -> assay_probe::tls::Report {
    scan_patiently(port, starttls, trusted, SHORT_WAITS)
}

pub fn scan_patiently(
    port: u16,
    starttls: Option<Starttls>,
    trusted: &[PathBuf],
    patience: Patience,
) -> assay_probe::tls::Report {
    let visit = Visit::begin(&target(port), patience, [1; 32]).unwrap();
    let roots: Vec<Vec<u8>> = trusted.iter().map(|path| der(path)).collect();
    let question = Question {
        starttls,
        name: Some("localhost"),
        roots: &Roots::these(&roots),
        now: now(),
    };
    assay_probe::tls::scan(&visit, &question)
}

pub fn der(pem: &Path) -> Vec<u8> {
    openssl(&["x509", "-in", pem.to_str().unwrap(), "-outform", "DER"])
}

/// Starts a scripted server that calls `serve` for each connection.
pub fn scripted(serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Reads a TLS record, and returns its kind and body.
pub fn read_record(stream: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let mut body = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
    stream.read_exact(&mut body)?;
    Ok((head[0], body))
}

pub fn write_record(stream: &mut TcpStream, kind: u8, body: &[u8]) -> std::io::Result<()> {
    stream.write_all(&assay_probe::tls::record_of(kind, 0x0303, body))
}

//! The server. It uses one port for TCP with TLS and for UDP, and a second port for TCP, because browsers open only six
//! connections per port. Clients download from the server, upload to it and poll it for orders. The server counts
//! received bytes.
//!
//! Each connection has its own thread; the number of connections is limited (see [`gate`]).

pub mod budget;
mod connection;
mod echo;
pub mod gate;
pub mod head;
pub mod hub;

use crate::congestion;
use crate::invite::{Invitation, TOKEN, Token};
use assay_http::Url;
use budget::Budget;
use gate::Gate;
use hub::{Hub, VerdictWriter};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use sha2::{Digest as _, Sha256};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes per write: four TLS records.
const AT_ONCE: usize = 64 << 10;
/// Size in bytes of the pool of random bytes. Bodies consist of bytes from this pool.
const POOL: usize = 4 << 20;
/// Stack size of a connection's thread, in bytes.
const STACK: usize = 1 << 20;
/// Web page that runs the client in a browser, for phones.
const PAGE: &str = include_str!("page.html");

/// Reasons why the server cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The server cannot listen on the address.
    #[error("cannot listen on {address}: {source}; name another address or port with --listen")]
    Listen {
        /// Address from the user.
        address: SocketAddr,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The certificate cannot be created.
    #[error("no certificate could be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// TLS cannot be configured.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// An operating system call failed.
    #[error("{what}: {source}")]
    Io {
        /// Description of the operation that failed.
        what: &'static str,
        /// Error of the kernel.
        source: io::Error,
    },
}

/// State that all connections share.
pub struct Shared {
    hub: Mutex<Hub>,
    began: Instant,
    token: Token,
    control: Token,
    tls: Arc<ServerConfig>,
    pool: Vec<u8>,
    at: AtomicUsize,
    stop: AtomicBool,
    budget: Budget,
    /// Lock that lets only one large body be parsed at a time. Parsing needs several times the size of the body in
    /// memory.
    large: Mutex<()>,
    /// All ports except the first.
    ports: Vec<u16>,
    /// Congestion control algorithms that this process may use.
    congestion: Vec<String>,
}

impl Shared {
    fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the microseconds since the server started.
    fn now_us(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns an offset into the pool of random bytes, a different one for each body.
    fn anywhere(&self) -> usize {
        self.at.fetch_add(1_048_573, Ordering::Relaxed)
    }
}

/// A server that listens for clients and controllers.
pub struct NetServer {
    shared: Arc<Shared>,
    /// Listening sockets. Invitations contain the port of the first; the others are for web pages.
    listeners: Vec<TcpListener>,
    udp: UdpSocket,
    address: SocketAddr,
    fingerprint: [u8; 32],
    gate: Gate,
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

impl NetServer {
    /// Listens on an address for TCP and UDP; port 0 selects a free port. The certificate contains `names`.
    /// The second port is the next port, or any free port.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn bind(address: SocketAddr, names: &[String]) -> Result<Self, ServerError> {
        let listen = |source| ServerError::Listen { address, source };
        let io = |what| move |source| ServerError::Io { what, source };
        let (listener, udp) = bind(address).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let beside = |port| TcpListener::bind(SocketAddr::new(address.ip(), port));
        let second = beside(address.port().wrapping_add(1)).or_else(|_| beside(0));
        let listeners = vec![listener, second.map_err(listen)?];
        let mut ports = Vec::new();
        for listener in &listeners {
            listener.set_nonblocking(true).map_err(listen)?;
            ports.push(listener.local_addr().map_err(listen)?.port());
        }
        ports.remove(0);
        let mut names = names.to_vec();
        names.push(address.ip().to_string());
        let made = rcgen::generate_simple_self_signed(names)?;
        let certificate = made.cert.der().clone();
        let fingerprint = Sha256::digest(&certificate).into();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())
            .map_err(|why| rustls::Error::General(why.to_owned()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let seed = random().map_err(io("no random numbers"))?;
        let mut pool = vec![0; POOL];
        ChaCha8Rng::from_seed(seed).fill_bytes(&mut pool);
        let token = || {
            random::<TOKEN>()
                .map(Token)
                .map_err(io("no random numbers"))
        };
        raise_descriptors();
        Ok(Self {
            shared: Arc::new(Shared {
                hub: Mutex::default(),
                began: Instant::now(),
                token: token()?,
                control: token()?,
                tls: Arc::new(tls),
                pool,
                at: AtomicUsize::new(0),
                stop: AtomicBool::new(false),
                budget: Budget::default(),
                large: Mutex::default(),
                ports,
                congestion: congestion::usable(),
            }),
            listeners,
            udp,
            address,
            fingerprint,
            gate: Gate::default(),
        })
    }

    /// Sets the function that formats the verdicts for the devices.
    pub fn write_verdicts_with(&self, writer: VerdictWriter) {
        self.shared.hub().write_with(writer);
    }

    /// Returns the address of the first port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns all ports except the first; they are for web pages.
    #[must_use]
    pub fn other_ports(&self) -> &[u16] {
        &self.shared.ports
    }

    /// Returns the invitation for a client. `host` is the address by which the client reaches the server.
    #[must_use]
    pub fn for_clients(&self, host: IpAddr) -> Option<Invitation> {
        self.invite(host, &self.shared.token)
    }

    /// Returns the invitation for a controller. `host` is the address by which the controller reaches the server.
    #[must_use]
    pub fn for_controllers(&self, host: IpAddr) -> Option<Invitation> {
        self.invite(host, &self.shared.control)
    }

    fn invite(&self, host: IpAddr, token: &Token) -> Option<Invitation> {
        let url = format!("https://{}/", SocketAddr::new(host, self.address.port()));
        Some(Invitation {
            url: Url::parse(&url).ok()?,
            token: token.clone(),
            fingerprint: self.fingerprint,
        })
    }

    /// Returns how many bytes of request bodies are in memory.
    #[must_use]
    pub fn bytes_of_bodies(&self) -> u64 {
        self.shared.budget.used()
    }

    /// Returns the number of connections, and how many of them have not authenticated.
    #[must_use]
    pub fn connections(&self) -> (usize, usize) {
        self.gate.count()
    }

    /// Serves until `stop` returns true.
    ///
    /// # Errors
    /// A thread cannot be created, or the socket fails permanently.
    pub fn serve(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), ServerError> {
        let io = |what| move |source| ServerError::Io { what, source };
        let shared = self.shared.clone();
        let udp = self.udp.try_clone().map_err(io("UDP"))?;
        let echo = thread::Builder::new()
            .name("echo".to_owned())
            .spawn(move || echo::echo(&shared, &udp))
            .map_err(io("a thread cannot be started"))?;
        while !stop() {
            let mut none = true;
            for listener in &self.listeners {
                match listener.accept() {
                    Ok((tcp, from)) => {
                        none = false;
                        self.welcome(tcp, from);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // File descriptors are exhausted, or the client has already gone; continue with others.
                    Err(_) => thread::sleep(Duration::from_millis(10)),
                }
            }
            if none {
                self.wait();
            }
        }
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = echo.join();
        Ok(())
    }

    fn wait(&self) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        let waiting = self.listeners.iter();
        let mut waiting: Vec<PollFd<'_>> = waiting
            .map(|listener| PollFd::new(listener, PollFlags::IN))
            .collect();
        let _ = poll(&mut waiting, Some(&time));
    }

    fn welcome(&self, tcp: std::net::TcpStream, from: SocketAddr) {
        let from = from.ip().to_canonical();
        if tcp.set_nonblocking(false).is_err() {
            return;
        }
        let Some(pass) = self.gate.enter(from, tcp.try_clone().ok()) else {
            return;
        };
        let shared = self.shared.clone();
        // If no thread can be created, the connection is closed and the client notices.
        let _ = thread::Builder::new()
            .name("client".to_owned())
            .stack_size(STACK)
            .spawn(move || connection::serve(&shared, tcp, from, &pass));
    }
}

/// Binds TCP and UDP to the same port.
fn bind(address: SocketAddr) -> io::Result<(TcpListener, UdpSocket)> {
    let mut tries = 0;
    loop {
        let listener = TcpListener::bind(address)?;
        match UdpSocket::bind(listener.local_addr()?) {
            Ok(udp) => return Ok((listener, udp)),
            // With port 0, the chosen port may be free only for TCP.
            Err(_) if address.port() == 0 && tries < 20 => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Raises the soft limit of file descriptors to the hard limit.
fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

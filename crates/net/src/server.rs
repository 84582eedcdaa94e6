//! The server: one port for TCP with TLS and for UDP, and a second one for TCP: browsers make six connections to a
//! port and no more. Clients fetch from it, send to it and are told by it what
//! to do; it counts what arrives.
//!
//! One thread for a connection: there are as many as people have, some thousand at most (see [`gate`]).

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

/// Bytes written at once: four records of TLS.
const AT_ONCE: usize = 64 << 10;
/// Random bytes that bodies are cut from.
const POOL: usize = 4 << 20;
/// Stack of a thread for a connection.
const STACK: usize = 256 << 10;
/// The page for phones.
const PAGE: &str = include_str!("page.html");

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It cannot listen there.
    #[error("cannot listen on {address}: {source}; name another address or port with --listen")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// No certificate.
    #[error("no certificate could be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// TLS refuses it.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// This machine refuses something.
    #[error("{what}: {source}")]
    Io {
        /// What.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// What all connections share.
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
    /// One large body is understood at a time: that takes several times its bytes.
    large: Mutex<()>,
    /// Other ports than the first.
    ports: Vec<u16>,
    /// Algorithms of congestion control that this process may send with.
    congestion: Vec<String>,
}

impl Shared {
    fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the server began.
    fn now_us(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Another place in the pool for every body.
    fn anywhere(&self) -> usize {
        self.at.fetch_add(1_048_573, Ordering::Relaxed)
    }
}

/// A server that listens.
pub struct NetServer {
    shared: Arc<Shared>,
    /// The first one is what everybody is told; the others are for pages.
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
    /// Listens at an address, TCP and UDP; port 0 is any. `names` go into the certificate. The second port is the
    /// next one, or any when that is taken.
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

    /// Writes the verdicts that devices show in these sentences.
    pub fn write_verdicts_with(&self, writer: VerdictWriter) {
        self.shared.hub().write_with(writer);
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Other ports than the first, for pages in browsers.
    #[must_use]
    pub fn other_ports(&self) -> &[u16] {
        &self.shared.ports
    }

    /// What a client at this host needs: the address by which it reaches the server.
    #[must_use]
    pub fn for_clients(&self, host: IpAddr) -> Option<Invitation> {
        self.invite(host, &self.shared.token)
    }

    /// What a controller needs.
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

    /// Bytes of bodies that are being read.
    #[must_use]
    pub fn bytes_of_bodies(&self) -> u64 {
        self.shared.budget.used()
    }

    /// Connections, and those of strangers among them.
    #[must_use]
    pub fn connections(&self) -> (usize, usize) {
        self.gate.count()
    }

    /// Serves until `stop` says so.
    ///
    /// # Errors
    /// The machine refuses a thread, or the socket fails for good.
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
                    // Descriptors have run out, or the client is gone already: others go on.
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
        // Without a thread the connection is closed, and the client sees it.
        let _ = thread::Builder::new()
            .name("client".to_owned())
            .stack_size(STACK)
            .spawn(move || connection::serve(&shared, tcp, from, &pass));
    }
}

/// TCP and UDP on one port.
fn bind(address: SocketAddr) -> io::Result<(TcpListener, UdpSocket)> {
    let mut tries = 0;
    loop {
        let listener = TcpListener::bind(address)?;
        match UdpSocket::bind(listener.local_addr()?) {
            Ok(udp) => return Ok((listener, udp)),
            // Any port was asked for, and this one is free for TCP alone.
            Err(_) if address.port() == 0 && tries < 20 => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// As many descriptors as this process may have.
fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

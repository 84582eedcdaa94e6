//! The listening socket. It accepts connections within limits, and passes them to the router.

use crate::connection::LimitedStream;
use crate::routes;
use crate::site::{Site, SiteOptions};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of simultaneous connections.
const MOST_CONNECTIONS: usize = 1_500;
/// Number of threads that read the store and render pages.
const PAGE_THREADS: usize = 4;
/// Time limit for receiving the head of a request, after which the connection is closed.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a request's head in bytes.
const MOST_HEAD_BYTES: usize = 32 << 10;
/// Interval at which the server checks whether to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(250);
/// Answer that is sent if there are too many connections.
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 44\r\n\
    Retry-After: 5\r\nConnection: close\r\n\r\ntoo many connections; try again in a moment\n";

/// Reason why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is in use or does not belong to this machine.
    #[error("cannot listen on {address}: {source}. {way_out}")]
    Listen {
        /// Address from the options.
        address: SocketAddr,
        /// Error of the kernel.
        source: io::Error,
        /// What the user can do.
        way_out: &'static str,
    },
    /// No token is set, although other machines could reach the server.
    #[error(
        "cannot listen on {address}: other machines could read the store. Give --token-file FILE, or listen on \
         127.0.0.1 and use `ssh -L`."
    )]
    NoToken {
        /// Address from the options.
        address: SocketAddr,
    },
    /// No token is set, although other users of this machine could start measurements.
    #[error(
        "cannot allow actions without a token: every user of this machine could start commands as you. Give \
         --token-file FILE"
    )]
    ActionsNeedToken,
    /// The log of started commands cannot be written.
    #[error(
        "cannot write the log of actions: {0}. Set ASSAY_STATE to a directory that you can write to"
    )]
    Log(#[source] io::Error),
    /// The token is too short and could be guessed.
    #[error(
        "the token has {length} characters: use at least {least}, such as those of `openssl rand -hex 16`"
    )]
    ShortToken {
        /// Length of the token in characters.
        length: usize,
        /// Minimum length in characters.
        least: usize,
    },
    /// The event loop could not be created.
    #[error("cannot start the server: {0}")]
    Runtime(#[source] io::Error),
}

/// Minimum length of a token in characters.
const LEAST_TOKEN: usize = 16;

/// A server that listens, but does not serve yet.
pub struct Server {
    listener: TcpListener,
    site: Arc<Site>,
}

impl Server {
    /// Opens the listening socket.
    ///
    /// # Errors
    /// The port is in use or not permitted, or other machines can reach the address and no token is set.
    pub fn bind(address: SocketAddr, options: SiteOptions) -> Result<Self, ServeError> {
        Self::check(address, &options)?;
        let fail = |source: io::Error| ServeError::Listen {
            address,
            way_out: match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "Another program has this port: choose one with --listen, such as 127.0.0.1:7879."
                }
                io::ErrorKind::PermissionDenied => "Choose a port above 1023 with --listen.",
                _ => "Choose an address of this machine with --listen.",
            },
            source,
        };
        Self::on(TcpListener::bind(address).map_err(fail)?, options)
    }

    /// Uses a socket that already listens, such as a socket from systemd.
    ///
    /// # Errors
    /// See [`Server::bind`].
    pub fn on(listener: TcpListener, options: SiteOptions) -> Result<Self, ServeError> {
        let address = listener.local_addr().map_err(ServeError::Runtime)?;
        Self::check(address, &options)?;
        listener
            .set_nonblocking(true)
            .map_err(ServeError::Runtime)?;
        Ok(Self {
            listener,
            site: Arc::new(Site::new(options).map_err(ServeError::Log)?),
        })
    }

    /// Refuses options that would give other users or machines access without a token.
    fn check(address: SocketAddr, options: &SiteOptions) -> Result<(), ServeError> {
        match &options.token {
            None if !address.ip().is_loopback() => return Err(ServeError::NoToken { address }),
            Some(token) if token.len() < LEAST_TOKEN => {
                return Err(ServeError::ShortToken {
                    length: token.len(),
                    least: LEAST_TOKEN,
                });
            }
            None if options.actions.is_some() => return Err(ServeError::ActionsNeedToken),
            _ => {}
        }
        Ok(())
    }

    /// Returns the address on which the server listens.
    ///
    /// # Errors
    /// The kernel cannot return the address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` returns true.
    ///
    /// # Errors
    /// The event loop cannot be started.
    pub fn run(self, stop: impl Fn() -> bool) -> Result<(), ServeError> {
        raise_open_files();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(PAGE_THREADS)
            .build()
            .map_err(ServeError::Runtime)?;
        let (site, ended) = (self.site.clone(), self.site.clone());
        // The first visitor finds the figures judged.
        runtime.spawn_blocking(move || site.read_ahead());
        let served = runtime.block_on(self.accept_until(stop));
        if let Some(jobs) = &ended.jobs {
            jobs.end_all();
        }
        // A page that is still drawn is not waited for.
        runtime.shutdown_background();
        served
    }

    async fn accept_until(self, stop: impl Fn() -> bool) -> Result<(), ServeError> {
        let listener =
            tokio::net::TcpListener::from_std(self.listener).map_err(ServeError::Runtime)?;
        let router = routes::build_router(self.site);
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        while !stop() {
            let Ok(accepted) = tokio::time::timeout(STOP_INTERVAL, listener.accept()).await else {
                continue;
            };
            let Ok((stream, peer)) = accepted else {
                // Out of descriptors or memory: connections that end make room.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            match room.clone().try_acquire_owned() {
                Ok(permit) => {
                    let router = router.clone().layer(axum::Extension(peer));
                    tokio::spawn(serve_connection(stream, router, permit));
                }
                Err(_) => {
                    tokio::spawn(refuse(stream));
                }
            }
        }
        Ok(())
    }
}

async fn serve_connection(stream: TcpStream, router: axum::Router, permit: OwnedSemaphorePermit) {
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(LimitedStream::new(stream));
    // An error is a client that went away, was too slow, or did not speak HTTP: it got its answer.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MOST_HEAD_BYTES)
        .serve_connection(io, TowerToHyperService::new(router))
        .await;
    drop(permit);
}

async fn refuse(mut stream: TcpStream) {
    let written = tokio::time::timeout(Duration::from_secs(1), stream.write_all(BUSY));
    let _ = written.await;
}

/// Raises the limit of open files to its maximum for this user, because every connection needs a file descriptor.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = (MOST_CONNECTIONS + 100) as u64;
    let enough = limit.current.is_none_or(|current| current >= wanted);
    if !enough {
        let current = limit.maximum.map_or(wanted, |most| most.min(wanted));
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(current),
                ..limit
            },
        );
    }
}

//! Creates the test network with `ip`: namespaces, addresses and routes.

use crate::network_bed::shaper::{LinkCounters, LinkShape, shape};
use assay_host::netns::{Netns, create_tun};
use assay_host::{CommandFailure, Limits, LiveHost, run_successfully};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// IPv4 address of the server.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Maximum number of clients ("people") in the test network.
pub const PEOPLE: usize = 500;

const LIMITS: Limits = Limits {
    timeout: Duration::from_secs(30),
};

/// Why the test network cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum BedError {
    /// Network namespaces cannot be created without more privileges.
    #[error(
        "no network namespace can be made: {0}; this needs root, or `unshare --user --map-root-user --net` around it"
    )]
    Namespace(#[source] io::Error),
    /// A TUN device cannot be created.
    #[error("no TUN device can be made: {0}; this needs /dev/net/tun (`modprobe tun`)")]
    Tun(#[source] io::Error),
    /// A command for creating the network failed.
    #[error("`{command}`: {complaint}")]
    Command {
        /// The command line that failed.
        command: String,
        /// Error message of the command.
        complaint: String,
    },
    /// The parameters of the network are invalid.
    #[error("{0}")]
    Meaning(&'static str),
    /// Another operation failed.
    #[error("{what}: {source}")]
    Io {
        /// Operation that failed.
        what: &'static str,
        /// Error that the kernel returned.
        source: io::Error,
    },
}

/// A test network: a server, clients ("people"), and one bottleneck between them. Dropping it removes all namespaces
/// and devices.
pub struct Bed {
    server: Netns,
    router: Netns,
    people: Vec<Netns>,
    stop: Arc<AtomicBool>,
    shapers: Vec<JoinHandle<()>>,
    down: Arc<LinkCounters>,
    up: Arc<LinkCounters>,
}

impl Bed {
    /// Creates the network for `people` clients. `down` describes the bottleneck from the server to the clients, `up`
    /// the opposite direction.
    ///
    /// # Errors
    /// See [`BedError`].
    pub fn new(people: usize, down: LinkShape, up: LinkShape, seed: u64) -> Result<Self, BedError> {
        if !(1..=PEOPLE).contains(&people) {
            return Err(BedError::Meaning("a bed has 1 to 500 people"));
        }
        for shape in [&down, &up] {
            let good =
                (1e4..=1e11).contains(&shape.rate.bit_per_s()) && (0.0..1.0).contains(&shape.loss);
            if !good
                || shape.buffer > Duration::from_secs(60)
                || shape.delay > Duration::from_secs(60)
            {
                return Err(BedError::Meaning(
                    "a bottleneck has 10 kbit/s to 100 Gbit/s, loses less than all, and holds packets for a minute at most",
                ));
            }
        }
        let namespace = || Netns::new().map_err(BedError::Namespace);
        let bed = Self {
            server: namespace()?,
            router: namespace()?,
            people: (0..people).map(|_| namespace()).collect::<Result<_, _>>()?,
            stop: Arc::default(),
            shapers: Vec::new(),
            down: Arc::default(),
            up: Arc::default(),
        };
        bed.wire(down, up, seed)
    }

    fn wire(mut self, down: LinkShape, up: LinkShape, seed: u64) -> Result<Self, BedError> {
        let inside = |netns: &Netns, name: &str| -> Result<File, BedError> {
            let made = netns
                .inside(|| create_tun(name))
                .map_err(BedError::Namespace)?;
            made.map_err(BedError::Tun)
        };
        let (a, b) = (inside(&self.server, "wan")?, inside(&self.router, "wan")?);
        // BBR hides the effect of a long queue; most devices use CUBIC.
        commands(
            &self.server,
            &[
                "ip link set lo up",
                "ip link set dev wan up txqueuelen 20000",
                "ip addr add 10.77.0.1/30 dev wan",
                "ip route add 10.78.0.0/16 dev wan congctl cubic",
            ],
        )?;
        commands(
            &self.router,
            &[
                "ip link set lo up",
                "ip link set dev wan up txqueuelen 20000",
                "ip addr add 10.77.0.2/30 dev wan",
                "ip link add home type bridge",
                "ip link set home up",
                "ip addr add 10.78.255.254/16 dev home",
            ],
        )?;
        let forward = || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1");
        let io = |what| move |source| BedError::Io { what, source };
        self.router
            .inside(forward)
            .map_err(BedError::Namespace)?
            .map_err(io("forwarding cannot be switched on"))?;
        for (number, person) in self.people.iter().enumerate() {
            let path = person.path();
            let path = path.to_string_lossy();
            commands(
                &self.router,
                &[
                    &format!("ip link add p{number} type veth peer name home netns {path}"),
                    &format!("ip link set p{number} master home up"),
                ],
            )?;
            commands(
                person,
                &[
                    "ip link set lo up",
                    "ip link set home up",
                    &format!("ip addr add {}/16 dev home", Self::address(number)),
                    "ip route add default via 10.78.255.254 congctl cubic",
                ],
            )?;
        }
        let (a, b) = (Arc::new(a), Arc::new(b));
        let sides = [(down, &a, &b, &self.down), (up, &b, &a, &self.up)];
        for (number, (how, from, to, counters)) in sides.into_iter().enumerate() {
            let (from, to) = (from.clone(), to.clone());
            let (counters, stop) = (counters.clone(), self.stop.clone());
            let seed = seed ^ number as u64;
            let started = thread::Builder::new()
                .name("shaper".to_owned())
                .spawn(move || shape(&how, &from, &to, &counters, seed, &stop));
            self.shapers
                .push(started.map_err(io("a thread cannot be started"))?);
        }
        Ok(self)
    }

    /// Returns the address of a client.
    #[must_use]
    pub fn address(number: usize) -> Ipv4Addr {
        let number = number as u32 + 1;
        Ipv4Addr::from_bits(Ipv4Addr::new(10, 78, 0, 0).to_bits() + number)
    }

    /// Returns the server's namespace.
    #[must_use]
    pub fn server(&self) -> &Netns {
        &self.server
    }

    /// Returns the network namespace of a client's device.
    #[must_use]
    pub fn person(&self, number: usize) -> Option<&Netns> {
        self.people.get(number)
    }

    /// Returns the namespace of the router to which all clients are connected.
    #[must_use]
    pub fn router(&self) -> &Netns {
        &self.router
    }

    /// Returns the counters of the bottleneck, first for the direction to the clients, then for the direction from
    /// them.
    #[must_use]
    pub fn counters(&self) -> (&LinkCounters, &LinkCounters) {
        (&self.down, &self.up)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for shaper in self.shapers.drain(..) {
            let _ = shaper.join();
        }
    }
}

/// Runs commands in a namespace in sequence; words are separated by spaces.
fn commands(netns: &Netns, commands: &[&str]) -> Result<(), BedError> {
    let run = || {
        for command in commands {
            let words: Vec<&OsStr> = command.split(' ').map(OsStr::new).collect();
            let failed = |complaint: String| BedError::Command {
                command: (*command).to_owned(),
                complaint,
            };
            run_successfully(&LiveHost, &words, LIMITS).map_err(|failure| match failure {
                CommandFailure::NotInstalled => {
                    failed("there is no such program: apt install iproute2".to_owned())
                }
                failure => failed(failure.to_string()),
            })?;
        }
        Ok(())
    };
    netns.inside(run).map_err(BedError::Namespace)?
}

#[cfg(test)]
mod tests;

//! The network path to a server: the interface, its speed, and the time to open a connection.

use serde::Serialize;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Network path to a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ShareLink {
    /// Network interface on the route to the server, such as `eth0`; `lo` if the server is this machine.
    pub interface: Option<String>,
    /// Speed of the interface in Mbit/s; null if the interface does not report a speed.
    pub mbit_per_s: Option<u64>,
    /// Time to open a TCP connection in milliseconds, about one round trip.
    pub connect_ms: Option<f64>,
}

/// Time limit for opening the TCP connection.
const LONGEST: Duration = Duration::from_secs(5);

/// Finds the network path to a server. Values that cannot be determined are `None`.
pub(crate) fn find_link(host: &str, port: u16) -> ShareLink {
    let Some(address) = (host, port)
        .to_socket_addrs()
        .ok()
        .and_then(|mut all| all.next())
    else {
        return ShareLink::default();
    };
    let interface = find_interface(address);
    let speed = interface.as_deref().and_then(|name| {
        let path = format!("/sys/class/net/{name}/speed");
        std::fs::read_to_string(path)
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    });
    let connect = || {
        let start = Instant::now();
        TcpStream::connect_timeout(&address, LONGEST).ok()?;
        Some(start.elapsed().as_secs_f64() * 1000.0)
    };
    let shortest = (0..3)
        .filter_map(|_| connect())
        .fold(f64::INFINITY, f64::min);
    ShareLink {
        interface,
        mbit_per_s: speed,
        connect_ms: shortest.is_finite().then_some(shortest),
    }
}

/// Finds the interface of the route to an address, with the command `ip`.
fn find_interface(address: SocketAddr) -> Option<String> {
    let mut command = Command::new("ip");
    command
        .args(["-o", "route", "get"])
        .arg(address.ip().to_string())
        .stderr(Stdio::null());
    let out = command.output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let mut words = text.split_whitespace();
    words.find(|word| *word == "dev")?;
    let name = words.next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    (name.len() < 16 && name.chars().all(plain)).then(|| name.to_owned())
}

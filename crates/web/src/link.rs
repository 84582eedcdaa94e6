//! Finds the network interface on the route to a server, and counts the bytes on it.

use crate::procfs::read;
use assay_model::web::LinkUse;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Instant;

/// Network interface on the route from this machine to an address.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkPath {
    pub interface: String,
    /// Speed of the interface in bits per second; `None` if unknown.
    pub speed: Option<f64>,
}

/// Returns the source address that the kernel uses for packets to this address.
pub fn source(to: &SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => IpAddr::from([0, 0, 0, 0]),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a UDP socket selects the route and sends nothing.
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Returns whether the address belongs to this machine. The kernel uses such an address also as the source address of
/// packets.
pub fn is_here(to: &SocketAddr) -> bool {
    to.ip().to_canonical().is_loopback()
        || source(to).is_some_and(|source| source.to_canonical() == to.ip().to_canonical())
}

impl NetworkPath {
    /// Finds the route to an address. `speed` is the speed of the interface in bits per second from the user. If it is
    /// `None`, the value of the driver is used.
    pub fn to(address: &SocketAddr, speed: Option<f64>) -> Result<Self, String> {
        let interface = match is_here(address) {
            true => "lo".to_owned(),
            false => route(&address.ip().to_canonical())
                .ok_or("the kernel's table of routes names no interface")?,
        };
        let driver = || {
            let text = read(format!("/sys/class/net/{interface}/speed"))?;
            let mbit: f64 = text.trim().parse().ok()?;
            // Virtual interfaces report -1 or a meaningless speed.
            let device = std::path::Path::new("/sys/class/net")
                .join(&interface)
                .join("device");
            (mbit > 0.0 && device.exists()).then_some(mbit * 1e6)
        };
        let speed = speed.or_else(driver);
        Ok(Self { interface, speed })
    }
}

fn route(to: &IpAddr) -> Option<String> {
    match to {
        IpAddr::V4(to) => route4(&read("/proc/thread-self/net/route")?, u32::from(*to)),
        IpAddr::V6(to) => route6(&read("/proc/thread-self/net/ipv6_route")?, u128::from(*to)),
    }
}

/// Finds the entry of /proc/net/route with the longest matching prefix. Addresses are hexadecimal, with their bytes in
/// memory order.
fn route4(table: &str, to: u32) -> Option<String> {
    let routes = table.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| {
            let value = u32::from_str_radix(words.get(at)?, 16).ok()?;
            Some(u32::from_be_bytes(value.to_ne_bytes()))
        };
        let (destination, mask) = (number(1)?, number(7)?);
        let metric: u32 = words.get(6)?.parse().ok()?;
        (to & mask == destination).then(|| {
            (
                mask.count_ones(),
                std::cmp::Reverse(metric),
                words[0].to_owned(),
            )
        })
    });
    routes.max().map(|(.., interface)| interface)
}

/// Finds the entry of /proc/net/ipv6_route with the longest matching prefix.
fn route6(table: &str, to: u128) -> Option<String> {
    let routes = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let destination = u128::from_str_radix(words.first()?, 16).ok()?;
        let length = u32::from_str_radix(words.get(1)?, 16)
            .ok()
            .filter(|length| *length <= 128)?;
        let metric = u32::from_str_radix(words.get(5)?, 16).ok()?;
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let interface = (*words.last()?).to_owned();
        (to & mask == destination && interface != "lo").then_some((
            length,
            std::cmp::Reverse(metric),
            interface,
        ))
    });
    routes.max().map(|(.., interface)| interface)
}

/// Byte counters of an interface at one time.
pub struct InterfaceCounters {
    at: Instant,
    bytes: Option<(u64, u64)>,
}

impl InterfaceCounters {
    pub fn at(interface: &str) -> Self {
        let table = read("/proc/thread-self/net/dev").unwrap_or_default();
        Self {
            at: Instant::now(),
            bytes: bytes(&table, interface),
        }
    }

    /// Returns how many bytes were transferred since the earlier reading `then`.
    pub fn since(&self, then: &Self, link: &NetworkPath) -> Result<LinkUse, String> {
        let (Some((received, sent)), Some((received_then, sent_then))) = (self.bytes, then.bytes)
        else {
            return Err(format!("the kernel counts nothing for {}", link.interface));
        };
        let seconds = (self.at - then.at).as_secs_f64().max(1e-9);
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 * 8.0 / seconds;
        Ok(LinkUse {
            interface: link.interface.clone(),
            received: rate(received, received_then),
            sent: rate(sent, sent_then),
            speed: link.speed,
        })
    }
}

/// Parses the numbers of bytes that an interface received and sent from /proc/net/dev.
fn bytes(table: &str, interface: &str) -> Option<(u64, u64)> {
    let line = table.lines().find_map(|line| {
        let (name, values) = line.split_once(':')?;
        (name.trim() == interface).then_some(values)
    })?;
    let values: Vec<u64> = line
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    Some((*values.first()?, *values.get(8)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let table = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
             eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n\
             eth1 0000000A 00000000 0001 0 0 0 000000FF 0 0 0\n\
             eth2 0000000A 00000000 0001 0 0 100 000000FF 0 0 0\n";
        assert_eq!(
            route4(table, u32::from_be_bytes([10, 1, 2, 3])).as_deref(),
            Some("eth1")
        );
        assert_eq!(
            route4(table, u32::from_be_bytes([8, 8, 8, 8])).as_deref(),
            Some("eth0")
        );
        assert_eq!(route4("", 1), None);
        let table = "20010db8000000000000000000000000 20 00000000000000000000000000000000 00 \
             00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth0\n\
             00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
             fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth1\n";
        let to = |text: &str| u128::from(text.parse::<Ipv6Addr>().unwrap());
        assert_eq!(route6(table, to("2001:db8::1")).as_deref(), Some("eth0"));
        assert_eq!(route6(table, to("2a00::1")).as_deref(), Some("eth1"));
    }

    #[test]
    fn counters_of_an_interface() {
        let table = "Inter-| Receive\n face |bytes\n    lo: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\neth0:7 1 \
                     0 0 0 0 0 0 9 0 0 0 0 0 0 0\n";
        assert_eq!(bytes(table, "lo"), Some((100, 200)));
        assert_eq!(bytes(table, "eth0"), Some((7, 9)));
        assert_eq!(bytes(table, "eth"), None);
    }

    #[test]
    fn what_is_here() {
        let here = |text: &str| is_here(&text.parse().unwrap());
        assert!(here("127.0.0.1:80") && here("127.8.8.8:80") && here("[::1]:80"));
        assert!(here("[::ffff:127.0.0.1]:80"));
        assert!(!here("192.0.2.1:80") && !here("[2001:db8::1]:80"));
        assert_eq!(
            NetworkPath::to(&"127.0.0.1:80".parse().unwrap(), None)
                .unwrap()
                .interface,
            "lo"
        );
    }
}

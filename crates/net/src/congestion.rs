//! TCP congestion control: reads and sets the algorithm of a connection, and lists the available algorithms.
//! The sender's algorithm determines the length of a queue: CUBIC fills the queue, BBR keeps it short.

use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::os::fd::AsFd;

/// Maximum length of an algorithm name (`TCP_CA_NAME_MAX` of the kernel).
pub const LONGEST: usize = 16;
/// File in which the kernel lists its algorithms. Its content depends on the network namespace of the reading thread.
const LIST: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Returns whether a text is a valid algorithm name: lower-case letters, digits, `_` and `-`.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    !name.is_empty() && name.len() < LONGEST && name.chars().all(plain)
}

/// Returns the algorithm of a connection; `None` if the kernel does not report it. A route can set an algorithm that
/// differs from the default.
#[must_use]
pub fn of_connection(connection: impl AsFd) -> Option<String> {
    let name = sockopt::tcp_congestion(connection).ok()?;
    is_name(&name).then_some(name)
}

/// Sets the algorithm of a connection, and returns the algorithm that the kernel then uses. The kernel refuses unknown
/// algorithms. For users other than root it also refuses algorithms that are missing in
/// `tcp_allowed_congestion_control`.
pub fn set(connection: impl AsFd, name: &str) -> Option<String> {
    let _ = sockopt::set_tcp_congestion(connection.as_fd(), name);
    of_connection(connection)
}

/// Lists the algorithms that this process may use, sorted by name. Tests each algorithm on a socket that is never
/// connected. Algorithms in kernel modules that are not loaded are not found.
#[must_use]
pub fn usable() -> Vec<String> {
    let listed = std::fs::read_to_string(LIST).unwrap_or_default();
    let flags = SocketFlags::CLOEXEC;
    let Ok(socket) = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None) else {
        return Vec::new();
    };
    let mut names: Vec<String> = listed
        .split_whitespace()
        .filter(|name| is_name(name) && set(&socket, name).as_deref() == Some(*name))
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_algorithms() {
        for name in ["cubic", "bbr", "dctcp", "bpf_cubic"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "CUBIC", "a b", "\u{202e}", "sixteen-letters-"] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_socket_has_the_algorithm_that_was_set() {
        let usable = usable();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for name in &usable {
            assert_eq!(set(&socket, name).as_ref(), Some(name));
        }
        let before = of_connection(&socket);
        assert_eq!(set(&socket, "no-such-one"), before);
    }
}

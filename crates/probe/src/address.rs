//! Parses the host and port that the user named, and resolves the host to IP addresses.

use crate::error::ProbeError;
use assay_host::resolve;
use serde::Serialize;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// A host and a port, as the user named them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Target {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// TCP or UDP port on which the service listens.
    pub port: u16,
}

impl Target {
    /// Parses `HOST`, `HOST:PORT`, `ADDRESS` or `[ADDRESS]:PORT`. Without a port, uses `default_port`.
    ///
    /// # Errors
    /// [`ProbeError::Address`] describes the syntax error.
    pub fn parse(given: &str, default_port: u16) -> Result<Self, ProbeError> {
        let wrong = |expected| ProbeError::Address {
            given: given.escape_debug().to_string(),
            expected,
        };
        let port = |text: &str| match text.parse::<u16>() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err(wrong("the port is a number from 1 to 65535")),
        };
        let (host, port) = if given.parse::<Ipv6Addr>().is_ok() {
            (given, default_port)
        } else if let Some(rest) = given.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or(wrong("the `]` is missing"))?;
            if host.parse::<Ipv6Addr>().is_err() {
                return Err(wrong("what stands in brackets is no IPv6 address"));
            }
            match rest.strip_prefix(':') {
                Some(text) => (host, port(text)?),
                None if rest.is_empty() => (host, default_port),
                None => return Err(wrong("something follows the `]`")),
            }
        } else if let Some((host, text)) = given.split_once(':') {
            (host, port(text)?)
        } else {
            (given, default_port)
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        if host.is_empty() || host.len() > 253 || !host.bytes().all(plain) {
            return Err(wrong(
                "a host name has 1 to 253 letters, digits, dots, hyphens (a name in another script \
                 is given in its xn-- form)",
            ));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }

    /// Returns the host name for SNI, or `None` if the host is an IP address (RFC 6066 section 3).
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        let is_address = self.host.parse::<IpAddr>().is_ok();
        (!is_address).then(|| self.host.trim_end_matches('.'))
    }

    /// Resolves the host to at most 16 socket addresses, in the resolver's order. Returns after `within` at the latest,
    /// even if the thread of the resolver still runs.
    ///
    /// # Errors
    /// The name has no address, or the resolver takes longer than `within`.
    pub fn resolve(&self, within: Duration) -> Result<Vec<SocketAddr>, ProbeError> {
        let mut addresses = resolve::resolve_addresses(&self.host, self.port, within).map_err(
            |source| match source.kind() {
                io::ErrorKind::TimedOut => ProbeError::ResolveTime {
                    host: self.host.clone(),
                    after: within,
                },
                _ => ProbeError::Resolve {
                    host: self.host.clone(),
                    source,
                },
            },
        )?;
        // More addresses would only make the probe slower.
        addresses.truncate(16);
        Ok(addresses)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        let parse = |text: &str| Target::parse(text, 443).map(|target| target.to_string());
        for (given, read) in [
            ("example.org", "example.org:443"),
            ("example.org:8443", "example.org:8443"),
            ("192.0.2.1:25", "192.0.2.1:25"),
            ("::1", "[::1]:443"),
            ("[::1]", "[::1]:443"),
            ("[2001:db8::7]:22", "[2001:db8::7]:22"),
        ] {
            assert_eq!(parse(given).unwrap(), read);
        }
        for given in [
            "", ":443", "a:0", "a:65536", "a:b:c", "[::1", "[::1]x", "[a]:1", "a b", "a\n",
            "http://a", "ä.de",
        ] {
            assert!(parse(given).is_err(), "{given}");
        }
        let long = "a".repeat(254);
        assert!(parse(&long).is_err());
    }

    #[test]
    fn an_address_is_no_server_name() {
        let name = |host: &str| {
            let target = Target::parse(host, 1).unwrap();
            target.server_name().map(str::to_owned)
        };
        assert_eq!(name("127.0.0.1"), None);
        assert_eq!(name("::1"), None);
        assert_eq!(name("example.org."), Some("example.org".to_owned()));
    }
}

//! Parses `http://` and `https://` URLs.

use assay_host::resolve;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Maximum time to wait for the resolver of host names.
const RESOLVER: Duration = Duration::from_secs(30);

/// Parts of a URL that a request or connection needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    tls: bool,
    /// Host in the form of the `Host` header, in which an IPv6 address has brackets.
    host: String,
    port: u16,
    /// Path and query of the URL.
    path: String,
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// The text is not a URL. The error describes the fault for users.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.bytes().any(|byte| byte <= b' ' || byte >= 0x7f) {
            return Err("a URL has no blanks, and other than ASCII is written as %XX");
        }
        let (tls, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            _ => return Err("not of the form http://HOST:PORT/PATH"),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err("a user name in the URL is not sent: name it in a header");
        }
        let after_host = match authority.starts_with('[') {
            true => authority.find(']').ok_or("a `[` is not closed")? + 1,
            false => authority.find(':').unwrap_or(authority.len()),
        };
        let (host, port) = authority.split_at(after_host);
        let port = match port.strip_prefix(':') {
            Some(port) => port
                .parse()
                .map_err(|_| "the port is not a number to 65535")?,
            None if port.is_empty() && tls => 443,
            None if port.is_empty() => 80,
            None => return Err("not of the form http://HOST:PORT/PATH"),
        };
        if port == 0 {
            return Err("nothing can listen on port 0");
        }
        if host.is_empty() {
            return Err("no host");
        }
        if let Some(inside) = host.strip_prefix('[') {
            let inside = inside.trim_end_matches(']');
            inside
                .parse::<std::net::Ipv6Addr>()
                .map_err(|_| "not an IPv6 address between the brackets")?;
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            tls,
            host: host.to_ascii_lowercase(),
            port,
            path: format!("{slash}{path}"),
        })
    }

    /// Returns whether the scheme is `https`.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// Returns the host without the brackets of an IPv6 address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }

    /// Returns the port; without a port in the URL, the default port of the scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns path and query in the form in which they are sent.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the URL with another path, which must start with `/`; else `None`.
    #[must_use]
    pub fn with_path(&self, path: &str) -> Option<Self> {
        let good = path.starts_with('/') && path.bytes().all(|byte| byte > b' ' && byte < 0x7f);
        good.then(|| Self {
            path: path.split('#').next().unwrap_or_default().to_owned(),
            ..self.clone()
        })
    }

    /// Returns all addresses of the host, in the resolver's order.
    ///
    /// # Errors
    /// The name is unknown, or the resolver does not answer.
    pub fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        resolve::resolve_addresses(self.host(), self.port, RESOLVER)
    }

    /// Returns the host and port as `HOST:PORT`, for messages.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the value of the `Host` header.
    pub(crate) fn host_header(&self) -> String {
        match (self.tls, self.port) {
            (false, 80) | (true, 443) => self.host.clone(),
            _ => self.address(),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.host_header(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let url = Url::parse("http://127.0.0.1:8080/a?b=c#d").unwrap();
        assert_eq!(
            (url.path(), url.port(), url.is_tls()),
            ("/a?b=c", 8080, false)
        );
        assert_eq!(url.to_string(), "http://127.0.0.1:8080/a?b=c");
        let url = Url::parse("https://[::1]").unwrap();
        assert_eq!(url.resolve().unwrap()[0].to_string(), "[::1]:443");
        assert_eq!(
            (url.host(), url.to_string()),
            ("::1", "https://[::1]/".to_owned())
        );
        assert_eq!(Url::parse("HTTP://h?q").unwrap().path(), "/?q");
        let other = url.with_path("/x#y").unwrap();
        assert_eq!(other.path(), "/x");
        assert!(url.with_path("/a b").is_none() && url.with_path("x").is_none());
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "",
            "http://",
            "http:///x",
            "ftp://h/",
            "h/",
            "http://h:x/",
            "http://h:65536/",
            "http://h:0/",
            "http://u:p@h/",
            "http://h/a b",
            "http://h/\r\nX: y",
            "http://h/ä",
            "http://[::1/",
            "http://[::1]x/",
            "http://[not]/",
        ] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }
}

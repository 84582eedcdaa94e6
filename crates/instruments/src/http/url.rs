//! `http://` URLs.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// The parts that a request needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host as in the `Host` header, with brackets around an IPv6 address.
    host: String,
    port: u16,
    /// Path and query.
    path: String,
}

impl Url {
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err("a URL has no blanks and no control characters");
        }
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => return Err("TLS is not spoken here; name an http:// port"),
            _ => return Err("not of the form http://HOST:PORT/PATH"),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err("a user name in the URL is not sent");
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
            None if port.is_empty() => 80,
            None => return Err("not of the form http://HOST:PORT/PATH"),
        };
        if host.is_empty() {
            return Err("no host");
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            host: host.to_owned(),
            port,
            path: format!("{slash}{path}"),
        })
    }

    pub fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let host = self.host.trim_matches(['[', ']']);
        Ok((host, self.port).to_socket_addrs()?.collect())
    }

    /// `HOST:PORT`, for people.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The request as it is sent.
    pub fn request(&self, keep_alive: bool) -> Vec<u8> {
        let Self { host, port, path } = self;
        let port = match port {
            80 => String::new(),
            port => format!(":{port}"),
        };
        let close = match keep_alive {
            true => "",
            false => "Connection: close\r\n",
        };
        format!(
            "GET {path} HTTP/1.1\r\nHost: {host}{port}\r\nUser-Agent: assay\r\nAccept: */*\r\n{close}\r\n"
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let url = Url::parse("http://127.0.0.1:8080/a?b=c#d").unwrap();
        let request = String::from_utf8(url.request(true)).unwrap();
        assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"));
        let url = Url::parse("http://[::1]").unwrap();
        assert_eq!(url.resolve().unwrap()[0].to_string(), "[::1]:80");
        assert_eq!((url.address(), &url.path[..]), ("[::1]:80".to_owned(), "/"));
        assert_eq!(Url::parse("http://h?q").unwrap().path, "/?q");
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "",
            "http://",
            "http:///x",
            "https://h/",
            "ftp://h/",
            "h/",
            "http://h:x/",
            "http://h:65536/",
            "http://u:p@h/",
            "http://h/a b",
            "http://h/\r\nX: y",
            "http://[::1/",
            "http://[::1]x/",
        ] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }
}

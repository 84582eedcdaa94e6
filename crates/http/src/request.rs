//! Encodes requests, and defines which answers are good.

use crate::h2::hpack;
use crate::url::Url;
use assay_model::web::Protocol;
use std::sync::Arc;

/// HTTP method of a request, such as GET.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// GET, whose answer has a body.
    #[default]
    Get,
    /// HEAD, whose answer has no body.
    Head,
    /// Any other method, by its name.
    Other(String),
}

impl Method {
    /// Parses a method name.
    ///
    /// # Errors
    /// The name is not a token (RFC 9110, section 5.6.2).
    pub fn parse(name: &str) -> Result<Self, &'static str> {
        match name {
            "GET" => Ok(Self::Get),
            "HEAD" => Ok(Self::Head),
            "CONNECT" => Err("CONNECT makes a tunnel and has no answer to measure"),
            _ if is_token(name) => Ok(Self::Other(name.to_owned())),
            _ => Err("a method is a word such as GET or POST"),
        }
    }

    /// Returns whether the method is idempotent, so that a request may be sent again (RFC 9110, section 9.2.2).
    fn repeatable(&self) -> bool {
        matches!(self, Self::Get | Self::Head)
            || ["PUT", "DELETE", "OPTIONS", "TRACE"].contains(&self.name())
    }

    fn name(&self) -> &str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Other(name) => name,
        }
    }
}

fn is_token(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(good)
}

/// Conditions that a good answer meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expect {
    /// Status code that the answer must have.
    pub status: u16,
    /// Expected length of the body in bytes; `None` if any length is good.
    pub length: Option<u64>,
    /// Expected BLAKE3 hash of the body. If set, the generator reads every byte of the body, which costs CPU time.
    pub hash: Option<[u8; 32]>,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            status: 200,
            length: None,
            hash: None,
        }
    }
}

/// An encoded request, with the conditions for a good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub(crate) protocol: Protocol,
    /// The whole request with HTTP/1.1, or the head with HTTP/2.
    pub(crate) bytes: Vec<u8>,
    /// Body of the request; only with HTTP/2.
    pub(crate) body: Arc<[u8]>,
    /// Whether the method is HEAD, so that the answer has no body.
    pub(crate) head: bool,
    /// Whether a header of the request makes the server close the connection after the answer.
    pub(crate) close: bool,
    /// Whether the request may be sent again if the connection was closed without an answer (RFC 9110, section 9.2.2).
    pub(crate) repeatable: bool,
    pub(crate) expect: Expect,
}

impl Request {
    /// Encodes a request. The given headers replace assay's own (`Host`, `User-Agent`, `Accept`).
    ///
    /// # Errors
    /// A header value would inject another header, or a header determines the framing, which only assay sets.
    pub fn new(
        method: &Method,
        url: &Url,
        headers: &[(String, String)],
        body: &[u8],
        keep_alive: bool,
    ) -> Result<Self, String> {
        let host = url.host_header();
        let mut all = headers_of(&host, headers)?;
        let length = body.len().to_string();
        if !body.is_empty() {
            all.push(("Content-Length", &length));
        }
        if !keep_alive {
            all.push(("Connection", "close"));
        }
        let mut bytes = format!("{} {} HTTP/1.1\r\n", method.name(), url.path()).into_bytes();
        for (name, value) in all {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        Ok(Self {
            protocol: Protocol::Http1,
            bytes,
            body: Arc::from([]),
            head: *method == Method::Head,
            close: !keep_alive,
            repeatable: method.repeatable(),
            expect: Expect::default(),
        })
    }

    /// Encodes a request for HTTP/2.
    ///
    /// # Errors
    /// See [`Request::new`]; or a header is not permitted in HTTP/2 (RFC 9113, section 8.2.2).
    pub fn http2(
        method: &Method,
        url: &Url,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Self, String> {
        let host = url.host_header();
        let mut all = headers_of(&host, headers)?;
        let gone = ["keep-alive", "proxy-connection", "te"];
        if let Some((name, _)) = all
            .iter()
            .find(|(name, _)| gone.iter().any(|gone| name.eq_ignore_ascii_case(gone)))
        {
            return Err(format!("HTTP/2 has no header {name}"));
        }
        let length = body.len().to_string();
        if !body.is_empty() {
            all.push(("content-length", &length));
        }
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        let host = all.iter().rfind(|(name, _)| is_host(name));
        let scheme = match url.is_tls() {
            true => "https",
            false => "http",
        };
        let mut bytes = Vec::new();
        for (name, value) in [
            (":method", method.name()),
            (":scheme", scheme),
            (":authority", host.map_or("", |(_, value)| value)),
            (":path", url.path()),
        ] {
            hpack::write(&mut bytes, name, value);
        }
        for (name, value) in all.iter().filter(|(name, _)| !is_host(name)) {
            hpack::write(&mut bytes, &name.to_ascii_lowercase(), value.trim());
        }
        Ok(Self {
            protocol: Protocol::Http2,
            bytes,
            body: Arc::from(body),
            head: *method == Method::Head,
            close: false,
            repeatable: method.repeatable(),
            expect: Expect::default(),
        })
    }

    /// Returns the encoded bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the request with other conditions for a good answer.
    #[must_use]
    pub fn expecting(mut self, expect: Expect) -> Self {
        self.expect = expect;
        self
    }
}

/// Returns the headers to send. These are the given headers, and assay's default for each header that is not given.
fn headers_of<'a>(
    host: &'a str,
    headers: &'a [(String, String)],
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let mut all: Vec<(&str, &str)> =
        vec![("Host", host), ("User-Agent", "assay"), ("Accept", "*/*")];
    for (name, value) in headers {
        if !is_token(name) {
            return Err(format!("`{name}` is not the name of a header"));
        }
        if value
            .bytes()
            .any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
        {
            return Err(format!("the header {name} holds a control character"));
        }
        let framing = [
            "connection",
            "content-length",
            "transfer-encoding",
            "upgrade",
            "expect",
        ];
        if framing.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Err(format!(
                "the header {name} is assay's own: it decides where a message ends"
            ));
        }
        all.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
        all.push((name, value));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(headers: &[(&str, &str)], body: &[u8], keep_alive: bool) -> Result<String, String> {
        let url = Url::parse("http://127.0.0.1:8080/a?b=c#d").unwrap();
        let headers: Vec<(String, String)> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let request = Request::new(&Method::Get, &url, &headers, body, keep_alive)?;
        Ok(String::from_utf8(request.bytes).unwrap())
    }

    #[test]
    fn what_is_sent() {
        let sent = text(&[("user-agent", "me"), ("Cookie", "a=b")], b"", true).unwrap();
        assert_eq!(
            sent,
            "GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\n\
             user-agent: me\r\nCookie: a=b\r\n\r\n"
        );
        let sent = text(&[], b"hello", false).unwrap();
        assert!(sent.ends_with("Content-Length: 5\r\nConnection: close\r\n\r\nhello"));
    }

    #[test]
    fn a_header_is_no_door() {
        for bad in [
            ("X", "a\r\nY: z"),
            ("X: y\r\nZ", "a"),
            ("", "a"),
            ("Content-Length", "7"),
            ("transfer-encoding", "chunked"),
        ] {
            assert!(text(&[bad], b"", true).is_err(), "{bad:?}");
        }
        assert!(Method::parse("GET / HTTP/1.1\r\n").is_err());
        assert_eq!(
            Method::parse("PATCH"),
            Ok(Method::Other("PATCH".to_owned()))
        );
    }
}

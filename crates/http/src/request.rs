//! What is asked, as the bytes that are sent, and what counts as an answer.

use crate::url::Url;

/// The method of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// GET.
    #[default]
    Get,
    /// HEAD, whose answer has no body whatever it says.
    Head,
    /// Any other.
    Other(String),
}

impl Method {
    /// From its name.
    ///
    /// # Errors
    /// It is not a token (RFC 9110, section 5.6.2).
    pub fn parse(name: &str) -> Result<Self, &'static str> {
        match name {
            "GET" => Ok(Self::Get),
            "HEAD" => Ok(Self::Head),
            "CONNECT" => Err("CONNECT makes a tunnel and has no answer to measure"),
            _ if is_token(name) => Ok(Self::Other(name.to_owned())),
            _ => Err("a method is a word such as GET or POST"),
        }
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

/// What makes an answer a good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expect {
    /// Its status.
    pub status: u16,
    /// Length of its body, when known.
    pub length: Option<u64>,
    /// BLAKE3 of its body. Every byte is looked at then, which costs the generator CPU time.
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

/// A request, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub(crate) bytes: Vec<u8>,
    /// The answer has no body.
    pub(crate) head: bool,
    /// Asks the server to close the connection after it.
    pub(crate) close: bool,
    /// May be sent again when the connection was closed without an answer (RFC 9110, section 9.2.2).
    pub(crate) repeatable: bool,
    pub(crate) expect: Expect,
}

impl Request {
    /// Builds the bytes. Headers replace assay's own of the same name (`Host`, `User-Agent`,
    /// `Accept`).
    ///
    /// # Errors
    /// A header that would be more than a header, or that belongs to the framing, which is assay's.
    pub fn new(
        method: &Method,
        url: &Url,
        headers: &[(String, String)],
        body: &[u8],
        keep_alive: bool,
    ) -> Result<Self, String> {
        let host = url.host_header();
        let mut all: Vec<(&str, &str)> =
            vec![("Host", &host), ("User-Agent", "assay"), ("Accept", "*/*")];
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
            bytes,
            head: *method == Method::Head,
            close: !keep_alive,
            repeatable: matches!(method, Method::Get | Method::Head)
                || ["PUT", "DELETE", "OPTIONS", "TRACE"].contains(&method.name()),
            expect: Expect::default(),
        })
    }

    /// What is sent.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The same with another idea of a good answer.
    #[must_use]
    pub fn expecting(mut self, expect: Expect) -> Self {
        self.expect = expect;
        self
    }
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

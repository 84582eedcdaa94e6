//! Parses the head of an HTTP request.

/// Maximum size of a request head, in bytes.
pub const LONGEST: usize = 8 << 10;

/// Parsed head of an HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// HTTP method: `GET` or `POST`.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Length of the body in bytes.
    pub length: u64,
    /// Token from the header, else from the query.
    pub token: Option<String>,
    /// Number, key and role of the client, from the header [`CLIENT_HEADER`](crate::wire::CLIENT_HEADER).
    pub client: Option<(u64, String, String)>,
    /// Whether the client requests that the connection ends after the answer.
    pub close: bool,
}

/// Parses a head and returns it with its length. Returns `None` if the head is incomplete.
///
/// # Errors
/// The bytes are not a request head, or it is longer than [`LONGEST`].
pub fn read(bytes: &[u8]) -> Result<Option<(Head, usize)>, &'static str> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST => return Ok(None),
        Ok(httparse::Status::Partial) => return Err("a head of more than 8 KiB"),
        Err(_) => return Err("this is no request of HTTP/1.1"),
    };
    let path = request.path.unwrap_or_default();
    let mut head = Head {
        method: request.method.unwrap_or_default().to_owned(),
        path: path.split('?').next().unwrap_or_default().to_owned(),
        close: request.version != Some(1),
        ..Head::default()
    };
    let mut lengths = 0;
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value).unwrap_or("").trim();
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            lengths += 1;
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let number = value.parse().ok().filter(|_| digits && lengths == 1);
            head.length = number.ok_or("Content-Length is not one number")?;
        } else if is("transfer-encoding") {
            return Err("a body has to come with Content-Length");
        } else if is("connection") {
            head.close |= value
                .split(',')
                .any(|word| word.trim().eq_ignore_ascii_case("close"));
        } else if is(crate::wire::TOKEN_HEADER) {
            head.token = Some(value.to_owned());
        } else if is(crate::wire::CLIENT_HEADER) {
            let mut words = value.split(' ');
            let number = words.next().and_then(|word| word.parse().ok());
            head.client = match (number, words.next(), words.next()) {
                (Some(number), Some(key), Some(role)) => {
                    Some((number, key.to_owned(), role.to_owned()))
                }
                _ => return Err("the header of the client is `NUMBER KEY ROLE`"),
            };
        }
    }
    let query = path.split_once('?').map(|(_, query)| query.to_owned());
    head.token = head.token.or(query);
    Ok(Some((head, length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_asked() {
        let text = b"POST /bytes?x HTTP/1.1\r\nHost: h\r\nassay-token: t\r\nassay-client: 3 ab voip\r\nContent-Length: 12\r\n\r\nrest";
        let (head, length) = read(text).unwrap().unwrap();
        assert_eq!(
            (&*head.method, &*head.path, head.length),
            ("POST", "/bytes", 12)
        );
        assert_eq!(head.client, Some((3, "ab".to_owned(), "voip".to_owned())));
        assert_eq!(&text[length..], b"rest");
        for cut in 0..length {
            assert_eq!(read(&text[..cut]), Ok(None));
        }
        assert_eq!(head.token.as_deref(), Some("t"));
        let (head, _) = read(b"GET /bytes/1?secret HTTP/1.1\r\n\r\n")
            .unwrap()
            .unwrap();
        assert_eq!(
            (&*head.path, head.token.as_deref()),
            ("/bytes/1", Some("secret"))
        );
    }

    #[test]
    fn two_lengths_and_chunks_are_refused() {
        for bad in [
            "Content-Length: 1\r\nContent-Length: 1",
            "Content-Length: +1",
            "Content-Length: 99999999999999999999",
            "Transfer-Encoding: chunked",
            "assay-client: x",
        ] {
            assert!(
                read(format!("GET / HTTP/1.1\r\n{bad}\r\n\r\n").as_bytes()).is_err(),
                "{bad}"
            );
        }
        assert!(read(&[b'A'; LONGEST]).is_err());
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }
    }
}

//! Checks a web server by its HTTP responses: protective, obsolete and revealing headers; cookies; security.txt; and
//! objects that everybody who knows the link can fetch.

mod cookies;
mod judge;
mod links;
mod security_txt;

pub use cookies::{Cookie, SameSite};
pub use links::{CONSENT, Links};
pub use security_txt::SecurityTxt;

use crate::error::{ProbeError, shown};
use crate::remark::Remark;
use crate::visit::{Connection, Visit, Where};
use jiff::Timestamp;
use serde::Serialize;
use std::io::{Read as _, Write as _};

/// Results of the HTTP probe of one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// Host and address that were probed.
    #[serde(flatten)]
    pub place: Where,
    /// Whether the connection used TLS.
    pub https: bool,
    /// HTTP status of the response to `/`.
    pub status: u16,
    /// Headers that the probe checks, as the server sent them.
    pub headers: Vec<(String, String)>,
    /// Cookies that `/` sets, without their values.
    pub cookies: Vec<Cookie>,
    /// Content of `/.well-known/security.txt`; `None` if the file does not exist.
    pub security_txt: Option<SecurityTxt>,
    /// Result of the link check, if the user requested it.
    pub links: Option<Links>,
    /// Faults that were found, the worst first.
    pub remarks: Vec<Remark>,
    /// Checks without a result, each with its reason.
    pub unknown: Vec<String>,
    /// Number of connections that the probe opened.
    pub connections: u32,
}

/// What the HTTP probe shall check, and how.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Whether to use TLS.
    pub https: bool,
    /// Value of the `Host` header, if it differs from the host of the connection.
    pub name: Option<&'a str>,
    /// Path of one of the user's own objects. The link check increments the last number in this path.
    pub link: Option<&'a str>,
    /// Current time, with which expiry dates are compared.
    pub now: Timestamp,
}

/// An HTTP response, with the beginning of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// HTTP status code of the response.
    pub status: u16,
    /// Headers with names in lower case.
    pub headers: Vec<(String, String)>,
    /// First bytes of the body, as many as the caller requested.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the value of the first header with this name, which must be in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|header| header.0 == name);
        found.map(|header| header.1.as_str())
    }
}

/// Maximum size of all headers, in bytes. Servers themselves accept at most 8 to 64 KiB.
const HEAD: usize = 64 << 10;

/// Maximum number of body bytes that are read. No real security.txt is longer.
const BODY: usize = 32 << 10;

/// Runs the HTTP checks. Opens one connection for the page, one for security.txt and three for links.
///
/// # Errors
/// The answer is not HTTP, or the server does not answer.
pub fn scan(visit: &Visit, question: &Question<'_>) -> Result<Report, ProbeError> {
    let page = get(visit, question, "/", BODY)?;
    let mut unknown = Vec::new();
    let security_txt = match get(visit, question, "/.well-known/security.txt", BODY) {
        Ok(answer) => SecurityTxt::of(&answer),
        Err(error) => {
            unknown.push(format!("security.txt: {error}"));
            None
        }
    };
    let links = question.link.and_then(|path| {
        let asked = links::ask(path, |path, body| get(visit, question, path, body));
        asked
            .map_err(|error| unknown.push(format!("links to objects: {error}")))
            .ok()
    });
    if let Some(Links::NoConsent { why }) = &links {
        unknown.push(format!("links to objects: {why}"));
    }
    let judged = |header: &&(String, String)| judge::JUDGED.contains(&header.0.as_str());
    let mut report = Report {
        place: visit.place().clone(),
        https: question.https,
        status: page.status,
        headers: page.headers.iter().filter(judged).cloned().collect(),
        cookies: Cookie::all(&page),
        security_txt,
        links,
        remarks: Vec::new(),
        unknown,
        connections: visit.connections(),
    };
    report.remarks = judge::judge(&report, &page, question.now);
    Ok(report)
}

/// Fetches a path. Reads at most `body` bytes of the response body.
fn get(
    visit: &Visit,
    question: &Question<'_>,
    path: &str,
    body: usize,
) -> Result<Response, ProbeError> {
    let target = &visit.place().target;
    let host = match question.name {
        Some(name) => name.to_owned(),
        None if target.host.contains(':') => format!("[{}]", target.host),
        None => target.host.clone(),
    };
    let usual = if question.https { 443 } else { 80 };
    let host = match target.port == usual {
        true => host,
        false => format!("{host}:{}", target.port),
    };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: assay\r\nAccept: */*\r\n\
         Accept-Encoding: identity\r\nConnection: close\r\n\r\n"
    );
    let mut connection = visit.open()?;
    connection.limit(HEAD + body);
    if !question.https {
        connection.expect("the answer of HTTP");
        connection.send(request.as_bytes())?;
        return read(&mut connection, body);
    }
    // The certificates count towards the limit, too.
    connection.limit(HEAD + body + (128 << 10));
    let name = question.name.unwrap_or(&target.host);
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    let mut tls = crate::tls::handshake(&mut connection, name, &versions)?;
    connection.expect("the answer of HTTP");
    let mut stream = rustls::Stream::new(&mut tls, &mut connection);
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 8192];
    loop {
        let ended = match stream.read(&mut chunk) {
            Ok(0) => true,
            Ok(count) => {
                bytes.extend_from_slice(&chunk[..count]);
                false
            }
            Err(error) => match whole_head(&bytes) {
                // Servers may close TLS without a close_notify alert, and a body may be endless.
                true => true,
                false => return Err(failed(error)),
            },
        };
        if ended || is_enough(&bytes, body) {
            return parse(&bytes, body);
        }
        if bytes.len() > HEAD + body {
            return Err(too_much());
        }
    }
}

fn failed(error: std::io::Error) -> ProbeError {
    match error.downcast::<ProbeError>() {
        Ok(own) => own,
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => ProbeError::Closed {
            waiting_for: "the answer of HTTP",
        },
        Err(error) => ProbeError::foreign("HTTP over TLS", error.to_string()),
    }
}

fn too_much() -> ProbeError {
    ProbeError::TooMuch {
        waiting_for: "the headers of HTTP",
        limit: HEAD,
    }
}

fn read(connection: &mut Connection<'_>, body: usize) -> Result<Response, ProbeError> {
    // The first byte shows that an answer is not HTTP. Such an answer may never contain the end that the
    // reader waits for.
    let start = connection.peek(5)?;
    if start != b"HTTP/" {
        return Err(ProbeError::foreign("HTTP", shown(&start)));
    }
    let head = connection.up_to(b"\r\n\r\n", HEAD)?;
    let mut bytes = head;
    while !is_enough(&bytes, body) {
        let more = connection.some().unwrap_or_default();
        if more.is_empty() {
            break;
        }
        bytes.extend(more);
    }
    parse(&bytes, body)
}

fn whole_head(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|part| part == b"\r\n\r\n")
}

/// Returns whether enough of the response has arrived, that is the headers, and then the announced length or `body`
/// bytes of the body.
fn is_enough(bytes: &[u8], body: usize) -> bool {
    let head = bytes.windows(4).position(|part| part == b"\r\n\r\n");
    let Some(head) = head.map(|at| at + 4) else {
        return false;
    };
    let length = || {
        let answer = parse(&bytes[..head], 0).ok()?;
        answer.header("content-length")?.parse::<usize>().ok()
    };
    bytes.len() >= head + length().map_or(body, |length| length.min(body))
}

/// Parses an HTTP response and keeps at most `body` bytes of the response body.
///
/// # Errors
/// The bytes are not an HTTP response.
pub fn parse(bytes: &[u8], body: usize) -> Result<Response, ProbeError> {
    let mut headers = [httparse::EMPTY_HEADER; 256];
    let mut response = httparse::Response::new(&mut headers);
    let foreign = || ProbeError::foreign("HTTP", shown(bytes));
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        _ => return Err(foreign()),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let rest = &bytes[length..];
    Ok(Response {
        status: response.code.ok_or_else(foreign)?,
        headers: response
            .headers
            .iter()
            .map(|header| (header.name.to_ascii_lowercase(), text(header.value)))
            .collect(),
        body: rest[..rest.len().min(body)].to_vec(),
    })
}

//! HTTP: headers that protect, that are obsolete or that tell too much; security.txt; links to objects
//! that anybody may fetch.

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

/// All that was found out about HTTP on a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// Where.
    #[serde(flatten)]
    pub place: Where,
    /// TLS was spoken.
    pub https: bool,
    /// Status of `/`.
    pub status: u16,
    /// The headers that are judged, as they were sent.
    pub headers: Vec<(String, String)>,
    /// Cookies that `/` sets, without their values.
    pub cookies: Vec<Cookie>,
    /// What stands in `/.well-known/security.txt`; none when there is none.
    pub security_txt: Option<SecurityTxt>,
    /// Links to objects, when they were asked about.
    pub links: Option<Links>,
    /// What is wrong, the worst first.
    pub remarks: Vec<Remark>,
    /// What did not come out.
    pub unknown: Vec<String>,
    /// How many connections it took.
    pub connections: u32,
}

/// What is to be found out.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Speak TLS.
    pub https: bool,
    /// The `Host` to ask for, when it is another than that of the connection.
    pub name: Option<&'a str>,
    /// The path of an object of the user's own whose number may be counted on.
    pub link: Option<&'a str>,
    /// By which dates are judged.
    pub now: Timestamp,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The beginning of its body.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of that name, which is given in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|header| header.0 == name);
        found.map(|header| header.1.as_str())
    }
}

/// Headers as a whole, in bytes: what servers themselves take at most is 8 to 64 KiB.
const HEAD: usize = 64 << 10;

/// What is read of a body, in bytes: no honest security.txt is longer.
const BODY: usize = 32 << 10;

/// Finds it out: a connection each for the page and for security.txt, three for links.
///
/// # Errors
/// This is not HTTP, or nothing answers.
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

/// Fetches a path; of the body so many bytes at most.
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
    // The certificates take some, too.
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
                // Servers hang up without a farewell, and a body may go on for ever.
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
    // What is no HTTP shows it by its first byte, and may never send the end that is waited for.
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

/// Whether the headers are there, and of the body all that is said to come or so many bytes.
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

/// Reads an answer; of its body so many bytes at most.
///
/// # Errors
/// It is none.
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

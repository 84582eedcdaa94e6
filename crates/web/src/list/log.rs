//! Parses access logs in the common and combined formats, which nginx, Apache and other servers write. Text before the
//! client address, such as a virtual host, is permitted.
//!
//! ```text
//! 203.0.113.7 - - [22/Nov/2026:18:05:01 +0100] "GET /a.html HTTP/1.1" 200 1043 "-" "Mozilla/5.0"
//! ```
//!
//! Logs contain whole seconds. The time of a request within its second is drawn at random. So the requests of a second
//! arrive neither all at once nor at equal intervals.

use super::{LeftOut, escaped};
use assay_http::Method;
use jiff::Timestamp;
use jiff::fmt::strtime;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// The requests of an access log that can be replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The distinct requests, in the order of their first lines.
    pub requests: Vec<AccessLogRequest>,
    /// Time of each replayed line in nanoseconds since the first line, and the index of its request, in ascending order
    /// of time.
    pub times: Vec<(u64, u32)>,
    /// Lines that are not replayed, with the reasons.
    pub left_out: LeftOut,
    /// Number of lines in the log, without blank lines.
    pub lines: u64,
}

/// A request that an access log contains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessLogRequest {
    /// Whether the method is HEAD; else it is GET.
    pub head: bool,
    /// Path and query string.
    pub path: String,
    /// Expected status, which is the logged one. A logged status that depends on headers which the log lacks (304, 206)
    /// is replaced by 200.
    pub status: u16,
}

impl AccessLogRequest {
    /// Returns GET or HEAD.
    #[must_use]
    pub fn method(&self) -> Method {
        match self.head {
            true => Method::Head,
            false => Method::Get,
        }
    }
}

/// Parses a log. `seed` determines the random time of each request within its second.
#[must_use]
pub fn read(text: &[u8], seed: u64) -> Log {
    let mut log = Log::default();
    let mut known: BTreeMap<AccessLogRequest, u32> = BTreeMap::new();
    let mut seconds: Vec<(i64, u32)> = Vec::new();
    for (number, line) in (1u64..).zip(text.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        log.lines += 1;
        match entry(line) {
            Ok((at, asked)) => {
                let next = known.len() as u32;
                let which = *known.entry(asked).or_insert_with_key(|asked| {
                    log.requests.push(asked.clone());
                    next
                });
                seconds.push((at, which));
            }
            Err(why) => log.left_out.add(why, number),
        }
    }
    // Servers write a line when the answer ends, so the lines are not exactly in order of time.
    seconds.sort_by_key(|(at, _)| *at);
    let first = seconds.first().map_or(0, |(at, _)| *at);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    log.times = seconds
        .into_iter()
        .map(|(at, which)| {
            let second = u64::try_from(at - first).unwrap_or(0);
            let within = random.next_u64() % 1_000_000_000;
            // Times centuries apart saturate instead of wrapping around.
            let at = second.saturating_mul(1_000_000_000);
            (at.saturating_add(within), which)
        })
        .collect();
    log.times.sort_unstable();
    let begin = log.times.first().map_or(0, |(at, _)| *at);
    for (at, _) in &mut log.times {
        *at -= begin;
    }
    log
}

/// Parses a line. Returns its time in whole seconds, and its request.
fn entry(line: &[u8]) -> Result<(i64, AccessLogRequest), String> {
    let none = || "no line of an access log".to_owned();
    // The text before the time may contain brackets.
    let (at, rest) = line
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'[')
        .find_map(|(open, _)| {
            let inside = &line[open + 1..];
            let close = inside.iter().position(|byte| *byte == b']')?;
            Some((time(&inside[..close])?, &inside[close + 1..]))
        })
        .ok_or_else(none)?;
    let quoted = rest
        .trim_ascii_start()
        .strip_prefix(b"\"")
        .ok_or_else(none)?;
    let (request, rest) = unquoted(quoted).ok_or_else(none)?;
    let mut fields = rest
        .split(|byte| *byte == b' ')
        .filter(|field| !field.is_empty());
    let status = fields
        .next()
        .and_then(|field| std::str::from_utf8(field).ok()?.parse::<u16>().ok())
        .filter(|status| (100..600).contains(status))
        .ok_or_else(none)?;
    // HTTP/0.9 requests have no version, and their answers no status.
    let mut words = request.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("not a request of HTTP".to_owned());
    };
    if !version.starts_with(b"HTTP/") {
        return Err("not a request of HTTP".to_owned());
    }
    let head = match method {
        b"GET" => false,
        b"HEAD" => true,
        other => {
            return Err(match std::str::from_utf8(other).map(Method::parse) {
                Ok(Ok(Method::Other(name))) if name.len() <= 16 => {
                    format!("{name}, whose body is not in the log")
                }
                _ => "with a method that is none".to_owned(),
            });
        }
    };
    if !target.starts_with(b"/") {
        return Err("that ask no path of this server".to_owned());
    }
    let status = match status {
        // The client closed the connection, or the status is not a final answer.
        499 | 408 | 400 | 100..=199 => {
            return Err(format!(
                "with status {status}, which is no answer to a whole request"
            ));
        }
        304 | 206 => 200,
        other => other,
    };
    let path = escaped(target).ok_or("with a path longer than 8 KiB")?;
    Ok((at, AccessLogRequest { head, path, status }))
}

/// Parses `22/Nov/2026:18:05:01 +0100` into seconds since 1970.
fn time(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    if text.len() != 26 {
        return None;
    }
    let parsed = strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).ok()?;
    let at: Timestamp = parsed.to_timestamp().ok()?;
    Some(at.as_second())
}

/// Returns the bytes before the closing quote, and the rest of the line. Decodes the escapes of nginx and Apache.
fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some((out, &text[at + 1..])),
            b'\\' => {
                let (byte, length) = match text.get(at + 1)? {
                    b'x' => {
                        let digits = std::str::from_utf8(text.get(at + 2..at + 4)?).ok()?;
                        (u8::from_str_radix(digits, 16).ok()?, 4)
                    }
                    b'n' => (b'\n', 2),
                    b't' => (b'\t', 2),
                    b'r' => (b'\r', 2),
                    other => (*other, 2),
                };
                out.push(byte);
                at += length;
            }
            byte => {
                out.push(*byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &str = concat!(
        // nginx 1.22, combined format.
        "127.0.0.1 - - [22/Nov/2026:18:05:01 +0000] \"GET /a HTTP/1.1\" 200 615 \"-\" \"curl/7.88.1\"\n",
        "127.0.0.1 - - [22/Nov/2026:18:05:03 +0000] \"HEAD /a HTTP/1.1\" 200 0 \"-\" \"curl/7.88.1\"\n",
        "127.0.0.1 - - [22/Nov/2026:18:05:01 +0000] \"\\x16\\x03\\x01\" 400 157 \"-\" \"-\"\n",
        "127.0.0.1 - - [22/Nov/2026:18:05:01 +0000] \"GET /q\\x22\\xC3\\xA4 HTTP/1.1\" 404 1 \"-\" \"-\"\n",
        // Apache 2.4, common format, with a user and a virtual host. `%b` prints `-` for zero bytes.
        "::1 - frank [22/Nov/2026:19:05:02 +0100] \"GET /a HTTP/1.0\" 304 -\n",
        "host:80 ::1 - a[b [22/Nov/2026:18:05:02 +0000] \"POST /form HTTP/1.1\" 200 5\n",
        "::1 - - [22/Nov/2026:18:05:02 +0000] \"OPTIONS * HTTP/1.0\" 200 126\n",
        "::1 - - [22/Nov/2026:18:05:02 +0000] \"GET http://evil/ HTTP/1.1\" 200 126\n",
        "\n",
        "garbage\n",
    );

    #[test]
    fn lines_of_real_servers() {
        let log = read(REAL.as_bytes(), 1);
        let asked: Vec<(bool, &str, u16)> = log
            .requests
            .iter()
            .map(|asked| (asked.head, asked.path.as_str(), asked.status))
            .collect();
        // The request that got a 304 is replayed without its condition, so it equals the first request.
        assert_eq!(
            asked,
            [
                (false, "/a", 200),
                (true, "/a", 200),
                (false, "/q\"%C3%A4", 404)
            ]
        );
        assert_eq!(
            (log.lines, log.left_out.count(), log.times.len()),
            (9, 5, 4)
        );
        let text = log.left_out.describe();
        for why in [
            "POST, whose body",
            "OPTIONS",
            "no path of this",
            "no line of",
            "not a request",
        ] {
            assert!(text.contains(why), "{why}: {text}");
        }
        // The time zone counts: 19:05:02 +0100 is one second after the first line, plus or minus the random
        // part.
        let (last, _) = log.times[3];
        assert!((1_000_000_000..3_000_000_000).contains(&last), "{last}");
        assert!(log.times.is_sorted() && log.times[0].0 == 0);
        assert_eq!(read(REAL.as_bytes(), 1), log);
        assert_ne!(read(REAL.as_bytes(), 2).times, log.times);
    }

    #[test]
    fn nothing_makes_it_panic() {
        for text in [
            "",
            "[",
            "[]",
            "[22/Nov/2026:18:05:01 +0000]",
            "[22/Nov/2026:18:05:01 +0000] \"",
            "[22/Nov/2026:18:05:01 +0000] \"GET / HTTP/1.1\\",
            "[22/Nov/2026:18:05:01 +0000] \"GET / HTTP/1.1\\x",
            "[22/Nov/2026:18:05:01 +0000] \"GET / HTTP/1.1\" 70000",
            "[99/Nov/2026:18:05:01 +0000] \"GET / HTTP/1.1\" 200",
        ] {
            let log = read(text.as_bytes(), 1);
            assert!(log.times.is_empty(), "{text}");
            assert_eq!(log.left_out.count(), log.lines);
        }
        let far = ["2027", "3027", "9998"]
            .map(|year| format!("[22/Nov/{year}:18:05:01 +0000] \"GET / HTTP/1.1\" 200 1\n"));
        let log = read(far.concat().as_bytes(), 1);
        assert!(log.times.len() == 3 && log.times.is_sorted());
    }
}

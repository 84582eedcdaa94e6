//! Reads the requests of a load from a file: a list of URLs, or an access log.

pub mod log;

use assay_http::Url;
use std::collections::BTreeMap;

/// Lines of a file that are not part of the load: for each reason, the number of lines and the number of the first
/// line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<String, (u64, u64)>);

impl LeftOut {
    /// Adds the line with the number `line`, which is omitted because of `why`.
    pub fn add(&mut self, why: impl Into<String>, line: u64) {
        self.0.entry(why.into()).or_insert((0, line)).0 += 1;
    }

    /// Returns the number of omitted lines.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }

    /// Describes the omitted lines, as in `12 no line of a log (the first is line 3), 5 POST (line 9)`.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut all: Vec<(&String, &(u64, u64))> = self.0.iter().collect();
        all.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        let each = all.iter().enumerate().map(|(at, (why, (count, line)))| {
            let first = if at == 0 { "the first is " } else { "" };
            format!("{count} {why} ({first}line {line})")
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

/// Maximum length in bytes of a path from a file. Servers refuse longer paths.
const LONGEST: usize = 8 << 10;

/// Parses a list with one URL or path per line. Skips blank lines and lines that start with `#`. Omits URLs that do not
/// belong to the server of `base`.
#[must_use]
pub fn paths(text: &[u8], base: &Url) -> (Vec<String>, LeftOut) {
    let (mut paths, mut left_out) = (Vec::new(), LeftOut::default());
    for (number, line) in (1u64..).zip(text.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        match path_of(line, base) {
            Ok(path) => paths.push(path),
            Err(why) => left_out.add(why, number),
        }
    }
    (paths, left_out)
}

/// Returns the path of a line, which contains a path or a URL of the same server.
fn path_of(line: &[u8], base: &Url) -> Result<String, &'static str> {
    if line.starts_with(b"/") {
        return escaped(line).ok_or("longer than 8 KiB");
    }
    let text = std::str::from_utf8(line).map_err(|_| "neither a URL nor a path")?;
    let url = Url::parse(text).map_err(|_| "neither a URL nor a path")?;
    let server = |url: &Url| (url.is_tls(), url.host().to_owned(), url.port());
    match server(&url) == server(base) {
        true => Ok(url.path().to_owned()),
        false => Err("of another server"),
    }
}

/// Escapes a path for a request. Encodes bytes that are not printable ASCII as `%XX`, and removes the fragment.
fn escaped(path: &[u8]) -> Option<String> {
    let path = path.split(|byte| *byte == b'#').next().unwrap_or_default();
    let mut out = String::with_capacity(path.len());
    for byte in path {
        match byte {
            0x21..=0x7e => out.push(char::from(*byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    (out.len() <= LONGEST).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_paths_of_one_server() {
        let base = Url::parse("http://127.0.0.1:8080/").unwrap();
        let text = "# a comment\n/a\r\n\n/b?c=d#e\nhttp://127.0.0.1:8080/c\nhttp://other/d\nnonsense\n/\u{e4} b\n";
        let (paths, left_out) = paths(text.as_bytes(), &base);
        assert_eq!(paths, ["/a", "/b?c=d", "/c", "/%C3%A4%20b"]);
        assert_eq!(
            left_out.describe(),
            "1 neither a URL nor a path (the first is line 7), 1 of another server (line 6)"
        );
        let long = format!("/{}", "x".repeat(9000));
        assert_eq!(super::paths(long.as_bytes(), &base).1.count(), 1);
    }
}

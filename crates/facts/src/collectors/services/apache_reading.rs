//! Parses Apache's configuration as httpd does (httpd 2.4, `configuring.html` and `core.html`): joins continued lines,
//! inserts included files in place, evaluates `<IfModule>` and `<IfDefine>`, and separates the VirtualHosts.

use super::apache::{APACHE, MAINS};
use super::setting_lines::place;
use crate::gather::lossy;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Program, included_files};
use assay_host::Host;
use assay_model::FactPlace;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Limits of the parser: maximum depth of nested includes (httpd's own limit AP_MAX_INCLUDE_DEPTH is 20), and maximum
/// number of files.
const DEEPEST: usize = 20;
const MOST: usize = 1000;
/// Modules that are built into every httpd and need no LoadModule.
const STATIC: [&str; 8] = [
    "core",
    "so",
    "http",
    "http_core",
    "version",
    "unixd",
    "log_config",
    "mpm_common",
];

/// A directive of the configuration with its file and line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Name of the directive in lower case.
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// Path of the file that contains the directive; `line` is its first line, counted from 1.
    pub(crate) path: String,
    pub(crate) number: usize,
    pub(crate) place: FactPlace,
}

/// The main server, or a VirtualHost.
#[derive(Debug, Default)]
pub(crate) struct Server {
    /// Place where the VirtualHost begins; `None` for the main server.
    pub(crate) begins: Option<FactPlace>,
    pub(crate) lines: Vec<Line>,
}

impl Server {
    /// Returns the line that applies to a directive: the last one.
    pub(crate) fn last(&self, name: &str) -> Option<&Line> {
        self.lines.iter().rfind(|line| line.name == name)
    }
}

/// The configuration of Apache after all includes and conditions were evaluated.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The servers, the main server first.
    pub(crate) servers: Vec<Server>,
    /// Files that could not be read, each with the place of the directive that includes it.
    pub(crate) problems: Vec<(String, FactPlace)>,
}

impl Reading {
    /// Returns whether a server uses TLS. Its own `SSLEngine` applies, otherwise that of the main server; the default
    /// is no. The result may be wrong if the main file was not found.
    pub(crate) fn speaks_tls(&self, server: &Server) -> bool {
        let main = self.servers.first();
        let line = server.last("sslengine").or_else(|| main?.last("sslengine"));
        line.is_some_and(|line| !line.arguments.trim().eq_ignore_ascii_case("off"))
    }
}

/// Reads the configuration from the main file of Debian or Red Hat, if there is one.
pub(crate) fn read(host: &dyn Host) -> Reading {
    let mut reader = Reader {
        host,
        out: Reading::default(),
        root: PathBuf::new(),
        loaded: BTreeSet::new(),
        defined: BTreeSet::new(),
        open: Vec::new(),
        read: 0,
    };
    reader.out.servers.push(Server::default());
    let mut found = false;
    for main in MAINS {
        if host.exists(Path::new(main)).unwrap_or(false) {
            found = true;
            reader.root = Path::new(main)
                .parent()
                .unwrap_or(Path::new("/"))
                .to_owned();
            if main.ends_with("/conf/httpd.conf") {
                reader.root.pop();
            }
            reader.file(main, &mut State::default(), &FactPlace::from(main));
        }
    }
    if !found {
        for dir in APACHE {
            let mut names = host.list(Path::new(dir)).unwrap_or_default();
            names.sort();
            for name in names {
                let path = format!("{dir}/{}", lossy(&name));
                if path.ends_with(".conf") {
                    reader.file(
                        &path,
                        &mut State::default(),
                        &FactPlace::from(path.as_str()),
                    );
                }
            }
        }
    }
    reader.out
}

/// State of the parser at one point of the configuration.
#[derive(Clone, Default)]
struct State {
    /// Open sections, each with its name and whether httpd applies its content.
    sections: Vec<(String, bool)>,
    server: usize,
}

impl State {
    fn counts(&self) -> bool {
        self.sections.iter().all(|(_, counts)| *counts)
    }
}

struct Reader<'a> {
    host: &'a dyn Host,
    out: Reading,
    root: PathBuf,
    loaded: BTreeSet<String>,
    defined: BTreeSet<String>,
    open: Vec<String>,
    read: usize,
}

impl Reader<'_> {
    fn file(&mut self, path: &str, state: &mut State, from: &FactPlace) {
        self.read += 1;
        if self.open.len() >= DEEPEST || self.read > MOST {
            let why = format!("more than {MOST} files, or deeper than {DEEPEST}");
            return self.out.problems.push((why, from.clone()));
        }
        let text = match self.host.read_text(Path::new(path)) {
            Ok(text) => text,
            Err(error) => {
                let why = format!("`{path}` cannot be read: {}", error.reason());
                return self.out.problems.push((why, from.clone()));
            }
        };
        self.open.push(path.to_owned());
        for (number, line) in logical_lines(&text) {
            let whole = text.lines().nth(number - 1).unwrap_or_default();
            let at = place(path, number - 1, whole);
            self.line(path, (number, &line), state, at);
        }
        self.open.pop();
    }

    fn line(
        &mut self,
        path: &str,
        (number, line): (usize, &str),
        state: &mut State,
        at: FactPlace,
    ) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return;
        }
        if let Some(name) = line.strip_prefix("</") {
            let name = name.trim_end_matches('>').trim().to_ascii_lowercase();
            if name == "virtualhost" {
                state.server = 0;
            }
            state.sections.pop();
            return;
        }
        if let Some(head) = line.strip_prefix('<') {
            return self.section(head.trim_end_matches('>'), state, at);
        }
        let (name, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let (name, rest) = (name.to_ascii_lowercase(), rest.trim());
        if !state.counts() {
            return;
        }
        let first = rest.split_whitespace().next().unwrap_or_default();
        match name.as_str() {
            "include" | "includeoptional" => {
                let wanted = name == "include";
                self.include(rest.trim_matches('"'), wanted, state, at);
            }
            "loadmodule" => {
                self.loaded.insert(common_module_name(first));
            }
            "define" => {
                self.defined.insert(first.to_owned());
            }
            "undefine" => {
                self.defined.remove(first);
            }
            "serverroot" => self.root = PathBuf::from(rest.trim_matches('"')),
            _ => {
                let server = state.server;
                if let Some(server) = self.out.servers.get_mut(server) {
                    server.lines.push(Line {
                        name,
                        arguments: rest.to_owned(),
                        path: path.to_owned(),
                        number,
                        place: at,
                    });
                }
            }
        }
    }

    fn section(&mut self, head: &str, state: &mut State, at: FactPlace) {
        let mut words = head.split_whitespace();
        let name = words.next().unwrap_or_default().to_ascii_lowercase();
        let wanted = words.next().unwrap_or_default();
        let (not, wanted) = match wanted.strip_prefix('!') {
            Some(wanted) => (true, wanted),
            None => (false, wanted),
        };
        let counts = match name.as_str() {
            // Without any LoadModule line the loaded modules are unknown, so both branches may
            // apply.
            // httpd compares the name of the source file or of the module; no other name matches.
            "ifmodule" if !not && !is_module_name(wanted) => false,
            "ifmodule" if self.loaded.is_empty() => true,
            "ifmodule" => {
                let wanted = common_module_name(wanted);
                let there = self.loaded.contains(&wanted) || STATIC.contains(&wanted.as_str());
                there != not
            }
            "ifdefine" => self.defined.contains(wanted) != not,
            "ifversion" => {
                let (operator, version) = match words.next() {
                    Some(version) => (wanted, version),
                    None => ("=", wanted),
                };
                is_version(operator, version) != not
            }
            _ => true,
        };
        if name == "virtualhost" && state.counts() {
            state.server = self.out.servers.len();
            self.out.servers.push(Server {
                begins: Some(at),
                lines: Vec::new(),
            });
        }
        state.sections.push((name, counts));
    }

    fn include(&mut self, pattern: &str, wanted: bool, state: &mut State, at: FactPlace) {
        // The name contains a variable that httpd expands at start.
        if pattern.contains("${") {
            let why = format!("what is included as `{pattern}` is not known here");
            return self.out.problems.push((why, at));
        }
        // Paths are relative to the directory of the main file, as for nginx.
        let main = self.root.join("main");
        let found = included_files(Program::Nginx, &main, &main, pattern, &OfHost(self.host));
        let wild = pattern.contains(['*', '?', '[']);
        let paths = match found {
            Ok(paths) => paths,
            // A missing directory contains no files; permissions do not matter.
            Err(_)
                if matches!(
                    self.host.exists(&fixed_part(&self.root, pattern)),
                    Ok(false)
                ) =>
            {
                Vec::new()
            }
            Err(fault) => {
                return self
                    .out
                    .problems
                    .push((format!("`{pattern}`: {fault}"), at));
            }
        };
        // A pattern without a match is an error too, except for IncludeOptional.
        if wild && wanted && paths.is_empty() {
            let why = format!("Apache does not start: nothing matches `{pattern}`");
            return self.out.problems.push((why, at));
        }
        for path in paths {
            let absent = || matches!(self.host.exists(&path), Ok(false));
            match (wild || absent(), path.to_str()) {
                (false, Some(path)) => self.file(path, state, &at),
                (true, _) if !wild && wanted => {
                    let why = format!("Apache does not start: `{pattern}` does not exist");
                    self.out.problems.push((why, at.clone()));
                }
                (true, Some(path)) if wild => self.file(path, state, &at),
                _ => {}
            }
        }
    }
}

/// Returns whether the condition of an `<IfVersion>` section is true for httpd 2.4, the oldest supported release. Also
/// returns true if the result depends on the patch level, or if the condition is a pattern.
fn is_version(operator: &str, version: &str) -> bool {
    let mut parts = version
        .split('.')
        .map_while(|part| part.parse::<u32>().ok());
    let wanted = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let patch = parts.next().is_some();
    match operator {
        // Not a version, as in a cleaned file.
        _ if !version.starts_with(|letter: char| letter.is_ascii_digit()) => true,
        ">" if !patch => (2, 4) >= wanted,
        ">=" | ">" => (2, 4) >= wanted,
        "<" if !patch => (2, 4) < wanted,
        "<" | "<=" => (2, 4) <= wanted,
        "=" | "==" => (2, 4) == wanted,
        _ => true,
    }
}

/// Returns the directory before the first component that contains a wildcard.
fn fixed_part(root: &Path, pattern: &str) -> PathBuf {
    let whole = root.join(pattern);
    let parts = whole.components();
    let plain = |part: &std::path::Component<'_>| {
        let text = part.as_os_str().to_string_lossy();
        !text.contains(['*', '?', '['])
    };
    parts.take_while(plain).collect()
}

/// Returns the common name of a module: `ssl` for `mod_ssl.c` and for `ssl_module`.
fn common_module_name(name: &str) -> String {
    let name = name.trim_matches('"').to_ascii_lowercase();
    let name = name.strip_suffix(".c").unwrap_or(&name);
    let name = name.strip_prefix("mod_").unwrap_or(name);
    name.strip_suffix("_module").unwrap_or(name).to_owned()
}

/// Returns whether a module can have this name in `<IfModule>`: `mod_ssl.c` or `ssl_module`.
fn is_module_name(name: &str) -> bool {
    let name = name.trim_matches('"').to_ascii_lowercase();
    name.ends_with(".c") || name.ends_with("_module") || name.contains('$')
}

/// Joins continued lines. Each result has the number of its first line, counted from 1.
pub(crate) fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (at, line) in text.lines().enumerate() {
        let (body, more) = match line.strip_suffix('\\') {
            Some(body) => (body, true),
            None => (line, false),
        };
        match all.last_mut() {
            Some((_, last)) if goes_on => last.push_str(body),
            _ => all.push((at + 1, body.to_owned())),
        }
        goes_on = more;
    }
    all
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "asks httpd itself")]
mod tests {
    use super::*;
    use assay_host::{Recorded, Root};
    use std::process::Command;

    /// Returns the last SSLProtocol line of each server as `INDEX: VALUE`, and the number of problems.
    fn list_protocols(host: &Recorded) -> (Vec<String>, usize) {
        let reading = read(host);
        let servers = reading.servers.iter().enumerate();
        let lines = servers.filter_map(|(at, server)| {
            let line = server.last("sslprotocol")?;
            let words: Vec<&str> = line.arguments.split_whitespace().collect();
            Some(format!("{at}: {}", words.join(" ")))
        });
        (lines.collect(), reading.problems.len())
    }

    #[test]
    fn sections_and_lines_that_go_on() {
        let main = |text: &str| Recorded::new().file(MAINS[0], text);
        for (text, expected) in [
            (
                "SSLProtocol \\\n +SSLv3 \\\n +TLSv1.2\n",
                vec!["0: +SSLv3 +TLSv1.2"],
            ),
            (
                "sslPROTOCOL SSLv3\nSSLProtocol all -SSLv3\n",
                vec!["0: all -SSLv3"],
            ),
            (
                "LoadModule ssl_module x\n<IfModule !mod_ssl.c>\nSSLProtocol SSLv3\n</IfModule>\n",
                vec![],
            ),
            (
                "LoadModule ssl_module x\n<ifmodule ssl_module>\nSSLProtocol SSLv3\n</ifmodule>\n",
                vec!["0: SSLv3"],
            ),
            (
                "LoadModule a_module x\n<IfModule mod_ssl.c>\nSSLProtocol SSLv3\n</IfModule>\n",
                vec![],
            ),
            ("<IfDefine OLD>\nSSLProtocol SSLv3\n</IfDefine>\n", vec![]),
            (
                "<IfVersion < 2.4>\nSSLProtocol SSLv3\n</IfVersion>\n",
                vec![],
            ),
            (
                "<IfVersion !>= 2.4>\nSSLProtocol SSLv3\n</IfVersion>\n",
                vec![],
            ),
            (
                "<IfVersion >= 2.2>\nSSLProtocol SSLv3\n</IfVersion>\n",
                vec!["0: SSLv3"],
            ),
            (
                "<IfVersion 2.4>\nSSLProtocol SSLv3\n</IfVersion>\n",
                vec!["0: SSLv3"],
            ),
            (
                "Define OLD\n<IfDefine OLD>\nSSLProtocol SSLv3\n</IfDefine>\n",
                vec!["0: SSLv3"],
            ),
            (
                "<IfDefine !OLD>\nSSLProtocol SSLv3\n</IfDefine>\n",
                vec!["0: SSLv3"],
            ),
            (
                "SSLProtocol all\n<VirtualHost *:443>\nSSLProtocol SSLv3\n</VirtualHost>\n",
                vec!["0: all", "1: SSLv3"],
            ),
            ("# SSLProtocol SSLv3 \\\nSSLProtocol SSLv3\n", vec![]),
        ] {
            let (found, problems) = list_protocols(&main(text));
            assert_eq!(
                (found, problems),
                (expected.iter().map(|one| (*one).to_owned()).collect(), 0),
                "{text}"
            );
        }
    }

    #[test]
    fn includes_are_read_in_their_places() {
        let host = Recorded::new()
            .file(
                MAINS[0],
                "Include a.conf\nIncludeOptional b/*.conf\nIncludeOptional gone.conf\n",
            )
            .file("/etc/apache2/a.conf", "SSLProtocol SSLv3\n")
            .file("/etc/apache2/b/x.conf", "SSLProtocol all -SSLv3\n");
        assert_eq!(list_protocols(&host), (vec!["0: all -SSLv3".to_owned()], 0));
        for (text, problems) in [
            ("Include gone.conf\n", 1),
            ("Include gone/*.conf\n", 1),
            ("IncludeOptional gone.conf\n", 0),
            ("<IfDefine X>\nInclude gone.conf\n</IfDefine>\n", 0),
            ("Include ${DIR}/x.conf\n", 1),
            ("Include apache2.conf\n", 1),
        ] {
            assert_eq!(
                list_protocols(&Recorded::new().file(MAINS[0], text)).1,
                problems,
                "{text}"
            );
        }
    }

    /// Configuration fragments from which random files are built. httpd stops at an `Error` directive and prints its
    /// text, so that the test sees which lines httpd reads.
    const PIECES: [&str; 19] = [
        "<IfModule mod_alias.c>\n@\n</IfModule>\n",
        "<IfModule !mod_alias.c>\n@\n</IfModule>\n",
        "<ifmodule alias_module>\n@\n</ifmodule>\n",
        "<IfModule mod_ssl.c>\n@\n</IfModule>\n",
        "<IfModule !ssl_module>\n@\n</IfModule>\n",
        "<IfModule core.c>\n@\n</IfModule>\n",
        "<IfDefine one>\n@\n</IfDefine>\n",
        "<IfDefine !one>\n@\n</IfDefine>\n",
        "Define one\n",
        "UnDefine one\n",
        "# comment \\\nError 1\n",
        "ServerName \\\n a.example.org\n",
        "Include inner.conf\n",
        "IncludeOptional gone.conf\n",
        "Include parts/*.conf\n",
        "IncludeOptional parts/*.conf\n",
        "IncludeOptional parts/b?.conf\n",
        "LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so\n",
        "ServerAdmin x\n",
    ];

    fn throw(seed: &mut u64, limit: usize) -> usize {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(*seed >> 33).unwrap_or(0) % limit
    }

    fn pieces(seed: &mut u64, depth: usize) -> String {
        let mut out = String::new();
        for _ in 0..=throw(seed, 4) {
            let piece = PIECES[throw(seed, PIECES.len())];
            let inner = match throw(seed, 3) {
                0 if depth < 3 => pieces(seed, depth + 1),
                1 => format!("Er\\\nror {}\n", *seed % 97),
                _ => format!("Error {}\n", *seed % 97),
            };
            out.push_str(&piece.replace("@\n", &inner));
        }
        out
    }

    /// In random configurations, httpd and this parser stop at the same `Error` directive.
    #[test]
    fn attack_httpd_reads_the_same_lines() {
        let program = "/usr/sbin/apache2";
        if !Path::new(program).exists() {
            return assay_testing::skipped("apache2", "not installed");
        }
        let head = "ServerRoot /etc/apache2\nLoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n\
                    LoadModule alias_module /usr/lib/apache2/modules/mod_alias.so\nLoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n";
        let (mut ended, mut compared) = (0, 0);
        let tried = 60 * assay_testing::attack_factor();
        for at in 0..tried {
            let dir = tempfile::tempdir().unwrap();
            let etc = dir.path().join("etc/apache2");
            std::fs::create_dir_all(etc.join("parts")).unwrap();
            let mut seed = at;
            let write = |name: &str, text: String| std::fs::write(etc.join(name), text).unwrap();
            let body = pieces(&mut seed, 0);
            write(
                "inner.conf",
                format!("<IfDefine one>\nError {}\n</IfDefine>\n", seed % 89),
            );
            write("parts/b1.conf", "Define one\n".to_owned());
            write(
                "parts/a.conf",
                "<IfModule mod_ssl.c>\nError 5\n</IfModule>\n".to_owned(),
            );
            let text = format!("{head}{body}Error end\n");
            write("apache2.conf", text.clone());
            // httpd reads files at their absolute path; this parser reads them below a root
            // directory.
            let own = text.replace("/etc/apache2\n", &format!("{}\n", etc.display()));
            std::fs::write(etc.join("own.conf"), own).unwrap();
            let output = Command::new(program)
                .args(["-t", "-f"])
                .arg(etc.join("own.conf"))
                .output()
                .unwrap();
            let says = String::from_utf8_lossy(&output.stderr).into_owned();
            let theirs = says.lines().last().unwrap_or_default().trim().to_owned();
            if theirs.contains("error on line") {
                continue;
            }
            let reading = read(&Root::open(dir.path()).unwrap());
            let mut lines: Vec<&Line> = reading
                .servers
                .iter()
                .flat_map(|server| &server.lines)
                .collect();
            lines.retain(|line| line.name == "error");
            let ours = lines.first().map_or("", |line| line.arguments.as_str());
            compared += 1;
            ended += usize::from(ours != "end");
            assert_eq!(ours, theirs, "{text}\n{says}");
        }
        assert!(compared > 0 && ended > 0, "{compared} {ended}");
        assay_testing::attacked("random configurations of httpd", tried, tried);
    }
}

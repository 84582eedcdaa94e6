//! Supported servers: where their programs are, and how each is configured. All settings that are not written here keep
//! the program's defaults.

use super::served_directory;
use crate::{StudyError, settings};
use assay_host::{Host, Limits};
use assay_model::study::Configuration;
use serde::Deserialize;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const SCRIPT: &str = include_str!("static.js");

/// Directories of Apache's modules in common distributions.
const MODULES: [&str; 3] = [
    "/usr/lib/apache2/modules",
    "/usr/lib64/httpd/modules",
    "/usr/lib/httpd/modules",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Nginx,
    Lighttpd,
    Apache,
    Varnish,
    H2o,
    Caddy,
    Node,
}

/// Multi-processing module (MPM) of Apache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mpm {
    Event,
    Worker,
    Prefork,
}

impl Mpm {
    fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Worker => "worker",
            Self::Prefork => "prefork",
        }
    }
}

/// Server settings from a study's configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    server: Kind,
    mpm: Option<Mpm>,
    workers: Option<u32>,
    pub before: Option<String>,
    pub port: Option<u16>,
    #[serde(default)]
    lines: Vec<String>,
}

impl Wanted {
    /// Parses the settings.
    ///
    /// # Errors
    /// A setting is unknown, missing, or not for this server.
    pub fn of(one: &Configuration) -> Result<Self, StudyError> {
        let wanted: Self = settings::of_configuration(one)?;
        let wrong = |message: &str| {
            Err(StudyError::Setting {
                of: format!("configuration `{}`", one.name),
                message: message.to_owned(),
            })
        };
        let kind = wanted.server;
        let counts_workers = matches!(kind, Kind::Nginx | Kind::Lighttpd | Kind::H2o);
        match () {
            () if (kind == Kind::Apache) != wanted.mpm.is_some() => {
                wrong("mpm = \"event\", \"worker\" or \"prefork\" goes with server = \"apache\"")
            }
            () if (kind == Kind::Varnish) != wanted.before.is_some() => {
                wrong("before, the configuration behind it, goes with server = \"varnish\"")
            }
            () if wanted.workers.is_some() && !counts_workers => {
                wrong("workers goes with nginx, lighttpd and h2o")
            }
            () if wanted.workers.is_some_and(|n| !(1..=1024).contains(&n)) => {
                wrong("workers is from 1 to 1024")
            }
            () if kind == Kind::Node && !wanted.lines.is_empty() => {
                wrong("node has no configuration file for lines")
            }
            () if wanted.port == Some(0) => wrong("port is from 1 to 65535"),
            () => Ok(wanted),
        }
    }

    /// Returns the name of the program for users.
    pub fn program_name(&self) -> &'static str {
        match self.server {
            Kind::Nginx => "nginx",
            Kind::Lighttpd => "lighttpd",
            Kind::Apache => "Apache",
            Kind::Varnish => "Varnish",
            Kind::H2o => "h2o",
            Kind::Caddy => "Caddy",
            Kind::Node => "Node.js",
        }
    }

    /// Returns the possible names of the executable, and the Debian package that contains it.
    fn programs(&self) -> (&'static [&'static str], &'static str) {
        match self.server {
            Kind::Nginx => (&["nginx"], "nginx"),
            Kind::Lighttpd => (&["lighttpd"], "lighttpd"),
            Kind::Apache => (&["apache2", "httpd"], "apache2-bin"),
            Kind::Varnish => (&["varnishd"], "varnish"),
            Kind::H2o => (&["h2o"], "h2o"),
            Kind::Caddy => (&["caddy"], "caddy"),
            Kind::Node => (&["node", "nodejs"], "nodejs"),
        }
    }
}

/// A web server program that is installed on this machine.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub path: PathBuf,
    version: &'static [&'static str],
    /// Directory that contains Apache's modules.
    modules: PathBuf,
    /// Whether mod_unixd must be loaded as a module. In Debian this module is built in.
    unixd: bool,
}

impl Program {
    /// Finds the program.
    ///
    /// # Errors
    /// The program is missing. The error contains the name of the package.
    pub fn find(host: &dyn Host, wanted: &Wanted) -> Result<Self, String> {
        let (names, package) = wanted.programs();
        let missing = || {
            format!(
                "{} is not installed (Debian's package {package})",
                wanted.program_name()
            )
        };
        let mut found = names.iter().filter_map(|name| host.which(OsStr::new(name)));
        let path = found.next().ok_or_else(missing)?;
        let mut modules = PathBuf::new();
        if let Some(mpm) = wanted.mpm {
            let file = format!("mod_mpm_{}.so", mpm.name());
            let mut dirs = MODULES.iter().map(PathBuf::from);
            modules = dirs
                .find(|dir| host.stat(&dir.join(&file)).is_ok())
                .ok_or_else(|| format!("Apache has no {file} in {}", MODULES.join(", ")))?;
        }
        Ok(Self {
            path,
            unixd: host.stat(&modules.join("mod_unixd.so")).is_ok(),
            modules,
            version: match wanted.server {
                Kind::Nginx | Kind::Lighttpd | Kind::Apache | Kind::H2o => &["-v"],
                Kind::Varnish => &["-V"],
                Kind::Caddy => &["version"],
                Kind::Node => &["--version"],
            },
        })
    }

    /// Returns the first line of the program's version output.
    pub fn version(&self, host: &dyn Host) -> String {
        let argv = std::iter::once(self.path.as_os_str());
        let argv: Vec<&OsStr> = argv.chain(self.version.iter().map(OsStr::new)).collect();
        let Ok(output) = host.run(&argv, Limits::default()) else {
            return "not known".to_owned();
        };
        let all = [&output.stdout[..], &output.stderr[..]].concat();
        let all = String::from_utf8_lossy(&all);
        let mut lines = all.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.next().unwrap_or("not known").to_owned()
    }
}

/// Directories and ports that one server uses.
pub(super) struct Site<'a> {
    /// Directory of the served files.
    pub www: &'a Path,
    /// Directory with the server's configuration, which the server can only read.
    pub given: &'a Path,
    /// Directory to which the server can write.
    pub own: &'a Path,
    /// Port on 127.0.0.1 at which the server listens.
    pub port: u16,
    /// Port of the server behind this one, if this one is a proxy or cache.
    pub behind: Option<u16>,
}

/// A configuration file and the program's arguments.
pub(super) struct Configured {
    /// Name of the file in the directory of the server's configuration.
    pub file: &'static str,
    /// Content of the configuration file.
    pub text: String,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
}

/// Writes a server's configuration. The server stays in the foreground, logs no requests, and writes only
/// below its own directory.
pub(super) fn write_configuration(
    wanted: &Wanted,
    program: &Program,
    site: &Site<'_>,
) -> Configured {
    let (work, www, port) = (site.own.display(), site.www.display(), site.port);
    let lines = |indent: &str| {
        wanted.lines.iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{indent}{line}");
            text
        })
    };
    let given = |name: &str| site.given.join(name).into_os_string();
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    match wanted.server {
        Kind::Nginx => Configured {
            file: "nginx.conf",
            // sendfile and tcp_nopush as in Debian's file.
            text: format!(
                "worker_processes {workers};
daemon off;
pid {work}/nginx.pid;
error_log {work}/error.log;
events {{ worker_connections 768; }}
http {{
    sendfile on;
    tcp_nopush on;
    default_type application/octet-stream;
    access_log off;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    server {{
        listen 127.0.0.1:{port};
        root {www};
{lines}    }}
}}
",
                workers = wanted.workers.map_or("auto".to_owned(), |n| n.to_string()),
                lines = lines("        "),
            ),
            arguments: [
                words(&["-p"]),
                vec![site.own.into()],
                words(&["-e"]),
                vec![site.own.join("error.log").into()],
                words(&["-c"]),
                vec![given("nginx.conf")],
            ]
            .concat(),
        },
        Kind::Lighttpd => Configured {
            file: "lighttpd.conf",
            text: format!(
                "server.document-root = \"{www}\"
server.bind = \"127.0.0.1\"
server.port = {port}
server.errorlog = \"{work}/error.log\"
server.upload-dirs = ( \"{work}\" )
mimetype.assign = ( \"\" => \"application/octet-stream\" )
{workers}{lines}",
                workers = wanted
                    .workers
                    .filter(|n| *n > 1)
                    .map_or(String::new(), |n| format!("server.max-worker = {n}\n")),
                lines = lines(""),
            ),
            arguments: [words(&["-D", "-f"]), vec![given("lighttpd.conf")]].concat(),
        },
        Kind::Apache => {
            let mpm = wanted.mpm.unwrap_or(Mpm::Event);
            let unixd = match program.unixd {
                true => format!(
                    "LoadModule unixd_module {}/mod_unixd.so\n",
                    program.modules.display()
                ),
                false => String::new(),
            };
            // Numbers of processes and threads as in Debian's module files.
            let numbers = match mpm {
                Mpm::Prefork => {
                    "StartServers 5\nMinSpareServers 5\nMaxSpareServers 10\nMaxRequestWorkers 150\n"
                }
                Mpm::Event | Mpm::Worker => {
                    "StartServers 2\nMinSpareThreads 25\nMaxSpareThreads 75\nThreadLimit 64\n\
                     ThreadsPerChild 25\nMaxRequestWorkers 150\n"
                }
            };
            Configured {
                file: "apache.conf",
                text: format!(
                    "ServerRoot {work}
DefaultRuntimeDir {work}
PidFile {work}/apache.pid
ErrorLog {work}/error.log
LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so
{unixd}LoadModule authz_core_module {modules}/mod_authz_core.so
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
DocumentRoot {www}
<Directory {www}>
    AllowOverride None
    Require all granted
</Directory>
{numbers}{lines}",
                    mpm = mpm.name(),
                    modules = program.modules.display(),
                    lines = lines(""),
                ),
                arguments: [words(&["-DFOREGROUND", "-f"]), vec![given("apache.conf")]].concat(),
            }
        }
        Kind::Varnish => Configured {
            file: "varnish.vcl",
            text: format!(
                "vcl 4.0;
backend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; }}
{}",
                site.behind.unwrap_or(0),
                lines(""),
            ),
            // Cached objects stay for a day, so the server behind is not part of the measurement.
            arguments: [
                words(&["-F", "-j", "none", "-s", "malloc,256m", "-t", "86400", "-a"]),
                vec![format!("127.0.0.1:{port}").into()],
                words(&["-T", "127.0.0.1:0", "-n"]),
                vec![site.own.join("varnish").into()],
                words(&["-f"]),
                vec![given("varnish.vcl")],
            ]
            .concat(),
        },
        Kind::H2o => Configured {
            file: "h2o.conf",
            text: format!(
                "hosts:
  default:
    paths:
      /:
        file.dir: {www}
listen:
  host: 127.0.0.1
  port: {port}
error-log: {work}/error.log
pid-file: {work}/h2o.pid
{workers}{lines}",
                workers = wanted
                    .workers
                    .map_or(String::new(), |n| format!("num-threads: {n}\n")),
                lines = lines(""),
            ),
            arguments: [words(&["-m", "worker", "-c"]), vec![given("h2o.conf")]].concat(),
        },
        Kind::Caddy => Configured {
            file: "Caddyfile",
            text: format!(
                "{{
    admin off
    auto_https off
    storage file_system {work}
}}
http://127.0.0.1:{port} {{
    bind 127.0.0.1
    root * {www}
    file_server
{}}}
",
                lines("    "),
            ),
            arguments: [
                words(&["run", "--adapter", "caddyfile", "--config"]),
                vec![given("Caddyfile")],
            ]
            .concat(),
        },
        Kind::Node => Configured {
            file: "static.js",
            text: SCRIPT.to_owned(),
            arguments: vec![given("static.js"), site.www.into(), port.to_string().into()],
        },
    }
}

/// Returns the user id with which the servers run: `nobody` if assay runs as root, else `None`.
pub(super) fn server_user() -> Option<u32> {
    served_directory::is_root().then_some(served_directory::NOBODY)
}

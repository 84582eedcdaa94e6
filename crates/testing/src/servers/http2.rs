//! Web servers with HTTP/2. They serve HTTP/2 over TLS, and by prior knowledge without TLS.

use crate::servers::{
    check, find, find_program, free_port, open_dir, path_text, start, start_listening,
};
use assay_host::process::Running;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Program that serves HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2ServerKind {
    /// The web server nginx.
    Nginx,
    /// The web server h2o.
    H2o,
    /// Apache with the module mod_http2.
    Apache,
}

impl Http2ServerKind {
    /// All supported programs.
    pub const ALL: [Self; 3] = [Self::Nginx, Self::H2o, Self::Apache];

    /// Returns the name of the executable.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::H2o => "h2o",
            Self::Apache => "apache2",
        }
    }

    fn configuration(self, at: &At<'_>) -> String {
        let (dir, plain, tls, more) = (at.dir.display(), at.plain, at.tls, at.more);
        match self {
            Self::Nginx => format!(
                "{user}worker_processes 1; pid {dir}/pid; error_log {dir}/log;
events {{ worker_connections 1024; }}
http {{ sendfile on; access_log off; keepalive_requests 1000000;
client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
server {{ listen 127.0.0.1:{plain} http2; listen 127.0.0.1:{tls} ssl http2;
ssl_certificate {dir}/cert; ssl_certificate_key {dir}/key; root {dir}/www;
{more} }} }}
",
                user = match rustix::process::geteuid().is_root() {
                    true => "user nobody nogroup;\n",
                    false => "",
                },
            ),
            Self::H2o => format!(
                "hosts:
  default:
    paths:
      /:
        file.dir: {dir}/www
listen:
  host: 127.0.0.1
  port: {plain}
listen:
  host: 127.0.0.1
  port: {tls}
  ssl:
    certificate-file: {dir}/cert
    key-file: {dir}/key
    ocsp-update-interval: 0
num-threads: 1
{more}
"
            ),
            Self::Apache => {
                let module = |name: &str| {
                    format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n")
                };
                let modules: String = ["mpm_event", "authz_core", "ssl", "http2"]
                    .map(module)
                    .concat();
                format!(
                    "{modules}ServerRoot {dir}
ServerName localhost
PidFile {dir}/pid
ErrorLog {dir}/log
DefaultRuntimeDir {dir}
Listen 127.0.0.1:{plain}
Listen 127.0.0.1:{tls}
MaxKeepAliveRequests 0
DocumentRoot {dir}/www
{protocols}
<VirtualHost 127.0.0.1:{tls}>
SSLEngine on
SSLCertificateFile {dir}/cert
SSLCertificateKeyFile {dir}/key
</VirtualHost>
{user}{more}
",
                    protocols = match more.contains("Protocols") {
                        true => "",
                        false => "Protocols h2 h2c http/1.1",
                    },
                    user = match rustix::process::geteuid().is_root() {
                        true => "User nobody\nGroup nogroup\n",
                        false => "",
                    },
                )
            }
        }
    }
}

struct At<'a> {
    dir: &'a Path,
    plain: u16,
    tls: u16,
    more: &'a str,
}

/// A web server with a file `small` of 1,000 bytes and a file `large` of 3,000,000 bytes.
#[derive(Debug)]
pub struct Http2Server {
    _running: Running,
    plain: u16,
    tls: u16,
    dir: tempfile::TempDir,
}

impl Http2Server {
    /// Starts a server with additional lines in its configuration. Returns `None` and reports the reason if the server,
    /// its module or openssl is missing.
    ///
    /// # Panics
    /// The server is installed and does not start.
    #[must_use]
    pub fn start(kind: Http2ServerKind, more: &str) -> Option<Self> {
        if crate::servers::skip(&[kind.program(), "openssl"], false) {
            return None;
        }
        let module = Path::new("/usr/lib/apache2/modules/mod_http2.so");
        if kind == Http2ServerKind::Apache && !module.exists() {
            crate::skipped("apache2", "it has no mod_http2");
            return None;
        }
        match Self::begin(kind, more) {
            Ok(server) => Some(server),
            Err(error) => panic!("{}: {error}", kind.program()),
        }
    }

    fn begin(kind: Http2ServerKind, more: &str) -> io::Result<Self> {
        let program = find_program(kind.program())?;
        let dir = open_dir()?;
        let www = dir.path().join("www");
        fs::create_dir(&www)?;
        fs::write(www.join("small"), vec![b'x'; 1_000])?;
        fs::write(www.join("large"), vec![b'x'; 3_000_000])?;
        certificate(dir.path())?;
        let (config, log) = (dir.path().join("conf"), dir.path().join("log"));
        let tls = free_port()?;
        let (running, plain) = start_listening(&log, |plain| {
            let at = At {
                dir: dir.path(),
                plain,
                tls,
                more,
            };
            fs::write(&config, kind.configuration(&at))?;
            let mut command = Command::new(&program);
            match kind {
                Http2ServerKind::Nginx => {
                    command
                        .arg("-e")
                        .arg(&log)
                        .args(["-g", "daemon off;", "-c"])
                }
                Http2ServerKind::H2o => command.args(["-m", "worker", "-c"]),
                Http2ServerKind::Apache => command.args(["-D", "FOREGROUND", "-f"]),
            };
            command.arg(&config);
            start(command)
        })?;
        // It opens both ports in sequence.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, tls));
        let end = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(address).is_err() {
            if Instant::now() > end {
                return Err(io::Error::other("it does not listen for TLS"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Self {
            _running: running,
            plain,
            tls,
            dir,
        })
    }

    /// Returns the URL of a path that begins with `/`.
    #[must_use]
    pub fn url(&self, tls: bool, path: &str) -> String {
        match tls {
            true => format!("https://127.0.0.1:{}{path}", self.tls),
            false => format!("http://127.0.0.1:{}{path}", self.plain),
        }
    }

    /// Returns the path of the self-signed certificate.
    #[must_use]
    pub fn certificate(&self) -> String {
        path_text(&self.dir.path().join("cert"))
    }
}

/// Writes a private key and a certificate for 127.0.0.1 to the files `key` and `cert`.
fn certificate(dir: &Path) -> io::Result<()> {
    let openssl = find("openssl").map_or_else(|| "openssl".to_owned(), |path| path_text(&path));
    let (key, cert) = (path_text(&dir.join("key")), path_text(&dir.join("cert")));
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
                 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
                 -addext basicConstraints=CA:FALSE -keyout";
    let mut argv = vec![openssl];
    argv.extend(words.split_whitespace().map(str::to_owned));
    argv.extend([key, "-out".to_owned(), cert]);
    check(&argv)
}

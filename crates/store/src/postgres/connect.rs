//! Connects to a PostgreSQL server that a URL and the environment variables of libpq describe. Passwords do not leave
//! this module.

use super::encryption::{Encryption, TlsFiles, TlsMode};
use super::guard::{Guard, Limits, Place};
use crate::StoreError;
use crate::store_url::masked;
use ::postgres::config::Host;
use ::postgres::error::SqlState;
use ::postgres::{Client, Config, NoTls};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Oldest supported version of PostgreSQL.
const OLDEST: u32 = 150_000;
/// SQL that reads the version and configures query planning. Queries are short, so JIT compilation and parallel workers
/// are disabled, and pages are assumed to be in memory.
const PLANNED: &str = "SELECT current_setting('server_version_num'), set_config('jit', 'off', false),
    set_config('max_parallel_workers_per_gather', '0', false), set_config('random_page_cost', '1.1', false)";
/// Hint for the user if the server cannot be reached.
const AWAY: &str =
    "; what was stored before is there when the server is; another store is named with --store";
/// Time limit for opening a connection.
const TO_CONNECT: Duration = Duration::from_secs(10);
/// Default socket directory of PostgreSQL on Debian.
const SOCKETS: &str = "/var/run/postgresql";
/// Maximum size of a password file in bytes.
const LONGEST_PASSFILE: u64 = 1 << 20;

/// Parsed location of a database: servers, database, user and encryption.
pub(super) struct Address {
    config: Config,
    /// TLS configuration; `None` if all connections are unencrypted.
    encryption: Option<Encryption>,
    /// Location of the database for messages, without the password.
    pub(super) shown: PathBuf,
}

impl Address {
    /// Parses a URL and reads the environment variables of libpq.
    pub(super) fn read(url: &Path) -> Result<Self, StoreError> {
        let text = url.to_string_lossy();
        let mut shown = PathBuf::from(masked(&text));
        let refuse = |reason: String, shown: &Path| StoreError::Foreign {
            path: shown.to_owned(),
            reason,
        };
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let setting = |key: &str, environment: &str| {
            parameter(&text, key)
                .filter(|value| !value.is_empty())
                .or_else(|| variable(environment))
        };
        let mode = match setting("sslmode", "PGSSLMODE") {
            None => None,
            Some(mode) => Some(TlsMode::parse(&mode).ok_or_else(|| {
                let mode: String = mode.escape_debug().take(40).collect();
                let known = "disable, prefer, require, verify-ca and verify-full";
                refuse(
                    format!("there is no sslmode {mode}: it is one of {known}"),
                    &shown,
                )
            })?),
        };
        if setting("channel_binding", "PGCHANNELBINDING").as_deref() == Some("require") {
            let reason = "channel_binding=require is not possible; sslmode=verify-full is";
            return Err(refuse(reason.to_owned(), &shown));
        }
        let file = |key, environment| setting(key, environment).map(PathBuf::from);
        let files = TlsFiles {
            authorities: file("sslrootcert", "PGSSLROOTCERT"),
            certificate: file("sslcert", "PGSSLCERT"),
            key: file("sslkey", "PGSSLKEY"),
        };
        let mut config: Config = without_tls_parameters(&text)
            .parse()
            .map_err(|error: ::postgres::Error| refuse(error.to_string(), &shown))?;
        // This text may be part of a password.
        let odd = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
        if config.get_hosts().iter().any(odd) {
            let reason = "it has more than one @: in a password it is written as %40".to_owned();
            return Err(refuse(reason, &shown));
        }
        if config.get_user().is_none() {
            let user = variable("PGUSER")
                .or_else(|| variable("USER"))
                .or_else(|| variable("LOGNAME"));
            let Some(user) = user else {
                return Err(refuse(
                    "it names no user, and neither does PGUSER".to_owned(),
                    &shown,
                ));
            };
            config.user(&user);
        }
        let user = config.get_user().unwrap_or_default().to_owned();
        if config.get_dbname().is_none() {
            let database = variable("PGDATABASE").unwrap_or_else(|| user.clone());
            config.dbname(&database);
        }
        if config.get_hosts().is_empty() {
            match variable("PGHOST") {
                Some(host) if !host.starts_with('/') => config.host(&host),
                place => config.host_path(place.unwrap_or_else(|| SOCKETS.to_owned())),
            };
        }
        if config.get_ports().is_empty()
            && let Some(port) = variable("PGPORT").and_then(|text| text.parse().ok())
        {
            config.port(port);
        }
        if config.get_password().is_none() {
            match variable("PGPASSWORD") {
                Some(password) => {
                    config.password(password);
                }
                None => from_file(&mut config, &user),
            }
        }
        config.application_name("assay");
        config.connect_timeout(TO_CONNECT);
        config.keepalives_idle(Duration::from_secs(60));
        resolve(&mut config).map_err(|reason| refuse(reason, &shown))?;
        let mode = mode.unwrap_or(match is_local(&config) {
            true => TlsMode::Disable,
            false => TlsMode::VerifyFull,
        });
        let direct = setting("sslnegotiation", "PGSSLNEGOTIATION").as_deref() == Some("direct");
        let over_tcp = config
            .get_hosts()
            .iter()
            .any(|host| matches!(host, Host::Tcp(_)));
        let encryption = match mode {
            TlsMode::Disable => None,
            _ if !over_tcp => None,
            _ => Some(
                Encryption::new(mode, direct, &files).map_err(|reason| refuse(reason, &shown))?,
            ),
        };
        if shown.as_os_str().is_empty() {
            shown = PathBuf::from("postgresql://");
        }
        Ok(Self {
            config,
            encryption,
            shown,
        })
    }

    /// Connects to the first server that answers, and checks its version.
    pub(super) fn connect(&self) -> Result<(Client, Guard), StoreError> {
        let mut failed = self.refused("it names no server".to_owned());
        for place in self.places() {
            let mut guard = match Guard::connect(
                &place,
                self.encryption.as_ref(),
                TO_CONNECT,
                Limits::default(),
            ) {
                Ok(guard) => guard,
                Err(error) => {
                    failed = self.refused(format!("error connecting to server: {error}{AWAY}"));
                    continue;
                }
            };
            let connected = self.through(&guard).connect(NoTls);
            guard.remove_dir();
            match connected {
                Ok(client) => return self.check_version(client, guard),
                Err(error) => failed = self.guarded_error(&error, &guard),
            }
        }
        Err(failed)
    }

    /// Returns the socket addresses of all servers of the URL, in the order of the URL.
    fn places(&self) -> Vec<Place> {
        let (hosts, ports) = (self.config.get_hosts(), self.config.get_ports());
        let addresses = self.config.get_hostaddrs();
        let count = hosts.len().max(addresses.len());
        let place = |at: usize| {
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
            let tcp = |address, host: Option<&Host>| {
                let name = match host {
                    Some(Host::Tcp(name)) => name.trim_matches(['[', ']']).to_owned(),
                    _ => SocketAddr::ip(&address).to_string(),
                };
                Place::Tcp { address, name }
            };
            match (addresses.get(at), hosts.get(at)) {
                (Some(address), host) => Some(tcp((*address, port).into(), host)),
                (None, Some(Host::Unix(dir))) => {
                    Some(Place::Unix(dir.join(format!(".s.PGSQL.{port}"))))
                }
                // A name beside a socket, which has no address.
                (None, Some(host @ Host::Tcp(name))) => {
                    let found = assay_host::resolve::resolve_addresses(name, port, TO_CONNECT);
                    let address = found.ok()?.first().copied()?;
                    Some(tcp(address, Some(host)))
                }
                (None, None) => None,
            }
        };
        (0..count).filter_map(place).collect()
    }

    /// Returns the client configuration for a connection through a guard.
    fn through(&self, guard: &Guard) -> Config {
        let mut config = Config::new();
        config.host_path(guard.dir()).port(Guard::PORT);
        config.application_name("assay");
        config.target_session_attrs(self.config.get_target_session_attrs());
        if let Some(user) = self.config.get_user() {
            config.user(user);
        }
        if let Some(database) = self.config.get_dbname() {
            config.dbname(database);
        }
        if let Some(password) = self.config.get_password() {
            config.password(password);
        }
        if let Some(options) = self.config.get_options() {
            config.options(options);
        }
        config
    }

    fn refused(&self, reason: String) -> StoreError {
        let path = self.shown.clone();
        StoreError::Postgres { path, reason }
    }

    /// Like [`Address::error`], but explains why the guard closed the connection.
    pub(super) fn guarded_error(&self, failed: &::postgres::Error, guard: &Guard) -> StoreError {
        match guard.reason() {
            Some(why) => self.refused(format!(
                "the server was given up: {why}; look at the server, or name another store with --store"
            )),
            None => self.error(failed),
        }
    }

    fn check_version(
        &self,
        mut client: Client,
        guard: Guard,
    ) -> Result<(Client, Guard), StoreError> {
        let row = client
            .query_one(PLANNED, &[])
            .map_err(|failed| self.guarded_error(&failed, &guard))?;
        let version: u32 = row.get::<_, String>(0).parse().unwrap_or(0);
        if version < OLDEST {
            return Err(StoreError::Foreign {
                path: self.shown.clone(),
                reason: format!(
                    "its server is PostgreSQL {}, and a store needs 15 or newer",
                    version / 10_000
                ),
            });
        }
        Ok((client, guard))
    }

    /// Converts an error of the server or the connection to an error with a way to proceed.
    pub(super) fn error(&self, failed: &::postgres::Error) -> StoreError {
        let path = self.shown.clone();
        let code = failed.code();
        let is = |all: &[SqlState]| code.is_some_and(|code| all.contains(code));
        if is(&[SqlState::DISK_FULL]) {
            return StoreError::Full { path };
        }
        let way_out = match () {
            () if is(&[
                SqlState::INVALID_PASSWORD,
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            ]) =>
            {
                "; the password comes from ~/.pgpass, PGPASSFILE, PGPASSWORD or the URL"
            }
            () if is(&[SqlState::INVALID_CATALOG_NAME]) => "; `createdb` makes it",
            () if is(&[SqlState::INSUFFICIENT_PRIVILEGE]) => {
                "; a store needs CREATE on the database, once, and its schema assay"
            }
            () if is(&[SqlState::READ_ONLY_SQL_TRANSACTION]) => {
                "; this server is a standby, or read-only: name the one that takes writes"
            }
            () if code.is_none() => AWAY,
            () => "",
        };
        // The detail line of the server says more than its message.
        let said = match failed.as_db_error() {
            Some(error) => error.message().to_owned(),
            None => {
                let mut said = failed.to_string();
                let mut cause = std::error::Error::source(failed);
                while let Some(inner) = cause {
                    let text = inner.to_string();
                    if !said.contains(&text) {
                        said = format!("{said}: {text}");
                    }
                    cause = inner.source();
                }
                said
            }
        };
        let said: String = said.escape_debug().take(300).collect();
        StoreError::Postgres {
            path,
            reason: format!("{said}{way_out}"),
        }
    }
}

/// Returns the decoded value of a parameter of a URL.
fn parameter(url: &str, name: &str) -> Option<String> {
    let (_, parameters) = url.split_once('?')?;
    let mut all = parameters
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    let (_, value) = all.find(|(key, _)| *key == name)?;
    let value = percent_encoding::percent_decode_str(value);
    Some(value.decode_utf8_lossy().into_owned())
}

/// Parameters of libpq that assay implements itself because the client library does not know them.
const OF_TLS: [&str; 6] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslnegotiation",
    "channel_binding",
];

/// Returns the URL without the TLS parameters.
fn without_tls_parameters(url: &str) -> String {
    let Some((before, parameters)) = url.split_once('?') else {
        return url.to_owned();
    };
    let kept: Vec<&str> = parameters
        .split('&')
        .filter(|pair| !OF_TLS.contains(&pair.split('=').next().unwrap_or_default()))
        .collect();
    match kept.is_empty() {
        true => before.to_owned(),
        false => format!("{before}?{}", kept.join("&")),
    }
}

/// Returns whether the server is on this machine, so that the connection does not leave it.
fn is_local(config: &Config) -> bool {
    let near = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name
                    .parse()
                    .is_ok_and(|address: IpAddr| address.is_loopback())
        }
    };
    match config.get_hostaddrs() {
        [] => config.get_hosts().iter().all(near),
        all => all.iter().all(IpAddr::is_loopback),
    }
}

/// Resolves host names with the system's resolver, because a static binary contains no resolver.
fn resolve(config: &mut Config) -> Result<(), String> {
    if !config.get_hostaddrs().is_empty() {
        return Ok(());
    }
    let hosts = config.get_hosts().to_vec();
    let ports = config.get_ports().to_vec();
    let mut found: Vec<IpAddr> = Vec::new();
    for (at, host) in hosts.iter().enumerate() {
        let Host::Tcp(name) = host else {
            // The library needs as many addresses as hosts, and a socket has none.
            return Ok(());
        };
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let all = assay_host::resolve::resolve_addresses(name, port, TO_CONNECT)
            .map_err(|error| format!("{name}: {error}"))?;
        let first = all
            .first()
            .ok_or_else(|| format!("{name} has no address"))?;
        found.push(first.ip());
    }
    for address in found {
        config.hostaddr(address);
    }
    Ok(())
}

/// Reads the password from the password file (libpq, "The Password File"). Like libpq, ignores a file that other users
/// can read.
fn from_file(config: &mut Config, user: &str) {
    let path = match std::env::var_os("PGPASSFILE") {
        Some(path) => PathBuf::from(path),
        None => match std::env::var_os("HOME") {
            Some(home) => PathBuf::from(home).join(".pgpass"),
            None => return,
        },
    };
    let Ok(meta) = std::fs::metadata(&path) else {
        return;
    };
    if !meta.is_file() || meta.mode() & 0o077 != 0 || meta.len() > LONGEST_PASSFILE {
        return;
    }
    let Ok(text) = std::fs::read_to_string(&path) else {
        return;
    };
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        _ => "localhost".to_owned(),
    };
    let port = config
        .get_ports()
        .first()
        .copied()
        .unwrap_or(5432)
        .to_string();
    let database = config.get_dbname().unwrap_or_default().to_owned();
    let wanted = [host.as_str(), &port, &database, user];
    if let Some(password) = text.lines().find_map(|line| password(line, wanted)) {
        config.password(password);
    }
}

/// Returns the password in a line `host:port:database:user:password` if the other fields of the line match.
fn password(line: &str, wanted: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let last = fields.len() - 1;
        match letter {
            '\\' => fields[last].extend(letters.next()),
            ':' if fields.len() < 5 => fields.push(String::new()),
            letter => fields[last].push(letter),
        }
    }
    let [host, port, database, user, password] = <[String; 5]>::try_from(fields).ok()?;
    let found = [host, port, database, user];
    let fits = |(found, wanted): (&String, &str)| found == "*" || found == wanted;
    found.iter().zip(wanted).all(fits).then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_url::is_url;

    #[test]
    fn no_message_has_a_password() {
        for url in [
            "postgresql://me:s3cret@db/assay",
            "postgresql://me:s3c:r3t@db:5433/assay?password=s3cret",
            "postgres://me:s3cret@/assay?host=/run",
            "postgresql://db/assay?password=s3cret",
            "postgresql://me:s3cret@%zz/",
            "postgresql://me:s3cret@db:port/",
            "postgresql://me:a/s3cret@db/x",
            "postgresql://me:a?s3cret@db/x",
            "postgresql://me:a@s3cret@db/x",
            "postgresql://me:a@b?s3cret@db/x",
            "postgresql://me:pw@db/x?password=a@s3cret",
            "postgresql://me:s3cret",
            "postgresql://me:s3cret/db",
            "postgresql://me:7s3cret?x=y",
        ] {
            assert!(is_url(Path::new(url)));
            assert!(!masked(url).contains("s3c"), "{}", masked(url));
            if let Err(error) = Address::read(Path::new(url)) {
                assert!(!format!("{error} {error:?}").contains("s3c"), "{error:?}");
            }
        }
    }

    #[test]
    fn a_network_has_tls_unless_the_url_says_otherwise() {
        for (url, encrypted) in [
            ("postgresql://me@/assay", false),
            ("postgresql://me:x@127.0.0.1/assay", false),
            ("postgresql://me:x@[::1]/assay", false),
            ("postgresql://me@/assay?host=/run", false),
            ("postgresql://me@/assay?host=/run&sslmode=require", false),
            ("postgresql://me:x@192.0.2.1/assay", true),
            ("postgresql://me:x@127.0.0.1,192.0.2.1/assay", true),
            ("postgresql://me:x@localhost/assay?hostaddr=192.0.2.1", true),
            ("postgresql://me:x@192.0.2.1/assay?sslmode=disable", false),
            ("postgresql://me:x@192.0.2.1/assay?sslmode=require", true),
            (
                "postgresql://me:x@127.0.0.1/assay?sslmode=verify-full",
                true,
            ),
            ("postgresql://me:x@127.0.0.1/assay?sslmode=prefer", true),
        ] {
            let read = Address::read(Path::new(url));
            let address = read.unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(address.encryption.is_some(), encrypted, "{url}");
        }
        for (url, named) in [
            ("postgresql://me@192.0.2.1/a?sslmode=on", "verify-full"),
            (
                "postgresql://me@192.0.2.1/a?sslrootcert=/nowhere",
                "/nowhere",
            ),
            (
                "postgresql://me@192.0.2.1/a?channel_binding=require",
                "sslmode",
            ),
            (
                "postgresql://me@192.0.2.1/a?sslmode=require&sslcert=/no%20file&sslkey=/k",
                "/no file",
            ),
        ] {
            let error = Address::read(Path::new(url)).err().unwrap().to_string();
            assert!(error.contains(named), "{url}: {error}");
        }
    }

    #[test]
    fn lines_of_the_file_of_passwords() {
        let wanted = ["db", "5432", "assay", "me"];
        assert_eq!(
            password("db:5432:assay:me:a:b\\c", wanted).as_deref(),
            Some("a:bc")
        );
        assert_eq!(password("*:*:*:me:x", wanted).as_deref(), Some("x"));
        assert_eq!(password("db:5432:other:me:x", wanted), None);
        assert_eq!(password("#*:*:*:*:x", wanted), None);
        assert_eq!(password("db:5432", wanted), None);
        assert_eq!(
            password("d\\:b:*:*:*:x", ["d:b", "1", "a", "b"]).as_deref(),
            Some("x")
        );
    }
}

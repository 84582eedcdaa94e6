//! A private Dovecot mail server with two password databases (passdb).

use crate::servers::{find_program, open_dir, path_text, start, start_listening};
use assay_host::process::Running;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the user, who exists only in the SQL database.
pub const USER: &str = "ann@example.org";
/// Password of the user, with characters that need quoting.
pub const PASSWORD: &str = "tea \"and\" c\\ake";
/// Id of the user `nobody`, who owns the mail because Dovecot does not serve mail as root.
const NOBODY: u32 = 65_534;

/// Dovecot 2.3 with one configuration file. It searches a user in PAM first, then in SQLite.
#[derive(Debug)]
pub struct Dovecot {
    _master: Running,
    port: u16,
    dir: tempfile::TempDir,
}

impl Dovecot {
    /// Starts Dovecot. This needs root, dovecot-imapd, dovecot-sqlite, and the PAM service `dovecot` of Debian's
    /// package.
    ///
    /// # Errors
    /// A requirement is missing, or Dovecot does not start.
    pub fn start() -> io::Result<Self> {
        Self::asking(PAM_FIRST)
    }

    /// Starts Dovecot without PAM, so that logins are fast.
    ///
    /// # Errors
    /// See [`Dovecot::start`].
    pub fn without_pam() -> io::Result<Self> {
        Self::asking("")
    }

    fn asking(first: &str) -> io::Result<Self> {
        let program = find_program("dovecot")?;
        let dir = open_dir()?;
        let mail = dir.path().join("mail");
        fs::create_dir(&mail)?;
        chown(&mail, Some(NOBODY), Some(NOBODY))?;
        users(dir.path())?;
        let config = dir.path().join("dovecot.conf");
        let log = dir.path().join("log");
        let (master, port) = start_listening(&log, |port| {
            fs::write(&config, write_configuration_text(dir.path(), port, first))?;
            let mut command = Command::new(&program);
            command.arg("-F").arg("-c").arg(&config);
            start(command)
        })?;
        Ok(Self {
            _master: master,
            port,
            dir,
        })
    }

    /// Returns the address of the IMAP server as `HOST:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the path of a file whose first line is the password.
    #[must_use]
    pub fn password_file(&self) -> PathBuf {
        self.dir.path().join("password")
    }

    /// Returns the path of the configuration file.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("dovecot.conf")
    }

    /// Returns the command that validates a configuration, whose path replaces `{file}`.
    #[must_use]
    pub fn validate(&self) -> Vec<String> {
        ["doveconf", "-n", "-c", "{file}"]
            .map(ToOwned::to_owned)
            .to_vec()
    }

    /// Returns the command that makes Dovecot read its configuration again.
    #[must_use]
    pub fn reload(&self) -> Vec<String> {
        let config = path_text(&self.config());
        ["doveadm", "-c", &config, "reload"]
            .map(ToOwned::to_owned)
            .to_vec()
    }

    /// Returns how often PAM has refused a login.
    #[must_use]
    pub fn asked_pam(&self) -> usize {
        self.log().matches("pam_authenticate() failed").count()
    }

    /// Returns the content of the log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

fn users(dir: &Path) -> io::Result<()> {
    let sql = |error: rusqlite::Error| io::Error::other(error.to_string());
    let file = dir.join("users.sqlite");
    let base = rusqlite::Connection::open(&file).map_err(sql)?;
    base.execute(
        "CREATE TABLE users (userid TEXT PRIMARY KEY, password TEXT NOT NULL)",
        [],
    )
    .map_err(sql)?;
    base.execute("INSERT INTO users VALUES (?1, ?2)", [USER, PASSWORD])
        .map_err(sql)?;
    drop(base);
    // The authentication process runs as `dovecot`.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644))?;
    fs::write(
        dir.join("sql.conf"),
        format!(
            "driver = sqlite
connect = {}
default_pass_scheme = PLAIN
password_query = SELECT userid AS user, password FROM users WHERE userid = '%u'
",
            file.display()
        ),
    )?;
    let password = dir.join("password");
    fs::write(&password, format!("{PASSWORD}\n"))?;
    fs::set_permissions(&password, fs::Permissions::from_mode(0o600))
}

/// Configuration that searches system users in PAM before SQL, as in Dovecot's example configuration.
const PAM_FIRST: &str = "passdb {
  driver = pam
  args = dovecot
}
";

fn write_configuration_text(dir: &Path, port: u16, first: &str) -> String {
    let dir = dir.display();
    format!(
        "base_dir = {dir}/run
state_dir = {dir}/state
log_path = {dir}/log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = yes
auth_verbose = yes
mail_location = maildir:{dir}/mail/%u
# Every login at once, as on a server of its own.
auth_worker_max_count = 30
mail_max_userip_connections = 100

service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service anvil {{
  chroot =
}}

{first}passdb {{
  driver = sql
  args = {dir}/sql.conf
}}
userdb {{
  driver = static
  args = uid={NOBODY} gid={NOBODY} home={dir}/mail/%u
}}
"
    )
}

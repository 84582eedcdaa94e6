//! URLs of shares: `smb://[user@]server[:port]/share[/directory]` and
//! `nfs://server[:port]/export[?uid=UID&gid=GID&mountport=PORT]`.

use crate::ShareError;
use crate::nfs_client::NFS_PORT;

/// Default TCP port of SMB.
const PORT: u16 = 445;

/// Protocol of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareProtocol {
    /// SMB.
    Smb,
    /// NFS 3.
    Nfs,
}

/// Options behind the path of an NFS URL, with the names that libnfs uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NfsOptions {
    uid: Option<u32>,
    gid: Option<u32>,
    mount_port: Option<u16>,
}

/// A share on a server, from a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareUrl {
    protocol: ShareProtocol,
    options: NfsOptions,
    host: String,
    port: u16,
    user: Option<String>,
    share: String,
    directory: String,
}

impl ShareUrl {
    /// Returns whether a text is a URL of a share.
    #[must_use]
    pub fn is_share(word: &str) -> bool {
        let scheme = word
            .split_once("://")
            .map(|(scheme, _)| scheme.to_ascii_lowercase());
        scheme.is_some_and(|scheme| ["smb", "cifs", "nfs"].contains(&scheme.as_str()))
    }

    /// Parses a URL.
    ///
    /// # Errors
    /// The URL has no share, or contains a password.
    pub fn parse(word: &str) -> Result<Self, ShareError> {
        let fail = |why: &str| ShareError::Url {
            url: hide_password(word),
            why: why.to_owned(),
        };
        let (scheme, rest) = word.split_once("://").unwrap_or(("", word));
        if scheme.eq_ignore_ascii_case("nfs") {
            return Self::parse_nfs(rest).map_err(|why| fail(&why));
        }
        let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, server) = match server.rsplit_once('@') {
            Some((user, server)) => (Some(user), server),
            None => (None, server),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err(fail(
                "a password on a command line is visible to every user. Write the login into a file that \
                 only you can read, in the form of smbclient -A, and give it with --auth-file FILE",
            ));
        }
        let (host, port) =
            split_port(server, PORT).ok_or_else(|| fail("the port is not a number"))?;
        let (share, directory) = path
            .trim_end_matches('/')
            .split_once('/')
            .unwrap_or((path, ""));
        let share = share.trim_end_matches('/');
        if host.is_empty() || share.is_empty() {
            return Err(fail("expected smb://SERVER/SHARE"));
        }
        // These characters end a name or a command of smbclient.
        let harmless = |text: &str| {
            !text.starts_with('-')
                && !text.contains(['"', ';', '\\', '%', '!', '|'])
                && !text.chars().any(char::is_control)
        };
        if ![host, share, directory].into_iter().all(harmless) || !user.is_none_or(harmless) {
            return Err(fail(
                "a name contains a character that smbclient cannot take",
            ));
        }
        Ok(Self {
            protocol: ShareProtocol::Smb,
            options: NfsOptions::default(),
            host: host.to_owned(),
            port,
            user: user.map(str::to_owned),
            share: share.to_owned(),
            directory: directory.to_owned(),
        })
    }

    /// Parses what follows `nfs://`.
    fn parse_nfs(rest: &str) -> Result<Self, String> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
        if server.contains('@') {
            return Err(
                "NFS knows users by number: write ?uid=UID&gid=GID behind the path".to_owned(),
            );
        }
        let (host, port) = split_port(server, NFS_PORT).ok_or("the port is not a number")?;
        let path = path.trim_end_matches('/');
        if host.is_empty() || path.is_empty() {
            return Err("expected nfs://SERVER/EXPORT".to_owned());
        }
        if host.starts_with('-')
            || [host, path]
                .iter()
                .any(|text| text.chars().any(char::is_control))
        {
            return Err("a name begins with - or contains a control character".to_owned());
        }
        let mut options = NfsOptions::default();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let number = value.parse::<u32>().ok();
            match (name, number) {
                ("uid", Some(_)) => options.uid = number,
                ("gid", Some(_)) => options.gid = number,
                ("mountport", Some(port)) => options.mount_port = u16::try_from(port).ok(),
                _ => return Err(format!("{name} is not uid, gid or mountport with a number")),
            }
        }
        Ok(Self {
            protocol: ShareProtocol::Nfs,
            options,
            host: host.to_owned(),
            port,
            user: None,
            share: format!("/{path}"),
            directory: String::new(),
        })
    }

    /// Returns the protocol.
    #[must_use]
    pub fn protocol(&self) -> ShareProtocol {
        self.protocol
    }

    /// Returns the path of the export of an NFS URL.
    pub(crate) fn export(&self) -> &str {
        &self.share
    }

    /// Returns the user of an NFS URL.
    pub(crate) fn uid(&self) -> Option<u32> {
        self.options.uid
    }

    /// Returns the group of an NFS URL.
    pub(crate) fn gid(&self) -> Option<u32> {
        self.options.gid
    }

    /// Returns the port of mountd in an NFS URL.
    pub(crate) fn mount_port(&self) -> Option<u16> {
        self.options.mount_port
    }

    /// Returns the name or address of the server.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the TCP port of the server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the name of the user; `None` if the URL contains none.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the directory in the share; empty for the root of the share.
    #[must_use]
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Returns the share in the form `//server/share` or `nfs://server/export`.
    #[must_use]
    pub fn share_name(&self) -> String {
        match self.protocol {
            ShareProtocol::Smb => format!("//{}/{}", self.host, self.share),
            ShareProtocol::Nfs => format!("nfs://{}{}", self.host, self.share),
        }
    }
}

/// Splits `host:port` or `[address]:port` into host and port.
fn split_port(server: &str, default: u16) -> Option<(&str, u16)> {
    if let Some(rest) = server.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok()?,
            None => default,
        };
        return Some((host, port));
    }
    match server.split_once(':') {
        Some((host, port)) => Some((host, port.parse().ok()?)),
        None => Some((server, default)),
    }
}

/// Replaces the password in a URL, for error messages.
fn hide_password(word: &str) -> String {
    let hidden = word.split_once("://").and_then(|(scheme, rest)| {
        let (login, server) = rest.split_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{scheme}://{user}:…@{server}"))
    });
    let text = hidden.unwrap_or_else(|| word.to_owned());
    text.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_shares_are_split() {
        let url = ShareUrl::parse("smb://me@nas.lan:4450/data/a/b/").unwrap();
        assert_eq!(
            (url.host(), url.port(), url.user()),
            ("nas.lan", 4450, Some("me"))
        );
        assert_eq!(
            (url.share_name().as_str(), url.directory()),
            ("//nas.lan/data", "a/b")
        );
        let plain = ShareUrl::parse("smb://[fe80::1]/my files").unwrap();
        assert_eq!(
            (plain.host(), plain.port(), plain.directory()),
            ("fe80::1", 445, "")
        );
        let nfs = ShareUrl::parse("nfs://nas:3049/srv/data/?uid=1000&mountport=5").unwrap();
        assert_eq!(
            (nfs.share_name().as_str(), nfs.port(), nfs.export()),
            ("nfs://nas/srv/data", 3049, "/srv/data")
        );
        assert_eq!(
            (nfs.uid(), nfs.gid(), nfs.mount_port()),
            (Some(1000), None, Some(5))
        );
        assert!(ShareUrl::is_share("SMB://x/y") && !ShareUrl::is_share("http://x/y"));
    }

    #[test]
    fn hostile_and_incomplete_urls_are_refused() {
        for word in [
            "smb://nas",
            "smb:///data",
            "smb://nas:x/data",
            "smb://-o/data",
            "smb://nas/da;ta",
            "smb://nas/data/\"; del *",
            "nfs://nas",
            "nfs:///export",
            "nfs://me@nas/export",
            "nfs://nas/export?uid=me",
            "nfs://nas/export?password=x",
        ] {
            assert!(ShareUrl::parse(word).is_err(), "{word}");
        }
        let error = ShareUrl::parse("smb://me:secret@nas/data")
            .unwrap_err()
            .to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}

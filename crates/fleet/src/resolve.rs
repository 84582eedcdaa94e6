//! Resolves a machine's name to host, port and user with `ssh -G` and the user's ssh configuration.

use crate::session::check_name;
use assay_host::{Host as _, Limits, LiveHost};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// Host, port and user to which ssh connects for a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// Host name or address of the machine.
    pub hostname: String,
    /// TCP port of the ssh server.
    pub port: String,
    /// User name for the login.
    pub user: String,
    /// First jump host in ssh's configuration; `None` without a jump host.
    pub bastion: Option<String>,
}

/// Runs `ssh -G` for a name.
///
/// # Errors
/// The name is invalid, or ssh rejects its configuration. The error contains ssh's message.
pub fn endpoint(name: &str, config: Option<&Path>) -> Result<Endpoint, String> {
    check_name(name).map_err(|error| error.reason)?;
    let mut argv: Vec<&OsStr> = vec![OsStr::new("ssh")];
    if let Some(config) = config {
        argv.extend([OsStr::new("-F"), config.as_os_str()]);
    }
    argv.extend([OsStr::new("-G"), OsStr::new("--"), OsStr::new(name)]);
    let limits = Limits {
        timeout: Duration::from_secs(10),
    };
    match LiveHost.run(&argv, limits) {
        Ok(output) if output.success() => Ok(read(&output.text())),
        Ok(output) => Err(format!("ssh -G: {}", output.complaint())),
        Err(error) => Err(error.to_string()),
    }
}

fn read(text: &str) -> Endpoint {
    let mut found = Endpoint::default();
    let mut command = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(' ') else {
            continue;
        };
        let value = value.trim();
        match key {
            "hostname" => value.clone_into(&mut found.hostname),
            "port" => value.clone_into(&mut found.port),
            "user" => value.clone_into(&mut found.user),
            "proxyjump" if value != "none" => {
                let first = value.split(',').next().unwrap_or(value);
                found.bastion = Some(first.to_owned());
            }
            "proxycommand" if value != "none" => command = Some(value.to_owned()),
            _ => {}
        }
    }
    // A ProxyCommand differs only in the host name for all machines behind the same bastion.
    found.bastion = found.bastion.or(command.map(|command| {
        command
            .replace(&found.hostname, "%h")
            .replace(&found.port, "%p")
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_machine_on_the_way_is_the_bastion() {
        let text = "user root\nhostname 10.0.0.7\nport 22\nproxyjump admin@gate:2222,inner\n";
        let found = read(text);
        assert_eq!(found.bastion.as_deref(), Some("admin@gate:2222"));
        let one = read("hostname a.x\nport 22\nproxycommand ssh gate -W a.x:22\n");
        let other = read("hostname b.x\nport 22\nproxycommand ssh gate -W b.x:22\n");
        assert_eq!(one.bastion, other.bastion);
        assert_eq!(read("hostname a\nproxycommand none\n").bastion, None);
    }
}

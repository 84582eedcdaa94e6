//! Constructs a connection to which a Match block of sshd applies, from the criteria of the block. The connection is an
//! argument of `sshd -T -C`, which then prints sshd's own interpretation of the block.

use super::ssh_match::{Connection, match_applies};
use std::net::{IpAddr, Ipv4Addr};

/// Known accounts of the machine.
pub trait Accounts {
    /// Returns all groups of a user, including the primary group; `None` if unknown.
    fn groups_of(&self, user: &str) -> Option<Vec<String>>;
    /// Returns a user who is a member of a group.
    fn member_of(&self, group: &str) -> Option<String>;
}

/// Returns a connection that probably matches no block. Its addresses are reserved for documentation (RFC 5737).
fn any_connection() -> Connection {
    Connection {
        user: Some("nobody".to_owned()),
        groups: None,
        host: Some("client.invalid".to_owned()),
        address: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
        local_address: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2))),
        local_port: Some(22),
        rdomain: Some("none".to_owned()),
    }
}

/// Returns a connection to which a block with this head applies. For an empty head, returns a connection that matches
/// no block. `None` if there is no such connection.
#[must_use]
pub fn sample_connection(head: &[String], accounts: &dyn Accounts) -> Option<Connection> {
    let mut made = any_connection();
    let mut criteria = head.iter().skip(1);
    while let Some(attribute) = criteria.next() {
        let attribute = attribute.to_ascii_lowercase();
        if attribute == "all" {
            break;
        }
        let wanted = criteria.next()?;
        let mut patterns = wanted.split(',').filter(|one| !one.starts_with('!'));
        match attribute.as_str() {
            "user" => made.user = Some(sample_text(patterns.next()?)),
            "group" => made.user = Some(patterns.find_map(|group| accounts.member_of(group))?),
            "host" => made.host = Some(sample_text(patterns.next()?)),
            "address" => made.address = Some(patterns.find_map(sample_address)?),
            "localaddress" => made.local_address = Some(patterns.find_map(sample_address)?),
            "localport" => made.local_port = Some(wanted.parse().ok()?),
            "rdomain" => made.rdomain = Some(sample_text(patterns.next()?)),
            _ => return None,
        }
    }
    made.groups = accounts.groups_of(made.user.as_deref()?);
    (head.is_empty() || match_applies(head, &made) == Some(true)).then_some(made)
}

/// Returns a text that matches a pattern.
fn sample_text(pattern: &str) -> String {
    pattern.replace(['*', '?'], "x")
}

/// Returns an address that is in a network or matches a pattern.
fn sample_address(pattern: &str) -> Option<IpAddr> {
    let base = pattern.split('/').next()?;
    base.replace(['*', '?'], "1").parse().ok()
}

/// Returns the argument of `sshd -C` for a connection (sshd(8)); `None` if the argument cannot express the connection.
#[must_use]
pub fn connection_spec(connection: &Connection) -> Option<String> {
    let user = connection.user.as_deref()?;
    let host = connection.host.as_deref()?;
    let rdomain = connection.rdomain.as_deref()?;
    let plain = |text: &&str| !text.is_empty() && !text.contains([',', '=', '\n', '\0']);
    [user, host, rdomain].iter().all(plain).then(|| {
        let port = connection.local_port.unwrap_or(22);
        let show = |address: Option<IpAddr>| {
            address.map_or_else(|| "192.0.2.1".to_owned(), |address| address.to_string())
        };
        format!(
            "user={user},host={host},addr={},laddr={},lport={port},rdomain={rdomain}",
            show(connection.address),
            show(connection.local_address),
        )
    })
}

//! What is likely to make a part wait. What was seen on this machine comes with its place; what is known
//! to make this part wait elsewhere is named as what to look at.

use crate::Part;
use crate::startup::Line;
use serde::Serialize;

/// What a login is made to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SSH.
    Ssh,
    /// IMAP.
    Imap,
    /// SMTP.
    Smtp,
    /// HTTP.
    Http,
}

/// What is known of this machine, and of the server where that is this machine. None: it could not be
/// read, or it is another machine's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Services of `hosts:` in nsswitch.conf here, with its place.
    pub hosts: Option<(String, String)>,
    /// Name servers of resolv.conf here.
    pub name_servers: Option<Vec<String>>,
    /// Keyword and value of the server's effective configuration, as `sshd -T` says them.
    pub sshd: Option<Vec<(String, String)>>,
    /// Modules of the service's PAM stack on the server, each with its place.
    pub pam: Option<Vec<(String, String)>>,
    /// Services of `passwd:` on the server, with its place.
    pub passwd: Option<(String, String)>,
    /// File system of the user's home there.
    pub home: Option<String>,
    /// Dovecot's passdb drivers in their order, each with its place.
    pub passdbs: Option<Vec<(String, String)>>,
    /// Lines of start-up files that took long.
    pub startup: Vec<Line>,
}

/// Something that makes a part wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Cause {
    /// What.
    pub what: String,
    /// Where it was seen; none when it is only known to happen.
    pub seen: Option<String>,
    /// What to do, or to look at.
    pub then: String,
}

fn seen(what: &str, place: &str, then: &str) -> Cause {
    Cause {
        what: what.to_owned(),
        seen: Some(place.to_owned()),
        then: then.to_owned(),
    }
}

fn maybe(what: &str, then: &str) -> Cause {
    Cause {
        what: what.to_owned(),
        seen: None,
        then: then.to_owned(),
    }
}

/// Modules that ask over the network, and what they ask.
const REMOTE: [(&str, &str); 6] = [
    ("pam_ldap", "an LDAP server"),
    ("pam_krb5", "a Kerberos server"),
    ("pam_winbind", "a domain controller"),
    ("pam_sss", "sssd, and what is behind it"),
    ("pam_radius", "a RADIUS server"),
    ("pam_mysql", "a database"),
];

/// What is likely to make this part wait; what was seen comes first.
#[must_use]
pub fn causes(kind: Kind, part: &Part, known: &Known) -> Vec<Cause> {
    let mut found = match (kind, part) {
        (_, Part::Name) => names(known),
        (_, Part::Tcp) => vec![maybe(
            "an address of the host does not answer, or its first packets are dropped (each costs a second)",
            "see the addresses that were tried, with `ssh -v` or `getent ahosts HOST`; check the firewall",
        )],
        (Kind::Ssh, Part::User) => user(known),
        (Kind::Ssh, Part::Method(method)) => ssh_method(method, known),
        (Kind::Ssh, Part::Session) => session(known),
        (Kind::Ssh, Part::Prompt) => prompt(known),
        (Kind::Ssh, Part::Banner | Part::KeyExchange) => vec![maybe(
            "sshd waits for a CPU or for a free place (MaxStartups), or something between holds it back",
            "log in many at once (--many), and look at sshd's log",
        )],
        (_, Part::Banner) => vec![maybe(
            "the server looks the client's name up before it greets, or greets late on purpose (postscreen)",
            "check the server's resolver",
        )],
        (Kind::Imap | Kind::Smtp, Part::Method(_)) => mail_login(known),
        (Kind::Imap, Part::Session) => vec![maybe(
            "the mailbox is large and its index is not up to date, or lies on a slow file system",
            "measure the file system with `assay run quick DIRECTORY`",
        )],
        _ => Vec::new(),
    };
    found.sort_by_key(|cause| cause.seen.is_none());
    found
}

fn names(known: &Known) -> Vec<Cause> {
    let mut found = Vec::new();
    if let Some((hosts, place)) = &known.hosts {
        let at = |name: &str| {
            hosts
                .split_whitespace()
                .position(|word| word.starts_with(name))
        };
        if let Some(mdns) = at("mdns")
            && at("dns").is_none_or(|dns| mdns < dns)
        {
            found.push(seen(
                &format!("names are asked of the whole network (mDNS) before DNS: {hosts}"),
                place,
                "write mdns4_minimal [NOTFOUND=return] or put mdns behind dns",
            ));
        }
    }
    if let Some(servers) = &known.name_servers
        && servers.len() > 1
    {
        found.push(maybe(
            &format!(
                "the first of {} name servers does not answer, and each try costs 5 s",
                servers.len()
            ),
            &format!("ask each by itself: dig @{} NAME", servers[0]),
        ));
    }
    found.push(maybe(
        "the resolver does not answer at once",
        "time `getent ahosts HOST` against `getent ahosts ADDRESS`",
    ));
    found
}

fn user(known: &Known) -> Vec<Cause> {
    let mut found = Vec::new();
    match setting(known, "usedns") {
        Some("yes") => found.push(seen(
            "sshd looks the client's name up (UseDNS yes)",
            "sshd -T",
            "try it: assay trial ssh-usedns",
        )),
        Some(_) => {}
        None => found.push(maybe(
            "sshd looks the client's name up (UseDNS yes), and the resolver does not answer",
            "on the server: `sshd -T | grep usedns`; `assay trial ssh-usedns` there",
        )),
    }
    let far = ["sss", "ldap", "winbind", "nis"];
    match &known.passwd {
        Some((services, place)) => {
            if services.split_whitespace().any(|word| far.contains(&word)) {
                found.push(seen(
                    &format!("users are looked up elsewhere: passwd: {services}"),
                    place,
                    "time `getent passwd USER` there",
                ));
            }
        }
        None => found.push(maybe(
            "the user is looked up over the network (sssd, LDAP, winbind)",
            "on the server: time `getent passwd USER`",
        )),
    }
    found
}

fn ssh_method(method: &str, known: &Known) -> Vec<Cause> {
    if method.starts_with("gssapi") {
        return vec![seen(
            "the client tries Kerberos first (GSSAPIAuthentication yes)",
            "ssh -v",
            "try it: assay trial ssh-gssapi; without Kerberos set GSSAPIAuthentication no",
        )];
    }
    let mut found = home(known);
    if method == "publickey" {
        match setting(known, "authorizedkeyscommand") {
            Some("none" | "") => {}
            Some(command) => found.push(seen(
                &format!("sshd starts a program for each login: {command}"),
                "sshd -T",
                "time it by hand as AuthorizedKeysCommandUser",
            )),
            None => found.push(maybe(
                "many keys are offered, a key asks for a touch or an agent that is far away, or the server \
                 starts an AuthorizedKeysCommand",
                "`ssh-add -l`; offer one key with IdentitiesOnly yes",
            )),
        }
    } else {
        found.extend(pam(known));
    }
    found
}

fn session(known: &Known) -> Vec<Cause> {
    let mut found = home(known);
    found.extend(pam(known));
    if let Some(modules) = &known.pam {
        for (module, place) in modules {
            match module.as_str() {
                "pam_systemd" => found.push(seen(
                    "pam_systemd asks systemd-logind for a session, over D-Bus",
                    place,
                    "`systemctl status systemd-logind dbus`: it waits 25 s when one of them hangs; see assay \
                     advice pam-systemd-off before taking it out",
                )),
                "pam_motd" => found.push(seen(
                    "pam_motd runs the programs of /etc/update-motd.d",
                    place,
                    "time them: run-parts --test /etc/update-motd.d",
                )),
                "pam_mkhomedir" => found.push(seen("pam_mkhomedir makes the home", place, "")),
                _ => {}
            }
        }
    }
    if known.pam.is_none() {
        found.push(maybe(
            "a PAM module of the session waits: pam_systemd for D-Bus, pam_motd for its programs",
            "on the server: `journalctl -u ssh`, /etc/pam.d/sshd",
        ));
    }
    found.push(maybe(
        "a start-up file that the shell reads without a terminal, too, such as .bashrc before its first line \
         that asks for one",
        "look at the lines of start-up files",
    ));
    found
}

fn prompt(known: &Known) -> Vec<Cause> {
    let lines = known.startup.iter().map(|line| {
        let then = "run that command by hand; a tool that waits for a lock names its file";
        seen(
            &format!("`{}` took {}", line.command, line.took),
            &line.place,
            then,
        )
    });
    let mut found: Vec<Cause> = lines.collect();
    found.extend(home(known));
    if found.is_empty() {
        found.push(maybe(
            "a start-up file of the shell (.profile, .bashrc, /etc/profile.d) waits for something",
            "run `bash -lixc exit` there and see where it stops",
        ));
    }
    found
}

fn home(known: &Known) -> Vec<Cause> {
    let far = [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "fuse.sshfs",
        "autofs",
        "afs",
        "ceph",
    ];
    let home = known.home.as_deref().filter(|fs| far.contains(fs));
    let cause = home.map(|fs| {
        seen(
            &format!("the home is on {fs}: keys and start-up files are read over the network"),
            "findmnt",
            "time `cat ~/.bashrc` there",
        )
    });
    cause.into_iter().collect()
}

fn pam(known: &Known) -> Vec<Cause> {
    let modules = known.pam.iter().flatten();
    let asks = modules.filter_map(|(module, place)| {
        let (_, whom) = REMOTE.iter().find(|(name, _)| module.starts_with(name))?;
        Some(seen(
            &format!("{module} asks {whom}"),
            place,
            "see whether it answers, and in which order PAM asks",
        ))
    });
    asks.collect()
}

fn mail_login(known: &Known) -> Vec<Cause> {
    let mut found = pam(known);
    if let Some(passdbs) = &known.passdbs
        && let Some(at) = passdbs.iter().position(|(driver, _)| driver == "pam")
        && passdbs.len() > at + 1
    {
        found.push(seen(
            "PAM is asked before the other users' database, and waits after each refusal",
            &passdbs[at].1,
            "try it: assay trial dovecot-pam-order",
        ));
    }
    if known.passdbs.is_none() {
        found.push(maybe(
            "the password is asked of PAM first, which waits after a refusal, or of a database far away",
            "on the server: `doveconf -n`, `postconf -n`",
        ));
    }
    found
}

fn setting<'a>(known: &'a Known, keyword: &str) -> Option<&'a str> {
    let all = known.sshd.as_ref()?;
    let found = all.iter().find(|(name, _)| name == keyword);
    Some(found.map_or("", |(_, value)| value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::Nanos;

    fn first(kind: Kind, part: &Part, known: &Known) -> Cause {
        causes(kind, part, known).remove(0)
    }

    #[test]
    fn what_was_seen_comes_first_and_with_its_place() {
        let place = || "/etc/x:3".to_owned();
        let sshd = |name: &str, value: &str| Some(vec![(name.to_owned(), value.to_owned())]);
        let known = Known {
            hosts: Some(("files mdns4 dns".to_owned(), place())),
            sshd: sshd("usedns", "yes"),
            home: Some("nfs4".to_owned()),
            pam: Some(vec![("pam_ldap.so".to_owned(), place())]),
            passdbs: Some(vec![
                ("pam".to_owned(), place()),
                ("sql".to_owned(), place()),
            ]),
            startup: vec![Line {
                place: "/root/.bashrc:7".to_owned(),
                command: "lockfile".to_owned(),
                took: Nanos(60_000_000_000),
            }],
            ..Known::default()
        };
        let method = |name: &str| Part::Method(name.to_owned());
        for (kind, part, says) in [
            (Kind::Ssh, Part::Name, "mDNS"),
            (Kind::Ssh, Part::User, "UseDNS"),
            (Kind::Ssh, method("gssapi-with-mic"), "Kerberos"),
            (Kind::Ssh, method("publickey"), "nfs4"),
            (Kind::Ssh, Part::Session, "nfs4"),
            (Kind::Ssh, Part::Prompt, "lockfile"),
            (Kind::Imap, method("LOGIN"), "LDAP"),
        ] {
            let cause = first(kind, &part, &known);
            assert!(
                cause.what.contains(says) && cause.seen.is_some(),
                "{part:?}: {cause:?}"
            );
        }
    }

    #[test]
    fn what_is_in_order_is_no_cause() {
        let known = Known {
            hosts: Some(("files dns".to_owned(), String::new())),
            name_servers: Some(vec!["192.0.2.1".to_owned()]),
            sshd: Some(vec![("usedns".to_owned(), "no".to_owned())]),
            passwd: Some(("files systemd".to_owned(), String::new())),
            home: Some("ext4".to_owned()),
            pam: Some(Vec::new()),
            ..Known::default()
        };
        assert_eq!(causes(Kind::Ssh, &Part::User, &known), []);
        for part in [Part::Name, Part::Session, Part::Prompt] {
            let all = causes(Kind::Ssh, &part, &known);
            assert!(all.iter().all(|cause| cause.seen.is_none()), "{all:?}");
        }
    }
}

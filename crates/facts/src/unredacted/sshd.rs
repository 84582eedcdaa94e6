//! Compares sshd's interpretation of its files with assay's. For each Match block, constructs a matching connection,
//! for which `sshd -T -C` prints the effective values. A difference is reported as a finding, because other findings
//! may then be wrong.
//!
//! Reports only the keywords that differ, not sshd's values, and no user or host of the connections.

use crate::collectors::services::ssh::{SERVER, words_of_server};
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::ssh_sample::{self, Accounts};
use assay_config::effective::{Effective, Program, read_effective};
use assay_host::{CommandOutput, Host, Limits};
use assay_model::{FactKind, FactPlace};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// Limits of the command. It only reads, but a name service that does not respond may delay it.
const LIMITS: Limits = Limits {
    timeout: Duration::from_secs(5),
};

/// Maximum number of Match blocks that are compared. Each needs one start of sshd, which takes about ten milliseconds.
const MOST: usize = 64;

pub(super) fn collect(g: &mut Gather<'_>) {
    let host = g.host;
    if host.which(OsStr::new("sshd")).is_none() {
        return;
    }
    let Ok(all) = read_effective(Program::Sshd, Path::new(SERVER), &OfHost(host)) else {
        return;
    };
    let accounts = OfMachine::new(host);
    for (id, name) in crate::collectors::services::scopes::names(&all)
        .into_iter()
        .take(MOST)
    {
        let head = &all.scope(id).head;
        let Some(connection) = ssh_sample::sample_connection(head, &accounts) else {
            continue;
        };
        let Some(spec) = ssh_sample::connection_spec(&connection) else {
            continue;
        };
        let Some(output) = ask(host, &["sshd", "-T", "-C", &spec]) else {
            return;
        };
        if !output.success() {
            note_refusal(g, &output);
            return;
        }
        let text = output.text();
        let theirs = parse_dump(&text);
        let differ: Vec<&str> = words_of_server()
            .filter(|key| has_other_value(&all, &connection, key, &theirs))
            .collect();
        let place = FactPlace::command(["sshd", "-T", "-C", "…"]);
        let mut note = |what: &str, value: serde_json::Value| {
            let fact = format!("sshd.reading.{name}.{what}");
            g.facts.known(fact, value, FactKind::Runtime, place.clone());
        };
        note("keywords", theirs.len().into());
        note("differ", differ.into());
        g.about(["sshd.reading", &name]);
    }
}

fn ask(host: &dyn Host, argv: &[&str]) -> Option<CommandOutput> {
    let argv: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    host.run(&argv, LIMITS).ok()
}

/// Notes that sshd rejects its configuration. Other failures, such as unreadable keys, are not noted.
fn note_refusal(g: &mut Gather<'_>, output: &CommandOutput) {
    let says = String::from_utf8_lossy(&output.stderr);
    let bad = |line: &&str| {
        line.contains("bad configuration option") || line.contains("Bad configuration option")
    };
    // `/etc/ssh/sshd_config line 7: …`, or `/etc/ssh/sshd_config: line 7: …`.
    let named = says.lines().find(|line| line.starts_with("/etc/ssh/"));
    if named.is_none() && !says.lines().any(|line| bad(&line)) {
        return;
    }
    let place = named.and_then(|line| {
        let (path, rest) = line.split_once([' ', ':'])?;
        let (_, rest) = rest.split_once("line ")?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some(FactPlace::File {
            path: path.to_owned(),
            line: Some(digits.parse().ok()?),
            span: None,
        })
    });
    let place = place.unwrap_or_else(|| FactPlace::command(["sshd", "-T"]));
    let why = "`sshd -T` does not read it to its end";
    g.facts.known(
        "sshd.refused_because",
        why,
        FactKind::Runtime,
        place.clone(),
    );
    g.facts
        .known("sshd.refused", true, FactKind::Runtime, place);
}

/// Parses the output of `sshd -T` into values by keyword.
fn parse_dump(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
        .collect()
}

fn has_other_value(
    all: &Effective,
    connection: &assay_config::effective::ssh_match::Connection,
    key: &str,
    theirs: &BTreeMap<&str, &str>,
) -> bool {
    // A block whose condition cannot be evaluated, such as one for an unknown group, is skipped.
    let Ok(said) = all.get_for(connection, key) else {
        return false;
    };
    // Without a line sshd's default applies, which is not compared.
    let (Some(said), Some(theirs)) = (said.first(), theirs.get(key)) else {
        return false;
    };
    let words = said
        .words
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned());
    let ours = words.collect::<Vec<_>>().join(" ");
    normalize_value(&ours) != normalize_value(theirs)
}

/// Normalises a value, so that spellings with the same meaning are equal.
fn normalize_value(value: &str) -> String {
    let value = value.trim().to_ascii_lowercase();
    match value.as_str() {
        "true" => "yes".to_owned(),
        "false" => "no".to_owned(),
        "without-password" => "prohibit-password".to_owned(),
        // `sshd -T` prints the first name of a level (log.c, log_levels).
        "quiet" => "silent".to_owned(),
        "debug1" => "debug".to_owned(),
        "all" => "yes".to_owned(),
        _ => value,
    }
}

/// Account names and groups, from the machine's files and its `id` command.
struct OfMachine<'a> {
    host: &'a dyn Host,
    groups: String,
}

impl<'a> OfMachine<'a> {
    fn new(host: &'a dyn Host) -> Self {
        let groups = host.read_text(Path::new("/etc/group"));
        Self {
            host,
            groups: groups.unwrap_or_default(),
        }
    }
}

impl Accounts for OfMachine<'_> {
    fn groups_of(&self, user: &str) -> Option<Vec<String>> {
        let output = ask(self.host, &["id", "-nG", "--", user])?;
        // An unknown user has no groups.
        let text = output.text();
        Some(text.split_whitespace().map(str::to_owned).collect())
    }

    fn member_of(&self, group: &str) -> Option<String> {
        let line = self.groups.lines().find(|line| {
            line.strip_prefix(group)
                .is_some_and(|rest| rest.starts_with(':'))
        })?;
        let members = line.rsplit(':').next().unwrap_or_default();
        let first = members.split(',').find(|name| !name.is_empty());
        // A group of one member has the name of its user.
        Some(first.unwrap_or(group).to_owned())
    }
}

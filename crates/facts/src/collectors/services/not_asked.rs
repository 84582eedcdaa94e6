//! Notes which checks could not run. Some checks need names, so they run only on the machine itself, not over ssh or
//! from a capture. `not_asked.KIND` contains the reason for each kind of fact that the machine may have. The report
//! lists rules about such a kind as "not asked", so that a missing finding is not mistaken for a passed check.

use super::packages::STATUS;
use crate::gather::Gather;
use assay_config::effective::files::{FileFault, OfHost};
use assay_config::effective::{Effective, Program, read_effective};
use assay_model::{FactKind, FactPlace, FactValue};
use std::path::Path;

/// Pseudo-command for which the collector script checks package dependencies itself. The output is the number of unmet
/// dependencies and the line of the first one.
pub(crate) const DEPENDENCIES: [&str; 2] = ["assay-collector", "unmet-dependencies"];

/// Fact with the number of unmet dependencies. Over ssh, the number comes from the output of `DEPENDENCIES`; on the
/// machine itself, from `unredacted`.
const UNMET: &str = "packages.unmet_dependencies";

const ACCOUNTS: &str = "files of keys carry the names of accounts, which stay on the machine";
const BLOCKS: &str =
    "sshd itself is asked on the machine alone: about users and hosts of Match blocks";
const AUTHORITIES: &str = "keys of authorities are compared on the machine alone";
const SITES: &str = "names of sites stay on the machine";
const PROGRAMS: &str = "programs are searched for copies of libraries on the machine alone";
const DOMAINS: &str = "/etc/libvirt/qemu";
const DEFINITIONS: &str = "definitions of virtual machines are not taken by the collector";
const DISKS: &str = "identifiers of disks stay on the machine";

/// Notes the kinds of facts that need names and that the machine may have.
pub(crate) fn collect(g: &mut Gather<'_>) {
    let sshd = read_effective(
        Program::Sshd,
        Path::new(super::ssh::SERVER),
        &OfHost(g.host),
    );
    if !matches!(sshd, Err(FileFault::Absent)) {
        note(g, "authorized_keys", ACCOUNTS, super::ssh::SERVER);
        note(g, "sshd.reading", BLOCKS, super::ssh::SERVER);
        note(g, "sshd.refused", BLOCKS, super::ssh::SERVER);
        if sshd.map_or(true, |sshd| may_trust_authority(&sshd)) {
            note(g, "sshd.user_authority", AUTHORITIES, super::ssh::SERVER);
        }
    }
    // A site with a certificate, or an unreadable file that may contain one.
    let of_site = g.facts.map.iter().any(|(key, fact)| match &fact.value {
        FactValue::Known(user) => {
            let user = user.as_str().unwrap_or_default();
            let sites = ["nginx", "apache"];
            key.starts_with("certificate.")
                && sites.iter().any(|one| user.eq_ignore_ascii_case(one))
        }
        FactValue::Unknown(_) => {
            let may_hold = ["certificate", "nginx", "apache"];
            may_hold.iter().any(|one| key.starts_with(one))
        }
    });
    if of_site {
        note(g, "tls_site", SITES, "/etc/ssl");
    }
    let domains = match g.host.list(Path::new(DOMAINS)) {
        Ok(names) => names
            .iter()
            .any(|name| name.to_string_lossy().ends_with(".xml")),
        Err(error) => !error.is_absent(),
    };
    if domains {
        note(g, "libvirt", DEFINITIONS, DOMAINS);
    }
    note(g, "openssl-copy", PROGRAMS, "/proc");
    note(g, "swap.resume_is_there", DISKS, "/etc/fstab");
    super::not_asked_files::collect(g);
    note_dependencies(g);
}

fn note(g: &mut Gather<'_>, kind: &str, why: &str, place: &str) {
    let key = format!("not_asked.{kind}");
    g.facts.known(key, why, FactKind::Runtime, place);
}

fn may_trust_authority(sshd: &Effective) -> bool {
    let mut said = sshd.settings().iter();
    !sshd.problems.is_empty()
        || said.any(|said| {
            let value = said.word().unwrap_or_default();
            said.key == "trustedusercakeys" && !value.eq_ignore_ascii_case("none")
        })
}

/// Notes the number of unmet dependencies that the collector script counted. A capture does not contain this number.
fn note_dependencies(g: &mut Gather<'_>) {
    if matches!(g.host.exists(Path::new(STATUS)), Ok(false)) {
        return;
    }
    let answer = g.try_ask(&DEPENDENCIES).ok();
    let text = answer.map(|output| output.text()).unwrap_or_default();
    let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(unmet)), Some(Ok(line))) => {
            let place = match line {
                0 => FactPlace::from(STATUS),
                line => crate::collectors::daemons::lines::at_line(
                    STATUS,
                    usize::try_from(line).unwrap_or(0),
                ),
            };
            g.facts.known(UNMET, unmet, FactKind::Runtime, place);
        }
        _ => note(g, UNMET, "names of packages stay on the machine", STATUS),
    }
}

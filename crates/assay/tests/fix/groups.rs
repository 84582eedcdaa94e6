//! Fixes of several programs on one machine: all faults are planted at once, fixed one after the other, and undone in
//! reverse order. The programs check the result as a whole.

use super::bed::Bed;
use super::common::{self, Ran};
use super::file_groups::GROUPS;
use super::line_groups::LINE_GROUPS;
use super::setting_groups::SETTING_GROUPS;
use serde_json::Value;
use std::collections::BTreeSet;

/// A rule, the file with its fault, and the text that has the fault. The text is appended to an existing file, unless
/// the file of the package has to be replaced.
pub struct Fault {
    rule: &'static str,
    file: &'static str,
    plant: Plant,
}

pub enum Plant {
    Append(&'static str),
    Whole(&'static str),
}

use Plant::{Append, Whole};

pub const fn fault(rule: &'static str, file: &'static str, plant: Plant) -> Fault {
    Fault { rule, file, plant }
}

/// A program that reads the files of a group; its command reads the whole configuration and starts nothing.
pub struct Reader {
    pub program: &'static str,
    pub argv: &'static [&'static str],
}

pub struct Group {
    pub name: &'static str,
    /// Whether the test needs programs that are not installed for tests; where one is missing, nothing is tried.
    pub rare: bool,
    pub faults: &'static [Fault],
    pub readers: &'static [Reader],
}

pub const OWN_SYSCTL: &str = "sysctl.d/99-zz-own.conf";

/// Reason of the sysctls that are not tried here: the program and the edit are those of the others, and
/// `fixture_plans` of assay-changes plans each. Their running values are of the whole machine.
const SAME: &str = "only the name and the value differ from the sysctls that are tried here";
/// Reason of those whose running values belong to a network namespace.
const BELOW: &str = "`running_values_follow_their_file` fixes it";

/// Reason of those that change a property of a ZFS dataset.
const PROPERTY: &str =
    "needs a pool of ZFS; `fixture_plans` plans it, and a trial sets properties in the same way";

/// Rules whose edits are not tried here, with the reason.
const NOT_HERE: [(&str, &str); 41] = [
    ("zfs-sync-disabled", PROPERTY),
    ("zfs-sync-always", PROPERTY),
    ("zfs-compression-off-set", PROPERTY),
    ("zfs-zero-fill-uncompressed", PROPERTY),
    (
        "vnc-without-password",
        "systemd-analyze needs the program of the unit; `fixture_plans` plans it",
    ),
    (
        "no-trim",
        "needs a disk that trims; `fixture_plans` plans it",
    ),
    (
        "unsafe-above-sync",
        "needs a ZFS volume; the edit is that of cache-unsafe",
    ),
    (
        "zvol-writeback-full",
        "needs a ZFS volume; the edit is that of cache-unsafe",
    ),
    (
        "postfix-sender-before-relay",
        "needs a table of senders beside main.cf; `fixture_plans` plans it",
    ),
    (
        "ssh-mdns-before-dns",
        "needs a resolv.conf of its own; `fixture_plans` plans it",
    ),
    (
        "nginx-mail-cleartext",
        "the mail module of nginx is not installed for tests; `fixture_plans` plans it",
    ),
    (
        "pure-ftpd-anonymous-write",
        "`drop_ins` creates files in the same way; `fixture_plans` plans it",
    ),
    (
        "kubelet-read-only-port",
        "the file is outside of /etc; `fixture_plans` plans it",
    ),
    (
        "cron-line-cut",
        "cron runs here with tables of its own; `fixture_plans` plans it",
    ),
    (
        "discard-ignored",
        "needs a ZFS volume; `fixture_plans` plans it",
    ),
    (
        "zfs-old-default-pinned",
        "needs the module of ZFS; `fixture_plans` plans it",
    ),
    (
        "zfs-no-scrub",
        "needs a pool of ZFS; `fixture_plans` plans it",
    ),
    (
        "socket-opens-root-service",
        "systemd-analyze needs the unit of the package; `fixture_plans` plans it",
    ),
    (
        "guest-cpu-old-model",
        "the finding depends on the processor of the machine; `fixture_plans` plans it",
    ),
    (
        "md-nobody-told",
        "needs an array, which /proc/mdstat shows; `fixture_plans` plans it",
    ),
    (
        "md-check-off",
        "needs an array, which /proc/mdstat shows; `fixture_plans` plans it",
    ),
    ("sysctl-tcp-timestamps-off", BELOW),
    ("sysctl-router-takes-redirects", BELOW),
    (
        "web-server-sslv3",
        "Debian's OpenSSL refuses SSLv3; the edit is that of web-server-tls-1-0",
    ),
    ("sysctl-links-unprotected", SAME),
    ("sysctl-hardlinks-unprotected", SAME),
    ("sysctl-suid-dumpable", SAME),
    ("sysctl-panic-on-oom", SAME),
    ("sysctl-abort-on-overflow", BELOW),
    ("sysctl-echo-broadcasts", BELOW),
    ("sysctl-file-max-small", SAME),
    ("sysctl-max-map-count-small", SAME),
    ("sysctl-mmap-min-addr", SAME),
    ("sysctl-no-pmtu-disc", BELOW),
    ("sysctl-rcvbuf-fixed", BELOW),
    ("sysctl-tcp-sack-off", BELOW),
    ("sysctl-tw-buckets-few", BELOW),
    ("sysctl-unprivileged-bpf", SAME),
    ("sysctl-vfs-cache-pressure-zero", SAME),
    ("sysctl-window-scaling-off", BELOW),
    ("sysctl-zone-reclaim", SAME),
];

/// Returns the rules that the groups fix.
pub fn rules() -> BTreeSet<&'static str> {
    let all = GROUPS.iter().chain(&LINE_GROUPS).chain(&SETTING_GROUPS);
    let all = all.flat_map(|group| group.faults);
    let elsewhere = NOT_HERE.iter().map(|(rule, _)| *rule);
    all.map(|fault| fault.rule)
        .chain(elsewhere)
        .chain(super::permissions::rules())
        .chain(super::drop_ins::rules())
        .collect()
}

/// Returns how a finding of the rule stands in the list of findings.
fn violated(rule: &str) -> String {
    format!("\"{rule}\" \"violated\"")
}

fn plant(bed: &Bed, fault: &Fault) {
    let path = bed.path(fault.file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    bed.edit(fault.file, |text| match fault.plant {
        Append(more) => text + more,
        Whole(whole) => whole.to_owned(),
    });
}

/// Asserts that the installed programs read their files.
fn accepted(bed: &Bed, group: &Group, when: &str) {
    for reader in group.readers {
        if !group.rare && !std::path::Path::new(reader.program).exists() {
            assay_testing::skipped("program", reader.program);
            continue;
        }
        let ran = bed.run(reader.argv);
        assert_eq!(
            ran.code,
            Some(0),
            "{when}: {:?}: {}",
            reader.argv,
            ran.stderr
        );
    }
}

fn fixed_and_undone(group: &Group) {
    let is_there = |reader: &Reader| assay_testing::servers::find(reader.argv[0]).is_some();
    if group.rare && !group.readers.iter().all(is_there) {
        return;
    }
    let Some(bed) = Bed::new() else { return };
    let stock = bed.findings();
    // A value of the running kernel is not changed by a test.
    let here = |fault: &&Fault| !stock.contains(&violated(fault.rule));
    let faults: Vec<&Fault> = group.faults.iter().filter(here).collect();
    let files: BTreeSet<&str> = faults.iter().map(|fault| fault.file).collect();
    let fresh: Vec<&str> = files
        .iter()
        .copied()
        .filter(|file| !bed.path(file).exists())
        .collect();
    faults.iter().for_each(|fault| plant(&bed, fault));
    files
        .iter()
        .filter(|file| !fresh.contains(*file))
        .for_each(|file| bed.adorn(file));
    let planted: Vec<_> = files.iter().map(|file| bed.look(file)).collect();
    let found = bed.findings();
    let missing: Vec<&str> = faults
        .iter()
        .map(|fault| fault.rule)
        .filter(|rule| !found.contains(&violated(rule)))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "{}: {found:?}", group.name);
    accepted(&bed, group, "planted");
    let mut changes = Vec::new();
    for Fault { rule, file, .. } in &faults {
        let ran: Ran = bed.mend(rule);
        assert_eq!(ran.code, Some(0), "{rule}: {}{}", ran.stdout, ran.stderr);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(document["became"], "kept", "{rule}: {document}");
        let named = document["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["path"].as_str().unwrap());
        assert_eq!(
            named.collect::<Vec<_>>(),
            [format!("/etc/{file}")],
            "{rule}: {document}"
        );
        changes.push((*rule, document["change"].as_str().unwrap().to_owned()));
    }
    let fixed: Vec<String> = faults.iter().map(|fault| violated(fault.rule)).collect();
    let others: Vec<String> = found
        .into_iter()
        .filter(|one| !fixed.contains(one))
        .collect();
    assert_eq!(
        bed.findings(),
        others,
        "{}: all is fixed, and nothing new",
        group.name
    );
    accepted(&bed, group, "fixed");
    for (rule, change) in changes.iter().rev() {
        let undone = bed.assay(&["check", "--undo", change, "--yes", "--json"]);
        common::schemas::holds("check-undo", &undone.stdout, &[]);
        assert_eq!(
            undone.code,
            Some(0),
            "{rule}: {}{}",
            undone.stdout,
            undone.stderr
        );
    }
    let back: Vec<_> = files.iter().map(|file| bed.look(file)).collect();
    assert_eq!(
        back, planted,
        "{}: byte for byte, with owner, mode, attributes and times",
        group.name
    );
}

/// Each group takes one to two minutes of CPU time; one of them is always tried.
pub fn is_long_wanted() -> bool {
    let wanted = std::env::var_os("ASSAY_LAB_ALL").is_some();
    if !wanted {
        assay_testing::skipped("long", "it takes minutes; ASSAY_LAB_ALL=1 runs it");
    }
    wanted
}

#[test]
fn fixes_of_web_servers_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&GROUPS[0]);
    }
}

#[test]
fn fixes_of_mail_and_file_servers_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&GROUPS[1]);
    }
}

#[test]
fn fixes_of_databases_clear_their_findings_and_are_undone() {
    fixed_and_undone(&GROUPS[2]);
}

#[test]
fn fixes_of_the_system_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&GROUPS[3]);
    }
}

#[test]
fn fixes_of_programs_that_are_not_installed_for_tests_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&GROUPS[4]);
    }
}

#[test]
fn fixes_of_lines_of_services_clear_their_findings_and_are_undone() {
    fixed_and_undone(&LINE_GROUPS[0]);
}

#[test]
fn fixes_of_lines_of_the_system_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&LINE_GROUPS[1]);
    }
}

#[test]
fn fixes_of_lines_of_programs_that_are_not_installed_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&LINE_GROUPS[2]);
    }
}

#[test]
fn fixes_of_settings_that_programs_check_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&SETTING_GROUPS[0]);
    }
}

#[test]
fn fixes_of_settings_that_no_program_checks_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&SETTING_GROUPS[1]);
    }
}

#[test]
fn fixes_of_settings_of_programs_that_are_not_installed_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&SETTING_GROUPS[2]);
    }
}

//! Executes remedies of pages about pools, arrays, volumes and units in one guest with real faults: each page fires,
//! its pasted commands clear the finding, and the commands of its undo bring it back. `hypervisor` has what the host
//! changes.
//!
//! Skipped without the image, and among the short tests.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

#[path = "../common/mod.rs"]
mod common;

mod hypervisor;
mod kernel;
mod packages;
mod pools;
mod systems;
mod volumes;

use assay_lab::{Disk, Reboot, Zfs};
use common::pools::{Lab, Pools, disks};
use serde_json::Value;
use std::time::Duration;

/// Directory of journal and store: not on the disks of the test.
const STATE: &str = "/root/state";

/// How the remedy of a page is executed in the guest. In the scripts `@[BEGINNING|WORD=VALUE|…]` is the command of the
/// page with this beginning; the words are what its reader replaces.
pub(crate) struct Remedy {
    /// The page.
    pub(crate) page: &'static str,
    /// Part of the title of the finding that is cleared.
    pub(crate) about: &'static str,
    /// Script that executes the steps.
    pub(crate) steps: &'static str,
    /// Script that executes the undo; empty where nothing brings the finding back.
    pub(crate) undo: &'static str,
}

/// Functions of every script: names of the guest's partitions, and `zpool create`, which waits for udev too briefly on
/// a busy machine.
const FUNCTIONS: &str = r#"
part() { echo "/dev/disk/by-id/virtio-d$1-part$2"; }
create() { for try in 1 2 3; do zpool create -f "$@" && return; done; return 1; }
idle() { while grep -Eq 'recovery|resync|check|repair|DELAYED' /proc/mdstat; do sleep 1; done; }
"#;

fn all() -> impl Iterator<Item = &'static Remedy> {
    let all = [pools::REMEDIES, volumes::REMEDIES, systems::REMEDIES];
    all.into_iter().flatten()
}

#[test]
fn remedies_clear_their_findings_in_a_guest() {
    let Some(lab) = Lab::new(Zfs::Stable) else {
        return;
    };
    let guest = lab.boot("remedies", guest_disks());
    let has_archive = packages::push_archive(&guest);
    for setup in [systems::SETUP, pools::SETUP, volumes::SETUP] {
        guest.sh(&format!("{FUNCTIONS}{setup}"));
    }
    let mut wrong = Vec::new();
    let before = findings(&guest);
    let mut executed = Vec::new();
    for remedy in all().filter(|remedy| has_archive || !remedy.steps.contains("apt-get install")) {
        match find(&before, remedy) {
            Some(finding) => executed.push((remedy, finding)),
            None => wrong.push(format!(
                "{}: does not fire on {}",
                remedy.page, remedy.about
            )),
        }
    }
    executed.retain(|(remedy, finding)| apply(&guest, remedy.steps, finding, &mut wrong));
    let after = findings(&guest);
    for (remedy, finding) in &executed {
        if find(&after, remedy).is_some() {
            wrong.push(format!(
                "{}: does not clear {}",
                remedy.page, finding["title"]
            ));
        }
    }
    for (remedy, finding) in executed.iter().rev() {
        apply(&guest, remedy.undo, finding, &mut wrong);
    }
    let undone = findings(&guest);
    for (remedy, finding) in executed
        .iter()
        .filter(|(remedy, _)| !remedy.undo.is_empty())
    {
        if find(&undone, remedy).is_none() {
            wrong.push(format!(
                "{}: undo leaves {} cleared",
                remedy.page, finding["title"]
            ));
        }
    }
    reboot(&guest, &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Five disks with partitions, and one on which a pool can be nine tenths full: ZFS keeps 128 MiB of each pool free.
fn guest_disks() -> Vec<Disk> {
    let mut all = disks(5, 512 << 20);
    all.push(Disk::scratch("d6", 1536 << 20));
    all
}

/// `systemctl reboot`, the only step of reboot-pending, ends the guest's agent; the lab executes it.
fn reboot(guest: &Pools, wrong: &mut Vec<String>) {
    let pending = Remedy {
        page: "reboot-pending",
        about: "",
        steps: "",
        undo: "",
    };
    guest.sh("touch /run/reboot-required");
    let found = find(&findings(guest), &pending).cloned();
    match found.map(|finding| command(&finding, "systemctl reboot")) {
        Some(Ok(_)) => {}
        other => wrong.push(format!("reboot-pending: {other:?}")),
    }
    guest
        .guest
        .reboot(Reboot::Asked, Duration::from_secs(900))
        .unwrap();
    if find(&findings(guest), &pending).is_some() {
        wrong.push("reboot-pending: it is pending after a reboot".to_owned());
    }
}

/// Returns the certain findings of the guest. On a busy machine a program may exceed its time limit: repeated then.
fn findings(guest: &Pools) -> Vec<Value> {
    let mut found = Vec::new();
    for _ in 0..3 {
        let said = guest.assay(STATE, "check --json");
        let document: Value = serde_json::from_str(&said.out)
            .unwrap_or_else(|error| panic!("{error}: {}{}", said.out, said.err));
        found = document["findings"].as_array().unwrap().clone();
        if !said.out.contains("no end after") {
            break;
        }
    }
    found.retain(|finding| finding["certainty"] == "violated");
    found
}

fn find<'a>(findings: &'a [Value], remedy: &Remedy) -> Option<&'a Value> {
    findings.iter().find(|finding| {
        let title = finding["title"].as_str().unwrap_or_default();
        finding["rule"] == remedy.page && title.contains(remedy.about)
    })
}

/// Runs a script of a remedy; returns whether it succeeded.
fn apply(guest: &Pools, script: &str, finding: &Value, wrong: &mut Vec<String>) -> bool {
    let pasted = match paste(finding, script) {
        Ok(script) => script,
        Err(why) => {
            wrong.push(format!("{}: {why}", finding["rule"]));
            return false;
        }
    };
    let said = guest.run(&["sh", "-euc", &format!("{FUNCTIONS}{pasted}")]);
    if said.status != 0 {
        wrong.push(format!(
            "{}: {pasted}: {}{}",
            finding["rule"], said.out, said.err
        ));
    }
    said.status == 0
}

/// Replaces each `@[…]` of a script by the command of the finding.
fn paste(finding: &Value, script: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = script;
    while let Some((before, after)) = rest.split_once("@[") {
        let (marker, behind) = after.split_once(']').ok_or("an open marker")?;
        let mut words = marker.split('|');
        let mut line = command(finding, words.next().unwrap_or_default())?;
        for word in words {
            let (old, new) = word.split_once('=').ok_or("a word without its value")?;
            if !line.contains(old) {
                return Err(format!("{line} has no {old}"));
            }
            line = line.replace(old, new);
        }
        out.push_str(before);
        out.push_str(&line);
        rest = behind;
    }
    Ok(out + rest)
}

/// Returns the command with this beginning in the steps or the undo of a finding.
fn command(finding: &Value, beginning: &str) -> Result<String, String> {
    let remedy = &finding["fix"]["steps"];
    let texts = ["steps", "undo"].map(|part| remedy[part].as_array().cloned().unwrap_or_default());
    let texts = texts.concat();
    let codes = texts.iter().filter_map(Value::as_str);
    let codes: Vec<&str> = codes
        .flat_map(|text| text.split('`').skip(1).step_by(2))
        .collect();
    let exact = codes.iter().find(|code| **code == beginning);
    let found = exact.or_else(|| codes.iter().find(|code| code.starts_with(beginning)));
    found
        .map(|code| (*code).to_owned())
        .ok_or_else(|| format!("no command begins with {beginning:?}: {texts:?}"))
}

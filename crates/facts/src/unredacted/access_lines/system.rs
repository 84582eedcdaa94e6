//! System files: trusted hosts of accounts, doas, polkit, and libraries that every program loads.

use super::super::lines_of_files::{files, read};
use super::directory::homes;
use super::{Lines, bare, words};
use crate::gather::{Gather, lossy};
use std::path::Path;

const DOAS: &str = "/etc/doas.conf";
const POLKIT: &str = "/etc/polkit-1/rules.d";
/// Groups that may become root anyway, as they are written in a rule.
const ADMINS: [&str; 6] = [
    "\"sudo\"",
    "\"wheel\"",
    "\"root\"",
    "'sudo'",
    "'wheel'",
    "'admin'",
];
const LEGACY: &str = "/etc/polkit-1/localauthority";
const PRELOAD: &str = "/etc/ld.so.preload";
const LIBRARIES: &str = "/etc/ld.so.conf.d";
/// Directories in which every account may create files.
const SHARED: [&str; 3] = ["/tmp/", "/var/tmp/", "/dev/shm/"];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_trusted(g);
    note_doas(g);
    note_polkit(g);
    note_libraries(g);
}

/// Notes the files of accounts that work as hosts.equiv (rcmd(3)).
fn note_trusted(g: &mut Gather<'_>) {
    let mut found = Lines::of("rhosts", "all");
    let mut all = vec!["/etc/shosts.equiv".to_owned()];
    for home in ["/root".to_owned()].into_iter().chain(homes(g)) {
        all.extend([".rhosts", ".shosts"].map(|name| format!("{home}/{name}")));
    }
    for path in all {
        for line in read(g, "rhosts", &path) {
            if let Some(text) = bare(&line) {
                found.add(g, text.split_whitespace().next() == Some("+"), &line.place);
            }
        }
    }
}

/// Notes rules of doas that give root all commands without a password (doas.conf(5)).
fn note_doas(g: &mut Gather<'_>) {
    let mut found = Lines::of("doas_rule", "free");
    for line in read(g, "doas_rule", DOAS) {
        let words = words(&line);
        if words.first().is_none_or(|word| word != "permit") {
            continue;
        }
        let at = |key: &str| words.iter().position(|word| word == key);
        let other = at("as")
            .and_then(|at| words.get(at + 1))
            .is_some_and(|user| user != "root");
        // The account or group is the last word before the target and the command.
        let end = at("as")
            .into_iter()
            .chain(at("cmd"))
            .min()
            .unwrap_or(words.len());
        let whom = words
            .get(end.saturating_sub(1))
            .map_or("root", String::as_str);
        let free = at("nopass").is_some() && at("cmd").is_none() && !other && whom != "root";
        found.add(g, free, &line.place);
    }
}

/// Notes rules of polkit that permit every action to everybody: the function tests neither the action nor the subject.
fn note_polkit(g: &mut Gather<'_>) {
    let mut found = Lines::of("polkit_rule", "all");
    let mut groups = Lines::of("polkit_group", "all_actions");
    for path in legacy_rules(g) {
        let lines = read(g, "polkit_rule", &path);
        for section in lines.split(|line| line.text.trim().starts_with('[')) {
            let value = |key: &str| {
                section.iter().find_map(|line| {
                    let (name, value) = line.text.trim().split_once('=')?;
                    (name.trim() == key).then(|| value.trim().to_owned())
                })
            };
            let all_users = value("Identity").is_some_and(|who| who == "unix-user:*");
            let all_actions = value("Action").is_some_and(|what| what == "*");
            for key in ["ResultAny", "ResultInactive", "ResultActive"] {
                let line = section
                    .iter()
                    .find(|line| line.text.trim().starts_with(key));
                if let (Some(line), Some(result)) = (line, value(key)) {
                    found.add(g, all_users && all_actions && result == "yes", &line.place);
                    break;
                }
            }
        }
    }
    for path in files(g, "polkit_rule", POLKIT, ".rules") {
        let mut tests = false;
        let (mut of_action, mut group, mut of_admins) = (false, false, false);
        for line in read(g, "polkit_rule", &path) {
            let text = line.text.trim();
            if text.starts_with("//") {
                continue;
            }
            if text.contains("polkit.addRule") {
                tests = false;
                (of_action, group, of_admins) = (false, false, false);
            }
            of_action |= text.contains("action.") || text.contains("action[");
            group |= text.contains("isInGroup");
            of_admins |=
                ADMINS.iter().any(|name| text.contains(name)) || text.contains("subject.user");
            tests |= ["action.", "subject.", "action[", "spawn("]
                .iter()
                .any(|word| text.contains(word));
            if text.contains("polkit.Result.YES") {
                found.add(g, !tests, &line.place);
                if group {
                    groups.add(g, !of_action && !of_admins, &line.place);
                }
            }
        }
    }
}

/// Returns the files of the old language of polkit (pklocalauthority(8)).
fn legacy_rules(g: &mut Gather<'_>) -> Vec<String> {
    let dirs = g.list("polkit_rule", LEGACY);
    let dirs: Vec<String> = dirs.iter().map(|dir| lossy(dir)).collect();
    let mut all = Vec::new();
    for dir in dirs.into_iter().filter(|dir| dir.ends_with(".d")) {
        all.extend(files(g, "polkit_rule", &format!("{LEGACY}/{dir}"), ".pkla"));
    }
    all
}

/// Notes libraries of all programs that everybody may replace.
fn note_libraries(g: &mut Gather<'_>) {
    let mut found = Lines::of("loaded_library", "shared");
    let mut all = vec![PRELOAD.to_owned()];
    all.extend(files(g, "loaded_library", LIBRARIES, ".conf"));
    for path in all {
        for line in read(g, "loaded_library", &path) {
            let Some(text) = bare(&line) else { continue };
            let mut any = false;
            for named in text
                .split([' ', ':', '\t'])
                .filter(|one| one.starts_with('/'))
            {
                let in_shared = SHARED
                    .iter()
                    .any(|dir| format!("{named}/").starts_with(dir));
                let writable = g
                    .host
                    .tree_mode(Path::new(named))
                    .is_some_and(|mode| mode & 0o1002 == 0o002);
                any |= in_shared || writable;
            }
            found.add(g, any, &line.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;

    #[test]
    fn lines_and_their_near_misses() {
        let doas = "/etc/doas.conf";
        let polkit = "/etc/polkit-1/rules.d/10-a.rules";
        let preload = "/etc/ld.so.preload";
        for (path, text, expected) in [
            ("/root/.rhosts", "+ +\n", "rhosts.1.all 1"),
            ("/root/.rhosts", "host root\n", ""),
            ("/home/ann/.shosts", "+\n", "rhosts.1.all 1"),
            (doas, "permit nopass :wheel\n", "doas_rule.1.free 1"),
            (
                doas,
                "permit nopass keepenv ann as root\n",
                "doas_rule.1.free 1",
            ),
            (
                doas,
                "permit nopass ann cmd reboot\npermit persist :wheel\npermit nopass ann as www\n",
                "",
            ),
            (doas, "permit nopass root\ndeny nopass ann\n", ""),
            (
                polkit,
                "polkit.addRule(function(action, subject) {\n return polkit.Result.YES;\n});\n",
                "polkit_rule.1.all 2",
            ),
            (
                polkit,
                "polkit.addRule(function(action, subject) {\n \
                 if (subject.isInGroup(\"a\")) return polkit.Result.YES;\n});\n",
                "polkit_group.1.all_actions 2",
            ),
            (
                polkit,
                "polkit.addRule(function(action, subject) {\n \
                 if (subject.isInGroup(\"wheel\")) return polkit.Result.YES;\n});\n",
                "",
            ),
            (
                polkit,
                "polkit.addRule(function(action, subject) {\n if (action.id == \"a\" && \
                 subject.isInGroup(\"a\")) return polkit.Result.YES;\n});\n",
                "",
            ),
            (
                "/etc/polkit-1/localauthority/50-local.d/a.pkla",
                "[a]\nIdentity=unix-user:*\nAction=*\nResultAny=yes\nResultActive=yes\n",
                "polkit_rule.1.all 4",
            ),
            (
                "/etc/polkit-1/localauthority/50-local.d/a.pkla",
                "[a]\nIdentity=unix-group:adm\nAction=*\nResultAny=yes\n",
                "",
            ),
            (preload, "/tmp/.x/libz.so\n", "loaded_library.1.shared 1"),
            (preload, "/usr/lib/libjemalloc.so.2\n", ""),
            (
                "/etc/ld.so.conf.d/a.conf",
                "/dev/shm\n",
                "loaded_library.1.shared 1",
            ),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}

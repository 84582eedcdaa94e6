//! Finds settings of backup programs with which a backup does not run or is never checked: rsnapshot, borgmatic and
//! Bacula.

use super::super::lines_of_files::{Line, files, read};
use super::Misuses;
use crate::gather::Gather;

const RSNAPSHOT: &str = "/etc/rsnapshot.conf";
/// Parameters of rsnapshot that take arguments.
const PARAMETERS: [&str; 16] = [
    "config_version",
    "snapshot_root",
    "cmd_rsync",
    "cmd_ssh",
    "cmd_cp",
    "retain",
    "interval",
    "backup",
    "backup_script",
    "logfile",
    "lockfile",
    "exclude",
    "rsync_long_args",
    "rsync_short_args",
    "verbose",
    "loglevel",
];
const BORGMATIC: [&str; 2] = ["/etc/borgmatic/config.yaml", "/etc/borgmatic/config.yml"];
const BORGMATIC_DIR: &str = "/etc/borgmatic.d";
const BACULA: [&str; 2] = ["/etc/bacula/bacula-dir.conf", "/etc/bareos/bareos-dir.conf"];
const BACULA_DIRS: [&str; 2] = ["/etc/bacula/conf.d", "/etc/bareos/bareos-dir.d/job"];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    note_rsnapshot(g, &mut found);
    note_borgmatic(g, &mut found);
    note_bacula(g, &mut found);
    found.note(g, "backup_setting");
}

/// Notes parameters that blanks separate from their arguments: rsnapshot accepts only tabs.
fn note_rsnapshot(g: &mut Gather<'_>, found: &mut Misuses) {
    let mut all = read(g, "backup_setting", RSNAPSHOT).into_iter();
    let wrong = all.find(|line| {
        let Some((name, rest)) = line.text.split_once(char::is_whitespace) else {
            return false;
        };
        PARAMETERS.contains(&name) && !line.text[name.len()..].starts_with('\t') && !rest.is_empty()
    });
    if let Some(line) = wrong {
        found.add("refused", true, line.place);
    }
}

/// Notes checks of borgmatic that are switched off.
fn note_borgmatic(g: &mut Gather<'_>, found: &mut Misuses) {
    let mut all: Vec<String> = BORGMATIC.map(str::to_owned).to_vec();
    for end in [".yaml", ".yml"] {
        all.extend(files(g, "backup_setting", BORGMATIC_DIR, end));
    }
    for path in all {
        let lines = read(g, "backup_setting", &path);
        let mut within = false;
        for line in lines {
            let text = line.text.split('#').next().unwrap_or_default();
            let bare = text.trim();
            if bare.is_empty() {
                continue;
            }
            if bare == "checks:" {
                within = true;
            } else if !text.starts_with([' ', '-']) {
                within = false;
            } else if within && let Some(name) = bare.strip_prefix('-') {
                let name = name.trim();
                let name = name.strip_prefix("name:").unwrap_or(name).trim();
                let off = name.trim_matches(['"', '\'']) == "disabled";
                found.add("unchecked", off, line.place);
            }
        }
    }
}

/// Notes jobs of Bacula and Bareos that are switched off.
fn note_bacula(g: &mut Gather<'_>, found: &mut Misuses) {
    let mut all: Vec<String> = BACULA.map(str::to_owned).to_vec();
    for dir in BACULA_DIRS {
        all.extend(files(g, "backup_setting", dir, ".conf"));
    }
    for path in all {
        let lines = read(g, "backup_setting", &path);
        let mut depth = 0_usize;
        let mut job = false;
        let mut off: Option<Line> = None;
        for line in lines {
            let text = line
                .text
                .split('#')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned();
            if text.contains('{') {
                if depth == 0 {
                    let name = text.split('{').next().unwrap_or_default().trim();
                    job = name.eq_ignore_ascii_case("job");
                }
                depth += 1;
            }
            if let Some((key, value)) = text.split_once('=')
                && depth == 1
                && job
            {
                let key = key.replace(' ', "").to_ascii_lowercase();
                let value = value
                    .trim()
                    .trim_end_matches([';', '}'])
                    .trim()
                    .to_ascii_lowercase();
                let restores = key == "type" && value.trim_matches('"') != "backup";
                if key == "enabled" && matches!(value.as_str(), "no" | "false") {
                    off = Some(line);
                } else if restores {
                    job = false;
                }
            }
            if text.contains('}') {
                depth = depth.saturating_sub(1);
                if depth == 0
                    && let Some(line) = off.take().filter(|_| job)
                {
                    found.add("job_off", true, line.place);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn settings_and_their_near_misses() {
        for (path, text, expected) in [
            (
                RSNAPSHOT,
                "backup    /home/    localhost/\n",
                "refused=true",
            ),
            (
                RSNAPSHOT,
                "backup\t/home/\tlocalhost/\n#retain alpha 6\n",
                "",
            ),
            (
                BORGMATIC[0],
                "checks:\n    - name: disabled\n",
                "unchecked=true",
            ),
            (
                BORGMATIC[0],
                "consistency:\n  checks:\n    - disabled\n",
                "unchecked=true",
            ),
            (
                BORGMATIC[0],
                "checks:\n    - name: repository\n",
                "unchecked=false",
            ),
            (
                BACULA[0],
                "Job {\n  Name = \"a\"\n  Enabled = no\n}\n",
                "job_off=true",
            ),
            (BACULA[0], "Job {\n  Name = \"a\"\n  Enabled = yes\n}\n", ""),
            (
                BACULA[0],
                "Job {\n  Type = Restore\n  Enabled = no\n}\n",
                "",
            ),
            (BACULA[0], "JobDefs {\n  Enabled = no\n}\n", ""),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}

//! Checks file permissions as reported by stat: secrets that everyone may read, programs of root that everyone may
//! write, shells with setuid root, and jobs that are not executable. `search_paths` checks the directories of PATH.

use super::lines_of_files::{Line, exists, files, note, read};
use super::secret_files;
use crate::gather::Gather;
use assay_host::FileKind;
use assay_model::FactPlace;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of files whose permissions are read.
const MOST: usize = 400;

/// Files and directories that packages close to others. A copied tree in which one of them is closed kept its modes.
const CLOSED: [&str; 14] = [
    "/root",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/audit",
    "/etc/security/opasswd",
    "/etc/polkit-1/rules.d",
    "/etc/polkit-1/localauthority",
    "/etc/lvm/archive",
    "/etc/lvm/backup",
    "/etc/chrony/chrony.keys",
    "/etc/nut/upsd.conf",
    "/etc/ppp/peers",
    "/var/spool/cron/crontabs",
];
/// Programs that give root rights to every user if they are setuid root.
const SHELLS: [&str; 20] = [
    "bash",
    "dash",
    "sh",
    "zsh",
    "ksh",
    "env",
    "find",
    "vim",
    "vim.basic",
    "nano",
    "less",
    "awk",
    "mawk",
    "cp",
    "tar",
    "python3",
    "perl",
    "ruby",
    "php",
    "gdb",
];
const JOBS: [&str; 4] = [
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
];
pub(super) const UNITS: &str = "/etc/systemd/system";
/// Directories in which packages install units. Units here are read only if they have local changes.
const PACKAGE_UNITS: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];

/// A program that root runs, with the place of the line that starts the program.
struct Run {
    program: String,
    by: &'static str,
    place: FactPlace,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut secrets = secret_files::list(g);
    let mut closed: Vec<String> = CLOSED.map(str::to_owned).to_vec();
    closed.extend(files(g, "secret_file", "/etc/sudoers.d", ""));
    let mut runs = runs_of_cron(g);
    runs.extend(runs_of_units(g));
    let shells: Vec<String> = SHELLS
        .iter()
        .map(|name| format!("/usr/bin/{name}"))
        .collect();
    let mut jobs: Vec<String> = JOBS
        .iter()
        .flat_map(|dir| files(g, "cron.job", dir, ""))
        .collect();
    jobs.retain(|path| is_job(g, path));
    let programs = runs.iter().map(|run| run.program.clone());
    let mut all: BTreeSet<String> = secrets
        .iter()
        .chain(&shells)
        .chain(&jobs)
        .chain(&closed)
        .cloned()
        .chain(programs)
        .collect();
    all.retain(|path| exists(g, path));
    let parents: Vec<String> = all.iter().filter_map(|path| parent(path)).collect();
    all.extend(parents);
    let (modes, of_tree) = read_modes(g, &all);
    let is = |path: &String, bits: u32| modes.get(path).is_some_and(|mode| mode & bits != 0);
    // A copy, such as a git checkout, makes all files readable, and it may make none executable: a tree keeps
    // its modes where one file is different.
    let secrets_kept = !of_tree
        || secrets
            .iter()
            .chain(&closed)
            .any(|path| modes.contains_key(path) && !is(path, 0o004))
        || closed.iter().any(|path| {
            let mode = g.host.tree_mode(Path::new(path));
            mode.is_some_and(|mode| mode & 0o005 == 0)
        });
    let jobs_kept = secrets_kept || jobs.iter().any(|path| is(path, 0o111));
    let writes_kept = !of_tree
        || g.host
            .tree_mode(Path::new("/etc"))
            .is_some_and(|mode| mode & 0o002 == 0);
    secrets.retain(|_| secrets_kept);
    let jobs: Vec<String> = jobs.into_iter().filter(|_| jobs_kept).collect();
    for path in &secrets {
        let Some(mode) = modes.get(path) else {
            continue;
        };
        // A file in a closed directory cannot be reached.
        let closed = parent(path)
            .and_then(|dir| modes.get(&dir))
            .is_some_and(|dir| dir & 0o001 == 0);
        let open = mode & 0o004 != 0 && !closed;
        note(
            g,
            "secret_file",
            &name(path),
            &FactPlace::from(path.as_str()),
            &[("by_all", open.into())],
        );
    }
    for path in &shells {
        let Some(mode) = modes.get(path) else {
            continue;
        };
        let as_owner = mode & 0o4000 != 0;
        note(
            g,
            "shell_file",
            &name(path),
            &FactPlace::from(path.as_str()),
            &[("as_owner", as_owner.into())],
        );
    }
    for path in &jobs {
        let Some(mode) = modes.get(path) else {
            continue;
        };
        let runs = mode & 0o111 != 0;
        note(
            g,
            "cron.job",
            &name(path),
            &FactPlace::from(path.as_str()),
            &[("executable", runs.into())],
        );
    }
    let owners = read_owners(g, &runs);
    for (number, run) in runs.iter().filter(|_| writes_kept).enumerate() {
        let Some(mode) = modes.get(&run.program) else {
            continue;
        };
        // Directories and data in the arguments are not programs.
        let script = [".sh", ".py", ".pl"]
            .iter()
            .any(|end| run.program.ends_with(end));
        if !is_regular(g, &run.program) || (mode & 0o111 == 0 && !script) {
            continue;
        }
        let parent = parent(&run.program).unwrap_or_default();
        let dir = modes.get(&parent).copied().unwrap_or(0);
        // In a directory with the sticky bit, users cannot replace files of others.
        let replaced = dir & 0o002 != 0 && dir & 0o1000 == 0;
        let of_user = owners
            .get(&run.program)
            .is_some_and(|owner| (1000..65534).contains(owner));
        let open = [(mode & 0o002 != 0, &run.program), (replaced, &parent)];
        let open: Vec<&str> = open
            .into_iter()
            .filter_map(|(is_open, path)| is_open.then_some(path.as_str()))
            .collect();
        let properties = [
            ("by_all", (!open.is_empty()).into()),
            ("of_user", of_user.into()),
            ("writable", open.join(" ").into()),
            ("program", run.program.clone().into()),
            ("by", run.by.into()),
        ];
        note(
            g,
            "root_program",
            &(number + 1).to_string(),
            &run.place,
            &properties,
        );
    }
}

/// Returns whether a file in a cron directory is meant to run: run-parts accepts its name, and the file is not
/// documentation.
fn is_job(g: &Gather<'_>, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let read = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let for_people = name.to_ascii_lowercase().starts_with("readme");
    name.bytes().all(read)
        && !for_people
        && g.host
            .read_text(Path::new(path))
            .is_ok_and(|text| text.starts_with("#!"))
}

fn is_regular(g: &Gather<'_>, path: &str) -> bool {
    let stat = g.host.stat(Path::new(path));
    stat.is_ok_and(|stat| stat.kind == FileKind::Regular)
}

fn parent(path: &str) -> Option<String> {
    let (dir, _) = path.rsplit_once('/')?;
    (!dir.is_empty()).then(|| dir.to_owned())
}

/// Converts a path to a component of a fact name.
fn name(path: &str) -> String {
    path.trim_start_matches('/').replace('.', "-")
}

/// Returns the permission bits by path. Also returns whether the files are a copied tree, whose modes may differ from
/// those of the machine.
pub(super) fn read_modes(
    g: &Gather<'_>,
    paths: &BTreeSet<String>,
) -> (BTreeMap<String, u32>, bool) {
    let mut argv = vec!["stat", "--dereference", "--format=%a %n", "--"];
    argv.extend(paths.iter().take(MOST).map(String::as_str));
    let mut modes = BTreeMap::new();
    if argv.len() > 4
        && let Ok(output) = g.try_ask(&argv)
    {
        for line in output.text().lines() {
            if let Some((mode, path)) = line.split_once(' ')
                && let Ok(mode) = u32::from_str_radix(mode, 8)
            {
                modes.insert(path.to_owned(), mode);
            }
        }
        return (modes, false);
    }
    for path in paths.iter().take(MOST) {
        if let Some(mode) = g.host.tree_mode(Path::new(path)) {
            modes.insert(path.clone(), mode);
        }
    }
    (modes, true)
}

/// Returns the numbers of the accounts that own the programs. In a tree, they count only if root owns its /etc.
fn read_owners(g: &Gather<'_>, runs: &[Run]) -> BTreeMap<String, u32> {
    let programs: BTreeSet<&str> = runs.iter().map(|run| run.program.as_str()).collect();
    let programs: Vec<&str> = programs.into_iter().take(MOST).collect();
    let mut argv = vec!["stat", "--dereference", "--format=%u %n", "--"];
    argv.extend(&programs);
    if argv.len() > 4
        && let Ok(output) = g.try_ask(&argv)
    {
        let text = output.text();
        let owners = text.lines().filter_map(|line| {
            let (owner, path) = line.split_once(' ')?;
            Some((path.to_owned(), owner.parse().ok()?))
        });
        return owners.collect();
    }
    if g.host.tree_owner(Path::new("/etc")) != Some(0) {
        return BTreeMap::new();
    }
    let owner = |path: &str| Some((path.to_owned(), g.host.tree_owner(Path::new(path))?));
    programs.into_iter().filter_map(owner).collect()
}

/// Returns programs with absolute paths in root's cron jobs.
fn runs_of_cron(g: &mut Gather<'_>) -> Vec<Run> {
    let mut all = vec![("/etc/crontab".to_owned(), true)];
    all.extend(
        files(g, "root_program", "/etc/cron.d", "")
            .into_iter()
            .map(|path| (path, true)),
    );
    all.push(("/var/spool/cron/crontabs/root".to_owned(), false));
    let mut runs = Vec::new();
    for (path, names_user) in all {
        for line in read(g, "root_program", &path) {
            let text = line.text.trim();
            if text.starts_with('#')
                || text
                    .split_whitespace()
                    .next()
                    .is_none_or(|word| word.contains('='))
            {
                continue;
            }
            let times = if text.starts_with('@') { 1 } else { 5 };
            let mut words = text.split_whitespace().skip(times);
            if names_user && words.next() != Some("root") {
                continue;
            }
            runs.extend(words.filter(|word| is_program(word)).map(|word| Run {
                program: word.to_owned(),
                by: "cron",
                place: line.place.clone(),
            }));
        }
    }
    runs
}

/// Returns the programs of units that run as root and that an administrator wrote or changed. A unit is read with its
/// drop-ins: the last line of a setting applies, and an empty value removes the earlier ones.
fn runs_of_units(g: &mut Gather<'_>) -> Vec<Run> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for end in [".service", ".service.d"] {
        let all = files(g, "root_program", UNITS, end).into_iter();
        names.extend(all.filter_map(|path| {
            let name = path.rsplit('/').next()?.trim_end_matches(".d");
            Some(name.to_owned())
        }));
    }
    let mut runs = Vec::new();
    for name in names {
        let own = format!("{UNITS}/{name}");
        // A masked unit is a link to /dev/null.
        let of_package = PACKAGE_UNITS
            .iter()
            .map(|dir| format!("{dir}/{name}"))
            .find(|path| exists(g, path));
        let main = if exists(g, &own) {
            Some(own.clone())
        } else {
            of_package
        };
        let mut lines = Vec::new();
        for path in main
            .into_iter()
            .chain(files(g, "root_program", &format!("{own}.d"), ".conf"))
        {
            lines.extend(read(g, "root_program", &path));
        }
        runs.extend(runs_of_unit(&lines));
    }
    runs
}

/// Returns the programs of one unit that files of the administrator set.
fn runs_of_unit(lines: &[Line]) -> Vec<Run> {
    let mut user = "root";
    let mut dynamic = false;
    let mut commands: Vec<(&str, &str, &FactPlace)> = Vec::new();
    for line in lines {
        let Some((name, value)) = line.text.trim().split_once('=') else {
            continue;
        };
        let (name, value) = (name.trim_end(), value.trim());
        match name {
            "User" => user = value,
            "DynamicUser" => dynamic = matches!(value, "yes" | "true" | "on" | "1"),
            _ if name.starts_with("Exec") && value.is_empty() => {
                commands.retain(|(known, ..)| *known != name);
            }
            _ if name.starts_with("Exec") => commands.push((name, value, &line.place)),
            _ => {}
        }
    }
    if dynamic || !matches!(user, "root" | "0" | "") {
        return Vec::new();
    }
    let of_admin = |place: &FactPlace| place.to_string().starts_with(UNITS);
    let commands = commands.into_iter().filter(|(_, _, place)| of_admin(place));
    commands
        .flat_map(|(_, command, place)| {
            let command = command.trim_start_matches(['-', '@', ':', '+', '!', '|']);
            let words = command.split_whitespace().filter(|word| is_program(word));
            words.map(|word| Run {
                program: word.to_owned(),
                by: "unit",
                place: place.clone(),
            })
        })
        .collect()
}

/// Returns whether a path is likely a program: not a device, log or temporary file.
fn is_program(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+@-".contains(&byte);
    let elsewhere = [
        "/dev/",
        "/proc/",
        "/sys/",
        "/run/",
        "/var/log/",
        "/var/lib/",
    ];
    word.starts_with('/')
        && word.len() > 4
        && word.bytes().all(plain)
        && !elsewhere.iter().any(|dir| word.starts_with(dir))
        && !word.ends_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn programs_of_root() {
        let host = Recorded::new()
            .file(
                "/etc/cron.d/own",
                "SHELL=/bin/sh\n0 3 * * * root /opt/own/backup.sh /opt/own\n\
             1 * * * * bob /opt/own/other\n",
            )
            .file("/opt/own/backup.sh", "#!/bin/sh\n")
            .command(
                &[
                    "stat",
                    "--dereference",
                    "--format=%a %n",
                    "--",
                    "/opt",
                    "/opt/own",
                    "/opt/own/backup.sh",
                ],
                "755 /opt/own\n757 /opt/own/backup.sh\n",
            );
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.get("root_program.1.by_all"), Some(&true.into()));
        assert_eq!(
            g.facts.str("root_program.1.writable"),
            Some("/opt/own/backup.sh")
        );
        assert_eq!(
            g.facts
                .map
                .keys()
                .filter(|key| key.starts_with("root_program"))
                .count(),
            5
        );
    }

    #[test]
    fn drop_ins_change_what_a_unit_runs() {
        let runs = |drop_in: &str| -> Vec<String> {
            let host = Recorded::new()
                .file(
                    "/usr/lib/systemd/system/a.service",
                    "[Service]\nExecStart=/usr/bin/old\n",
                )
                .file(
                    "/usr/lib/systemd/system/b.service",
                    "[Service]\nExecStart=/usr/bin/b\n",
                )
                .file("/etc/systemd/system/a.service.d/o.conf", drop_in);
            let mut g = Gather::new(&host);
            let runs = runs_of_units(&mut g).into_iter();
            runs.map(|run| run.program).collect()
        };
        assert_eq!(
            runs("[Service]\nExecStart=\nExecStart=-/opt/a/run\n"),
            ["/opt/a/run"]
        );
        assert!(runs("[Service]\nExecStart=\nExecStart=/opt/a/run\nUser=bob\n").is_empty());
        assert!(runs("[Service]\nExecStart=/opt/a/run\nExecStart=\n").is_empty());
        assert!(runs("[Service]\nDynamicUser=yes\nExecStartPre=/opt/a/run\n").is_empty());
        assert!(runs("[Service]\nRestart=always\n").is_empty());
    }

    /// `systemctl mask` links a unit to /dev/null.
    #[test]
    fn a_masked_unit_has_no_programs() {
        let host = Recorded::new()
            .linked("/etc/systemd/system/zfs-zed.service", "/dev/null")
            .file("/etc/systemd/system/a.service", "[Unit]\n")
            .device("/dev/null", 1, 3);
        let mut g = Gather::new(&host);
        collect(&mut g);
        let keys: Vec<&String> = g.facts.map.keys().collect();
        assert!(keys.is_empty(), "{keys:?}");
    }
}

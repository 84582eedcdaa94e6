//! Finds programs that root starts from a directory of an ordinary user, or from a directory that all users share: jobs
//! of cron, units of systemd, and rules of sudo. `file_modes` checks the rights of the programs themselves.

use super::super::lines_of_files::{Line, files, read};
use super::super::sudo_rules::{is_comment, runs_as_root};
use super::Misuses;
use crate::gather::Gather;
use std::path::Path;

const PASSWD: &str = "/etc/passwd";
const UNITS: &str = "/etc/systemd/system";
/// Directories in which every account may create files.
const SHARED: [&str; 3] = ["/tmp/", "/var/tmp/", "/dev/shm/"];
/// Programs that run the file in their first argument.
const RUNNERS: [&str; 12] = [
    "sh", "bash", "dash", "python", "python3", "perl", "ruby", "php", "nice", "ionice", "exec",
    "sudo",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    let homes = homes(g);
    let mut found = Misuses::default();
    note_jobs(g, &homes, &mut found);
    note_units(g, &homes, &mut found);
    note_sudo(g, &homes, &mut found);
    found.note(g, "user_program");
}

/// Returns the homes of people.
fn homes(g: &mut Gather<'_>) -> Vec<String> {
    let lines = read(g, "user_program", PASSWD);
    let homes = lines.iter().filter_map(|line| {
        let fields: Vec<&str> = line.text.split(':').collect();
        let [_, _, user, _, _, home, _] = fields[..] else {
            return None;
        };
        let person = user
            .parse::<u32>()
            .is_ok_and(|user| (1000..65534).contains(&user));
        (person && home.len() > 1 && home.starts_with('/')).then(|| format!("{home}/"))
    });
    homes.collect()
}

/// Returns whether an ordinary user can replace a program by its path. `of` is the account of a rule, whose home is
/// known without /etc/passwd.
fn is_foreign(path: &str, homes: &[String], of: Option<&str>) -> bool {
    let own = of.map(|name| format!("/home/{name}/"));
    SHARED.iter().any(|dir| path.starts_with(dir))
        || homes.iter().any(|home| path.starts_with(home.as_str()))
        || own.is_some_and(|own| path.starts_with(&own))
}

/// Returns the programs that a command of a shell starts: the first word of each part, and the file of an interpreter.
fn programs(command: &str) -> Vec<&str> {
    let mut programs = Vec::new();
    let mut first = true;
    for word in command.split_whitespace() {
        let word = word.trim_start_matches(['(', '{']);
        if matches!(
            word,
            "&&" | "||" | ";" | "|" | "&" | "then" | "do" | "if" | "!"
        ) {
            first = true;
            continue;
        }
        let bare = word.trim_end_matches([';', ')']);
        if first {
            let name = bare.rsplit('/').next().unwrap_or_default();
            // Words such as `nice -n 19` go on with options.
            first = RUNNERS.contains(&name) || bare.contains('=');
            programs.push(bare);
        } else if word.ends_with(';') {
            first = true;
        }
        // Options of a runner and their numbers.
        let is_option =
            |last: &&str| last.starts_with('-') || last.bytes().all(|byte| byte.is_ascii_digit());
        if programs.last().is_some_and(is_option) {
            programs.pop();
            first = true;
        }
    }
    programs
}

fn note_jobs(g: &mut Gather<'_>, homes: &[String], found: &mut Misuses) {
    let mut all = vec![("/etc/crontab".to_owned(), true)];
    let tables = files(g, "user_program", "/etc/cron.d", "").into_iter();
    all.extend(tables.map(|path| (path, true)));
    all.push(("/var/spool/cron/crontabs/root".to_owned(), false));
    for (path, names_user) in all {
        for line in read(g, "user_program", &path) {
            let text = line.text.trim();
            let starts =
                text.starts_with(|letter: char| letter.is_ascii_digit() || "*@".contains(letter));
            if !starts {
                continue;
            }
            let times = if text.starts_with('@') { 1 } else { 5 };
            let mut words = text.split_whitespace().skip(times);
            if names_user && words.next() != Some("root") {
                continue;
            }
            let command = words.collect::<Vec<_>>().join(" ");
            let foreign = programs(&command)
                .iter()
                .any(|program| is_foreign(program, homes, None));
            found.add("foreign", foreign, line.place);
        }
    }
}

fn note_units(g: &mut Gather<'_>, homes: &[String], found: &mut Misuses) {
    for path in files(g, "user_program", UNITS, ".service") {
        if g.host.link(Path::new(&path)).is_ok() {
            continue;
        }
        let lines = read(g, "user_program", &path);
        let value = |key: &str| {
            let mut values = lines.iter().rev().filter_map(|line| {
                let (name, value) = line.text.trim().split_once('=')?;
                (name.trim_end() == key).then(|| value.trim())
            });
            values.next()
        };
        let as_root = matches!(value("User"), None | Some("root" | "0" | ""));
        let dynamic = matches!(value("DynamicUser"), Some("yes" | "true" | "on" | "1"));
        if !as_root || dynamic {
            continue;
        }
        for line in &lines {
            let Some((key, command)) = line.text.trim().split_once('=') else {
                continue;
            };
            if key.trim_end().starts_with("Exec") {
                let command = command.trim().trim_start_matches(['-', '@', ':', '+', '!']);
                let foreign = programs(command)
                    .iter()
                    .any(|program| is_foreign(program, homes, None));
                found.add("foreign", foreign, line.place.clone());
            }
        }
    }
}

fn note_sudo(g: &mut Gather<'_>, homes: &[String], found: &mut Misuses) {
    let mut all = vec!["/etc/sudoers".to_owned()];
    let in_dir = files(g, "user_program", "/etc/sudoers.d", "");
    all.extend(in_dir.into_iter().filter(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        !name.contains('.') && !name.ends_with('~')
    }));
    for path in all {
        for line in read(g, "user_program", &path) {
            if let Some(foreign) = is_rule_of_user(&line, homes) {
                found.add("foreign", foreign, line.place);
            }
        }
    }
}

/// Returns whether a rule of sudo runs a program as root that its own account can replace.
fn is_rule_of_user(line: &Line, homes: &[String]) -> Option<bool> {
    let text = line.text.trim();
    let (who, rest) = text.split_once(char::is_whitespace)?;
    if is_comment(text) || who.starts_with('@') || who.starts_with("Defaults") || who == "root" {
        return None;
    }
    let commands = rest.split_once('=')?.1;
    let before = commands.split('/').next().unwrap_or_default();
    let of = Some(who).filter(|who| !who.ends_with("_Alias"));
    let foreign = commands.split(',').any(|command| {
        let at = command.find('/');
        let path = at.map_or("", |at| &command[at..]);
        let path = path.split_whitespace().next().unwrap_or_default();
        is_foreign(path, homes, of)
    });
    Some(foreign && runs_as_root(before))
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn programs_and_their_near_misses() {
        let people = (PASSWD, "bob:x:1000:1000::/home/bob:/bin/bash\n");
        let (table, unit, sudo) = (
            "/etc/cron.d/own",
            "/etc/systemd/system/a.service",
            "/etc/sudoers.d/own",
        );
        for (path, text, expected) in [
            (table, "0 3 * * * root /tmp/sync.sh\n", "foreign=true"),
            (
                table,
                "0 3 * * * root [ -x /tmp/a ] && /tmp/a >> /var/log/a 2>&1\n",
                "foreign=true",
            ),
            (
                table,
                "0 3 * * * root bash /home/bob/a.sh\n",
                "foreign=true",
            ),
            (
                table,
                "0 3 * * * root nice -n 19 /home/bob/a.sh\n",
                "foreign=true",
            ),
            (table, "0 3 * * * bob /home/bob/a.sh\n", ""),
            (
                table,
                "0 3 * * * root tar cf /tmp/a.tar /home/bob\n",
                "foreign=false",
            ),
            (
                table,
                "0 3 * * * root /home/scripts/a.sh\n",
                "foreign=false",
            ),
            (
                unit,
                "[Service]\nExecStart=/home/bob/app/run --x\n",
                "foreign=true",
            ),
            (
                unit,
                "[Service]\nUser=bob\nExecStart=/home/bob/app/run\n",
                "",
            ),
            (
                unit,
                "[Service]\nExecStart=/opt/run /home/bob\n",
                "foreign=false",
            ),
            (
                sudo,
                "deploy ALL=(root) NOPASSWD:/home/deploy/bin/a.sh\n",
                "foreign=true",
            ),
            (
                sudo,
                "deploy ALL=(www) NOPASSWD: /home/deploy/bin/a.sh\n",
                "foreign=false",
            ),
            (
                sudo,
                "deploy ALL=(root) /usr/local/sbin/a.sh /home/deploy\n",
                "foreign=false",
            ),
        ] {
            assert_eq!(
                found(&[people, (path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}

//! Finds sudo rules that grant more than was probably intended (sudoers(5)). `accounts` finds rules without a password.

use super::lines_of_files::{Line, files, note, read};
use crate::gather::Gather;
use std::collections::BTreeMap;

const SUDOERS: &str = "/etc/sudoers";
const SUDOERS_DIR: &str = "/etc/sudoers.d";
/// Environment variables from which the linker and interpreters load code.
const LOADERS: [&str; 7] = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "PYTHONPATH",
    "PERL5LIB",
    "RUBYLIB",
    "BASH_ENV",
];
/// Programs from which a user can start a shell.
const SHELLS: [&str; 29] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "env",
    "vi",
    "vim",
    "vim.basic",
    "nano",
    "emacs",
    "ed",
    "less",
    "more",
    "man",
    "find",
    "awk",
    "gawk",
    "mawk",
    "python3",
    "perl",
    "ruby",
    "tar",
    "gdb",
    "docker",
    "podman",
    "nerdctl",
    "lxc",
    "su",
];

/// Programs of `SHELLS` in which the user can start a shell interactively, whatever the arguments are.
const FROM_INSIDE: [&str; 8] = [
    "vi",
    "vim",
    "vim.basic",
    "emacs",
    "ed",
    "less",
    "more",
    "man",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut all = vec![SUDOERS.to_owned()];
    let in_dir = files(g, "sudo.line", SUDOERS_DIR, "");
    all.extend(in_dir.into_iter().filter(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        !name.contains('.') && !name.ends_with('~')
    }));
    let mut lines = Vec::new();
    for path in all {
        lines.extend(read(g, "sudo.line", &path));
    }
    lines.retain(|line| {
        let text = line.text.trim();
        !text.is_empty() && !is_comment(text) && !text.starts_with('@')
    });
    let asks_target = lines.iter().any(|line| {
        let (who, rest) = split(&line.text);
        who == "Defaults"
            && rest
                .split(',')
                .any(|one| matches!(one.trim(), "targetpw" | "rootpw" | "runaspw"))
    });
    let aliases = command_aliases(&lines);
    for (number, line) in lines.iter().enumerate() {
        let (who, rest) = split(&line.text);
        let which = (number + 1).to_string();
        let properties = if who.starts_with("Defaults") {
            vec![
                ("loader", keeps_loader(rest).into()),
                ("forever", lasts_forever(rest).into()),
            ]
        } else if who.ends_with("_Alias") {
            continue;
        } else {
            let commands =
                without_blanks_in_tags(rest.split_once('=').map_or("", |(_, commands)| commands));
            let named: Vec<&str> = commands
                .split(',')
                .map(without_tags)
                .flat_map(|one| aliases.get(one).cloned().unwrap_or_else(|| vec![one]))
                .collect();
            let all = named.contains(&"ALL");
            let free = commands
                .split_once("NOPASSWD:")
                .is_some_and(|(before, _)| runs_as_root(before))
                && !commands.contains("NOEXEC:");
            let negated = all && named.iter().any(|one| one.starts_with('!'));
            let everybody = who == "ALL" && all && !asks_target;
            let of_root = who == "root" || who == "%root";
            let shell = free && !of_root && named.iter().any(|one| is_shell(one));
            let pattern = !of_root && named.iter().any(|one| has_pattern(one));
            vec![
                ("negated", negated.into()),
                ("everybody", everybody.into()),
                ("shell", shell.into()),
                ("pattern", pattern.into()),
            ]
        };
        note(g, "sudo.line", &which, &line.place, &properties);
    }
}

/// Returns whether a line is a comment. A number after `#` is the number of a user (sudoers(5)).
pub(super) fn is_comment(text: &str) -> bool {
    text.strip_prefix('#')
        .is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// Returns the commands of each Cmnd_Alias, by its name. One line may define several aliases, separated by colons.
fn command_aliases(lines: &[Line]) -> BTreeMap<&str, Vec<&str>> {
    let mut aliases = BTreeMap::new();
    for line in lines {
        let (who, rest) = split(&line.text);
        if who != "Cmnd_Alias" && who != "Cmd_Alias" {
            continue;
        }
        for one in rest.split(" : ") {
            if let Some((name, commands)) = one.split_once('=') {
                let commands = commands.split(',').map(str::trim).collect();
                aliases.insert(name.trim(), commands);
            }
        }
    }
    aliases
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

fn keeps_loader(rest: &str) -> bool {
    let keeps =
        rest.contains("env_keep") && !rest.contains("env_keep-=") && !rest.contains("env_keep -=");
    let word = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '_');
    keeps && rest.split(word).any(|name| LOADERS.contains(&name))
}

fn lasts_forever(rest: &str) -> bool {
    let value = rest.split("timestamp_timeout").nth(1).unwrap_or_default();
    let value = value.trim_start().strip_prefix('=').unwrap_or_default();
    value.trim_start().starts_with('-')
}

/// Removes the blanks before the colon of a tag (`NOPASSWD : ALL`).
pub(super) fn without_blanks_in_tags(commands: &str) -> String {
    let words: Vec<&str> = commands.split_whitespace().collect();
    words
        .join(" ")
        .replace("PASSWD :", "PASSWD:")
        .replace("EXEC :", "EXEC:")
}

/// Returns whether the last list of users in parentheses includes root. Without a list, or for an empty list, returns
/// true. A list that begins with a colon contains only groups.
pub(super) fn runs_as_root(before: &str) -> bool {
    let Some((_, list)) = before.rsplit_once('(') else {
        return true;
    };
    let users = list.split([':', ')']).next().unwrap_or_default();
    users
        .split(',')
        .any(|user| matches!(user.trim(), "ALL" | "root" | "#0"))
        || list.trim_start().starts_with(')')
}

/// Returns a command without its run-as user and tags such as `NOPASSWD:`.
fn without_tags(command: &str) -> &str {
    let mut rest = command.trim();
    if rest.starts_with('(') {
        rest = rest
            .split_once(')')
            .map_or("", |(_, rest)| rest)
            .trim_start();
    }
    while let Some((tag, after)) = rest.split_once(':') {
        if tag.is_empty()
            || !tag
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

/// Returns whether a command lets the user start a shell. The program must be in `SHELLS`. In addition, the rule must
/// permit any arguments, or the program must be in `FROM_INSIDE`.
fn is_shell(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let path = words.next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let any = words.next().is_none() || FROM_INSIDE.contains(&name);
    path.starts_with('/') && any && SHELLS.contains(&name)
}

/// Returns whether the arguments contain a wildcard. In sudoers, a wildcard also matches blanks and further arguments.
fn has_pattern(command: &str) -> bool {
    let Some((path, arguments)) = command.split_once(char::is_whitespace) else {
        return false;
    };
    path.starts_with('/') && arguments.contains('*') && !arguments.trim_start().starts_with('^')
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn lines_and_their_near_misses() {
        for (text, fact) in [
            ("Defaults env_keep += \"LD_PRELOAD\"\n", "loader"),
            ("Defaults timestamp_timeout=-1\n", "forever"),
            ("bob ALL=(ALL) ALL, !/bin/su\n", "negated"),
            ("ALL ALL=(ALL:ALL) ALL\n", "everybody"),
            ("bob ALL=(root) NOPASSWD: /usr/bin/vim\n", "shell"),
            (
                "bob ALL=(root) NOPASSWD: /usr/bin/less /var/log/syslog\n",
                "shell",
            ),
            (
                "Cmnd_Alias E = /bin/ls, /usr/bin/vim\nbob ALL=(root) NOPASSWD: E\n",
                "shell",
            ),
            ("bob ALL=(root) NOPASSWD: /bin/cat /var/log/*\n", "pattern"),
        ] {
            assert_eq!(holds(text), [fact], "{text}");
        }
        for text in [
            "Defaults env_keep += \"LANG LC_ALL\"\n",
            "Defaults timestamp_timeout=15\n",
            "bob ALL=(ALL) /bin/ls, !/bin/ls /root\n",
            "Defaults targetpw\nALL ALL=(ALL) ALL\n",
            "bob ALL=(root) NOPASSWD: /usr/bin/rsync, /usr/bin/find /srv -newer x\n",
            "bob ALL=(root) NOPASSWD:NOEXEC: /usr/bin/vim\n",
            "%sudo ALL=(ALL:ALL) ALL\n",
        ] {
            assert_eq!(holds(text), Vec::<String>::new(), "{text}");
        }
    }

    fn holds(text: &str) -> Vec<String> {
        let host = Recorded::new().file(SUDOERS, text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        let holds = |key: &&String| g.facts.get(key) == Some(&true.into());
        let all = g.facts.map.keys().filter(holds);
        all.filter_map(|key| Some(key.rsplit('.').next()?.to_owned()))
            .collect()
    }
}

//! Names the program that a login waits for, without its arguments. The parent module names all other waits.

use super::is_users_shell;
use crate::activity::ActivityShare;
use crate::cause::{Named, PamLine, ServerKnowledge, name_cause};
use crate::{Login, LoginPart};

/// Describes a program that the server started as the cause of a wait.
pub(super) fn name_program(
    share: &ActivityShare,
    words: &[String],
    inner: &str,
    login: &Login,
    known: &ServerKnowledge,
) -> Named {
    let line = words.join(" ");
    let process = format!("process {inner} below {}, timed", share.process);
    if let Some(command) = known.setting("forcecommand").filter(|value| is_set(value))
        && is_command(words, command)
    {
        let what = format!(
            "sshd runs a command of its own for this user: ForceCommand {}",
            first_word(command)
        );
        let then = "time that command by hand as the user";
        return name_cause("force-command", &what, &format!("sshd -T; {process}"), then);
    }
    if line.contains(".ssh/rc") {
        let then = "time `sh ~/.ssh/rc` there; sshd waits for it at each login";
        return name_cause("ssh-rc", "sshd runs ~/.ssh/rc of the user", &process, then);
    }
    if line.contains("/etc/ssh/sshrc") {
        let then = "time `sh /etc/ssh/sshrc` there; sshd waits for it at each login";
        return name_cause("sshrc", "sshd runs /etc/ssh/sshrc", &process, then);
    }
    if is_users_shell(share) && !is_known_shell(words) {
        let what = format!(
            "the user's login shell is the program {}, and it waits before the command: {inner}",
            share.process
        );
        let then = "time that program by hand as the user; `chsh` sets another login shell";
        return name_cause("login-shell", &what, &process, then);
    }
    if is_users_shell(share) {
        let what = "the user's shell runs its start-up files before the command";
        let then = "move what is slow in the shell's start-up files behind a test for a terminal";
        return name_cause(
            "shell-start-up",
            &format!("{what}: {inner}"),
            &process,
            then,
        );
    }
    for (keyword, id, user) in [
        (
            "authorizedkeyscommand",
            "authorized-keys-command",
            "AuthorizedKeysCommandUser",
        ),
        (
            "authorizedprincipalscommand",
            "authorized-principals-command",
            "AuthorizedPrincipalsCommandUser",
        ),
    ] {
        if let Some(command) = known.setting(keyword).filter(|value| is_set(value))
            && is_command(words, first_word(command))
        {
            let what = format!(
                "sshd starts a program for each login: {}",
                first_word(command)
            );
            return name_cause(
                id,
                &what,
                &format!("sshd -T: {keyword}; {process}"),
                &format!("time it by hand as {user}"),
            );
        }
    }
    if let Some(cause) = name_pam_program(&line, words, &process, known) {
        return cause;
    }
    if login.clues.forced_by_key && share.part == LoginPart::Session {
        let what = format!(
            "the user's key runs a command of its own: {}",
            program_name(words)
        );
        let seen = format!("`command=` in authorized_keys; {process}");
        return name_cause(
            "force-command",
            &what,
            &seen,
            "time that command by hand as the user",
        );
    }
    let what = format!(
        "the server waits for a program that it started: {}",
        program_name(words)
    );
    name_cause(
        "server-program",
        &what,
        &process,
        "time that program by hand",
    )
}

pub(super) fn name_pam_program(
    line: &str,
    words: &[String],
    process: &str,
    known: &ServerKnowledge,
) -> Option<Named> {
    let stack = known.pam.as_deref().unwrap_or_default();
    if line.contains("/etc/update-motd.d") || line.contains("run-parts") {
        let script = words
            .iter()
            .find(|word| word.starts_with("/etc/update-motd.d/"));
        let what = match script {
            Some(script) => format!("pam_motd runs {script}"),
            None => "pam_motd runs the programs of /etc/update-motd.d".to_owned(),
        };
        let runs = |line: &&PamLine| {
            line.module == "pam_motd" && !line.arguments.iter().any(|word| word == "noupdate")
        };
        let place = stack.iter().find(runs).map(|line| line.place.clone());
        let seen = format!("{}; {process}", place.as_deref().unwrap_or("its processes"));
        return Some(name_cause("pam-motd", &what, &seen, TIME_MOTD));
    }
    let own = stack.iter().find(|line| {
        let paths = line.arguments.iter().filter(|word| word.starts_with('/'));
        paths.into_iter().any(|path| is_command(words, path))
    });
    let by_helper = || {
        let helper = words
            .iter()
            .find(|word| word.contains("_helper") || word.contains("unix_chkpwd"))?;
        let module = match helper.contains("mkhomedir") {
            true => "pam_mkhomedir",
            false => "pam_unix",
        };
        stack.iter().find(|line| line.module == module)
    };
    let found = own.or_else(by_helper)?;
    let id = match &found.module[..] {
        "pam_exec" => "pam-exec",
        "pam_script" => "pam-script",
        "pam_mkhomedir" => "pam-mkhomedir",
        _ => "pam-module",
    };
    let what = format!("{} runs {}", found.module, program_name(words));
    let then = format!(
        "time that program by hand as root; the login waits for it until it ends or the line at {} goes",
        found.place
    );
    Some(name_cause(
        id,
        &what,
        &format!("{}; {process}", found.place),
        &then,
    ))
}

/// Advice in a finding: a shell command that times each program of pam_motd. `run-parts --test` would only print the
/// names.
const TIME_MOTD: &str = "time each of them: `for f in /etc/update-motd.d/*; do [ -x \"$f\" ] && \
    echo \"$f\" && bash -c 'time \"$0\" >/dev/null' \"$f\"; done`";

pub(super) fn is_set(value: &str) -> bool {
    !value.is_empty() && value != "none"
}

/// Returns whether the words of a command line run this command.
pub(super) fn is_command(words: &[String], command: &str) -> bool {
    let command = command.trim();
    if command.is_empty() {
        return false;
    }
    let path = first_word(command);
    let by_path = path.starts_with('/') && words.iter().any(|word| word == path);
    by_path || words.join(" ").contains(command)
}

pub(super) fn first_word(command: &str) -> &str {
    command.split_whitespace().next().unwrap_or(command)
}

/// Returns the name of a process's program: for an interpreter the script, for `sh -c` the first word after it.
/// Arguments are left out, because they may contain secrets.
pub(super) fn program_name(words: &[String]) -> String {
    const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "env", "python3"];
    let base = |word: &str| {
        word.rsplit('/')
            .next()
            .unwrap_or(word)
            .trim_start_matches('-')
            .to_owned()
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word.starts_with('-') && !SHELLS.contains(&&base(word)[..]) {
            continue;
        }
        let first = first_word(word);
        let is_shell = SHELLS.contains(&&base(first)[..]);
        if !is_shell || rest.len() == 0 {
            return first.trim_matches(['\'', '"']).to_owned();
        }
    }
    "unknown".to_owned()
}

/// Returns whether a command line is that of a shell with known start-up files. If the login shell is a script, its
/// path is the second word.
fn is_known_shell(words: &[String]) -> bool {
    const SHELLS: [&str; 13] = [
        "bash", "sh", "dash", "ash", "busybox", "zsh", "ksh", "ksh93", "mksh", "fish", "csh",
        "tcsh", "rbash",
    ];
    let script = words.get(1).filter(|word| !word.starts_with('-'));
    let shell = script.or(words.first()).map_or("", String::as_str);
    let name = shell.rsplit('/').next().unwrap_or(shell);
    SHELLS.contains(&name.trim_start_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_shell_of_ones_own_is_no_shell_with_start_up_files() {
        for (words, known) in [
            (&["zsh", "-c", "printf assay-login"][..], true),
            (&["-bash", "-c", "x"], true),
            (&["/usr/bin/rssh", "-c", "x"], false),
            (&["/bin/bash", "/root/slowsh", "-c", "x"], false),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(is_known_shell(&words), known, "{words:?}");
        }
    }

    #[test]
    fn programs_are_named_without_their_arguments() {
        for (words, expected) in [
            (
                &["/usr/local/bin/hook", "--token", "hunter2"][..],
                "/usr/local/bin/hook",
            ),
            (&["/bin/sh", "/etc/hook.sh", "hunter2"], "/etc/hook.sh"),
            (&["sh", "-c", "curl -H hunter2 https://x/"], "curl"),
            (&["/bin/bash", "-e", "/x/y"], "/x/y"),
            (&["-bash"], "-bash"),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(program_name(&words), expected);
        }
    }
}

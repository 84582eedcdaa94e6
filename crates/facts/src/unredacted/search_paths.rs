//! Finds lines that add a directory to the PATH of all accounts or of root in which everyone may put programs: of
//! shells, of cron, of sudo (`secure_path`) and of logins (login.defs(5)).

use super::lines_of_files::{files, note, read};
use crate::gather::Gather;

/// File with PATH of logins of root and of others.
const LOGIN: &str = "/etc/login.defs";
const SUDOERS: &str = "/etc/sudoers";
const FILES: [&str; 8] = [
    "/etc/environment",
    "/etc/crontab",
    "/etc/profile",
    "/root/.profile",
    "/root/.bash_profile",
    "/root/.bashrc",
    "/etc/bash.bashrc",
    "/etc/bashrc",
];

/// Notes lines that set PATH for all accounts or for root.
pub(super) fn collect(g: &mut Gather<'_>) {
    let mut number = 0;
    let mut all: Vec<String> = FILES.map(str::to_owned).to_vec();
    all.extend(files(g, "search_path", "/etc/profile.d", ".sh"));
    all.extend(files(g, "search_path", "/etc/cron.d", ""));
    all.push(LOGIN.to_owned());
    all.push(SUDOERS.to_owned());
    let rules = files(g, "search_path", "/etc/sudoers.d", "");
    all.extend(
        rules
            .into_iter()
            .filter(|path| !path["/etc/sudoers.d".len()..].contains('.')),
    );
    for path in all {
        for line in read(g, "search_path", &path) {
            let Some(value) = value_of(&path, line.text.trim()) else {
                continue;
            };
            number += 1;
            let value = value
                .split(" #")
                .next()
                .unwrap_or_default()
                .trim()
                .trim_matches(['"', '\'']);
            let foreign = |dir: &str| {
                let relative = !dir.starts_with(['/', '$', '~']);
                let shared = ["/tmp", "/var/tmp", "/dev/shm"];
                relative
                    || shared
                        .iter()
                        .any(|one| dir == *one || dir.starts_with(&format!("{one}/")))
            };
            let open = without_expansions(value).split(':').any(foreign);
            // sudo has a page of its own, because its files need another check.
            let property = match path.starts_with(SUDOERS) {
                true => "sudo_foreign",
                false => "foreign",
            };
            note(
                g,
                "search_path",
                &number.to_string(),
                &line.place,
                &[(property, open.into())],
            );
        }
    }
}

/// Returns the PATH that a line sets.
fn value_of<'a>(path: &str, text: &'a str) -> Option<&'a str> {
    if path == LOGIN {
        let (name, value) = text.split_once(char::is_whitespace)?;
        let of_path = ["ENV_PATH", "ENV_SUPATH"].contains(&name);
        return value.trim().strip_prefix("PATH=").filter(|_| of_path);
    }
    if path.starts_with(SUDOERS) {
        let (_, value) = text.strip_prefix("Defaults")?.split_once("secure_path")?;
        let value = value.trim_start().strip_prefix('=')?.trim();
        return value.trim_start_matches('"').split('"').next();
    }
    let text = text.trim_start_matches("export ").trim_start();
    text.strip_prefix("PATH=")
}

/// Replaces each `${…}` by a simple variable, because a colon within it does not separate directories.
fn without_expansions(value: &str) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        out.push_str("$V");
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn directories_of_path() {
        for (text, foreign) in [
            ("PATH=\"/usr/bin:/bin\"\n", false),
            ("export PATH=$PATH:/opt/x/bin\n", false),
            ("PATH=.:/usr/bin\n", true),
            ("PATH=/usr/bin:\n", true),
            ("PATH=/tmp/bin:/usr/bin\n", true),
            ("PATH=\"${PATH:+$PATH:}$1\"\n", false),
            ("PATH=\"${PATH}:.\"\n", true),
        ] {
            let host = Recorded::new().file("/etc/profile", text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            assert_eq!(
                g.facts.get("search_path.1.foreign"),
                Some(&foreign.into()),
                "{text}"
            );
        }
    }
}

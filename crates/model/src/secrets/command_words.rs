//! Removes secrets from the words of a command line.

use super::{WITHHELD, names_a_secret, withhold_in_text};

/// Programs that accept a password in the same word as its option: `-pPASSWORD`.
const SHORT_P: [&str; 9] = [
    "mysql",
    "mariadb",
    "mysqladmin",
    "mysqldump",
    "mysqlslap",
    "mysqlcheck",
    "mariadb-admin",
    "mariadb-dump",
    "mariadb-slap",
];
/// Programs with an option (`-a`, `-p` or `-w`) whose value, the next word, is a password.
const NEXT_WORD: [(&str, &str); 8] = [
    ("redis-cli", "-a"),
    ("redis-benchmark", "-a"),
    ("sshpass", "-p"),
    ("ldapsearch", "-w"),
    ("ldapwhoami", "-w"),
    ("smbclient", "-W"),
    ("mongosh", "-p"),
    ("mongo", "-p"),
];
/// Options of programs that log in. Their value is `USER:PASSWORD` (curl, wrk, ab) or `USER%PASSWORD` (smbclient).
const LOGINS: [&str; 7] = [
    "-u",
    "--user",
    "-U",
    "--proxy-user",
    "-A",
    "-P",
    "--proxy-auth",
];

/// Returns the words of a command line without secrets. In addition to [`withhold_in_text`], removes the word after an
/// option whose name marks a secret (`--password WORD`), `-pWORD` of MySQL's programs, and the password of `-u
/// USER:PASSWORD`. A word that is itself a command line (`sh -c '…'`) is treated in the same way. Applying this twice
/// changes nothing.
#[must_use]
pub fn withhold_in_words(words: &[String]) -> Vec<String> {
    let mut program = "";
    let mut clean: Vec<String> = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |at| words[at].as_str());
        // `env A=b program`, `nice -n 5 program`, `;program`.
        let name = word.rsplit('/').next().unwrap_or(word);
        let known = SHORT_P.contains(&name) || NEXT_WORD.iter().any(|(known, _)| *known == name);
        if known {
            program = name;
        }
        clean.push(withhold_word(program, before, word));
    }
    clean
}

fn withhold_word(program: &str, before: &str, word: &str) -> String {
    if word.contains(WITHHELD) {
        return word.to_owned();
    }
    let is_option = before.starts_with('-') && !before.contains('=');
    let follows_secret = is_option && before.starts_with("--") && names_a_secret(before)
        || NEXT_WORD.contains(&(program, before));
    // `--password-file /etc/x` names a place.
    let is_place = ["file", "path", "dir"]
        .iter()
        .any(|end| before.ends_with(end));
    if follows_secret && !is_place && !word.starts_with('-') {
        return WITHHELD.to_owned();
    }
    if LOGINS.contains(&before)
        && let Some(at) = word.find([':', '%']).filter(|at| at + 1 < word.len())
        && !word.contains("//")
    {
        return format!("{}{WITHHELD}", &word[..=at]);
    }
    if SHORT_P.contains(&program) && word.starts_with("-p") && word.len() > 2 {
        return format!("-p{WITHHELD}");
    }
    // Authorization: Bearer x; PGPASSWORD=x; https://u:p@h/.
    let text = withhold_in_text(word);
    if text != *word || !word.contains(' ') {
        return text;
    }
    let inner: Vec<String> = word.split(' ').map(str::to_owned).collect();
    withhold_in_words(&inner).join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(line: &[&str]) -> Vec<String> {
        let words: Vec<String> = line.iter().map(ToString::to_string).collect();
        let once = withhold_in_words(&words);
        assert_eq!(withhold_in_words(&once), once, "cleaned twice");
        once
    }

    #[test]
    fn passwords_are_gone_however_they_are_given() {
        for line in [
            &["mysql", "-u", "root", "-pCanary", "shop"][..],
            &["/usr/bin/mysqlslap", "-pCanary"],
            &["redis-benchmark", "-a", "Canary"],
            &["curl", "-u", "bob:Canary", "http://h/"],
            &["curl", "http://bob:Canary@h/"],
            &["curl", "-H", "Authorization: Bearer Canary", "http://h/"],
            &["sysbench", "--mysql-password=Canary", "run"],
            &["sysbench", "--mysql-password", "Canary", "run"],
            &["env", "PGPASSWORD=Canary", "pgbench"],
            &["sh", "-c", "PGPASSWORD=Canary pgbench -T 5"],
            &["sh", "-c", "mysql -pCanary shop"],
            &["sh", "-c", "curl --oauth2-bearer Canary h"],
            &["sshpass", "-p", "Canary", "ssh", "h"],
        ] {
            let shown = clean(line).join(" ");
            assert!(
                !shown.contains("Canary") && shown.contains(WITHHELD),
                "{shown}"
            );
        }
    }

    #[test]
    fn ordinary_words_stay() {
        for line in [
            &["pgbench", "-n", "-T", "5", "-p", "5433", "bench"][..],
            &[
                "curl",
                "-sf",
                "-o",
                "/dev/null",
                "-H",
                "Accept-Encoding:gzip",
                "http://127.0.0.1:8099/",
            ],
            &["mysql", "-p", "shop"],
            &["mkdir", "-pv", "/srv"],
            &["curl", "--password-file", "/etc/secret"],
            &["sh", "-c", "grep -q x /etc/passwd"],
        ] {
            assert_eq!(clean(line), line);
        }
    }
}

//! Finds lines of cron tables that do not run as intended: a command that ends at a percent sign, a table that cron
//! refuses, and a job that runs each minute of one hour (crontab(5)).

use super::super::ignored_files::is_like_debian;
use super::super::lines_of_files::files;
use super::Misuses;
use crate::collectors::services::setting_lines::place;
use crate::gather::Gather;

const TABLE: &str = "/etc/crontab";
const TABLES: &str = "/etc/cron.d";
const OF_USERS: &str = "/var/spool/cron/crontabs";
/// First words of commands that are no names of accounts.
const COMMANDS: [&str; 5] = ["[", "cd", "if", "sh", "bash"];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut all = vec![(TABLE.to_owned(), true)];
    // cron skips other names, which another rule reports.
    let is_read = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    let tables = files(g, "cron.misuse", TABLES, "").into_iter();
    all.extend(tables.filter(is_read).map(|path| (path, true)));
    let of_users = files(g, "cron.misuse", OF_USERS, "").into_iter();
    all.extend(of_users.map(|path| (path, false)));
    let debian = is_like_debian(g);
    let mut found = Misuses::default();
    for (path, names_user) in all {
        let Some(text) = g.read("cron.misuse", &path) else {
            continue;
        };
        // A table has no continued lines.
        for (number, line) in text.lines().enumerate() {
            let Some(job) = Job::parse(line, names_user) else {
                continue;
            };
            let at = place(&path, number, line);
            found.add("cut", job.ends_in_date(), at.clone());
            found.add("sixty_times", job.runs_sixty_times(), at.clone());
            if names_user {
                found.add("without_user", job.lacks_user(), at);
            }
        }
        let last = text.lines().enumerate().last();
        if let Some((number, line)) = last.filter(|(_, line)| debian && !line.trim().is_empty()) {
            let at = place(&path, number, line);
            let is_comment = line.trim_start().starts_with('#');
            found.add("unterminated", !text.ends_with('\n') && !is_comment, at);
        }
    }
    found.note(g, "cron.misuse");
}

/// A job of a table.
struct Job<'a> {
    minute: &'a str,
    hour: &'a str,
    user: Option<&'a str>,
    command: &'a str,
}

impl<'a> Job<'a> {
    /// Parses a line. Comments, settings and empty lines are no jobs.
    fn parse(line: &'a str, names_user: bool) -> Option<Self> {
        let mut rest = line.trim_start();
        if !rest.starts_with(|letter: char| letter.is_ascii_digit() || "*@".contains(letter)) {
            return None;
        }
        let mut word = || {
            let text = rest.trim_start();
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            rest = &text[end..];
            (!text.is_empty()).then(|| &text[..end])
        };
        let minute = word()?;
        let mut hour = "";
        if !minute.starts_with('@') {
            hour = word()?;
            for _ in 0..3 {
                word()?;
            }
        }
        let user = match names_user {
            true => Some(word()?),
            false => None,
        };
        let command = rest.trim();
        Some(Self {
            minute,
            hour,
            user,
            command,
        })
    }

    /// Returns whether the command ends within the format of a date. cron turns a percent sign into the end of the
    /// line, unless a backslash precedes it.
    fn ends_in_date(&self) -> bool {
        let bytes = self.command.as_bytes();
        let bare =
            (0..bytes.len()).find(|&at| bytes[at] == b'%' && (at == 0 || bytes[at - 1] != b'\\'));
        let Some(before) = bare.and_then(|at| self.command.get(..at)) else {
            return false;
        };
        before
            .rsplit_once("date ")
            .is_some_and(|(_, format)| format.contains('+') && !format.contains([';', '|', ')']))
    }

    /// Returns whether the job runs in each minute of single hours.
    fn runs_sixty_times(&self) -> bool {
        let single = !self.hour.is_empty() && self.hour.bytes().all(|byte| byte.is_ascii_digit());
        self.minute == "*" && single
    }

    /// Returns whether the command stands where the account should.
    fn lacks_user(&self) -> bool {
        self.user
            .is_some_and(|user| user.contains('/') || COMMANDS.contains(&user))
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    fn wrong(path: &str, text: &str) -> Vec<String> {
        let files = [
            ("/etc/debian_version", "12.5\n"),
            ("/etc/os-release", "ID=debian\n"),
            (path, text),
        ];
        let mut all = found(&files, collect);
        all.retain(|one| one.ends_with("=true"));
        all
    }

    #[test]
    fn jobs_and_their_near_misses() {
        let table = "/etc/cron.d/backup";
        for (text, expected) in [
            (
                "0 3 * * * root tar cf /b/$(date +%F).tar /etc\n",
                "cut=true",
            ),
            ("0 3 * * * root tar cf /b/$(date +\\%F).tar /etc\n", ""),
            (
                "0 3 * * * root tar cf /b/$(date +\"%F\").tar /etc\n",
                "cut=true",
            ),
            ("0 3 * * * root mail -s hi bob%text of the mail\n", ""),
            ("0 3 * * * root date >> /log; echo 5+%\n", ""),
            ("* 3 * * * root backup\n", "sixty_times=true"),
            ("* * * * * root backup\n", ""),
            ("* 3-5 * * * root backup\n", ""),
            ("*/5 3 * * * root backup\n", ""),
            ("0 3 * * * /usr/bin/backup --all\n", "without_user=true"),
            ("@daily /usr/bin/backup --all\n", "without_user=true"),
            ("@daily root /usr/bin/backup --all\n", ""),
            ("0 3 * * * root backup", "unterminated=true"),
            ("0 3 * * * root backup\n# end", ""),
            ("0 3 * * * test backup\n", ""),
            ("MAILTO=root\n# 0 3 * * * /x\n", ""),
        ] {
            assert_eq!(wrong(table, text).join(" "), expected, "{text}");
        }
        assert!(wrong("/var/spool/cron/crontabs/bob", "0 3 * * * /bin/x\n").is_empty());
        assert!(wrong("/etc/cron.d/old.sh", "0 3 * * * /bin/x\n").is_empty());
    }
}

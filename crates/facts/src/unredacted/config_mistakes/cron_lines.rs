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
        let jobs: Vec<(usize, &str, Job<'_>)> = text
            .lines()
            .enumerate()
            .filter_map(|(number, line)| Some((number, line, Job::parse(line, names_user)?)))
            .collect();
        for (property, is_wrong) in FAULTS {
            if property == "without_user" && !names_user {
                continue;
            }
            note_table(&path, &jobs, property, is_wrong, &mut found);
        }
        let last = text.lines().enumerate().last();
        if let Some((number, line)) = last.filter(|(_, line)| debian && !line.trim().is_empty()) {
            let at = place(&path, number, line);
            let is_comment = line.trim_start().starts_with('#');
            found.add("unterminated", !text.ends_with('\n') && !is_comment, at);
            if let Some(last) = found.0.last_mut() {
                last.properties
                    .push(("lines", (number + 1).to_string().into()));
            }
        }
    }
    found.note(g, "cron.misuse");
}

/// Adds one fault of a table: its first wrong line is the place, and all wrong lines are in the property `lines`.
fn note_table(
    path: &str,
    jobs: &[(usize, &str, Job<'_>)],
    property: &'static str,
    is_wrong: Fault,
    found: &mut Misuses,
) {
    let wrong: Vec<&(usize, &str, Job<'_>)> =
        jobs.iter().filter(|(.., job)| is_wrong(job)).collect();
    let Some((number, line, _)) = wrong.first().copied().or(jobs.first()) else {
        return;
    };
    found.add(property, !wrong.is_empty(), place(path, *number, line));
    let lines: Vec<String> = wrong
        .iter()
        .map(|(number, ..)| (number + 1).to_string())
        .collect();
    if let Some(last) = found.0.last_mut() {
        last.properties.push(("lines", lines.join(", ").into()));
    }
}

/// A test of one job.
type Fault = fn(&Job<'_>) -> bool;

const FAULTS: [(&str, Fault); 4] = [
    ("cut", |job| job.ends_in_date()),
    ("sixty_times", |job| job.runs_sixty_times()),
    ("never", |job| job.has_no_day()),
    ("without_user", |job| job.lacks_user()),
];

/// The days of the months of a leap year.
const DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// A job of a table.
struct Job<'a> {
    minute: &'a str,
    hour: &'a str,
    /// The day of the month, the month, and the day of the week.
    date: [&'a str; 3],
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
        let (mut hour, mut date) = ("", ["*"; 3]);
        if !minute.starts_with('@') {
            hour = word()?;
            date = [word()?, word()?, word()?];
        }
        let user = match names_user {
            true => Some(word()?),
            false => None,
        };
        let command = rest.trim();
        Some(Self {
            minute,
            hour,
            date,
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

    /// Returns whether no month has the day, as in 31 February. With a day of the week, the job runs on that day.
    fn has_no_day(&self) -> bool {
        let [day, month, week] = self.date;
        let numbers = |text: &str| -> Option<Vec<u32>> {
            text.split(',').map(|one| one.parse().ok()).collect()
        };
        let (Some(days), Some(months)) = (numbers(day), numbers(month)) else {
            return false;
        };
        let longest = months.iter().filter_map(|month| {
            let at = usize::try_from(month.checked_sub(1)?).ok()?;
            DAYS.get(at).copied()
        });
        let longest = longest.max();
        week == "*" && longest.is_some_and(|longest| days.iter().all(|day| *day > longest))
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
            ("0 3 31 2 * root backup\n", "never=true"),
            ("0 3 31 2,3 * root backup\n", ""),
            ("0 3 31 2 1 root backup\n", ""),
            ("0 3 29 2 * root backup\n", ""),
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
        // Several lines with one fault are one finding.
        let twice = "0 3 * * * /usr/bin/a\n0 4 * * * root /usr/bin/b\n0 5 * * * /usr/bin/c\n";
        let all = found(
            &[("/etc/os-release", "ID=debian\n"), (table, twice)],
            collect,
        );
        assert!(all.contains(&"lines=\"1, 3\"".to_owned()), "{all:?}");
        assert_eq!(wrong(table, twice), ["without_user=true"]);
        assert!(wrong("/var/spool/cron/crontabs/bob", "0 3 * * * /bin/x\n").is_empty());
        assert!(wrong("/etc/cron.d/old.sh", "0 3 * * * /bin/x\n").is_empty());
    }
}

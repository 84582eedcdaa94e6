//! Finds settings of rsyslog that lose messages, show them to everybody, or accept them from everybody (rsyslog.conf(5)
//! and the pages of its modules), and a journal that is too small.

use super::super::lines_of_files::{Line, files, is_loopback, read};
use super::Misuses;
use crate::gather::Gather;

const MAIN: &str = "/etc/rsyslog.conf";
const DIR: &str = "/etc/rsyslog.d";
const JOURNALD: &str = "/etc/systemd/journald.conf";
/// Programs whose messages an administrator needs after an incident.
const NEEDED: [&str; 6] = ["sshd", "sudo", "su", "login", "systemd-logind", "auditd"];

pub(super) fn collect(g: &mut Gather<'_>) {
    let lines = statements(g);
    let mut found = Misuses::default();
    note_dropped(&lines, &mut found);
    note_modes(&lines, &mut found);
    note_forwarding(&lines, &mut found);
    note_inputs(&lines, &mut found);
    found.note(g, "rsyslog");
    note_journal(g);
}

/// Notes a journal that is too small for the messages of a day (journald.conf(5)).
fn note_journal(g: &mut Gather<'_>) {
    let mut all = vec![JOURNALD.to_owned()];
    all.extend(files(g, "journal_size", &format!("{JOURNALD}.d"), ".conf"));
    let mut last = None;
    for path in all {
        for line in read(g, "journal_size", &path) {
            if let Some(("SystemMaxUse", value)) = line.text.trim().split_once('=') {
                last = Some((value.trim().to_owned(), line.place));
            }
        }
    }
    if let Some((value, place)) = last
        && let Some(bytes) = bytes(&value)
    {
        let mut found = Misuses::default();
        found.add("small", bytes > 0 && bytes < 32 << 20, place);
        found.note(g, "journal_size");
    }
}

fn bytes(text: &str) -> Option<u64> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let power = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << power)
}

/// Returns the statements in the order in which rsyslog reads them: files are read where the main file includes them.
fn statements(g: &mut Gather<'_>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in joined(read(g, "rsyslog", MAIN)) {
        if line.text.contains(DIR) && line.text.to_lowercase().contains("include") {
            for path in files(g, "rsyslog", DIR, ".conf") {
                all.extend(joined(read(g, "rsyslog", &path)));
            }
        } else {
            all.push(line);
        }
    }
    all
}

/// Joins the lines of a statement in parentheses, and drops comments.
fn joined(lines: Vec<Line>) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    let mut depth = 0_i32;
    for line in lines {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let starts = [
            "action(", "input(", "module(", "global(", "ruleset(", "include(",
        ]
        .iter()
        .any(|word| text.to_lowercase().contains(word));
        let open = i32::try_from(text.matches('(').count()).unwrap_or(0);
        let close = i32::try_from(text.matches(')').count()).unwrap_or(0);
        match all.last_mut().filter(|_| depth > 0) {
            Some(last) => {
                last.text.push(' ');
                last.text.push_str(text);
            }
            None => all.push(Line {
                text: text.to_owned(),
                place: line.place,
            }),
        }
        if starts || depth > 0 {
            depth = (depth + open - close).max(0);
        }
    }
    all
}

/// Returns the value of a parameter of a statement such as `action(type="omfwd" port="514")`, in lower case.
fn parameter(text: &str, name: &str) -> Option<String> {
    let low = text.to_lowercase();
    let mut rest = low.as_str();
    while let Some(at) = rest.find(name) {
        let before = rest[..at].chars().next_back();
        let after = rest[at + name.len()..].trim_start();
        rest = &rest[at + name.len()..];
        let is_name = before.is_none_or(|letter| letter.is_whitespace() || letter == '(');
        if let (true, Some(value)) = (is_name, after.strip_prefix('=')) {
            let value = value.trim_start().strip_prefix('"')?;
            return value.split('"').next().map(str::to_owned);
        }
    }
    None
}

/// Notes statements that drop the messages of programs that log sign-ins, unless an earlier statement stored them.
fn note_dropped(lines: &[Line], found: &mut Misuses) {
    for (number, line) in lines.iter().enumerate() {
        let text = line.text.trim();
        let drops = text.ends_with("stop") || text.ends_with('~');
        let facility = text.starts_with("auth") && drops;
        let program = text
            .split('"')
            .chain(text.split('\''))
            .find(|part| NEEDED.contains(part));
        let by_name = text.contains("programname") || text.contains("syslogtag");
        let program = program.filter(|_| drops && by_name && !text.contains('!'));
        if !facility && program.is_none() {
            continue;
        }
        let stored = lines[..number].iter().any(|other| {
            let of_program = program.is_some_and(|program| other.text.contains(program));
            let writes = other.text.contains('/') || other.text.contains('@');
            (other.text.starts_with("auth") || of_program) && writes
        });
        found.add("drops_sign_ins", !stored, line.place.clone());
    }
}

/// Notes modes of new files that everybody may read.
fn note_modes(lines: &[Line], found: &mut Misuses) {
    let mut mask = 0;
    let mode = |text: &str| u32::from_str_radix(text.trim_matches('"'), 8).ok();
    for line in lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let ["$Umask", value, ..] = words[..] {
            mask = mode(value).unwrap_or(mask);
        }
    }
    for line in lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let value = match words[..] {
            ["$FileCreateMode", value, ..] => Some(value.to_owned()),
            _ => parameter(&line.text, "filecreatemode"),
        };
        if let Some(bits) = value.and_then(|value| mode(&value)) {
            let open = bits & !mask & 0o004 != 0;
            found.add("readable", open, line.place.clone());
        }
    }
}

/// Notes messages that are sent by TCP without a queue of their own.
fn note_forwarding(lines: &[Line], found: &mut Misuses) {
    let mut queue = false;
    for line in lines {
        let text = line.text.as_str();
        if text.starts_with("$ActionQueueType") {
            queue = !text.to_lowercase().ends_with("direct");
        }
        let by_module =
            parameter(text, "type").is_some_and(|kind| kind == "omfwd" || kind == "omrelp");
        let by_sign = text.split_whitespace().any(|word| word.starts_with("@@"));
        if by_module {
            let reliable = parameter(text, "type").as_deref() == Some("omrelp")
                || parameter(text, "protocol").as_deref() == Some("tcp");
            let own = parameter(text, "queue.type").is_some_and(|kind| kind != "direct");
            found.add("blocks", reliable && !own, line.place.clone());
        } else if by_sign {
            found.add("blocks", !queue, line.place.clone());
            queue = false;
        }
    }
}

/// Notes inputs that take the messages of every machine.
fn note_inputs(lines: &[Line], found: &mut Misuses) {
    let limited = lines
        .iter()
        .any(|line| line.text.starts_with("$AllowedSender"));
    for line in lines {
        let text = line.text.as_str();
        let kind = parameter(text, "type").unwrap_or_default();
        let by_module = text.starts_with("input(") && (kind == "imudp" || kind == "imtcp");
        let by_word = ["$UDPServerRun", "$InputTCPServerRun"]
            .iter()
            .any(|word| text.starts_with(word));
        if by_module || by_word {
            let local = parameter(text, "address").is_some_and(|one| is_loopback(&one));
            let addressed = lines.iter().any(|line| {
                let rest = line.text.strip_prefix("$UDPServerAddress");
                rest.is_some_and(|rest| is_loopback(rest.trim()))
            });
            found.add(
                "from_everybody",
                !limited && !local && !addressed,
                line.place.clone(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn statements_and_their_near_misses() {
        for (text, expected) in [
            (
                ":programname, isequal, \"sshd\" stop\n",
                "drops_sign_ins=true",
            ),
            (
                "if $programname == 'sudo' then stop\n",
                "drops_sign_ins=true",
            ),
            (
                ":programname, isequal, \"sshd\" /var/log/sshd.log\n:programname, isequal, \"sshd\" stop\n",
                "drops_sign_ins=false",
            ),
            (":programname, isequal, \"CRON\" stop\n", ""),
            ("auth,authpriv.* ~\n", "drops_sign_ins=true"),
            (
                "auth,authpriv.* /var/log/auth.log\nauth,authpriv.* stop\n",
                "drops_sign_ins=false",
            ),
            ("$FileCreateMode 0644\n", "readable=true"),
            ("$FileCreateMode 0640\n", "readable=false"),
            ("$FileCreateMode 0644\n$Umask 0027\n", "readable=false"),
            ("*.* @@logs.example.com:514\n", "blocks=true"),
            (
                "$ActionQueueType LinkedList\n*.* @@logs.example.com\n",
                "blocks=false",
            ),
            ("*.* @logs.example.com\n", ""),
            (
                "*.* action(type=\"omfwd\" target=\"a\"\n  protocol=\"tcp\")\n",
                "blocks=true",
            ),
            (
                "*.* action(type=\"omfwd\" protocol=\"tcp\"\n  queue.type=\"LinkedList\")\n",
                "blocks=false",
            ),
            (
                "*.* action(type=\"omfwd\" target=\"a\" protocol=\"udp\")\n",
                "blocks=false",
            ),
            (
                "input(type=\"imudp\" port=\"514\")\n",
                "from_everybody=true",
            ),
            (
                "input(type=\"imudp\" port=\"514\" address=\"127.0.0.1\")\n",
                "from_everybody=false",
            ),
            (
                "$AllowedSender UDP, 10.0.0.0/8\n$UDPServerRun 514\n",
                "from_everybody=false",
            ),
        ] {
            assert_eq!(
                found(&[(MAIN, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn sizes_of_the_journal() {
        for (text, expected) in [
            ("[Journal]\nSystemMaxUse=8M\n", "small=true"),
            ("[Journal]\nSystemMaxUse=1G\n", "small=false"),
            ("[Journal]\n#SystemMaxUse=8M\n", ""),
        ] {
            assert_eq!(
                found(&[(JOURNALD, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn files_are_read_where_they_are_included() {
        let main = (
            MAIN,
            "$IncludeConfig /etc/rsyslog.d/*.conf\nauth.* /var/log/auth.log\n",
        );
        let own = ("/etc/rsyslog.d/01-a.conf", "auth.* stop\n");
        assert_eq!(found(&[main, own], collect), ["drops_sign_ins=true"]);
        let late = (
            MAIN,
            "auth.* /var/log/auth.log\ninclude(file=\"/etc/rsyslog.d/*.conf\")\n",
        );
        assert_eq!(found(&[late, own], collect), ["drops_sign_ins=false"]);
    }
}

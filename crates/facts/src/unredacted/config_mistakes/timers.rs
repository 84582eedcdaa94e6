//! Finds timers of an administrator that never start their unit: a time that systemd cannot parse, a time that is
//! relative to a start that never happens, and a timer that no target starts (systemd.timer(5), systemd.time(7)).

use super::super::backup_schedules::is_wanted;
use super::super::lines_of_files::{files, holds_enabled_units, read};
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;
use std::path::Path;

const UNITS: &str = "/etc/systemd/system";
/// Times that are relative to a start of the unit that the timer starts.
const RELATIVE: [&str; 2] = ["OnUnitActiveSec", "OnUnitInactiveSec"];
/// Names of whole expressions.
const SHORTHANDS: [&str; 9] = [
    "minutely",
    "hourly",
    "daily",
    "weekly",
    "monthly",
    "quarterly",
    "semiannually",
    "yearly",
    "annually",
];
const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    let holds_links = holds_enabled_units(g);
    for path in files(g, "timer", UNITS, ".timer") {
        // A link is another name of a unit, or masks it.
        if g.host.link(Path::new(&path)).is_ok() {
            continue;
        }
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let timer = Timer::read(g, &path);
        let unit = timer.unit(&name);
        for (key, value, place) in &timer.times {
            if key == "OnCalendar" && !value.contains('%') {
                found.add("unparsed", !is_calendar(value), place.clone());
            }
        }
        let Some((_, _, place)) = timer.times.first() else {
            continue;
        };
        let relative = timer
            .times
            .iter()
            .all(|(key, ..)| RELATIVE.contains(&key.as_str()));
        let started = relative && is_wanted(g, &unit);
        found.add("never", relative && !started, place.clone());
        // A template is enabled under the name of an instance.
        if holds_links && timer.installs && !name.contains('@') {
            let enabled = is_wanted(g, &name) || is_wanted(g, &unit);
            found.add("not_enabled", !enabled, FactPlace::from(path.as_str()));
        }
    }
    found.note(g, "timer");
}

/// The settings of a timer with its drop-ins.
#[derive(Default)]
struct Timer {
    times: Vec<(String, String, FactPlace)>,
    unit: Option<String>,
    installs: bool,
}

impl Timer {
    fn read(g: &mut Gather<'_>, path: &str) -> Self {
        let mut timer = Self::default();
        let mut all = vec![path.to_owned()];
        all.extend(files(g, "timer", &format!("{path}.d"), ".conf"));
        for path in all {
            let mut section = String::new();
            for line in read(g, "timer", &path) {
                let text = line.text.trim();
                if text.starts_with('[') {
                    section = text.to_owned();
                }
                let Some((key, value)) = text.split_once('=') else {
                    continue;
                };
                timer.add(&section, key.trim_end(), value.trim(), line.place);
            }
        }
        timer
    }

    fn add(&mut self, section: &str, key: &str, value: &str, place: FactPlace) {
        match (section, key) {
            ("[Install]", "WantedBy" | "RequiredBy") => self.installs = true,
            ("[Timer]", "Unit") => self.unit = Some(value.to_owned()),
            // An empty value removes all times, also those of other keys.
            ("[Timer]", _) if key.starts_with("On") && value.is_empty() => self.times.clear(),
            ("[Timer]", _) if key.starts_with("On") => {
                self.times.push((key.to_owned(), value.to_owned(), place));
            }
            _ => {}
        }
    }

    fn unit(&self, name: &str) -> String {
        let own = format!("{}.service", name.trim_end_matches(".timer"));
        self.unit.clone().unwrap_or(own)
    }
}

/// Returns whether systemd accepts a calendar expression.
fn is_calendar(text: &str) -> bool {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let is_zone = |word: &&&str| {
        let first = word.chars().next().unwrap_or('0');
        first.is_ascii_uppercase()
            && (word.contains('/') || word.bytes().all(|byte| byte.is_ascii_uppercase()))
    };
    if words.len() > 1
        && words
            .last()
            .filter(is_zone)
            .is_some_and(|word| !is_days(word))
    {
        words.pop();
    }
    if let [word] = words[..]
        && (SHORTHANDS.contains(&word.to_ascii_lowercase().as_str()) || is_timestamp(word))
    {
        return true;
    }
    let (mut days, mut dates, mut times) = (0, 0, 0);
    for word in &words {
        match word {
            word if is_days(word) && dates + times == 0 => days += 1,
            word if is_time(word) => times += 1,
            word if is_date(word) && times == 0 => dates += 1,
            word if is_both(word) => (dates, times) = (dates + 1, times + 1),
            _ => return false,
        }
    }
    !words.is_empty() && days <= 1 && dates <= 1 && times <= 1
}

/// Returns whether a word is a number of seconds since 1970.
fn is_timestamp(word: &str) -> bool {
    let digits = word.strip_prefix('@').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a word is a list of weekdays. Old versions also accept `Mon-Fri`.
fn is_days(word: &str) -> bool {
    let low = word.trim_end_matches(',').to_ascii_lowercase();
    !low.is_empty()
        && low.replace("..", ",").split([',', '-']).all(|day| {
            DAYS.iter()
                .any(|full| *full == day || full.get(..3) == Some(day))
        })
}

fn is_time(word: &str) -> bool {
    let parts: Vec<&str> = word.split(':').collect();
    let limits = [23.0, 59.0, 59.999_999];
    matches!(parts.len(), 2 | 3)
        && parts
            .iter()
            .zip(limits)
            .all(|(part, most)| is_component(part, most))
}

fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split(['-', '~']).collect();
    matches!(parts.len(), 2 | 3) && parts.iter().all(|part| is_component(part, 9999.0))
}

fn is_both(word: &str) -> bool {
    word.split_once('T')
        .is_some_and(|(date, time)| is_date(date) && is_time(time))
}

/// Returns whether one part of a date or time is a list of numbers, ranges and repetitions.
fn is_component(part: &str, most: f64) -> bool {
    let number = |text: &str, most: f64| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
            && text.parse::<f64>().is_ok_and(|value| value <= most)
    };
    part.split(',').all(|one| {
        let (value, step) = one.split_once('/').unwrap_or((one, "1"));
        let valid = value == "*"
            || match value.split_once("..") {
                Some((from, to)) => number(from, most) && number(to, most),
                None => number(value, most),
            };
        valid && number(step, 9999.0)
    })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    /// The examples of systemd.time(7), and near misses.
    #[test]
    fn calendar_expressions() {
        for text in [
            "Sat,Thu,Mon..Wed,Sat..Sun",
            "Mon,Sun 12-*-* 2,1:23",
            "Wed *-1",
            "Wed, 17:48",
            "Wed..Sat,Tue 12-10-15 1:2:3",
            "*-*-7 0:0:0",
            "monday *-12-* 17:00",
            "Mon,Fri *-*-3,1,2 *:30:45",
            "12..14:10,20,30",
            "mon,fri *-1/2-1,3 *:30:45",
            "05:40:23.4200004/3.1700005",
            "2003-02..04-05",
            "2003-03-05 05:40 UTC",
            "weekly Pacific/Auckland",
            "*:2/3",
            "*-02~03",
            "hourly",
            "Mon-Fri 8:00",
        ] {
            assert!(is_calendar(text), "{text}");
        }
        for text in [
            "daily 02:15",
            "0 3 * * *",
            "*-*-* 25:00",
            "every day at 3",
            "3am",
            "02:00 Mon",
            "@daily",
            "Mon *-*-* 3",
            "",
        ] {
            assert!(!is_calendar(text), "{text}");
        }
    }

    #[test]
    fn timers_and_their_near_misses() {
        let path = "/etc/systemd/system/a.timer";
        for (text, expected) in [
            ("[Timer]\nOnUnitActiveSec=1h\n", "never=true"),
            (
                "[Timer]\nOnBootSec=5min\nOnUnitActiveSec=1h\n",
                "never=false",
            ),
            (
                "[Timer]\nOnCalendar=daily 3:00\n",
                "unparsed=true never=false",
            ),
            (
                "[Timer]\nOnCalendar=bad\nOnCalendar=\nOnCalendar=daily\n",
                "unparsed=false never=false",
            ),
            ("[Timer]\nPersistent=true\n", ""),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        let own = (path, "[Timer]\nOnUnitActiveSec=1h\n");
        let wants = |name: &'static str| (name, "");
        let service = wants("/etc/systemd/system/multi-user.target.wants/a.service");
        assert_eq!(found(&[own, service], collect), ["never=false"]);
        let own = (
            path,
            "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n",
        );
        let other = wants("/etc/systemd/system/timers.target.wants/b.timer");
        let timer = wants("/etc/systemd/system/timers.target.wants/a.timer");
        let enabled = |files: &[(&str, &str)]| found(files, collect).join(" ");
        assert!(enabled(&[own, other]).contains("not_enabled=true"));
        assert!(enabled(&[own, timer]).contains("not_enabled=false"));
        assert!(!enabled(&[own]).contains("not_enabled"));
    }
}
